package local

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/freshet/freshet/internal/rng"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/store/storetest"
	"github.com/freshet/freshet/weburl"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]Config{"default": {}, "table of a few URLs": {Known: 64}, "no room for the filter either": {Known: 64, Filter: 64}, "one host in memory": {Hosts: 1}, "three hosts, nothing else": {Hosts: 3, Known: 64, Filter: 64}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, func(t *testing.T) storetest.Opener {
				dir := filepath.Join(t.TempDir(), "store")
				return func(t *testing.T) store.Store {
					t.Helper()
					s, err := Open(dir, c)
					if err != nil {
						t.Fatal(err)
					}
					return s
				}
			})
		})
	}
}

func TestOpenErrors(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	s, err := Open(dir, Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Config{}); !errors.Is(err, store.ErrLocked) {
		t.Errorf("second open: %v", err)
	}
	if err := s.Put(context.Background(), "version", []byte("99")); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Config{}); !errors.Is(err, store.ErrVersion) {
		t.Errorf("other version: %v", err)
	}
}

// A host that was asked while the clock was a year ahead can be asked again soon
// after the clock was set right, in this process and in the next.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	s, err := Open(dir, Config{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, now := context.Background(), time.Now()
	ahead := now.Add(365 * 24 * time.Hour)
	for i := range 3 {
		u, err := weburl.Parse(fmt.Sprintf("http://a/%d", i))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Add(ctx, []store.Found{{URL: u}}); err != nil {
			t.Fatal(err)
		}
	}
	askHost := func(s *Store) {
		t.Helper()
		l, _, err := s.Claim(ctx, "n", ahead, time.Minute)
		if err != nil || l == nil {
			t.Fatalf("claim %v, %v", l, err)
		}
		l.Host.Next = ahead.Add(time.Second)
		_, err = s.Commit(ctx, l, &store.Batch{Host: l.Host})
		if err := errors.Join(err, s.Release(ctx, l)); err != nil {
			t.Fatal(err)
		}
		ahead = ahead.Add(time.Hour)
	}
	soon := now.Add(store.SetBackRest + 10*time.Second)
	again := func(s *Store, when string) {
		t.Helper()
		l, next, err := s.Claim(ctx, "n", now, time.Minute)
		if l != nil || err != nil || next.After(soon) {
			t.Errorf("%s: claimed %v, next %v, %v", when, l, next, err)
		}
		if l, _, err = s.Claim(ctx, "n", soon, time.Minute); err != nil || l == nil {
			t.Fatalf("%s: not claimed, %v", when, err)
		}
		if l.Host.Next.After(soon) {
			t.Errorf("%s: the lease rests until %v", when, l.Host.Next)
		}
		if err := s.Release(ctx, l); err != nil {
			t.Error(err)
		}
	}
	askHost(s)
	again(s, "same process")
	askHost(s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(dir, Config{}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	again(s, "next process")
}

// What was planned while the clock was ahead is planned anew once it is set back,
// in this process and in the next: a page that was visited is due after the same
// interval, one that failed or was refused within days, one that is being visited
// stays where it is; the log has no visits of the future. Pages planned before are
// not touched.
func TestPlansOfClockAhead(t *testing.T) {
	t.Parallel()
	for _, again := range []string{"same process", "next process"} {
		t.Run(again, func(t *testing.T) {
			t.Parallel()
			dir, ctx, now := filepath.Join(t.TempDir(), "store"), context.Background(), time.Now()
			clock := now
			c := Config{Hosts: 2, now: func() time.Time { return clock }}
			s, err := Open(dir, c)
			if err != nil {
				t.Fatal(err)
			}
			mended := storetest.PlanAhead(t, s, now)
			if again == "next process" {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				if s, err = Open(dir, c); err != nil {
					t.Fatal(err)
				}
			}
			defer s.Close()
			if _, _, err := s.Claim(ctx, "n", now, time.Minute); err != nil {
				t.Fatal(err)
			}
			mended(s, now, time.Second)
			// The order of the hosts follows.
			l, next, err := s.Claim(ctx, "n", now, time.Minute)
			if l != nil || err != nil || next.Sub(now).Round(time.Second) != time.Hour {
				t.Errorf("claimed %v, next %v, %v", l, next.Sub(now), err)
			}
			if back, err := s.visitedAhead(now); back || err != nil {
				t.Errorf("it would be done again: %v", err)
			}
		})
	}
}

// While agents visit pages others move them in their queues. In the end each page
// stands in the one place that its record names.
func TestMovesBesideVisits(t *testing.T) {
	t.Parallel()
	s, err := Open(filepath.Join(t.TempDir(), "store"), Config{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, now := context.Background(), time.Now()
	page := func(i int) weburl.URL {
		u, err := weburl.Parse(fmt.Sprintf("http://h%d/%d", i%3, i))
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	const pages = 120
	for i := range pages {
		if _, err := s.Add(ctx, []store.Found{{URL: page(i), Order: uint64(1000 + i)}}); err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	for w := range 3 {
		wg.Go(func() { // moves
			r := rng.New(uint64(w), "moves", 0)
			for range 400 {
				f := store.Found{URL: page(r.IntN(pages)), Order: 1 + r.Uint64N(1000), Promote: true, Due: now.Add(-time.Duration(r.IntN(1e9)))}
				if _, err := s.Add(ctx, []store.Found{f}); err != nil {
					t.Error(err)
				}
			}
		})
		wg.Go(func() { // visits
			for range 300 {
				if err := visitSome(ctx, s, now); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	want, got := map[string]bool{}, map[string]bool{}
	if err := s.Pages(ctx, func(p *store.Page) error {
		u, err := weburl.Parse(p.URL)
		want[string(slotKey(u.Key(), p.Slot))] = true
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for _, space := range []byte{newSpace, dueSpace} {
		if err := s.scanPrefix([]byte{space}, func(k, _ []byte) error { got[string(k)] = true; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	for k := range got {
		if !want[k] {
			t.Errorf("a queue entry %x of no page", k)
		}
	}
	for k := range want {
		if !got[k] {
			t.Errorf("no queue entry %x of a page", k)
		}
	}
}

// visitSome claims a host and visits some pages; some stay new, some are due at
// once.
func visitSome(ctx context.Context, s *Store, now time.Time) error {
	l, _, err := s.Claim(ctx, "n", now, time.Minute)
	if err != nil || l == nil {
		return err
	}
	pages, err := s.Take(ctx, l, 5, now)
	b := store.Batch{Host: l.Host}
	for i, p := range pages {
		if i%2 == 0 {
			p.State, p.Slot = store.OK, store.Slot{Due: now}
		} else {
			p.Slot.Order += 500
		}
		b.Visits = append(b.Visits, store.Visit{Page: p})
	}
	if err == nil {
		_, err = s.Commit(ctx, l, &b)
	}
	return errors.Join(err, s.Release(ctx, l))
}

func BenchmarkAdd(b *testing.B) {
	s, err := Open(filepath.Join(b.TempDir(), "store"), Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	const batch = 1000
	b.ReportAllocs()
	for i := 0; i < b.N; i += batch {
		found := make([]store.Found, batch)
		for j := range found {
			u, err := weburl.Parse(fmt.Sprintf("http://host%d.example/section/page-%d.html", (i+j)%50, i+j))
			if err != nil {
				b.Fatal(err)
			}
			found[j] = store.Found{URL: u, Order: uint64(i + j + 1)}
		}
		if _, err := s.Add(context.Background(), found); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkStore(b *testing.B) {
	storetest.Bench(b, func(b *testing.B) store.Store {
		s, err := Open(filepath.Join(b.TempDir(), "store"), Config{})
		if err != nil {
			b.Fatal(err)
		}
		return s
	})
}
