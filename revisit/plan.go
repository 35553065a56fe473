// Package revisit plans how often things are visited so that a copy of them is
// fresh for a given budget of visits.
//
// An item changes as a Poisson process of rate D and is worth mu. Visited at
// fixed intervals 1/f, it is fresh for the share (f/D)(1 - e^{-D/f}) of the
// time (Cho, Garcia-Molina 2003); visited at random at rate rho, for the share
// rho/(rho + D) (Azar, Horvitz, Lubetzky, Peres, Shahaf 2018). Each policy
// divides the budget among the items by its own objective; all optimal ones
// have the form "marginal gain equals a common price", so that one bisection
// on the price solves them (KKT).
//
// Items whose changes are all signalled need no polling: they are visited on a
// signal with a probability p and are fresh for the share p of the time
// (Kolobov, Peres, Lubetzky, Horvitz 2019). The same price divides the budget
// between polled and signalled items.
package revisit

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Item is one thing to plan for. Rates are in any unit of time, the same for
// all items and the budget.
type Item struct {
	Importance float64 // > 0
	Rate       float64 // changes per time, >= 0
	Shape      float64 // of the belief of Rate (Uncertain), which fixed-optimal heeds; 0 where it is known
	Host       string  // group that HostCap bounds; "" is none
	HostCap    float64 // most visits per time of its host; 0 is no cap
	Signals    bool    // every change is signalled
	Cost       float64 // of a visit, in the unit of the budget (bytes, say); 0 is 1
}

func (it *Item) cost() float64 {
	if it.Cost > 0 {
		return it.Cost
	}
	return 1
}

// Share is what an item gets.
type Share struct {
	Rate   float64 // visits per time
	Signal float64 // probability to visit on a signal; 0 for polled items

	Freshness float64 // share of time fresh
	Age       float64 // mean age
}

// Plan is the outcome of a policy.
type Plan struct {
	Shares    []Share
	Freshness float64 // importance-weighted mean share of time that items are fresh
	Age       float64 // importance-weighted mean age, +Inf if an item that changes is never visited
	Harmonic  float64 // mean of -ln of what the no-starvation policy maximises
	Used      float64 // of the budget per time: visits, or what they cost
}

// errors of New.
var (
	ErrBudget = errors.New("the budget is not a positive number")
	ErrNone   = errors.New("no items")
)

// New divides a budget of visits per time among the items, or of what visits
// cost where items have costs; caps of hosts are in the same unit. The error names an
// item whose numbers make no sense by its place (from 0).
func New(p Policy, items []Item, budget float64) (*Plan, error) {
	if !(budget > 0) || math.IsInf(budget, 0) {
		return nil, fmt.Errorf("%w: %g", ErrBudget, budget)
	}
	if len(items) == 0 {
		return nil, ErrNone
	}
	for i, it := range items {
		switch {
		case !(it.Importance > 0) || math.IsInf(it.Importance, 0):
			return nil, fmt.Errorf("item %d: importance %g is not a positive number", i, it.Importance)
		case !(it.Rate >= 0) || math.IsInf(it.Rate, 0):
			return nil, fmt.Errorf("item %d: change rate %g is not a number from 0 up", i, it.Rate)
		case !(it.Cost >= 0) || math.IsInf(it.Cost, 0):
			return nil, fmt.Errorf("item %d: cost %g is not a number from 0 up", i, it.Cost)
		case !(it.HostCap >= 0) || (it.HostCap > 0 && it.Host == ""):
			return nil, fmt.Errorf("item %d: host cap %g needs a host and is not negative", i, it.HostCap)
		}
	}
	caps, err := capsOf(items)
	if err != nil {
		return nil, err
	}
	rates := polite(p, items, budget, caps)
	return evaluate(p, items, rates), nil
}

func capsOf(items []Item) (map[string]float64, error) {
	caps := map[string]float64{}
	for i, it := range items {
		if it.HostCap == 0 {
			continue
		}
		if c, ok := caps[it.Host]; ok && c != it.HostCap {
			return nil, fmt.Errorf("item %d: host %q has the cap %g here and %g before", i, it.Host, it.HostCap, c)
		}
		caps[it.Host] = it.HostCap
	}
	return caps, nil
}

// polite keeps the caps of hosts: solve for all, fix the hosts that would be
// visited too often at their cap and solve inside them, and so on with the
// rest; at most as many rounds as hosts (Kolobov et al. 2019).
func polite(p Policy, items []Item, budget float64, caps map[string]float64) []float64 {
	rates := make([]float64, len(items))
	open := make([]int, len(items))
	for i := range open {
		open[i] = i
	}
	for {
		solve(p, items, open, budget, rates)
		sum := map[string]float64{}
		for _, i := range open {
			sum[items[i].Host] += items[i].cost() * rates[i]
		}
		over := map[string][]int{}
		var rest []int
		for _, i := range open {
			h := items[i].Host
			if c, ok := caps[h]; ok && sum[h] > c*(1+1e-12) {
				over[h] = append(over[h], i)
			} else {
				rest = append(rest, i)
			}
		}
		if len(over) == 0 {
			return rates
		}
		for h, inside := range over {
			solve(p, items, inside, caps[h], rates)
			budget -= caps[h]
		}
		if open = rest; len(open) == 0 || budget <= 0 {
			return rates
		}
	}
}

// solve gives the items of one group rates that sum to the budget, as far as
// they can use it.
func solve(p Policy, items []Item, group []int, budget float64, rates []float64) {
	low, high := bracket(func(price float64) float64 {
		sum := 0.0
		for _, i := range group {
			sum += items[i].cost() * p.rate(&items[i], price)
		}
		return sum
	}, budget)
	sum := 0.0
	for _, i := range group {
		rates[i] = p.rate(&items[i], math.Exp2(high))
		sum += items[i].cost() * rates[i]
	}
	// Items of equal marginal gain (signalled ones) enter all at once at one
	// price: what is left of the budget is theirs.
	if left := budget - sum; left > 1e-9*budget {
		var step []int
		room := 0.0
		for _, i := range group {
			if more := items[i].cost() * (p.rate(&items[i], math.Exp2(low)) - rates[i]); more > 1e-9*budget {
				step = append(step, i)
				room += more
			}
		}
		for _, i := range step {
			rates[i] += (p.rate(&items[i], math.Exp2(low)) - rates[i]) * min(1, left/room)
		}
	}
}

// bracket finds the price at which a total that falls with the price passes the
// budget: logarithms (base 2) of prices just below and above.
func bracket(total func(price float64) float64, budget float64) (low, high float64) {
	low, high = -1.0, 1.0
	for total(math.Exp2(high)) > budget && high < 1000 {
		high += 8
	}
	for total(math.Exp2(low)) < budget && low > -1000 {
		low -= 8
	}
	for range 200 {
		mid := (low + high) / 2
		if total(math.Exp2(mid)) > budget {
			low = mid
		} else {
			high = mid
		}
	}
	return low, high
}

// evaluate computes what the rates achieve.
func evaluate(p Policy, items []Item, rates []float64) *Plan {
	plan := &Plan{Shares: make([]Share, len(items))}
	weight := 0.0
	for i, it := range items {
		s := Share{Rate: rates[i]}
		var fresh, age float64
		switch {
		case it.Rate == 0:
			fresh = 1
		case it.Signals:
			s.Signal = min(1, rates[i]/it.Rate)
			fresh, age = s.Signal, (1-s.Signal)/(s.Signal*it.Rate)
		case p.random:
			fresh, age = RandomFreshness(rates[i], it.Rate), RandomAge(rates[i], it.Rate)
		default:
			fresh, age = FixedFreshness(rates[i], it.Rate), FixedAge(rates[i], it.Rate)
		}
		s.Freshness, s.Age = fresh, age
		plan.Shares[i] = s
		weight += it.Importance
		plan.Freshness += it.Importance * fresh
		plan.Age += it.Importance * age
		if it.Rate > 0 {
			if it.Signals {
				plan.Harmonic -= it.Importance * math.Log(s.Signal)
			} else {
				plan.Harmonic -= it.Importance * math.Log(RandomFreshness(rates[i], it.Rate))
			}
		}
		plan.Used += it.cost() * rates[i]
	}
	plan.Freshness /= weight
	plan.Age /= weight
	plan.Harmonic /= weight
	return plan
}

// FixedFreshness is the share of time that an item with change rate d is fresh
// when it is visited at intervals 1/f: (f/d)(1 - e^{-d/f}).
func FixedFreshness(f, d float64) float64 {
	switch {
	case d == 0:
		return 1
	case f <= 0:
		return 0
	}
	x := d / f
	return -math.Expm1(-x) / x
}

// FixedAge is its mean age: with I = 1/f, I/2 - 1/d + (1 - e^{-dI})/(d^2 I).
func FixedAge(f, d float64) float64 {
	switch {
	case d == 0:
		return 0
	case f <= 0:
		return math.Inf(1)
	}
	x := d / f
	if x < 1e-4 { // the terms cancel: series
		return x * x / 6 * (1 - x/4) / d
	}
	return (x/2 - 1 - math.Expm1(-x)/x) / d
}

// RandomFreshness is rho/(rho + d): visits at random at rate rho.
func RandomFreshness(rho, d float64) float64 {
	if d == 0 {
		return 1
	}
	return rho / (rho + d)
}

// RandomAge is 1/rho - 1/(rho + d).
func RandomAge(rho, d float64) float64 {
	switch {
	case d == 0:
		return 0
	case rho <= 0:
		return math.Inf(1)
	}
	return d / (rho * (rho + d))
}

// Policies lists the policies by name; a new one is one function and one line.
func Policies() map[string]Policy {
	return map[string]Policy{
		"uniform":        {share: uniform, flat: true, even: true},
		"proportional":   {share: proportional, flat: true},
		"fixed-optimal":  {share: fixedOptimal},
		"age-optimal":    {share: ageOptimal},
		"random-optimal": {share: randomOptimal, random: true},
		"no-starvation":  {share: noStarvation, random: true},
	}
}

// Names returns the names of the policies in order.
func Names() []string {
	var out []string
	for n := range Policies() {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}
