package crawl

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/freshet/freshet/extract"
	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/freshness/change"
	"github.com/freshet/freshet/store"
)

// What is asked of a host beside its pages is polite, too: the host rests after
// it, answered or not, and it is in the budget. It counts as no page.
func TestBeside(t *testing.T) {
	t.Parallel()
	const delay = 100 * time.Millisecond
	known := store.Page{State: store.OK, Bytes: 1 << 20, ETag: `"1"`}
	known.History.Observe(time.Now(), false, change.DefaultPrior)
	for _, tt := range []struct {
		name     string
		requests int // with all their hops, where each is answered
		do       func(ctx context.Context, t *testing.T, a *agent, base string) error
	}{
		{"robots.txt", 2, func(ctx context.Context, t *testing.T, a *agent, base string) error {
			a.access.LoadRules(ctx, mustParse(t, base+"/"))
			return nil
		}},
		{"script", 1, func(ctx context.Context, t *testing.T, a *agent, base string) error {
			_, _ = a.access.GetScript(ctx, mustParse(t, base+"/app.js"))
			return nil
		}},
		{"page that cannot exist", 1, func(ctx context.Context, t *testing.T, a *agent, base string) error {
			a.soft404.ask(ctx, mustParse(t, base+"/"), time.Now())
			return nil
		}},
		{"HEAD", 2, func(ctx context.Context, t *testing.T, a *agent, base string) error {
			_, _ = a.requests.send(ctx, &known, mustParse(t, base+"/page"), fetch.Request{URL: mustParse(t, base+"/page"), ETag: `"1"`})
			a.robot.budget.Wait(ctx) // as before each page
			a.host.Next = time.Now().Add(delay)
			return nil
		}},
	} {
		for _, answers := range []bool{true, false} {
			name := tt.name + ", answered"
			if !answers {
				name = tt.name + ", cut"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := newSite(t, nil, map[string]http.HandlerFunc{"/robots.txt": func(w http.ResponseWriter, r *http.Request) {
					http.Redirect(w, r, "/robots", http.StatusFound)
				}})
				if !answers {
					next := s.Config.Handler
					s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						next.ServeHTTP(httptest.NewRecorder(), r) // notes it
						panic(http.ErrAbortHandler)
					})
				}
				c := newRig(t).config
				c.Delay, c.DelayGiven, c.Budget = delay, true, 1
				var spent atomic.Int64
				c.Spend = func(context.Context, time.Duration) (time.Time, error) {
					spent.Add(1)
					return time.Now(), nil
				}
				u := mustParse(t, s.URL)
				a := testAgent(New(c), store.Host{Name: u.Host(), Delay: delay, Ignored: ignoredMost, Fetched: 1})
				if tt.name != "robots.txt" {
					a.access.UseRobots(u, &store.Robots{Scheme: "http", Status: 404, Fetched: time.Now()})
				}
				if err := tt.do(context.Background(), t, a, s.URL); err != nil {
					t.Fatal(err)
				}
				s.mu.Lock()
				defer s.mu.Unlock()
				if n := len(s.times); n == 0 || answers && n != tt.requests || int64(n) != spent.Load() {
					t.Errorf("%d requests %v, %d from the budget", n, s.log, spent.Load())
				}
				for i, at := range append(s.times[1:len(s.times):len(s.times)], a.host.Next) {
					if gap := at.Sub(s.times[i]); gap < delay-5*time.Millisecond {
						t.Errorf("the next request comes %v after %s", gap, s.log[i])
					}
				}
				if a.host.Pages != 0 {
					t.Errorf("%d pages", a.host.Pages)
				}
			})
		}
	}
}

// What kept the robot from fetching in one run, and is mended, does not in the
// next: that it had no leave, or that robots.txt could not be had.
func TestNextRunTriesAgain(t *testing.T) {
	t.Parallel()
	t.Run("private", func(t *testing.T) {
		t.Parallel()
		s := newSite(t, map[string]string{"/": link()}, nil)
		r := newRig(t)
		leave := r.config.Fetch
		var err error
		if r.config.Fetch, err = fetch.New(fetch.Config{UserAgent: "freshet-test"}); err != nil {
			t.Fatal(err)
		}
		r.crawl(t, s.URL+"/")
		if p := r.page(t, s.URL+"/"); p.State != store.Failed {
			t.Errorf("the page is %s", p.State)
		}
		r.config.Fetch = leave
		r.crawl(t, s.URL+"/")
		if p := r.page(t, s.URL+"/"); p.State != store.OK {
			t.Errorf("the page is %s", p.State)
		}
	})
	t.Run("robots.txt", func(t *testing.T) {
		t.Parallel()
		var robot atomic.Pointer[Robot]
		s := newSite(t, map[string]string{"/": link()}, map[string]http.HandlerFunc{"/robots.txt": func(w http.ResponseWriter, _ *http.Request) {
			if r := robot.Load(); r != nil {
				r.Drain()
				w.WriteHeader(http.StatusInternalServerError)
			}
		}})
		r := newRig(t)
		c := r.config
		c.Store, c.Archive = r.store, r.archive
		u := mustParse(t, s.URL+"/")
		c.Scopes.Add(Scope{Seed: u, Kind: "host"})
		if _, err := r.store.Add(context.Background(), []store.Found{{URL: u}}); err != nil {
			t.Fatal(err)
		}
		robot.Store(New(c))
		if err := robot.Load().Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		robot.Store(nil)
		start := time.Now()
		r.crawl(t, s.URL+"/")
		if p := r.page(t, s.URL+"/"); p.State != store.OK || s.count("/robots.txt") != 2 {
			t.Errorf("the page is %s; %v were asked for in %v", p.State, s.log, time.Since(start))
		}
	})
}

// The pages of a host are those that it has, however often they are visited.
func TestPagesOfHost(t *testing.T) {
	t.Parallel()
	gone := atomic.Bool{}
	s := newSite(t, map[string]string{"/": link("/a", "/b", "/none"), "/a": link()}, map[string]http.HandlerFunc{"/b": func(w http.ResponseWriter, r *http.Request) {
		if gone.Load() {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(link()))
	}, "/robots.txt": func(http.ResponseWriter, *http.Request) {}})
	r := newRig(t)
	for i, want := range []int64{3, 3, 2} {
		gone.Store(i == 2)
		r.crawl(t, s.URL+"/", s.URL+"/a", s.URL+"/b")
		err := r.store.Hosts(context.Background(), func(h *store.Host) error {
			if h.Pages != want {
				t.Errorf("run %d: the host has %d pages, want %d", i, h.Pages, want)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// shortTurns lets a host be worked for a moment.
type shortTurns struct{ BreadthFirst }

func (shortTurns) Slice() time.Duration { return 50 * time.Millisecond }

// A host's turn ends when its time is over, however many pages the agent has taken.
func TestTurnsEnd(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var order []string
	r := newRig(t)
	r.config.Agents, r.config.Ordering = 1, shortTurns{}
	const pages = 12
	var seeds, links []string
	for i := range pages {
		links = append(links, fmt.Sprintf("/%d", i))
	}
	for range 2 {
		s := newSite(t, nil, nil)
		next := s.Config.Handler
		s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/robots.txt" {
				next.ServeHTTP(w, r)
				return
			}
			mu.Lock()
			order = append(order, r.Host)
			mu.Unlock()
			time.Sleep(20 * time.Millisecond) // three pages are a turn
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, link(links...), r.URL.Path)
		})
		seeds = append(seeds, s.URL+"/")
	}
	r.crawl(t, seeds...)
	if len(order) != 2*(pages+1) {
		t.Fatalf("%d pages", len(order))
	}
	for i, run := 1, 1; i < pages; i++ { // by then neither host is done
		if run++; order[i] != order[i-1] {
			run = 1
		}
		if run > 4 {
			t.Errorf("%d pages of one host in a row: %v", run, order)
		}
	}
}

// Only different URLs that are answered alike make a host suspect, not one that is
// as it was each time.
func TestSoftRevisited(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil, nil)
	u := mustParse(t, s.URL+"/a")
	page := extract.Document(t.Context(), []byte("<title>t</title><p>a page that is as it was whenever somebody comes to look"), "text/html", u, extract.Options{})
	for name, tt := range map[string]struct {
		before store.Page
		asked  bool
	}{"revisits": {store.Page{Digest: page.Digest}, false}, "others": {store.Page{}, true}} {
		a := testAgent(New(newRig(t).config), store.Host{Name: u.Host()})
		a.access.UseRobots(u, &store.Robots{Scheme: "http", Status: 404, Fetched: time.Now()})
		for range 6 {
			a.soft404.matches(context.Background(), u, &tt.before, page, time.Now())
		}
		if asked := !a.host.Probed.IsZero(); asked != tt.asked {
			t.Errorf("%s: asked for a page that cannot exist: %v", name, asked)
		}
	}
}
