package freshness

import (
	"math"

	"github.com/freshet/freshet/freshness/revisit"
)

// kind is what pages have in common that are planned alike: numbers rounded to
// steps of a histogram, so that a plan for millions of pages has thousands of
// items.
type kind struct {
	rate, importance, cost float64
	shape                  float64 // of the posterior of rate
	signals                bool    // the changes that are signalled
}

// maxShape is the shape of a posterior that is all but certain.
const maxShape = 1024

// planItem is a page of the kind.
func (k kind) planItem() revisit.Item {
	return revisit.Item{Importance: k.importance, Rate: k.rate, Shape: k.shape, Cost: k.cost, Signals: k.signals}
}

// roundToOctave rounds x to a power of two, with so many steps an octave.
func roundToOctave(x, octave float64) float64 {
	return math.Exp2(math.Round(math.Log2(max(x, 1e-12))*octave) / octave)
}

// itemsOf returns the items of a histogram and how many pages each stands for.
func itemsOf(kinds map[kind]int) (items []revisit.Item, counts []float64) {
	for k, count := range kinds {
		items, counts = append(items, k.planItem()), append(counts, float64(count))
	}
	return items, counts
}

// setPrices finds what a visit costs under the policy and budget for a histogram
// of all pages, and starts sending with the part of the budget that own, the
// pages that this process plans for, get of it.
func (p *Scheduler) setPrices(kinds, own map[kind]int) error {
	total, pages := 0., 0.
	for k, count := range kinds {
		if !k.signals {
			total, pages = total+float64(count)*max(k.cost, 1), pages+float64(count)
		}
	}
	visits := p.budget
	if p.config.BudgetBytes > 0 && total > 0 {
		visits *= pages / total
	}
	if p.policy != nil && len(kinds) > 0 {
		items, counts := itemsOf(kinds)
		t, err := revisit.NewTariff(*p.policy, items, counts, p.budget)
		if err != nil {
			return err
		}
		p.tariff.Store(&t)
	}
	return p.startSending(visits * p.ownShare(kinds, own))
}

// ownShare returns the part of the visits that a plan gives to the pages that this
// process plans for. Each process sends in that proportion, so that a visit is
// worth the same in all.
func (p *Scheduler) ownShare(kinds, own map[kind]int) float64 {
	optimal := revisit.Policies()["fixed-optimal"]
	if p.policy != nil {
		optimal = *p.policy
	}
	items, counts := itemsOf(kinds)
	rate := func(kind) float64 { return 1 }
	if t, err := revisit.NewTariff(optimal, items, counts, p.budget); err == nil && p.rule != "sweep" {
		rate = func(k kind) float64 { return t.Rate(k.planItem()) }
	}
	sum := func(kinds map[kind]int) (s float64) {
		for k, count := range kinds {
			s += float64(count) * rate(k)
		}
		return s
	}
	all := sum(kinds)
	if all <= 0 {
		return 1
	}
	return max(sum(own)/all, 1e-9) // the schedule wants some budget
}

// Needed is what a share of fresh pages would cost.
type Needed struct {
	Freshness float64 // wanted share of the pages, weighted by importance
	Rate      float64 // requests a second
	Bytes     float64 // a day
}

// wantedShares are the shares of fresh pages whose cost is reported.
var wantedShares = [...]float64{.8, .9, .95}

// neededBudgets returns the smallest budgets at which the optimal plan keeps the wanted
// shares of the pages fresh, by bisection of its price. bytes is the mean size of
// a visit. A signalled change costs a visit and loses no freshness.
func neededBudgets(kinds map[kind]int, bytes float64) []Needed {
	if len(kinds) == 0 {
		return nil
	}
	optimal := revisit.Policies()["fixed-optimal"]
	at := func(price float64) (freshness, requests float64) {
		weight := 0.0
		for k, count := range kinds {
			if k.signals {
				requests += float64(count) * optimal.Rate(revisit.Item{Importance: k.importance, Rate: k.rate, Signals: true}, price)
				continue
			}
			f := optimal.Rate(revisit.Item{Importance: k.importance, Rate: k.rate}, price) // by then the rate is known
			requests += float64(count) * f
			freshness += float64(count) * k.importance * revisit.FixedFreshness(f, k.rate)
			weight += float64(count) * k.importance
		}
		return freshness / weight, requests
	}
	var out []Needed
	for _, want := range wantedShares {
		low, high := -60.0, 60.0 // logarithms of the price: a low one buys much
		for range 80 {
			mid := (low + high) / 2
			if f, _ := at(math.Exp2(mid)); f > want {
				low = mid
			} else {
				high = mid
			}
		}
		_, requests := at(math.Exp2(low))
		out = append(out, Needed{Freshness: want, Rate: requests, Bytes: requests * bytes * 86400})
	}
	return out
}
