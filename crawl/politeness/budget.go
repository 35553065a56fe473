package politeness

import (
	"context"
	"math"
	"time"
)

// Budget bounds the requests a second, the bytes a second, or both. Requests are spaced
// evenly. The bytes of an answer are known only afterwards: their time is worked off before
// the next request, so that the bound holds in the mean, and is exceeded at most by the
// answers under way. A nil Budget has no bounds.
//
// Processes that share a budget share a clock. Each takes some of its time for the requests
// of the next moment, together with the time of the bytes that it has received.
type Budget struct {
	gap   time.Duration // between requests; 0 for no limit
	bytes float64       // a second; 0 for no limit
	spend Spend         // nil for a budget of this process

	turn      chan struct{} // holds one token, which guards the three fields below
	next      time.Time
	granted   int       // requests for which time of a shared budget is taken
	grantEnds time.Time // after it the rest of granted lapses

	debt chan time.Duration // holds the time of the bytes that are not worked off
}

// Spend takes time of a budget that processes share and returns when the caller's time
// begins.
type Spend func(ctx context.Context, cost time.Duration) (from time.Time, err error)

// sharedBlock is the time for whose requests a process takes from a shared budget at once.
const sharedBlock = 250 * time.Millisecond

// maxDebt bounds the time that the bytes of one answer cost.
const maxDebt = 365 * 24 * time.Hour

// NewBudget returns a budget of requests and bytes a second, 0 being no limit; nil if
// neither is limited. A nil spend makes it a budget of this process.
func NewBudget(requests, bytes float64, spend Spend) *Budget {
	if requests <= 0 && bytes <= 0 {
		return nil
	}
	b := &Budget{bytes: max(bytes, 0), spend: spend, turn: make(chan struct{}, 1), debt: make(chan time.Duration, 1)}
	b.turn <- struct{}{}
	b.debt <- 0
	if requests > 0 {
		b.gap = time.Duration(float64(time.Second) / requests)
	}
	return b
}

// Wait waits until the next request may be sent. It reports false if ctx ended before, or
// if the shared budget cannot be reached.
func (b *Budget) Wait(ctx context.Context) bool {
	if b == nil {
		return true
	}
	select {
	case <-ctx.Done():
		return false
	case <-b.turn:
	}
	err := b.refill(ctx)
	mine := b.next
	if now := time.Now(); mine.Before(now) {
		mine = now
	}
	if err == nil {
		b.next = mine.Add(b.gap)
		b.granted--
	}
	b.turn <- struct{}{}
	if err != nil {
		return false
	}
	if wait := time.Until(mine); wait > 0 {
		return Pause(ctx, wait)
	}
	return true
}

// refill adds the debt to the next time, and takes time of a shared budget when none is
// left. The caller holds the turn.
func (b *Budget) refill(ctx context.Context) error {
	now := time.Now()
	if b.spend != nil && b.granted > 0 && now.Before(b.grantEnds) {
		return nil
	}
	debt := <-b.debt
	b.debt <- 0
	if b.spend == nil {
		if b.next.Before(now) {
			b.next = now
		}
		b.next = b.next.Add(debt)
		return nil
	}
	n := math.MaxInt
	if b.gap > 0 {
		n = int(max(1, sharedBlock/b.gap))
	}
	cost := debt
	if b.gap > 0 {
		cost += time.Duration(n) * b.gap
	}
	from, err := b.spend(ctx, cost)
	if err != nil {
		b.addDebt(debt)
		return err
	}
	b.next, b.granted, b.grantEnds = from.Add(debt), n, from.Add(cost+sharedBlock)
	return nil
}

// AddBytes counts bytes that were received.
func (b *Budget) AddBytes(n int64) {
	if b == nil || b.bytes == 0 || n <= 0 {
		return
	}
	b.addDebt(time.Duration(min(float64(n)/b.bytes, maxDebt.Seconds()) * float64(time.Second)))
}

func (b *Budget) addDebt(d time.Duration) { b.debt <- d + <-b.debt }
