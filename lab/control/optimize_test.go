package control

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"
	"time"
)

var someCost = Cost{Loss: 3, Obsolete: 2, Response: .7, Starvation: 4, Robot: .2}

func optimisable(n int, stale *Obsolescence, service *Service, thinned bool) Spec {
	s := Spec{Capacity: n, Service: service, Obsolescence: stale, Cost: someCost}
	if thinned {
		s.Common, s.Thinning = ptr(mapArrivals(1.2)), []float64{.15, .4, 1}
		return s
	}
	for _, f := range []float64{.2, .6, 1.5} {
		s.Modes = append(s.Modes, mapArrivals(f))
	}
	return s
}

// policies calls f for every policy of a model.
func policies(m *Model, f func(p []int)) {
	p := m.fixedModePolicy(1)
	for {
		f(p)
		i := 0
		for i < len(p) && p[i] == m.R {
			p[i] = 1
			i++
		}
		if i == len(p) {
			return
		}
		p[i]++
	}
}

// Every policy is solved on its own; those whose modes fall with the number of
// pages are the threshold policies.
func TestOptimizeAgainstAllPolicies(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]Spec{
		"modes":               optimisable(5, staleLaws["exponential"], hyperService, false),
		"thinned":             optimisable(5, staleLaws["exponential"], coxService, true),
		"Erlang-2":            optimisable(4, staleLaws["Erlang-2"], hyperService, true),
		"without staleness":   optimisable(6, nil, exponential(2), false),
		"one page":            optimisable(1, nil, exponential(2), false),
		"frozen robots":       {Capacity: 4, Robots: []Batches{mapArrivals(.3), {[][][]float64{{{-.9, .1}, {.05, -.55}}, {{.5, .3}, {.1, .4}}}}}, Idle: "freeze", Service: coxService, Cost: someCost},
		"arrivals only in r2": {Capacity: 4, Common: ptr(mapArrivals(1)), Thinning: []float64{0, .7, .9}, Service: coxService, Cost: someCost},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := mustNew(t, s)
			o, err := m.Optimize(t.Context(), Options{})
			if err != nil {
				t.Fatal(err)
			}
			best := map[string]float64{}
			all, sets := math.Inf(1), 0
			var allPolicy []int
			policies(m, func(p []int) {
				falls := slices.IsSortedFunc(p, func(a, b int) int { return b - a })
				if falls {
					sets++
				}
				r, err := m.Solve(t.Context(), p)
				if err != nil {
					return
				}
				if r.Cost < all {
					all, allPolicy = r.Cost, slices.Clone(p)
				}
				if !falls {
					return
				}
				for mask := 1; mask < 1<<m.R; mask++ {
					in := true
					for _, r := range p {
						in = in && mask>>(r-1)&1 == 1
					}
					k := fmt.Sprint(modesOf(uint64(mask)))
					if old, ok := best[k]; in && (!ok || r.Cost < old) {
						best[k] = r.Cost
					}
				}
			})
			if o.Sets != sets || float64(sets) != m.thresholdPolicyCount() {
				t.Errorf("%d sets, want %d; foretold %g", o.Sets, sets, m.thresholdPolicyCount())
			}
			if len(o.ByModes) != len(best) {
				t.Errorf("%d subsets of modes, want %d", len(o.ByModes), len(best))
			}
			least := math.Inf(1)
			for _, c := range o.ByModes {
				near(t, fmt.Sprint("modes ", c.Modes), c.Cost, best[fmt.Sprint(c.Modes)], 1e-9)
				least = min(least, best[fmt.Sprint(c.Modes)])
				if len(c.Thresholds) != len(c.Modes)-1 {
					t.Errorf("modes %v: thresholds %v", c.Modes, c.Thresholds)
				}
			}
			for _, f := range o.Fixed {
				near(t, fmt.Sprint("fixed ", f.Mode), f.Cost, best[fmt.Sprint([]int{f.Mode})], 1e-9)
			}
			near(t, "best", o.Best.Cost, least, 1e-9)
			near(t, "best by its measures", o.Best.Measures.Cost, least, 1e-9)
			near(t, "unrestricted", o.Unrestricted.Cost, all, 1e-9)
			r, err := m.Solve(t.Context(), o.Unrestricted.Policy)
			if err != nil {
				t.Fatal(err)
			}
			near(t, fmt.Sprint("policy of the unrestricted, brute force ", allPolicy), r.Cost, all, 1e-9)
			if back, err := m.FromThresholds(o.Best.Thresholds); err != nil || !slices.Equal(back, o.Best.Policy) {
				t.Errorf("thresholds %v give %v, want %v", o.Best.Thresholds, back, o.Best.Policy)
			}
		})
	}
}

// large is the size of the requirement: capacity 100, four modes, arrivals and
// service of order 2, exponential staleness.
func large() Spec {
	s := Spec{Capacity: 100, Service: hyperService, Obsolescence: &Obsolescence{[]float64{1}, [][]float64{{-.02}}}, Cost: Cost{Loss: 1, Obsolete: 1, Response: .05, Starvation: 3, Robot: .1}}
	for _, f := range []float64{1, 2, 3, 4} {
		s.Modes = append(s.Modes, Batches{[][][]float64{{{-1.1 * f, .1 * f}, {.05 * f, -.25 * f}}, {{.9 * f, .1 * f}, {.02 * f, .18 * f}}}})
	}
	return s
}

func TestLargeOptimum(t *testing.T) {
	t.Parallel()
	m := mustNew(t, large())
	begin := time.Now()
	o, err := m.Optimize(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(time.Since(begin), o.Best.Thresholds, o.Best.Cost, o.Fixed, o.Unrestricted.Cost, o.Unrestricted.Gap)
	if o.Sets != 182104 {
		t.Errorf("%d sets", o.Sets)
	}
	near(t, "cost", o.Best.Measures.Cost, o.Best.Cost, 1e-9)
	// A neighbour of the optimum is no better.
	for k := range o.Best.Thresholds {
		for _, d := range []int{-1, 1} {
			j := slices.Clone(o.Best.Thresholds)
			j[k] += d
			p, err := m.FromThresholds(j)
			if err != nil {
				continue
			}
			r, err := m.Solve(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			if r.Cost < o.Best.Cost-1e-10 {
				t.Errorf("thresholds %v cost %g, less than %v: %g", j, r.Cost, o.Best.Thresholds, o.Best.Cost)
			}
		}
	}
}

func TestEnumerationDoesNotAllocate(t *testing.T) {
	s, err := newSolver(mustNew(t, optimisable(30, staleLaws["exponential"], hyperService, false)))
	if err != nil {
		t.Fatal(err)
	}
	h := s.projectedSolver(someCost.accrualWeights()).newSearch()
	h.found = func(uint64, int, int, []float64) {}
	_ = h.forEachMonotonePolicy(t.Context())
	if n := testing.AllocsPerRun(3, func() { _ = h.continueBelow(t.Context(), 30, 0, 0) }); n > 0 {
		t.Errorf("%g allocations", n)
	}
}

func BenchmarkThresholdSets(b *testing.B) {
	m := mustNew(b, large())
	full, err := newSolver(m)
	if err != nil {
		b.Fatal(err)
	}
	s := full.projectedSolver(m.Cost.accrualWeights())
	for b.Loop() {
		var o Optimum
		m.enumeratePolicies(b.Context(), s, &o)
		if o.Sets != 182104 {
			b.Fatal(o.Sets)
		}
	}
}

// The local search, with exact and with iterative evaluation, against all sets.
func TestLocalSearch(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		s Spec
		o Options
	}{
		"exact":     {optimisable(25, staleLaws["exponential"], hyperService, false), Options{Method: Exact}},
		"iterative": {optimisable(5, staleLaws["Erlang-2"], hyperService, false), Options{Method: Iterative}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := mustNew(t, c.s)
			want, err := m.Optimize(t.Context(), Options{})
			if err != nil {
				t.Fatal(err)
			}
			got, err := m.optimizeLocally(t.Context(), c.o)
			if err != nil {
				t.Fatal(err)
			}
			near(t, "best", got.Best.Cost, want.Best.Cost, 1e-9)
			near(t, "unrestricted", got.Unrestricted.Cost, want.Unrestricted.Cost, 1e-9)
			for i, b := range want.ByModes {
				near(t, fmt.Sprint("modes ", b.Modes), got.ByModes[i].Cost, b.Cost, 1e-9)
			}
			if got.Search != "local" || want.Search != "all sets" {
				t.Error(got.Search, want.Search)
			}
		})
	}
}

// A model beyond the enumeration: 4096 states at the top level.
func TestOptimizeLarger(t *testing.T) {
	t.Parallel()
	m := mustNew(t, optimisable(12, staleLaws["Erlang-2"], exponential(2), false))
	begin := time.Now()
	o, err := m.Optimize(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(time.Since(begin), o.Search, o.Sets, o.Best.Thresholds, o.Best.Cost, o.Best.Measures.Method)
	if o.Search != "local" || o.Best.Measures.Method != Iterative {
		t.Error(o.Search, o.Best.Measures.Method)
	}
	near(t, "cost", o.Best.Measures.Cost, o.Best.Cost, 1e-9)
}

// A model in which the number of pages tells the phase of arrival: thresholds
// are a fifth dearer than the best policy, which the simulation confirms.
func TestThresholdsNeedNotBeOptimal(t *testing.T) {
	t.Parallel()
	f, err := os.Open("../../docs/examples/robots-gap.json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := Read(f)
	if err != nil {
		t.Fatal(err)
	}
	o, err := m.Optimize(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(o.Unrestricted.Policy) != "[1 4 4 4 4 1 1]" || math.Abs(o.Unrestricted.Gap-.195) > .001 {
		t.Errorf("policy %v, gap %g", o.Unrestricted.Policy, o.Unrestricted.Gap)
	}
	for _, p := range [][]int{o.Best.Policy, o.Unrestricted.Policy} {
		r, err := m.Simulate(t.Context(), p, Simulation{Seed: 1, Replications: 8, Pages: 60000, WarmUp: -1})
		if err != nil {
			t.Fatal(err)
		}
		want, err := m.Solve(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		if d := math.Abs(r.Cost - want.Cost); d > 2.5*r.HalfWidth.Cost || r.HalfWidth.Cost > .05 {
			t.Errorf("%v: simulated %g ± %g, solved %g", p, r.Cost, r.HalfWidth.Cost, want.Cost)
		}
	}
}

// What takes long ends with its context.
func TestCancelled(t *testing.T) {
	t.Parallel()
	done, cancel := context.WithCancel(t.Context())
	cancel()
	m := mustNew(t, optimisable(6, staleLaws["Erlang-2"], hyperService, false))
	p := m.fixedModePolicy(2)
	for name, f := range map[string]func() error{
		"exact":     func() error { _, err := m.SolveBy(done, p, Options{Method: Exact}); return err },
		"iterative": func() error { _, err := m.SolveBy(done, p, Options{Method: Iterative}); return err },
		"lumped":    func() error { _, err := m.SolveBy(done, p, Options{Method: Lumped}); return err },
		"optimize":  func() error { _, err := m.Optimize(done, Options{}); return err },
		"locally":   func() error { _, err := m.Optimize(done, Options{Method: Lumped}); return err },
		"bounded":   func() error { _, err := m.OptimizeBounded(done, []Bound{{"p_loss", 1}}); return err },
		"phases":    func() error { _, err := m.PhaseAware(done); return err },
		"pair":      func() error { _, err := m.Pair(done, 1, 2, Options{}); return err },
	} {
		if err := f(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
