package clustertest

import (
	"bytes"
	"context"
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
func enter(t *testing.T, c cluster.Cluster, address string, slots int, ttl time.Duration) (release func(rest time.Duration)) {
	t.Helper()
	leave, blocked, err := c.EnterAddresses(t.Context(), []cluster.AddressSlot{{Address: address, Max: slots}}, ttl)
	if err != nil || blocked != 0 {
		t.Errorf("address %d blocks, %v; want 0", blocked, err)
	}
	if leave == nil {
		return nil
	}
	return func(rest time.Duration) { leave(t.Context(), []time.Duration{rest}) }
}

// An address has so many slots for all processes, and whoever waits gets one.
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
				release(0)
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
}

// A slot that nobody gave back comes free after its time, one that was given back after
// its rest.
func testAddressTimes(t *testing.T, r *rig) {
	all := r.processes(t, 2)
	const address, wait = "192.0.2.4", 50 * time.Millisecond
	first, other := all[0], all[len(all)-1]
	taken := time.Now()
	forgotten := enter(t, first, address, 1, wait)
	free := func(what string, since time.Time) (release func(time.Duration)) {
		t.Helper()
		eventually(t, what, func() string {
			if release = enter(t, other, address, 1, time.Hour); release == nil {
				return "is not free"
			}
			return ""
		})
		if held := time.Since(since); held < wait {
			t.Errorf("%s for %v was another's after %v", what, wait, held)
		}
		return release
	}
	second := free("a slot that was not given back", taken)
	forgotten(0) // too late: it is another's
	if enter(t, first, address, 1, time.Minute) != nil {
		t.Error("who gave a slot back too late gave that of another")
	}
	released := time.Now()
	second(wait)
	free("a slot whose server rests", released)(0)
	if enter(t, first, address, 1, time.Minute) == nil {
		t.Error("a slot that was given back without a rest is refused")
	}
}

// Who needs slots of several addresses gets all or none, and hears which is missing.
func testSeveralAddresses(t *testing.T, r *rig) {
	all := r.processes(t, 2)
	want := []cluster.AddressSlot{{Address: "192.0.2.8", Max: 2}, {Address: "192.0.2.8 example.org", Max: 1}, {Address: "192.0.2.9", Max: 2}}
	take := func(c cluster.Cluster, slots []cluster.AddressSlot) (func(context.Context, []time.Duration), int) {
		t.Helper()
		release, blocked, err := c.EnterAddresses(t.Context(), slots, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		return release, blocked
	}
	release, _ := take(all[0], want)
	if release == nil {
		t.Fatal("free slots are refused")
	}
	other := all[len(all)-1]
	for range 3 { // none of the attempts keeps anything
		if second, blocked := take(other, want); second != nil || blocked != 1 {
			t.Fatalf("entered: %v, blocked by address %d; want blocked by 1", second != nil, blocked)
		}
	}
	for i, w := range []cluster.AddressSlot{want[0], want[2]} {
		if release, _ := take(other, []cluster.AddressSlot{w}); release == nil {
			t.Errorf("address %d: an entry that failed keeps a slot", i)
		}
	}
	release(t.Context(), []time.Duration{0, time.Hour, 0})
	if second, blocked := take(other, want); second != nil || blocked != 1 {
		t.Errorf("entered: %v, blocked by address %d; want blocked by 1, which rests", second != nil, blocked)
	}
	if second, blocked := take(other, []cluster.AddressSlot{want[0], want[2]}); second == nil {
		t.Errorf("blocked by address %d, want the slots that were given back", blocked)
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
