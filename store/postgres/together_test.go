package postgres

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Whatever callers do, each has an answer, what was written is written once, in
// groups that are not too large, by no more writers than allowed.
func TestTogether(t *testing.T) {
	t.Parallel()
	const callers, most, writers = 400, 7, 3
	var at, busy atomic.Int32
	var written [callers]atomic.Int32
	g := newTogether(2*time.Millisecond, most, writers, func(ctx context.Context, group []int) error {
		if at.Add(1) > writers || len(group) > most || len(group) == 0 {
			busy.Add(1)
		}
		defer at.Add(-1)
		time.Sleep(rand.N(3 * time.Millisecond))
		for _, i := range group {
			written[i].Add(1)
		}
		return ctx.Err()
	})
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if i%3 == 0 {
				time.AfterFunc(rand.N(20*time.Millisecond), cancel)
			}
			time.Sleep(rand.N(30 * time.Millisecond))
			err := g.writeTogether(ctx, i, i%5 == 0)
			n := written[i].Load()
			if err == nil && n != 1 || err != nil && (i%3 != 0 || !errors.Is(err, context.Canceled)) {
				t.Errorf("caller %d: %v, written %d times", i, err, n)
			}
		})
	}
	wg.Wait()
	g.done.Wait()
	if busy.Load() > 0 {
		t.Error("too many writers, or a group too large or empty")
	}
	for i := range written {
		if n := written[i].Load(); n > 1 {
			t.Errorf("item %d was written %d times", i, n)
		}
	}
}

// Who has gone before the writer came is not written for, and does not end the
// work of others; who is in a hurry does not wait for those that are not.
func TestTogetherLeaves(t *testing.T) {
	t.Parallel()
	var groups [][]string
	g := newTogether(time.Hour, 10, 1, func(ctx context.Context, group []string) error {
		groups = append(groups, group)
		return ctx.Err()
	})
	ctx, cancel := context.WithCancel(t.Context())
	gone, stays := make(chan error), make(chan error)
	go func() { gone <- g.writeTogether(ctx, "gone", false) }()
	go func() { stays <- g.writeTogether(t.Context(), "stays", false) }()
	for n := 0; n < 2; time.Sleep(time.Millisecond) {
		g.mu.Lock()
		n = len(g.waiting)
		g.mu.Unlock()
	}
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := g.writeTogether(t.Context(), "hurries", true); err != nil {
		t.Error(err)
	}
	if err := <-stays; err != nil {
		t.Error(err)
	}
	g.done.Wait()
	if len(groups) != 1 || len(groups[0]) != 2 || groups[0][0] != "stays" || groups[0][1] != "hurries" {
		t.Errorf("groups %q", groups)
	}
}
