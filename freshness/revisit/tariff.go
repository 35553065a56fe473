package revisit

import (
	"fmt"
	"math"
)

// Tariff is a policy at a price: what a live robot needs to say how often one
// item is visited without looking at the others. It is made now and then from a
// histogram of all items, and asked once a visit.
type Tariff struct {
	policy Policy
	price  float64
}

// NewTariff finds the price at which so many items of each kind use the budget.
// counts[i] is how many items are like kinds[i].
func NewTariff(p Policy, kinds []Item, counts []float64, budget float64) (Tariff, error) {
	if !(budget > 0) || math.IsInf(budget, 0) {
		return Tariff{}, fmt.Errorf("%w: %g", ErrBudget, budget)
	}
	if len(kinds) == 0 || len(kinds) != len(counts) {
		return Tariff{}, fmt.Errorf("%w: %d kinds, %d counts", ErrNone, len(kinds), len(counts))
	}
	_, high := bracketPrice(func(price float64) float64 {
		sum := 0.0
		for i := range kinds {
			sum += counts[i] * kinds[i].costOrOne() * p.visitRate(&kinds[i], price)
		}
		return sum
	}, budget)
	return Tariff{p, math.Exp2(high)}, nil
}

// Rate returns how often an item is visited; 0 for one not worth a visit. The
// zero Tariff visits nothing.
func (t Tariff) Rate(it Item) float64 {
	if t.policy.share == nil {
		return 0
	}
	return t.policy.visitRate(&it, t.price)
}
