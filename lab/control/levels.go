package control

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/freshet/freshet/internal/rng"
)

// Unrestricted is the best policy found that depends on the number of pages
// only: any mode at any level.
type Unrestricted struct {
	Policy []int   `json:"policy"`
	Cost   float64 `json:"cost"`
	Gap    float64 `json:"gap"`    // by which part of its cost the best thresholds are dearer
	Search string  `json:"search"` // allSearched: the policy is optimal; localSearch: a heuristic found it

	// LowerBound is a cost that no policy by levels can undercut, by the best
	// policy that sees all phases. It is nil where the policy is optimal and
	// where the bound would take too long.
	LowerBound *float64 `json:"lower_bound,omitempty"`
}

// How far a search went.
const (
	allSearched = "all policies"
	localSearch = "local"
)

// randomStarts is the number of random policies that the search for the best
// one starts from, beside the good ones it is given.
const randomStarts = 8

// optimizeUnrestricted improves policies (modes from 1) by one level at a time, then by
// one run of levels at a time, until neither helps: formula (21). Each trial is
// exact.
func (s *solver) optimizeUnrestricted(ctx context.Context, starts [][]int) (*Unrestricted, error) {
	best := &Unrestricted{Cost: math.Inf(1), Search: localSearch}
	r := rng.New(1, "control", "unrestricted")
	for range randomStarts {
		starts = append(starts, s.randomPolicy(r))
	}
	seen := map[string]bool{}
	h := &climb{solver: s}
	for i := range s.m.N {
		h.at = append(h.at, s.newClosing(i))
	}
	for _, p := range starts {
		h.policy = slices.Clone(p)
		for i := range h.policy {
			h.policy[i]--
		}
		h.cost = math.Inf(1)
		for ctx.Err() == nil && h.improveEachLevel() {
		}
		key := string(runesOf(h.policy))
		if seen[key] {
			continue
		}
		seen[key] = true
		for ctx.Err() == nil && h.improveLevelRun() {
			for ctx.Err() == nil && h.improveEachLevel() {
			}
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		// Random starts come last: only a real gain over the good ones counts, since
		// their modes at levels that are hardly ever reached are random.
		if best.Policy == nil || isClearlyLess(h.cost, best.Cost) {
			best.Cost, best.Policy = h.cost, slices.Clone(h.policy)
		}
	}
	for i := range best.Policy {
		best.Policy[i]++
	}
	return best, nil
}

func runesOf(policy []int) []rune {
	out := make([]rune, len(policy))
	for i, r := range policy {
		out[i] = rune(r)
	}
	return out
}

func (s *solver) randomPolicy(r *rand.Rand) []int {
	p := make([]int, s.m.N+1)
	for i := range p {
		p[i] = 1 + r.IntN(s.m.R)
	}
	return p
}

// climb is a local search.
type climb struct {
	*solver
	at     []closing
	policy []int // modes from 0
	cost   float64
}

// isClearlyLess reports whether a is less than b by more than rounding.
func isClearlyLess(a, b float64) bool { return a < b-1e-13*math.Abs(b) }

// costWithMode evaluates the policy with mode r at level i, whose upper levels have been
// eliminated and whose lower ones are feet.
func (h *climb) costWithMode(i, r int, feet []foot) float64 {
	if h.descendToLevel(i, r) != nil {
		return math.Inf(1)
	}
	if i == 0 {
		acc, err := h.finishIn(r)
		if err != nil {
			return math.Inf(1)
		}
		return costOf(acc)
	}
	if i-1 >= len(feet) {
		return math.Inf(1)
	}
	c := &h.at[i-1]
	h.openLevel(c, i-1)
	return costOf(c.closePolicy(&feet[i-1]))
}

// improveEachLevel goes down once and takes at each level the best mode; it reports whether
// something changed.
func (h *climb) improveEachLevel() bool {
	feet := h.eliminateUpwards(h.policy)
	changed := false
	for i := h.m.N; i >= 0; i-- {
		for r := range h.m.R {
			if c := h.costWithMode(i, r, feet); isClearlyLess(c, h.cost) || math.IsInf(h.cost, 1) && !math.IsInf(c, 1) {
				changed = changed || r != h.policy[i]
				h.cost, h.policy[i] = c, r
			}
		}
		if h.descendToLevel(i, h.policy[i]) != nil {
			return false
		}
	}
	return changed
}

// improveLevelRun looks for a run of levels that is better in one other mode, takes the
// best of them and reports whether there is any.
func (h *climb) improveLevelRun() bool {
	feet := h.eliminateUpwards(h.policy)
	best, from, to, mode := h.cost, 0, 0, -1
	for top := h.m.N; top >= 0; top-- {
		for r := range h.m.R {
			for i := top; i >= 0; i-- {
				c := h.costWithMode(i, r, feet)
				if isClearlyLess(c, best) {
					best, from, to, mode = c, i, top, r
				}
				if math.IsInf(c, 1) && h.descendToLevel(i, r) != nil {
					break
				}
			}
		}
		if h.descendToLevel(top, h.policy[top]) != nil {
			break
		}
	}
	if mode < 0 {
		return false
	}
	for i := from; i <= to; i++ {
		h.policy[i] = mode
	}
	h.cost = best
	return true
}
