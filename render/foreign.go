package render

import (
	"context"
	"sync"
	"time"
)

// foreignHosts bounds how fast the pages of all tabs ask hosts that are not their
// own, each host apart: foreignBurst requests at once, foreignRate a second on.
// Many pages that name one host cannot turn the browsers against it.
type foreignHosts struct {
	rate float64 // a second

	mu sync.Mutex
	of map[string]*tokens
}

// tokens is a token bucket.
type tokens struct {
	left float64
	at   time.Time
}

const (
	foreignBurst = 30              // requests, of one page or of many
	foreignRate  = 5               // a second
	foreignWait  = 3 * time.Second // that a request waits for its turn
	maxForeign   = 10_000          // hosts in memory
)

// refillTokens returns the bucket of a host with what has come since. The caller holds mu.
func (f *foreignHosts) refillTokens(host string, now time.Time) *tokens {
	if f.of == nil {
		f.of = map[string]*tokens{}
	}
	b := f.of[host]
	if b == nil {
		if len(f.of) >= maxForeign {
			for name, old := range f.of {
				if old.left+now.Sub(old.at).Seconds()*f.rate >= foreignBurst {
					delete(f.of, name) // full again: as if it was never asked
				}
			}
		}
		if len(f.of) >= maxForeign {
			return nil
		}
		b = &tokens{left: foreignBurst, at: now}
		f.of[host] = b
	}
	b.left = min(foreignBurst, b.left+now.Sub(b.at).Seconds()*f.rate)
	b.at = now
	return b
}

// waitForToken waits for a request's turn; it reports false where that does not come soon.
func (f *foreignHosts) waitForToken(ctx context.Context, host string) bool {
	f.mu.Lock()
	b := f.refillTokens(host, time.Now())
	if b == nil || b.left-1 < -f.rate*foreignWait.Seconds() {
		f.mu.Unlock()
		return false
	}
	b.left--
	wait := time.Duration(-b.left / f.rate * float64(time.Second))
	f.mu.Unlock()
	return wait <= 0 || pauseContext(ctx, wait)
}

// restoreToken gives back the turn of a request that the browser answered by itself.
func (f *foreignHosts) restoreToken(host string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if b := f.of[host]; b != nil {
		b.left = min(foreignBurst, b.left+1)
	}
}
