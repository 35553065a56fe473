package crawl

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// All who come while a round is open share one sync, and what came of it.
func TestGather(t *testing.T) {
	t.Parallel()
	var g gather
	var syncs atomic.Int32
	broken := errors.New("disk")
	const agents = 8
	var wg sync.WaitGroup
	errs := make([]error, agents)
	for i := range agents {
		wg.Go(func() {
			errs[i] = g.join(agents, func() error {
				syncs.Add(1)
				return broken
			})
		})
	}
	wg.Wait()
	for i, err := range errs {
		if !errors.Is(err, broken) {
			t.Errorf("agent %d: %v", i, err)
		}
	}
	if n := syncs.Load(); n < 1 || n > agents/2 { // all at once, unless the machine is very busy
		t.Errorf("%d agents: %d syncs", agents, n)
	}
	if g.inviting.Load() || g.open != nil {
		t.Error("a round is open that nobody leads")
	}
}

// A lone agent does not wait, and others are not waited for endlessly.
func TestGatherAlone(t *testing.T) {
	t.Parallel()
	var g gather
	nothing := func() error { return nil }
	best := time.Hour
	for range 20 {
		start := time.Now()
		if err := g.join(1, nothing); err != nil {
			t.Fatal(err)
		}
		best = min(best, time.Since(start))
	}
	if best >= gatherTime {
		t.Errorf("alone: %v", best)
	}
	start := time.Now()
	if err := g.join(2, nothing); err != nil || time.Since(start) < gatherTime {
		t.Errorf("%v after %v", err, time.Since(start))
	}
}
