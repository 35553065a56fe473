package powerlaw

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mathext"
	"pgregory.net/rapid"

	"github.com/freshet/freshet/internal/rng"
)

// shiftedSample draws by the rejection sampler of math/rand, which shares nothing
// with this package: p(x) proportional to (x+s)^-g for x >= 1.
func shiftedSample(g, s float64, n int, seed uint64) *Histogram {
	z := rand.NewZipf(rng.New(seed, "shifted"), g, 1+s, 1<<50)
	values := make([]int64, n)
	for i := range values {
		values[i] = int64(z.Uint64()) + 1
	}
	return Of(values)
}

// Where the pure law reads the body, the shifted law reads the exponent, and its
// standard error is true: over many samples the deviations have variance 1.
func TestShiftedIsRecovered(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ g, s float64 }{{2.1, .8}, {2.4, 3.5}, {2.72, 6}, {3.5, 12}, {2.1, 0}} {
		const samples = 6
		squares := 0.
		for seed := range uint64(samples) {
			h := shiftedSample(c.g, c.s, 10_000, seed)
			l, err := FitShifted(h)
			if err != nil {
				t.Fatal(err)
			}
			z := (l.Exponent - c.g) / l.StdErr
			squares += z * z
			if math.Abs(z) > 5 || l.StdErr > .2 {
				t.Errorf("exponent %.3f +- %.3f from %d on, want %g", l.Exponent, l.StdErr, l.Xmin, c.g)
			}
		}
		// Chi-square of 6: above 28 with probability 1e-4; xmin is chosen from the same values.
		if squares > 28 {
			t.Errorf("exponent %g, shift %g: the sum of %d squared deviations is %.1f standard errors squared", c.g, c.s, samples, squares)
		}
	}
}

// The distance is that of the definition, by brute force over all integers.
func TestShiftedDistance(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h := Of(rapid.SliceOfN(rapid.Int64Range(1, 300), 5, 80).Draw(t, "values"))
		l := Law{
			Exponent: rapid.Float64Range(1.5, 4).Draw(t, "g"), Shift: rapid.Float64Range(-.9, 20).Draw(t, "s"), Xmin: h.values[0], Tail: h.total,
		}
		got, _ := h.ksDistance(0, l, math.Inf(1))
		want, left := 0., h.total
		z := func(x int64) float64 {
			return mathext.Zeta(l.Exponent, float64(x)+l.Shift) / mathext.Zeta(l.Exponent, float64(l.Xmin)+l.Shift)
		}
		counts := map[int64]int64{}
		for v, c := range h.All() {
			counts[v] = c
		}
		for x := l.Xmin; x <= h.Max()+1; x++ {
			want = max(want, math.Abs(z(x)-float64(left)/float64(h.total)))
			if math.Abs(l.CCDF(x)-z(x)) > 1e-9 {
				t.Fatalf("P(X >= %d) = %g, want %g", x, l.CCDF(x), z(x))
			}
			left -= counts[x]
		}
		if math.Abs(got-want) > 1e-9 {
			t.Fatalf("distance %g, by brute force %g", got, want)
		}
	})
}

// The fit is a maximum of the likelihood in both parameters.
func TestShiftedIsGreatest(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5) {
		h := shiftedSample(2.3, 4, 3000, 100+seed)
		l, ok := h.shiftedFrom(0, h.total, 1e-6, math.Inf(1))
		if !ok {
			t.Fatal("no fit")
		}
		like := func(g, s float64) float64 {
			sum := 0.
			for v, c := range h.All() {
				sum -= float64(c) * g * math.Log(float64(v)+s)
			}
			return sum - float64(h.total)*math.Log(hurwitzZeta(g, float64(h.values[0])+s))
		}
		best := like(l.Exponent, l.Shift)
		for _, d := range [][2]float64{{.01, 0}, {-.01, 0}, {0, .05}, {0, -.05}, {.01, .05}, {-.01, -.05}} {
			if other := like(l.Exponent+d[0], l.Shift+d[1]); other > best {
				t.Errorf("likelihood %.4f at %g, %g, %.4f beside it", best, l.Exponent, l.Shift, other)
			}
		}
	}
}

func TestNothingToFitShifted(t *testing.T) {
	t.Parallel()
	for _, h := range []*Histogram{Of(nil), Of([]int64{5, 5, 5}), NewHistogram(map[int64]int64{4: 1000}), NewHistogram(map[int64]int64{7: 900, 8: 1000})} {
		if l, err := FitShifted(h); !errors.Is(err, ErrFew) {
			t.Errorf("%+v, %v", l, err)
		}
	}
}

// Samples of a shifted law, drawn by the bootstrap, are not rejected; those of a law
// with a sharp bend are.
func TestShiftedBootstrap(t *testing.T) {
	t.Parallel()
	bent := shiftedSample(2.4, 5, 20_000, 1)
	counts := map[int64]int64{}
	for v, c := range bent.All() {
		counts[v] += c
		if v >= 20 && v < 40 {
			counts[v] += c / 2
		}
	}
	for _, c := range []struct {
		h      *Histogram
		accept bool
	}{{shiftedSample(2.4, 5, 5000, 2), true}, {NewHistogram(counts), false}} {
		at, ok := c.h.shiftedFrom(0, c.h.total, 1e-6, math.Inf(1))
		if !ok {
			t.Fatal("no fit")
		}
		g, err := Bootstrap{Seed: 1, Replications: 20}.Test(t.Context(), c.h, at)
		if err != nil || (g.P >= .1) != c.accept {
			t.Errorf("p %.3f of %d, %v", g.P, g.Replications, err)
		}
	}
}
