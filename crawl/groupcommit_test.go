package crawl

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// All who come while a round is open share one sync, and what came of it.
func TestGather(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g groupCommit
		broken, syncs, start := errors.New("disk"), 0, time.Now()
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				err := g.join(8, func() error {
					syncs++
					return broken
				})
				if !errors.Is(err, broken) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if syncs != 1 || time.Since(start) != 0 { // nobody else could come
			t.Errorf("%d syncs after %v", syncs, time.Since(start))
		}
		if g.joinable.Load() || g.open != nil {
			t.Error("a round is open that nobody leads")
		}
	})
}

// Agents that come count each other at different moments, before the leader of
// the round has noticed that it is full.
func TestGatherMoreThanCounted(t *testing.T) {
	t.Parallel()
	for _, counts := range [][]int{{2, 3}, {3, 2}, {3, 3, 4}, {1, 1}} {
		synctest.Test(t, func(t *testing.T) {
			r := newCommitGroup()
			g := groupCommit{open: r}
			for _, n := range counts {
				go func() { _ = g.join(n, nil) }()
				synctest.Wait()
			}
			start := time.Now()
			if r.wait(); time.Since(start) != 0 {
				t.Errorf("%v: the leader waits %v for nobody", counts, time.Since(start))
			}
			close(r.done)
		})
	}
}

// A lone agent does not wait, and others are not waited for endlessly.
func TestGatherAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for agents, want := range map[int]time.Duration{1: 0, 2: groupWait} {
			var g groupCommit
			start := time.Now()
			if err := g.join(agents, func() error { return nil }); err != nil || time.Since(start) != want {
				t.Errorf("%v after %v of %d agents", err, time.Since(start), agents)
			}
		}
	})
}
