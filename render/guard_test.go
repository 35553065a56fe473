package render

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/freshet/freshet/fetch"
)

// newTestGuard returns a guard and a client that asks through it, with the
// credentials of a tab whose page may ask for the addresses.
func newTestGuard(t *testing.T, c fetch.Config, permitted ...string) (*guard, *http.Client) {
	t.Helper()
	client, err := fetch.New(c)
	if err != nil {
		t.Fatal(err)
	}
	g, err := newGuard(client, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.closeGuard(); client.Close() })
	tab := g.registerTab()
	limits := Config{MaxBytes: 1 << 20}.withRenderDefaults()
	v := newVisit(t.Context(), &Page{URL: parse(t, "http://own.test/")}, &limits, nil)
	for _, u := range permitted {
		v.permitForward(u, parse(t, u))
	}
	tab.setVisit(v)
	through := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: g.proxyAddress(), User: url.UserPassword(tab.name, tab.password)})}
	t.Cleanup(through.CloseIdleConnections)
	return g, &http.Client{Transport: through, Timeout: 10 * time.Second}
}

// The guard forwards what the page's visit has permitted, nothing to private
// addresses, and no more bytes than a page may have.
func TestGuard(t *testing.T) {
	t.Parallel()
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/endless" {
			for r.Context().Err() == nil {
				_, _ = w.Write(make([]byte, 64<<10))
			}
		}
		fmt.Fprint(w, "plain ", r.Header.Get("Proxy-Connection"), r.Header.Get("Proxy-Authorization"))
	}))
	t.Cleanup(plain.Close)
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/endless" {
			for r.Context().Err() == nil {
				_, _ = w.Write(make([]byte, 64<<10))
			}
		}
		fmt.Fprint(w, "secure")
	}))
	t.Cleanup(secure.Close)
	for _, tt := range []struct {
		name      string
		private   bool
		permitted string
		url       string
		want      string
		blocked   int64
	}{
		{"plain", true, plain.URL + "/", plain.URL + "/", "200 plain ", 0},
		{"tls", true, secure.URL + "/", secure.URL + "/", "200 secure", 0},
		{"private", false, plain.URL + "/", plain.URL + "/", "403", 0},
		{"private tls", false, secure.URL + "/", secure.URL + "/", "Forbidden", 0},
		{"nobody there", true, "http://127.0.0.1:1/", "http://127.0.0.1:1/", "502", 0},
		{"another address", true, plain.URL + "/", plain.URL + "/other", "403", 1},
		{"another host by tls", true, plain.URL + "/", secure.URL + "/", "Forbidden", 1},
		{"endless", true, plain.URL + "/endless", plain.URL + "/endless", "EOF", 0},
		{"endless by tls", true, secure.URL + "/", secure.URL + "/endless", "EOF", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g, client := newTestGuard(t, fetch.Config{AllowPrivate: tt.private}, tt.permitted)
			client.Transport.(*http.Transport).TLSClientConfig = secure.Client().Transport.(*http.Transport).TLSClientConfig
			if got := ask(client, tt.url); !strings.Contains(got, tt.want) {
				t.Errorf("got %.100q, want %q", got, tt.want)
			}
			if !tt.private && g.refused.Load() != 1 {
				t.Errorf("%d refusals counted, want 1", g.refused.Load())
			}
			if n := g.blocked.Load(); n != tt.blocked {
				t.Errorf("%d requests blocked, want %d", n, tt.blocked)
			}
		})
	}
}

// Nobody but a tab of our browser is served, and no tab between two pages.
func TestGuardCredentials(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(server.Close)
	g, client := newTestGuard(t, fetch.Config{AllowPrivate: true}, server.URL+"/")
	user := func(name, password string) *url.Userinfo { return url.UserPassword(name, password) }
	var tab *tabTraffic
	for _, tab = range g.tabs {
	}
	for _, tt := range []struct {
		name string
		user *url.Userinfo
		want string
	}{
		{"none", nil, "407"},
		{"another name", user("nobody", tab.password), "407"},
		{"another password", user(tab.name, "x"), "407"},
		{"no password", user(tab.name, ""), "407"},
		{"its own", user(tab.name, tab.password), "200"},
	} {
		for _, address := range []string{server.URL + "/", "https://" + strings.TrimPrefix(server.URL, "http://") + "/"} {
			through := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: g.proxyAddress(), User: tt.user})}
			got := ask(&http.Client{Transport: through}, address)
			through.CloseIdleConnections()
			want := tt.want
			if strings.HasPrefix(address, "https") {
				want = map[string]string{"407": "Proxy Authentication Required", "200": "Forbidden"}[want] // a tunnel was not permitted
			}
			if !strings.Contains(got, want) {
				t.Errorf("%s, %.5s: got %q, want %q", tt.name, address, got, want)
			}
		}
	}
	tab.setVisit(nil)
	if got := ask(client, server.URL+"/"); !strings.HasPrefix(got, "403") {
		t.Errorf("between pages: %q, want 403", got)
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("the server was asked %d times, want once", n)
	}
}

// What a page still loads or holds open is cut off when it is done.
func TestGuardEnds(t *testing.T) {
	t.Parallel()
	opened, closed := make(chan bool, 2), make(chan bool, 2)
	wait := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		opened <- true
		<-r.Context().Done()
		closed <- true
	})
	plain, secure := httptest.NewServer(wait), httptest.NewTLSServer(wait)
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	g, client := newTestGuard(t, fetch.Config{AllowPrivate: true})
	client.Transport.(*http.Transport).TLSClientConfig = secure.Client().Transport.(*http.Transport).TLSClientConfig
	limits := Config{}.withRenderDefaults()
	ctx, end := context.WithCancel(t.Context())
	v := newVisit(ctx, &Page{URL: parse(t, "http://own.test/")}, &limits, nil)
	for _, tab := range g.tabs {
		tab.setVisit(v)
	}
	for _, u := range []string{plain.URL + "/", secure.URL + "/"} {
		v.permitForward(u, parse(t, u))
		go func() { _ = ask(client, u) }() // ends with the visit
		<-opened
	}
	end()
	<-closed
	<-closed
}

func ask(client *http.Client, u string) string {
	res, err := client.Get(u)
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(res.StatusCode, " ", string(b))
}

// The robot's own forward proxy is used for the browser, too.
func TestGuardUpstream(t *testing.T) {
	t.Parallel()
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "secure") }))
	t.Cleanup(secure.Close)
	var used atomic.Int64
	inner, err := fetch.New(fetch.Config{AllowPrivate: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(inner.Close)
	other, err := newGuard(inner, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.closeGuard)
	tab := other.registerTab()
	limits := Config{}.withRenderDefaults()
	v := newVisit(t.Context(), &Page{URL: parse(t, "http://own.test/")}, &limits, nil)
	v.permitForward(secure.URL, parse(t, secure.URL))
	tab.setVisit(v)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		used.Add(1)
		r.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(tab.name+":"+tab.password)))
		other.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	at := parse(t, proxy.URL)
	_, client := newTestGuard(t, fetch.Config{AllowPrivate: true, Proxy: func(*url.URL) (*url.URL, error) { return &url.URL{Scheme: "http", Host: at.Host()}, nil }}, secure.URL)
	client.Transport.(*http.Transport).TLSClientConfig = secure.Client().Transport.(*http.Transport).TLSClientConfig
	if got := ask(client, secure.URL); got != "200 secure" || used.Load() != 1 {
		t.Errorf("%s, proxy used %d times", got, used.Load())
	}
}

// answered is a connection that says what the fuzzer wants.
type answered struct {
	net.Conn
	io.Reader
}

func (a answered) Read(b []byte) (int, error) { return a.Reader.Read(b) }

func FuzzReadConnected(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\n\r\nrest"))
	f.Add([]byte("HTTP/1.1 407 no\r\n\r\n"))
	f.Add([]byte("\r\n\r\n"))
	f.Add(bytes.Repeat([]byte("x"), 20<<10))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		if err := readConnected(answered{Reader: r}); err == nil {
			if head, _, _ := bytes.Cut(b, []byte("\r\n\r\n")); string(head[9:12]) != "200" || r.Len() != len(b)-len(head)-4 {
				t.Errorf("%q taken, %d bytes left", head, r.Len())
			}
		}
	})
}

// chromiumAt starts a Chromium that others can use, or skips the test, and returns
// its debugging address.
func chromiumAt(t *testing.T) (address string, browser *os.Process) {
	t.Helper()
	newPool(t, Config{}) // skips without Chromium
	path, err := Find("")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--remote-debugging-port=0", "--user-data-dir="+t.TempDir(), "about:blank")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); _ = cmd.Wait() })
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		if _, a, ok := strings.Cut(lines.Text(), "DevTools listening on "); ok {
			address = a
			break
		}
	}
	go func() { _, _ = io.Copy(io.Discard, stderr) }() // ends with the browser
	return address, cmd.Process
}

// A Chromium that runs already is used by its debugging address; it is not
// ended with the pool.
func TestRemote(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	address, browser := chromiumAt(t)
	for range 2 {
		p := newPool(t, Config{Remote: address, Tabs: 2})
		d, err := p.Render(context.Background(), s.page(t, "/fetch"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(d.HTML), "to /a") {
			t.Errorf("%s", d.HTML)
		}
		p.Close()
		if err := browser.Signal(syscall.Signal(0)); err != nil {
			t.Errorf("the browser ended with the pool: %v", err)
		}
	}
	guarded, err := fetch.New(fetch.Config{})
	if err != nil {
		t.Fatal(err)
	}
	p := newPool(t, Config{Remote: address, Client: guarded, Tabs: 1})
	before := s.count("/list")
	page := s.page(t, "/fetch")
	if _, err := p.Render(t.Context(), page); err != nil {
		t.Fatal(err)
	}
	if s.count("/list") != before || p.Stats().Private == 0 {
		t.Error("a private address was reached through the remote browser")
	}
}
