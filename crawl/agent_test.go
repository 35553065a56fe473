package crawl

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/freshet/freshet/crawl/politeness"
	"github.com/freshet/freshet/internal/rng"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// failing is a store of which some calls fail.
type failing struct {
	store.Store
	claims atomic.Int64
	claim  int64 // that fails, 0 for none
	renew  bool  // every renewal fails
	commit bool  // every commit fails
}

var errDown = errors.New("the store is away")

func (f *failing) Claim(ctx context.Context, node string, now time.Time, ttl time.Duration) (*store.Lease, time.Time, error) {
	if n := f.claims.Add(1); n == f.claim {
		return nil, time.Time{}, errDown
	}
	return f.Store.Claim(ctx, node, now, ttl)
}

func (f *failing) Renew(ctx context.Context, l *store.Lease, now time.Time, ttl time.Duration) error {
	if f.renew {
		return errDown
	}
	return f.Store.Renew(ctx, l, now, ttl)
}

func (f *failing) Commit(ctx context.Context, l *store.Lease, b *store.Batch) (int, error) {
	if f.commit && len(b.Visits) > 0 {
		return 0, errDown
	}
	return f.Store.Commit(ctx, l, b)
}

// Requests are broken off before a lease that cannot be renewed runs out.
func TestLeaseNotRenewed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const ttl = 600 * time.Millisecond
		a := New(Config{Store: &failing{renew: true}, Lease: ttl}).newAgent(0, &store.Lease{Until: time.Now().Add(ttl)})
		ctx, stop := a.robot.holdLease(context.Background(), *a.lease)
		defer stop()
		<-ctx.Done()
		if left := time.Until(a.lease.Until); left <= 0 {
			t.Errorf("the agent ended %v after its lease", -left)
		}
		if !errors.Is(context.Cause(ctx), store.ErrLease) {
			t.Error(context.Cause(ctx))
		}
	})
}

// A store that fails ends the run at once, whatever the agents wait for, and
// says why.
func TestStoreFails(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil, map[string]http.HandlerFunc{"/": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }})
	r := newRig(t)
	c := r.config
	f := &failing{Store: r.store, claim: 3}
	c.Store, c.Archive, c.Once = f, r.archive, false
	u, err := weburl.Parse(s.URL + "/")
	if err != nil {
		t.Fatal(err)
	}
	c.Scopes.Add(Scope{Seed: u, Kind: "host"})
	if _, err := r.store.Add(context.Background(), []store.Found{{URL: u}}); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if err := New(c).Run(context.Background()); !errors.Is(err, errDown) {
		t.Errorf("the run ends with %v", err)
	}
	if d := time.Since(start); d > time.Minute { // the client gives up after two
		t.Errorf("the run ended after %v", d)
	}
	if p := r.page(t, s.URL+"/"); p.State != store.Queued {
		t.Errorf("the page under way is %s", p.State)
	}
}

// A page that came and cannot be written down is told of, however the run ends.
func TestLastCommitFails(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*Robot, context.CancelFunc){
		"drained": func(r *Robot, _ context.CancelFunc) { r.Drain() },
		"ended":   func(_ *Robot, cancel context.CancelFunc) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, map[string]string{"/": link()}, nil)
			r := newRig(t)
			c := r.config
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			var robot *Robot
			c.Store, c.Archive, c.Once = &failing{Store: r.store, commit: true}, r.archive, false
			c.OnPage = func(*Result) { end(robot, cancel) }
			u := mustParse(t, s.URL+"/")
			c.Scopes.Add(Scope{Seed: u, Kind: "host"})
			if _, err := r.store.Add(ctx, []store.Found{{URL: u}}); err != nil {
				t.Fatal(err)
			}
			robot = New(c)
			if err := robot.Run(ctx); !errors.Is(err, errDown) {
				t.Errorf("the run ends with %v", err)
			}
		})
	}
}

// slow is a store whose first answer that there is nothing to claim comes when
// that is no longer true.
type slow struct {
	store.Store
	once  sync.Once
	until func()
}

func (s *slow) Claim(ctx context.Context, node string, now time.Time, ttl time.Duration) (*store.Lease, time.Time, error) {
	l, next, err := s.Store.Claim(ctx, node, now, ttl)
	if l == nil {
		s.once.Do(s.until)
	}
	return l, next, err
}

// A run does not end because the only host was leased when the dispatcher asked
// for one, and given back, with new pages, before it looked whether all is done.
func TestHostGivenBackMeanwhile(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	s := newSite(t, map[string]string{"/": link("/a"), "/a": link()}, map[string]http.HandlerFunc{"/robots.txt": func(w http.ResponseWriter, _ *http.Request) {
		<-asked
		w.WriteHeader(http.StatusNotFound)
	}})
	r := newRig(t)
	c := r.config
	c.Delay, c.DelayGiven = 2*politeness.Patience, true // the agent goes after each page
	u := mustParse(t, s.URL+"/")
	c.Scopes.Add(Scope{Seed: u, Kind: "host"})
	if _, err := r.store.Add(context.Background(), []store.Found{{URL: u}}); err != nil {
		t.Fatal(err)
	}
	var robot *Robot
	c.Archive, c.Store = r.archive, &slow{Store: r.store, until: func() {
		close(asked)
		for robot.working() > 0 {
			time.Sleep(time.Millisecond)
		}
	}}
	robot = New(c)
	if err := robot.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if p := r.page(t, s.URL+"/a"); p.State != store.OK {
		t.Errorf("the run ended with a page %s", p.State)
	}
}

// A page that fails and comes back as it was has not changed.
func TestFailureIsNoChange(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	s := newSite(t, nil, map[string]http.HandlerFunc{"/": func(w http.ResponseWriter, _ *http.Request) {
		if broken.Load() {
			w.WriteHeader(500)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<title>t</title><p>as ever"))
	}})
	r := newRig(t)
	r.crawl(t, s.URL+"/")
	changes, err := r.store.Changes(context.Background(), 0, 10)
	if err != nil || len(changes) != 1 {
		t.Fatalf("%d changes, %v", len(changes), err)
	}
	broken.Store(true)
	r.crawl(t, s.URL+"/")
	if p := r.page(t, s.URL+"/"); p.State != store.Failed {
		t.Fatalf("the page is %s", p.State)
	}
	broken.Store(false)
	robot := r.crawl(t, s.URL+"/")
	if p := r.page(t, s.URL+"/"); p.State != store.OK || robot.Status().Unchanged != 1 {
		t.Errorf("the page is %s, %d unchanged", p.State, robot.Status().Unchanged)
	}
	if changes, err = r.store.Changes(context.Background(), 0, 10); err != nil || len(changes) != 1 {
		t.Errorf("%d changes, %v", len(changes), err)
	}
}

// A page that fails and then is there no more, in whatever way, leaves the index.
func TestGoneAfterFailure(t *testing.T) {
	t.Parallel()
	for name, gone := range map[string]http.HandlerFunc{
		"gone":      http.NotFound,
		"refused":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) },
		"moved":     func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) },
		"forbidden": nil, // by robots.txt
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var state atomic.Int32
			s := newSite(t, nil, map[string]http.HandlerFunc{"/": func(w http.ResponseWriter, r *http.Request) {
				switch state.Load() {
				case 0:
					w.Header().Set("Content-Type", "text/html")
					_, _ = w.Write([]byte("<title>t</title><p>as ever"))
				case 1:
					w.WriteHeader(500)
				default:
					gone(w, r)
				}
			}, "/robots.txt": func(w http.ResponseWriter, _ *http.Request) {
				if gone == nil && state.Load() > 1 {
					fmt.Fprint(w, "User-agent: *\nDisallow: /")
				}
			}})
			r := newRig(t)
			for range 2 {
				r.crawl(t, s.URL+"/")
				state.Add(1)
			}
			if p := r.page(t, s.URL+"/"); p.State != store.Failed {
				t.Fatalf("the page is %s", p.State)
			}
			forgetRobots(t, r.store, s.URL+"/")
			r.crawl(t, s.URL+"/")
			changes, err := r.store.Changes(context.Background(), 0, 10)
			if err != nil || len(changes) != 2 || changes[1].Page.State == store.Failed {
				t.Errorf("%d changes, the page is %s, %v", len(changes), changes[len(changes)-1].Page.State, err)
			}
		})
	}
}

// forgetRobots lets the robots.txt of a page's host, which is the only one, be
// fetched again.
func forgetRobots(t *testing.T, s store.Store, page string) {
	t.Helper()
	ctx, now := context.Background(), time.Now()
	if _, err := s.Add(ctx, []store.Found{{URL: mustParse(t, page), Due: now}}); err != nil {
		t.Fatal(err)
	}
	l, _, err := s.Claim(ctx, "t", now.Add(10*time.Second), time.Minute)
	if err != nil || l == nil {
		t.Fatalf("%v, %v", l, err)
	}
	l.Host.Robots, l.Host.Next = nil, time.Time{}
	_, err = s.Commit(ctx, l, &store.Batch{Host: l.Host})
	if err := errors.Join(err, s.Release(ctx, l)); err != nil {
		t.Fatal(err)
	}
}

// Hops of robots.txt on the same host rest between each other.
func TestRobotsRedirectsRest(t *testing.T) {
	t.Parallel()
	hop := func(to string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusFound) }
	}
	s := newSite(t, map[string]string{"/": link()}, map[string]http.HandlerFunc{"/robots.txt": hop("/r1"), "/r1": hop("/r2")})
	r := newRig(t)
	r.config.Delay, r.config.DelayGiven = 100*time.Millisecond, true
	r.crawl(t, s.URL+"/")
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.times) != 4 {
		t.Fatalf("asked for %v", s.log)
	}
	for i := 1; i < len(s.times); i++ {
		if gap := s.times[i].Sub(s.times[i-1]); gap < 95*time.Millisecond {
			t.Errorf("%s came %v after %s", s.log[i], gap, s.log[i-1])
		}
	}
}

// The limit holds whoever changes it, however often and from wherever: never are
// there more agents, nor more requests, than the greatest limit that was set,
// and never two on one host.
func TestAgentsLimitUnderFire(t *testing.T) {
	t.Parallel()
	const greatest, hosts = 5, 20
	var now, most atomic.Int32
	r := newRig(t)
	c := r.config
	c.Store, c.Archive, c.Agents, c.Once = r.store, r.archive, greatest, false
	var doubled atomic.Bool
	for range hosts {
		var here atomic.Int32
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			n := now.Add(1)
			defer now.Add(-1)
			if here.Add(1) > 1 {
				doubled.Store(true)
			}
			defer here.Add(-1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			time.Sleep(time.Millisecond)
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, link(req.URL.Path+"x"))
		}))
		t.Cleanup(srv.Close)
		u := mustParse(t, srv.URL+"/")
		c.Scopes.Add(Scope{Seed: u, Kind: "host"})
		if _, err := r.store.Add(context.Background(), []store.Found{{URL: u}}); err != nil {
			t.Fatal(err)
		}
	}
	var agents atomic.Int64
	agents.Store(greatest)
	c.Limit = func() int { return int(agents.Load()) }
	robot := New(c)
	done := make(chan error, 1)
	go func() { done <- robot.Run(context.Background()) }()
	end := time.Now().Add(2 * time.Second)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			draw := rng.New(uint64(w), "fire", 0)
			for time.Now().Before(end) {
				switch draw.IntN(8) {
				case 0:
					robot.Pause()
				case 1, 2:
					robot.Resume()
				default:
					agents.Store(int64(draw.IntN(greatest + 1)))
					robot.Wake()
				}
				if n := len(robot.Status().Agents); n > greatest {
					t.Errorf("%d agents live", n)
				}
				time.Sleep(time.Duration(draw.IntN(3000)) * time.Microsecond)
			}
		})
	}
	wg.Wait()
	if most.Load() > greatest || doubled.Load() {
		t.Errorf("%d requests at once, limit %d; two on one host: %v", most.Load(), greatest, doubled.Load())
	}
	agents.Store(greatest)
	robot.Resume()
	before := robot.Status().Answers
	for deadline := time.Now().Add(2 * time.Minute); robot.Status().Answers == before && time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
	}
	if robot.Status().Answers == before {
		t.Error("the robot does not go on")
	}
	robot.Drain()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if n := len(robot.Status().Agents); n != 0 {
		t.Errorf("%d agents live after the end", n)
	}
}

// A host that says when to come again is left alone until then, all of it.
func TestRetryAfterRestsHost(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		var refused atomic.Int64
		s := newSite(t, map[string]string{"/": link("/busy", "/a", "/b", "/c"), "/a": link(), "/b": link(), "/c": link()}, map[string]http.HandlerFunc{
			"/busy": func(w http.ResponseWriter, _ *http.Request) {
				if refused.CompareAndSwap(0, time.Now().UnixNano()) {
					w.Header().Set("Retry-After", "1")
					w.WriteHeader(status)
				}
			},
		})
		r := newRig(t)
		r.crawl(t, s.URL+"/")
		at := time.Unix(0, refused.Load())
		s.mu.Lock()
		for i, when := range s.times {
			if d := when.Sub(at); d > 5*time.Millisecond && d < 990*time.Millisecond {
				t.Errorf("status %d: %s was asked %v later", status, s.log[i], d)
			}
		}
		s.mu.Unlock()
		if s.count("/busy") != 2 || s.count("/a")+s.count("/b")+s.count("/c") != 3 {
			t.Errorf("status %d: asked for %v", status, s.log)
		}
	}
}
