package stats

import (
	"context"
	"sync"
	"sync/atomic"
)

// parallelBlocks calls do for blocks of pages, each by one of the workers; do is told
// which worker it is. Blocks are the same for any number of workers. It returns
// when all are done, or no more are begun because the context has ended.
func parallelBlocks(ctx context.Context, n, workers int, tell Progress, do func(worker, from, to int)) error {
	return parallelUnits(ctx, (n+every-1)/every, workers, tell, func(w, i int) {
		do(w, i*every, min((i+1)*every, n))
	})
}

// parallelUnits is parallel for so many units of work.
func parallelUnits(ctx context.Context, units, workers int, tell Progress, do func(worker, unit int)) error {
	var next, done atomic.Int64
	var wg sync.WaitGroup
	var mu sync.Mutex // serialises calls of progress
	for w := range max(1, workers) {
		wg.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= units {
					return
				}
				do(w, i)
				if d := done.Add(1); tell != nil && mu.TryLock() {
					tell(d, int64(units))
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return ctx.Err()
}

// neighbourCounts returns how many different neighbours each page has.
func neighbourCounts(ctx context.Context, g Graph, workers int, tell Progress) ([]uint32, error) {
	counts := make([]uint32, g.Nodes())
	readers := make([]reader, max(1, workers))
	for w := range readers {
		readers[w].g = goroutineView(g)
	}
	err := parallelBlocks(ctx, len(counts), workers, tell, func(w, from, to int) {
		for u := from; u < to; u++ {
			counts[u] = uint32(len(readers[w].distinctNeighbours(uint32(u))))
		}
	})
	return counts, err
}
