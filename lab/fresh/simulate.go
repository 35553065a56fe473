package fresh

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/freshet/freshet/lab/field"
	"github.com/freshet/freshet/lab/monitor"
)

// pageSize is what a page has in the simulation, where a line of Budget times
// as many bytes a second makes Budget visits a second.
const pageSize = 1000

// history is the site's history as the simulator's field: the same moments of
// change that the real robot meets.
type history struct {
	changes []field.Change
	sizes   []uint32
	rates   []float64
	horizon float64
}

var _ field.Field = (*history)(nil)

func newHistory(s *site, seconds float64) *history {
	h := &history{sizes: make([]uint32, len(s.rates)), rates: make([]float64, len(s.rates)), horizon: seconds / field.Unit}
	for page := range s.rates {
		h.sizes[page], h.rates[page] = pageSize, s.rates[page]*field.Unit
		for _, at := range s.changes[page] {
			if t := at / field.Unit; t < h.horizon {
				h.changes = append(h.changes, field.Change{Time: t, Page: uint32(page), Size: pageSize, Kind: field.Grown, Real: true})
			}
		}
	}
	slices.SortFunc(h.changes, func(a, b field.Change) int { return cmp.Compare(a.Time, b.Time) })
	return h
}

// Pages implements field.Field, as do the others.
func (h *history) Pages() int                    { return len(h.sizes) }
func (h *history) Horizon() float64              { return h.horizon }
func (h *history) Sizes() []uint32               { return h.sizes }
func (h *history) Rates() []float64              { return h.rates }
func (h *history) RequestRates() []float64       { return make([]float64, len(h.sizes)) }
func (h *history) Changes() field.ChangeReader   { return &reader{h.changes} }
func (h *history) Requests() field.RequestReader { return silence{} }

type reader struct{ left []field.Change }

func (r *reader) Read(buf []field.Change) int {
	n := copy(buf, r.left)
	r.left = r.left[n:]
	return n
}

type silence struct{}

func (silence) Read([]field.Request) int { return 0 }

// simulate runs a policy that knows the rates in the simulator, on the site's
// own history, and returns the mean freshness over the time that is measured.
func (e *Experiment) simulate(ctx context.Context, policy string) (float64, error) {
	v, err := monitor.Parse(fmt.Sprintf("plan:%s:%gkB/s", policy, e.config.Budget*pageSize/1000))
	if err != nil {
		return 0, err
	}
	warm := e.config.Warm.Seconds()
	r, err := monitor.Run(ctx, monitor.Config{
		Field: newHistory(e.site, warm+e.config.Measure.Seconds()), Variant: v, Warmup: warm / field.Unit, Seed: e.config.Seed,
	})
	if err != nil {
		return 0, fmt.Errorf("simulate %s: %w", policy, err)
	}
	return r.FreshnessMean / 100, nil
}
