package clustertest

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/freshet/freshet/cluster"
)

// Processes that spend from one budget are together as fast as it allows.
func testBudget(t *testing.T, r *rig) {
	ctx := t.Context()
	all := r.processes(t, 2)
	const each, cost = 25, 20 * time.Millisecond
	var mu sync.Mutex
	var wg sync.WaitGroup
	var starts, answers []time.Time
	began := time.Now()
	for i := range 8 {
		c := all[i%len(all)]
		wg.Go(func() {
			for range each {
				asked := time.Now()
				from, err := c.Spend(ctx, "test", cost)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				starts, answers = append(starts, from), append(answers, from.Add(time.Since(asked)))
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	// A time is counted from the question; the one that another clock meant comes later
	// by no more than the answer took.
	first, last := slices.MinFunc(starts, time.Time.Compare), slices.MaxFunc(answers, time.Time.Compare)
	want := time.Duration(len(starts)-1) * cost
	if got := last.Sub(first); got < want || first.Before(began) {
		t.Errorf("%d times of %v begin within %v, the first %v after the start; want within %v at least and after the start", len(starts), cost, got, first.Sub(began), want)
	}
	asked := time.Now()
	from, err := all[0].Spend(ctx, "another", 0)
	if err != nil || from.Before(asked) || from.Sub(asked) > cost*each {
		t.Errorf("a budget of which nothing was spent begins %v after it is asked, %v; want at once", from.Sub(asked), err)
	}
}

// enter takes a slot of an address, nil if none is free.
func enter(t *testing.T, c cluster.Cluster, address string, slots int, ttl time.Duration) (release func()) {
	t.Helper()
	leave, err := c.EnterAddress(t.Context(), address, slots, ttl)
	if err != nil {
		t.Error(err)
	}
	if leave == nil {
		return nil
	}
	return func() { leave(t.Context()) }
}

// An address has so many slots for all processes, whoever waits gets one, and those
// that nobody gave back come free.
func testAddresses(t *testing.T, r *rig) {
	all := r.processes(t, 2)
	const slots = 3
	var mu sync.Mutex
	var wg sync.WaitGroup
	busy, peak := 0, 0
	for i := range 12 {
		c := all[i%len(all)]
		wg.Go(func() {
			for had := 0; had < 5 && !t.Failed(); {
				release := enter(t, c, "192.0.2.1", slots, time.Minute)
				if release == nil { // all taken
					time.Sleep(time.Millisecond)
					continue
				}
				had++
				mu.Lock()
				busy++
				peak = max(peak, busy)
				mu.Unlock()
				time.Sleep(time.Millisecond)
				mu.Lock()
				busy--
				mu.Unlock()
				release()
			}
		})
	}
	wg.Wait()
	if peak > slots {
		t.Errorf("%d slots were held at once, want %d at most", peak, slots)
	}
	for i := range slots + 1 {
		if got := enter(t, all[i%len(all)], "192.0.2.2", slots, time.Hour) != nil; got != (i < slots) {
			t.Errorf("slot %d of %d: %v, want %v", i, slots, got, i < slots)
		}
	}
	if enter(t, all[len(all)-1], "192.0.2.3", slots, time.Minute) == nil {
		t.Error("a slot of another address is refused")
	}
	const ttl = 50 * time.Millisecond
	taken := time.Now()
	forgotten := enter(t, all[0], "192.0.2.4", 1, ttl)
	var second func()
	eventually(t, "a slot that was not given back", func() string {
		if second = enter(t, all[len(all)-1], "192.0.2.4", 1, time.Minute); second == nil {
			return "is not free"
		}
		return ""
	})
	if held := time.Since(taken); held < ttl {
		t.Errorf("a slot for %v was another's after %v", ttl, held)
	}
	forgotten() // too late: it is another's
	if enter(t, all[0], "192.0.2.4", 1, time.Minute) != nil {
		t.Error("who gave a slot back too late gave that of another")
	}
}

// Of concurrent updates of a setting none is lost, and one that fails changes nothing.
func testSettings(t *testing.T, r *rig) {
	all := r.processes(t, 2)
	add := func(c cluster.Cluster) error {
		return c.UpdateSetting(t.Context(), "count", func(b []byte) ([]byte, error) {
			n, err := strconv.Atoi(string(b))
			if len(b) > 0 && err != nil {
				return nil, err
			}
			return strconv.AppendInt(nil, int64(n)+1, 10), nil
		})
	}
	const writers, each = 6, 15
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			for range each {
				if err := add(all[i%len(all)]); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	refused := errors.New("refused")
	var got []byte
	for _, c := range all {
		err := c.UpdateSetting(t.Context(), "count", func(b []byte) ([]byte, error) {
			got = bytes.Clone(b)
			return []byte("lost"), refused
		})
		if want := strconv.Itoa(writers * each); string(got) != want || !errors.Is(err, refused) {
			t.Errorf("the setting is %q, and an update that fails %v; want %s and %v", got, err, want, refused)
		}
	}
}

// A setting that is updated to nothing is gone, also while others update it.
func testDeletedSettings(t *testing.T, r *rig) {
	all := r.processes(t, 2)
	const writers, each = 6, 20
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			for range each { // there and gone in turn
				err := all[i%len(all)].UpdateSetting(t.Context(), "flag", func(b []byte) ([]byte, error) {
					if len(b) > 0 {
						return nil, nil
					}
					return []byte("x"), nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	err := all[0].UpdateSetting(t.Context(), "flag", func(b []byte) ([]byte, error) {
		if len(b) > 0 {
			t.Errorf("after an even number of changes the setting is %q, want none", b)
		}
		return b, nil
	})
	if err != nil {
		t.Error(err)
	}
}
