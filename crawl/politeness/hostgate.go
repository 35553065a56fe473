package politeness

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// hostGates let the requests of this process to a host pass one at a time, or as many at once
// as its source permits, each when the host's time has come: requests of the agent that owns
// the host, and auxiliary ones that come from elsewhere (robots.txt redirects, scripts, key
// files).
type hostGates struct {
	mu    sync.Mutex
	gates map[string]*hostGate
	limit int // of gates, above which unused ones are dropped
	// connections returns how many requests may be under way at once to a host; nil is 1.
	connections func(host string) int
}

// hostGate is the gate of one host.
type hostGate struct {
	passing chan struct{} // holds one for each request under way, as many as there are connections
	users   int           // guarded by hostGates.mu
	waiting atomic.Int32  // auxiliary requests

	mu        sync.Mutex
	next      time.Time     // no request before
	delay     time.Duration // of the host, as far as it is known
	owned     bool          // an agent of this process works the host
	auxiliary bool          // an auxiliary request went through
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

// release gives a gate back. A gate that an auxiliary request went through is kept: the
// host's record does not know of that request.
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

// restWithDelay is rest, and takes over the host's delay.
func (g *hostGate) restWithDelay(until time.Time, delay time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.next, g.delay = later(g.next, until), delay
}

// setOwned notes whether an agent of this process works the host.
func (g *hostGate) setOwned(owned bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.owned = owned
}

// beginAuxiliary notes an auxiliary request and reports whether an agent works the host.
func (g *hostGate) beginAuxiliary() (owned bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.auxiliary = true
	return g.owned
}

// ownership reports whether an agent of this process works the host, and the host's delay.
func (g *hostGate) ownership() (owned bool, delay time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.owned, g.delay
}

// adopt takes over what is known of a host: no request before next, and its least delay.
func (g *hostGate) adopt(next time.Time, delay time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.next, g.delay = later(g.next, next), max(g.delay, delay)
}

// pass waits until a connection is free and the host's time has come, but no longer than
// maxWait for the latter. leave must follow a nil error.
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
		if !Pause(ctx, wait) {
			return ctx.Err()
		}
	}
}

// leave lets the next request pass.
func (g *hostGate) leave() { <-g.passing }

// auxiliaryDelay returns the delay after an auxiliary request.
func (g *hostGate) auxiliaryDelay() time.Duration {
	_, delay := g.ownership()
	return delay
}

// restAfterAuxiliary lets the host rest for its delay, at least minDelay from now on, and
// for at least wait.
func (g *hostGate) restAfterAuxiliary(now time.Time, minDelay, wait time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.delay = max(g.delay, minDelay)
	g.next = later(g.next, now.Add(max(g.delay, wait)))
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
