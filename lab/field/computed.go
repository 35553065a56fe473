package field

import (
	"math"

	"github.com/freshet/freshet/internal/dueheap"
	"github.com/freshet/freshet/internal/rng"
)

// Computed is a field whose resources have histories that follow from the seed
// and the number of the resource alone: the state of any of 2^42 resources is
// known without a table, and a resource has the same history whether it is
// asked for alone or read among all.
//
// The state at a time is found by going back a few events and forward again.
// The size of a resource hangs on all changes before, but the maps from size to
// size are monotone and contract: as soon as what would have become of the
// least and of the greatest size is the same, so is the truth (coupling from
// the past, Propp and Wilson 1996). With the exponential law a look-up costs a
// microsecond, with others a walk over the events since the start.
type Computed struct {
	spec     Spec
	course   course
	changes  renewal
	requests renewal
}

// NewComputed makes a field. PageCount bounds only what Pages and the readers
// tell; 0 is no resource for them, and At answers for any number.
func NewComputed(s Spec) (*Computed, error) {
	pages := s.PageCount
	s.PageCount = max(pages, 1)
	if err := s.checkSpec(); err != nil {
		return nil, err
	}
	s.PageCount = pages
	name := rng.Source(s.Seed, "computed field", s.Number, s.Replication)
	return &Computed{
		spec: s, course: newCourse(&s),
		changes:  renewal{name.Uint64(), s.Changed / s.Length, s.ChangeLaw, s.ChangeSpread, s.Length},
		requests: renewal{name.Uint64(), s.Requested / s.Length, s.RequestLaw, s.RequestSpread, s.Length},
	}, nil
}

// initialSize returns the size at the start.
func (f *Computed) initialSize(page uint64) uint32 {
	hash := rng.Mix(f.changes.seed, page)
	return f.spec.Least + uint32((hash>>32)*(uint64(f.spec.Most-f.spec.Least)+1)>>32)
}

// applyEvent returns what event e does to a resource.
func (f *Computed) applyEvent(page uint64, e place, was state) state {
	bits := rng.Mix(rng.Mix(f.changes.seed+saltKinds, page), e.number)
	k := f.course.drawKind(uint32(bits >> 32))
	return state{f.course.drawSize(k, was.size, uint32(bits)), k}
}

// reach is how many cells At goes back at first: some events, most likely with
// a real change among them.
const reach = 3

// At returns the state of a resource at time t.
func (f *Computed) At(page uint64, t float64) State {
	p := f.changes.pageProcess(page)
	t = min(max(t, 0), f.spec.Length)
	if f.settlesAfterFirst() {
		return f.stateOfSettled(page, &p, t)
	}
	for cells := uint64(reach); ; cells *= 4 {
		from := p.placeBefore(t, cells)
		if s, ok := f.followFrom(page, &p, from, t); ok {
			return s
		}
	}
}

// settlesAfterFirst reports whether all events are of one kind that repeats without being a
// real change: there is at most the first.
func (f *Computed) settlesAfterFirst() bool {
	for k := Forbidden; k <= Same; k++ {
		if f.spec.Kinds[k-1] == 1 && !Real(k, k) {
			return true
		}
	}
	return false
}

// stateOfSettled is At of such a field.
func (f *Computed) stateOfSettled(page uint64, p *process, t float64) State {
	s := State{Kind: Same, Size: f.initialSize(page), Until: math.Inf(1)}
	e := p.nextPlace(place{})
	kind := f.applyEvent(page, e, state{s.Size, Same}).kind
	switch {
	case !Real(Same, kind):
	case e.at > t:
		s.Until = e.at
	default:
		s.Kind, s.Number, s.Since = kind, e.number, e.at
	}
	return s
}

// followFrom follows a resource from a place up to t and to the real change after;
// false if the state at t hangs on what was before that place.
func (f *Computed) followFrom(page uint64, p *process, e place, t float64) (State, bool) {
	s := State{Kind: Same}
	low := state{f.spec.Least, 0} // no kind: not known
	high := state{f.spec.Most, 0}
	sure := e == place{}
	if sure {
		low = state{f.initialSize(page), Same}
		high = low
	}
	w := walk{process: p, at: e}
	for e = w.nextWalkPlace(); e.at <= t; e = w.nextWalkPlace() {
		was := low.kind
		low, high = f.applyEvent(page, e, low), f.applyEvent(page, e, high)
		if was != 0 && Real(was, low.kind) {
			s.Number, s.Since, s.Kind, sure = e.number, e.at, low.kind, true
		}
	}
	if !sure || low.size != high.size {
		return s, false
	}
	s.Size = low.size
	for ; !math.IsInf(e.at, 1); e = w.nextWalkPlace() {
		was := low
		if low = f.applyEvent(page, e, low); isRealChange[was.kind&7][low.kind&7] {
			break
		}
	}
	s.Until = e.at
	return s, true
}

// Pages returns the number of resources that the readers tell of.
func (f *Computed) Pages() int { return f.spec.PageCount }

// Horizon returns the length in units.
func (f *Computed) Horizon() float64 { return f.spec.Length }

// Sizes returns the sizes at the start.
func (f *Computed) Sizes() []uint32 {
	out := make([]uint32, f.spec.PageCount)
	for i := range out {
		out[i] = f.initialSize(uint64(i))
	}
	return out
}

// Rates returns the rate of real changes of each resource.
func (f *Computed) Rates() []float64 {
	return f.changes.scaledRates(f.spec.PageCount, f.spec.Kinds.RealShare())
}

// RequestRates returns the rate of requests of each resource.
func (f *Computed) RequestRates() []float64 { return f.requests.scaledRates(f.spec.PageCount, 1) }

func (r *renewal) scaledRates(pages int, share float64) []float64 {
	out := make([]float64, pages)
	for i := range out {
		out[i] = share * r.rateOf(uint64(i))
	}
	return out
}

// Changes returns the change history from its start.
func (f *Computed) Changes() ChangeReader {
	c := &computedChanges{f: f, merge: newMerge(&f.changes, f.spec.PageCount), state: make([]state, f.spec.PageCount)}
	for i, size := range f.Sizes() {
		c.state[i] = state{size, Same}
	}
	return c
}

// Requests returns the request history from its start.
func (f *Computed) Requests() RequestReader {
	return &computedRequests{newMerge(&f.requests, f.spec.PageCount)}
}

// merge reads the processes of all resources in order of time.
type merge struct {
	r      *renewal
	heap   dueheap.Heap
	number []uint64 // of the event of each resource that is next
}

func newMerge(r *renewal, pages int) *merge {
	m := &merge{r: r, number: make([]uint64, pages)}
	for i := range pages {
		p := r.pageProcess(uint64(i))
		if e := p.nextPlace(place{}); !math.IsInf(e.at, 1) {
			m.number[i] = e.number
			m.heap = append(m.heap, dueheap.Entry{At: e.at, ID: uint32(i)})
		}
	}
	m.heap.Order()
	return m
}

// nextEvent returns the next event; false at the end.
func (m *merge) nextEvent() (page uint32, e place, ok bool) {
	if len(m.heap) == 0 {
		return 0, place{}, false
	}
	top := m.heap[0]
	e = place{top.At, m.number[top.ID]}
	p := m.r.pageProcess(uint64(top.ID))
	after := p.nextPlace(e)
	m.number[top.ID] = after.number
	if math.IsInf(after.at, 1) {
		m.heap.Pop()
	} else {
		m.heap.Replace(dueheap.Entry{At: after.at, ID: top.ID})
	}
	return top.ID, e, true
}

type computedChanges struct {
	f     *Computed
	merge *merge
	state []state
}

// Read fills buf.
func (c *computedChanges) Read(buf []Change) int {
	for i := range buf {
		page, e, ok := c.merge.nextEvent()
		if !ok {
			return i
		}
		was := c.state[page]
		now := c.f.applyEvent(uint64(page), e, was)
		buf[i] = Change{e.at, page, now.size, now.kind, isRealChange[was.kind&7][now.kind&7]}
		c.state[page] = now
	}
	return len(buf)
}

type computedRequests struct{ merge *merge }

// Read fills buf.
func (c *computedRequests) Read(buf []Request) int {
	for i := range buf {
		page, e, ok := c.merge.nextEvent()
		if !ok {
			return i
		}
		buf[i] = Request{e.at, page}
	}
	return len(buf)
}

var _ interface {
	Field
	Lookup
} = (*Computed)(nil)
