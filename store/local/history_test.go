package local

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// checkQueues compares what is kept in memory of hosts with their queues on disk: each
// counts its new pages, and none of those that are not out stands before low.
func checkQueues(t *testing.T, s *Store) {
	t.Helper()
	for _, h := range s.hosts.in {
		fresh := int64(0)
		if err := s.scanPrefix(append([]byte{newSpace}, h.key[:]...), func(k, _ []byte) error {
			fresh++
			key, at := pageOf(k)
			if _, out := h.taken[key]; !out && at < h.low {
				t.Errorf("host %x: a page stands at %d, the first was to stand at %d", h.key, at, h.low)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if fresh != h.fresh {
			t.Errorf("host %x: got %d new pages, counted %d", h.key, fresh, h.fresh)
		}
	}
}

// Whatever many agents do with a store, what it keeps in memory of hosts agrees with
// its queues.
func TestQueuesAgree(t *testing.T) {
	t.Parallel()
	for seed, hosts := range []int{3, 100} {
		t.Run(fmt.Sprint(hosts, " hosts in memory"), func(t *testing.T) {
			t.Parallel()
			s, err := Open(filepath.Join(t.TempDir(), "store"), Config{NoSync: true, Hosts: hosts})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			h := history{s: s, r: rand.New(rand.NewPCG(uint64(seed), 5)), now: time.Unix(1e9, 0)}
			for range 600 {
				if err := h.step(t.Context()); err != nil {
					t.Fatal(err)
				}
				if checkQueues(t, s); t.Failed() {
					t.FailNow()
				}
			}
			if h.visited < 100 {
				t.Errorf("only %d pages were visited", h.visited)
			}
		})
	}
}

// A lease that runs out while a batch under it is being made is lost, or holds
// until the batch is written; no page is lost either way.
func TestLeaseEndsDuringCommit(t *testing.T) {
	t.Parallel()
	s, err := Open(filepath.Join(t.TempDir(), "store"), Config{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, now := t.Context(), time.Unix(1e9, 0)
	var f []store.Found
	for i := range 400 {
		u, err := weburl.Parse(fmt.Sprintf("http://h.example/%d", i))
		if err != nil {
			t.Fatal(err)
		}
		f = append(f, store.Found{URL: u})
	}
	if _, err := s.Add(ctx, f); err != nil {
		t.Fatal(err)
	}
	visited := 0
	for range 30 {
		l, _, err := s.Claim(ctx, "n", now, time.Minute)
		if err != nil || l == nil {
			t.Fatal(l, err)
		}
		pages, err := s.Take(ctx, l, 10, now)
		if err != nil || len(pages) != 10 {
			t.Fatalf("%d pages, %v", len(pages), err)
		}
		b := store.Batch{Host: l.Host}
		for _, p := range pages {
			p.State, p.Slot = store.OK, store.Slot{Due: now.Add(1000 * time.Hour)}
			b.Visits = append(b.Visits, store.Visit{Page: p})
		}
		done := make(chan error)
		go func() {
			_, err := s.Commit(ctx, l, &b)
			done <- err
		}()
		now = now.Add(2 * time.Minute)
		next, _, err := s.Claim(ctx, "n", now, time.Minute)
		if cerr := <-done; cerr == nil {
			visited += 10
		} else if !errors.Is(cerr, store.ErrLease) {
			t.Fatal(cerr)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range []*store.Lease{l, next} {
			if l == nil {
				continue
			}
			if err := s.Release(ctx, l); err != nil && !errors.Is(err, store.ErrLease) {
				t.Fatal(err)
			}
		}
		checkQueues(t, s)
	}
	if st, err := s.Stats(ctx); err != nil || st.States[store.OK] != int64(visited) || st.New != int64(400-visited) {
		t.Errorf("%d visited: %+v, %v", visited, st, err)
	}
}

// history works a store as many agents would.
type history struct {
	s       *Store
	r       *rand.Rand
	now     time.Time
	leases  []*store.Lease
	out     [][]store.Page // of the leases
	visited int
}

func (h *history) found(n int) (f []store.Found) {
	for range n {
		u, err := weburl.Parse(fmt.Sprintf("http://h%d.example/%d", h.r.IntN(6), h.r.IntN(400)))
		if err != nil {
			panic(err)
		}
		f = append(f, store.Found{URL: u, Order: h.r.Uint64N(5), Depth: h.r.IntN(3), From: "http://from.example/", Promote: h.r.IntN(40) == 0})
	}
	return f
}

func (h *history) step(ctx context.Context) error {
	h.now = h.now.Add(time.Second)
	i := 0
	if len(h.leases) > 0 {
		i = h.r.IntN(len(h.leases))
	}
	switch what := h.r.IntN(10); {
	case what == 0:
		_, err := h.s.Add(ctx, h.found(1+h.r.IntN(8)))
		return err
	case len(h.leases) == 0 || what == 1:
		l, _, err := h.s.Claim(ctx, "n", h.now, 50*time.Second)
		if l != nil {
			h.leases, h.out = append(h.leases, l), append(h.out, nil)
		}
		return err
	case what <= 4:
		pages, err := h.s.Take(ctx, h.leases[i], 1+h.r.IntN(6), h.now)
		h.out[i] = append(h.out[i], pages...)
		return h.lost(i, err)
	case what <= 8:
		n := h.r.IntN(len(h.out[i]) + 1)
		b := store.Batch{Host: h.leases[i].Host, Found: h.found(h.r.IntN(6))}
		for _, p := range h.out[i][:n] {
			p.State, p.Slot = store.OK, store.Slot{Due: h.now.Add(time.Duration(h.r.IntN(300)) * time.Second)}
			if h.r.IntN(30) == 0 {
				p.Slot = store.Slot{Order: 1 + h.r.Uint64N(9)}
			}
			b.Visits = append(b.Visits, store.Visit{Page: p, Arrived: h.now})
		}
		h.visited += n
		h.out[i] = h.out[i][n:]
		_, err := h.s.Commit(ctx, h.leases[i], &b)
		return h.lost(i, err)
	default:
		err := h.s.Release(ctx, h.leases[i])
		if err == nil {
			err = store.ErrLease
		}
		return h.lost(i, err)
	}
}

// lost forgets a lease that has ended.
func (h *history) lost(i int, err error) error {
	if !errors.Is(err, store.ErrLease) {
		return err
	}
	h.leases, h.out = slices.Delete(h.leases, i, i+1), slices.Delete(h.out, i, i+1)
	return nil
}
