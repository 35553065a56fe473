package crawl

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/freshet/freshet/crawl/politeness"
	"github.com/freshet/freshet/crawl/trap"
	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/store"
)

// hostile is a site on which everything is wrong that can be, but for time.
func hostile(t *testing.T) *site {
	bomb := gzipped(t, 64<<20)
	special := map[string]http.HandlerFunc{
		"/bomb": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb)
		},
		"/endless": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			for r.Context().Err() == nil {
				if _, err := w.Write([]byte(strings.Repeat("<p>more", 1000))); err != nil {
					return
				}
			}
		},
		"/headers": func(w http.ResponseWriter, _ *http.Request) {
			for i := range 20_000 {
				w.Header().Set("X-Flood-"+strconv.Itoa(i), strings.Repeat("y", 60))
			}
		},
		"/self": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/self", http.StatusFound) },
		"/ping": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/pong", http.StatusFound) },
		"/pong": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/ping", http.StatusFound) },
		"/cut":  cut,
		"/lies": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			fmt.Fprint(w, "no gzip")
		},
		"/image": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "image/png")
			fmt.Fprint(w, link("/from-image"))
		},
		"/garbled": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprint(w, "<title>caf\xe9</title>"+link("/after-garbled"))
		},
		"/misnamed": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "\x89PNG\r\n\x1a\n\x00\x00")
		},
		"/chain": func(w http.ResponseWriter, r *http.Request) {
			n, _ := strconv.Atoi(r.URL.Query().Get("n"))
			http.Redirect(w, r, fmt.Sprintf("/chain?n=%d", n+1), http.StatusFound)
		},
	}
	var many strings.Builder
	for i := range 100_100 {
		fmt.Fprintf(&many, "<a href=//e/%d>x</a>", i)
	}
	pages := map[string]string{
		"/":        link("/bomb", "/endless", "/headers", "/self", "/ping", "/cut", "/lies", "/image", "/chain?n=0", "/many", "/deep", "/charset", "/garbled", "/misnamed", "/binary", "/good"),
		"/many":    many.String(),
		"/deep":    strings.Repeat("<div>", 50_000) + link("/below"),
		"/below":   "deep",
		"/charset": "<meta charset=nonsense><title>\xff\xfe\x00caf\xe9</title>" + link("/after-charset"),
		"/binary":  strings.Repeat("\x00\x01\xff<a href=", 1000), "/after-charset": "x", "/after-garbled": "y", "/good": "good",
	}
	return newSite(t, pages, special)
}

func gzipped(t *testing.T, n int) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(make([]byte, n)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// cut promises more than it sends.
func cut(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 1000\r\n\r\n<p>half")
}

// Each kind of malice costs a bounded time and memory, is counted, and the
// pages beside it are fetched.
func TestHostileSite(t *testing.T) {
	t.Parallel()
	s := hostile(t)
	r := newRig(t)
	client, err := fetch.New(fetch.Config{UserAgent: "freshet-test", AllowPrivate: true, Timeout: 2 * time.Minute, Patience: 2 * time.Minute, MaxBody: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	r.config.Fetch = client
	robot := r.crawl(t, s.URL+"/")
	for path, want := range map[string]store.State{
		"/bomb": store.Failed, "/headers": store.Failed, "/cut": store.Failed, "/lies": store.Failed,
		"/self": store.Redirect, "/ping": store.Redirect, "/pong": store.Redirect, "/endless": store.OK, "/many": store.OK, "/deep": store.OK,
		"/below": store.OK, "/charset": store.OK, "/after-charset": store.OK, "/garbled": store.OK, "/after-garbled": store.OK, "/misnamed": store.OK, "/binary": store.OK, "/image": store.OK, "/good": store.OK,
	} {
		if p := r.page(t, s.URL+path); p.State != want {
			t.Errorf("%s is %s (%s), want %s", path, p.State, p.Error, want)
		}
	}
	if p := r.page(t, s.URL+"/endless"); p.Bytes != 4<<20 {
		t.Errorf("/endless: %d bytes kept", p.Bytes)
	}
	for path, most := range map[string]int{"/self": 1, "/ping": 1, "/pong": 1, "/good": 1, "/bomb": politeness.MaxRetries, "/from-image": 0, "/chain?n=50": 0} {
		if n := s.count(path); n > most {
			t.Errorf("%s was asked for %d times, at most %d", path, n, most)
		}
	}
	for _, kind := range []fetch.Kind{fetch.Bomb, fetch.Encoding, fetch.Header} {
		if st := robot.Status(); st.Errors[string(kind)] == 0 {
			t.Errorf("no error of kind %s: %v", kind, st.Errors)
		}
	}
	for kind, path := range map[trap.Kind]string{
		"decompression bomb": "/bomb", "endless body": "/endless", "header flood": "/headers", "false encoding": "/lies",
		"redirect chain": "/chain?n=10", "link flood": "/many", "deep nesting": "/", "bad charset": "/",
	} {
		if tr := trapOf(robot, kind); tr.Count == 0 || !strings.HasPrefix(tr.Example, s.URL+path) {
			t.Errorf("%s: %+v", kind, tr)
		}
	}
	// A page that points at itself and two at each other; a picture that is a page and three pages that are bytes; an encoding that is none and one
	// that is another; elements and tags that nobody closes.
	for kind, count := range map[trap.Kind]int64{"redirect loop": 2, "wrong content type": 4, "bad charset": 2, "deep nesting": 2} {
		if tr := trapOf(robot, kind); tr.Count != count {
			t.Errorf("%s: %+v, want %d", kind, tr, count)
		}
	}
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	if m.HeapAlloc > 300<<20 {
		t.Errorf("%d MB of heap in use", m.HeapAlloc>>20)
	}
}

func trapOf(r *Robot, kind trap.Kind) Trap {
	for _, tr := range r.Status().Traps {
		if tr.Kind == kind {
			return tr
		}
	}
	return Trap{}
}

// Answers that never end, said or unsaid, cost the client's time limit a few
// times, and no more.
func TestSlowSite(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"/": link("/drip", "/silent")}, map[string]http.HandlerFunc{
		"/drip": func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				_, _ = w.Write([]byte("x"))
				w.(http.Flusher).Flush()
				time.Sleep(50 * time.Millisecond)
			}
		},
		"/silent": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	})
	r := newRig(t)
	client, err := fetch.New(fetch.Config{UserAgent: "freshet-test", AllowPrivate: true, Timeout: 3 * time.Second, Patience: 300 * time.Millisecond, MaxBody: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	r.config.Fetch = client
	robot := r.crawl(t, s.URL+"/")
	for _, path := range []string{"/drip", "/silent"} {
		if p := r.page(t, s.URL+path); p.State != store.Failed {
			t.Errorf("%s is %s (%s), want %s", path, p.State, p.Error, store.Failed)
		}
		if n := s.count(path); n > politeness.MaxRetries {
			t.Errorf("%s was asked for %d times, at most %d", path, n, politeness.MaxRetries)
		}
	}
	if tr := trapOf(robot, "slow drip"); tr.Count == 0 || tr.Example != s.URL+"/drip" {
		t.Errorf("slow drip: %+v", tr)
	}
	if tr := trapOf(robot, "silence"); tr.Count == 0 { // on a busy machine perhaps of the front page
		t.Errorf("silence: %+v", tr)
	}
	for _, kind := range []fetch.Kind{fetch.Timeout, fetch.Slow} {
		if st := robot.Status(); st.Errors[string(kind)] == 0 {
			t.Errorf("no error of kind %s: %v", kind, st.Errors)
		}
	}
}

// Without leave, no private address is contacted: not by its number, not by a
// name that resolves to it, not through a redirect.
func TestPrivateAddresses(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"/": "secret"}, nil)
	r := newRig(t)
	client, err := fetch.New(fetch.Config{UserAgent: "freshet-test", Timeout: 2 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	r.config.Fetch = client
	_, port, err := net.SplitHostPort(strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	seeds := []string{s.URL + "/", "http://localhost:" + port + "/", "http://[::ffff:127.0.0.1]:" + port + "/", "http://10.0.0.1:" + port + "/"}
	robot := r.crawl(t, seeds...)
	if s.count("/") != 0 || s.count("/robots.txt") != 0 {
		t.Error("a private address was contacted")
	}
	if tr := trapOf(robot, "private address"); robot.Status().Errors[string(fetch.Private)] == 0 || tr.Count == 0 || tr.Example == "" {
		t.Errorf("errors %v, trap %+v", robot.Status().Errors, tr)
	}
}

// A certificate nobody vouches for is an error of its own kind.
func TestSelfSigned(t *testing.T) {
	t.Parallel()
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	r := newRig(t)
	robot := r.crawl(t, s.URL+"/")
	if tr := trapOf(robot, "untrusted certificate"); robot.Status().Errors[string(fetch.TLS)] == 0 || tr.Count == 0 || tr.Example == "" {
		t.Errorf("errors %v, trap %+v", robot.Status().Errors, tr)
	}
}
