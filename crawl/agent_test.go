package crawl

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// failing is a store of which some calls fail.
type failing struct {
	store.Store
	claims atomic.Int64
	claim  int64 // that fails, 0 for none
	renew  bool  // every renewal fails
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

// Requests are broken off before a lease that cannot be renewed runs out.
func TestLeaseNotRenewed(t *testing.T) {
	t.Parallel()
	const ttl = 600 * time.Millisecond
	a := agent{robot: New(Config{Store: &failing{renew: true}, Lease: ttl}), lease: &store.Lease{Until: time.Now().Add(ttl)}}
	ctx, stop := a.hold(context.Background())
	defer stop()
	<-ctx.Done()
	if left := time.Until(a.lease.Until); left <= 0 {
		t.Errorf("the agent ended %v after its lease", -left)
	}
	if !errors.Is(context.Cause(ctx), store.ErrLease) {
		t.Error(context.Cause(ctx))
	}
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
	if d := time.Since(start); d > 1900*time.Millisecond { // the client gives up after 2 s
		t.Errorf("the run ended after %v", d)
	}
	if p := r.page(t, s.URL+"/"); p.State != store.Queued {
		t.Errorf("the page under way is %s", p.State)
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

// The cache of rules is bounded in bytes.
func TestRobotsCacheBounded(t *testing.T) {
	t.Parallel()
	var c robotsCache
	body := []byte(strings.Repeat("Disallow: /x\n", 30_000))
	for i := range 200 {
		c.get(strings.Repeat("h", i+1), &store.Robots{Status: 200, Body: body, Fetched: time.Unix(int64(i), 0)}, "bot")
		if n := len(c.of) * len(body); n > cachedRobotsBytes {
			t.Fatalf("%d bytes of robots.txt are kept", n)
		}
	}
}
