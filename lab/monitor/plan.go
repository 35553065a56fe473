package monitor

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/freshet/freshet/change"
	"github.com/freshet/freshet/lab/field"
	"github.com/freshet/freshet/revisit"
)

// plan visits each resource at the rate that a policy of package revisit gives
// it for the budget: the very code that the live robot runs. It either knows
// the change rates of the field or estimates them from its visits.
//
// Downloaders never wait: the next visit is always of the resource whose turn
// is first, also when that lies in the future, and a resource's turns are 1/rate
// apart. So visits are in the ratios of the rates whatever the budget is worth;
// the price of the policy is found anew every day for the visits that were
// possible in the day before.
type plan struct {
	crew
	policy revisit.Policy
	ask    bool

	rates   []float64        // real changes a second, if known
	history []change.History // of visits, if learned

	turns  turns
	parked []uint32 // pages that the policy does not visit at the present price
	tariff revisit.Tariff
	memo   []float64 // rates of visits by change rate, at the present price; NaN: not asked yet
	visits float64   // since the price was found
	spin   int       // visits since one took time
}

// What plans have under way beside downloads and probes.
const (
	priced = asked + 1 + iota // the price is to be found
	rested                    // a field with nothing but errors was waited out
)

// day is how often the price is found, in units.
const day = 24 * 3600 / field.Unit

// Change rates are rounded for the price, as the live robot does, to a quarter
// of an octave, and for a page's own rate to a 32nd, which changes intervals
// by 1 %.
const (
	coarse = 4
	fine   = 32
	octave = 80 // rates told apart are from 2^-octave to 2^octave a second
)

func readPlan(learn bool) func([]string) (func(field.Field) (Strategy, error), error) {
	return func(args []string) (func(field.Field) (Strategy, error), error) {
		c, ask, err := readVisits(args)
		if err != nil {
			return nil, err
		}
		policy, ok := revisit.Policies()[args[0]]
		if !ok {
			return nil, fmt.Errorf("no policy %q; there are %s", args[0], strings.Join(revisit.Names(), ", "))
		}
		return func(f field.Field) (Strategy, error) {
			p := &plan{crew: c, policy: policy, ask: ask, memo: make([]float64, 2*octave*fine+1)}
			if learn {
				p.history = make([]change.History, f.Pages())
			} else {
				p.rates = perSecond(f)
			}
			return p, nil
		}, nil
	}
}

// readVisits reads the arguments that follow the name of a policy or rule.
func readVisits(args []string) (c crew, ask bool, err error) {
	if len(args) < 2 || len(args) > 3 {
		return c, false, errors.New("it has two or three arguments")
	}
	if len(args) == 3 {
		if args[2] != "ask" {
			return c, false, fmt.Errorf("%q is not \"ask\"", args[2])
		}
		ask = true
	}
	c, err = readCrew(args[1])
	return c, ask, err
}

func perSecond(f field.Field) []float64 {
	out := make([]float64, f.Pages())
	for i, v := range f.Rates() {
		out[i] = v / field.Unit
	}
	return out
}

// clock is the time of a live robot.
func clock(t float64) time.Time {
	return time.Unix(0, 0).Add(time.Duration(t * field.Unit * float64(time.Second)))
}

// rate returns the change rate of a page, a second, as far as it is known.
func (p *plan) rate(page uint32) float64 {
	if p.rates != nil {
		return p.rates[page]
	}
	return p.history[page].Rate(change.DefaultPrior)
}

// interval returns the units between visits of a page: +Inf for none.
func (p *plan) interval(page uint32) float64 {
	d := p.rate(page)
	if d <= 0 {
		return 1 / (p.tariff.Rate(revisit.Item{Importance: 1, Rate: d}) * field.Unit)
	}
	i := int(math.Round(math.Log2(d)*fine)) + octave*fine
	i = min(max(i, 0), len(p.memo)-1)
	if math.IsNaN(p.memo[i]) {
		p.memo[i] = p.tariff.Rate(revisit.Item{Importance: 1, Rate: math.Exp2(float64(i-octave*fine) / fine)}) * field.Unit
	}
	return 1 / p.memo[i]
}

// price finds what a visit costs when so many visits a unit are possible.
func (p *plan) price(s *Sim, visits float64) {
	counts := map[int]float64{}
	for page := range uint32(s.Pages()) {
		if d := p.rate(page); d > 0 {
			counts[int(math.Round(math.Log2(d)*coarse))]++
		}
	}
	for i := range p.memo {
		p.memo[i] = math.NaN()
	}
	p.visits = 0
	if len(counts) == 0 {
		return // nothing changes: visit nothing
	}
	var kinds []revisit.Item
	var numbers []float64
	for k := -octave * coarse; k <= octave*coarse; k++ { // in order: sums must not depend on a map's
		if n := counts[k]; n > 0 {
			kinds, numbers = append(kinds, revisit.Item{Importance: 1, Rate: math.Exp2(float64(k) / coarse)}), append(numbers, n)
		}
	}
	if t, err := revisit.NewTariff(p.policy, kinds, numbers, visits/field.Unit); err == nil {
		p.tariff = t
	}
}

// Start finds the first price for visits of mean length and gives every page a
// first turn within its interval.
func (p *plan) Start(s *Sim) {
	if p.history != nil {
		for i := range p.history {
			p.history[i].Observe(clock(0), false)
		}
	}
	each := (1. + DownloadTime) / 2
	switch {
	case p.line > 0:
		var sum float64
		for _, v := range s.field.Sizes() {
			sum += float64(v)
		}
		each = max(1e-6, sum/float64(s.Pages())/s.rate)
	case p.ask:
		each = (1. + ProbeTime) / 2
	}
	p.price(s, float64(p.size)/each)
	for page := range uint32(s.Pages()) {
		p.turn(page, 0, s.Unit())
	}
	s.After(day, priced, 0, 0)
	p.visit(s)
}

// turn gives a page its next turn: part of its interval after a moment.
func (p *plan) turn(page uint32, after, part float64) {
	if v := p.interval(page); v < math.Inf(1) {
		p.turns.push(after+v*part, page)
		return
	}
	p.parked = append(p.parked, page)
}

// Done goes on after a probe or a download, or finds the price anew.
func (p *plan) Done(s *Sim, e Event) {
	switch e.What {
	case priced:
		p.price(s, max(1, p.visits)/day)
		pages := p.parked
		p.parked = nil
		for _, page := range pages {
			p.turn(page, p.turns.now, s.Unit())
		}
		s.After(day, priced, 0, 0)
	case rested:
		p.busy--
	case asked:
		news := s.Stale(e.Page)
		if news && s.Download(0, e.Page) {
			return // seen when it ends
		}
		p.busy--
		p.seen(s, e.Page, news)
	default:
		p.busy--
		p.seen(s, e.Page, s.News())
	}
	p.visit(s)
}

// seen ends a visit.
func (p *plan) seen(s *Sim, page uint32, news bool) {
	p.visits++
	if p.history != nil {
		p.history[page].Observe(clock(s.Now()), news)
	}
	p.turn(page, p.turns.now, 1)
}

// visit puts every free downloader to work.
func (p *plan) visit(s *Sim) {
	for p.spin = 0; p.free() && p.turns.any(); {
		page := p.turns.pop()
		if p.ask {
			s.Probe(asked, 0, page)
			p.busy++
			continue
		}
		if s.Download(0, page) {
			p.busy++
			continue
		}
		p.seen(s, page, s.News())
		if p.spin++; p.spin > s.Pages() {
			p.busy++
			s.After(pause, rested, 0, 0)
		}
	}
}
