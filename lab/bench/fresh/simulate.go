package fresh

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/freshet/freshet/lab/field"
	"github.com/freshet/freshet/lab/monitor"
)

// pageSize is what a page has in the simulation, where nothing hangs on it.
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

// simulatePolicy runs a policy that knows the rates in the simulator, on the site's
// own history, and returns what it kept over the time that is measured.
func (e *Experiment) simulatePolicy(ctx context.Context, policy string, told bool) (*Outcome, error) {
	kind := "plan"
	if told {
		kind = "told"
	}
	v, err := monitor.Parse(fmt.Sprintf("%s:%s:%g/s", kind, policy, e.config.Budget))
	if err != nil {
		return nil, nil // it has no such policy
	}
	warm := e.config.Warm.Seconds()
	end := warm + e.config.Measure.Seconds()
	log := &deliveries{site: &site{rates: e.site.rates, changes: e.site.changes, told: make([][]delivery, len(e.site.rates))}}
	for page := range log.site.told { // it begins with a copy of everything
		log.site.told[page] = []delivery{{0, 0}}
	}
	if _, err := monitor.Run(ctx, monitor.Config{Field: newHistory(e.site, end), Variant: v, Seed: e.config.Seed, Log: log}); err != nil {
		return nil, fmt.Errorf("simulate %s: %w", policy, err)
	}
	o := &Outcome{Age: new(float64)}
	o.Freshness, *o.Age, _ = log.site.measureKnowledge(warm, end)
	return o, nil
}

// deliveries notes what the simulated robot was told, so that it is measured as
// the real one is.
type deliveries struct{ site *site }

// Fetched implements monitor.Log: a request brought a page that had changed.
func (d *deliveries) Fetched(t float64, page, _ uint32, _ int64) {
	at := t * field.Unit
	d.site.told[page] = append(d.site.told[page], delivery{at, d.site.versionAt(int(page), at)})
}

// Changed implements monitor.Log.
func (*deliveries) Changed(float64, field.Change) {}

// Learned implements monitor.Log.
func (*deliveries) Learned(float64, uint32, float64) {}
