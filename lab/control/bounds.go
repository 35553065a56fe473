package control

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	gonum "gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize/convex/lp"
)

// Bound asks that a measure be at most a value.
type Bound struct {
	Measure string  `json:"measure"`
	AtMost  float64 `json:"at_most"`
}

// Bounded is the best policy by thresholds that keeps bounds.
type Bounded struct {
	Bounds      []Bound   `json:"bounds"`
	Best        Best      `json:"best"`
	Multipliers []float64 `json:"multipliers"` // cost a unit of each measure, at which the bounds need not be asked for
	LowerBound  float64   `json:"lower_bound"` // of the cost, by the multipliers
	Feasible    int       `json:"feasible"`    // threshold sets that keep the bounds
	Sets        int       `json:"sets"`
}

// BoundMeasures are the measures that may be bounded, by their JSON names.
func BoundMeasures() []string {
	return []string{"p_loss", "p_obsolete", "p_starvation", "mean_sojourn_served", "mean_robots"}
}

// boundedMeasure returns a bounded measure from long-run rates of all accruals.
func boundedMeasure(name string, acc []float64) float64 {
	switch name {
	case "p_loss":
		return quotientOrZero(acc[accLoss], acc[accPages])
	case "p_obsolete":
		return quotientOrZero(acc[accObsolete], acc[accPages])
	case "p_starvation":
		return acc[accStarvation]
	case "mean_sojourn_served":
		return quotientOrZero(acc[accServedTime], acc[accServed])
	case "mean_robots":
		return acc[accRobots]
	}
	return math.NaN()
}

// ErrInfeasible says that no threshold set keeps the bounds.
const ErrInfeasible = InputError("no threshold set keeps the bounds")

// maxKept is the largest number of values that OptimizeBounded keeps.
const maxKept = 5e7

// OptimizeBounded looks at all threshold sets for the cheapest that keeps the
// bounds, and finds the multipliers of the bounds: the costs that maximise the
// least cost with the bounds' excess charged (formula (23)). A multiplier of 0
// says that its bound costs nothing.
func (m *Model) OptimizeBounded(ctx context.Context, bounds []Bound) (*Bounded, error) {
	for _, b := range bounds {
		if !slices.Contains(BoundMeasures(), b.Measure) {
			return nil, fmt.Errorf("bound: no measure %q; there are %s", b.Measure, strings.Join(BoundMeasures(), ", "))
		}
		if !(b.AtMost >= 0) {
			return nil, fmt.Errorf("bound: %s at most %g: give a number from 0", b.Measure, b.AtMost)
		}
	}
	width := 1 + len(bounds)
	if n := m.thresholdPolicyCount(); n*float64(width) > maxKept {
		return nil, fmt.Errorf("%.3g threshold sets with %d bounds: %.0g values at most", n, len(bounds), float64(maxKept))
	}
	s, err := newSolver(m)
	if err != nil {
		return nil, err
	}
	out := &Bounded{Bounds: bounds}
	out.Best.Cost = math.Inf(1)
	var points []float64 // of each set the cost and the excess over each bound
	least := slices.Repeat([]float64{math.Inf(1)}, len(bounds))
	h := s.newSearch()
	h.found = func(_ uint64, bottom, level int, acc []float64) {
		out.Sets++
		if acc == nil {
			return
		}
		cost := m.Cost.ofAccruals(acc)
		points = append(points, cost)
		within := true
		for k, b := range bounds {
			excess := boundedMeasure(b.Measure, acc) - b.AtMost
			points = append(points, excess)
			within = within && excess <= 0
			least[k] = min(least[k], excess)
		}
		if !within {
			return
		}
		out.Feasible++
		if cost < out.Best.Cost {
			out.Best.Cost, out.Best.Policy = cost, h.policyFound(bottom, level, out.Best.Policy)
		}
	}
	if err := h.forEachMonotonePolicy(ctx); err != nil {
		return nil, err
	}
	if out.Best.Policy == nil {
		for k, b := range bounds {
			if least[k] > 0 {
				return nil, fmt.Errorf("%w: %s cannot be less than %.6g", ErrInfeasible, b.Measure, least[k]+b.AtMost)
			}
		}
		return nil, fmt.Errorf("%w: each can be kept alone, not all at once", ErrInfeasible)
	}
	out.Best.Thresholds, out.Best.Modes = m.Thresholds(out.Best.Policy), usedModes(out.Best.Policy)
	if r := out.Best.Policy[0] - 1; m.isSilent(r) {
		out.Best.Measures = m.emptyResult(r)
	} else if out.Best.Measures, err = s.solveDense(ctx, out.Best.Policy); err != nil {
		return nil, err
	}
	out.Multipliers, out.LowerBound, err = lagrangeMultipliers(points, width)
	return out, err
}

// ofAccruals returns the cost by long-run rates.
func (c Cost) ofAccruals(acc []float64) float64 {
	v := c.Loss*acc[accLoss] + c.Obsolete*acc[accObsolete] + c.Starvation*acc[accStarvation] + c.Robot*acc[accRobots]
	if c.Response > 0 {
		v += c.Response * quotientOrZero(acc[accServedTime], acc[accServed])
	}
	return v
}

// lagrangeMultipliers maximises over mu >= 0 the least of cost + mu * excess over the
// points by cutting planes: a linear programme over the points met so far finds
// mu, which meets a new point, until there is none.
func lagrangeMultipliers(points []float64, width int) ([]float64, float64, error) {
	lowest := func(mu []float64) ([]float64, float64) {
		var at []float64
		best := math.Inf(1)
		for i := 0; i < len(points); i += width {
			v := points[i]
			for k, x := range mu {
				v += x * points[i+1+k]
			}
			if v < best {
				best, at = v, points[i:i+width]
			}
		}
		return at, best
	}
	mu := make([]float64, width-1)
	first, best := lowest(mu)
	cuts := [][]float64{first, cheapestFeasiblePoint(points, width)}
	bestMu := slices.Clone(mu)
	for range 200 {
		upper, next, err := solveMasterProgram(cuts, width)
		if err != nil {
			return nil, 0, fmt.Errorf("multipliers of the bounds: %w", err)
		}
		cut, v := lowest(next)
		if v > best {
			best, bestMu = v, next
		}
		if upper-best <= 1e-9*max(1e-12, math.Abs(upper)) {
			break
		}
		cuts = append(cuts, cut)
	}
	return bestMu, best, nil
}

// cheapestFeasiblePoint returns the point of least cost that exceeds no bound.
func cheapestFeasiblePoint(points []float64, width int) []float64 {
	var at []float64
	for i := 0; i < len(points); i += width {
		p := points[i : i+width]
		if slices.Max(append([]float64{0}, p[1:]...)) <= 0 && (at == nil || p[0] < at[0]) {
			at = p
		}
	}
	return at
}

// solveMasterProgram maximises t under t <= cost + mu * excess for the cuts: variables t+,
// t-, mu, a slack of each cut. A bound that no cut exceeds or undercuts has
// multiplier 0.
func solveMasterProgram(cuts [][]float64, width int) (float64, []float64, error) {
	var in []int
	for k := 1; k < width; k++ {
		if slices.ContainsFunc(cuts, func(p []float64) bool { return p[k] != 0 }) {
			in = append(in, k)
		}
	}
	n := 2 + len(in) + len(cuts)
	a, b, c := gonum.NewDense(len(cuts), n, nil), make([]float64, len(cuts)), make([]float64, n)
	c[0], c[1] = -1, 1
	for j, p := range cuts {
		a.Set(j, 0, 1)
		a.Set(j, 1, -1)
		for x, k := range in {
			a.Set(j, 2+x, -p[k])
		}
		a.Set(j, 2+len(in)+j, 1)
		b[j] = p[0]
	}
	v, x, err := lp.Simplex(c, a, b, 1e-12, nil)
	if err != nil {
		return 0, nil, err
	}
	mu := make([]float64, width-1)
	for i, k := range in {
		mu[k-1] = x[2+i]
	}
	return -v, mu, nil
}
