package control

import (
	"context"
	"errors"
	"math"
	"slices"
)

// PhaseAware is the best policy found that sees the phases besides the number
// of pages.
type PhaseAware struct {
	Policy [][]int `json:"policy"` // of each level the mode (from 1) of each state; states in the order of formula (1)
	Cost   float64 `json:"cost"`
	Gap    float64 `json:"gap"` // by which part of its cost the best thresholds are dearer
}

// PhaseAware finds by policy iteration the best policy that sees all phases
// (formula (22)).
// Without a cost of response the cost is an average over time and the result
// optimal. With it, V_served is a quotient of two averages; the iteration goes
// by its derivative at the present policy and ends where no change of modes
// lowers the cost to first order. starts are policies by level to begin with.
func (m *Model) PhaseAware(ctx context.Context, starts ...[]int) (*PhaseAware, error) {
	p, _, err := m.phaseAware(ctx, starts)
	return p, err
}

// phaseAware is PhaseAware; optimal says that policy iteration came to its end.
func (m *Model) phaseAware(ctx context.Context, starts [][]int) (best *PhaseAware, optimal bool, err error) {
	full, err := newSolver(m)
	if err != nil {
		return nil, false, err
	}
	h := &howard{solver: full.projectedSolver(m.Cost.accrualWeights())}
	for r := range m.R {
		starts = append(starts, m.fixedModePolicy(r+1))
	}
	best = &PhaseAware{Cost: math.Inf(1)}
	for _, p := range starts {
		h.setPolicyModes(p)
		c := math.Inf(1)
		if r := p[0] - 1; m.isSilent(r) {
			c = m.emptyResult(r).Cost
		} else {
			c = h.iteratePolicy(ctx)
		}
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
		if c < best.Cost {
			best.Cost, best.Policy = c, cloneRows(h.mode)
		}
	}
	if best.Policy == nil {
		return nil, false, errReducible
	}
	for _, row := range best.Policy {
		for x := range row {
			row[x]++
		}
	}
	return best, h.optimal, nil
}

// maxBoundWork is the number of multiplications of one solution up to which
// lowerBound is computed; policy iteration takes some tens of them.
const maxBoundWork = 1e9

// lowerBound returns a cost that no policy by levels can undercut, nil where it
// would take too long. Without its part for response the cost is an average over
// time, which the best policy that sees all phases minimises; a served page
// stays for its service time at least, because staleness ends no service.
func (m *Model) lowerBound(ctx context.Context, starts ...[]int) (*float64, error) {
	if work, _ := m.denseWork(); work > maxBoundWork {
		return nil, nil
	}
	free := *m
	free.Cost.Response = 0
	p, optimal, err := free.phaseAware(ctx, starts)
	if err != nil || !optimal {
		return nil, err
	}
	bound := p.Cost
	if mean, _ := m.ServiceMoments(); !slices.ContainsFunc(m.allModes(), m.isSilent) {
		bound += m.Cost.Response * mean
	}
	return &bound, nil
}

// allModes returns the modes from 0.
func (m *Model) allModes() []int {
	out := make([]int, m.R)
	for r := range out {
		out[r] = r
	}
	return out
}

// howard is policy iteration over the modes of single states.
type howard struct {
	*solver
	mode [][]int     // of each state of each level, from 0
	bias [][]float64 // relative values

	optimal bool // an iteration ended because no move lowers the cost
}

func (h *howard) setPolicyModes(policy []int) {
	h.mode, h.bias = nil, nil
	for i, r := range policy {
		h.mode, h.bias = append(h.mode, slices.Repeat([]int{r - 1}, h.dim[i])), append(h.bias, make([]float64, h.dim[i]))
	}
}

func cloneRows[T any](x [][]T) [][]T {
	out := make([][]T, len(x))
	for i, r := range x {
		out[i] = slices.Clone(r)
	}
	return out
}

// evaluateModes returns the accruals of the cost under the present modes.
func (h *howard) evaluateModes() []float64 {
	for i := h.m.N; i >= 0; i-- {
		l := h.levelMatrices(i)
		for r := range h.m.R {
			q := h.cachedUpwardRates(i, r)
			for x, mode := range h.mode[i] {
				if mode != r {
					continue
				}
				for k := range q {
					copy(l.up[k].row(x), q[k].row(x))
				}
				copy(l.u.row(x), h.rate[i][r].row(x))
			}
		}
		if h.eliminateLevel(i) != nil {
			return nil
		}
	}
	acc, _, err := h.finishElimination()
	if err != nil {
		return nil
	}
	return acc
}

// iteratePolicy improves the present modes and returns their cost.
func (h *howard) iteratePolicy(ctx context.Context) float64 {
	acc := h.evaluateModes()
	cost := costOf(acc)
	if math.IsInf(cost, 1) {
		return cost
	}
	for {
		if err := h.solvePoisson(acc); err != nil || ctx.Err() != nil {
			return cost
		}
		moves := h.modeImprovements(acc)
		old := cloneRows(h.mode)
		improved := false
		// All moves lower an average; a quotient may rise when many are made, so
		// that fewer are tried then.
		for n := len(moves); n > 0 && !improved; n /= 2 {
			h.mode = cloneRows(old)
			for _, v := range moves[:n] {
				h.mode[v.level][v.state] = v.mode
			}
			next := h.evaluateModes()
			if c := costOf(next); isClearlyLess(c, cost) {
				acc, cost, improved = next, c, true
			}
		}
		if !improved {
			h.mode, h.optimal = old, true
			return cost
		}
	}
}

// costGradient returns the derivative of the cost by the accruals.
func costGradient(acc []float64) (rate, servedTime, served float64) {
	c := acc[costServed]
	if c == 0 {
		return 1, 0, 0
	}
	return 1, 1 / c, -acc[costServedTime] / (c * c)
}

// linearizedCost returns the accrual of the linearised cost less its mean.
func linearizedCost(u, acc []float64) float64 {
	a, b, c := costGradient(acc)
	mean := a*acc[costRate] + b*acc[costServedTime] + c*acc[costServed]
	return a*u[costRate] + b*u[costServedTime] + c*u[costServed] - mean*u[costTime]
}

// errBiasTooLarge says that the relative values of states, which have no common
// unit, exceed what a float64 can hold.
var errBiasTooLarge = errors.New("relative values of states are too far apart")

// solvePoisson solves the equation of Poisson: at level 0 among its own states, then
// upwards by first passages.
func (h *howard) solvePoisson(acc []float64) error {
	q := h.lev[0].up[0]
	pi, err := stationaryLaw(q)
	if err != nil {
		return err
	}
	for _, l := range h.lev {
		if l.unit != 0 {
			return errBiasTooLarge
		}
	}
	ref := slices.Index(pi, slices.Max(pi))
	n := q.r - 1
	in := func(k int) int { // without the state of reference
		if k >= ref {
			return k + 1
		}
		return k
	}
	inner, exit, b := zeroMatrix(n, n), make([]float64, n), zeroMatrix(n, 1)
	for x := range n {
		exit[x] = q.at(in(x), ref)
		b.a[x] = linearizedCost(h.lev[0].u.row(in(x)), acc)
		for y := range n {
			inner.set(x, y, q.at(in(x), in(y)))
		}
	}
	f, err := factorizeMatrix(inner, exit)
	if err != nil {
		return err
	}
	f.solveInPlace(b)
	h.bias[0][ref] = 0
	for x := range n {
		h.bias[0][in(x)] = b.a[x]
	}
	for i := 1; i <= h.m.N; i++ {
		l := &h.lev[i]
		for x := range h.bias[i] {
			v := linearizedCost(l.u.row(x), acc)
			for y, g := range l.g.row(x) {
				v += g * h.bias[i-1][y]
			}
			h.bias[i][x] = v
		}
	}
	return nil
}

// move is a better mode of a state.
type move struct {
	level, state, mode int
	gain               float64
}

// modeImprovements returns the states with a better mode, greatest gain first.
func (h *howard) modeImprovements(acc []float64) []move {
	var out []move
	for i, modes := range h.mode {
		for x, now := range modes {
			value := func(r int) (v, scale float64) {
				v = linearizedCost(h.rate[i][r].row(x), acc)
				scale = math.Abs(v)
				for k, q := range h.cachedUpwardRates(i, r) {
					for y, rate := range q.row(x) {
						if rate > 0 && (k > 0 || y != x) {
							d := rate * (h.bias[i+k][y] - h.bias[i][x])
							v += d
							scale += math.Abs(d)
						}
					}
				}
				return v, scale
			}
			old, scale := value(now)
			best := move{i, x, now, 0}
			for r := range h.m.R {
				if v, s := value(r); old-v > best.gain && old-v > 1e-11*max(s, scale) {
					best.mode, best.gain = r, old-v
				}
			}
			if best.mode != now {
				out = append(out, best)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b move) int {
		switch {
		case a.gain > b.gain:
			return -1
		case a.gain < b.gain:
			return 1
		}
		return 0
	})
	return out
}
