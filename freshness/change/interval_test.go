package change

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The interval holds the truth about 19 times in 20, and the estimate always.
func TestIntervalCovers(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(9, 9))
	const rounds = 600
	covered := 0
	for range rounds {
		rate := math.Exp(r.NormFloat64())
		var visits []Visit
		for range 40 {
			tau := r.ExpFloat64()
			visits = append(visits, Visit{tau, r.Float64() < -math.Expm1(-rate*tau)})
		}
		low, high, err := Interval(visits)
		if err != nil {
			t.Fatal(err)
		}
		if mle, _ := MLE(visits); mle < low || mle > high {
			t.Errorf("estimate %g outside %g to %g", mle, low, high)
		}
		if rate >= low && rate <= high {
			covered++
		}
	}
	if share := float64(covered) / rounds; share < .92 || share > .98 {
		t.Errorf("covers %.3f", share)
	}
}

func TestIntervalEnds(t *testing.T) {
	t.Parallel()
	// Nothing changed in a total time of 4: the likelihood is e^{-4d}.
	low, high, err := Interval([]Visit{{1, false}, {3, false}})
	if err != nil || low != 0 || math.Abs(high-1.9207/4) > 1e-6 {
		t.Errorf("no change: %g to %g, %v", low, high, err)
	}
	low, high, err = Interval([]Visit{{1, true}, {2, true}})
	if err != nil || !math.IsInf(high, 1) || low <= 0 || low > 2 {
		t.Errorf("all changed: %g to %g, %v", low, high, err)
	}
	if _, _, err := Interval(nil); err == nil {
		t.Error("an interval from nothing")
	}
}
