package control

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// maxSets is the largest number of threshold sets that are all looked at.
const maxSets = 5e7

// Choice is the best threshold policy that uses the listed modes only.
type Choice struct {
	Modes      []int   `json:"modes"`
	Thresholds []int   `json:"thresholds"` // between the listed modes, from the one with most robots down
	Cost       float64 `json:"cost"`
}

// Fixed is the cost of one mode at every level.
type Fixed struct {
	Mode int     `json:"mode"`
	Cost float64 `json:"cost"`
}

// Best is the best policy by thresholds.
type Best struct {
	Policy     []int   `json:"policy"`
	Thresholds []int   `json:"thresholds"`
	Modes      []int   `json:"modes"` // those that it uses
	Cost       float64 `json:"cost"`
	Measures   Result  `json:"measures"`
}

// Optimum is what Optimize found.
type Optimum struct {
	Best         Best          `json:"best"`
	Fixed        []Fixed       `json:"fixed"`
	ByModes      []Choice      `json:"by_modes"`
	Unrestricted *Unrestricted `json:"unrestricted,omitempty"`
	PhaseAware   *PhaseAware   `json:"phase_aware,omitempty"`
	Search       string        `json:"search"` // "all sets" or "local"
	Sets         int           `json:"sets"`   // threshold sets looked at; of a local search policies
}

// Threshold policies are enumerated over the four accruals of the cost.
const (
	costTime       = iota
	costRate       // all that is paid by time
	costServedTime // their quotient is V_served
	costServed
	costs
)

// accrualWeights projects the accruals onto the accruals of the cost.
func (c Cost) accrualWeights() mat {
	w := zeroMatrix(accruals, costs)
	w.set(accTime, costTime, 1)
	w.set(accLoss, costRate, c.Loss)
	w.set(accObsolete, costRate, c.Obsolete)
	w.set(accStarvation, costRate, c.Starvation)
	w.set(accRobots, costRate, c.Robot)
	w.set(accServedTime, costServedTime, c.Response)
	w.set(accServed, costServed, 1)
	return w
}

// costOf returns the cost by the projected accruals, +Inf of a policy without a
// long run.
func costOf(acc []float64) float64 {
	if acc == nil {
		return math.Inf(1)
	}
	return acc[costRate] + quotientOrZero(acc[costServedTime], acc[costServed])
}

// projectedSolver returns a solver that accrues rate*w only and shares the rest.
func (s *solver) projectedSolver(w mat) *solver {
	p := &solver{m: s.m, dim: s.dim, down: s.down, exit: s.exit, memo: s.memo, tag: s.tag, lev: make([]level, len(s.lev)), rate: make([][]mat, len(s.rate))}
	for i, modes := range s.rate {
		for _, u := range modes {
			p.rate[i] = append(p.rate[i], u.mul(w))
		}
	}
	return p
}

// search looks at all threshold policies depth first from the top level.
type search struct {
	*solver
	feet  [][]foot // [mode][level]
	at    []closing
	mode  []int // of the levels above the present one, from 0
	found func(mask uint64, bottom, level int, acc []float64)
}

func (s *solver) newSearch() *search {
	h := &search{solver: s, mode: make([]int, s.m.N+1)}
	for i := range s.m.N {
		h.at = append(h.at, s.newClosing(i))
	}
	for r := range s.m.R {
		h.feet = append(h.feet, s.eliminateUpwards(h.constantPolicy(r)))
	}
	return h
}

func (s *solver) constantPolicy(r int) []int {
	p := make([]int, s.m.N+1)
	for i := range p {
		p[i] = r
	}
	return p
}

// eliminateUpwards eliminates upwards under a policy (modes from 0), as far as that is
// possible: under a level that is never left upwards there is no foot above.
func (s *solver) eliminateUpwards(policy []int) []foot {
	var feet []foot
	for i := range s.m.N {
		f := s.newFoot(i)
		var under *foot
		if i > 0 {
			under = &feet[i-1]
		}
		if s.eliminateFromBelow(&f, under, i, policy[i]) != nil {
			break
		}
		feet = append(feet, f)
	}
	return feet
}

// forEachMonotonePolicy calls found for every policy whose mode does not rise with the number of
// pages: once each.
func (h *search) forEachMonotonePolicy(ctx context.Context) error {
	for r := range h.m.R {
		h.found(1<<r, r, h.m.N, h.walkOn(h.m.N, r))
	}
	for r := range h.m.R - 1 {
		if err := h.continueBelow(ctx, h.m.N, r, 0); err != nil {
			return err
		}
	}
	return nil
}

// continueBelow gives level i mode r, and the levels under it every continuation.
func (h *search) continueBelow(ctx context.Context, i, r int, mask uint64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if i == 0 || h.descendToLevel(i, r) != nil {
		return nil
	}
	h.mode[i] = r
	mask |= 1 << r
	c := &h.at[i-1]
	h.openLevel(c, i-1)
	for b := r + 1; b < h.m.R; b++ {
		var acc []float64
		if i-1 < len(h.feet[b]) {
			acc = c.closePolicy(&h.feet[b][i-1])
		} else {
			acc = h.walkOn(i-1, b)
		}
		h.found(mask|1<<b, b, i-1, acc)
	}
	for b := r; b < h.m.R-1; b++ {
		if err := h.continueBelow(ctx, i-1, b, mask); err != nil {
			return err
		}
	}
	return nil
}

// walkOn evaluates a policy that holds mode b from level i down: a fixed mode, or
// the rare one whose lower part is never left upwards.
func (h *search) walkOn(i, b int) []float64 {
	for ; i >= 0; i-- {
		if h.descendToLevel(i, b) != nil {
			return nil
		}
	}
	acc, err := h.finishIn(b)
	if err != nil {
		return nil
	}
	return acc
}

// thresholdPolicyCount returns how many policies all looks at.
func (m *Model) thresholdPolicyCount() float64 {
	n := 1.0
	for k := 1; k < m.R; k++ {
		n *= float64(m.N+1+k) / float64(k)
	}
	return math.Round(n)
}

const errNoPolicy = InputError("no policy has a long run: the phases of arrival never come together")

// Optimize finds the best policy by thresholds, the best of every subset of the
// modes, and the best that depends on the number of pages only. All threshold
// sets are looked at where that is feasible, otherwise a local search is made.
func (m *Model) Optimize(ctx context.Context, opt Options) (*Optimum, error) {
	if m.R > 16 {
		return nil, InputError(fmt.Sprintf("modes: %d; an optimum is sought over 16 at most: leave some out", m.R))
	}
	if opt.Method == Iterative || opt.Method == Lumped || m.thresholdPolicyCount() > maxSets || m.searchWork() > maxSearchWork {
		return m.optimizeLocally(ctx, opt)
	}
	full, err := newSolver(m)
	if err != nil {
		return nil, err
	}
	s := full.projectedSolver(m.Cost.accrualWeights())
	o := &Optimum{Search: "all sets"}
	by, err := m.enumeratePolicies(ctx, s, o)
	if err != nil {
		return nil, err
	}
	if o.Best.Policy == nil {
		return nil, errNoPolicy
	}
	if r := o.Best.Policy[0] - 1; m.isSilent(r) {
		o.Best.Measures = m.emptyResult(r)
	} else if o.Best.Measures, err = full.solveDense(ctx, o.Best.Policy); err != nil {
		return nil, err
	}
	if opt.ThresholdsOnly {
		return o, nil
	}
	if m.policyCount() <= maxPolicies {
		o.Unrestricted, err = s.allPolicies(ctx)
	} else {
		var starts [][]int
		for _, c := range by {
			if c.policy != nil {
				starts = append(starts, c.policy)
			}
		}
		if o.Unrestricted, err = s.optimizeUnrestricted(ctx, starts); err == nil {
			o.Unrestricted.LowerBound, err = m.lowerBound(ctx, o.Best.Policy, o.Unrestricted.Policy)
		}
	}
	if err != nil {
		return nil, err
	}
	o.Unrestricted.Gap = Gap(o.Best.Cost, o.Unrestricted.Cost)
	return o, nil
}

// Gap returns by which part of b, the lower cost, a is dearer.
func Gap(a, b float64) float64 {
	if !isClearlyLess(b, a) {
		return 0
	}
	return (a - b) / math.Abs(b)
}

// subset is the best policy of those that use exactly a set of modes.
type subset struct {
	cost   float64
	policy []int // modes from 1
}

// enumeratePolicies fills in what looking at all threshold policies tells, and returns
// the best policy of each subset of modes, by mask, the empty one left out.
func (m *Model) enumeratePolicies(ctx context.Context, s *solver, o *Optimum) ([]subset, error) {
	exact := make([]subset, 1<<m.R)
	for i := range exact {
		exact[i].cost = math.Inf(1)
	}
	h := s.newSearch()
	h.found = func(mask uint64, bottom, level int, acc []float64) {
		o.Sets++
		c := costOf(acc)
		if level == m.N {
			o.Fixed = append(o.Fixed, Fixed{bottom + 1, c})
		}
		b := &exact[mask]
		if !(c < b.cost) {
			return
		}
		b.cost, b.policy = c, h.policyFound(bottom, level, b.policy)
	}
	if err := h.forEachMonotonePolicy(ctx); err != nil {
		return nil, err
	}
	o.Fixed = slices.DeleteFunc(o.Fixed, func(f Fixed) bool { return math.IsInf(f.Cost, 1) })
	best := m.bestWithinSubsets(exact)
	for mask := 1; mask < len(best); mask++ {
		if b := best[mask]; b.policy != nil {
			o.ByModes = append(o.ByModes, Choice{modesOf(uint64(mask)), thresholdsAmong(uint64(mask), b.policy), b.cost})
		}
	}
	slices.SortStableFunc(o.ByModes, func(a, b Choice) int { return len(a.Modes) - len(b.Modes) })
	if b := best[len(best)-1]; b.policy != nil {
		o.Best = Best{Policy: b.policy, Thresholds: m.Thresholds(b.policy), Modes: usedModes(b.policy), Cost: b.cost}
	}
	return best[1:], nil
}

// policyFound writes into p the policy that was found, modes from 1.
func (h *search) policyFound(bottom, level int, p []int) []int {
	if p == nil {
		p = make([]int, h.m.N+1)
	}
	for i := range p {
		p[i] = bottom + 1
		if i > level {
			p[i] = h.mode[i] + 1
		}
	}
	return p
}

// usedModes returns the modes that a policy uses.
func usedModes(policy []int) []int {
	mask := uint64(0)
	for _, r := range policy {
		mask |= 1 << (r - 1)
	}
	return modesOf(mask)
}

// bestWithinSubsets takes the best over the subsets of each set.
func (m *Model) bestWithinSubsets(exact []subset) []subset {
	best := slices.Clone(exact)
	for r := range m.R {
		for mask := range best {
			if mask>>r&1 == 1 {
				if b := best[mask^1<<r]; b.cost < best[mask].cost {
					best[mask] = b
				}
			}
		}
	}
	return best
}

func modesOf(mask uint64) []int {
	var out []int
	for ; mask != 0; mask &= mask - 1 {
		out = append(out, 1+bits.TrailingZeros64(mask))
	}
	return out
}

// thresholdsAmong returns the thresholds between the modes of mask.
func thresholdsAmong(mask uint64, policy []int) []int {
	modes := modesOf(mask)
	j := make([]int, len(modes)-1)
	for k := range j {
		j[k] = -1
		for i, r := range policy {
			if r >= modes[len(modes)-1-k] {
				j[k] = i
			}
		}
	}
	return j
}
