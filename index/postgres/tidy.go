package postgres

import (
	"context"
	"sync"
	"time"
)

// tidy sorts what was added into the index of words. It lies in a list first,
// which every search reads from end to end; sorting costs a visit to each word's
// place in the index, so that many documents at once are cheaper than few.
type tidy struct {
	mu      sync.Mutex
	pending int // documents in the list, of this process
	timer   *time.Timer
	closed  bool
	work    sync.WaitGroup
}

const (
	// tidyMost is how many documents may lie in the list.
	tidyMost = 1000
	// tidyAfter is how long one lies there that nothing follows.
	tidyAfter = time.Second
)

// noteAdded notes that documents were added, and tidies if there are enough.
func (e *Engine) noteAdded(ctx context.Context, n int) {
	if n == 0 {
		return
	}
	t := &e.tidy
	t.mu.Lock()
	t.pending += n
	if t.pending >= tidyMost {
		t.pending = 0
		t.mu.Unlock()
		e.cleanPendingList(ctx)
		return
	}
	defer t.mu.Unlock()
	if t.timer == nil && !t.closed {
		t.timer = time.AfterFunc(tidyAfter, e.tidyLate)
	}
}

// tidyLate tidies what lies there for a while.
func (e *Engine) tidyLate() {
	t := &e.tidy
	t.mu.Lock()
	t.timer = nil
	if t.closed || t.pending == 0 {
		t.mu.Unlock()
		return
	}
	t.pending = 0
	t.work.Add(1)
	t.mu.Unlock()
	defer t.work.Done()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	e.cleanPendingList(ctx)
}

// cleanPendingList sorts the list into the index. Engines without such a list do not know
// the function, and a list that stays is sorted in by the server, sometime.
func (e *Engine) cleanPendingList(ctx context.Context) {
	_, _ = e.pool.Exec(ctx, "select gin_clean_pending_list('documents_words')")
}

// stopTidying tidies what is left and waits for what is under way.
func (e *Engine) stopTidying() {
	t := &e.tidy
	t.mu.Lock()
	left := t.pending
	t.pending, t.closed = 0, true
	if t.timer != nil {
		t.timer.Stop()
	}
	t.mu.Unlock()
	if left > 0 {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		e.cleanPendingList(ctx)
	}
	t.work.Wait()
}
