package politeness

import (
	"context"
	"sync"
	"time"
)

// AddressSlots bounds how many hosts of one IP address are asked at once: a server with a
// thousand names is one machine.
type AddressSlots interface {
	// Acquire takes one of slotLimit slots at an address until release is called, or ttl has
	// passed. release is nil if all are taken.
	Acquire(ctx context.Context, ip string, slotLimit int, ttl time.Duration) (release func(context.Context), err error)
}

// localSlots are the slots of one process.
type localSlots struct {
	mu    sync.Mutex
	taken map[string]int
}

// Acquire implements AddressSlots.
func (s *localSlots) Acquire(_ context.Context, key string, limit int, _ time.Duration) (release func(context.Context), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken == nil {
		s.taken = map[string]int{}
	}
	if s.taken[key] >= limit {
		return nil, nil
	}
	s.taken[key]++
	return func(context.Context) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.taken[key]--; s.taken[key] <= 0 {
			delete(s.taken, key)
		}
	}, nil
}
