package field

import (
	"fmt"
	"math"
)

// Bounds of a history that is read: it is held in memory, a change in 24 bytes
// and a request in 16.
const (
	MaxChanges  = 30_000_000
	MaxRequests = 60_000_000
)

// History is a field whose events are given one by one: read from a file or a
// log. It is filled by Add* in order of time and then closed by End.
type History struct {
	names    []string
	sizes    []uint32
	changes  []Change
	requests []Request
	horizon  float64

	last  float64 // time of the event added last
	kind  []Kind  // present, while it is filled
	rates []float64
	asked []float64
}

// AddPage adds a resource that has a size at the start. Resources come before
// events; the name may be empty.
func (h *History) AddPage(name string, size uint32) error {
	if len(h.sizes) >= MaxPages {
		return fmt.Errorf("%w: more than %d resources", ErrInput, MaxPages)
	}
	if len(h.changes)+len(h.requests) > 0 {
		return fmt.Errorf("%w: a resource after the first event", ErrInput)
	}
	h.names, h.sizes, h.kind = append(h.names, name), append(h.sizes, size), append(h.kind, Same)
	return nil
}

// checkEventTime checks the time and page of an event.
func (h *History) checkEventTime(t float64, page uint32) error {
	switch {
	case !(t >= 0) || t > MaxTime:
		return fmt.Errorf("%w: time %g is not in [0, %g]", ErrInput, t, float64(MaxTime))
	case t < h.last:
		return fmt.Errorf("%w: time %g is before %g, that of the event before: out of order", ErrInput, t, h.last)
	case int(page) >= len(h.sizes):
		return fmt.Errorf("%w: resource %d of %d (they are counted from 0)", ErrInput, page, len(h.sizes))
	}
	h.last = t
	return nil
}

// AddChange adds a change event. Whether it is real follows from the kind
// before it.
func (h *History) AddChange(t float64, page uint32, k Kind, size uint32) error {
	if err := h.checkEventTime(t, page); err != nil {
		return err
	}
	if k < Forbidden || k > Same {
		return fmt.Errorf("%w: no kind %d; there are 1 to %d", ErrInput, k, kinds)
	}
	if len(h.changes) >= MaxChanges {
		return fmt.Errorf("%w: more than %d changes", ErrInput, MaxChanges)
	}
	h.changes = append(h.changes, Change{t, page, size, k, Real(h.kind[page], k)})
	h.kind[page] = k
	return nil
}

// AddRequest adds a request.
func (h *History) AddRequest(t float64, page uint32) error {
	if err := h.checkEventTime(t, page); err != nil {
		return err
	}
	if len(h.requests) >= MaxRequests {
		return fmt.Errorf("%w: more than %d requests", ErrInput, MaxRequests)
	}
	h.requests = append(h.requests, Request{t, page})
	return nil
}

// End closes the history at its horizon, which all events must be before.
func (h *History) End(horizon float64) error {
	switch {
	case !(horizon > 0) || horizon > MaxTime:
		return fmt.Errorf("%w: end %g is not in (0, %g]", ErrInput, horizon, float64(MaxTime))
	case len(h.sizes) == 0:
		return fmt.Errorf("%w: no resources", ErrInput)
	case len(h.changes)+len(h.requests) > 0 && h.last >= horizon:
		return fmt.Errorf("%w: the event at %g is beyond the horizon %g", ErrInput, h.last, horizon)
	}
	h.horizon, h.kind = horizon, nil
	h.rates, h.asked = make([]float64, len(h.sizes)), make([]float64, len(h.sizes))
	for _, c := range h.changes {
		if c.Real {
			h.rates[c.Page] += 1 / horizon
		}
	}
	for _, q := range h.requests {
		h.asked[q.Page] += 1 / horizon
	}
	return nil
}

// Pages returns the number of resources.
func (h *History) Pages() int { return len(h.sizes) }

// Name returns the name of a resource, empty if it has none.
func (h *History) Name(page uint32) string { return h.names[page] }

// Horizon returns the end in units.
func (h *History) Horizon() float64 { return h.horizon }

// Sizes returns the sizes at the start.
func (h *History) Sizes() []uint32 { return h.sizes }

// Rates returns the real changes a unit that each resource had.
func (h *History) Rates() []float64 { return h.rates }

// RequestRates returns the requests a unit that each resource had.
func (h *History) RequestRates() []float64 { return h.asked }

// Changes returns the change history from its start.
func (h *History) Changes() ChangeReader { return &given[Change]{h.changes} }

// Requests returns the request history from its start.
func (h *History) Requests() RequestReader { return &given[Request]{h.requests} }

// Count returns the numbers of change events, of real ones, and of requests.
func (h *History) Count() (changes, realCount, requests int) {
	for i := range h.changes {
		if h.changes[i].Real {
			realCount++
		}
	}
	return len(h.changes), realCount, len(h.requests)
}

type given[E any] struct{ rest []E }

// Read fills buf.
func (g *given[E]) Read(buf []E) int {
	n := copy(buf, g.rest)
	g.rest = g.rest[n:]
	return n
}

// clipSize returns a size as it is kept: what is larger than 4 GiB counts as 4 GiB.
func clipSize(size int64) uint32 { return uint32(min(max(size, 0), math.MaxUint32)) }
