package testweb

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"time"

	"github.com/freshet/freshet/lab/rng"
	"github.com/freshet/freshet/lab/testweb/truth"
)

// Visitors are people who read the web while a robot crawls it: what a sensor at
// the server sees. They are random surfers, so pages are visited in proportion to
// their PageRank: each follows a link of the page he is on with probability 0.85,
// else a new one starts at the entry of any host.
type Visitors struct {
	Rate float64 // visits a second, in Poisson arrivals
	Seed uint64
	// To is the address to connect to, e.g. that of a sensor's reverse proxy;
	// "" is the server itself.
	To string
}

// visitTimeout bounds a visit: behaviours may hold one for ever.
const visitTimeout = 5 * time.Second

// Visit plays visitors until ctx ends and returns how many visits were answered.
// A visit that fails counts as none; one that is still under way when the next
// is due delays it.
func (s *Server) Visit(ctx context.Context, v Visitors) (visits int, err error) {
	if !(v.Rate > 0) {
		return 0, fmt.Errorf("test web: %g visits a second", v.Rate)
	}
	tr := &http.Transport{DialContext: s.DialContext}
	if v.To != "" {
		tr.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", v.To)
		}
	}
	defer tr.CloseIdleConnections()
	c := &http.Client{Transport: tr, Timeout: visitTimeout}
	r := rng.New(v.Seed, "visitors")
	surfer := surfer{web: s.Web, rand: r}
	due := time.Now()
	for {
		due = due.Add(time.Duration(r.ExpFloat64() / v.Rate * float64(time.Second)))
		t := time.NewTimer(time.Until(due))
		select {
		case <-ctx.Done():
			t.Stop()
			return visits, nil
		case <-t.C:
		}
		if read(ctx, c, s.URL(surfer.next())) == nil {
			visits++
		}
	}
}

// read fetches a page as a visitor.
func read(ctx context.Context, c *http.Client, u string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u, nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", truth.Visitor)
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
	return err
}

// surfer walks the web at random.
type surfer struct {
	web  *Web
	rand *rand.Rand
	at   uint64
	on   bool // at is a page
	buf  []uint64
}

// follow is the probability that a surfer follows a link.
const follow = .85

func (u *surfer) next() uint64 {
	if u.on {
		u.buf = u.web.graph.Successors(u.at, u.buf[:0])
	}
	if u.on && len(u.buf) > 0 && u.rand.Float64() < follow {
		u.at = u.buf[u.rand.IntN(len(u.buf))]
		return u.at
	}
	u.at, _ = u.web.layout.Span(u.rand.Uint64N(u.web.layout.Hosts()))
	u.on = true
	return u.at
}
