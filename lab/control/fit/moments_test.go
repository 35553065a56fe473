package fit

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"

	"github.com/freshet/freshet/internal/rng"
)

func near(t *testing.T, what string, got, want, relative float64) {
	t.Helper()
	if !(math.Abs(got-want) <= relative*math.Max(math.Abs(want), 1e-300)) {
		t.Errorf("%s: %.10g, want %.10g", what, got, want)
	}
}

// Closed forms of moments and distribution functions.
func TestPHClosedForms(t *testing.T) {
	t.Parallel()
	e3 := HyperErlang([]float64{1}, []int{3}, []float64{2})
	for k, want := range []float64{3. / 2, 3. * 4 / 4, 3. * 4 * 5 / 8} {
		near(t, fmt.Sprint("Erlang-3 moment ", k+1), e3.Moments(3)[k], want, 1e-12)
	}
	x := 1.7
	y := 2 * x
	near(t, "Erlang-3 CDF", e3.CDF(x), 1-math.Exp(-y)*(1+y+y*y/2), 1e-12)
	near(t, "Erlang-3 density", e3.Density([]float64{x})[0], 8*x*x/2*math.Exp(-y), 1e-12)
	h2 := HyperErlang([]float64{.3, .7}, []int{1, 1}, []float64{.01, 5})
	near(t, "H2 mean", h2.Mean(), .3/.01+.7/5, 1e-12)
	near(t, "H2 m3", h2.Moments(3)[2], 6*(.3/1e-6+.7/125), 1e-12)
	near(t, "H2 CDF", h2.CDF(40), 1-.3*math.Exp(-.4)-.7*math.Exp(-200), 1e-12)
	s := h2.Scale(10)
	near(t, "scaled mean", s.Mean(), 10*h2.Mean(), 1e-12)
	near(t, "scaled SCV", s.SCV(), h2.SCV(), 1e-12)
}

// The content sizes of the paper's log, scaled to a mean service time of 8.2.
func TestMomentsOfContentSizes(t *testing.T) {
	t.Parallel()
	m := []float64{49207.0356, 2.0527e11, 2.5773e18}
	l, err := Moments(m...)
	if err != nil {
		t.Fatal(err)
	}
	if l.Order() != 2 || !strings.Contains(l.Method, "hyperexponential-2") {
		t.Errorf("order %d, %s", l.Order(), l.Method)
	}
	for k, v := range l.Moments(3) {
		near(t, fmt.Sprint("moment ", k+1), v, m[k], 1e-9)
	}
	f := 8.2 / m[0]
	for k, v := range l.Scale(f).Moments(3) {
		near(t, fmt.Sprint("scaled moment ", k+1), v, m[k]*math.Pow(f, float64(k+1)), 1e-9)
	}
}

// Whatever moments of a positive law are asked for, the result has them and is
// a valid law. The moments come from random laws of three points, which
// exhaust nothing but reach every family.
func TestMomentsAreMatched(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var m [3]float64
		n := rapid.IntRange(2, 3).Draw(t, "points")
		for range n {
			x := rapid.Float64Range(.05, 20).Draw(t, "x")
			order := float64(rapid.IntRange(1, 6).Draw(t, "order"))
			for k, v := range []float64{1, (order + 1) / order, (order + 1) * (order + 2) / (order * order)} {
				m[k] += v * math.Pow(x, float64(k+1)) / float64(n)
			}
		}
		for want := 1; want <= 3; want++ {
			l, err := Moments(m[:want]...)
			if err != nil {
				t.Fatalf("%v: %v", m[:want], err)
			}
			if err := l.Check(); err != nil {
				t.Fatalf("%v: %v", m[:want], err)
			}
			matched := want
			if len(l.Notes) > 0 {
				matched = 2
			}
			for k, v := range l.Moments(matched) {
				if math.Abs(v/m[k]-1) > 1e-5 {
					t.Fatalf("%v: %s: moment %d is %g", m, l.Method, k+1, v)
				}
			}
		}
	})
}

func TestMomentsChooseTheFamily(t *testing.T) {
	t.Parallel()
	tests := []struct {
		m    []float64
		want string
	}{
		{[]float64{4}, "exponential"},
		{[]float64{1, 2}, "exponential"},
		{[]float64{1, 2, 6}, "exponential"},
		{[]float64{1, 5}, "hyperexponential-2 of balanced means"},
		{[]float64{1, 1.25}, "Erlang-4, two"},
		{[]float64{1, 1.3}, "mixture of Erlang-3 and Erlang-4"},
		{[]float64{1, 5, 60}, "hyperexponential-2, three"},
		{[]float64{1, 5, 37}, "mixture of two Erlang-"},
		{[]float64{1, 1.5, 3}, "Coxian-2"},
		{[]float64{1, 1.25, 1.875}, "Erlang-4, three"},
		{[]float64{1, 1.02, 1.07}, "mixture of two Erlang-"},
	}
	for _, tt := range tests {
		l, err := Moments(tt.m...)
		if err != nil {
			t.Errorf("%v: %v", tt.m, err)
			continue
		}
		if !strings.HasPrefix(l.Method, tt.want) {
			t.Errorf("%v: %s, want %s", tt.m, l.Method, tt.want)
		}
	}
}

func TestMomentsSayWhatIsInfeasible(t *testing.T) {
	t.Parallel()
	tests := []struct {
		m    []float64
		want string
	}{
		{nil, "0 moments"},
		{[]float64{-1}, "moment 1: -1"},
		{[]float64{1, math.NaN()}, "moment 2: NaN"},
		{[]float64{2, 4}, "moment 2: 4 is not above 4"},
		{[]float64{1, 2, 4}, "moment 3: 4 is not above 4 = m2^2/m1"},
		{[]float64{1, 1.0001}, "needs an Erlang law of 10000 phases"},
		{[]float64{1, 2, 3, 4}, "4 moments"},
	}
	for _, tt := range tests {
		if _, err := Moments(tt.m...); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: %v, want %q", tt.m, err, tt.want)
		}
	}
}

// The matrix exponential is the independent witness of uniformisation.
func TestSurvivalAgainstExponential(t *testing.T) {
	t.Parallel()
	laws := []*PH{
		HyperErlang([]float64{.2, .5, .3}, []int{1, 4, 9}, []float64{1e-3, 7, 40}),
		{Beta: []float64{.2, .8, 0}, S: [][]float64{{-3, 1, 0}, {2, -2.5, .25}, {0, 9, -10}}},
		{Beta: []float64{1, 0}, S: [][]float64{{-.01, .01}, {0, -300}}},
	}
	for i, p := range laws {
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
		xs := []float64{0, 1e-4, .1, 1, 3, 40, 900}
		alive, density := p.Survival(xs), p.Density(xs)
		for k, x := range xs {
			var e mat.Dense
			e.Exp(denseMatrix(p.S, x))
			var a, d float64
			for r, b := range p.Beta {
				for c, row := range p.S {
					a += b * e.At(r, c)
					for _, v := range row {
						d -= b * e.At(r, c) * v
					}
				}
			}
			if math.Abs(alive[k]-a) > 1e-11 || math.Abs(density[k]-d) > 1e-9*math.Max(1, d) {
				t.Errorf("law %d at %g: %g %g, want %g %g", i, x, alive[k], density[k], a, d)
			}
		}
	}
}

// Rates of very different size leave uniformisation for the matrix exponential.
func TestSurvivalOfUnevenRates(t *testing.T) {
	t.Parallel()
	slow, fast := .01, 3000.
	p := &PH{Beta: []float64{1, 0}, S: [][]float64{{-slow, slow}, {0, -fast}}}
	xs := []float64{1e-3, 1, 100, 1000, 2000}
	for k, got := range p.Survival(xs) {
		near(t, fmt.Sprint("beyond ", xs[k]), got, (fast*math.Exp(-slow*xs[k])-slow*math.Exp(-fast*xs[k]))/(fast-slow), 1e-8)
	}
}

// Sampling is the independent witness of moments and distribution function.
func TestPHSample(t *testing.T) {
	t.Parallel()
	r := rng.New(1, "ph")
	for _, m := range [][]float64{{1, 5, 60}, {1, 1.5, 3}, {1, 1.02, 1.07}} {
		l, err := Moments(m...)
		if err != nil {
			t.Fatal(err)
		}
		const n = 30_000
		x := make([]float64, n)
		var sum, below float64
		for i := range x {
			x[i] = l.Sample(r)
			sum += x[i]
			if x[i] <= 1 {
				below++
			}
		}
		sd := math.Sqrt(l.SCV() / n)
		if math.Abs(sum/n-1) > 5*sd {
			t.Errorf("%v: mean %g, want 1 within %g", m, sum/n, 5*sd)
		}
		f := l.CDF(1)
		if math.Abs(below/n-f) > 5*math.Sqrt(f*(1-f)/n) {
			t.Errorf("%v: %g below the mean, CDF %g", m, below/n, f)
		}
	}
}

func TestPHCheckNamesTheEntry(t *testing.T) {
	t.Parallel()
	tests := []struct {
		p    PH
		want string
	}{
		{PH{}, "beta: empty"},
		{PH{[]float64{.5, .6}, [][]float64{{-1, 0}, {0, -1}}}, "beta: sums to 1.1"},
		{PH{[]float64{-1, 2}, nil}, "beta[0]: -1"},
		{PH{[]float64{1}, nil}, "s: 0 rows"},
		{PH{[]float64{1}, [][]float64{{-1, 2}}}, "s[0]: 2 entries"},
		{PH{[]float64{1}, [][]float64{{1}}}, "s[0][0]: 1 on the diagonal"},
		{PH{[]float64{1, 0}, [][]float64{{-1, 2}, {0, -1}}}, "s[0]: the row sums to 1"},
		{PH{[]float64{1, 0}, [][]float64{{-1, -.5}, {0, -1}}}, "s[0][1]: -0.5 is negative"},
		{PH{[]float64{1, 0}, [][]float64{{-1, math.Inf(1)}, {0, -1}}}, "s[0][1]: +Inf"},
		{PH{[]float64{1, 0}, [][]float64{{-1, 1}, {1, -1}}}, "s[0]: the time never ends"},
	}
	for _, tt := range tests {
		if err := tt.p.Check(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: %v, want %q", tt.p, err, tt.want)
		}
	}
}
