package crawl

import (
	"context"
	"sync"
	"time"
)

// Places bounds how many hosts of one IP address are worked at once: a server
// with a thousand names is one machine.
type Places interface {
	// Enter takes one of most places at an address until leave is called, or ttl
	// has passed; leave is nil when there is none.
	Enter(ctx context.Context, ip string, most int, ttl time.Duration) (leave func(context.Context), err error)
}

// addresses are the places of one process.
type addresses struct {
	mu   sync.Mutex
	busy map[string]int
}

// Enter implements Places.
func (a *addresses) Enter(_ context.Context, ip string, most int, _ time.Duration) (leave func(context.Context), err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.busy == nil {
		a.busy = map[string]int{}
	}
	if a.busy[ip] >= most {
		return nil, nil
	}
	a.busy[ip]++
	return func(context.Context) {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.busy[ip]--; a.busy[ip] <= 0 {
			delete(a.busy, ip)
		}
	}, nil
}

// enter takes a place at the address of the agent's host. The empty address
// (unknown, behind a proxy) has places for all.
func (a *agent) enter(ctx context.Context, slice time.Duration) (leave func(context.Context), err error) {
	c := &a.robot.config
	ip := a.address(ctx)
	if ip == "" || c.PerAddress <= 0 {
		return func(context.Context) {}, nil
	}
	// Longer than the agent works: by a page that takes its time.
	return c.Places.Enter(ctx, ip, c.PerAddress, slice+c.Lease+5*time.Minute)
}
