package revisit

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// Rule is a policy as a robot follows it without a plan: what a visit is worth,
// and, turned around, how long an item waits until a visit is worth so much.
type Rule struct {
	value Value
	wait  func(mu, d, value float64) float64 // for values below most
	most  func(mu, d float64) float64        // what a visit can ever be worth
	deaf  bool                               // signals change nothing, nor do rates
	noisy bool                               // Noisy is its value under signals
}

// Value is what a visit is worth tau after the last one.
func (r Rule) Value(mu, d, tau float64) float64 { return r.value(mu, d, tau) }

// Wait is after what time since its last visit an item is worth so much: +Inf
// for never.
func (r Rule) Wait(mu, d, value float64) float64 {
	switch {
	case value <= 0:
		return 0
	case value >= r.most(mu, d):
		return math.Inf(1)
	}
	return r.wait(mu, d, value)
}

// Rules lists the rules that a Schedule follows, by name; a new one is three
// functions and one line. "stride" visits in proportion to a rate that the
// caller has made by any means: a plan, a grown interval.
func Rules() map[string]Rule {
	unbounded := func(mu, d float64) float64 { return math.Inf(1) }
	return map[string]Rule{
		"greedy": {
			value: Greedy, wait: func(mu, d, v float64) float64 { return solveWait(min(v*d/mu, 1-1e-6)) / d },
			most: func(mu, d float64) float64 { return mu / d }, noisy: true,
		},
		"most-likely-changed": {
			value: MostLikelyChanged, wait: func(mu, d, v float64) float64 { return -math.Log1p(-v/mu) / d },
			most: func(mu, _ float64) float64 { return mu },
		},
		"stride": {value: MostChanges, wait: func(mu, d, v float64) float64 { return v / (mu * d) }, most: unbounded},
		"sweep":  {value: Sweep, wait: func(_, _, v float64) float64 { return v }, most: unbounded, deaf: true},
	}
}

// RuleOf returns a rule by its name.
func RuleOf(name string) (Rule, error) {
	if r, ok := Rules()[name]; ok {
		return r, nil
	}
	return Rule{}, fmt.Errorf("no rule %q; there are %v", name, slices.Sorted(maps.Keys(Rules())))
}
