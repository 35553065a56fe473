package crawl

import (
	"context"
	"sync"
	"time"
)

// bucket keeps a budget of requests, of bytes, or both. Requests are spaced
// evenly. Bytes are known only afterwards: what was received is worked off
// before the next request, so that the budget holds in the mean, and never by
// more than the pages under way.
type bucket struct {
	gap   time.Duration // between requests; 0 for no limit
	bytes float64       // a second; 0 for no limit

	mu   sync.Mutex
	next time.Time
}

// newBucket returns nil for no limits.
func newBucket(requests, bytes float64) *bucket {
	if requests <= 0 && bytes <= 0 {
		return nil
	}
	b := &bucket{bytes: max(bytes, 0)}
	if requests > 0 {
		b.gap = time.Duration(float64(time.Second) / requests)
	}
	return b
}

// wait takes the next place in the row and waits for its time.
func (b *bucket) wait(ctx context.Context) {
	if b == nil {
		return
	}
	now := time.Now()
	b.mu.Lock()
	mine := b.next
	if mine.Before(now) {
		mine = now
	}
	b.next = mine.Add(b.gap)
	b.mu.Unlock()
	if mine.After(now) {
		pause(ctx, mine.Sub(now))
	}
}

// spent tells how many bytes a request took.
func (b *bucket) spent(n int64) {
	if b == nil || b.bytes == 0 || n <= 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := time.Now(); b.next.Before(now) {
		b.next = now
	}
	b.next = b.next.Add(Seconds(float64(n) / b.bytes))
}
