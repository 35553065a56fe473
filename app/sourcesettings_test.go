package app

import (
	"context"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/freshet/freshet/config"
	"github.com/freshet/freshet/crawl"
	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/freshness"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// visitedSite is a site of linked pages that remembers what it was asked.
type visitedSite struct {
	*httptest.Server
	mu       sync.Mutex
	requests []*http.Request
}

// newVisitedSite serves pages of some bytes, each with links to all others. /away
// redirects to another address if that is not "".
func newVisitedSite(t *testing.T, pages, size int, away string) *visitedSite {
	t.Helper()
	s := &visitedSite{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests = append(s.requests, r.Clone(r.Context()))
		s.mu.Unlock()
		switch r.URL.Path {
		case "/robots.txt":
			http.NotFound(w, r)
			return
		case "/away":
			http.Redirect(w, r, away, http.StatusFound)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "<title>%s</title>", r.URL.Path)
		for i := range pages {
			fmt.Fprintf(w, `<a href="/p%d">%d</a> `, i, i)
		}
		if away != "" {
			fmt.Fprint(w, `<a href="/away">away</a>`)
		}
		fmt.Fprint(w, strings.Repeat("x", size))
	}))
	t.Cleanup(func() { s.Close() })
	return s
}

// asked returns the paths that were asked for, robots.txt left out.
func (s *visitedSite) asked() (paths []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.requests {
		if r.URL.Path != "/robots.txt" {
			paths = append(paths, r.URL.Path)
		}
	}
	return paths
}

// crawlOnce crawls by a configuration and returns what came of it.
func crawlOnce(t *testing.T, c *config.Config, dir string) *CrawlReport {
	t.Helper()
	c.Render.Mode = "off"
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	n, err := Open(c, Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	report, err := n.Crawl(limitedTime(t), CrawlOptions{NoIndex: true})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// Headers, login and user agent of a source are sent to its origin with every request,
// and neither to other sources nor to where it redirects.
func TestSourceIdentity(t *testing.T) {
	t.Parallel()
	other := newVisitedSite(t, 1, 0, "")
	other.Start()
	own := newVisitedSite(t, 1, 0, other.URL+"/target")
	own.Start()
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := config.Default()
	c.Sources = []config.Source{
		{URL: own.URL + "/", AllowPrivate: true, UserAgent: "guest/1", Headers: config.Headers{"X-Team": "search"}, User: "robot", PasswordFile: password},
		{URL: own.URL + "/p0", AllowPrivate: true, UserAgent: "second/1", Headers: config.Headers{"X-Team": "second", "X-More": "1"}},
		{URL: other.URL + "/", AllowPrivate: true},
	}
	crawlOnce(t, c, t.TempDir())
	for _, r := range own.requests {
		user, pw, _ := r.BasicAuth()
		if got, want := []string{r.UserAgent(), r.Header.Get("X-Team"), r.Header.Get("X-More"), user, pw}, []string{"guest/1", "search", "1", "robot", "secret"}; !slices.Equal(got, want) {
			t.Errorf("own %s: got %q, want %q", r.URL.Path, got, want)
		}
	}
	if !slices.Contains(other.asked(), "/target") || !slices.Contains(own.asked(), "/away") {
		t.Errorf("the redirect was not followed: asked %v and %v", own.asked(), other.asked())
	}
	for _, r := range other.requests {
		if r.Header.Get("X-Team")+r.Header.Get("Authorization") != "" || r.UserAgent() == "guest/1" {
			t.Errorf("other %s: got header %v, want nothing of the other source", r.URL.Path, r.Header)
		}
	}
}

// The limits of a source bound its hosts, the lowest of several sources; other hosts have
// those of the configuration.
func TestSourceLimits(t *testing.T) {
	t.Parallel()
	limited, free := newVisitedSite(t, 20, 3000, ""), newVisitedSite(t, 20, 3000, "")
	limited.Start()
	free.Start()
	for _, tt := range []struct {
		name    string
		sources []config.Source
		want    int // pages asked for of the limited host
	}{
		{"pages", []config.Source{{MaxPages: 5}, {MaxPages: 9}}, 5},
		{"budget", []config.Source{{BudgetBytes: 10_000}}, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			limited.mu.Lock()
			limited.requests = nil
			limited.mu.Unlock()
			c := config.Default()
			for i := range tt.sources {
				tt.sources[i].URL, tt.sources[i].AllowPrivate = limited.URL+"/", true
			}
			c.Sources = append(tt.sources, config.Source{URL: free.URL + "/", AllowPrivate: true})
			c.Render.Mode = "off"
			n, err := Open(c, Options{Dir: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			abort := make(chan struct{})
			done := sync.OnceFunc(func() { close(abort) })
			report, err := n.Crawl(limitedTime(t), CrawlOptions{NoIndex: true, Abort: abort, Progress: func(_ crawl.Status, st store.Stats) {
				if st.States[store.OK] >= int64(tt.want+21) { // a host that used up its day keeps a crawl waiting
					done()
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
			if got := len(limited.asked()); got != tt.want {
				t.Errorf("asked for %d pages of the limited host, want %d", got, tt.want)
			}
			if got := report.Store.States[store.OK]; got < 21 {
				t.Errorf("%d pages in all, want at least the 21 of the free host", got)
			}
		})
	}
}

// Bodies of a source's hosts are cut at its own bound.
func TestSourceMaxBody(t *testing.T) {
	t.Parallel()
	site := newVisitedSite(t, 0, 5000, "")
	site.Start()
	c := config.Default()
	c.Sources = []config.Source{{URL: site.URL + "/", AllowPrivate: true, MaxBody: 1000}}
	dir := t.TempDir()
	crawlOnce(t, c, dir)
	p, err := OpenParts(t.Context(), dir, c, false)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	page := onlyPage(t, p)
	x, err := p.Body(page.Body)
	if err != nil {
		t.Fatal(err)
	}
	if len(x.Body) != 1000 {
		t.Errorf("%d bytes were kept, want 1000", len(x.Body))
	}
}

func onlyPage(t *testing.T, p *Parts) (page store.Page) {
	t.Helper()
	n := 0
	err := p.Store.Pages(t.Context(), func(found *store.Page) error {
		page, n = *found, n+1
		return nil
	})
	if err != nil || n != 1 {
		t.Fatalf("%d pages, error %v, want one page", n, err)
	}
	return page
}

// Outside the hours of a source its host is not asked for anything, robots.txt included;
// within them it is.
func TestSourceHours(t *testing.T) {
	t.Parallel()
	now := time.Now().UTC()
	open := fmt.Sprintf("%s-%s", now.Add(-time.Hour).Format("15:04"), now.Add(2*time.Hour).Format("15:04"))
	closed := fmt.Sprintf("%s-%s", now.Add(3*time.Hour).Format("15:04"), now.Add(4*time.Hour).Format("15:04"))
	shut, visited := newVisitedSite(t, 3, 0, ""), newVisitedSite(t, 3, 0, "")
	shut.Start()
	visited.Start()
	c := config.Default()
	c.Render.Mode = "off"
	c.Sources = []config.Source{
		{URL: shut.URL + "/", AllowPrivate: true, Hours: open, TimeZone: "UTC"},
		{URL: shut.URL + "/p0", AllowPrivate: true, Hours: closed, TimeZone: "UTC"},
		{URL: visited.URL + "/", AllowPrivate: true, Hours: open, TimeZone: "UTC"},
	}
	n, err := Open(c, Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	abort := make(chan struct{})
	done := sync.OnceFunc(func() { close(abort) })
	_, err = n.Crawl(limitedTime(t), CrawlOptions{NoIndex: true, Abort: abort, Progress: func(_ crawl.Status, st store.Stats) {
		if st.States[store.OK] >= 4 {
			done()
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if got := len(visited.asked()); got != 4 {
		t.Errorf("%d pages of the open host, want 4", got)
	}
	if got := len(shut.requests); got != 0 {
		t.Errorf("%d requests to the closed host, want 0", got)
	}
}

// A page is planned by the policy of the source that names its host.
func TestSourcePolicy(t *testing.T) {
	t.Parallel()
	c := config.Default()
	c.Crawl.Policy = "half-change"
	c.Sources = []config.Source{{URL: "http://127.0.0.1:1/", AllowPrivate: true, Policy: "adaptive"}, {URL: "http://127.0.0.1:2/", AllowPrivate: true}}
	n, err := Open(c, Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.prepareServe(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer n.close()
	v := &freshness.Visited{Page: &store.Page{}, Since: time.Hour, Changed: true}
	plan := n.withSourcePolicies(freshness.HalfChange{})
	for address, want := range map[string]time.Duration{"http://127.0.0.1:1/a": (freshness.Adaptive{}).Visited(v), "http://127.0.0.1:2/a": (freshness.HalfChange{}).Visited(v)} {
		if v.URL, err = weburl.Parse(address); err != nil {
			t.Fatal(err)
		}
		if got := plan.Visited(v); got != want {
			t.Errorf("%s: visited again after %v, want %v", address, got, want)
		}
	}
}

// Certificates of an authority that a file names are accepted, others are not.
func TestAuthorities(t *testing.T) {
	t.Parallel()
	site := newVisitedSite(t, 0, 0, "")
	site.StartTLS()
	file := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: site.Certificate().Raw})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, cacert := range []string{"", file} {
		c := config.Default()
		c.Crawl.CACert = cacert
		c.Sources = []config.Source{{URL: site.URL + "/", AllowPrivate: true}}
		n, err := newClient(c, func(string, string) bool { return true }, nil)
		if err != nil {
			t.Fatal(err)
		}
		u, err := weburl.Parse(site.URL + "/")
		if err != nil {
			t.Fatal(err)
		}
		_, err = n.Get(t.Context(), fetch.Request{URL: u, Private: true})
		if (err == nil) != (cacert != "") {
			t.Errorf("cacert %q: error %v", filepath.Base(cacert), err)
		}
		n.Close()
	}
	if _, err := readAuthorities(os.DevNull); err == nil {
		t.Error("a file without certificates was taken")
	}
}

// limitedTime is a context that drains a crawl which does not end by itself.
func limitedTime(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}
