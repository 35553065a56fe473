package politeness

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/robots"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

const (
	// RobotsAge is how long a robots.txt counts (RFC 9309 allows a day).
	RobotsAge = 24 * time.Hour
	// RobotsRetry is the time after which a robots.txt that was unavailable is asked for
	// again, after the first tries, which follow each other in seconds.
	RobotsRetry = 10 * time.Minute
	// robotsRedirects is how many redirects of a robots.txt are followed (RFC 9309: at least
	// five).
	robotsRedirects = 5
	robotsPath      = "/robots.txt"
	acceptRobots    = "text/plain,*/*;q=0.5"
)

// robotsValidity returns how long a robots.txt counts.
func robotsValidity(rb *store.Robots) time.Duration {
	switch {
	case !rb.Failed():
		return RobotsAge
	case rb.Tries < MaxRetries:
		return RetryDelay(rb.Tries)
	}
	return RobotsRetry
}

// RobotsNext returns when a robots.txt is asked for again if a page of its host is due then.
func RobotsNext(rb *store.Robots) time.Time { return rb.Fetched.Add(robotsValidity(rb)) }

// rulesCache keeps compiled rules of hosts that were asked lately.
type rulesCache struct {
	mu      sync.Mutex
	origins map[string]compiledRules
	bytes   int // of the files
}

type compiledRules struct {
	file     *robots.File
	fetched  time.Time
	validity time.Duration
}

// Bounds of the cache. A cache that is full starts empty again.
const (
	maxCachedRules      = 10_000
	maxCachedRulesBytes = 16 << 20
)

// peek returns the rules of an origin, or nil if they are not in the cache.
func (c *rulesCache) peek(origin string) *robots.File {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.origins[origin].file
}

// fresh is peek for rules that still count.
func (c *rulesCache) fresh(origin string) *robots.File {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.origins[origin]
	if e.file == nil || time.Since(e.fetched) > e.validity {
		return nil
	}
	return e.file
}

// compile returns the rules of a robots.txt, from the cache if it has that file.
func (c *rulesCache) compile(origin string, rb *store.Robots, token string) *robots.File {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.origins[origin]; ok && e.fetched.Equal(rb.Fetched) {
		return e.file
	}
	if c.origins == nil || len(c.origins) >= maxCachedRules || c.bytes+len(rb.Body) > maxCachedRulesBytes {
		c.origins, c.bytes = map[string]compiledRules{}, 0
	}
	c.bytes += len(rb.Body)
	f := &robots.File{}
	switch {
	case rb.Status >= 200 && rb.Status < 300:
		f = robots.Parse(rb.Body, token)
	case rb.Failed():
		f = robots.DisallowAll()
	}
	c.origins[origin] = compiledRules{f, rb.Fetched, robotsValidity(rb)}
	return f
}

// KnownRules returns the rules of an origin that was asked lately, or nil.
func (c *Client) KnownRules(origin string) *robots.File { return c.rules.peek(origin) }

// RulesOf returns the rules of a host that nobody need own, or nil while its robots.txt is
// unavailable. They are taken from the host's record if that has them, and cached. A
// robots.txt is asked for once at a time.
func (c *Client) RulesOf(ctx context.Context, u weburl.URL) *robots.File {
	return c.foreignRules(ctx, u, nil)
}

// foreignRules is RulesOf for an agent that holds slots.
func (c *Client) foreignRules(ctx context.Context, u weburl.URL, held *heldSlots) *robots.File {
	origin := u.Origin()
	if f := c.rules.fresh(origin); f != nil {
		return f
	}
	f, err, _ := c.asksRules.Do(origin, func() (any, error) {
		if f := c.rules.fresh(origin); f != nil {
			return f, nil
		}
		rb := c.recordedRobots(ctx, u)
		if rb == nil {
			var err error
			if rb, err = c.fetchForeignRobots(ctx, u, held); err != nil {
				return (*robots.File)(nil), err
			}
		}
		f := c.rules.compile(origin, rb, c.config.Token)
		c.slowDownHost(u.Host(), f.Delay)
		return f, nil
	})
	if err != nil {
		return nil
	}
	return f.(*robots.File)
}

// recordedRobots returns the robots.txt in the record of a host if it still counts, or nil.
func (c *Client) recordedRobots(ctx context.Context, u weburl.URL) *store.Robots {
	h := c.hostRecord(ctx, u.Host())
	if h == nil {
		return nil
	}
	for i := range h.Robots {
		if rb := &h.Robots[i]; rb.Scheme == u.Scheme() && time.Since(rb.Fetched) < robotsValidity(rb) {
			return rb
		}
	}
	return nil
}

// fetchForeignRobots gets the robots.txt of a host that nobody owns. Redirects are followed
// on that host only: one that leads elsewhere counts as no file. An error says that we gave
// up.
func (c *Client) fetchForeignRobots(ctx context.Context, u weburl.URL, held *heldSlots) (*store.Robots, error) {
	rb := &store.Robots{Scheme: u.Scheme(), Fetched: time.Now(), Tries: MaxRetries}
	at, err := weburl.Parse(u.Origin() + robotsPath)
	if err != nil {
		return rb, nil //nolint:nilerr // as one that is unavailable
	}
	for range robotsRedirects + 1 {
		res, err := c.getAuxiliary(ctx, fetch.Request{URL: at, Accept: acceptRobots, Private: c.config.Sources.PermitsHost(at)}, held)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, ErrNotSent):
			return nil, err
		case err != nil:
			return rb, nil //nolint:nilerr // as one that is unavailable
		}
		c.config.Observer.BytesReceived(res.Wire)
		to, ok := res.Location(at)
		if !ok {
			rb.Status = res.Status
			if res.Status >= 200 && res.Status < 300 {
				rb.Body = res.Body[:min(len(res.Body), robots.MaxSize+1)]
			}
			return rb, nil
		}
		if to.Host() != at.Host() {
			break
		}
		at = to
	}
	rb.Status = http.StatusNotFound
	return rb, nil
}
