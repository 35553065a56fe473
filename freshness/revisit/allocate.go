package revisit

import (
	"fmt"
	"math"
	"slices"
)

// hostGroup is a host whose visits are capped, or all items without a cap.
type hostGroup struct {
	items []int
	cap   float64 // visits per time; +Inf is no cap

	// equalCost says that all visits of the group cost the same. The division
	// inside it at the cap then does not depend on the price: atCap keeps it.
	equalCost bool
	atCap     []float64
}

// hostGroups sorts the items into one group for each capped host, in the order
// of their first items, after one group of all others.
func hostGroups(items []Item) ([]*hostGroup, error) {
	free := &hostGroup{cap: math.Inf(1)}
	groups, byHost := []*hostGroup{free}, map[string]*hostGroup{}
	for i, it := range items {
		if it.HostCap == 0 {
			continue
		}
		switch g := byHost[it.Host]; {
		case g == nil:
			byHost[it.Host] = &hostGroup{cap: it.HostCap, equalCost: true}
			groups = append(groups, byHost[it.Host])
		case g.cap != it.HostCap:
			return nil, fmt.Errorf("item %d: host %q has the cap %g here and %g before", i, it.Host, it.HostCap, g.cap)
		}
	}
	for i, it := range items {
		g := free
		if it.Host != "" && byHost[it.Host] != nil {
			g = byHost[it.Host]
		}
		g.equalCost = g.equalCost && (len(g.items) == 0 || items[g.items[0]].costOrOne() == it.costOrOne())
		g.items = append(g.items, i)
	}
	return groups, nil
}

// allocator finds the rates of a plan. The Lagrangian of "maximise the gain for a
// budget of cost, and for each capped host a number of visits" asks for the
// marginal gain of a visit to be price*cost + surcharge: one price for all items
// and one surcharge >= 0 for each host, 0 where the cap does not bind (the
// nested form of Kolobov et al. 2019, section 4.3, which has no costs). The cost
// of the plan falls with the price and a host's visits fall with its surcharge,
// so both are found by bisection, one inside the other.
type allocator struct {
	policy Policy
	items  []Item
	groups []*hostGroup
}

// allocateRates returns rates that use the budget, as far as the items can use it.
func (a *allocator) allocateRates(budget float64) []float64 {
	return meetBudget(budget, len(a.items), func(price float64, rates []float64) float64 {
		cost := 0.0
		for _, g := range a.groups {
			a.divideGroup(g, price, rates)
			for _, i := range g.items {
				cost += a.items[i].costOrOne() * rates[i]
			}
		}
		return cost
	})
}

// divideGroup sets the rates of a group at a price per unit of cost.
func (a *allocator) divideGroup(g *hostGroup, price float64, rates []float64) {
	if a.setGroupRates(g, price, 0, rates) <= g.cap*(1+1e-12) {
		return
	}
	atCap := g.atCap
	if atCap == nil {
		inside := make([]float64, len(a.items))
		atCap = meetBudget(g.cap, len(g.items), func(surcharge float64, out []float64) float64 {
			sum := a.setGroupRates(g, price, surcharge, inside)
			for k, i := range g.items {
				out[k] = inside[i]
			}
			return sum
		})
		if g.equalCost {
			g.atCap = atCap
		}
	}
	for k, i := range g.items {
		rates[i] = atCap[k]
	}
}

// setGroupRates sets the rates of a group at a price per unit of cost and a surcharge
// per visit, and returns their sum.
func (a *allocator) setGroupRates(g *hostGroup, price, surcharge float64, rates []float64) float64 {
	sum := 0.0
	for _, i := range g.items {
		rates[i] = a.policy.rateWithSurcharge(&a.items[i], price, surcharge)
		sum += rates[i]
	}
	return sum
}

// meetBudget returns n rates for which total is the budget. total sets the rates
// at a price and returns what they use, which falls with the price. Items of
// equal marginal gain (signalled ones) enter all at once at one price: between
// the rates just above it and just below it the result is interpolated. Rates
// that cannot use the budget at any price are returned as they are.
func meetBudget(budget float64, n int, total func(price float64, rates []float64) float64) []float64 {
	rates := make([]float64, n)
	low, high := bracketPrice(func(price float64) float64 { return total(price, rates) }, budget)
	more := make([]float64, n)
	below := total(math.Exp2(low), more)
	above := total(math.Exp2(high), rates)
	part := 1.0
	if below > budget {
		part = max(0, budget-above) / (below - above)
	}
	if below-above > 1e-9*budget || above < budget*(1-1e-9) {
		for i := range rates {
			rates[i] += part * (more[i] - rates[i])
		}
	}
	return slices.Clip(rates)
}

// bracketPrice finds the price at which a total that falls with the price passes the
// budget: logarithms (base 2) of prices just below and above.
func bracketPrice(total func(price float64) float64, budget float64) (low, high float64) {
	low, high = -1.0, 1.0
	for total(math.Exp2(high)) > budget && high < 1000 {
		high += 8
	}
	for total(math.Exp2(low)) < budget && low > -1000 {
		low -= 8
	}
	for {
		mid := (low + high) / 2
		if mid == low || mid == high { // neighbours among float64
			return low, high
		}
		if total(math.Exp2(mid)) > budget {
			low = mid
		} else {
			high = mid
		}
	}
}
