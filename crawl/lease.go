package crawl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/freshet/freshet/crawl/politeness"
	"github.com/freshet/freshet/store"
)

// holdLease renews a lease until the returned function is called, so that
// it holds however long a request takes. The returned context ends before a
// lease that could not be renewed runs out: requests under way are broken off,
// so that the host is never asked by this agent and its successor at once.
func (r *Robot) holdLease(ctx context.Context, lease store.Lease) (context.Context, func()) {
	ttl := r.config.Lease
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		until := lease.Until
		for {
			end := until.Add(-ttl / 6)
			if !politeness.Pause(ctx, min(ttl/3, max(time.Until(end), time.Millisecond))) {
				return
			}
			try, stop := context.WithDeadline(ctx, end)
			err := r.config.Store.Renew(try, &lease, time.Now(), ttl)
			stop()
			if err == nil {
				until = lease.Until
			} else if ctx.Err() != nil {
				return
			} else if errors.Is(err, store.ErrLease) || !time.Now().Before(end) {
				cancel(fmt.Errorf("%w: %w", store.ErrLease, err))
				return
			}
		}
	}()
	return ctx, func() { cancel(nil); <-ended }
}
