package testweb

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/freshet/freshet/internal/rng"
	"github.com/freshet/freshet/lab/field"
	"github.com/freshet/freshet/lab/testweb/truth"
	"golang.org/x/sync/errgroup"
)

// Visitors are people who read the web while a robot crawls it: what a sensor at
// the server sees. They are random surfers, so pages are visited in proportion to
// their PageRank: each follows a link of the page he is on with probability 0.85,
// else a new one starts at the entry of any host. Or they repeat what a field's
// visitors asked for.
type Visitors struct {
	Rate float64 // visits a second, in Poisson arrivals
	Seed uint64
	// Requests are replayed instead, if not nil: page after page at the times of a
	// field's history, in the web's time.
	Requests field.RequestReader
	// To is the address to connect to, e.g. that of a sensor's reverse proxy;
	// "" is the server itself.
	To string
	// Timeout bounds a visit; 0 is 5 s.
	Timeout time.Duration
}

// visitTimeout bounds a visit: behaviours may hold one for ever.
const visitTimeout = 5 * time.Second

// Visited is what became of visits.
type Visited struct {
	Visits int           // that were answered, whatever the status
	Failed int           // that were not
	Late   time.Duration // mean delay of one behind its time
	Latest time.Duration // greatest
}

// visitor is a visit to be made.
type visitor struct {
	due time.Time
	url string
}

// visitorsAtOnce bounds the visits under way; when all are, the next one is late.
const visitorsAtOnce = 16

// Visit plays visitors until ctx ends, or the requests to be replayed do.
func (s *Server) Visit(ctx context.Context, v Visitors) (Visited, error) {
	var next func() (visitor, bool)
	switch {
	case v.Requests != nil:
		next = s.replayVisits(v.Requests)
	case v.Rate > 0:
		next = s.surfVisits(v)
	default:
		return Visited{}, fmt.Errorf("test web: %g visits a second", v.Rate)
	}
	tr := &http.Transport{DialContext: s.DialContext, MaxIdleConnsPerHost: visitorsAtOnce}
	if v.To != "" {
		tr.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", v.To)
		}
	}
	defer tr.CloseIdleConnections()
	c := &http.Client{Transport: tr, Timeout: cmp.Or(v.Timeout, visitTimeout)}
	var done Visited
	var late time.Duration // of all
	var mu sync.Mutex
	var crew errgroup.Group
	crew.SetLimit(visitorsAtOnce)
	for ctx.Err() == nil {
		one, ok := next()
		if !ok || !waitUntil(ctx, one.due) {
			break
		}
		crew.Go(func() error {
			delay := time.Since(one.due)
			err := fetchAsVisitor(ctx, c, one.url)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				done.Visits++
			case ctx.Err() == nil:
				done.Failed++
			}
			late += delay
			done.Latest = max(done.Latest, delay)
			return nil
		})
	}
	_ = crew.Wait() // visits have no errors
	if n := done.Visits + done.Failed; n > 0 {
		done.Late = late / time.Duration(n)
	}
	return done, nil
}

// waitUntil waits for a moment; false if ctx ended before.
func waitUntil(ctx context.Context, until time.Time) bool {
	t := time.NewTimer(time.Until(until))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// surfVisits returns visits by random surfers.
func (s *Server) surfVisits(v Visitors) func() (visitor, bool) {
	r := rng.New(v.Seed, "visitors")
	surfer := surfer{web: s.Web, rand: r}
	due := time.Now()
	return func() (visitor, bool) {
		due = due.Add(time.Duration(r.ExpFloat64() / v.Rate * float64(time.Second)))
		return visitor{due, s.URL(surfer.nextPage())}, true
	}
}

// replayVisits returns the visits of a request history.
func (s *Server) replayVisits(r field.RequestReader) func() (visitor, bool) {
	buf := make([]field.Request, 256)
	rest := buf[:0]
	return func() (visitor, bool) {
		if len(rest) == 0 {
			rest = buf[:r.Read(buf)]
		}
		if len(rest) == 0 {
			return visitor{}, false
		}
		q := rest[0]
		rest = rest[1:]
		return visitor{s.Clock(q.Time * field.Unit), s.URL(uint64(q.Page))}, true
	}
}

// fetchAsVisitor fetches a page as a visitor.
func fetchAsVisitor(ctx context.Context, c *http.Client, u string) error {
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

func (u *surfer) nextPage() uint64 {
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
