// Package ratelimit bounds how often each of many clients may ask, in bounded
// memory: the client that asked longest ago is forgotten first.
package ratelimit

import (
	"container/list"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limiter allows each key an average number of events a second, with a burst. A
// nil Limiter allows everything. It is safe for concurrent use.
type Limiter struct {
	perSecond rate.Limit
	burst     int
	maxKeys   int

	mu    sync.Mutex
	order *list.List // of *bucket, the last used in front
	byKey map[string]*list.Element
}

type bucket struct {
	key     string
	limiter *rate.Limiter
}

// New returns a limiter that remembers maxKeys clients. It returns nil, which
// allows everything, if perSecond is not positive.
func New(perSecond float64, burst, maxKeys int) *Limiter {
	if perSecond <= 0 {
		return nil
	}
	return &Limiter{perSecond: rate.Limit(perSecond), burst: burst, maxKeys: maxKeys, order: list.New(), byKey: map[string]*list.Element{}}
}

// Allow reports whether one event of key may happen now.
func (l *Limiter) Allow(key string) bool { return l.AllowN(key, 1) }

// AllowN reports whether n events of key may happen now. More than the burst
// never may.
func (l *Limiter) AllowN(key string, n int) bool {
	if l == nil {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.byKey[key]
	if at == nil {
		if l.order.Len() >= l.maxKeys {
			oldest := l.order.Back()
			delete(l.byKey, oldest.Value.(*bucket).key)
			l.order.Remove(oldest)
		}
		at = l.order.PushFront(&bucket{key, rate.NewLimiter(l.perSecond, l.burst)})
		l.byKey[key] = at
	} else {
		l.order.MoveToFront(at)
	}
	return at.Value.(*bucket).limiter.AllowN(time.Now(), n)
}

// Len returns how many clients are remembered.
func (l *Limiter) Len() int {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.order.Len()
}

// ClientKey returns the key of a client with an address: an IPv4 address, or the
// first 64 bits of an IPv6 address, of which one client has all.
func ClientKey(a netip.Addr) string {
	a = a.Unmap()
	if a.Is4() {
		return a.String()
	}
	p, err := a.WithZone("").Prefix(64)
	if err != nil {
		return a.String()
	}
	return p.String()
}
