package crawl

import (
	"compress/gzip"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/freshet/freshet/archive"
	"github.com/freshet/freshet/crawl/politeness"
	"github.com/freshet/freshet/crawl/trap"
	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/store/local"
	"github.com/freshet/freshet/weburl"
)

// site is a server that remembers what it was asked.
type site struct {
	*httptest.Server
	mu    sync.Mutex
	asked map[string]int
	log   []string
	now   int
	most  int
	times []time.Time
}

// newSite serves pages by path; a handler may be given for one.
func newSite(t *testing.T, pages map[string]string, special map[string]http.HandlerFunc) *site {
	t.Helper()
	s := &site{asked: map[string]int{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asked[r.URL.RequestURI()]++
		s.log = append(s.log, r.URL.RequestURI())
		s.times = append(s.times, time.Now())
		s.now++
		s.most = max(s.most, s.now)
		s.mu.Unlock()
		defer func() {
			s.mu.Lock()
			s.now--
			s.mu.Unlock()
		}()
		if h := special[r.URL.Path]; h != nil {
			h(w, r)
			return
		}
		body, ok := pages[r.URL.RequestURI()]
		if !ok {
			http.NotFound(w, r)
			return
		}
		tag := fmt.Sprintf("%q", fmt.Sprint(len(body)))
		w.Header().Set("ETag", tag)
		w.Header().Set("Content-Type", "text/html")
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		fmt.Fprint(w, body)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *site) count(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[path]
}

func (s *site) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked, s.log, s.times = map[string]int{}, nil, nil
}

// rig is a robot over a store in a temporary folder.
type rig struct {
	dir     string
	store   *local.Store
	archive *archive.Writer
	config  Config
	scope   string
	depth   int
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{dir: t.TempDir(), scope: "host"}
	r.open(t)
	t.Cleanup(func() { _ = r.archive.Close(); _ = r.store.Close() })
	client, err := fetch.New(fetch.Config{UserAgent: "freshet-test", AllowPrivate: true, Timeout: 2 * time.Minute, MaxBody: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	r.config = Config{Fetch: client, Once: true, Agents: 4, Canon: weburl.DefaultCanon}
	return r
}

func (r *rig) open(t *testing.T) {
	t.Helper()
	var err error
	if r.store, err = local.Open(filepath.Join(r.dir, "store"), local.Config{}); err != nil {
		t.Fatal(err)
	}
	if r.archive, err = archive.Open(archive.Config{Dir: filepath.Join(r.dir, "warc")}); err != nil {
		t.Fatal(err)
	}
}

// crawl runs the robot from the seeds until it has nothing left.
func (r *rig) crawl(t *testing.T, seeds ...string) *Robot {
	t.Helper()
	c := r.config
	c.Store, c.Archive = r.store, r.archive
	var found []store.Found
	for _, s := range seeds {
		u, err := weburl.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		sc, err := NewScope(u, r.scope, r.depth, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		c.Scopes.Add(sc)
		found = append(found, store.Found{URL: u, Order: 1, Due: time.Now()})
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if _, err := r.store.Add(ctx, found); err != nil {
		t.Fatal(err)
	}
	robot := New(c)
	if err := robot.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if ctx.Err() != nil {
		t.Fatal("the crawl did not end")
	}
	return robot
}

func (r *rig) page(t *testing.T, u string) *store.Page {
	t.Helper()
	w, err := weburl.Parse(u)
	if err != nil {
		t.Fatal(err)
	}
	p, err := r.store.Page(context.Background(), w)
	if err != nil {
		t.Fatalf("%s: %v", u, err)
	}
	return p
}

func link(targets ...string) string {
	var b strings.Builder
	b.WriteString("<html><title>t</title><body>")
	for _, t := range targets {
		fmt.Fprintf(&b, "<p>some text <a href=%q>x</a>", t)
	}
	return b.String()
}

// Every page that links lead to is fetched exactly once, and its record,
// links and body are kept.
func TestFetchesEachPageOnce(t *testing.T) {
	t.Parallel()
	pages := map[string]string{"/": link("/0", "/1")}
	const n = 300
	for i := range n {
		pages[fmt.Sprint("/", i)] = link(fmt.Sprint("/", (3*i+1)%n), fmt.Sprint("/", (7*i+2)%n), fmt.Sprint("/", i+1), "/#top", "/?utm_source=x")
	}
	s := newSite(t, pages, nil)
	r := newRig(t)
	robot := r.crawl(t, s.URL+"/")
	for path := range pages {
		if got := s.count(path); got != 1 {
			t.Errorf("%s was fetched %d times", path, got)
		}
	}
	if s.most > 1 {
		t.Errorf("%d requests at once on one host", s.most)
	}
	if st := robot.Status(); st.Pages != n+1 || len(st.Agents) != 0 {
		t.Errorf("status %+v", st)
	}
	p := r.page(t, s.URL+"/5")
	if p.State != store.OK || p.Title != "t" || p.Depth == 0 || p.From == "" {
		t.Errorf("record %+v", p)
	}
	if err := r.archive.Flush(); err != nil {
		t.Fatal(err)
	}
	x, err := archive.Read(filepath.Join(r.dir, "warc"), p.Body)
	if err != nil || string(x.Body) != pages["/5"] || x.URL != s.URL+"/5" {
		t.Errorf("archived %+v, %v", x, err)
	}
}

// A second run asks only whether pages changed, and goes on from a kill: what
// was queued is fetched, what was fetched is not.
func TestSecondRunIsConditional(t *testing.T) {
	t.Parallel()
	pages := map[string]string{"/": link("/a", "/b"), "/a": link("/"), "/b": link("/")}
	s := newSite(t, pages, nil)
	r := newRig(t)
	r.crawl(t, s.URL+"/")
	s.forget()
	pages["/a"] = link("/", "/new")
	pages["/new"] = link()
	r.store.Close()
	r.archive.Close()
	r.open(t)
	var due []store.Found
	if err := r.store.Pages(context.Background(), func(p *store.Page) error {
		u, err := weburl.Parse(p.URL)
		due = append(due, store.Found{URL: u, Due: time.Now()})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.store.Add(context.Background(), due); err != nil {
		t.Fatal(err)
	}
	robot := r.crawl(t, s.URL+"/")
	if st := robot.Status(); st.Unchanged != 2 || st.Pages != 4 || st.Added != 1 {
		t.Errorf("unchanged %d, pages %d, added %d", st.Unchanged, st.Pages, st.Added)
	}
	if s.count("/robots.txt") != 0 {
		t.Error("robots.txt was fetched again within its day")
	}
}

func TestRobotsTxt(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		handler http.HandlerFunc
		private int
	}{
		{"rules", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "User-agent: freshet\nDisallow: /private") }, 0},
		{"none", http.NotFound, 1},
		{"server error", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, 0},
		{"redirected", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.RawQuery == "" {
				http.Redirect(w, r, "/robots.txt?here", http.StatusFound)
				return
			}
			fmt.Fprint(w, "User-agent: *\nDisallow: /private")
		}, 0},
		{"endless redirects", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/robots.txt", http.StatusFound) }, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, map[string]string{"/": link("/private/x"), "/private/x": link()}, map[string]http.HandlerFunc{"/robots.txt": tt.handler})
			newRig(t).crawl(t, s.URL+"/")
			if got := s.count("/private/x"); got != tt.private {
				t.Errorf("/private/x was fetched %d times, want %d", got, tt.private)
			}
			if tt.name == "server error" && s.count("/") != 0 {
				t.Error("a page was fetched while robots.txt could not be had")
			}
		})
	}
}

// Answers that are not pages: redirects, errors, refusals, overload.
func TestAnswers(t *testing.T) {
	t.Parallel()
	var busy, broken atomic.Int32
	s := newSite(t, map[string]string{
		"/": link("/moved", "/gone", "/secret", "/busy", "/broken", "/noindex", "/target"), "/target": link(), "/deep": link(),
		"/noindex": `<meta name=robots content="noindex,nofollow"><a href=/hidden>x</a>`,
	}, map[string]http.HandlerFunc{
		"/moved": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/deep", http.StatusMovedPermanently)
		},
		"/gone":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(410) },
		"/secret": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) },
		"/busy": func(w http.ResponseWriter, _ *http.Request) {
			if busy.Add(1) == 1 {
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(503)
				return
			}
			fmt.Fprint(w, link())
		},
		"/broken": func(w http.ResponseWriter, _ *http.Request) { broken.Add(1); w.WriteHeader(500) },
	})
	r := newRig(t)
	robot := r.crawl(t, s.URL+"/")
	for path, want := range map[string]store.State{"/moved": store.Redirect, "/deep": store.OK, "/gone": store.Gone, "/secret": store.Blocked, "/busy": store.OK, "/broken": store.Failed, "/noindex": store.OK} {
		if p := r.page(t, s.URL+path); p.State != want {
			t.Errorf("%s is %s (%s), want %s", path, p.State, p.Error, want)
		}
	}
	if p := r.page(t, s.URL+"/noindex"); !p.NoIndex || s.count("/hidden") != 0 {
		t.Errorf("noindex %v; hidden was fetched %d times", p.NoIndex, s.count("/hidden"))
	}
	if p := r.page(t, s.URL+"/moved"); p.Location != s.URL+"/deep" {
		t.Errorf("moved to %s", p.Location)
	}
	if busy.Load() != 2 || broken.Load() != politeness.MaxRetries {
		t.Errorf("busy was asked %d times, broken %d times", busy.Load(), broken.Load())
	}
	if st := robot.Status(); st.Errors["status-503"] != 1 || st.Errors["status-5xx"] != politeness.MaxRetries {
		t.Errorf("errors %v", st.Errors)
	}
}

func TestScopeDepthAndBounds(t *testing.T) {
	t.Parallel()
	other := newSite(t, map[string]string{"/": link()}, nil)
	chain := map[string]string{"/": link("/1", other.URL+"/")}
	for i := 1; i < 20; i++ {
		chain[fmt.Sprint("/", i)] = link(fmt.Sprint("/", i+1))
	}
	s := newSite(t, chain, nil)
	deep := newRig(t)
	deep.depth = 5
	deep.crawl(t, s.URL+"/")
	if s.count("/5") != 1 || s.count("/6") != 0 || other.count("/") != 0 {
		t.Errorf("depth 5: /5 %d, /6 %d, other host %d", s.count("/5"), s.count("/6"), other.count("/"))
	}
	s.forget()
	few := newRig(t)
	few.config.MaxPages = 3
	if st := few.crawl(t, s.URL+"/").Status(); st.Pages != 3 {
		t.Errorf("at most 3 pages: %d", st.Pages)
	}
	wide := newRig(t)
	wide.scope = "any"
	wide.crawl(t, s.URL+"/")
	if other.count("/") != 1 {
		t.Errorf("any host: other fetched %d times", other.count("/"))
	}
}

// A delay is kept between any two requests to a host, robots.txt included, and
// across runs.
func TestDelay(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"/": link("/1", "/2", "/3"), "/1": link(), "/2": link(), "/3": link()}, nil)
	r := newRig(t)
	r.config.Delay, r.config.DelayGiven = 120*time.Millisecond, true
	r.crawl(t, s.URL+"/")
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.times) != 5 {
		t.Fatalf("%d requests: %v", len(s.times), s.log)
	}
	for i := 1; i < len(s.times); i++ {
		if gap := s.times[i].Sub(s.times[i-1]); gap < 115*time.Millisecond {
			t.Errorf("%s came %v after %s", s.log[i], gap, s.log[i-1])
		}
	}
}

// A Crawl-delay holds from the request for robots.txt that brought it.
func TestCrawlDelay(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"/": link("/a"), "/a": "end"}, map[string]http.HandlerFunc{
		"/robots.txt": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "User-agent: *\nCrawl-delay: 0.2\n") },
	})
	newRig(t).crawl(t, s.URL+"/")
	if len(s.times) != 3 {
		t.Fatalf("asked for %v", s.log)
	}
	for i := 1; i < len(s.times); i++ {
		if d := s.times[i].Sub(s.times[i-1]); d < 190*time.Millisecond {
			t.Errorf("%s asked for %v after %s", s.log[i], d, s.log[i-1])
		}
	}
}

// A robots.txt that fails twice delays a single crawl by seconds and loses
// nothing.
func TestRobotsTxtLate(t *testing.T) {
	t.Parallel()
	var tries atomic.Int64
	s := newSite(t, map[string]string{"/": link("/a"), "/a": link()}, map[string]http.HandlerFunc{"/robots.txt": func(w http.ResponseWriter, _ *http.Request) {
		if tries.Add(1) < 3 {
			w.WriteHeader(500)
		}
	}})
	newRig(t).crawl(t, s.URL+"/")
	if tries.Load() != 3 || s.count("/") != 1 || s.count("/a") != 1 {
		t.Errorf("robots.txt asked %d times, / fetched %d times, /a %d times; want 3, 1, 1", tries.Load(), s.count("/"), s.count("/a"))
	}
}

// However the limit is changed, never more agents fetch than it allows once
// those beyond it have finished their page.
func TestAgentsLimit(t *testing.T) {
	t.Parallel()
	var now, most atomic.Int32
	var servers []*httptest.Server
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		n := now.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		time.Sleep(2 * time.Millisecond)
		now.Add(-1)
		var k int
		_, _ = fmt.Sscanf(r.URL.Path, "/%d", &k)
		fmt.Fprint(w, link(fmt.Sprint("/", k+1)))
	})
	r := newRig(t)
	r.config.Once = false
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c := r.config
	c.Store, c.Archive, c.Agents = r.store, r.archive, 12
	for range 12 {
		srv := httptest.NewServer(handler)
		servers = append(servers, srv)
		u, err := weburl.Parse(srv.URL + "/1")
		if err != nil {
			t.Fatal(err)
		}
		sc, _ := NewScope(u, "host", 0, nil, nil)
		c.Scopes.Add(sc)
		if _, err := r.store.Add(ctx, []store.Found{{URL: u}}); err != nil {
			t.Fatal(err)
		}
	}
	var agents atomic.Int64
	agents.Store(3)
	c.Limit = func() int { return int(agents.Load()) }
	robot := New(c)
	done := make(chan error, 1)
	go func() { done <- robot.Run(ctx) }()
	for _, limit := range []int{3, 9, 1, 6, 0, 12, 2} {
		agents.Store(int64(limit))
		robot.Wake()
		deadline := time.Now().Add(2 * time.Minute)
		for len(robot.Status().Agents) > limit && time.Now().Before(deadline) {
			time.Sleep(time.Millisecond)
		}
		most.Store(0)
		for looks := 0; looks < 60 || limit > 0 && most.Load() == 0 && time.Now().Before(deadline); looks++ {
			if n := len(robot.Status().Agents); n > limit {
				t.Fatalf("%d agents live, limit %d", n, limit)
			}
			time.Sleep(2 * time.Millisecond)
		}
		if got := int(most.Load()); got > limit {
			t.Errorf("%d requests at once, limit %d", got, limit)
		} else if limit > 0 && got == 0 {
			t.Errorf("nothing was fetched with limit %d", limit)
		}
	}
	robot.Pause()
	for len(robot.Status().Agents) > 0 {
		time.Sleep(time.Millisecond)
	}
	before := robot.Status().Answers
	time.Sleep(50 * time.Millisecond)
	if after := robot.Status().Answers; after != before || robot.Status().State != "paused" {
		t.Errorf("paused, but %d pages were fetched", after-before)
	}
	robot.Resume()
	robot.Drain()
	if err := <-done; err != nil {
		t.Error(err)
	}
	for _, s := range servers {
		s.Close()
	}
}

// A host that nobody answers for ends the run and keeps its URLs.
func TestDeadHost(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.NotFoundHandler())
	srv.Close()
	r := newRig(t)
	robot := r.crawl(t, srv.URL+"/")
	if st := robot.Status(); st.Errors["refused"] == 0 || st.Pages != 0 {
		t.Errorf("status %+v", st)
	}
	if p := r.page(t, srv.URL+"/"); p.State != store.Failed || p.Slot.IsZero() {
		t.Errorf("page %+v", p)
	}
}

// An endless calendar and session numbers do not catch the robot.
func TestTrapSite(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	s := newSite(t, map[string]string{
		"/":  link("/cal/2026/01/", "/a;jsessionid=1", "/b?utm_source=x", "/b?"+strings.Repeat("a=1&", 20), fmt.Sprintf("/cal/%d/01/", time.Now().Year()+3), "/"+strings.Repeat("s/", 30)+"x", "/n/1", "/n/2", "/n/3", "/1/2/3/4/5/6/7/8/9/10", "/1/2/3/4/5/6/7/8/9/11"),
		"/b": "b", "/n/1": "1", "/n/2": "2", "/n/3": "3",
	}, map[string]http.HandlerFunc{
		"/a": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, link(fmt.Sprintf("/a;jsessionid=%d", n.Add(1)), fmt.Sprintf("/a?PHPSESSID=%032d", n.Load())))
		},
	})
	next := s.Config.Handler
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/loop/") {
			fmt.Fprint(w, link(r.URL.Path+"loop/"))
			return
		}
		next.ServeHTTP(w, r)
	})
	r := newRig(t)
	r.config.Traps = trap.Limits{Shape: 2, Deep: 1}
	robot := r.crawl(t, s.URL+"/", s.URL+"/loop/")
	if got := s.count("/a"); got != 1 {
		t.Errorf("/a was fetched %d times", got)
	}
	for kind, example := range map[trap.Kind]string{
		"session number": "PHPSESSID=", "tracking parameter": "/b?utm_source=x", "path loop": "/loop/", "deep path": "/s/s/", "many parameters": "a=1&", "calendar": "/cal/", "one shape": "/n/", "deep folders": "/9/1",
	} {
		if tr := trapOf(robot, kind); tr.Count == 0 || !strings.Contains(tr.Example, example) {
			t.Errorf("%s: %+v", kind, tr)
		}
	}
}

// Sitemaps are followed as an index, packed or not, whatever type the server
// says they have; entries of news, images and videos do not disturb.
func TestSitemap(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"/only-in-map": link(), "/packed": link(), "/plain": link(), "/listed": link()}, nil)
	answer := func(contentType, format string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", contentType)
			body := strings.ReplaceAll(format, "$", s.URL)
			if strings.HasSuffix(r.URL.Path, ".gz") {
				z := gzip.NewWriter(w)
				fmt.Fprint(z, body)
				_ = z.Close()
				return
			}
			fmt.Fprint(w, body)
		}
	}
	entry := func(path string) string {
		return `<?xml version="1.0" encoding="UTF-8"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:news="http://www.google.com/schemas/sitemap-news/0.9" xmlns:video="http://www.google.com/schemas/sitemap-video/1.1">
			<url><loc>$` + path + `</loc><news:news><news:title>Herons</news:title></news:news><video:video><video:content_loc>$/film.mp4</video:content_loc></video:video></url></urlset>`
	}
	s.Config.Handler = wrap(s.Config.Handler, map[string]http.HandlerFunc{
		"/robots.txt": answer("text/plain", "Sitemap: $/index.xml\nSitemap: $/list.txt"),
		"/index.xml":  answer("application/xml", "<sitemapindex><sitemap><loc>$/map.xml</loc></sitemap><sitemap><loc>$/map.xml.gz</loc></sitemap><sitemap><loc>$/map</loc></sitemap></sitemapindex>"),
		"/map.xml":    answer("text/xml", entry("/only-in-map")),
		"/map.xml.gz": answer("application/x-gzip", entry("/packed")),
		"/map":        answer("text/plain", entry("/plain")),
		"/list.txt":   answer("text/plain", "$/listed\n"),
	})
	newRig(t).crawl(t, s.URL+"/")
	for _, path := range []string{"/only-in-map", "/packed", "/plain", "/listed"} {
		if s.count(path) != 1 {
			t.Errorf("%s was fetched %d times", path, s.count(path))
		}
	}
	if s.count("/film.mp4") != 0 {
		t.Error("a video of a sitemap was taken for a page")
	}
}

func wrap(next http.Handler, special map[string]http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h := special[r.URL.Path]; h != nil {
			h(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// testAgent returns an agent of a host that no store knows.
func testAgent(r *Robot, h store.Host) *agent { return r.newAgent(0, &store.Lease{Host: h}) }
