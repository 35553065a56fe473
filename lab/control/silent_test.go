package control

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// frozen draws a model whose idle robots freeze, the case in which most local
// searches end in a policy that is not the best.
func frozen(seed uint64) Spec {
	r := rand.New(rand.NewPCG(seed, 11))
	batches := func() Batches {
		d := [][][]float64{{{0, r.Float64()}, {r.Float64(), 0}}}
		for range 1 + r.IntN(3) {
			d = append(d, [][]float64{{r.Float64(), r.Float64()}, {r.Float64(), 2 * r.Float64()}})
		}
		for a := range 2 {
			for _, m := range d {
				d[0][a][a] -= m[a][1-a]
				if &m[0] != &d[0][0] {
					d[0][a][a] -= m[a][a]
				}
			}
		}
		return Batches{d}
	}
	s := Spec{Capacity: 2 + r.IntN(4), Robots: []Batches{batches(), batches()}, Idle: "freeze", Service: exponential(1 + r.Float64())}
	s.Obsolescence = &Obsolescence{[]float64{1}, [][]float64{{-r.Float64()}}}
	s.Cost = Cost{Loss: 3 * r.Float64(), Obsolete: r.Float64(), Response: float64(r.IntN(2)) * r.Float64(), Starvation: 5 * r.Float64(), Robot: 3 * r.Float64()}
	return s
}

// The policy called optimal is the best of all policies solved one by one, the
// heuristic finds none better, and the lower bound is not above either.
func TestUnrestrictedIsOptimal(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			m := mustNew(t, frozen(seed))
			o, err := m.Optimize(t.Context(), Options{})
			if err != nil {
				t.Fatal(err)
			}
			want := math.Inf(1)
			policies(m, func(p []int) {
				if r, err := m.Solve(t.Context(), p); err == nil {
					want = min(want, r.Cost)
				}
			})
			near(t, "cost of the best policy", o.Unrestricted.Cost, want, 1e-9)
			r, err := m.Solve(t.Context(), o.Unrestricted.Policy)
			if err != nil {
				t.Fatal(err)
			}
			near(t, "cost of its policy", r.Cost, want, 1e-9)
			if o.Unrestricted.Search != allSearched || o.Unrestricted.LowerBound != nil {
				t.Errorf("search %q, bound %v; want %q and none", o.Unrestricted.Search, o.Unrestricted.LowerBound, allSearched)
			}
			full, err := newSolver(m)
			if err != nil {
				t.Fatal(err)
			}
			found, err := full.projectedSolver(m.Cost.accrualWeights()).optimizeUnrestricted(t.Context(), [][]int{o.Best.Policy})
			if err != nil {
				t.Fatal(err)
			}
			if isClearlyLess(found.Cost, want) {
				t.Errorf("the heuristic found cost %g, want at least %g", found.Cost, want)
			}
			bound, err := m.lowerBound(t.Context(), o.Best.Policy)
			if err != nil || bound == nil || isClearlyLess(want, *bound) {
				t.Errorf("lower bound %v, %v; want at most %g", bound, err, want)
			}
		})
	}
}

// Beyond the number of policies that are all evaluated the search says that it
// is a heuristic and bounds what may be missing.
func TestUnrestrictedNamedHeuristic(t *testing.T) {
	t.Parallel()
	m := mustNew(t, Spec{Capacity: 40, Modes: []Batches{mapArrivals(.5), mapArrivals(1)}, Service: exponential(2), Cost: Cost{Loss: 1, Response: 1, Starvation: 3, Robot: .5}})
	o, err := m.Optimize(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	u := o.Unrestricted
	if u.Search != localSearch || u.LowerBound == nil || *u.LowerBound > u.Cost || *u.LowerBound <= 0 {
		t.Errorf("search %q, lower bound %v, cost %g; want %q and a bound between 0 and the cost", u.Search, u.LowerBound, u.Cost, localSearch)
	}
}

// A mode in which no page arrives is a mode like others. Its closed form is the
// limit of ever rarer arrivals, every method gives it, and the optimum counts it.
func TestSilentModes(t *testing.T) {
	t.Parallel()
	spec := func(rate float64) Spec {
		return Spec{
			Capacity: 3, Marked: &Marked{D0: [][]float64{{-2 - rate}}, Robots: [][][][]float64{{{{rate}}}, {{{2}}}}},
			Service: exponential(1), Cost: Cost{Loss: 10, Obsolete: 1, Response: 1, Starvation: 1, Robot: 1},
		}
	}
	m := mustNew(t, spec(0))
	for _, policy := range [][]int{{1, 1, 1, 1}, {1, 2, 2, 2}, {1, 2, 1, 2}} {
		for _, method := range []string{Exact, Iterative, Lumped} {
			got, err := m.SolveBy(t.Context(), policy, Options{Method: method})
			if err != nil {
				t.Fatal(err)
			}
			if got.Cost != 2 || got.Starvation != 1 || got.ArrivalRate != 0 || got.Loss != 0 || got.MeanRobots != 1 {
				t.Errorf("%v, %s: %+v, want cost 2 of an empty system with one robot", policy, method, got)
			}
		}
		s, err := m.Simulate(t.Context(), policy, Simulation{Replications: 3, Time: 100})
		if err != nil || s.Cost != 2 {
			t.Errorf("%v simulated: %+v, %v; want cost 2", policy, s, err)
		}
	}
	rare, err := mustNew(t, spec(1e-7)).Solve(t.Context(), []int{1, 1, 1, 1})
	if err != nil {
		t.Fatal(err)
	}
	// A page that comes once in a long time still has its response time, 1.
	near(t, "limit of rare arrivals", rare.Cost-1, 2, 1e-5)

	o, err := m.Optimize(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	near(t, "best thresholds", o.Best.Cost, 2, 1e-12)
	near(t, "best policy", o.Unrestricted.Cost, 2, 1e-12)
	near(t, "measures of the best", o.Best.Measures.Cost, 2, 1e-12)
	if p, err := m.PhaseAware(t.Context(), o.Best.Policy); err != nil || p.Cost > 2+1e-12 {
		t.Errorf("seeing the phases: %+v, %v; want at most 2", p, err)
	}
	local, err := m.Optimize(t.Context(), Options{Method: Iterative})
	if err != nil {
		t.Fatal(err)
	}
	near(t, "best of the local search", local.Best.Cost, 2, 1e-12)
	bounded, err := m.OptimizeBounded(t.Context(), []Bound{{"p_starvation", .5}})
	if err != nil || bounded.Best.Measures.Starvation > .5 {
		t.Errorf("bounded: %+v, %v; want a policy with starvation of at most .5", bounded, err)
	}
}

// The time of a solution grows in proportion to the capacity where service and
// staleness have few phases.
func BenchmarkSolveCapacity(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			m := mustNew(b, Spec{Capacity: n, Modes: []Batches{mapArrivals(1)}, Service: hyperService, Obsolescence: &Obsolescence{[]float64{1}, [][]float64{{-.01}}}, Cost: Cost{Loss: 1}})
			for b.Loop() {
				if _, err := m.Solve(b.Context(), m.fixedModePolicy(1)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
