package control

import (
	"context"
	"fmt"
	"math"
	"slices"
)

// Where not all threshold sets can be looked at, because there are too many or
// each takes long, a pattern search moves thresholds by steps that are halved
// when none helps. It begins where the same model with exponential staleness of
// the same mean has its optimum.

// maxSearchWork is the number of multiplications up to which all sets are
// looked at: some tens of seconds.
const maxSearchWork = 3e10

// searchStates is the number of states from which a local search takes the
// lumped method; what it finds is then solved by the method chosen.
const searchStates = 1e5

// searchWork returns about how many multiplications the enumeration takes.
func (m *Model) searchWork() float64 {
	work, n, sets := 0.0, float64(m.W*m.M), 1.0
	prefixes := make([]float64, m.N+1) // of modes above and at level i, all but the lowest
	for i := m.N; i >= 0; i-- {
		prefixes[i] = sets
		d := float64(m.N - i + 1)
		sets *= (d + float64(m.R) - 2) / d
	}
	for i := 1; i <= m.N; i++ {
		work += prefixes[i] * n * n * n * float64(4+2*m.K)
		n *= float64(m.Q)
	}
	return work
}

// withExponentialStaleness is the model with exponential staleness of the same mean, or m
// itself if that is what it has.
func (m *Model) withExponentialStaleness() *Model {
	if m.Q == 1 {
		return m
	}
	s := *m
	mean, _ := m.StaleMoments()
	s.Q, s.gamma, s.g, s.g0 = 1, identityMatrix(1), zeroMatrix(1, 1), zeroMatrix(1, 1)
	if !math.IsInf(mean, 1) {
		s.g.a[0], s.g0.a[0] = -1/mean, 1/mean
	}
	return &s
}

// evaluator remembers costs of policies.
type evaluator struct {
	m      *Model
	method string
	keep   int
	solver *solver
	known  map[string]float64
	limit  int // evaluations that are still allowed
	count  int
}

func (m *Model) newEvaluator(o Options) (*evaluator, error) {
	method, err := m.chooseMethod(o)
	if err != nil {
		return nil, err
	}
	if method == Iterative && o.Method != Iterative && m.States() > searchStates {
		method = Lumped
	}
	e := &evaluator{m: m, method: method, keep: m.lumpedPhaseCount(), known: map[string]float64{}}
	if method == Exact {
		if e.solver, err = newSolver(m); err != nil {
			return nil, err
		}
		e.solver = e.solver.projectedSolver(m.Cost.accrualWeights())
	}
	return e, nil
}

// policyCost returns the cost of a policy (modes from 1), +Inf if it has none or no
// evaluation is left.
func (e *evaluator) policyCost(ctx context.Context, policy []int) float64 {
	key := string(runesOf(policy))
	if c, ok := e.known[key]; ok {
		return c
	}
	if e.limit <= 0 || ctx.Err() != nil {
		return math.Inf(1)
	}
	e.limit--
	e.count++
	var r Result
	var err error
	c := math.Inf(1)
	switch {
	case e.m.isSilent(policy[0] - 1):
		r = e.m.emptyResult(policy[0] - 1)
	case e.method == Exact:
		r.Cost = e.exactCost(policy)
	case e.method == Iterative:
		r, err = e.m.solveIteratively(ctx, policy)
	default:
		r, err = e.m.lumpedResult(ctx, policy, e.keep)
	}
	if err == nil {
		c = r.Cost
	}
	e.known[key] = c
	return c
}

func (e *evaluator) exactCost(policy []int) float64 {
	for i := e.m.N; i >= 0; i-- {
		if e.solver.descendToLevel(i, policy[i]-1) != nil {
			return math.Inf(1)
		}
	}
	acc, err := e.solver.finishIn(policy[0] - 1)
	if err != nil {
		return math.Inf(1)
	}
	return costOf(acc)
}

// thresholdPolicy returns the policy of thresholds between the listed modes.
func (m *Model) thresholdPolicy(modes, j []int) []int {
	p := m.fixedModePolicy(modes[0])
	for i := range p {
		for k, v := range j {
			if i <= v {
				p[i] = modes[len(modes)-1-k]
				break
			}
		}
	}
	return p
}

// searchThresholds improves thresholds between modes by steps.
func (e *evaluator) searchThresholds(ctx context.Context, modes, j []int, step int) ([]int, float64) {
	n := e.m.N
	cost := e.policyCost(ctx, e.m.thresholdPolicy(modes, j))
	for ; step >= 1; step /= 2 {
		for improved := true; improved; {
			improved = false
			// One threshold, and runs of neighbours together.
			for a := range j {
				for b := a; b < len(j); b++ {
					for _, d := range []int{step, -step} {
						t := slices.Clone(j)
						for k := a; k <= b; k++ {
							t[k] = min(n, max(-1, t[k]+d))
						}
						if !slices.IsSorted(t) || slices.Equal(t, j) {
							continue
						}
						if c := e.policyCost(ctx, e.m.thresholdPolicy(modes, t)); isClearlyLess(c, cost) {
							j, cost, improved = t, c, true
						}
					}
				}
			}
		}
	}
	return j, cost
}

// searchSingleLevels changes single levels while that helps.
func (e *evaluator) searchSingleLevels(ctx context.Context, policy []int) ([]int, float64) {
	policy = slices.Clone(policy)
	cost := e.policyCost(ctx, policy)
	for improved := true; improved && e.limit > 0; {
		improved = false
		for i := range policy {
			for r := 1; r <= e.m.R; r++ {
				t := slices.Clone(policy)
				t[i] = r
				if c := e.policyCost(ctx, t); isClearlyLess(c, cost) {
					policy, cost, improved = t, c, true
				}
			}
		}
	}
	return policy, cost
}

// localLimits are the evaluations allowed to each subset of modes and to the
// policy of any form.
const (
	subsetLimit = 300
	sweepLimit  = 600
)

// optimizeLocally is Optimize by pattern search.
func (m *Model) optimizeLocally(ctx context.Context, o Options) (*Optimum, error) {
	e, err := m.newEvaluator(o)
	if err != nil {
		return nil, err
	}
	out := &Optimum{Search: "local"}
	out.Best.Cost = math.Inf(1)
	start := map[string][]int{}
	var anyPolicy []int
	if s := m.withExponentialStaleness(); s != m && s.thresholdPolicyCount() <= maxSets && s.searchWork() <= maxSearchWork {
		rough, err := s.Optimize(ctx, Options{ThresholdsOnly: o.ThresholdsOnly})
		if err != nil {
			return nil, fmt.Errorf("with exponential staleness: %w", err)
		}
		for _, c := range rough.ByModes {
			start[fmt.Sprint(c.Modes)] = c.Thresholds
		}
		if rough.Unrestricted != nil {
			anyPolicy = rough.Unrestricted.Policy
		}
	}
	for _, modes := range subsetsBySize(m.R) {
		e.limit = subsetLimit
		j, ok := start[fmt.Sprint(modes)]
		step := 4
		if !ok {
			j, step = slices.Repeat([]int{m.N / 4}, len(modes)-1), max(1, m.N/4)
		}
		j, cost := e.searchThresholds(ctx, modes, j, step)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if math.IsInf(cost, 1) {
			continue
		}
		if len(modes) == 1 {
			out.Fixed = append(out.Fixed, Fixed{modes[0], cost})
		}
		for _, c := range out.ByModes { // a subset's policy is one of this set too
			if c.Cost < cost && subsetOf(c.Modes, modes) {
				cost, j = c.Cost, thresholdsAmong(maskOf(modes), m.thresholdPolicy(c.Modes, c.Thresholds))
			}
		}
		out.ByModes = append(out.ByModes, Choice{modes, j, cost})
		if p := m.thresholdPolicy(modes, j); cost < out.Best.Cost {
			out.Best = Best{Policy: p, Thresholds: m.Thresholds(p), Modes: usedModes(p), Cost: cost}
		}
	}
	if out.Best.Policy == nil {
		return nil, errNoPolicy
	}
	out.Sets = e.count
	if out.Best.Measures, err = m.SolveBy(ctx, out.Best.Policy, o); err != nil || o.ThresholdsOnly {
		return out, err
	}
	e.limit = sweepLimit
	u := &Unrestricted{Search: localSearch}
	out.Unrestricted = u
	u.Policy, u.Cost = e.searchSingleLevels(ctx, out.Best.Policy)
	if anyPolicy != nil {
		if p, c := e.searchSingleLevels(ctx, anyPolicy); c < u.Cost {
			u.Policy, u.Cost = p, c
		}
	}
	u.Gap = Gap(out.Best.Cost, u.Cost)
	out.Sets = e.count
	return out, ctx.Err()
}

func maskOf(modes []int) uint64 {
	mask := uint64(0)
	for _, r := range modes {
		mask |= 1 << (r - 1)
	}
	return mask
}

func subsetOf(a, b []int) bool { return maskOf(a)&^maskOf(b) == 0 }

// subsetsBySize returns the non-empty subsets of the modes 1..r, small ones
// first.
func subsetsBySize(r int) [][]int {
	var out [][]int
	for mask := 1; mask < 1<<r; mask++ {
		out = append(out, modesOf(uint64(mask)))
	}
	slices.SortStableFunc(out, func(a, b []int) int { return len(a) - len(b) })
	return out
}
