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
	Importance float64 // weight of its freshness, >= 0; 0 is for items that only uniform and proportional plans visit
	Rate       float64 // changes per time, >= 0
	Shape      float64 // of the belief of Rate (Uncertain), which fixed-optimal heeds; 0 where it is known
	Host       string  // group that HostCap bounds; "" is none
	HostCap    float64 // maximum number of visits per time of its host, whatever they cost; 0 is no cap
	Signals    bool    // every change is signalled
	Cost       float64 // of a visit, in the unit of the budget (bytes, say); 0 is 1
}

func (it *Item) costOrOne() float64 {
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
	ErrBudget     = errors.New("the budget is not a positive number")
	ErrNone       = errors.New("no items")
	ErrImportance = errors.New("every item has importance 0: there is nothing to plan for")
)

// The plan multiplies and divides up to four input numbers. Numbers within
// minNumber and maxNumber keep every product within the range of float64.
const (
	minNumber = 1e-60
	maxNumber = 1e60
)

// checkRange returns an error unless v is 0 or a positive number that the plan
// can compute with.
func checkRange(what string, v float64) error {
	switch {
	case v == 0 || v >= minNumber && v <= maxNumber:
		return nil
	case v > 0:
		return fmt.Errorf("%s %g is outside %g to %g: choose another unit", what, v, minNumber, maxNumber)
	}
	return fmt.Errorf("%s %g is not a number from 0 up", what, v)
}

// New divides a budget among the items: visits per time or, where items have
// costs, what visits cost per time. Caps of hosts are visits per time. The error
// names the first item with an invalid number by its place (from 0).
func New(p Policy, items []Item, budget float64) (*Plan, error) {
	if !(budget > 0) {
		return nil, fmt.Errorf("%w: %g", ErrBudget, budget)
	}
	if err := checkRange("budget", budget); err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return nil, ErrNone
	}
	important := false
	for i, it := range items {
		err := errors.Join(checkRange("importance", it.Importance), checkRange("change rate", it.Rate), checkRange("cost", it.Cost), checkRange("host cap", it.HostCap))
		if it.HostCap > 0 && it.Host == "" {
			err = errors.Join(err, fmt.Errorf("host cap %g needs a host", it.HostCap))
		}
		if err != nil {
			return nil, fmt.Errorf("item %d: %w", i, err)
		}
		important = important || it.Importance > 0
	}
	if !important {
		return nil, ErrImportance
	}
	groups, err := hostGroups(items)
	if err != nil {
		return nil, err
	}
	a := allocator{policy: p, items: items, groups: groups}
	return evaluateRates(p, items, a.allocateRates(budget)), nil
}

// evaluateRates computes what the rates achieve.
func evaluateRates(p Policy, items []Item, rates []float64) *Plan {
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
		if it.Importance == 0 { // 0 times an unbounded age is 0
			plan.Used += it.costOrOne() * rates[i]
			continue
		}
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
		plan.Used += it.costOrOne() * rates[i]
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
		"uniform":        {share: uniformRate, flat: true, even: true},
		"proportional":   {share: proportionalRate, flat: true},
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
