package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/freshet/freshet/cluster"
	"github.com/freshet/freshet/index"
)

// robot is an Operator and Finder that remembers what it was told.
type robot struct {
	fetch   int
	paused  bool
	indexed int64
	added   []Source
	removed []string
	query   Request
}

func (r *robot) Find(_ context.Context, q Request) (*Results, error) {
	r.query = q
	if q.Query == "fail" {
		return nil, errors.New("disk on fire")
	}
	if q.Query == "nothing" {
		return &Results{}, nil
	}
	return &Results{
		Total: 45,
		Results: []Result{{
			Title: "Žąsys <b>", URL: "http://h.example/a%20b?x=1&y=2", Kind: "web", Host: "h.example", Online: true, Cached: true,
			Snippet: index.Snippet{"great ", "geese", " <script>"}, Date: time.Now().Add(-2 * time.Hour),
			Copies: []Copy{{URL: "javascript:alert(1)", Host: "evil"}},
		}},
		Facets: map[string][]index.Count{"lang": {{Value: "lt", Count: 30}, {Value: "en", Count: 15}}},
	}, nil
}

func (r *robot) Cached(_ context.Context, u string) (*Copied, error) {
	if u != "http://h.example/" {
		return nil, fs.ErrNotExist
	}
	return &Copied{URL: u, ContentType: "text/html", Body: []byte("<h1>copy</h1>"), Fetched: time.Now()}, nil
}

func (r *robot) Status(context.Context) (*Status, error) {
	return &Status{
		State: "running", Started: time.Now(), Now: time.Now(), Pages: 1234567, Indexed: r.indexed, Agents: AgentCount{FetchLimit: r.fetch}, Errors: map[string]int64{"dns": 3}, Failed: []Failure{{"dns", 3, "http://gone.example/a", "no such host", time.Now()}},
		Top: []Host{{Name: "waits.example", Robots: []RobotsWait{{"https://waits.example/robots.txt", "refused", 12, time.Now().Add(-3 * time.Minute), time.Now().Add(299 * time.Second)}}}}, Traps: []Trap{{"calendar", 42, "http://h.example/2099/01/"}}, Work: []cluster.Agent{{Name: "a1", Zone: "h.example"}, {Name: "a2", Zone: "shop.example"}}, Render: RenderStatus{Waiting: 1234, Hosts: []RenderWait{{"shop.example", 1234, "its first pages are in the browser"}}},
	}, nil
}

func (r *robot) SetAgents(_ context.Context, fetch, _ *int) error {
	if fetch != nil {
		r.fetch = *fetch
	}
	return nil
}

func (r *robot) AddSource(_ context.Context, s Source) error {
	r.added = append(r.added, s)
	return nil
}

func (r *robot) RemoveSource(_ context.Context, url string, keep bool) error {
	if url == "" {
		return errors.New("no source")
	}
	r.removed = append(r.removed, fmt.Sprint(url, " ", keep))
	return nil
}
func (r *robot) Pause(context.Context) error      { r.paused = true; return nil }
func (r *robot) Resume(context.Context) error     { r.paused = false; return nil }
func (r *robot) Stop(context.Context, bool) error { return nil }
func (r *robot) SetThrottle(_ context.Context, t, m []int) error {
	if len(m) != len(t)+1 {
		return errors.New("one more mode than thresholds")
	}
	return nil
}

func (r *robot) Why(_ context.Context, u string) (*Why, error) {
	if u != "http://known/" {
		return nil, ErrUnknown
	}
	return &Why{URL: u, Reason: "it has no scripts"}, nil
}
func (r *robot) Ready(context.Context) error { return nil }

// ownerToken is the owner's in newServer.
const ownerToken = "owner-of-the-data-directory"

var asOwner = []string{"Authorization", "Bearer " + ownerToken}

func newServer(t *testing.T, c Config) (*robot, *httptest.Server) {
	t.Helper()
	if c.Listen == "" {
		c.Listen = "127.0.0.1:0"
	}
	c.OwnerToken = ownerToken
	r := &robot{fetch: 4, indexed: 7654}
	s, err := New(c, r, r, r, slog.New(slog.NewTextHandler(io.Discard, nil)), nil)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(s.Handler())
	t.Cleanup(srv.Close)
	return r, srv
}

func do(t *testing.T, method, u, body string, header ...string) (int, string, http.Header) {
	t.Helper()
	req, err := http.NewRequest(method, u, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
		req.Header.Set(header[i], header[i+1])
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b), res.Header
}

func TestSearchPage(t *testing.T) {
	t.Parallel()
	r, srv := newServer(t, Config{})
	tests := []struct {
		query string
		code  int
		want  []string
		not   []string
	}{
		{"", 200, []string{`name="q"`, "exact words"}, []string{"results"}},
		{"?q=geese&kind=web&offset=10", 200, []string{"Žąsys &lt;b&gt;", "<mark>geese</mark> &lt;script&gt;", "45 results", "our copy", "lang%3Alt", `href="#"`, "h.example › a b"}, []string{"javascript:"}},
		{"?q=nothing", 200, []string{"Nothing found", "nothing%2A"}, []string{"last week", "Search all kinds", "without filters"}},
		{"?q=nothing&kind=web", 200, []string{"Search all kinds", "not only web pages"}, nil},
		{"?q=fail", 500, []string{"The search failed"}, []string{"disk on fire"}},
		{"?q=x&offset=-3", 400, []string{"offset=&#34;-3&#34; is not a number"}, nil},
		{"?q=x&limit=1000", 400, []string{"limit is at most"}, nil},
	}
	for _, tt := range tests {
		code, body, h := do(t, "GET", srv.URL+"/"+tt.query, "")
		if code != tt.code {
			t.Errorf("%s: %d", tt.query, code)
		}
		for _, w := range tt.want {
			if !strings.Contains(body, w) {
				t.Errorf("%s lacks %q", tt.query, w)
			}
		}
		for _, n := range tt.not {
			if strings.Contains(body, n) {
				t.Errorf("%s has %q", tt.query, n)
			}
		}
		if !strings.Contains(h.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: no content security policy", tt.query)
		}
	}
	if _, _, _ = do(t, "GET", srv.URL+"/?q=geese&kind=web&offset=10", ""); r.query.Kind != "web" || r.query.Offset != 10 || !r.query.Facets {
		t.Errorf("asked %+v", r.query)
	}
}

// An empty index is told of, not taken for a bad query.
func TestEmptyIndex(t *testing.T) {
	t.Parallel()
	r, srv := newServer(t, Config{})
	r.indexed = 0
	for _, q := range []string{"", "?q=nothing"} {
		if _, body, _ := do(t, "GET", srv.URL+"/"+q, ""); !strings.Contains(body, "Nothing is indexed yet") || strings.Contains(body, "Nothing found") {
			t.Errorf("%q: %s", q, body)
		}
	}
}

// What goes wrong is a page with a way back for people, a line for programs.
func TestProblems(t *testing.T) {
	t.Parallel()
	_, srv := newServer(t, Config{})
	for _, tt := range []struct {
		method, path, body string
		code               int
		want               []string
	}{
		{"GET", "/nowhere<b>", "", 404, []string{"There is nothing at /nowhere&lt;b&gt;", `href="/"`}},
		{"GET", "/lab", "", 404, []string{"lab.sweeps"}},
		{"GET", "/cached?url=http://other/", "", 404, []string{"There is no copy"}},
		{"POST", "/control", "do=agents&fetch=many", 400, []string{"&#34;many&#34; is not a number", `href="/status"`}},
		{"POST", "/control", "do=remove", 400, []string{"no source"}},
		{"POST", "/control", "do=dance", 400, []string{"unknown action"}},
	} {
		for _, browser := range []bool{true, false} {
			header := append([]string{"Content-Type", "application/x-www-form-urlencoded"}, asOwner...)
			if browser {
				header = append(header, "Accept", "text/html,*/*")
			}
			code, body, _ := do(t, tt.method, srv.URL+tt.path, tt.body, header...)
			if code != tt.code || strings.Contains(body, "<html") != browser {
				t.Errorf("%s: %d, browser %t: %s", tt.path, code, browser, body)
			}
			for _, w := range tt.want {
				if browser && !strings.Contains(body, w) {
					t.Errorf("%s lacks %q: %s", tt.path, w, body)
				}
			}
		}
	}
	if code, body, _ := do(t, "GET", srv.URL+"/status?did=pause", ""); code != 200 || !strings.Contains(body, "Paused: ") {
		t.Errorf("did: %d %s", code, body)
	}
}

func TestAPI(t *testing.T) {
	t.Parallel()
	r, srv := newServer(t, Config{})
	tests := []struct {
		method, path, body string
		code               int
		want               string
	}{
		{"GET", "/api/search?q=geese", "", 200, `"snippet":"great **geese** <script>"`},
		{"GET", "/api/search?q=nothing", "", 200, `"results":[]`},
		{"GET", "/api/search?q=x&limit=a", "", 400, `limit=\"a\" is not a number`},
		{"GET", "/api/status", "", 200, `"pages":1234567`},
		{"GET", "/api/agents", "", 200, `"zone":"h.example"`},
		{"PUT", "/api/agents", `{"fetch":9}`, 200, `"fetch_limit":9`},
		{"PUT", "/api/agents", `{"fetch":-1}`, 400, "-1 is not in 0 to"},
		{"PUT", "/api/agents", `{"fech":1}`, 400, `unknown field \"fech\"`},
		{"PUT", "/api/agents", `{"fetch":1}{}`, 400, "something follows"},
		{"PUT", "/api/throttle", `{"thresholds":[3],"modes":[1,4]}`, 200, `"modes":[1,4]`},
		{"PUT", "/api/throttle", `{"thresholds":[3],"modes":[1]}`, 400, "one more mode"},
		{"POST", "/api/sources", `{"url":"http://x.example/","scope":"host"}`, 201, "x.example"},
		{"POST", "/api/sources", `{"url":"x"}`, 400, "has no scheme"},
		{"DELETE", "/api/sources?url=http://x.example/&keep=true", "", 200, `"kept":true`},
		{"DELETE", "/api/sources?url=http://x.example/&keep=some", "", 400, "neither true nor false"},
		{"DELETE", "/api/sources", "", 400, "no source"},
		{"POST", "/api/pause", "", 200, `"ok":true`},
		{"GET", "/healthz", "", 200, "ok"},
		{"GET", "/readyz", "", 200, "ready"},
		{"GET", "/cached?url=http://h.example/", "", 200, "<h1>copy</h1>"},
		{"GET", "/cached?url=http://other/", "", 404, "no copy"},
		{"GET", "/nowhere", "", 404, ""},
	}
	for _, tt := range tests {
		code, body, _ := do(t, tt.method, srv.URL+tt.path, tt.body, asOwner...)
		if code != tt.code || !strings.Contains(body, tt.want) {
			t.Errorf("%s %s %s: %d %s", tt.method, tt.path, tt.body, code, body)
		}
	}
	if r.fetch != 9 || !r.paused || len(r.added) != 1 {
		t.Errorf("the robot was told %+v", r)
	}
}

// The description names exactly the API's paths, and is an OpenAPI document.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	_, srv := newServer(t, Config{})
	_, body, _ := do(t, "GET", srv.URL+"/api/openapi.json", "")
	var doc struct {
		OpenAPI string
		Paths   map[string]map[string]any
	}
	if err := json.Unmarshal([]byte(body), &doc); err != nil || !strings.HasPrefix(doc.OpenAPI, "3.") {
		t.Fatalf("%v in %.100s", err, body)
	}
	for path, ops := range doc.Paths {
		if slices.Contains([]string{"/indexnow", "/api/signals", "/metrics", "/api/stop"}, path) {
			continue // mounted by serve, or ends it
		}
		for method := range ops {
			if code, _, _ := do(t, strings.ToUpper(method), srv.URL+path, ""); code == 404 || code == 405 {
				t.Errorf("%s %s is described but answers %d", method, path, code)
			}
		}
	}
}

func TestWhy(t *testing.T) {
	t.Parallel()
	_, srv := newServer(t, Config{})
	for q, want := range map[string]int{"": 400, "?url=http://known/": 200, "?url=http://other/": 404} {
		if code, body, _ := do(t, "GET", srv.URL+"/api/why"+q, ""); code != want || code == 200 && !strings.Contains(body, "no scripts") {
			t.Errorf("%s: %d %s", q, code, body)
		}
	}
}

func TestStatusPageAndEvents(t *testing.T) {
	t.Parallel()
	r, srv := newServer(t, Config{})
	_, body, _ := do(t, "GET", srv.URL+"/status", "", asOwner...)
	for _, want := range []string{
		"1\u202f234\u202f567", "h.example", "dns", "calendar", "http://h.example/2099/01/", `value="4"`, "<noscript>", "http://gone.example/a", "no such host",
		"12 pages wait for https://waits.example/robots.txt: refused, first 3 min ago; next try in 5 min", "Pages that wait for the browser", "<td>shop.example", "<td>its first pages are in the browser",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the status page lacks %q", want)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, "GET", srv.URL+"/events", nil)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	buf := make([]byte, 6)
	if _, err := io.ReadFull(res.Body, buf); err != nil || string(buf) != "data: " {
		t.Errorf("events begin with %q, %v", buf, err)
	}
	form := url.Values{"do": {"agents"}, "fetch": {"12"}}.Encode()
	if code, _, _ := do(t, "POST", srv.URL+"/control", form, append(asOwner, "Content-Type", "application/x-www-form-urlencoded")...); code != 303 {
		t.Errorf("control: %d", code)
	}
	for action, want := range map[string]string{"remove": "http://h/ false", "leave": "http://h/ true"} {
		form := url.Values{"do": {action}, "url": {"http://h/"}}.Encode()
		if code, _, h := do(t, "POST", srv.URL+"/control", form, append(asOwner, "Content-Type", "application/x-www-form-urlencoded")...); code != 303 || h.Get("Location") != "/status?did="+action || !slices.Contains(r.removed, want) {
			t.Errorf("%s: %d %s, removed %v", action, code, h.Get("Location"), r.removed)
		}
	}
	if code, body, _ := do(t, "POST", srv.URL+"/control", "do=agents&fetch=many", append(asOwner, "Content-Type", "application/x-www-form-urlencoded")...); code != 400 {
		t.Errorf("control with a word: %d %s", code, body)
	}
}

func TestAuthentication(t *testing.T) {
	t.Parallel()
	hash, err := bcrypt.GenerateFromPassword([]byte("open sesame"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	_, srv := newServer(t, Config{Listen: "0.0.0.0:0", Password: string(hash), Tokens: []string{"t0ken-of-a-program"}, Header: "X-User", Proxies: []string{"10.0.0.0/8"}})
	form := []string{"Content-Type", "application/x-www-form-urlencoded"}
	tests := []struct {
		name, method, path, body string
		header                   []string
		code                     int
	}{
		{"searching is open", "GET", "/?q=x", "", nil, 200},
		{"status is not", "GET", "/status", "", nil, 303},
		{"nor the API", "GET", "/api/status", "", nil, 401},
		{"a token opens it", "GET", "/api/status", "", []string{"Authorization", "Bearer t0ken-of-a-program"}, 200},
		{"a wrong one does not", "GET", "/api/status", "", []string{"Authorization", "Bearer t0keN-of-a-program"}, 401},
		{"a header from an untrusted address neither", "GET", "/api/status", "", []string{"X-User", "root"}, 401},
		{"a forged cookie neither", "GET", "/api/status", "", []string{"Cookie", sessionCookie + "=9999999999.AAAA"}, 401},
		{"a wrong password", "POST", "/login", "password=x", form, 401},
		{"health is open", "GET", "/healthz", "", nil, 200},
	}
	for _, tt := range tests {
		if code, body, _ := do(t, tt.method, srv.URL+tt.path, tt.body, tt.header...); code != tt.code {
			t.Errorf("%s: %d %.80s", tt.name, code, body)
		}
	}
	code, _, h := do(t, "POST", srv.URL+"/login", "password=open+sesame&to=//evil.example", form...)
	if code != 303 || h.Get("Location") != "/status" {
		t.Fatalf("login: %d to %s", code, h.Get("Location"))
	}
	cookie, _, _ := strings.Cut(h.Get("Set-Cookie"), ";")
	if code, _, _ := do(t, "GET", srv.URL+"/status", "", "Cookie", cookie); code != 200 {
		t.Errorf("after login: %d", code)
	}
	if code, _, _ := do(t, "POST", srv.URL+"/api/pause", "", "Cookie", cookie, "Sec-Fetch-Site", "cross-site"); code != 403 {
		t.Errorf("a foreign page pauses: %d", code)
	}
}

func TestServerWithoutLogin(t *testing.T) {
	t.Parallel()
	_, srv := newServer(t, Config{})
	if code, _, _ := do(t, "GET", srv.URL+"/api/status", "", "Host", "evil.example"); code != 421 {
		t.Errorf("a foreign host name: %d", code)
	}
	if _, err := New(Config{Listen: "0.0.0.0:80"}, nil, nil, nil, nil, nil); err == nil {
		t.Error("an open server without login was made")
	}
	if _, err := New(Config{Listen: "0.0.0.0:80", Password: "plain"}, nil, nil, nil, nil, nil); err == nil {
		t.Error("a plain password was taken for a hash")
	}
}

func TestRateLimit(t *testing.T) {
	t.Parallel()
	_, srv := newServer(t, Config{Rate: 1})
	refused := 0
	for range 30 {
		if code, _, _ := do(t, "GET", srv.URL+"/api/search?q=x", ""); code == 429 {
			refused++
		}
	}
	if refused < 15 || refused > 21 {
		t.Errorf("%d of 30 searches refused, want about 20", refused)
	}
}
