package postgres

import (
	"context"
	"slices"
	"sync"
	"time"
)

// together gathers the same work of many agents into few transactions ("group
// commit"): what comes within a moment is written at once.
type together[T any] struct {
	// write does the work of a group; each item holds its own outcome. An error is
	// everybody's.
	write   func(ctx context.Context, group []T) error
	wait    time.Duration // for what else comes
	most    int           // items of a group
	writers int           // groups written at the same time

	mu        sync.Mutex
	waiting   []*waiter[T]
	gathering bool          // a writer waits for what else comes
	hurry     chan struct{} // told when it shall wait no longer
	running   int
	done      sync.WaitGroup
}

// waiter is one caller.
type waiter[T any] struct {
	ctx   context.Context
	item  T
	hurry bool
	done  chan error
}

func newTogether[T any](wait time.Duration, most, writers int, write func(context.Context, []T) error) *together[T] {
	return &together[T]{write: write, wait: wait, most: most, writers: writers, hurry: make(chan struct{}, 1)}
}

// writeTogether has an item written and returns when it is, or, with what came of it
// unknown, when ctx ends. Who is in a hurry keeps nobody waiting.
func (g *together[T]) writeTogether(ctx context.Context, item T, hurry bool) error {
	w := &waiter[T]{ctx, item, hurry, make(chan error, 1)}
	g.mu.Lock()
	g.waiting = append(g.waiting, w)
	if !g.gathering && g.running < g.writers {
		g.startWriter()
	}
	if hurry || len(g.waiting) >= g.most {
		g.hurryWriter()
	}
	g.mu.Unlock()
	select {
	case err := <-w.done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-w.done: // both at once
		return err
	default:
		return ctx.Err()
	}
}

// hurryWriter ends the waiting of the writer that gathers. The caller holds mu.
func (g *together[T]) hurryWriter() {
	select {
	case g.hurry <- struct{}{}:
	default:
	}
}

// startWriter starts a writer. The caller holds mu.
func (g *together[T]) startWriter() {
	g.gathering = true
	g.running++
	g.done.Go(g.writeGroups)
}

// writeGroups writes groups until nothing waits.
func (g *together[T]) writeGroups() {
	for {
		if g.wait > 0 {
			t := time.NewTimer(g.wait)
			select {
			case <-t.C:
			case <-g.hurry:
			}
			t.Stop()
		}
		group := g.cutGroup()
		items := make([]T, len(group))
		for i, w := range group {
			items[i] = w.item
		}
		if len(group) > 0 {
			ctx, stop := whileAny(group)
			err := g.write(ctx, items)
			stop()
			for _, w := range group {
				w.done <- err
			}
		}
		g.mu.Lock()
		if g.gathering || len(g.waiting) == 0 {
			g.running--
			g.mu.Unlock()
			return
		}
		g.gathering = true
		g.mu.Unlock()
	}
}

// cutGroup takes the next group, without those whose caller has gone, and lets another
// writer see to the rest.
func (g *together[T]) cutGroup() []*waiter[T] {
	g.mu.Lock()
	defer g.mu.Unlock()
	there := slices.DeleteFunc(g.waiting, func(w *waiter[T]) bool { return w.ctx.Err() != nil })
	n := min(len(there), g.most)
	group := slices.Clone(there[:n])
	g.waiting = slices.Clone(there[n:])
	g.gathering = false
	select {
	case <-g.hurry:
	default:
	}
	if len(g.waiting) > 0 && g.running < g.writers {
		g.startWriter()
	}
	if len(g.waiting) >= g.most || slices.ContainsFunc(g.waiting, func(w *waiter[T]) bool { return w.hurry }) {
		g.hurryWriter() // whoever gathers next
	}
	return group
}

// whileAny returns a context that ends when those of all callers have.
func whileAny[T any](group []*waiter[T]) (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(group[0].ctx))
	var mu sync.Mutex
	left := len(group)
	var stops []func() bool
	for _, w := range group {
		stops = append(stops, context.AfterFunc(w.ctx, func() {
			mu.Lock()
			defer mu.Unlock()
			if left--; left == 0 {
				cancel()
			}
		}))
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
		cancel()
	}
}
