package revisit

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func plan(t *testing.T, name string, items []Item, budget float64) *Plan {
	t.Helper()
	p, err := New(Policies()[name], items, budget)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return p
}

func near(a, b, tol float64) bool { return math.Abs(a-b) <= tol }

// Five items that change 1 to 5 times a day, five visits a day (Cho,
// Garcia-Molina), and the example of random visits.
func TestKnownNumbers(t *testing.T) {
	t.Parallel()
	var five []Item
	for d := 1.0; d <= 5; d++ {
		five = append(five, Item{Importance: 1, Rate: d})
	}
	p := plan(t, "fixed-optimal", five, 5)
	for i, want := range []float64{1.1499, 1.3584, 1.3538, 1.1379, 0} {
		if !near(p.Shares[i].Rate, want, 1e-4) {
			t.Errorf("item %d is visited at %.5f, want %.4f", i, p.Shares[i].Rate, want)
		}
	}
	for name, want := range map[string]float64{"fixed-optimal": .373889, "uniform": .365053, "proportional": .316738} {
		if got := plan(t, name, five, 5).Freshness; !near(got, want, 1e-6) {
			t.Errorf("%s: freshness %.6f, want %.6f", name, got, want)
		}
	}
	three := []Item{{Importance: 8, Rate: 1}, {Importance: 4, Rate: 2}, {Importance: 1, Rate: 4}}
	p = plan(t, "random-optimal", three, 6)
	for i, want := range []float64{3.5, 2.5, 0} {
		if !near(p.Shares[i].Rate, want, 1e-6) {
			t.Errorf("item %d is visited at %.5f, want %g", i, p.Shares[i].Rate, want)
		}
	}
	if !near(p.Freshness, .649573, 1e-6) {
		t.Errorf("freshness %.6f", p.Freshness)
	}
}

func random(r *rand.Rand, n int) []Item {
	items := make([]Item, n)
	for i := range items {
		items[i] = Item{Importance: math.Exp(r.NormFloat64()), Rate: math.Exp(2 * r.NormFloat64()), Signals: r.IntN(4) == 0}
	}
	return items
}

// The budget is kept and used, and no shift of a little of it from one item to
// another improves the objective: brute force against the KKT solution.
func TestOptimal(t *testing.T) {
	t.Parallel()
	objective := map[string]func(*Plan) float64{
		"fixed-optimal": func(p *Plan) float64 { return p.Freshness }, "random-optimal": func(p *Plan) float64 { return p.Freshness },
		"age-optimal": func(p *Plan) float64 { return -p.Age }, "no-starvation": func(p *Plan) float64 { return -p.Harmonic },
	}
	r := rand.New(rand.NewPCG(1, 2))
	for name, value := range objective {
		for range 40 {
			items := random(r, 2+r.IntN(6))
			budget := math.Exp(r.NormFloat64()) * float64(len(items))
			p := plan(t, name, items, budget)
			can := 0.0 // what the items can use
			for _, it := range items {
				if it.Signals {
					can += it.Rate
				} else {
					can = math.Inf(1)
				}
			}
			if !near(p.Used, min(budget, can), 1e-6*budget) {
				t.Errorf("%s: used %g of %g", name, p.Used, budget)
			}
			best := value(p)
			for from := range items {
				for to := range items {
					rates := make([]float64, len(items))
					for i, s := range p.Shares {
						rates[i] = s.Rate
					}
					step := min(1e-3*budget, rates[from])
					if items[to].Signals {
						step = min(step, items[to].Rate-rates[to])
					}
					if from == to || step <= 0 {
						continue
					}
					rates[from] -= step
					rates[to] += step
					if got := value(evaluateRates(Policies()[name], items, rates)); got > best+1e-7*math.Abs(best) {
						t.Fatalf("%s: moving %g from %d to %d of %+v improves %.9g to %.9g", name, step, from, to, items, best, got)
					}
				}
			}
		}
	}
}

// The closed forms against simulated visits and changes.
func TestClosedForms(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	for _, tt := range []struct {
		name             string
		next             func() float64
		fresh, age, d, f float64
	}{
		{"fixed", func() float64 { return 1 / 1.3 }, FixedFreshness(1.3, .8), FixedAge(1.3, .8), .8, 1.3},
		{"random", func() float64 { return r.ExpFloat64() / 1.3 }, RandomFreshness(1.3, .8), RandomAge(1.3, .8), .8, 1.3},
	} {
		var total, fresh, age float64
		for range 400_000 {
			gap := tt.next()
			first := r.ExpFloat64() / tt.d // the first change after the visit
			total += gap
			fresh += min(gap, first)
			if first < gap {
				age += (gap - first) * (gap - first) / 2
			}
		}
		if !near(fresh/total, tt.fresh, .003) || !near(age/total, tt.age, .005) {
			t.Errorf("%s: simulated %.4f, %.4f; formulas %.4f, %.4f", tt.name, fresh/total, age/total, tt.fresh, tt.age)
		}
	}
	for _, x := range []float64{1e-3, 5e-5} { // the series meets the formula
		if got, want := FixedAge(1/x, 1), x*x/6; !near(got/want, 1, .01) {
			t.Errorf("age at x = %g: %g, want about %g", x, got, want)
		}
	}
}

// Signals: p = R mu/(d sum mu) where nothing is clipped, and what clipped items
// cannot use goes to the others.
func TestSignals(t *testing.T) {
	t.Parallel()
	items := []Item{{Importance: 1, Rate: 4, Signals: true}, {Importance: 3, Rate: 6, Signals: true}}
	p := plan(t, "no-starvation", items, 2)
	for i, it := range items {
		if want := 2 * it.Importance / (it.Rate * 4); !near(p.Shares[i].Signal, want, 1e-9) {
			t.Errorf("item %d: p = %g, want %g", i, p.Shares[i].Signal, want)
		}
	}
	p = plan(t, "no-starvation", []Item{{Importance: 100, Rate: 1, Signals: true}, {Importance: 1, Rate: 5, Signals: true}}, 3)
	if !near(p.Shares[0].Signal, 1, 1e-9) || !near(p.Shares[1].Rate, 2, 1e-6) {
		t.Errorf("clipped: %+v", p.Shares)
	}
	if p := plan(t, "fixed-optimal", []Item{{Importance: 1, Rate: 2, Signals: true}}, 10); p.Freshness != 1 || p.Used != 2 {
		t.Errorf("more budget than signals: %+v", p)
	}
}

// Caps of hosts hold, and what they leave goes to other hosts.
func TestHostCaps(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	for name := range Policies() {
		items := random(r, 30)
		for i := range items {
			items[i].Host = string(rune('a' + i%3))
			if i%3 < 2 {
				items[i].HostCap = []float64{2, 5}[i%3]
			}
		}
		p := plan(t, name, items, 40)
		sum := map[string]float64{}
		for i, s := range p.Shares {
			sum[items[i].Host] += s.Rate
		}
		if sum["a"] > 2+1e-6 || sum["b"] > 5+1e-6 {
			t.Errorf("%s: hosts %v", name, sum)
		}
		if name != "uniform" && name != "proportional" && p.Used < 40*(1-1e-6) {
			t.Errorf("%s: used %g of 40", name, p.Used)
		}
	}
}

// A tariff made from a histogram gives each item what the plan of all gives it.
func TestTariff(t *testing.T) {
	t.Parallel()
	kinds := []Item{{Importance: 1, Rate: .5}, {Importance: 2, Rate: 3}, {Importance: 1, Rate: 40}}
	counts := []float64{10, 5, 20}
	var all []Item
	for i, n := range counts {
		for range int(n) {
			all = append(all, kinds[i])
		}
	}
	for name, p := range Policies() {
		tariff, err := NewTariff(p, kinds, counts, 30)
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range plan(t, name, all, 30).Shares {
			if got := tariff.Rate(all[i]); !near(got, s.Rate, 1e-6) {
				t.Errorf("%s: %+v is visited at %g, by the plan at %g", name, all[i], got, s.Rate)
				break
			}
		}
	}
	if _, err := NewTariff(Policies()["uniform"], nil, nil, 1); err == nil {
		t.Error("a tariff of nothing")
	}
	if r := (Tariff{}).Rate(kinds[0]); r != 0 {
		t.Errorf("the zero tariff visits at %g", r)
	}
}

// More budget never makes things worse.
func TestMonotone(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 8))
	for name := range Policies() {
		items := random(r, 20)
		last := -1.0
		for b := .5; b < 200; b *= 1.7 {
			f := plan(t, name, items, b).Freshness
			if f < last-1e-9 || f > 1+1e-12 {
				t.Errorf("%s: freshness %g at budget %g, %g before", name, f, b, last)
			}
			last = f
		}
	}
}

func TestBadInput(t *testing.T) {
	t.Parallel()
	good := Item{Importance: 1, Rate: 1}
	tests := []struct {
		items  []Item
		budget float64
		want   string
	}{
		{nil, 1, "no items"},
		{[]Item{good}, 0, "budget"},
		{[]Item{good}, math.NaN(), "budget"},
		{[]Item{good, {Importance: -1, Rate: 1}}, 1, "item 1: importance -1"},
		{[]Item{{Importance: 1, Rate: math.NaN()}}, 1, "change rate NaN"},
		{[]Item{{Importance: 1, Rate: -2}}, 1, "change rate -2"},
		{[]Item{{Importance: 1, Rate: 1, HostCap: 1}}, 1, "needs a host"},
		{[]Item{{Rate: 1}, {Rate: 2}}, 1, "every item has importance 0"},
		{[]Item{good, {Importance: 1, Rate: 1e300}}, 1, "item 1: change rate 1e+300 is outside"},
		{[]Item{good, {Importance: 1e-300, Rate: 1}}, 1, "item 1: importance 1e-300 is outside"},
		{[]Item{good}, 1e200, "budget 1e+200 is outside"},
		{[]Item{{Importance: 1, Rate: 1, Host: "a", HostCap: 1}, {Importance: 1, Rate: 1, Host: "a", HostCap: 2}}, 1, "1 before"},
	}
	for _, tt := range tests {
		if _, err := New(Policies()["uniform"], tt.items, tt.budget); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v, %g: %v", tt.items, tt.budget, err)
		}
	}
	if p := plan(t, "fixed-optimal", []Item{{Importance: 1}}, 1); p.Freshness != 1 || p.Age != 0 {
		t.Errorf("an item that never changes: %+v", p)
	}
}

func BenchmarkPlan(b *testing.B) {
	items := random(rand.New(rand.NewPCG(1, 1)), 10_000)
	for name, p := range Policies() {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				if _, err := New(p, items, 5000); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Where visits cost, the budget is of cost, and no shift of it from one item to
// another gains: the marginal gain of freshness per cost is equal.
func TestCosts(t *testing.T) {
	t.Parallel()
	items := []Item{{Importance: 1, Rate: 1, Cost: 1}, {Importance: 1, Rate: 1, Cost: 10}, {Importance: 2, Rate: .3, Cost: 4}}
	const budget = 12.0
	best := plan(t, "fixed-optimal", items, budget)
	if !near(best.Used, budget, 1e-6) {
		t.Errorf("used %g of %g", best.Used, budget)
	}
	freshness := func(rates []float64) (sum float64) {
		for i, it := range items {
			sum += it.Importance * FixedFreshness(rates[i], it.Rate)
		}
		return sum
	}
	rates := make([]float64, len(items))
	for i := range rates {
		rates[i] = best.Shares[i].Rate
	}
	at := freshness(rates)
	for i := range items {
		for j := range items {
			if i == j {
				continue
			}
			moved := slices.Clone(rates)
			moved[i] += .01 / items[i].Cost
			moved[j] -= .01 / items[j].Cost
			if got := freshness(moved); got > at {
				t.Errorf("moving budget from item %d to %d gains: %.8f > %.8f", j, i, got, at)
			}
		}
	}
	if _, err := New(Policies()["uniform"], []Item{{Importance: 1, Rate: 1, Cost: math.Inf(1)}}, 1); err == nil {
		t.Error("an infinite cost was taken")
	}
}
