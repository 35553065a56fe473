// Package politeness keeps the requests of a web robot within what hosts, their servers and
// the operator permit.
//
// A Client holds what the requests of one process share: the budget, the gates that let
// requests to a host pass one at a time, the slots of servers behind many names, and the
// compiled rules of robots.txt files. An agent asks the host that it owns through a Host,
// which keeps the host's record: response time, delay, next time, robots.txt. Requests to
// hosts that nobody owns (robots.txt redirects, scripts, key files) are auxiliary requests of
// the Client.
//
// Every request passes, in this order: the robots.txt of its host, the slots of its servers,
// the gate of its host, the budget.
package politeness

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/freshet/freshet/cluster"
	"github.com/freshet/freshet/cluster/single"
	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

const (
	// Patience is how long an agent waits for its host's time before it lets go.
	Patience = 300 * time.Millisecond
	// HeaderBytes is about what a request and its answer take besides the body.
	HeaderBytes = 700
	// LongPause is how long a script is waited for because its host rests.
	LongPause = 30 * time.Second
)

// Errors of requests that were not sent: the host knows nothing of them.
var (
	ErrNotSent = errors.New("the request was not sent")
	// ErrHostRests is the error of a request whose host would have to be waited for too
	// long, or for which too many requests wait.
	ErrHostRests = fmt.Errorf("%w: its host rests", ErrNotSent)
	// ErrNoBudget is the error of a request while a shared budget cannot be reached.
	ErrNoBudget = fmt.Errorf("%w: the budget of requests cannot be reached", ErrNotSent)
)

// Sources says what the sources of a crawl permit. Its methods are called from many
// goroutines.
type Sources interface {
	// PaceOf returns how fast a host may be asked.
	PaceOf(host string) Pace
	// NamesHost reports whether a source's own URL is on the host of u.
	NamesHost(u weburl.URL) bool
	// PermitsHost reports whether a source permits private addresses of the host of u.
	PermitsHost(u weburl.URL) bool
	// CheckPort returns an error for a URL whose port must not be asked.
	CheckPort(u weburl.URL) error
	// OpensAt returns when the host may be visited by the hours of its sources; zero is
	// now.
	OpensAt(host string, now time.Time) time.Time
}

// Observer is told what becomes of requests that are no pages. Its methods are called from
// many goroutines.
type Observer interface {
	// RequestFailed is called for a request without an answer.
	RequestFailed(url string, err error)
	// BytesReceived is called with the bytes of answers that are no pages.
	BytesReceived(n int64)
	// AgentsWaiting is called with 1 when an agent begins to wait for a host that it does not
	// own, and with -1 when it ends.
	AgentsWaiting(change int)
}

// Config are the parts and options of a Client.
type Config struct {
	Fetch    *fetch.Client
	Hosts    store.HostReader // nil: records of hosts that nobody owns are not read
	Sources  Sources
	Observer Observer

	Token        string // product token for robots.txt
	Delays       Delays
	Budget       *Budget
	PerAddress   int                  // hosts of one public IP address worked at once; 0 is no limit
	AddressLimit cluster.AddressLimit // nil: of this process
}

// Client sends the requests of one process.
type Client struct {
	config  Config
	started time.Time

	gates     hostGates
	servers   serverSlots
	rules     rulesCache
	asksRules singleflight.Group // for robots.txt of hosts that nobody owns
}

// NewClient returns a client.
func NewClient(c Config) *Client {
	if c.AddressLimit == nil {
		c.AddressLimit = single.New("", nil)
	}
	client := &Client{config: c}
	client.gates.connections = func(host string) int { return c.Sources.PaceOf(host).Connections }
	return client
}

// Begin begins a run: a robots.txt that was unavailable before is asked for again.
func (c *Client) Begin(now time.Time) { c.started = now }

// Get fetches something that is no page of the robot's queue (the key file of a signal) as
// politely as pages: if the robots.txt of its host allows it, one request at a time to a
// host and to the servers at its address, with the host's delay between them, within the
// budget. It fails with ErrHostRests if the host would have to be waited for too long.
func (c *Client) Get(ctx context.Context, u weburl.URL, accept string) (*fetch.Response, error) {
	if rules := c.RulesOf(ctx, u); rules == nil {
		return nil, fmt.Errorf("fetch %s: %w", u, ErrHostRests)
	} else if !rules.Allowed(u.Target()) {
		return nil, fmt.Errorf("fetch %s: robots.txt forbids it", u)
	}
	return c.getAuxiliary(ctx, fetch.Request{URL: u, Accept: accept, Private: c.config.Sources.PermitsHost(u)}, nil)
}

// getAuxiliary sends a request to a host that the caller does not own. held are the slots
// that the agent behind the request holds, which it need not wait for.
func (c *Client) getAuxiliary(ctx context.Context, req fetch.Request, held *heldSlots) (*fetch.Response, error) {
	if err := c.config.Sources.CheckPort(req.URL); err != nil {
		return nil, &fetch.Error{URL: req.URL.String(), Kind: fetch.Port, Err: err}
	}
	host := req.URL.Host()
	if !c.config.Sources.OpensAt(host, time.Now()).IsZero() {
		return nil, ErrHostRests
	}
	g := c.gates.acquire(host)
	defer c.gates.release(host, g)
	if g.waiting.Add(1) > maxAuxiliary {
		g.waiting.Add(-1)
		return nil, ErrHostRests
	}
	defer g.waiting.Add(-1)
	if owned := g.beginAuxiliary(); !owned { // else its agent knows more than the record
		c.adoptRecord(ctx, g, host)
	}
	maxWait := min(max(LongPause, 2*g.auxiliaryDelay()), maxAuxiliaryWait)
	release, err := c.waitForSlots(ctx, req.URL, g, held, maxWait)
	if err != nil {
		return nil, err
	}
	defer func() { release(g.auxiliaryDelay()) }()
	if err := g.pass(ctx, maxWait); err != nil {
		return nil, err
	}
	defer g.leave()
	if !c.config.Budget.Wait(ctx) {
		return nil, ErrNoBudget
	}
	res, err := c.config.Fetch.Get(ctx, req)
	c.restAfterAuxiliary(g, req.URL, res, time.Now())
	if err != nil {
		return nil, err
	}
	c.config.Budget.AddBytes(res.Wire + HeaderBytes)
	return res, nil
}

// adoptRecord takes over what the store knows of a host: when it may be asked, and its
// delay.
func (c *Client) adoptRecord(ctx context.Context, g *hostGate, host string) {
	h := c.hostRecord(ctx, host)
	if h == nil {
		return
	}
	next := h.Next
	if !next.Before(time.Now().Add(store.LongestRest)) { // a clock was ahead
		next = time.Time{}
	}
	g.adopt(next, h.Delay)
}

// hostRecord returns the record of a host, or nil.
func (c *Client) hostRecord(ctx context.Context, host string) *store.Host {
	if c.config.Hosts == nil {
		return nil
	}
	h, err := c.config.Hosts.Host(ctx, host)
	if err != nil {
		return nil
	}
	return h
}

// waitForSlots takes the slots of a host for one auxiliary request, waiting for them. A host
// that an agent of this process works has them already.
func (c *Client) waitForSlots(ctx context.Context, u weburl.URL, g *hostGate, held *heldSlots, maxWait time.Duration) (release func(rest time.Duration), err error) {
	owned, delay := g.ownership()
	if owned {
		return func(time.Duration) {}, nil
	}
	slots := c.slotsOf(ctx, u.Host(), false, delay)
	for end := time.Now().Add(maxWait); ; {
		h, wait, err := c.acquireSlots(ctx, u.Host(), slots, held, maxWait+5*time.Minute)
		if err != nil {
			return nil, err
		}
		if h != nil {
			return func(rest time.Duration) { h.releaseAll(ctx, rest) }, nil
		}
		if time.Now().Add(wait).After(end) {
			return nil, ErrHostRests
		}
		if !Pause(ctx, wait) {
			return nil, ctx.Err()
		}
	}
}

// restAfterAuxiliary lets a host rest after an auxiliary request. res is nil without an
// answer.
func (c *Client) restAfterAuxiliary(g *hostGate, u weburl.URL, res *fetch.Response, now time.Time) {
	d := &c.config.Delays
	p := c.config.Sources.PaceOf(u.Host())
	wait, minDelay := time.Duration(0), d.Min(p, 0)
	if res != nil {
		minDelay = d.After(p, 0, res.First)
		if IsOverloaded(res.Status) {
			if wait = retryAfter(res.Header.Get("Retry-After"), now); wait <= 0 {
				wait = RetryDelay(2)
			}
		}
	}
	g.restAfterAuxiliary(now, minDelay, min(wait, d.MaxDelay))
}

// slowDownHost lets the Crawl-delay of a robots.txt hold for auxiliary requests.
func (c *Client) slowDownHost(host string, delay time.Duration) {
	g := c.gates.acquire(host)
	defer c.gates.release(host, g)
	g.slowDown(min(delay, c.config.Delays.MaxDelay))
}

// Pause sleeps for d; it reports false when ctx ended first.
func Pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// IsLoopback reports whether a host name means this machine.
func IsLoopback(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
