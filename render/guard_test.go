package render

import (
	"bufio"
	"bytes"
	"context"
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

func newTestGuard(t *testing.T, c fetch.Config, upstream string, peer net.IP) (*guard, *http.Client) {
	t.Helper()
	client, err := fetch.New(c)
	if err != nil {
		t.Fatal(err)
	}
	g, err := newGuard(client, upstream, "127.0.0.1:0", peer)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.close(); client.Close() })
	through := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: g.address()})}
	t.Cleanup(through.CloseIdleConnections)
	return g, &http.Client{Transport: through, Timeout: 10 * time.Second}
}

var loopback = net.IPv4(127, 0, 0, 1)

func TestGuard(t *testing.T) {
	t.Parallel()
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "plain ", r.Header.Get("Proxy-Connection"))
	}))
	t.Cleanup(plain.Close)
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "secure") }))
	t.Cleanup(secure.Close)
	for _, tt := range []struct {
		name    string
		private bool
		peer    net.IP
		url     string
		want    string
	}{
		{"plain", true, loopback, plain.URL, "200 plain "},
		{"tls", true, loopback, secure.URL, "200 secure"},
		{"private", false, loopback, plain.URL, "403"},
		{"private tls", false, loopback, secure.URL, "Forbidden"},
		{"stranger", true, net.IPv4(192, 0, 2, 1), plain.URL, "403"},
		{"nobody there", true, loopback, "http://127.0.0.1:1/", "502"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g, client := newTestGuard(t, fetch.Config{AllowPrivate: tt.private}, "", tt.peer)
			client.Transport.(*http.Transport).TLSClientConfig = secure.Client().Transport.(*http.Transport).TLSClientConfig
			got := ask(client, tt.url)
			if !strings.Contains(got, tt.want) {
				t.Errorf("%s", got)
			}
			if !tt.private && g.refused.Load() != 1 {
				t.Errorf("%d refusals counted", g.refused.Load())
			}
		})
	}
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
	inner, _ := newTestGuard(t, fetch.Config{AllowPrivate: true}, "", loopback)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { used.Add(1); inner.ServeHTTP(w, r) }))
	t.Cleanup(proxy.Close)
	_, client := newTestGuard(t, fetch.Config{AllowPrivate: true}, proxy.URL, loopback)
	client.Transport.(*http.Transport).TLSClientConfig = secure.Client().Transport.(*http.Transport).TLSClientConfig
	if got := ask(client, secure.URL); got != "200 secure" || used.Load() != 1 {
		t.Errorf("%s, proxy used %d times", got, used.Load())
	}
	if _, err := newGuard(inner.client, "nonsense", "127.0.0.1:0", loopback); err == nil {
		t.Error("a proxy that is no URL is taken")
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
