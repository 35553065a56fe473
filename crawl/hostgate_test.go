package crawl

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/freshet/freshet/crawl/politeness"
	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/internal/testport"
	"github.com/freshet/freshet/store"
)

// gaps reports requests to a site that came sooner after the one before than a delay,
// from the first n on, and those that came while another was under way.
func (s *site) gaps(t *testing.T, from int, delay time.Duration) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := max(from, 1); i < len(s.times); i++ {
		if gap := s.times[i].Sub(s.times[i-1]); gap < delay-20*time.Millisecond {
			t.Errorf("%s came %v after %s, want %v", s.log[i], gap, s.log[i-1], delay)
		}
	}
	if s.most > 1 {
		t.Errorf("%d requests at once", s.most)
	}
}

// A robots.txt that redirects to another host waits for that host: one request at a
// time, with its delay between them, whoever sends them.
func TestRobotsRedirectWaits(t *testing.T) {
	t.Parallel()
	slow := func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(300 * time.Millisecond)
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, link("/a", "/b", "/private/x"))
	}
	www := newSite(t, nil, map[string]http.HandlerFunc{"/": slow, "/a": slow, "/b": slow, "/private/x": slow, "/robots.txt": func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "User-agent: *\nCrawl-delay: 1\nDisallow: /private")
	}})
	var seeds []string
	for i := range 2 {
		bare := newSite(t, map[string]string{"/": link("/private/y"), "/private/y": link()}, map[string]http.HandlerFunc{"/robots.txt": func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(time.Duration(400+i*700) * time.Millisecond)
			http.Redirect(w, r, www.URL+"/robots.txt", http.StatusMovedPermanently)
		}})
		defer func() {
			if bare.count("/") != 1 || bare.count("/private/y") != 0 {
				t.Errorf("the rules behind the redirect do not hold: %v", bare.log)
			}
		}()
		seeds = append(seeds, bare.URL+"/")
	}
	newRig(t).crawl(t, append(seeds, www.URL+"/")...)
	www.gaps(t, 1, time.Second)
	if www.count("/robots.txt") < 2 || www.count("/b") != 1 {
		t.Errorf("asked for %v", www.log)
	}
}

// Many hosts whose robots.txt leads to one other host, which no source is about, do not
// come to it faster than its delay, and to nothing that its own robots.txt forbids.
func TestRobotsRedirectsToStranger(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		target, rules string
		delay         time.Duration
		forbidden     bool
	}{
		{"/robots.txt", "User-agent: *\nCrawl-delay: 1", time.Second, false},
		{"/expensive", "User-agent: *\nCrawl-delay: 1", time.Second, false},
		{"/expensive", "User-agent: *\nDisallow: /", 0, true},
	} {
		t.Run(tt.target+", "+tt.rules[len("User-agent: *\n"):], func(t *testing.T) {
			t.Parallel()
			victim := newSite(t, nil, map[string]http.HandlerFunc{
				"/robots.txt": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, tt.rules) },
				"/expensive":  func(w http.ResponseWriter, _ *http.Request) { time.Sleep(20 * time.Millisecond) },
			})
			r := newRig(t)
			r.config.Agents = 16
			var seeds []string
			for i := range 8 {
				s := newSite(t, map[string]string{"/": link()}, map[string]http.HandlerFunc{"/robots.txt": func(w http.ResponseWriter, r *http.Request) {
					http.Redirect(w, r, fmt.Sprintf("%s%s?%d", victim.URL, tt.target, i), http.StatusFound)
				}})
				seeds = append(seeds, s.URL+"/")
			}
			c, now := r.config, time.Now()
			c.Store, c.Archive, c.Once = r.store, r.archive, false
			var found []store.Found
			for _, s := range seeds {
				c.Scopes.Add(scopeFor(t, s, "host", false))
				found = append(found, store.Found{URL: mustParse(t, s), Due: now})
			}
			ctx, cancel := context.WithTimeout(t.Context(), 6*time.Second)
			defer cancel()
			if _, err := r.store.Add(ctx, found); err != nil {
				t.Fatal(err)
			}
			if err := New(c).Run(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			victim.gaps(t, 1, tt.delay)
			victim.mu.Lock()
			defer victim.mu.Unlock()
			if n := len(victim.log); n == 0 || tt.delay > 0 && n > 7 || tt.forbidden && n > 1 {
				t.Errorf("asked for %v", victim.log)
			}
		})
	}
}

// A robot that is stopped while a request is under way gives the host back as one that
// was asked: another process waits for its delay.
func TestStopKeepsDelay(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"/robots.txt", "/"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			const delay = time.Second
			asked := make(chan time.Time, 10)
			handler := func(w http.ResponseWriter, r *http.Request) {
				asked <- time.Now()
				select {
				case <-r.Context().Done():
				case <-time.After(5 * time.Second):
				}
			}
			s := newSite(t, map[string]string{"/": link()}, map[string]http.HandlerFunc{at: handler})
			r := newRig(t)
			u := mustParse(t, s.URL+"/")
			if _, err := r.store.Add(t.Context(), []store.Found{{URL: u, Order: 1}}); err != nil {
				t.Fatal(err)
			}
			robot := func(name string) *Robot {
				c := r.config
				c.Store, c.Archive, c.Node, c.Once, c.Delay, c.DelayGiven = r.store, r.archive, name, false, delay, true
				c.Scopes.Add(scopeFor(t, s.URL+"/", "host", false))
				return New(c)
			}
			two, one := robot("two"), robot("one")
			two.Pause()
			all, stop := context.WithCancel(t.Context())
			var runs sync.WaitGroup
			runs.Go(func() { _ = two.Run(all) }) // from before, so that its own start is no reason to wait
			ctx, cancel := context.WithCancel(all)
			ended := make(chan struct{})
			runs.Go(func() { defer close(ended); _ = one.Run(ctx) })
			first := <-asked
			time.Sleep(50 * time.Millisecond)
			cancel()
			<-ended
			two.Resume()
			if gap := (<-asked).Sub(first); gap < delay {
				t.Errorf("asked again after %v, want %v", gap, delay)
			}
			stop()
			runs.Wait()
		})
	}
}

// A robots.txt that is answered with 429 is not one without rules: it is asked for
// again when Retry-After says, and nothing else before.
func TestRobotsOverloaded(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		var first time.Time
		s := newSite(t, map[string]string{"/": link("/private/x"), "/private/x": link()}, map[string]http.HandlerFunc{"/robots.txt": func(w http.ResponseWriter, _ *http.Request) {
			if first.IsZero() {
				first = time.Now()
				w.Header().Set("Retry-After", "3")
				w.WriteHeader(status)
				return
			}
			if wait := time.Since(first); wait < 3*time.Second {
				t.Errorf("status %d: asked again after %v", status, wait)
			}
			fmt.Fprint(w, "User-agent: *\nDisallow: /private")
		}})
		newRig(t).crawl(t, s.URL+"/")
		s.mu.Lock()
		if want := []string{"/robots.txt", "/robots.txt", "/"}; !slices.Equal(s.log, want) {
			t.Errorf("status %d: asked for %v, want %v", status, s.log, want)
		}
		s.mu.Unlock()
	}
}

// Auxiliary requests of many at once come one at a time, keep the host's delay and its
// robots.txt, and are refused where too many wait.
func TestFetchAuxiliary(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil, map[string]http.HandlerFunc{
		"/robots.txt": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "User-agent: *\nCrawl-delay: 1\nDisallow: /admin/")
		},
		"/key.txt": func(w http.ResponseWriter, _ *http.Request) { time.Sleep(10 * time.Millisecond); fmt.Fprint(w, "key") },
	})
	r := New(newRig(t).config)
	if _, err := r.FetchAuxiliary(t.Context(), mustParse(t, s.URL+"/admin/search?q=1"), "text/plain"); err == nil {
		t.Error("what robots.txt forbids was fetched")
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	good, refused := 0, 0
	for range 20 {
		wg.Go(func() {
			_, err := r.FetchAuxiliary(t.Context(), mustParse(t, s.URL+"/key.txt"), "text/plain")
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				good++
			case errors.Is(err, politeness.ErrHostRests):
				refused++
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	s.gaps(t, 1, time.Second)
	if good == 0 || good > 2 || refused != 20-good || s.count("/key.txt") != good || s.count("/admin/search?q=1") != 0 {
		t.Errorf("%d fetched, %d refused, asked for %v", good, refused, s.log)
	}
}

// A next time that a clock far ahead has left in a host's record holds up no auxiliary
// request.
func TestAuxiliaryAfterClockAhead(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		ahead time.Duration
		waits bool
	}{{30 * 24 * time.Hour, false}, {time.Hour, true}, {-time.Hour, false}} {
		s := newSite(t, nil, map[string]http.HandlerFunc{"/key.txt": func(http.ResponseWriter, *http.Request) {}})
		r := newRig(t)
		c := r.config
		c.Store = r.store
		if _, err := r.store.Add(t.Context(), []store.Found{{URL: mustParse(t, s.URL+"/")}}); err != nil {
			t.Fatal(err)
		}
		l, _, err := r.store.Claim(t.Context(), "n", time.Now(), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		h := l.Host
		h.Next = time.Now().Add(tt.ahead)
		if _, err := r.store.Commit(t.Context(), l, &store.Batch{Host: h}); err != nil {
			t.Fatal(err)
		}
		_, err = New(c).FetchAuxiliary(t.Context(), mustParse(t, s.URL+"/key.txt"), "text/plain")
		if errors.Is(err, politeness.ErrHostRests) != tt.waits || err != nil && !tt.waits {
			t.Errorf("next time %v ahead: got %v", tt.ahead, err)
		}
	}
}

// names is a name server for which all names under .test are one address.
type names struct{ address string }

// ServeDNS implements dns.Handler.
func (n names) ServeDNS(w dns.ResponseWriter, q *dns.Msg) {
	m := new(dns.Msg)
	m.SetReply(q)
	if name := q.Question[0].Name; q.Question[0].Qtype == dns.TypeA && strings.HasSuffix(name, ".test.") {
		m.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 300}, A: net.ParseIP(n.address)}}
	}
	_ = w.WriteMsg(m)
}

// resolving gives a rig a client for which all names under .test are one address.
func (r *rig) resolving(t *testing.T, address string) {
	t.Helper()
	free, err := testport.Free()
	if err != nil {
		t.Fatal(err)
	}
	pc, err := net.ListenPacket("udp4", fmt.Sprintf("127.0.0.1:%d", free))
	if err != nil {
		t.Fatal(err)
	}
	s := &dns.Server{PacketConn: pc, Handler: names{address}}
	go func() { _ = s.ActivateAndServe() }()
	t.Cleanup(func() { _ = s.Shutdown() })
	if r.config.Fetch, err = fetch.New(fetch.Config{UserAgent: "freshet-test", AllowPrivate: true, Resolver: pc.LocalAddr().String()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.config.Fetch.Close)
}

// arrivals are requests to servers at one address.
type arrivals struct {
	mu    sync.Mutex
	times []time.Time
	hosts map[string]int
}

// serve starts a server that notes requests.
func (a *arrivals) serve(t *testing.T) (port string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.times = append(a.times, time.Now())
		if a.hosts[r.Host]++; r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, link(), r.Host)
	}))
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u.Port()
}

// max is the greatest number of requests within a time.
func (a *arrivals) max(within time.Duration) (n int) {
	for i := range a.times {
		j := i
		for j < len(a.times) && a.times[j].Sub(a.times[i]) < within {
			j++
		}
		n = max(n, j-i)
	}
	return n
}

// However many names and ports of one domain lead to an address, its servers are asked
// as one host is; hosts of different domains share it by places.
func TestServersAreAskedAsOneHost(t *testing.T) {
	t.Parallel()
	const delay = 300 * time.Millisecond
	for _, tt := range []struct {
		name  string
		hosts func(ports []string) []string
		max   int // within a delay
	}{
		{"names of one domain", func(p []string) (out []string) {
			for i := range 6 {
				out = append(out, fmt.Sprintf("http://h%d.evil.test:%s/", i, p[0]))
			}
			return out
		}, 1},
		{"ports of one name", func(p []string) (out []string) {
			for i := range 4 {
				out = append(out, fmt.Sprintf("http://evil.test:%s/", p[i]))
			}
			return out
		}, 1},
		{"names and ports", func(p []string) (out []string) {
			for i := range 6 {
				out = append(out, fmt.Sprintf("http://a.b%d.evil.test:%s/", i, p[i%4]))
			}
			return out
		}, 1},
		{"domains", func(p []string) (out []string) {
			for i := range 12 {
				out = append(out, fmt.Sprintf("http://site%d.test:%s/", i, p[i%4]))
			}
			return out
		}, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			all := &arrivals{hosts: map[string]int{}}
			var ports []string
			for range 4 {
				ports = append(ports, all.serve(t))
			}
			hosts := tt.hosts(ports)
			from := newSite(t, map[string]string{"/": link(hosts...)}, nil)
			r := newRig(t)
			r.resolving(t, "127.0.0.1")
			r.scope, r.config.Agents, r.config.PerAddress = "any", 16, 3
			r.config.Delay, r.config.DelayGiven = delay, true
			start := time.Now()
			r.crawl(t, from.URL+"/")
			if n := all.max(delay - 30*time.Millisecond); n > tt.max {
				t.Errorf("%d requests within %v, want at most %d", n, delay, tt.max)
			}
			if len(all.hosts) != len(hosts) {
				t.Errorf("%d of %d hosts were asked: %v", len(all.hosts), len(hosts), all.hosts)
			}
			t.Logf("%d requests in %v", len(all.times), time.Since(start))
		})
	}
}

// Links to the ports of other services are not followed, unless a source names them.
func TestBlockedPorts(t *testing.T) {
	t.Parallel()
	var s Scopes
	s.Add(scopeFor(t, "http://a.example/", "any", false))
	s.Add(scopeFor(t, "http://b.example:6667/", "host", false))
	for u, want := range map[string]store.Reason{
		"http://c.example/": "", "http://c.example:8080/": "", "https://c.example:80/": "", "http://c.example:443/": "",
		"http://c.example:25/": store.ReasonBlockedPort, "http://c.example:6667/": store.ReasonBlockedPort, "https://c.example:22/": store.ReasonBlockedPort,
		"http://[2001:db8::1]:25/": store.ReasonBlockedPort, "http://[2001:db8::25]/": "", "http://c.example:0/": store.ReasonBlockedPort,
		"http://b.example:6667/x": "", "http://b.example:6668/x": store.ReasonBlockedPort,
	} {
		if got := s.Check(mustParse(t, u), 1); got != want {
			t.Errorf("%s: got %q, want %q", u, got, want)
		}
	}
	r := New(newRig(t).config)
	_, err := testAgent(r, store.Host{Name: "a.example"}).access.GetAuxiliary(t.Context(), fetch.Request{URL: mustParse(t, "http://127.0.0.1:25/")})
	if !errors.Is(err, errBlockedPort) {
		t.Errorf("auxiliary request: %v", err)
	}
}
