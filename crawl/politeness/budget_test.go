package politeness

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Two robots that spend from one clock are together no faster than the budget,
// and each alone is no slower.
func TestSharedBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const rate = 200.0
		var mu sync.Mutex
		var clock time.Time
		calls := 0
		spend := func(_ context.Context, cost time.Duration) (time.Time, error) {
			mu.Lock()
			defer mu.Unlock()
			calls++
			if now := time.Now(); clock.Before(now) {
				clock = now
			}
			from := clock
			clock = clock.Add(cost)
			return from, nil
		}
		for _, robots := range []int{1, 2} {
			ctx, cancel := context.WithTimeout(context.Background(), 1500*time.Millisecond)
			var wg sync.WaitGroup
			var n sync.Mutex
			sent := 0
			for range robots {
				b := NewBudget(rate, 0, spend)
				for range 4 {
					wg.Go(func() {
						for b.Wait(ctx) {
							n.Lock()
							sent++
							n.Unlock()
						}
					})
				}
			}
			wg.Wait()
			cancel()
			if most := rate*1.5 + 2; float64(sent) > most || float64(sent) < .8*most {
				t.Errorf("%d robots sent %d requests in 1.5 s, budget %v a second", robots, sent, rate)
			}
		}
		if calls > 40 {
			t.Errorf("the shared clock was asked %d times", calls)
		}
	})
}

// Bytes are paid at the next turn; a budget that cannot be reached lets nobody on.
func TestSharedBytes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var paid time.Duration
		fail := false
		b := NewBudget(0, 1000, func(_ context.Context, cost time.Duration) (time.Time, error) {
			if fail {
				return time.Time{}, errors.New("gone")
			}
			paid += cost
			return time.Now(), nil
		})
		if !b.Wait(context.Background()) || paid != 0 {
			t.Errorf("the first request paid %v", paid)
		}
		b.AddBytes(100)
		b.grantEnds = time.Now()
		begun := time.Now()
		if took := 100 * time.Millisecond; !b.Wait(context.Background()) || paid != took || time.Since(begun) != took {
			t.Errorf("100 bytes cost %v, and %v of waiting", paid, time.Since(begun))
		}
		b.AddBytes(100)
		fail, b.grantEnds = true, time.Now()
		if b.Wait(context.Background()) {
			t.Error("a request without a budget")
		}
		fail = false
		if !b.Wait(context.Background()) || paid != 200*time.Millisecond {
			t.Errorf("what was owed is forgotten: paid %v", paid)
		}
	})
}
