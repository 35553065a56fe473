package console

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"
)

// passwordHash returns the hash of "open sesame".
var passwordHash = func() func(t *testing.T) string {
	hash := sync.OnceValues(func() ([]byte, error) { return bcrypt.GenerateFromPassword([]byte("open sesame"), bcrypt.MinCost) })
	return func(t *testing.T) string {
		t.Helper()
		h, err := hash()
		if err != nil {
			t.Fatal(err)
		}
		return string(h)
	}
}()

// access returns the handler of a server and its Server.
func access(t *testing.T, c Config) (*Server, http.Handler) {
	t.Helper()
	if c.Listen == "" {
		c.Listen = "127.0.0.1:8080"
	}
	c.OwnerToken = ownerToken
	r := &robot{fetch: 4}
	s, err := New(c, r, r, r, slog.New(slog.DiscardHandler), map[string]http.Handler{
		"GET /metrics": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "freshet_pages 1") }),
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, s.Handler()
}

// ask sends a request from an address with headers "Name: value".
func ask(h http.Handler, remote, method, path, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host, r.RemoteAddr = "localhost:8080", remote
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		if name == "Host" {
			r.Host = value
			continue
		}
		r.Header.Add(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

var (
	readPaths  = []string{"GET /status", "GET /api/status", "GET /api/agents", "GET /api/sources", "GET /api/why?url=http://known/"}
	writePaths = []string{
		"POST /api/pause", "POST /api/resume", "POST /api/stop", "PUT /api/agents", "PUT /api/throttle", "POST /api/sources", "DELETE /api/sources?url=x",
		"POST /control", "POST /api/login-link",
	}
	searchPaths = []string{"GET /?q=x", "GET /api/search?q=x", "GET /cached?url=http://h.example/"}
)

// Who may search, read the status and change things, by the kind of server.
func TestWhoMayDoWhat(t *testing.T) {
	t.Parallel()
	const program = "token-of-a-program-1"
	owner := "Authorization: Bearer " + ownerToken
	named := func(c Config) Config {
		c.Listen, c.Header, c.Proxies, c.Operators = "0.0.0.0:80", "X-User", []string{"10.0.0.0/8"}, []string{"alice"}
		return c
	}
	password := Config{Listen: "0.0.0.0:80", Password: passwordHash(t), Tokens: []string{program}}
	privatePassword := password
	privatePassword.Private = true
	for _, tt := range []struct {
		name                  string
		config                Config
		remote                string
		header                []string
		search, read, operate bool
	}{
		{"no login, anybody on this machine", Config{}, "127.0.0.1:5000", nil, true, true, false},
		{"no login, the owner", Config{}, "127.0.0.1:5000", []string{owner}, true, true, true},
		{"no login, a wrong token", Config{}, "127.0.0.1:5000", []string{owner + "x"}, true, true, false},
		{"no login, an empty token", Config{}, "127.0.0.1:5000", []string{"Authorization: Bearer "}, true, true, false},
		{"no login, a forged cookie", Config{}, "127.0.0.1:5000", []string{"Cookie: freshet_session=AAAA"}, true, true, false},
		{"no login, private, anybody", Config{Private: true}, "127.0.0.1:5000", nil, false, false, false},
		{"no login, private, the owner", Config{Private: true}, "127.0.0.1:5000", []string{owner}, true, true, true},
		{"password, a stranger", password, "192.0.2.1:5000", nil, true, false, false},
		{"password, a program", password, "192.0.2.1:5000", []string{"Authorization: Bearer " + program}, true, true, true},
		{"password, the owner", password, "127.0.0.1:5000", []string{owner}, true, true, true},
		{"password, somebody else on this machine", password, "127.0.0.1:5000", nil, true, false, false},
		{"password, private, a stranger", privatePassword, "192.0.2.1:5000", nil, false, false, false},
		{"proxy, a user", named(Config{}), "10.1.2.3:5000", []string{"X-User: bob"}, true, false, false},
		{"proxy, an operator", named(Config{}), "10.1.2.3:5000", []string{"X-User: alice"}, true, true, true},
		{"proxy, private, a user", named(Config{Private: true}), "10.1.2.3:5000", []string{"X-User: bob"}, true, false, false},
		{"proxy, private, nobody", named(Config{Private: true}), "10.1.2.3:5000", nil, false, false, false},
		{"proxy, private, an empty name", named(Config{Private: true}), "10.1.2.3:5000", []string{"X-User: "}, false, false, false},
		{"proxy, private, two names", named(Config{Private: true}), "10.1.2.3:5000", []string{"X-User: bob", "X-User: alice"}, false, false, false},
		{"past the proxy", named(Config{Private: true}), "192.0.2.1:5000", []string{"X-User: alice"}, false, false, false},
		{"past the proxy, with its address forged", named(Config{Private: true}), "192.0.2.1:5000", []string{"X-User: alice", "X-Forwarded-For: 10.1.2.3"}, false, false, false},
	} {
		_, h := access(t, tt.config)
		for _, group := range []struct {
			paths []string
			may   bool
		}{{searchPaths, tt.search}, {readPaths, tt.read}, {writePaths, tt.operate}} {
			for _, p := range group.paths {
				method, path, _ := strings.Cut(p, " ")
				w := ask(h, tt.remote, method, path, "", tt.header...)
				refused := w.Code == http.StatusUnauthorized || w.Code == http.StatusForbidden || (w.Code == http.StatusSeeOther && strings.HasPrefix(w.Header().Get("Location"), "/login"))
				if refused == group.may {
					t.Errorf("%s: %s answers %d %.60q, allowed should be %t", tt.name, p, w.Code, w.Body, group.may)
				}
			}
		}
	}
}

// A web page cannot reach the server under a name of its own, whether there is a
// login or not; the names that are the server's are answered.
func TestHostNames(t *testing.T) {
	t.Parallel()
	own, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	loopback := Config{}
	outside := Config{Listen: "0.0.0.0:8080", Password: passwordHash(t), Hosts: []string{"Search.Corp.example"}, Addresses: []string{"https://www.search.example:8443/", "http://hooks.example/freshet"}}
	named := Config{Listen: "nas.local:8080", Password: passwordHash(t)}
	for _, tt := range []struct {
		name   string
		config Config
		host   string
		ok     bool
	}{
		{"loopback", loopback, "localhost:8080", true},
		{"loopback", loopback, "LOCALHOST", true},
		{"loopback", loopback, "localhost.", true},
		{"loopback", loopback, "demo.localhost:8080", true},
		{"loopback", loopback, "127.0.0.1:8080", true},
		{"loopback", loopback, "127.9.9.9", true},
		{"loopback", loopback, "[::1]:8080", true},
		{"loopback", loopback, "evil.example", false},
		{"loopback", loopback, "evil.example:8080", false},
		{"loopback", loopback, "localhost.evil.example", false},
		{"loopback", loopback, "127.0.0.1.evil.example", false},
		{"loopback", loopback, "127.0.0.1:8080.evil.example", false},
		{"loopback", loopback, "localhost:evil.example", false},
		{"loopback", loopback, "localhost:", true},
		{"loopback", loopback, "192.0.2.1", false},
		{"loopback", loopback, own, loopbackName(own)},
		{"outside", outside, "evil.example", false},
		{"outside", outside, "search.corp.example", true},
		{"outside", outside, "SEARCH.corp.example.:8080", true},
		{"outside", outside, "x.search.corp.example", false},
		{"outside", outside, "www.search.example", true},
		{"outside", outside, "hooks.example:80", true},
		{"outside", outside, "192.0.2.1:8080", true},
		{"outside", outside, "[2001:db8::1]:8080", true},
		{"outside", outside, own + ":8080", true},
		{"outside", outside, "localhost", true},
		{"outside", outside, "0x7f.1", false},
		{"outside", outside, "", false},
		{"named", named, "nas.local:8080", true},
		{"named", named, "evil.local", false},
		{"every name", Config{Hosts: []string{"*"}}, "evil.example", true},
	} {
		_, h := access(t, tt.config)
		for _, path := range []string{"/", "/api/search?q=x", "/metrics", "/cached?url=http://h.example/", "/robots.txt", "/login", "/nowhere"} {
			w := ask(h, "127.0.0.1:5", "GET", path, "", "Host: "+tt.host)
			if got := w.Code != http.StatusMisdirectedRequest; got != tt.ok {
				t.Errorf("%s: Host %q at %s answers %d, answering should be %t", tt.name, tt.host, path, w.Code, tt.ok)
			}
		}
		if w := ask(h, "127.0.0.1:5", "GET", "/healthz", "", "Host: "+tt.host); w.Code != 200 {
			t.Errorf("%s: a probe under %q: %d", tt.name, tt.host, w.Code)
		}
	}
}

// Limits are by client: by /64 of IPv6, and behind a proxy by the address that
// the proxy names; addresses that clients name themselves count for nothing.
func TestClientAddress(t *testing.T) {
	t.Parallel()
	s, _ := access(t, Config{Proxies: []string{"10.0.0.0/8", "fd00::/8"}, Header: "X-User"})
	for _, tt := range []struct {
		remote string
		header []string
		want   string
	}{
		{"192.0.2.1:5", nil, "192.0.2.1"},
		{"192.0.2.1:5", []string{"X-Forwarded-For: 198.51.100.7"}, "192.0.2.1"},
		{"192.0.2.1:5", []string{"Forwarded: for=198.51.100.7"}, "192.0.2.1"},
		{"[2001:db8::1]:5", nil, "2001:db8::/64"},
		{"[2001:db8::2:3]:5", nil, "2001:db8::/64"},
		{"[::ffff:192.0.2.1]:5", nil, "192.0.2.1"},
		{"10.0.0.1:5", []string{"X-Forwarded-For: 198.51.100.7"}, "198.51.100.7"},
		{"10.0.0.1:5", []string{"X-Forwarded-For: 1.1.1.1, 198.51.100.7"}, "198.51.100.7"},
		{"10.0.0.1:5", []string{"X-Forwarded-For: 1.1.1.1", "X-Forwarded-For: 198.51.100.7, 10.9.9.9"}, "198.51.100.7"},
		{"10.0.0.1:5", []string{"X-Forwarded-For: 198.51.100.7:1234"}, "198.51.100.7"},
		{"10.0.0.1:5", []string{"X-Forwarded-For: [2001:db8::1]:80"}, "2001:db8::/64"},
		{"10.0.0.1:5", []string{"X-Forwarded-For: 2001:db8::1"}, "2001:db8::/64"},
		{"10.0.0.1:5", []string{"X-Forwarded-For: 198.51.100.7, unknown"}, "10.0.0.1"},
		{"10.0.0.1:5", []string{"X-Forwarded-For: 10.0.0.2"}, "10.0.0.2"},
		{"10.0.0.1:5", []string{`Forwarded: for=1.1.1.1, for="[2001:db8::1]:80";proto=https;by=10.0.0.1`}, "2001:db8::/64"},
		{"10.0.0.1:5", []string{"Forwarded: for=198.51.100.7", "X-Forwarded-For: 198.51.100.8"}, "198.51.100.8"},
		{"10.0.0.1:5", []string{"Forwarded: proto=https"}, "10.0.0.1"},
		{"[fd00::1]:5", []string{"X-Forwarded-For: 198.51.100.7"}, "198.51.100.7"},
		{"10.0.0.1:5", nil, "10.0.0.1"},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = tt.remote
		for _, line := range tt.header {
			name, value, _ := strings.Cut(line, ": ")
			r.Header.Add(name, value)
		}
		if got := s.auth.clientKey(r); got != tt.want {
			t.Errorf("%s %q: client %s, want %s", tt.remote, tt.header, got, tt.want)
		}
	}
	_, h := access(t, Config{Rate: .001, Proxies: []string{"10.0.0.0/8"}})
	search := func(client string) int {
		return ask(h, "10.0.0.1:5", "GET", "/api/search?q=x", "", "X-Forwarded-For: "+client).Code
	}
	for range 20 {
		search("198.51.100.7")
	}
	if code := search("198.51.100.7"); code != http.StatusTooManyRequests {
		t.Errorf("a busy client behind a proxy: %d, want 429", code)
	}
	if code := search("198.51.100.8"); code != http.StatusOK {
		t.Errorf("another client behind the same proxy: %d, want 200", code)
	}
}

// A session ends when its holder logs out, and other sessions go on.
func TestSessions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		config Config
		cookie string
		secure bool
	}{
		{"plain", Config{Password: passwordHash(t)}, "freshet_session", false},
		{"behind TLS", Config{Password: passwordHash(t), Addresses: []string{"https://search.example"}, PublicURL: "https://search.example"}, "__Host-freshet_session", true},
		{"hubs by TLS", Config{Password: passwordHash(t), Addresses: []string{"https://hooks.example"}}, "freshet_session", false},
	} {
		_, h := access(t, tt.config)
		login := func() string {
			t.Helper()
			w := ask(h, "127.0.0.1:5", "POST", "/login", "password=open+sesame&to=/api/status", "Content-Type: application/x-www-form-urlencoded")
			set := w.Result().Cookies()
			if w.Code != http.StatusSeeOther || len(set) != 1 {
				t.Fatalf("%s: login %d, %v", tt.name, w.Code, set)
			}
			c := set[0]
			if c.Name != tt.cookie || c.Secure != tt.secure || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || len(c.Value) < 40 {
				t.Errorf("%s: cookie %s", tt.name, w.Header().Get("Set-Cookie"))
			}
			return "Cookie: " + c.Name + "=" + c.Value
		}
		first, second := login(), login()
		status := func(cookie string) int { return ask(h, "127.0.0.1:5", "GET", "/api/status", "", cookie).Code }
		if first == second || status(first) != 200 || status(second) != 200 {
			t.Fatalf("%s: after login %d, %d", tt.name, status(first), status(second))
		}
		ask(h, "127.0.0.1:5", "POST", "/logout", "", first)
		if status(first) != http.StatusUnauthorized || status(second) != 200 {
			t.Errorf("%s: after one logs out %d, want 401; the other %d, want 200", tt.name, status(first), status(second))
		}
	}
	s := newSecretSet(3)
	now := time.Now()
	old := s.issueSecret("old", now.Add(time.Hour))
	for range 10 {
		s.issueSecret("new", now.Add(2*time.Hour))
	}
	if len(s.held) != 3 {
		t.Errorf("%d secrets are held, want 3", len(s.held))
	}
	if _, ok := s.secretName(old, now); ok {
		t.Error("the session that ends first did not make room")
	}
	last := s.issueSecret("last", now.Add(time.Hour))
	if _, ok := s.secretName(last, now.Add(2*time.Hour)); ok {
		t.Error("a session outlives its end")
	}
}

// A link logs one browser in, once.
func TestLoginLink(t *testing.T) {
	t.Parallel()
	s, h := access(t, Config{})
	link := s.LoginLink()
	var all sync.WaitGroup
	cookies := make(chan string, 4)
	for range 4 { // at the same moment
		all.Go(func() {
			w := ask(h, "127.0.0.1:5", "GET", link, "")
			for _, c := range w.Result().Cookies() {
				cookies <- c.Name + "=" + c.Value
			}
		})
	}
	all.Wait()
	close(cookies)
	var got []string
	for c := range cookies {
		got = append(got, c)
	}
	if len(got) != 1 {
		t.Fatalf("one link gave %d sessions, want 1", len(got))
	}
	if w := ask(h, "127.0.0.1:5", "POST", "/api/pause", "", "Cookie: "+got[0]); w.Code != 200 {
		t.Errorf("the owner's browser: %d %s", w.Code, w.Body)
	}
	if w := ask(h, "127.0.0.1:5", "POST", "/api/pause", "", "Cookie: "+got[0], "Sec-Fetch-Site: cross-site"); w.Code != http.StatusForbidden {
		t.Errorf("a foreign page in the owner's browser: %d, want 403", w.Code)
	}
	if w := ask(h, "127.0.0.1:5", "GET", "/status", "", "Cookie: "+got[0]); !strings.Contains(w.Body.String(), `value="pause"`) || !strings.Contains(w.Body.String(), "log out") {
		t.Error("the owner's status page has no controls")
	}
	if w := ask(h, "127.0.0.1:5", "GET", "/status", ""); strings.Contains(w.Body.String(), `value="pause"`) || !strings.Contains(w.Body.String(), "freshet open") {
		t.Error("a reader's status page has controls, or does not say who has them")
	}
	for _, forged := range []string{"/login/link", "/login/link?key=", "/login/link?key=" + strings.Repeat("A", 43)} {
		if w := ask(h, "192.0.2.9:5", "GET", forged, ""); w.Code != http.StatusForbidden {
			t.Errorf("%s: %d, want 403", forged, w.Code)
		}
	}
}

// A login leads back to a page of this server and nowhere else.
func TestLocalPath(t *testing.T) {
	t.Parallel()
	for to, want := range map[string]string{
		"/status":                   "/status",
		"/?q=a+b&kind=web":          "/?q=a+b&kind=web",
		"/cached?url=http://h/%20x": "/cached?url=http://h/%20x",
		"":                          "/status",
		"status":                    "/status",
		"//evil.example":            "/status",
		"///evil.example":           "/status",
		"/\t/evil.example/x":        "/status",
		"/\n/evil.example/x":        "/status",
		"/\r/evil.example/x":        "/status",
		"\t//evil.example":          "/status",
		" //evil.example":           "/status",
		"/\x00/evil.example":        "/status",
		"/\x7f/evil.example":        "/status",
		"/\\evil.example":           "/status",
		"\\\\evil.example":          "/status",
		"http://evil.example":       "/status",
		"https:evil.example":        "/status",
		"javascript:alert(1)":       "/status",
		"/%zz":                      "/status",
		"/%2F/evil.example":         "/status",
	} {
		got := localPath(to)
		if got != want {
			t.Errorf("localPath(%q) = %q, want %q", to, got, want)
		}
		if u, err := url.Parse(got); err != nil || u.Host != "" {
			t.Errorf("localPath(%q) leads to host %v", to, u)
		}
	}
}

// Configurations that would let anybody in are refused.
func TestWeakAccess(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]Config{
		"outside without login": {Listen: "0.0.0.0:80"},
		"a plain password":      {Listen: "0.0.0.0:80", Password: "plain"},
		"a short token":         {Listen: "0.0.0.0:80", Tokens: []string{"short"}},
		"a wrong proxy":         {Listen: "127.0.0.1:80", Proxies: []string{"10.0.0.0/40"}},
		"no address":            {Listen: "80"},
	} {
		if _, err := New(c, nil, nil, nil, nil, nil); err == nil {
			t.Errorf("%s: a server was made", name)
		}
	}
}

// Other search engines get the home page and no results or copies.
func TestRobotsOfTheConsole(t *testing.T) {
	t.Parallel()
	_, h := access(t, Config{})
	if w := ask(h, "192.0.2.1:5", "GET", "/robots.txt", ""); w.Code != 200 || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") || !strings.Contains(w.Body.String(), "Disallow: /\n") || !strings.Contains(w.Body.String(), "Allow: /$") {
		t.Errorf("robots.txt: %d %s", w.Code, w.Body)
	}
	for path, indexed := range map[string]bool{"/": true, "/?q=x": false, "/?": true, "/cached?url=http://h.example/": false, "/api/search?q=x": false, "/status": false, "/cached?url=http://none/": false} {
		w := ask(h, "127.0.0.1:5", "GET", path, "")
		if got := w.Header().Get("X-Robots-Tag") == ""; got != indexed {
			t.Errorf("%s: X-Robots-Tag %q", path, w.Header().Get("X-Robots-Tag"))
		}
	}
	if w := ask(h, "127.0.0.1:5", "GET", "/favicon.ico", ""); w.Code != 200 || w.Header().Get("Content-Type") != "image/svg+xml" {
		t.Errorf("favicon: %d %s", w.Code, w.Header().Get("Content-Type"))
	}
}
