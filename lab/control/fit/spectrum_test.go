package fit

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The log of the paper: two phases reach .062 at lag 1, regimes of Erlang laws
// all of it.
func TestMomentRegimesOfThePaper(t *testing.T) {
	t.Parallel()
	mean, variance := 212.03, 51352.38
	lags := []float64{.622, .574, .555, .537, .523, .507}
	a, err := MomentRegimes(Summary{[]float64{mean, variance + mean*mean}, lags}, 30)
	if err != nil {
		t.Fatal(err)
	}
	p, err := a.Marginal()
	if err != nil {
		t.Fatal(err)
	}
	m := p.Moments(2)
	near(t, "mean", m[0], mean, 1e-9)
	near(t, "variance", m[1]-m[0]*m[0], variance, 1e-9)
	got, err := a.Lags(6)
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range got {
		if math.Abs(v-lags[k]) > lagTolerance {
			t.Errorf("lag %d: %.4f, want %.3f", k+1, v, lags[k])
		}
	}
	t.Log(a.Method, a.Order(), got, strings.Join(a.Words, "\n"))
	if a.Order() > 20 {
		t.Errorf("order %d, want 20 or less", a.Order())
	}
}

// Every result has the moments asked for, and the correlations that were told.
func TestMomentRegimesAreMatched(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.Float64Range(.1, 100).Draw(t, "mean")
		scv := rapid.Float64Range(.3, 8).Draw(t, "scv")
		first := rapid.Float64Range(-.2, .7).Draw(t, "lag1")
		decay := rapid.Float64Range(.1, .99).Draw(t, "decay")
		s := Summary{Moments: []float64{m, m * m * (1 + scv)}}
		for k := range 5 {
			s.Lags = append(s.Lags, first*math.Pow(decay, float64(k)))
		}
		a, err := MomentRegimes(s, 40)
		if err != nil {
			if strings.Contains(err.Error(), "no regimes within") {
				return
			}
			t.Fatal(err)
		}
		p, err := a.Marginal()
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range p.Moments(2) {
			if math.Abs(v/s.Moments[k]-1) > 1e-6 {
				t.Fatalf("moment %d: %g, want %g", k+1, v, s.Moments[k])
			}
		}
	})
}

func TestMomentRegimesThirdMoment(t *testing.T) {
	t.Parallel()
	s := Summary{Moments: []float64{1, 3, 20}, Lags: []float64{.3, .25, .2}}
	a, err := MomentRegimes(s, 30)
	if err != nil {
		t.Fatal(err)
	}
	p, err := a.Marginal()
	if err != nil {
		t.Fatal(err)
	}
	near(t, "third moment", p.Moments(3)[2], 20, 1e-6)
	s.Moments[2] = 9.1 // just above m2^2/m1: the regimes cannot
	if a, err = MomentRegimes(s, 30); err != nil {
		t.Fatal(err)
	}
	if last := a.Words[len(a.Words)-1]; !strings.Contains(last, "instead of 9.1") {
		t.Errorf("%q", a.Words)
	}
}

func TestMomentRegimesErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		s    Summary
		want string
	}{
		{Summary{[]float64{1}, []float64{.1}}, "1 moments given"},
		{Summary{[]float64{1, .5}, []float64{.1}}, "moment 2: 0.5"},
		{Summary{[]float64{1, 2}, nil}, "no correlations"},
		{Summary{[]float64{1, 2}, []float64{.1, 1.5}}, "correlation 2: 1.5"},
		{Summary{[]float64{1, 1.001}, []float64{.5}}, "none can vary as little"},
	}
	for _, tt := range tests {
		if _, err := MomentRegimes(tt.s, 30); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: %v, want %q", tt.s, err, tt.want)
		}
	}
}
