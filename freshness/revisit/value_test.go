package revisit

import (
	"math"
	"math/rand/v2"
	"testing"
)

// 1 - e^{-d tau} ranks the two the other way round.
func TestGreedyNumbers(t *testing.T) {
	t.Parallel()
	slow, fast := Greedy(1, 1, 1), Greedy(1, 10, .5)
	if !near(slow, .264241, 1e-6) || !near(fast, .095957, 1e-6) {
		t.Errorf("V(1,1,1) = %.6f, V(1,10,.5) = %.6f", slow, fast)
	}
	if MostLikelyChanged(1, 1, 1) > MostLikelyChanged(1, 10, .5) {
		t.Error("the likelier change is the faster item's")
	}
}

// Values do not fall while an item waits, and are finite.
func TestValuesRise(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	for name, v := range Values() {
		if name == "expected-loss" {
			continue // a visit just after the last is a waste: it falls first
		}
		for range 200 {
			d := math.Exp(6 * r.NormFloat64())
			last := -1.0
			for tau := 1e-9; tau < 1e9; tau *= 3 {
				got := v(1, d, tau)
				if got < last || math.IsNaN(got) || math.IsInf(got, 0) {
					t.Fatalf("%s: %g at rate %g after %g, %g before", name, got, d, tau, last)
				}
				last = got
			}
		}
	}
}

// The closed form against numerical integration over the time of the change.
func TestExpectedLoss(t *testing.T) {
	t.Parallel()
	l := ExpectedLoss{Wasted: 2, Late: 3, Patience: 4}
	for _, d := range []float64{.1, 1, 5} {
		for _, tau := range []float64{.1, 1, 7} {
			const steps = 20000
			sum := l.Wasted * math.Exp(-d*tau)
			for i := range steps {
				u := (float64(i) + .5) * tau / steps // the first change
				x := (tau - u) / l.Patience
				sum += d * math.Exp(-d*u) * (l.Late + math.Exp(x) - x - 1) * tau / steps
			}
			if got := l.Value(1, d, tau); !near(got, sum, 1e-5*sum) {
				t.Errorf("d %g, tau %g: %.8f, integrated %.8f", d, tau, got, sum)
			}
		}
	}
	if v := l.Value(1, 1, 1e300); math.IsInf(v, 0) || math.IsNaN(v) {
		t.Errorf("a forgotten item: %g", v)
	}
}

// A robot that follows the greedy rule over 200 items reaches the freshness of
// the optimal plan within a thousandth, and beats sweep and the likeliest
// change, with equal budgets.
func TestGreedyReachesTheOptimum(t *testing.T) {
	t.Parallel()
	const n, budget, visits = 200, 100.0, 60_000
	r := rand.New(rand.NewPCG(2, 2))
	items := make([]Item, n)
	for i := range items {
		items[i] = Item{Importance: 1, Rate: math.Exp(2*r.Float64() - 1)}
	}
	optimum := plan(t, "fixed-optimal", items, budget).Freshness
	follow := func(v Value) float64 {
		last := make([]float64, n)
		fresh, from := 0.0, float64(visits)/4/budget // the beginning does not count
		for k := range visits {
			now := float64(k+1) / budget
			best, most := 0, -1.0
			for i := range items {
				if got := v(1, items[i].Rate, now-last[i]); got > most {
					best, most = i, got
				}
			}
			if start := max(last[best], from); now > start { // expected fresh time of the interval inside the window
				d := items[best].Rate
				fresh += (math.Exp(-d*(start-last[best])) - math.Exp(-d*(now-last[best]))) / d
			}
			last[best] = now
		}
		end := visits / budget
		for i := range items {
			d, start := items[i].Rate, max(last[i], from)
			fresh += (math.Exp(-d*(start-last[i])) - math.Exp(-d*(end-last[i]))) / d
		}
		return fresh / (end - from) / n
	}
	greedy := follow(Greedy)
	if !near(greedy, optimum, 1e-3) {
		t.Errorf("greedy reaches %.5f, the optimum is %.5f", greedy, optimum)
	}
	for _, name := range []string{"sweep", "most-likely-changed", "most-changes"} {
		if got := follow(Values()[name]); got >= greedy {
			t.Errorf("%s reaches %.5f, greedy %.5f", name, got, greedy)
		}
	}
}

func BenchmarkGreedy(b *testing.B) {
	s := 0.0
	for i := range b.N {
		s += Greedy(1, 1e-5, float64(i))
	}
	_ = s
}
