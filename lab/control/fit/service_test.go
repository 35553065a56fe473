package fit

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/freshet/freshet/internal/rng"
)

func drawn(p *PH, n int, label string) *Sample {
	r := rng.New(7, label)
	x := make([]float64, n)
	for i := range x {
		x[i] = p.Sample(r)
	}
	s, err := NewSample(x)
	if err != nil {
		panic(err)
	}
	return s
}

// A hyper-Erlang law is found again from its sample: the distribution function
// as near as chance allows, the orders about right.
func TestHyperErlangEMRecovers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		law  *PH
	}{
		{"exponential", HyperErlang([]float64{1}, []int{1}, []float64{3})},
		{"Erlang-5", HyperErlang([]float64{1}, []int{5}, []float64{1})},
		{"hyperexponential", HyperErlang([]float64{.1, .9}, []int{1, 1}, []float64{.02, 1})},
		{"two humps", HyperErlang([]float64{.4, .6}, []int{3, 12}, []float64{3, 2})},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := drawn(tt.law, 20_000, tt.name)
			l, err := HyperErlangEM(context.Background(), s, 5, 40)
			if err != nil {
				t.Fatal(err)
			}
			if ks := s.Distance(&l.PH); ks.Distance > ks.Critical {
				t.Errorf("%s: distance %g above %g", l.Method, ks.Distance, ks.Critical)
			}
			near(t, "mean", l.Mean(), s.Moments[0], 1e-3)
			near(t, "m2", l.Moments(2)[1], s.Moments[1], .05) // the likelihood does not look at moments
			// The likelihood cannot be much below the true law's.
			got, truth := s.goodnessOfFit(&l.PH).Score, s.goodnessOfFit(tt.law).Score
			if got.LogLikelihood < truth.LogLikelihood-3 {
				t.Errorf("%s: likelihood %g below the true law's %g", l.Method, got.LogLikelihood, truth.LogLikelihood)
			}
			if len(l.connectedPhases()) != len(tt.law.connectedPhases()) {
				t.Errorf("%s: want %d branches", l.Method, len(tt.law.connectedPhases()))
			}
		})
	}
}

func TestGammaShape(t *testing.T) {
	t.Parallel()
	// For shape 3, ln a - digamma(a) = ln 3 - (1 + 1/2 - 0.5772156649...).
	near(t, "shape 3", gammaShape(math.Log(3)-(1.5-.5772156649015329), 100), 3, 1e-9)
	near(t, "trigamma(1)", trigammaAt(1), math.Pi*math.Pi/6, 1e-10)
	near(t, "trigamma(1/2)", trigammaAt(.5), math.Pi*math.Pi/2, 1e-10)
	if v := gammaShape(0, 50); v != 50 {
		t.Errorf("constant values: shape %g, want the bound", v)
	}
}

func TestFitServiceSaysWhy(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	heavy := drawn(HyperErlang([]float64{.2, .8}, []int{1, 1}, []float64{.1, 1}), 20_000, "heavy")
	v, err := FitService(ctx, heavy, ServiceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if v.Order() != 2 || !strings.Contains(v.Words[0], "can have the three moments") {
		t.Errorf("order %d, %q", v.Order(), v.Words)
	}
	for _, m := range v.Goodness.Moments {
		near(t, "moment", m.Fit, m.Sample, 1e-9)
	}
	// Values that vary little and one outlier: hyperexponential by its moments,
	// but like it in nothing else.
	mild := drawn(HyperErlang([]float64{1}, []int{6}, []float64{6}), 5000, "outlier")
	outlier, err := NewSample(append(mild.Sorted, 80))
	if err != nil {
		t.Fatal(err)
	}
	if v, err = FitService(ctx, outlier, ServiceOptions{}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(v.Method, "likelihood") || !strings.Contains(v.Words[1], "But its distribution function would be off") {
		t.Errorf("%s: %q", v.Method, v.Words)
	}
	even := drawn(HyperErlang([]float64{1}, []int{6}, []float64{1}), 5_000, "even")
	v, err = FitService(ctx, even, ServiceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(v.Words[0], "cannot have") || !strings.Contains(v.Method, "hyper-Erlang") {
		t.Errorf("%q", v.Words)
	}
	if v, err = FitService(ctx, even, ServiceOptions{Method: ByMoments}); err != nil || strings.Contains(v.Method, "likelihood") {
		t.Errorf("asked for moments: %v %v", v, err)
	}
	if _, err := NewSample([]float64{1, -2}); err == nil || !strings.Contains(err.Error(), "-2") {
		t.Errorf("negative value: %v", err)
	}
	one, _ := NewSample([]float64{3, 3, 3})
	if v, err = FitService(ctx, one, ServiceOptions{}); err != nil {
		t.Errorf("constant values: %v", err)
	} else if v.Check() != nil || !strings.Contains(v.Words[0], "cannot be matched") {
		t.Errorf("constant values: %q", v.Words)
	}
}

// The distance against its definition: every value, both sides of each jump.
func TestDistance(t *testing.T) {
	t.Parallel()
	p := HyperErlang([]float64{1}, []int{1}, []float64{1})
	s, err := NewSample([]float64{.1, .5, .5, 2})
	if err != nil {
		t.Fatal(err)
	}
	want := 0.0
	for _, x := range []float64{.1, .5, 2} {
		below, upto := 0., 0.
		for _, v := range s.Sorted {
			if v < x {
				below++
			}
			if v <= x {
				upto++
			}
		}
		f := 1 - math.Exp(-x)
		want = math.Max(want, math.Max(math.Abs(f-below/4), math.Abs(f-upto/4)))
	}
	near(t, "distance", s.Distance(p).Distance, want, 1e-12)
}
