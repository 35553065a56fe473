package control

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
)

func TestOptimizeBoundedAgainstAllSets(t *testing.T) {
	t.Parallel()
	s := optimisable(6, staleLaws["exponential"], hyperService, false)
	m := mustNew(t, s)
	free, err := m.Optimize(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	f := free.Best.Measures
	some, err := m.Solve(t.Context(), []int{3, 3, 2, 2, 1, 1, 1})
	if err != nil {
		t.Fatal(err)
	}
	some.Starvation, some.MeanRobots, some.SojournServed = some.Starvation*1.0001, some.MeanRobots*1.0001, some.SojournServed*1.0001
	for name, bounds := range map[string][]Bound{
		"starvation": {{"p_starvation", f.Starvation * .93}},
		"robots":     {{"mean_robots", f.MeanRobots * .9}},
		"idle":       {{"p_loss", .99}, {"mean_robots", 3}},
		"both":       {{"p_starvation", some.Starvation}, {"mean_robots", some.MeanRobots}, {"mean_sojourn_served", some.SojournServed}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := m.OptimizeBounded(t.Context(), bounds)
			if err != nil {
				t.Fatal(err)
			}
			var all []Result
			best := math.Inf(1)
			within := 0
			value := func(r Result, k string) float64 {
				return map[string]float64{"p_starvation": r.Starvation, "p_loss": r.Loss, "mean_robots": r.MeanRobots, "mean_sojourn_served": r.SojournServed}[k]
			}
			policies(m, func(p []int) {
				if !slices.IsSortedFunc(p, func(a, b int) int { return b - a }) {
					return
				}
				r, err := m.Solve(t.Context(), p)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, r)
				for _, b := range bounds {
					if value(r, b.Measure) > b.AtMost {
						return
					}
				}
				within++
				best = min(best, r.Cost)
			})
			near(t, "cost", got.Best.Cost, best, 1e-9)
			near(t, "cost by its measures", got.Best.Measures.Cost, best, 1e-9)
			if got.Feasible != within || got.Sets != len(all) {
				t.Errorf("%d of %d sets keep the bounds, want %d of %d", got.Feasible, got.Sets, within, len(all))
			}
			charged := func(mu []float64) float64 {
				least := math.Inf(1)
				for _, r := range all {
					v := r.Cost
					for k, b := range bounds {
						v += mu[k] * (value(r, b.Measure) - b.AtMost)
					}
					least = min(least, v)
				}
				return least
			}
			near(t, "lower bound", got.LowerBound, charged(got.Multipliers), 1e-9)
			if got.LowerBound > best+1e-9 {
				t.Errorf("lower bound %g above the best cost %g", got.LowerBound, best)
			}
			// The charged cost is concave in the multipliers: no step raises it.
			for k := range bounds {
				for _, d := range []float64{-1e-3, 1e-3, -1, 1} {
					mu := slices.Clone(got.Multipliers)
					mu[k] = max(0, mu[k]+d)
					if v := charged(mu); v > got.LowerBound+1e-8 {
						t.Errorf("multipliers %v give %g, more than %v: %g", mu, v, got.Multipliers, got.LowerBound)
					}
				}
			}
			if name == "idle" && (got.Multipliers[0] != 0 || got.Multipliers[1] != 0) {
				t.Errorf("bounds that do not bind cost %v", got.Multipliers)
			}
			if name == "starvation" && !(got.Multipliers[0] > 0) {
				t.Error("a bound that binds costs nothing")
			}
		})
	}
	for _, c := range []struct {
		b    Bound
		want string
	}{
		{Bound{"p_loss", 0}, "p_loss cannot be less than"},
		{Bound{"loss", 1}, `no measure "loss"; there are p_loss`},
		{Bound{"p_loss", -1}, "give a number from 0"},
	} {
		if _, err := m.OptimizeBounded(t.Context(), []Bound{c.b}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v", c.b, err)
		}
	}
	if _, err := m.OptimizeBounded(t.Context(), []Bound{{"p_loss", 0}}); !errors.Is(err, ErrInfeasible) {
		t.Error(err)
	}
}

// The cheapest point may lie on its bound exactly.
func TestMultipliersOfAPointOnTheBound(t *testing.T) {
	t.Parallel()
	mu, low, err := lagrangeMultipliers([]float64{1, 0, 2, -.5, 3, .5}, 2)
	if err != nil || low != 1 || mu[0] != 0 {
		t.Errorf("%v, %g, %v", mu, low, err)
	}
	if mu, low, err = lagrangeMultipliers([]float64{1, 1, 3, -1}, 2); err != nil || low != 2 || mu[0] != 1 {
		t.Errorf("%v, %g, %v; want 1 and 2: half of each", mu, low, err)
	}
}
