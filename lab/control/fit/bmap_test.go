package fit

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"

	"github.com/freshet/freshet/internal/rng"
)

// lagsOf are the correlations of one run, by the definition.
func lagsOf(x []float64, n int) []float64 {
	var m, v float64
	for _, g := range x {
		m += g / float64(len(x))
	}
	for _, g := range x {
		v += (g - m) * (g - m) / float64(len(x))
	}
	out := make([]float64, n)
	for k := range out {
		for i := 0; i+k+1 < len(x); i++ {
			out[k] += (x[i] - m) * (x[i+k+1] - m)
		}
		out[k] /= float64(len(x)-k-1) * v
	}
	return out
}

// A two-state Markov-modulated Poisson process has closed forms (Fischer,
// Meier-Hellstern 1993): the decay of correlations is
// l1 l2 / (l1 l2 + l1 q2 + l2 q1).
func TestMMPPClosedForms(t *testing.T) {
	t.Parallel()
	l1, l2, q1, q2 := 5., .4, .2, .1
	b := &BMAP{D: [][][]float64{{{-l1 - q1, q1}, {q2, -l2 - q2}}, {{l1, 0}, {0, l2}}}}
	if err := b.Check(); err != nil {
		t.Fatal(err)
	}
	rate, err := b.Rate()
	if err != nil {
		t.Fatal(err)
	}
	near(t, "rate", rate, (l1*q2+l2*q1)/(q1+q2), 1e-12)
	p, err := b.Marginal()
	if err != nil {
		t.Fatal(err)
	}
	lags, err := b.Lags(3)
	if err != nil {
		t.Fatal(err)
	}
	gamma := l1 * l2 / (l1*l2 + l1*q2 + l2*q1)
	for k, v := range lags {
		near(t, fmt.Sprint("lag ", k+1), v, math.Pow(gamma, float64(k+1))*(1-1/p.SCV())/2, 1e-10)
	}
	// Simulation is the independent witness.
	x, _, err := b.Sample(rng.New(3, "mmpp"), 100_000)
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewSample(x)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "mean", s.Moments[0], p.Mean(), .04)
	near(t, "SCV", s.SCV(), p.SCV(), .06)
	for k, v := range lagsOf(x, 3) {
		if math.Abs(v-lags[k]) > .02 {
			t.Errorf("lag %d: simulated %g, computed %g", k+1, v, lags[k])
		}
	}
	if ks := s.Distance(p); ks.Distance > 6*ks.Critical {
		t.Errorf("simulated law differs by %g", ks.Distance)
	}
}

func TestSizes(t *testing.T) {
	t.Parallel()
	b := Renewal(HyperErlang([]float64{.5, .5}, []int{1, 2}, []float64{1, 5})).Batches([]float64{.5, 0, .5})
	if err := b.Check(); err != nil {
		t.Fatal(err)
	}
	sizes, err := b.Sizes()
	if err != nil {
		t.Fatal(err)
	}
	for k, want := range []float64{.5, 0, .5} {
		if math.Abs(sizes[k]-want) > 1e-12 {
			t.Errorf("size %d: %g", k+1, sizes[k])
		}
	}
	rate, _ := b.Rate()
	near(t, "rate", rate, 2/.7, 1e-12)
	_, drawn, err := b.Sample(rng.New(1), 20_000)
	if err != nil {
		t.Fatal(err)
	}
	three := 0.
	for _, k := range drawn {
		if k == 3 {
			three++
		}
	}
	if math.Abs(three/20_000-.5) > .02 {
		t.Errorf("share of threes %g", three/20_000)
	}
}

// Moments and correlations taken from any process of two phases give a process
// of the same moments and correlations, as far as the canonical form exists
// for the random process, which for acyclic D_0 it does.
func TestMAP2IsMatched(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		prob := rapid.Float64Range(.05, .95)
		a, b := prob.Draw(t, "a"), prob.Draw(t, "b")
		l1, l2 := rapid.Float64Range(.1, 1).Draw(t, "l1"), rapid.Float64Range(1.2, 9).Draw(t, "l2")
		truth := &BMAP{D: [][][]float64{{{-l1, (1 - a) * l1}, {0, -l2}}, {{a * l1, 0}, {(1 - b) * l2, b * l2}}}}
		if rapid.Bool().Draw(t, "alternating") {
			truth.D[1] = [][]float64{{0, a * l1}, {b * l2, (1 - b) * l2}}
		}
		p, err := truth.Marginal()
		if err != nil {
			t.Fatal(err)
		}
		lags, err := truth.Lags(3)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(p.SCV()-1) < .01 {
			t.Skip("nearly exponential: correlations vanish")
		}
		m := p.Moments(3)
		got, err := MAP2(m[0], m[1], m[2], lags[0])
		if err != nil {
			t.Fatalf("%v: %v", truth.D, err)
		}
		if err := got.Check(); err != nil {
			t.Fatal(err)
		}
		q, err := got.Marginal()
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range q.Moments(3) {
			if math.Abs(v/m[k]-1) > 1e-6 {
				t.Fatalf("moment %d: %g, want %g", k+1, v, m[k])
			}
		}
		fit, err := got.Lags(3)
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range fit {
			if math.Abs(v-lags[k]) > 1e-6 {
				t.Fatalf("lag %d: %g, want %g", k+1, v, lags[k])
			}
		}
	})
}

// The decay in place of lag 1, and its estimate from many lags.
func TestMAP2Decay(t *testing.T) {
	t.Parallel()
	b, err := MAP2Decay(1, 3.5, 0, .7)
	if err != nil {
		t.Fatal(err)
	}
	lags, err := b.Lags(4)
	if err != nil {
		t.Fatal(err)
	}
	for k := 1; k < 4; k++ {
		near(t, fmt.Sprint("decay at ", k), lags[k]/lags[k-1], .7, 1e-9)
	}
	near(t, "estimate", decayOf(2.5, lags), .7, 1e-9)
	if _, err := MAP2Decay(1, 3, 0, 1); err == nil {
		t.Error("decay 1 was taken")
	}
	// Two phases against the matrices.
	g := gapsOf(b, 30, "two phases")
	r, _ := g.sampledRuns(100)
	p, _ := b.Marginal()
	v := mat.NewVecDense(2, p.Beta)
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
	near(t, "likelihood", b.triangularLikelihood(r), want, 1e-9)
}

// The paper's log: two phases cannot do it, and the error says why.
func TestMAP2SaysWhy(t *testing.T) {
	t.Parallel()
	mean, variance := 212.03, 51352.38
	tests := []struct {
		m1, m2, m3, lag float64
		want            string
	}{
		{mean, variance + mean*mean, 0, .622, "(1 - 1/SCV)/2 = 0.062; the log has 0.622"},
		{1, 1.3, 0, -.1, "less than 0.5"},
		{1, 2, 6, .2, "SCV 1 makes"},
		{1, 4, 17, .1, "must be above 1.5 m2^2/m1 = 24"},
		{1, 1, 0, 0, "moment 2"},
	}
	for _, tt := range tests {
		_, err := MAP2(tt.m1, tt.m2, tt.m3, tt.lag)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: %v, want %q", tt, err, tt.want)
		}
		var why *Infeasible
		if tt.m2 > 1 && !errors.As(err, &why) {
			t.Errorf("%v: %T", tt, err)
		}
	}
}

func TestBMAPCheckNamesTheEntry(t *testing.T) {
	t.Parallel()
	tests := []struct {
		d    [][][]float64
		want string
	}{
		{nil, "want D_0"},
		{[][][]float64{{{-1}}, {{2}}}, "row 0 of the sum"},
		{[][][]float64{{{-1}}, {{-1}}}, "d[1][0][0]: -1 is negative"},
		{[][][]float64{{{-1, 1}, {1, -1}}, {{0, 0}, {0, 0}}}, "no arrivals"},
		{[][][]float64{{{-1, 0}, {0, -1}}, {{1, 0}, {0, 1}}}, "phase 1 is never reached from phase 0"},
		{[][][]float64{{{-1, 0}, {0, -1}}, {{1, 0}}}, "d[1]: 1 rows"},
	}
	for _, tt := range tests {
		if err := (&BMAP{D: tt.d}).Check(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: %v, want %q", tt.d, err, tt.want)
		}
	}
}
