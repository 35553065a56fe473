package sweep

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/freshet/freshet/internal/rng"
)

// tail is the probability of |T| >= t by Student's t, integrated step by step
// over the angle: T = sqrt(nu) tan(a) has the density cos^(nu-1)(a).
func tail(t, nu float64) float64 {
	const steps = 20_000
	area := func(from float64) (sum float64) {
		h := (math.Pi/2 - from) / steps
		for i := range steps {
			sum += math.Pow(math.Cos(from+(float64(i)+.5)*h), nu-1) * h
		}
		return sum
	}
	return area(math.Atan(t/math.Sqrt(nu))) / area(0)
}

// Pearson's and Spearman's coefficients from their definitions, written another
// way, and their probabilities by integration.
func TestCorrelationsFromDefinitions(t *testing.T) {
	t.Parallel()
	r := rng.New(3, "correlations")
	for _, n := range []int{3, 5, 12, 40} {
		var x, y []float64
		for range n {
			v := math.Round(3 * r.NormFloat64()) // with ties
			x, y = append(x, v), append(y, v+5*r.NormFloat64())
		}
		// From all pairs: the sum of products of differences.
		byPairs := func(x, y []float64) float64 {
			var xy, xx, yy float64
			for i := range x {
				for j := range i {
					xy, xx, yy = xy+(x[i]-x[j])*(y[i]-y[j]), xx+(x[i]-x[j])*(x[i]-x[j]), yy+(y[i]-y[j])*(y[i]-y[j])
				}
			}
			return xy / math.Sqrt(xx*yy)
		}
		// A rank is how many are less, and half of those that are equal.
		byCount := func(x []float64) []float64 {
			out := make([]float64, len(x))
			for i := range x {
				for j := range x {
					switch {
					case x[j] < x[i]:
						out[i]++
					case x[j] == x[i]:
						out[i] += .5
					}
				}
			}
			return out
		}
		if isConstant(x) {
			continue
		}
		for name, c := range map[string]struct {
			got  link
			want float64
		}{"pearson": {pearsonCorrelation(x, y), byPairs(x, y)}, "spearman": {spearmanCorrelation(x, y), byPairs(byCount(x), byCount(y))}} {
			nu := float64(n - 2)
			p := tail(math.Abs(c.want)*math.Sqrt(nu/(1-c.want*c.want)), nu)
			if math.Abs(c.got.r-c.want) > 1e-12 || math.Abs(c.got.p-p) > 1e-6 {
				t.Errorf("%s of %d: r %.9f, p %.9f; by definition %.9f, %.9f", name, n, c.got.r, c.got.p, c.want, p)
			}
		}
	}
}

// Holm's correction by its adjusted probabilities, max over j <= k of
// min(1, (m-j+1) p_(j)), which are below 5 % for the same lines. And with no
// effect at all, in no more than 5 % of tables is a line called significant.
func TestHolm(t *testing.T) {
	t.Parallel()
	r := rng.New(4, "holm")
	const tables, lines = 2000, 20
	wrong := 0
	for table := range tables {
		cs := make([]correlation, lines)
		for i := range cs {
			p := r.Float64()
			if table%2 == 1 && i%3 == 0 {
				p = math.Pow(p, 6) // some with an effect
			}
			cs[i].PearsonP = &p
		}
		markSignificant(cs, "linear", func(c *correlation) *float64 { return c.PearsonP })
		hasTie := false
		for i := range cs {
			adjusted := 0.
			for j := range cs {
				if *cs[j].PearsonP > *cs[i].PearsonP {
					continue
				}
				rest := 0. // with those that are as great or greater
				for k := range cs {
					if *cs[k].PearsonP >= *cs[j].PearsonP {
						rest++
					}
				}
				adjusted = max(adjusted, min(1, rest**cs[j].PearsonP))
			}
			if (adjusted <= .05) != (cs[i].Significant == "linear") {
				t.Fatalf("p %g, adjusted %g: %q", *cs[i].PearsonP, adjusted, cs[i].Significant)
			}
			hasTie = hasTie || cs[i].Significant != ""
		}
		if hasTie && table%2 == 0 {
			wrong++
		}
	}
	if share := float64(wrong) / (tables / 2); share > .05+4*math.Sqrt(.05*.95/(tables/2)) || share < .02 {
		t.Errorf("%.3f of tables without an effect have a significant line", share)
	}
}

// The interval of a paired difference holds the true one in 95 % of cases, and
// is far narrower than that of two samples with histories of their own.
func TestPairedIntervalsCover(t *testing.T) {
	t.Parallel()
	r := rng.New(5, "paired")
	const tables, replications, truth = 4000, 6, .3
	covered, narrow, wide := 0., 0., 0.
	for range tables {
		a, b := watched{variant: "a"}, watched{variant: "b"}
		for i := range replications {
			common := 5 * r.NormFloat64() // what a history does to both
			a.freshness = append(a.freshness, 80+common+truth+.2*r.NormFloat64())
			b.freshness = append(b.freshness, 80+common+.2*r.NormFloat64())
			a.bytes, b.bytes = append(a.bytes, 1), append(b.bytes, 1)
			a.replications, b.replications = append(a.replications, i), append(b.replications, replications-1-i)
		}
		slices.Reverse(b.freshness) // replications are paired by number, not by place
		e, _, n := a.pairedDifference(&b)
		if n != replications {
			t.Fatal(n)
		}
		if math.Abs(e.mean-truth) <= e.half {
			covered++
		}
		narrow, wide = narrow+e.half, wide+math.Hypot(estimateOf(a.freshness).half, estimateOf(b.freshness).half)
	}
	if c := covered / tables; math.Abs(c-.95) > 4*math.Sqrt(.95*.05/tables) {
		t.Errorf("%.4f of the intervals hold the truth", c)
	}
	if narrow > wide/10 {
		t.Errorf("half widths: paired %.3f, not paired %.3f", narrow/tables, wide/tables)
	}
}

// The front of a variant is the length of the longest row in which each
// dominates the next, up to it.
func TestFrontsAreChains(t *testing.T) {
	t.Parallel()
	r := rng.New(6, "fronts")
	for range 300 {
		var ws []watched
		for i := range 2 + r.IntN(12) {
			ws = append(ws, watched{fmt.Sprint(i), []float64{float64(r.IntN(8))}, []float64{float64(r.IntN(8))}, []int{0}})
		}
		ps := rankVariants(1, ws)
		var chain func(i int) int
		chain = func(i int) int {
			longest := 0
			for j := range ws {
				f, v := ws[j].freshness[0]-ws[i].freshness[0], ws[i].bytes[0]-ws[j].bytes[0]
				if f >= 0 && v >= 0 && f+v > 0 {
					longest = max(longest, chain(j))
				}
			}
			return longest + 1
		}
		for i := range ps {
			if ps[i].Front != chain(i) {
				t.Fatalf("%+v: front %d, chain %d", ws, ps[i].Front, chain(i))
			}
		}
	}
}
