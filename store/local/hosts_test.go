package local

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/freshet/freshet/internal/rng"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// twins are stores that differ in how many hosts have room in memory, and are
// told and asked the same.
type twins struct {
	t      *testing.T
	dirs   []string
	rooms  []int
	stores []*Store
	rng    *rand.Rand
	now    time.Time
	leases [][]*store.Lease // by claim, then by store
}

func (w *twins) open() {
	w.t.Helper()
	w.stores = nil
	for i, dir := range w.dirs {
		s, err := Open(dir, Config{Hosts: w.rooms[i], NoSync: true, now: func() time.Time { return w.now }})
		if err != nil {
			w.t.Fatal(err)
		}
		w.stores = append(w.stores, s)
	}
}

func (w *twins) close() {
	w.t.Helper()
	for _, s := range w.stores {
		if err := s.Close(); err != nil {
			w.t.Fatal(err)
		}
	}
	w.leases = nil
}

// same calls f for each store and fails where the answers differ.
func (w *twins) same(what string, f func(i int, s *Store) (string, error)) string {
	w.t.Helper()
	var first string
	for i, s := range w.stores {
		got, err := f(i, s)
		if err != nil {
			w.t.Fatalf("%s with room for %d hosts: %v", what, w.rooms[i], err)
		}
		if i == 0 {
			first = got
		} else if got != first {
			w.t.Fatalf("%s: with room for %d hosts\n%s\nfor %d\n%s", what, w.rooms[0], first, w.rooms[i], got)
		}
	}
	return first
}

func (w *twins) url(hosts int) weburl.URL {
	u, err := weburl.Parse(fmt.Sprintf("http://h%d.example/%d", w.rng.IntN(hosts), w.rng.IntN(40)))
	if err != nil {
		w.t.Fatal(err)
	}
	return u
}

func (w *twins) found(hosts int) (out []store.Found) {
	for range w.rng.IntN(12) {
		f := store.Found{URL: w.url(hosts), Order: uint64(1 + w.rng.IntN(5)), Promote: w.rng.IntN(4) == 0}
		if w.rng.IntN(4) == 0 {
			f.Due = w.now.Add(time.Duration(w.rng.IntN(100)) * time.Second)
		}
		out = append(out, f)
	}
	return out
}

// claim claims a host in each store: the same one.
func (w *twins) claim() {
	leases := make([]*store.Lease, len(w.stores))
	got := w.same("claim", func(i int, s *Store) (string, error) {
		l, next, err := s.Claim(context.Background(), "n", w.now, 90*time.Second)
		leases[i] = l
		if l == nil {
			return "none until " + next.String(), err
		}
		return fmt.Sprintf("%s, next %d, %d new", l.Host.Name, l.Host.Next.UnixNano(), l.New), err
	})
	if leases[0] != nil {
		w.leases = append(w.leases, leases)
	}
	_ = got
}

// work takes pages of a lease and commits some of them.
func (w *twins) work(hosts int) {
	if len(w.leases) == 0 {
		return
	}
	at := w.rng.IntN(len(w.leases))
	leases, ctx := w.leases[at], context.Background()
	n, seed := 1+w.rng.IntN(5), w.rng.Uint64()
	found := w.found(hosts)
	w.same("work", func(i int, s *Store) (string, error) {
		l, r := leases[i], rng.New(seed, "work", 0)
		pages, err := s.Take(ctx, l, n, w.now)
		if errors.Is(err, store.ErrLease) {
			return "lost", nil
		}
		b := &store.Batch{Host: l.Host, Found: found}
		b.Host.Next = w.now.Add(time.Duration(r.IntN(200)) * 100 * time.Millisecond)
		out := fmt.Sprint(l.Host.Name, err)
		for _, p := range pages {
			out += " " + p.URL
			p.State, p.Slot = store.OK, store.Slot{}
			switch r.IntN(4) {
			case 0:
				p.Slot.Order = uint64(1 + r.IntN(9))
			case 1, 2:
				p.Slot.Due = w.now.Add(time.Duration(r.IntN(300)) * time.Second)
			}
			b.Visits = append(b.Visits, store.Visit{Page: p, Arrived: w.now})
		}
		added, err := s.Commit(ctx, l, b)
		return fmt.Sprint(out, added), err
	})
	if w.rng.IntN(3) > 0 {
		w.same("release", func(i int, s *Store) (string, error) {
			if err := s.Release(ctx, leases[i]); err != nil && !errors.Is(err, store.ErrLease) {
				return "", err
			}
			return "", nil
		})
		w.leases = append(w.leases[:at], w.leases[at+1:]...)
	}
}

// With room for one host, for few and for all, the same hosts are claimed in the
// same order with the same rests, the same pages taken and the same URLs known;
// also when leases run out, the clock is set back and the store is opened again.
func TestRoomForHosts(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			const hosts = 60
			w := &twins{t: t, rooms: []int{1 << 20, 1, 5, 40}, rng: rng.New(seed, "hosts", 0), now: time.Now()}
			for range w.rooms {
				w.dirs = append(w.dirs, filepath.Join(t.TempDir(), "store"))
			}
			w.open()
			for step := range 1500 {
				switch k := w.rng.IntN(20); {
				case k < 4:
					found := w.found(hosts)
					w.same("add", func(_ int, s *Store) (string, error) {
						n, err := s.Add(context.Background(), found)
						return fmt.Sprint(n), err
					})
				case k < 10:
					w.claim()
				case k < 19:
					w.work(hosts)
				default:
					w.now = w.now.Add(time.Duration(w.rng.IntN(60_000)) * time.Millisecond)
				}
				switch {
				case step%400 == 399:
					w.close()
					w.open()
				case step%550 == 549: // back by more than any host may rest
					w.now = w.now.Add(-40 * time.Hour)
				case step%550 == 270:
					w.now = w.now.Add(40 * time.Hour)
				}
				w.same("stats", func(i int, s *Store) (string, error) {
					st, err := s.Stats(context.Background())
					st.Due = 0 // about
					s.mu.Lock()
					defer s.mu.Unlock()
					if free := len(s.hosts.in) - len(s.leases); free > w.rooms[i] {
						return "", fmt.Errorf("%d hosts in memory", free)
					}
					return fmt.Sprintf("%+v", st), err
				})
			}
			if w.stores[1].hosts.parked.n == 0 {
				t.Error("no host was parked")
			}
			w.close()
		})
	}
}

// What a status tells of hosts with work counts those on disk.
func TestParkedAreCounted(t *testing.T) {
	t.Parallel()
	s, err := Open(filepath.Join(t.TempDir(), "store"), Config{Hosts: 2, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, now := context.Background(), time.Now()
	for i := range 30 {
		u, _ := weburl.Parse(fmt.Sprintf("http://h%d/", i))
		if _, err := s.Add(ctx, []store.Found{{URL: u}}); err != nil {
			t.Fatal(err)
		}
	}
	want := func(when string, due int64) {
		t.Helper()
		if st, err := s.Stats(ctx); err != nil || st.Due != due || st.Hosts != 30 {
			t.Errorf("%s: %d hosts with work, want %d (%+v, %v)", when, st.Due, due, st, err)
		}
	}
	want("all are new", 30)
	// Ten are visited and due in an hour, ten soon, ten rest although they are due.
	for i := range 30 {
		l, _, err := s.Claim(ctx, "n", now, time.Minute)
		if err != nil || l == nil {
			t.Fatal(l, err)
		}
		pages, err := s.Take(ctx, l, 1, now)
		if err != nil || len(pages) != 1 {
			t.Fatal(pages, err)
		}
		p := pages[0]
		p.State, p.Slot = store.OK, store.Slot{Due: now.Add([]time.Duration{time.Hour, 1500 * time.Millisecond, -time.Second}[i%3])}
		if i%3 == 2 {
			l.Host.Next = now.Add(time.Hour)
		}
		if _, err := s.Commit(ctx, l, &store.Batch{Host: l.Host, Visits: []store.Visit{{Page: p}}}); err != nil {
			t.Fatal(err)
		}
		if err := s.Release(ctx, l); err != nil {
			t.Fatal(err)
		}
	}
	want("ten rest", 10)
	time.Sleep(time.Until(now.Add(1600 * time.Millisecond)))
	want("ten more are due", 20)
	for range 10 {
		if l, _, err := s.Claim(ctx, "n", time.Now(), time.Minute); err != nil || l == nil {
			t.Fatal(l, err)
		}
	}
	want("at work", 20)
	if l, next, err := s.Claim(ctx, "n", time.Now(), time.Minute); l != nil || err != nil || next.Before(now.Add(time.Hour-time.Second)) {
		t.Errorf("claimed %v, next %v, %v", l, next, err)
	}
}
