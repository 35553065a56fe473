package powerlaw

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"gonum.org/v1/gonum/mathext"
	"pgregory.net/rapid"

	"github.com/freshet/freshet/internal/rng"
)

func TestZeta(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ s, q, want float64 }{
		{2, 1, math.Pi * math.Pi / 6},
		{4, 1, math.Pow(math.Pi, 4) / 90},
		{2, .5, math.Pi * math.Pi / 2},
		{3, 2, 1.2020569031595942 - 1},
	} {
		if got := hurwitzZeta(c.s, c.q); math.Abs(got/c.want-1) > 1e-13 {
			t.Errorf("zeta(%g, %g) = %.16g, want %.16g", c.s, c.q, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.Float64Range(1.001, 12).Draw(t, "s")
		q := math.Exp(rapid.Float64Range(0, 12).Draw(t, "ln q"))
		if got, want := hurwitzZeta(s, q), mathext.Zeta(s, q); math.Abs(got/want-1) > 1e-12 {
			t.Fatalf("zeta(%g, %g) = %.16g, gonum says %.16g", s, q, got, want)
		}
	})
}

// zipf draws by the rejection sampler of math/rand, which shares nothing with
// this package: P(k) proportional to (xmin+k)^-g.
func zipf(g float64, xmin int64, n int, seed uint64) *Histogram {
	z := rand.NewZipf(rng.New(seed, "zipf"), g, float64(xmin), 1<<50)
	values := make([]int64, n)
	for i := range values {
		values[i] = int64(z.Uint64()) + xmin
	}
	return Of(values)
}

func TestExponentIsRecovered(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		g    float64
		xmin int64
	}{{2.10, 1}, {2.10, 7}, {2.72, 1}, {1.5, 3}, {3.4, 20}} {
		h := zipf(c.g, c.xmin, 100_000, 1)
		at, err := FitAt(h, c.xmin)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(at.Exponent-c.g) > 4*at.StdErr || at.StdErr > .03 {
			t.Errorf("exponent %.4f +- %.4f from xmin, want %g", at.Exponent, at.StdErr, c.g)
		}
		l, err := Fit(h)
		if err != nil {
			t.Fatal(err)
		}
		// The xmin chosen is some value from which on the law holds.
		if math.Abs(l.Exponent-c.g) > 5*l.StdErr || l.Xmin < c.xmin || l.Distance > at.Distance {
			t.Errorf("%+v, want exponent %g and xmin >= %d", l, c.g, c.xmin)
		}
	}
}

// A sample that is uniform below 12 and a power law from there on: xmin is
// found, and the exponent is that of the tail.
func TestXminIsRecovered(t *testing.T) {
	t.Parallel()
	r := rng.New(2, "body")
	counts := make(map[int64]int64)
	for range 60_000 {
		counts[1+r.Int64N(11)]++
	}
	for v, c := range zipf(2.4, 12, 40_000, 3).All() {
		counts[v] += c
	}
	l, err := Fit(NewHistogram(counts))
	if err != nil {
		t.Fatal(err)
	}
	if l.Xmin < 11 || l.Xmin > 16 || math.Abs(l.Exponent-2.4) > .05 {
		t.Errorf("xmin %d, exponent %.3f; want 12, 2.4", l.Xmin, l.Exponent)
	}
}

// The least-squares line through a log-log histogram is what this package is
// there to replace: on a sample with exponent 2.10 it is far off.
func TestLeastSquaresWouldBeWrong(t *testing.T) {
	t.Parallel()
	h := zipf(2.10, 1, 100_000, 4)
	var n, sx, sy, sxx, sxy float64
	for v, c := range h.All() {
		x, y := math.Log(float64(v)), math.Log(float64(c))
		n, sx, sy, sxx, sxy = n+1, sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	slope := -(n*sxy - sx*sy) / (n*sxx - sx*sx)
	l, err := FitAt(h, 1)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(slope-2.10) < .5 || math.Abs(l.Exponent-2.10) > .01 {
		t.Errorf("least squares %.2f, likelihood %.3f; want far from and near 2.10", slope, l.Exponent)
	}
}

// The maximum of the likelihood is where Newton's method says, and the
// distance is that of the definition, by brute force over all integers.
func TestFitAgainstBruteForce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(1, 300), 5, 80).Draw(t, "values")
		xmin := rapid.Int64Range(1, 5).Draw(t, "xmin")
		h := Of(values)
		l, err := FitAt(h, xmin)
		if err != nil {
			t.Skip("too few")
		}
		like := func(g float64) float64 {
			var sum float64
			for _, v := range values {
				if v >= xmin {
					sum -= g*math.Log(float64(v)) + math.Log(mathext.Zeta(g, float64(xmin)))
				}
			}
			return sum
		}
		if l.Exponent < greatest-1e-6 && (like(l.Exponent) < like(l.Exponent+.01)-1e-9 || like(l.Exponent) < like(max(l.Exponent-.01, 1.00005))-1e-9) {
			t.Fatalf("likelihood at %g is not the greatest", l.Exponent)
		}
		var worst float64
		for y := xmin; y <= h.Max()+1; y++ {
			at := 0.0
			for _, v := range values {
				if v >= y {
					at++
				}
			}
			worst = max(worst, math.Abs(at/float64(l.Tail)-mathext.Zeta(l.Exponent, float64(y))/mathext.Zeta(l.Exponent, float64(xmin))))
		}
		if math.Abs(worst-l.Distance) > 1e-9 {
			t.Fatalf("distance %g, brute force %g", l.Distance, worst)
		}
	})
}

// Both ways of drawing follow the law: chi-square against the probabilities.
func TestDraw(t *testing.T) {
	t.Parallel()
	const n, cells = 100_000, 12
	l := Law{Exponent: 2.1, Xmin: 3}
	drawn := make(map[int64]int64)
	l.drawObservations(n, rng.New(5, "draw"), drawn)
	single := make(map[int64]int64)
	r := rng.New(6, "single")
	for range n {
		single[l.Rand(r)]++
	}
	for name, counts := range map[string]map[int64]int64{"draw": drawn, "Rand": single} {
		var total int64
		var got, p [cells + 1]float64
		for v, c := range counts {
			got[min(v-l.Xmin, cells)] += float64(c)
			total += c
		}
		var chi2 float64
		for i := range p {
			p[i] = l.CCDF(l.Xmin+int64(i)) - l.CCDF(l.Xmin+int64(i)+1)
			if i == cells {
				p[i] = l.CCDF(l.Xmin + cells)
			}
			d := got[i] - n*p[i]
			chi2 += d * d / (n * p[i])
		}
		if total != n || chi2 > 39 { // 12 degrees of freedom, p = 0.0001
			t.Errorf("%s: %d values, chi-square %.1f", name, total, chi2)
		}
	}
}

func TestBootstrap(t *testing.T) {
	t.Parallel()
	r := rng.New(7, "lognormal")
	counts := make(map[int64]int64)
	for range 20_000 {
		counts[int64(math.Round(math.Exp(2+.8*r.NormFloat64())))]++
	}
	for _, c := range []struct {
		name   string
		h      *Histogram
		law    func(h *Histogram) Law
		accept bool
	}{
		{"power law", zipf(2.3, 1, 5000, 8), func(h *Histogram) Law { l, _ := Fit(h); return l }, true},
		{"lognormal taken for a power law", NewHistogram(counts), func(h *Histogram) Law { l, _ := FitAt(h, 2); return l }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := Bootstrap{Seed: 1, Replications: 40}
			g, err := b.Test(context.Background(), c.h, c.law(c.h))
			if err != nil {
				t.Fatal(err)
			}
			if (g.P >= .1) != c.accept || g.Replications != 40 {
				t.Errorf("p %.3f of %d replications", g.P, g.Replications)
			}
			again, err := b.Test(context.Background(), c.h, c.law(c.h))
			if err != nil || again != g {
				t.Errorf("the same seed gave %+v, then %+v (%v)", g, again, err)
			}
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	h := zipf(2.3, 1, 1000, 9)
	l, _ := Fit(h)
	if _, err := (Bootstrap{Replications: 3}).Test(ctx, h, l); !errors.Is(err, context.Canceled) {
		t.Errorf("after cancelling: %v", err)
	}
	if g, err := (Bootstrap{Replications: 1000, Time: time.Nanosecond}).Test(context.Background(), h, l); err != nil || g.Replications != 1 {
		t.Errorf("with no time: %+v, %v", g, err)
	}
}

// The p of a true law is uniform: over many samples, a tenth of them is below
// a tenth.
func TestBootstrapIsCalibrated(t *testing.T) {
	t.Parallel()
	const samples = 40
	rejected := 0
	for s := range uint64(samples) {
		h := zipf(2.2, 1, 500, 100+s)
		l, err := Fit(h)
		if err != nil {
			t.Fatal(err)
		}
		g, err := Bootstrap{Seed: s, Replications: 15}.Test(context.Background(), h, l)
		if err != nil {
			t.Fatal(err)
		}
		if g.P < .1 {
			rejected++
		}
	}
	if rejected > 14 { // p < 0.1 means at most 1 of 15; binomial(40, 2/16): more than 14 has probability 0.0001
		t.Errorf("%d of %d true laws rejected at 0.1", rejected, samples)
	}
}

func TestCompareLognormal(t *testing.T) {
	t.Parallel()
	r := rng.New(10, "ln")
	counts := make(map[int64]int64)
	for range 50_000 {
		counts[int64(math.Round(math.Exp(3+.7*r.NormFloat64())))]++
	}
	h := NewHistogram(counts)
	l, err := FitAt(h, 1)
	if err != nil {
		t.Fatal(err)
	}
	c, err := CompareLognormal(h, l)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(c.Mu-3) > .02 || math.Abs(c.Sigma-.7) > .02 || c.Vuong > -20 || c.P > 1e-6 {
		t.Errorf("lognormal sample: %+v", c)
	}
	h = zipf(2.1, 1, 50_000, 11)
	if l, err = FitAt(h, 1); err != nil {
		t.Fatal(err)
	}
	if c, err = CompareLognormal(h, l); err != nil {
		t.Fatal(err)
	}
	// From 1 on the rounding of small values tells them apart ...
	if c.Vuong < 2 || c.P > .05 {
		t.Errorf("power law from 1 on: %+v", c)
	}
	// ... and from 100 on nothing does.
	h = zipf(2.1, 100, 20_000, 12)
	if l, err = FitAt(h, 100); err != nil {
		t.Fatal(err)
	}
	if c, err = CompareLognormal(h, l); err != nil {
		t.Fatal(err)
	}
	if math.Abs(c.Ratio) > 3 || c.P < .05 {
		t.Errorf("power law from 100 on: %+v", c)
	}
}

func TestLogTail(t *testing.T) {
	t.Parallel()
	for _, z := range []float64{-30, -3, 0, 2, 19.9, 20.1, 25, 36} { // erfc holds to 37
		if got, want := logTail(z), math.Log(.5*math.Erfc(z/math.Sqrt2)); math.Abs(got-want) > 1e-12*(1+math.Abs(want)) {
			t.Errorf("logTail(%g) = %.15g, want %.15g", z, got, want)
		}
	}
	for _, c := range [][2]float64{{-1, 2}, {1, 2}, {-2, -1}, {.5, .5 + 1e-7}, {-3, -3 + 1e-7}, {-1e-8, 1e-8}} {
		want := math.Log(simpson(c[0], c[1]))
		if got := logBetween(c[0], c[1]); math.Abs(got-want) > 1e-8 {
			t.Errorf("logBetween(%g, %g) = %.12g, want %.12g", c[0], c[1], got, want)
		}
	}
}

// simpson integrates the normal density.
func simpson(a, b float64) float64 {
	const n = 2000
	f := func(x float64) float64 { return math.Exp(-x*x/2) / math.Sqrt(2*math.Pi) }
	sum := f(a) + f(b)
	for i := 1; i < n; i++ {
		sum += f(a+(b-a)*float64(i)/n) * float64(2+2*(i%2))
	}
	return sum * (b - a) / n / 3
}

func TestNothingToFit(t *testing.T) {
	t.Parallel()
	for _, h := range []*Histogram{Of(nil), Of([]int64{0, -3}), Of([]int64{5, 5, 5}), NewHistogram(map[int64]int64{4: 1000})} {
		if _, err := Fit(h); !errors.Is(err, ErrFew) {
			t.Errorf("Fit: %v", err)
		}
		if _, err := FitAt(h, 1); h.Total() == 0 && !errors.Is(err, ErrFew) {
			t.Errorf("FitAt: %v", err)
		}
	}
}

func BenchmarkFit(b *testing.B) {
	h := zipf(2.1, 1, 1_000_000, 1)
	b.ReportMetric(float64(len(h.values)), "values")
	for b.Loop() {
		if _, err := Fit(h); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkZeta(b *testing.B) {
	for b.Loop() {
		hurwitzZeta(2.1, 37)
	}
}

func BenchmarkZetaGonum(b *testing.B) {
	for b.Loop() {
		mathext.Zeta(2.1, 37)
	}
}
