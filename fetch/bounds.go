package fetch

import (
	"context"
	"io"
	"sync/atomic"
	"time"
)

// counter counts the bytes of a body on the wire.
type counter struct {
	r    io.Reader
	n    atomic.Int64
	slow atomic.Bool
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// dripAfter is how long a body may come at any rate.
const dripAfter = 10 * time.Second

// watch ends a request whose body drips more slowly than MinRate. The timer is
// all it costs a fast answer.
func (c *Client) watch(ctx context.Context, cancel context.CancelFunc, body *counter) (stop func()) {
	var last int64
	var t *time.Timer
	t = time.AfterFunc(dripAfter, func() {
		n := body.n.Load()
		if ctx.Err() != nil {
			return
		}
		if n-last < int64(c.config.MinRate)*int64(dripAfter/time.Second) {
			body.slow.Store(true)
			cancel()
			return
		}
		last = n
		t.Reset(dripAfter)
	})
	return func() { t.Stop() }
}
