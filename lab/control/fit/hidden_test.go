package fit

import (
	"context"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/freshet/freshet/internal/rng"
)

func gapsOf(b *BMAP, n int, label string) *Gaps {
	x, sizes, err := b.Sample(rng.New(11, label), n)
	if err != nil {
		panic(err)
	}
	return &Gaps{Runs: [][]float64{x}, Sizes: [][]int{sizes}, All: sizes, Epochs: n}
}

var threeRegimes = &regimes{
	Order: []float64{4, 1, 2},
	Rate:  []float64{40, .5, 1},
	Move:  [][]float64{{.95, .02, .03}, {.1, .85, .05}, {.02, .08, .9}},
}

// The likelihood of the forward recursion is that of the process itself:
// log of start e^(D0 x1) D1 e^(D0 x2) D1 ... 1.
func TestLikelihoodAgainstMatrices(t *testing.T) {
	t.Parallel()
	b := threeRegimes.BMAP()
	if err := b.Check(); err != nil {
		t.Fatal(err)
	}
	g := gapsOf(b, 40, "likelihood")
	p, err := b.Marginal()
	if err != nil {
		t.Fatal(err)
	}
	v := mat.NewVecDense(b.Order(), p.Beta)
	want := 0.0
	for _, x := range g.Runs[0] {
		var e mat.Dense
		e.Exp(denseMatrix(b.D[0], x))
		e.Mul(&e, denseMatrix(b.D[1], 1))
		var next mat.VecDense
		next.MulVec(e.T(), v)
		sum := mat.Sum(&next)
		want += math.Log(sum)
		v.ScaleVec(1/sum, &next)
	}
	r, _ := g.sampledRuns(1000)
	near(t, "likelihood", threeRegimes.runsLikelihood(r, &scratch{}), want, 1e-9)
}

// Each round raises the likelihood.
func TestRoundsClimb(t *testing.T) {
	t.Parallel()
	g := gapsOf(threeRegimes.BMAP(), 3000, "climb")
	r, _ := g.sampledRuns(1e6)
	for _, width := range []int{1, 25} {
		fit := guessRegimes(r, 3, width)
		last := math.Inf(-1)
		for i := range 60 {
			ll := fit.regimeEMStep(r, &scratch{}, i > 40, 30)
			if i == 41 {
				last = math.Inf(-1)
			}
			if ll < last-1e-3 {
				t.Fatalf("width %d round %d: %g after %g", width, i, ll, last)
			}
			last = ll
		}
	}
}

// A process of three regimes is found again: orders, rates, correlations.
func TestSearchRecovers(t *testing.T) {
	t.Parallel()
	truth := threeRegimes.BMAP()
	g := gapsOf(truth, 5_000, "recover")
	r, _ := g.sampledRuns(1e6)
	fit, err := searchRegimes(context.Background(), r, 3, 30)
	if err != nil {
		t.Fatal(err)
	}
	b := fit.BMAP()
	if err := b.Check(); err != nil {
		t.Fatal(err)
	}
	s := &scratch{}
	if got, want := fit.runsLikelihood(r, s), threeRegimes.runsLikelihood(r, s); got < want-1 {
		t.Errorf("likelihood %g below the true one %g", got, want)
	}
	p, _ := b.Marginal()
	q, _ := truth.Marginal()
	near(t, "mean", p.Mean(), q.Mean(), .06)
	near(t, "SCV", p.SCV(), q.SCV(), .1)
	lags, _ := b.Lags(5)
	want, _ := truth.Lags(5)
	for k, v := range lags {
		if math.Abs(v-want[k]) > .03 {
			t.Errorf("lag %d: %g, want %g", k+1, v, want[k])
		}
	}
	if fit.totalPhases() != 7 {
		t.Errorf("orders %v, want 4, 1, 2 in some order", fit.Order)
	}
}

// A regime that explains a time but cannot be reached makes the likelihood
// very small, not undefined.
func TestLikelihoodOfTheImpossible(t *testing.T) {
	t.Parallel()
	g := &regimes{Order: []float64{1, 1}, Rate: []float64{1e6, 1e-6}, Move: [][]float64{{0, 1}, {1, 0}}}
	r := []run{{x: []float64{1e6, 1e6, 1e6}, lx: []float64{math.Log(1e6), math.Log(1e6), math.Log(1e6)}, size: []int{1, 1, 1}}}
	if ll := g.runsLikelihood(r, &scratch{}); !(ll < -700) || math.IsInf(ll, 0) {
		t.Errorf("likelihood %g", ll)
	}
	if p := g.pruneRareMoves(); p.BMAP().Check() != nil {
		t.Error("pruned to a process that is none")
	}
}
