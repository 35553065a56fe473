package control

import (
	"fmt"
	"math"
	"testing"
)

// In a queue whose load is not 1 the times until it empties or fills grow as a
// power of the capacity and leave the range of a float64. The law of M/M/1/N is
// known: p_n is proportional to load^n.
func TestCapacityBeyondFloat(t *testing.T) {
	t.Parallel()
	for _, n := range []int{300, 700, 3000} {
		for _, load := range []float64{0.01, 0.2, 1, 5, 100} {
			t.Run(fmt.Sprintf("capacity %d, load %g", n, load), func(t *testing.T) {
				t.Parallel()
				cost := Cost{Loss: 10, Response: 1, Starvation: 5, Robot: 0.5}
				m := mustNew(t, Spec{Capacity: n, Modes: []Batches{{[][][]float64{{{-load}}, {{load}}}}}, Service: exponential(1), Cost: cost})
				full, length, total := 0.0, 0.0, 0.0
				for i := range n + 1 { // weights from the likelier end
					p, at := math.Pow(load, float64(i)), i
					if load > 1 {
						p, at = math.Pow(load, -float64(i)), n-i
					}
					total += p
					length += p * float64(at)
					if at == n {
						full = p
					}
				}
				full, length = full/total, length/total
				served := load * (1 - full)
				want := 10*load*full + length/served + 5*(1-served) + 0.5
				got, err := m.Solve(t.Context(), m.fixedModePolicy(1))
				if err != nil {
					t.Fatal(err)
				}
				if math.Abs(got.Cost-want) > 1e-8*want || math.Abs(got.Loss-full) > 1e-12 {
					t.Errorf("cost %.12g, loss %g, want %.12g and %g", got.Cost, got.Loss, want, full)
				}
			})
		}
	}
}

// The search for the best policy compares the same costs that Solve gives,
// also those of policies under which the queue fills.
func TestOptimumOfOverload(t *testing.T) {
	t.Parallel()
	const n = 500
	m := mustNew(t, Spec{
		Capacity: n, Modes: []Batches{mapArrivals(0.2), mapArrivals(5)}, Service: exponential(1),
		Cost: Cost{Loss: 0.001, Response: 1e-6, Starvation: 5, Robot: 1e-3},
	})
	best, err := m.Optimize(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := math.Inf(1)
	for j := -1; j <= n; j++ {
		r, err := m.Solve(t.Context(), m.thresholdPolicy([]int{1, 2}, []int{j}))
		if err != nil {
			t.Fatalf("threshold %d: %v", j, err)
		}
		want = min(want, r.Cost)
		for _, f := range best.Fixed {
			if (j == -1 && f.Mode == 1 || j == n && f.Mode == 2) && math.Abs(f.Cost-r.Cost) > 1e-9*r.Cost {
				t.Errorf("always mode %d: cost %g, want %g", f.Mode, f.Cost, r.Cost)
			}
		}
	}
	if len(best.Fixed) != 2 || math.Abs(best.Best.Cost-want) > 1e-9*want {
		t.Errorf("best of %v: %g, want %g", best.Fixed, best.Best.Cost, want)
	}
	if u := best.Unrestricted; !(u.Cost <= want*(1+1e-9)) || u.LowerBound != nil && !(*u.LowerBound <= u.Cost) {
		t.Errorf("any mode at any level: %+v, want at most %g", u, want)
	}
}
