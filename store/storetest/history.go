package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/freshet/freshet/store"
)

// A batch with one bad visit changes nothing, and what it would have added can
// be added later.
func testAtomic(t *testing.T, open Opener) {
	s := open(t)
	defer closeStore(t, s)
	ctx := context.Background()
	mustAdd(t, s, "http://a/1", "http://b/1")
	l := mustClaim(t, s, start)
	p := mustTake(t, s, l, 1, start)
	foreign := p[0]
	foreign.Key, foreign.URL = mustParseURL(t, "http://c/1").Key(), "http://c/1"
	b := &store.Batch{Host: l.Host, Visits: []store.Visit{visitedPage(p[0], start, true), visitedPage(foreign, start, true)}, Found: foundURLs(t, "http://d/")}
	if _, err := s.Commit(ctx, l, b); err == nil {
		t.Fatal("a page of another host was committed")
	}
	if got, err := s.Page(ctx, mustParseURL(t, p[0].URL)); err != nil || got.State != store.Queued {
		t.Errorf("page %+v, %v", got, err)
	}
	if n := mustAdd(t, s, "http://d/"); n != 1 {
		t.Errorf("added %d", n)
	}
	if c, _ := s.Changes(ctx, 0, 10); len(c) != 0 {
		t.Errorf("feed %v", c)
	}
}

// Everything but leases survives a restart.
func testRestart(t *testing.T, open Opener) {
	s := open(t)
	mustAdd(t, s, "http://a/1", "http://a/2", "http://b/1")
	l := mustClaim(t, s, start)
	if l.Host.Name == "b" { // hosts that wait equally long come in any order
		other := l
		l = mustClaim(t, s, start)
		mustRelease(t, s, other)
	}
	p := mustTake(t, s, l, 1, start)
	host := store.Host{Next: start.Add(time.Minute), Delay: time.Second, Robots: []store.Robots{{Scheme: "http", Status: 200, Body: []byte("x"), Fetched: start}}}
	mustCommit(t, s, l, &store.Batch{Host: host, Visits: []store.Visit{visitedPage(p[0], start, true)}})
	closeStore(t, s)
	s = open(t)
	defer closeStore(t, s)
	st, err := s.Stats(context.Background())
	if err != nil || st.URLs != 3 || st.New != 2 || st.Hosts != 2 || st.States[store.OK] != 1 {
		t.Errorf("stats %+v, %v", st, err)
	}
	if n := mustAdd(t, s, "http://a/1", "http://a/2", "http://b/1"); n != 0 {
		t.Errorf("%d known URLs were added again", n)
	}
	names := map[string]store.Host{}
	for range 2 {
		l := mustClaim(t, s, start.Add(2*time.Minute))
		if l == nil {
			t.Fatal("no lease after a restart")
		}
		names[l.Host.Name] = l.Host
		if got := mustTake(t, s, l, 5, start.Add(2*time.Minute)); len(got) != 1 {
			t.Errorf("%s: took %s", l.Host.Name, joinURLs(got))
		}
	}
	if h := names["a"]; h.Delay != time.Second || len(h.Robots) != 1 || string(h.Robots[0].Body) != "x" {
		t.Errorf("host %+v", h)
	}
}

// Many agents at once: each URL is fetched once, no host is worked by two.
func testConcurrent(t *testing.T, open Opener) {
	s := open(t)
	defer closeStore(t, s)
	ctx := context.Background()
	mustAdd(t, s, "http://h0/0")
	var mu sync.Mutex
	fetched, busy := map[string]int{}, map[string]bool{}
	var wg sync.WaitGroup
	for agent := range 6 {
		wg.Go(func() {
			for idle := 0; idle < 200; {
				l, _, err := s.Claim(ctx, fmt.Sprint(agent), start, ttl)
				if err != nil {
					t.Error(err)
					return
				}
				if l == nil {
					idle++
					time.Sleep(time.Millisecond)
					continue
				}
				idle = 0
				mu.Lock()
				if busy[l.Host.Name] {
					t.Errorf("%s is worked by two", l.Host.Name)
				}
				busy[l.Host.Name] = true
				mu.Unlock()
				pages, err := s.Take(ctx, l, 3, start)
				if err != nil {
					t.Error(err)
					return
				}
				b := &store.Batch{Host: l.Host}
				for _, p := range pages {
					mu.Lock()
					fetched[p.URL]++
					mu.Unlock()
					b.Visits = append(b.Visits, visitedPage(p, start, true))
					var n int
					_, _ = fmt.Sscanf(p.URL[strings.LastIndexByte(p.URL, '/')+1:], "%d", &n)
					for k := 1; k <= 3; k++ {
						if m := 3*n + k; m < 300 {
							b.Found = append(b.Found, store.Found{URL: mustParseURL(t, fmt.Sprintf("http://h%d/%d", m%7, m)), Order: uint64(m)})
						}
					}
				}
				if _, err := s.Commit(ctx, l, b); err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				busy[l.Host.Name] = false
				mu.Unlock()
				if err := s.Release(ctx, l); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if len(fetched) != 300 {
		t.Errorf("%d of 300 pages were fetched", len(fetched))
	}
	for u, n := range fetched {
		if n != 1 {
			t.Errorf("%s was fetched %d times", u, n)
		}
	}
	changes, err := s.Changes(ctx, 0, 1000)
	if err != nil || len(changes) != 300 {
		t.Errorf("feed has %d of 300 changes, %v", len(changes), err)
	}
}

func testModel(t *testing.T, open Opener) { History(t, open, 5, 400) }

// History runs a random history of so many steps against a model in memory: at
// every moment the same URLs are known, new and due. The store is closed and
// opened again now and then: an opener whose stores crash instead of closing
// makes it a test of what survives.
func History(t *testing.T, open Opener, seed uint64, steps int) {
	t.Helper()
	s := open(t)
	ctx := context.Background()
	r := rand.New(rand.NewPCG(seed, 6))
	known := map[string]time.Time{} // URL -> due; zero: never visited
	now := start
	for step := range steps {
		switch r.IntN(5) {
		case 0:
			u := fmt.Sprintf("http://h%d/%d", r.IntN(4), r.IntN(60))
			if _, ok := known[u]; !ok {
				known[u] = time.Time{}
			}
			mustAdd(t, s, u)
		case 1:
			now = now.Add(time.Duration(r.IntN(40)) * time.Minute)
		case 2:
			if r.IntN(8) == 0 {
				closeStore(t, s)
				s = open(t)
			}
		default:
			l := mustClaim(t, s, now)
			if l == nil {
				for u, due := range known {
					if due.IsZero() || !due.After(now) {
						t.Fatalf("step %d: %s is due, but nothing is claimed", step, u)
					}
				}
				continue
			}
			pages := mustTake(t, s, l, 1+r.IntN(4), now)
			b := &store.Batch{Host: l.Host}
			for _, p := range pages {
				if due, ok := known[p.URL]; !ok || due.After(now) {
					t.Fatalf("step %d: took %s, due %v at %v", step, p.URL, due, now)
				}
				if r.IntN(3) > 0 { // else it is given back unvisited
					b.Visits = append(b.Visits, visitedPage(p, now, r.IntN(2) == 0))
					known[p.URL] = now.Add(time.Hour)
				}
			}
			for range r.IntN(4) { // links, and pages said to have changed, on this host and others
				f := store.Found{URL: mustParseURL(t, fmt.Sprintf("http://h%d/%d", r.IntN(4), r.IntN(60))), Due: now.Add(time.Duration(r.IntN(90)) * time.Minute)}
				u := f.URL.String()
				due, ok := known[u]
				switch {
				case slices.ContainsFunc(pages, func(p store.Page) bool { return p.URL == u }): // being visited
					continue
				case !ok:
					known[u] = time.Time{}
				case f.Due.Before(due):
					known[u] = f.Due
				}
				b.Found = append(b.Found, f)
			}
			mustCommit(t, s, l, b)
			mustRelease(t, s, l)
		}
		fresh := int64(0)
		for _, due := range known {
			if due.IsZero() {
				fresh++
			}
		}
		if st, err := s.Stats(ctx); err != nil || st.URLs != int64(len(known)) || st.New != fresh {
			t.Fatalf("step %d: stats %+v, want %d URLs, %d new; %v", step, st, len(known), fresh, err)
		}
	}
	seen := 0
	if err := s.Pages(ctx, func(p *store.Page) error {
		seen++
		if due, ok := known[p.URL]; !ok || !due.Equal(p.Slot.Due) {
			t.Errorf("%s is due %v, want %v", p.URL, p.Slot.Due, due)
		}
		return nil
	}); err != nil || seen != len(known) {
		t.Errorf("%d of %d pages, %v", seen, len(known), err)
	}
	closeStore(t, s)
}
