package crawl

import (
	"context"
	"math"
	"time"

	"github.com/freshet/freshet/freshness"
)

// bucket keeps a budget of requests, of bytes, or both. Requests are spaced
// evenly. Bytes are known only afterwards: what was received is worked off
// before the next request, so that the budget holds in the mean, and never by
// more than the pages under way.
//
// A budget that processes share is a clock somewhere else: a bucket takes some
// of its time for the requests of the next moment, and with that what it owes.
type bucket struct {
	gap   time.Duration // between requests; 0 for no limit
	bytes float64       // a second; 0 for no limit
	spend Spend         // nil for a budget of this process

	turn  chan struct{} // holds one token; who has it has what follows
	next  time.Time
	left  int       // requests that next and on are for, of a shared budget
	until time.Time // after that they are no more

	owed chan time.Duration // holds the time of bytes received and not worked off
}

// Spend takes time of a budget that processes share and tells from when on it
// is the caller's.
type Spend func(ctx context.Context, cost time.Duration) (from time.Time, err error)

// block is for how long requests are taken out of a shared budget at once.
const block = 250 * time.Millisecond

// newBucket returns nil for no limits.
func newBucket(requests, bytes float64, spend Spend) *bucket {
	if requests <= 0 && bytes <= 0 {
		return nil
	}
	b := &bucket{bytes: max(bytes, 0), spend: spend, turn: make(chan struct{}, 1), owed: make(chan time.Duration, 1)}
	b.turn <- struct{}{}
	b.owed <- 0
	if requests > 0 {
		b.gap = time.Duration(float64(time.Second) / requests)
	}
	return b
}

// wait takes the next place in the row and waits for its time. It reports false
// when ctx ended before, or the shared budget cannot be reached.
func (b *bucket) wait(ctx context.Context) bool {
	if b == nil {
		return true
	}
	select {
	case <-ctx.Done():
		return false
	case <-b.turn:
	}
	err := b.fill(ctx)
	mine := b.next
	if now := time.Now(); mine.Before(now) {
		mine = now
	}
	if err == nil {
		b.next = mine.Add(b.gap)
		b.left--
	}
	b.turn <- struct{}{}
	if err != nil {
		return false
	}
	if wait := time.Until(mine); wait > 0 {
		return pause(ctx, wait)
	}
	return true
}

// fill works off what is owed, and takes time of a shared budget when there is
// none left. The caller has the turn.
func (b *bucket) fill(ctx context.Context) error {
	now := time.Now()
	if b.spend != nil && b.left > 0 && now.Before(b.until) {
		return nil
	}
	debt := <-b.owed
	b.owed <- 0
	if b.spend == nil {
		if b.next.Before(now) {
			b.next = now
		}
		b.next = b.next.Add(debt)
		return nil
	}
	n := math.MaxInt
	if b.gap > 0 {
		n = int(max(1, block/b.gap))
	}
	cost := debt
	if b.gap > 0 {
		cost += time.Duration(n) * b.gap
	}
	from, err := b.spend(ctx, cost)
	if err != nil {
		b.owe(debt)
		return err
	}
	b.next, b.left, b.until = from.Add(debt), n, from.Add(cost+block)
	return nil
}

// spent tells how many bytes a request took.
func (b *bucket) spent(n int64) {
	if b == nil || b.bytes == 0 || n <= 0 {
		return
	}
	b.owe(freshness.Seconds(float64(n) / b.bytes))
}

func (b *bucket) owe(d time.Duration) { b.owed <- d + <-b.owed }
