package revisit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// With costs and caps of hosts, the caps hold in visits, the budget in cost, and
// the marginal gains are those of the Lagrangian: price*cost + surcharge, with
// one price for all and one surcharge for each host, 0 where the cap has room.
// The gains are derived numerically from the freshness that the plan reports.
func TestCapsWithCosts(t *testing.T) {
	t.Parallel()
	fresh := map[string]func(f, d float64) float64{"fixed-optimal": FixedFreshness, "random-optimal": RandomFreshness}
	for name, freshness := range fresh {
		for seed := range uint64(6) {
			t.Run(fmt.Sprint(name, seed), func(t *testing.T) {
				t.Parallel()
				r := rand.New(rand.NewPCG(seed, 3))
				items := random(r, 40)
				for i := range items {
					items[i].Signals, items[i].Rate = false, items[i].Rate+.01
					items[i].Cost = math.Exp(2*r.Float64() - 1)
					if i%3 > 0 {
						items[i].Host = fmt.Sprint("host", i%3)
						items[i].HostCap = []float64{0, 1.5, 300}[i%3]
					}
				}
				const budget = 30.
				p := plan(t, name, items, budget)
				visits, cost := map[string]float64{}, 0.0
				for i, s := range p.Shares {
					visits[items[i].Host] += s.Rate
					cost += s.Rate * items[i].Cost
				}
				if !near(visits["host1"], 1.5, 1e-9) || visits["host2"] > 300 || !near(cost, budget, 1e-9) {
					t.Fatalf("visits of hosts %v, want 1.5 and at most 300; cost %g, want %g", visits, cost, budget)
				}
				gain := func(i int) float64 {
					f, h := p.Shares[i].Rate, 1e-4*p.Shares[i].Rate
					return items[i].Importance * (freshness(f+h, items[i].Rate) - freshness(f-h, items[i].Rate)) / (2 * h)
				}
				price, surcharge := math.NaN(), math.NaN()
				for i, s := range p.Shares {
					if s.Rate < 1e-3 {
						continue
					}
					if items[i].Host != "host1" {
						if math.IsNaN(price) {
							price = gain(i) / items[i].Cost
						}
						if got := gain(i) / items[i].Cost; !near(got, price, 1e-4) {
							t.Errorf("item %d: gain per cost %g, want %g", i, got, price)
						}
					}
				}
				for i, s := range p.Shares {
					if items[i].Host != "host1" || s.Rate < 1e-3 {
						continue
					}
					got := gain(i) - price*items[i].Cost
					if math.IsNaN(surcharge) {
						surcharge = got
					}
					if got < 0 || !near(got, surcharge, 1e-3) {
						t.Errorf("item %d: surcharge %g, want %g", i, got, surcharge)
					}
				}
			})
		}
	}
}

// An item of no importance is in the file without spoiling it: optimal plans do
// not visit it, even plans do, and the means leave it out.
func TestImportanceZero(t *testing.T) {
	t.Parallel()
	items := []Item{{Importance: 0, Rate: 1}, {Importance: 0, Rate: 2, Signals: true}, {Importance: 2, Rate: 3}}
	for name := range Policies() {
		p := plan(t, name, items, 2)
		even := name == "uniform" || name == "proportional"
		if got := p.Shares[0].Rate > 0; got != even {
			t.Errorf("%s visits an item of importance 0: %v, want %v", name, got, even)
		}
		if p.Freshness != p.Shares[2].Freshness || p.Age != p.Shares[2].Age || math.IsNaN(p.Harmonic) {
			t.Errorf("%s: freshness %g, age %g, harmonic %g, want those of the only item that counts: %+v", name, p.Freshness, p.Age, p.Harmonic, p.Shares[2])
		}
	}
}

// Numbers at the ends of the range that is accepted give finite plans.
func TestExtremeNumbers(t *testing.T) {
	t.Parallel()
	for name := range Policies() {
		for _, v := range []float64{minNumber, 1e-20, 1, 1e20, maxNumber} {
			for _, w := range []float64{minNumber, 1, maxNumber} {
				p := plan(t, name, []Item{{Importance: 1, Rate: v}, {Importance: w, Rate: 1}, {Importance: 1, Rate: 1 / v, Signals: true}}, w)
				for i, s := range p.Shares {
					if math.IsNaN(s.Rate) || math.IsInf(s.Rate, 0) || math.IsNaN(s.Signal) || math.IsNaN(s.Freshness) || math.IsNaN(s.Age) {
						t.Errorf("%s, rate %g, budget and importance %g: item %d gets %+v, want numbers", name, v, w, i, s)
					}
				}
				if math.IsNaN(p.Freshness) || math.IsNaN(p.Used) || p.Used > w*(1+1e-6) {
					t.Errorf("%s, rate %g, budget %g: freshness %g, used %g", name, v, w, p.Freshness, p.Used)
				}
			}
		}
	}
}
