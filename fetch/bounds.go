package fetch

import (
	"context"
	"io"
	"sync/atomic"
	"time"
)

// counter reads a body as it is transferred and counts its bytes.
type counter struct {
	r    io.Reader
	n    atomic.Int64
	slow atomic.Bool // it was given up because it dripped
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// watch ends a request whose body drips more slowly than MinRate. The timer is
// all it costs a fast answer.
func (c *Client) watch(ctx context.Context, cancel context.CancelFunc, body *counter) (stop func()) {
	var last int64
	var t *time.Timer
	t = time.AfterFunc(c.config.Patience, func() {
		n := body.n.Load()
		if ctx.Err() != nil {
			return
		}
		if float64(n-last) < float64(c.config.MinRate)*c.config.Patience.Seconds() {
			body.slow.Store(true)
			cancel()
			return
		}
		last = n
		t.Reset(c.config.Patience)
	})
	return func() { t.Stop() }
}
