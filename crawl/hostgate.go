package crawl

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// errGaveUp is the error of a request that was not sent because of us: the host knows
// nothing of it.
var errGaveUp = errors.New("the request was not sent")

// ErrHostRests is the error of a request for which the host would have to be waited
// for too long, or for which too many wait.
var ErrHostRests = fmt.Errorf("%w: its host rests", errGaveUp)

// hostGates let the requests of this process to a host pass one at a time (or as many
// as its source permits), each when the host's time has come: those of the agent that owns the host, and auxiliary ones
// that come from elsewhere (robots.txt redirects, scripts, key files).
type hostGates struct {
	mu    sync.Mutex
	gates map[string]*hostGate
	limit int // of gates, above which those that nobody needs are dropped
	// connections returns how many requests may be under way at once to a host.
	connections func(host string) int
}

// hostGate is the gate of one host.
type hostGate struct {
	passing chan struct{} // holds one for each request under way, as many as there are connections
	users   int           // guarded by hostGates.mu
	waiting atomic.Int32  // auxiliary requests

	mu    sync.Mutex
	next  time.Time     // no request before
	delay time.Duration // of the host, as far as it is known
	owned bool          // an agent of this process works the host
	// auxiliary says that such a request went through.
	auxiliary bool
}

const (
	// maxAuxiliary is how many auxiliary requests may wait for one host.
	maxAuxiliary = 2
	// maxAuxiliaryWait bounds how long one waits for a host with a long delay.
	maxAuxiliaryWait = time.Minute
	minGates         = 4096
	gateKept         = 10 * time.Minute
)

// acquire returns the gate of a host; release must follow.
func (h *hostGates) acquire(host string) *hostGate {
	connections := 1
	if h.connections != nil {
		connections = h.connections(host)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	g := h.gates[host]
	if g == nil {
		if h.gates == nil {
			h.gates, h.limit = map[string]*hostGate{}, minGates
		}
		if len(h.gates) >= h.limit {
			h.sweep(time.Now())
		}
		g = &hostGate{passing: make(chan struct{}, connections)}
		h.gates[host] = g
	}
	g.users++
	return g
}

// release gives a gate back. One that an auxiliary request went through is kept: the
// host's record does not know of it.
func (h *hostGates) release(host string, g *hostGate) {
	h.mu.Lock()
	defer h.mu.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.users--; g.users == 0 && !g.auxiliary {
		delete(h.gates, host)
	}
}

// sweep drops the gates whose hosts have rested. The caller holds mu.
func (h *hostGates) sweep(now time.Time) {
	for host, g := range h.gates {
		if g.users == 0 && now.After(g.restsUntil().Add(gateKept)) {
			delete(h.gates, host)
		}
	}
	h.limit = max(minGates, 2*len(h.gates))
}

func (g *hostGate) restsUntil() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.next
}

// rest lets the host rest until a time at least.
func (g *hostGate) rest(until time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.next = later(g.next, until)
}

// own says whether an agent of this process works the host.
func (g *hostGate) own(owned bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.owned = owned
}

// pass waits until no other request is under way and the host's time has come, but no
// longer than maxWait for the latter. leave must follow a nil error.
func (g *hostGate) pass(ctx context.Context, maxWait time.Duration) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case g.passing <- struct{}{}:
		}
		wait := time.Until(g.restsUntil())
		if wait <= 0 {
			return nil
		}
		g.leave()
		if wait > maxWait {
			return ErrHostRests
		}
		if !pause(ctx, wait) {
			return ctx.Err()
		}
	}
}

// leave lets the next request pass.
func (g *hostGate) leave() { <-g.passing }

// gate returns the gate of the agent's host.
func (a *agent) gate() *hostGate {
	if a.hostGate == nil {
		a.hostGate = a.robot.gates.acquire(a.host.Name)
		a.hostGate.own(true)
	}
	return a.hostGate
}

// closeGate gives the gate back, with the host's next time.
func (a *agent) closeGate() {
	if g := a.hostGate; g != nil {
		g.rest(a.host.Next)
		g.own(false)
		a.hostGate = nil
		a.robot.gates.release(a.host.Name, g)
	}
}

// rest lets the agent's host rest until a time, for auxiliary requests, too.
func (a *agent) rest(until time.Time) {
	a.host.Next = until
	g := a.gate()
	g.rest(until)
	g.mu.Lock()
	g.delay = a.host.Delay
	g.mu.Unlock()
}

// leastRest is how long the agent's host rests at least after a request whose answer
// is not known.
func (a *agent) leastRest() time.Duration {
	if a.host.Delay > 0 {
		return a.host.Delay
	}
	return a.robot.leastDelay(a.ownPace(), a.host.Pages)
}

// restAfterRequest lets the host rest after a request of which only that it may have
// been sent is known.
func (a *agent) restAfterRequest() {
	a.rest(later(a.host.Next, time.Now().Add(a.leastRest())))
}

// ask sends a request to the agent's host, behind auxiliary ones that are under way.
func (a *agent) ask(ctx context.Context, req fetch.Request) (*fetch.Response, error) {
	g := a.gate()
	a.asked = true
	if err := g.pass(ctx, maxAuxiliaryWait+a.robot.config.MaxDelay); err != nil {
		a.host.Next = later(a.host.Next, g.restsUntil())
		return nil, err
	}
	defer g.leave()
	res, err := a.robot.config.Fetch.Get(ctx, req)
	g.rest(time.Now().Add(a.leastRest()))
	return res, err
}

// FetchAuxiliary fetches something that is no page of the robot's queue (the key file
// of a signal) as politely as pages: if the robots.txt of its host allows it, one
// request at a time to a host and to the servers at its address, with the host's delay
// between them, within the budget. It fails when the host would have to be waited for
// too long.
func (r *Robot) FetchAuxiliary(ctx context.Context, u weburl.URL, accept string) (*fetch.Response, error) {
	if rules := r.foreignRules(ctx, u, nil); rules == nil {
		return nil, fmt.Errorf("fetch %s: %w", u, ErrHostRests)
	} else if !rules.Allowed(u.Target()) {
		return nil, fmt.Errorf("fetch %s: robots.txt forbids it", u)
	}
	return r.fetchAuxiliary(ctx, fetch.Request{URL: u, Accept: accept, Private: r.PermitsURL(u)}, nil)
}

// fetchAuxiliary sends a request to a host that the caller does not own. has are the
// places that the agent behind the request holds, which is not waited for.
func (r *Robot) fetchAuxiliary(ctx context.Context, req fetch.Request, has *held) (*fetch.Response, error) {
	host := req.URL.Host()
	if blockedPort(req.URL) && !r.isSourceHost(req.URL) {
		return nil, &fetch.Error{URL: req.URL.String(), Kind: fetch.Port, Err: errBlockedPort}
	}
	g := r.gates.acquire(host)
	defer r.gates.release(host, g)
	if g.waiting.Add(1) > maxAuxiliary {
		g.waiting.Add(-1)
		return nil, ErrHostRests
	}
	defer g.waiting.Add(-1)
	g.readRecord(ctx, r, host)
	maxWait := min(max(longPause, 2*g.auxiliaryDelay()), maxAuxiliaryWait)
	leave, err := r.enterAuxiliary(ctx, req.URL, g, has, maxWait)
	if err != nil {
		return nil, err
	}
	defer func() { leave(g.auxiliaryDelay()) }()
	if err := g.pass(ctx, maxWait); err != nil {
		return nil, err
	}
	defer g.leave()
	if !r.budget.wait(ctx) {
		return nil, errBudget
	}
	res, err := r.config.Fetch.Get(ctx, req)
	now := time.Now()
	r.restAuxiliary(g, req.URL, res, now)
	if err != nil {
		return nil, err
	}
	r.budget.spent(res.Wire + headerBytes)
	return res, nil
}

// readRecord takes what the store knows of the host: when it may be asked, and its
// delay.
func (g *hostGate) readRecord(ctx context.Context, r *Robot, host string) {
	g.mu.Lock()
	g.auxiliary = true
	owned := g.owned
	g.mu.Unlock()
	if owned { // its agent knows more
		return
	}
	h := r.hostRecord(ctx, host)
	if h == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if next := h.Next; next.Before(time.Now().Add(store.LongestRest)) { // else a clock was ahead
		g.next = later(g.next, next)
	}
	g.delay = max(g.delay, h.Delay)
}

// hostRecord returns the record of a host, or nil.
func (r *Robot) hostRecord(ctx context.Context, host string) *store.Host {
	s, ok := r.config.Store.(store.HostReader)
	if !ok {
		return nil
	}
	h, err := s.Host(ctx, host)
	if err != nil {
		return nil
	}
	return h
}

func (g *hostGate) auxiliaryDelay() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.delay
}

// slowDown lets a delay that was just read hold from the request that brought it.
func (g *hostGate) slowDown(delay time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if more := delay - g.delay; more > 0 {
		g.delay += more
		g.next = g.next.Add(more)
	}
}

// restAuxiliary lets a host rest after an auxiliary request. res is nil without an
// answer.
func (r *Robot) restAuxiliary(g *hostGate, u weburl.URL, res *fetch.Response, now time.Time) {
	c := &r.config
	p := r.paceOf(u.Host())
	wait, least := time.Duration(0), r.leastDelay(p, 0)
	if res != nil {
		least = r.delayAfter(p, 0, res.First)
		if refuses(res.Status) {
			if wait = retryAfter(res.Header.Get("Retry-After"), now); wait <= 0 {
				wait = retryDelay(2)
			}
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.delay = max(g.delay, least)
	g.next = later(g.next, now.Add(max(g.delay, min(wait, c.MaxDelay))))
}

// slowDownHost lets the Crawl-delay of a robots.txt hold for auxiliary requests.
func (r *Robot) slowDownHost(host string, delay time.Duration) {
	g := r.gates.acquire(host)
	defer r.gates.release(host, g)
	g.slowDown(min(delay, r.config.MaxDelay))
}
