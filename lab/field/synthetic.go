package field

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/freshet/freshet/internal/rng"
)

// Spec says how a field is made. The zero value of every field but the first
// four means its default.
type Spec struct {
	PageCount int     // N
	Length    float64 // horizon, units
	Changed   float64 // mean number of change events of a resource within Length
	Requested float64 // mean number of requests of a resource within Length

	ChangeLaw     Law // of gaps; Exponential
	RequestLaw    Law
	ChangeSpread  Law // of rates across resources; nil: all the same
	RequestSpread Law
	Kinds         KindShares // Classic
	Least, Most   uint32     // sizes, bytes; MinSize, MaxSize

	Seed        uint64
	Number      int // of the field within a plan
	Replication int
}

// MaxPages bounds N: a resource costs some 50 bytes while it is simulated.
const MaxPages = 100_000_000

// MaxEvents bounds the mean number of events of a resource.
const MaxEvents = 1e9

// MaxTime bounds the length in units, 30 years: series have a sample in 5,000.
const MaxTime = 1e10

// Synthetic is a field made from laws.
type Synthetic struct {
	spec     Spec
	sizes    []uint32
	changes  func() []float64 // events a unit, drawn when somebody asks
	requests func() []float64
	rates    func() []float64 // real changes a unit
	course
}

// New makes a field. The error says which number makes no sense.
func New(s Spec) (*Synthetic, error) {
	if err := s.checkSpec(); err != nil {
		return nil, err
	}
	f := &Synthetic{spec: s, sizes: make([]uint32, s.PageCount), course: newCourse(&s)}
	r := f.randomStream("sizes")
	for i := range f.sizes {
		f.sizes[i] = s.Least + uint32(uniformBelow(r, uint64(s.Most-s.Least)+1))
	}
	f.changes = sync.OnceValue(func() []float64 { return f.spreadRates("change rates", s.Changed/s.Length, s.ChangeSpread) })
	f.requests = sync.OnceValue(func() []float64 { return f.spreadRates("request rates", s.Requested/s.Length, s.RequestSpread) })
	f.rates = sync.OnceValue(func() []float64 {
		share := s.Kinds.RealShare()
		out := slices.Clone(f.changes())
		for i := range out {
			out[i] *= share
		}
		return out
	})
	return f, nil
}

// Check says which number of a spec makes no sense.
func (s Spec) Check() error { return s.checkSpec() }

// checkSpec checks and sets the defaults.
func (s *Spec) checkSpec() error {
	switch {
	case s.PageCount < 1 || s.PageCount > MaxPages:
		return fmt.Errorf("%w: %d pages; there must be 1 to %d", ErrInput, s.PageCount, MaxPages)
	case !(s.Length > 0) || s.Length > MaxTime:
		return fmt.Errorf("%w: time %g is not a number of units in (0, %g]", ErrInput, s.Length, float64(MaxTime))
	case !(s.Changed >= 0) || s.Changed > MaxEvents:
		return fmt.Errorf("%w: %g changes a page", ErrInput, s.Changed)
	case !(s.Requested >= 0) || s.Requested > MaxEvents:
		return fmt.Errorf("%w: %g requests a page", ErrInput, s.Requested)
	}
	if s.ChangeLaw == nil {
		s.ChangeLaw = Exponential{}
	}
	if s.RequestLaw == nil {
		s.RequestLaw = Exponential{}
	}
	if s.Kinds == (KindShares{}) {
		s.Kinds = Classic()
	}
	var sum float64
	for i, p := range s.Kinds {
		if !(p >= 0) {
			return fmt.Errorf("%w: probability %g of kind %q", ErrInput, p, Kind(i+1))
		}
		sum += p
	}
	if math.Abs(sum-1) > 1e-9 {
		return fmt.Errorf("%w: the probabilities of the kinds sum to %g, not 1", ErrInput, sum)
	}
	if s.Least == 0 && s.Most == 0 {
		s.Least, s.Most = MinSize, MaxSize
	}
	if s.Least > s.Most {
		return fmt.Errorf("%w: sizes from %d to %d", ErrInput, s.Least, s.Most)
	}
	return nil
}

func (f *Synthetic) randomStream(name string) *rand.ChaCha8 {
	return rng.Source(f.spec.Seed, "field", f.spec.Number, f.spec.Replication, name)
}

// spreadRates returns each page's rate about a mean.
func (f *Synthetic) spreadRates(name string, mean float64, law Law) []float64 {
	out := make([]float64, f.spec.PageCount)
	if law == nil {
		for i := range out {
			out[i] = mean
		}
		return out
	}
	r := rand.New(f.randomStream(name))
	for i := range out {
		out[i] = mean * law.Draw(r)
	}
	return out
}

// Pages returns N.
func (f *Synthetic) Pages() int { return f.spec.PageCount }

// Horizon returns the length in units.
func (f *Synthetic) Horizon() float64 { return f.spec.Length }

// Sizes returns the sizes at the start.
func (f *Synthetic) Sizes() []uint32 { return f.sizes }

// Rates returns the rate of real changes of each page.
func (f *Synthetic) Rates() []float64 { return f.rates() }

// RequestRates returns the rate of requests of each page.
func (f *Synthetic) RequestRates() []float64 { return f.requests() }

// newClock returns a clock of the given law for a mean number of events of a page.
func (f *Synthetic) newClock(name string, law, spread Law, mean float64, rates func() []float64) clock {
	r := f.randomStream(name)
	if _, ok := law.(Exponential); !ok {
		return newClocks(rand.New(r), law, rates(), f.spec.Length)
	}
	if spread != nil {
		return newWeighted(r, rates())
	}
	return newMerged(r, f.spec.Length/mean/float64(f.spec.PageCount), f.spec.PageCount)
}

// Changes returns the change history from its start.
func (f *Synthetic) Changes() ChangeReader {
	s := &changes{
		f: f, r: f.randomStream("kinds"), state: make([]state, len(f.sizes)),
		clock: f.newClock("changes", f.spec.ChangeLaw, f.spec.ChangeSpread, f.spec.Changed, f.changes),
	}
	for i, size := range f.sizes {
		s.state[i] = state{size, Same}
	}
	return s
}

// changes draws the events of a clock.
type changes struct {
	f     *Synthetic
	clock clock
	r     *rand.ChaCha8
	state []state
	ended bool
}

// state is the present one of a resource.
type state struct {
	size uint32
	kind Kind
}

// Read fills buf with the next changes: first their moments, then what they do,
// so that one does not wait for the memory of the other.
func (s *changes) Read(buf []Change) int {
	if s.ended {
		return 0
	}
	n := 0
	if m, ok := s.clock.(*merged); ok { // no call through the interface
		for n < len(buf) {
			t, p := m.nextOccurrence()
			buf[n].Time, buf[n].Page = t, p
			if !(t < s.f.spec.Length) {
				break
			}
			n++
		}
	} else {
		for n < len(buf) {
			t, p := s.clock.nextOccurrence()
			buf[n].Time, buf[n].Page = t, p
			if !(t < s.f.spec.Length) {
				break
			}
			n++
		}
	}
	s.ended = n < len(buf)
	for i := range buf[:n] {
		s.drawChange(&buf[i])
	}
	return n
}

// drawChange says what an event does.
func (s *changes) drawChange(c *Change) {
	bits := s.r.Uint64()
	k := s.f.drawKind(uint32(bits >> 32))
	was := &s.state[c.Page]
	c.Size, c.Kind, c.Real = s.f.drawSize(k, was.size, uint32(bits)), k, isRealChange[was.kind&7][k&7]
	*was = state{c.Size, k}
}

// Requests returns the request history from its start.
func (f *Synthetic) Requests() RequestReader {
	return &requests{f: f, clock: f.newClock("requests", f.spec.RequestLaw, f.spec.RequestSpread, f.spec.Requested, f.requests)}
}

type requests struct {
	f     *Synthetic
	clock clock
	ended bool
}

// Read fills buf with the next requests.
func (s *requests) Read(buf []Request) int {
	if s.ended {
		return 0
	}
	if m, ok := s.clock.(*merged); ok { // most of all events are these: no call through the interface
		return s.readMerged(m, buf)
	}
	for i := range buf {
		t, p := s.clock.nextOccurrence()
		if !(t < s.f.spec.Length) {
			s.ended = true
			return i
		}
		buf[i] = Request{t, p}
	}
	return len(buf)
}

func (s *requests) readMerged(m *merged, buf []Request) int {
	for i := range buf {
		t, p := m.nextOccurrence()
		if !(t < s.f.spec.Length) {
			s.ended = true
			return i
		}
		buf[i] = Request{t, p}
	}
	return len(buf)
}
