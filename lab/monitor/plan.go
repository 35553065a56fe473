package monitor

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/freshet/freshet/freshness/change"
	"github.com/freshet/freshet/freshness/revisit"
	"github.com/freshet/freshet/lab/field"
)

// plan visits the resource that a revisit.Schedule says is next: the very code
// by which the live robot chooses. It either knows the change rates of the field
// or estimates them from its visits. A rule of the schedule is followed as it
// is, a policy of plans by the rates that it gives the resources for the budget.
//
// Downloaders never wait: the next visit is always of the resource whose moment
// is first, also when that lies in the future. So visits are in the ratios of
// the rates whatever the budget is worth; the price of a policy of plans is
// found again now and then, every day in the end, for the visits that were
// possible since the last time.
type plan struct {
	crew
	policy *revisit.Policy // nil for a rule of the schedule
	recall float64         // share of changes that the site tells of: a plan polls for the rest
	asks   bool

	rates   []float64        // real changes a second, if known
	history []change.History // of visits, if learned
	paces   []float64        // one over the adaptive intervals, with their last visits
	seenAt  []float64        // seconds

	schedule *revisit.Schedule
	tariff   revisit.Tariff
	memo     []float64 // rates of visits by change rate, at the present price; NaN: not asked yet
	visits   float64   // since the price was found
	every    float64   // for how long a price holds
	spin     int       // visits since one took time
}

// Events of plans in addition to downloads and probes.
const (
	priced = asked + 1 + iota // the price is to be found
	rested                    // a field with nothing but errors was waited out
)

// day is how often the price is found, in units; at first, while rates are not
// known yet, after firstPrice, then after twice as long each time.
const (
	day        = 24 * 3600 / field.Unit
	firstPrice = day / 64
)

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
		c, ask, err := parseVisits(args)
		if err != nil {
			return nil, err
		}
		policy, rule, err := parsePolicy(args[0])
		if err != nil {
			return nil, err
		}
		return func(f field.Field) (Strategy, error) {
			p := &plan{crew: c, policy: policy, asks: ask, memo: make([]float64, 2*octave*fine+1), schedule: revisit.NewSchedule(rule)}
			switch {
			case args[0] == adaptive:
				p.seenAt, p.paces = make([]float64, f.Pages()), make([]float64, f.Pages())
			case learn:
				p.history = make([]change.History, f.Pages())
			default:
				p.rates = perSecond(f)
			}
			return p, nil
		}, nil
	}
}

// parsePolicy returns the policy of plans of a name, if it is one, and the rule
// for the schedule.
func parsePolicy(name string) (*revisit.Policy, revisit.Rule, error) {
	if p, ok := revisit.Policies()[name]; ok {
		r, err := revisit.RuleOf("stride")
		return &p, r, err
	}
	rule := name
	if name == adaptive {
		rule = "stride"
	}
	r, err := revisit.RuleOf(rule)
	if err != nil || name == "stride" {
		names := append(revisit.Names(), adaptive, "greedy", "most-likely-changed", "sweep")
		slices.Sort(names)
		err = fmt.Errorf("no policy %q; there are %s", name, strings.Join(names, ", "))
	}
	return nil, r, err
}

// adaptive is the name of the rule of revisit.Adaptive, which learns by itself.
const adaptive = "adaptive"

// parseVisits reads the arguments that follow the name of a policy or rule.
func parseVisits(args []string) (c crew, ask bool, err error) {
	if len(args) < 2 || len(args) > 3 {
		return c, false, errors.New("it has two or three arguments")
	}
	if len(args) == 3 {
		if args[2] != "ask" {
			return c, false, fmt.Errorf("%q is not \"ask\"", args[2])
		}
		ask = true
	}
	c, err = readVisitBudget(args[1])
	return c, ask || c.turn > 0, err
}

func perSecond(f field.Field) []float64 {
	out := make([]float64, f.Pages())
	for i, v := range f.Rates() {
		out[i] = v / field.Unit
	}
	return out
}

// simulatedTime is the time of a live robot.
func simulatedTime(t float64) time.Time {
	return time.Unix(0, 0).Add(time.Duration(t * field.Unit * float64(time.Second)))
}

// knownChangeRate returns the change rate of a page, a second, as far as it is known.
func (p *plan) knownChangeRate(page uint32) float64 {
	if p.rates != nil {
		return p.rates[page]
	}
	return p.history[page].Rate(change.DefaultPrior)
}

// scheduleRate is the rate by which the schedule goes: that of a page's changes, or of
// the visits that a plan gives it.
func (p *plan) scheduleRate(page uint32) float64 {
	if p.paces != nil {
		return p.paces[page]
	}
	d := p.knownChangeRate(page)
	if p.policy == nil || d <= 0 {
		return d
	}
	i := int(math.Round(math.Log2(d)*fine)) + octave*fine
	i = min(max(i, 0), len(p.memo)-1)
	if math.IsNaN(p.memo[i]) {
		p.memo[i] = p.tariff.Rate(revisit.Item{Importance: 1, Rate: math.Exp2(float64(i-octave*fine)/fine) * (1 - p.recall)})
	}
	return p.memo[i]
}

// priceVisits finds what a visit costs when so many visits a unit are possible.
func (p *plan) priceVisits(s *Sim, visits float64) {
	if p.policy == nil {
		return
	}
	counts := map[int]float64{}
	for page := range uint32(s.Pages()) {
		if d := p.knownChangeRate(page); d > 0 {
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
			d := math.Exp2(float64(k) / coarse)
			kinds, numbers = append(kinds, revisit.Item{Importance: 1, Rate: d * (1 - p.recall)}), append(numbers, n)
			if p.recall > 0 {
				kinds, numbers = append(kinds, revisit.Item{Importance: 1, Rate: d * p.recall, Signals: true}), append(numbers, n)
			}
		}
	}
	if t, err := revisit.NewTariff(*p.policy, kinds, numbers, visits/field.Unit); err == nil {
		p.tariff = t
	}
}

// Start finds the first price for visits of mean length and files every page as
// if it had been visited at some moment of its turn.
func (p *plan) Start(s *Sim) {
	if p.history != nil {
		for i := range p.history {
			p.history[i].Observe(simulatedTime(0), false, change.DefaultPrior)
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
	case p.turn > 0:
		each = p.turn
	case p.asks:
		each = (1. + ProbeTime) / 2
	}
	visits := float64(p.size) / each
	p.priceVisits(s, visits)
	turn := float64(s.Pages()) / visits * field.Unit // of all pages alike
	for i := range p.paces {
		p.paces[i] = 1 / turn
	}
	for page := range uint32(s.Pages()) {
		f, ago := p.scheduleRate(page), turn
		if p.policy != nil && f > 0 {
			ago = 1 / f
		}
		mustSchedule(p.schedule.Add(1, f, -ago*s.Unit()))
	}
	_ = p.schedule.Start(visits / field.Unit) // visits is positive
	p.every = firstPrice
	s.After(p.every, priced, 0, 0)
	p.startVisits(s)
}

// mustSchedule is for items whose numbers cannot be wrong.
func mustSchedule(_ uint32, err error) {
	if err != nil {
		panic(fmt.Sprintf("monitor: schedule: %v", err))
	}
}

// Done goes on after a probe or a download, or finds the price again.
func (p *plan) Done(s *Sim, e Event) {
	switch e.What {
	case priced:
		p.priceVisits(s, max(1, p.visits)/p.every)
		for page := range uint32(s.Pages()) {
			p.updatePace(page)
		}
		p.every = min(2*p.every, day)
		s.After(p.every, priced, 0, 0)
	case rested:
		p.busy--
	case asked:
		news, more := p.finishQuery(s, e.Page)
		if more {
			return // seen when it ends
		}
		p.finishVisit(s, e.Page, news)
	default:
		p.busy--
		p.finishVisit(s, e.Page, s.News())
	}
	p.startVisits(s)
}

// updatePace tells the schedule of a page's new pace.
func (p *plan) updatePace(page uint32) {
	f := p.scheduleRate(page)
	if _, was, _, _ := p.schedule.Known(page); math.Abs(was-f) > .01*was {
		if err := p.schedule.Set(page, 1, f); err != nil {
			panic(fmt.Sprintf("monitor: schedule: %v", err))
		}
	}
}

// finishVisit ends a visit.
func (p *plan) finishVisit(s *Sim, page uint32, news bool) {
	p.visits++
	if p.history != nil {
		p.history[page].Observe(simulatedTime(s.Now()), news, change.DefaultPrior)
		p.updatePace(page)
	}
	if p.paces != nil {
		now := s.Now() * field.Unit
		if since := now - p.seenAt[page]; since > 0 {
			p.paces[page] = 1 / revisit.Adaptive{}.Next(since, news)
		}
		p.seenAt[page] = now
		p.updatePace(page)
	}
}

// startVisits puts every free downloader to work.
func (p *plan) startVisits(s *Sim) {
	for p.spin = 0; p.hasFreeDownloader(); {
		page, ok := p.schedule.Next(s.Now() * field.Unit)
		if !ok {
			return
		}
		if p.asks {
			p.beginQuery(s, page)
			continue
		}
		if s.Download(0, page) {
			p.busy++
			continue
		}
		p.finishVisit(s, page, s.News())
		if p.spin++; p.spin > s.Pages() {
			p.busy++
			s.After(pause, rested, 0, 0)
		}
	}
}
