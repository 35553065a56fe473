package control

import (
	"context"
	"math"
	"slices"
)

// A mode is silent if no page arrives in it. Under a policy with a silent mode
// at level 0 the system empties once and stays empty: its long run is level 0
// whatever the phases of arrival do, and its cost is that of starvation and of
// the robots of that mode. Such a policy is as good as any other where
// starvation is cheap, so solvers and optimisers count it.

// isSilent reports whether no page arrives in mode r (from 0).
func (m *Model) isSilent(r int) bool {
	for _, d := range m.d[r][1:] {
		if slices.ContainsFunc(d.a, func(rate float64) bool { return rate > 0 }) {
			return false
		}
	}
	return true
}

// emptyResult returns the measures of a policy with silent mode r (from 0) at
// level 0. Shares of pages and sojourn times are 0: there are no pages.
func (m *Model) emptyResult(r int) Result {
	out := Result{QueueLength: make([]float64, m.N+1), Starvation: 1, MeanRobots: float64(r + 1), Method: Exact, States: m.States()}
	out.QueueLength[0] = 1
	out.Cost = m.Cost.costOfResult(out)
	return out
}

// finishIn is finish for a policy with mode r (from 0) at level 0.
func (s *solver) finishIn(r int) ([]float64, error) {
	if s.m.isSilent(r) {
		return slices.Clone(s.rate[0][r].row(0)), nil
	}
	acc, _, err := s.finishElimination()
	return acc, err
}

// quotientOrZero returns a/b, and 0 for 0/0: a share or a mean of no pages.
func quotientOrZero(a, b float64) float64 {
	if a == 0 && b == 0 {
		return 0
	}
	return a / b
}

// maxPolicies is the number of policies by level, R^(N+1), up to which all are
// evaluated.
const maxPolicies = 1e6

// policyCount returns the number of policies that depend on the number of pages
// only.
func (m *Model) policyCount() float64 { return math.Pow(float64(m.R), float64(m.N+1)) }

// allPolicies evaluates every policy that depends on the number of pages only,
// depth first from the top level, so that policies with the same upper levels
// share their elimination.
func (s *solver) allPolicies(ctx context.Context) (*Unrestricted, error) {
	best := &Unrestricted{Cost: math.Inf(1), Search: allSearched}
	policy := make([]int, s.m.N+1)
	var evaluateBelow func(level int) error
	evaluateBelow = func(level int) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		for r := range s.m.R {
			policy[level] = r + 1
			if s.descendToLevel(level, r) != nil {
				continue
			}
			if level > 0 {
				if err := evaluateBelow(level - 1); err != nil {
					return err
				}
				continue
			}
			acc, err := s.finishIn(r)
			if err != nil {
				continue // the phases of arrival never come together
			}
			if c := costOf(acc); isClearlyLess(c, best.Cost) || math.IsInf(best.Cost, 1) && !math.IsInf(c, 1) {
				best.Cost, best.Policy = c, slices.Clone(policy)
			}
		}
		return nil
	}
	return best, evaluateBelow(s.m.N)
}
