package revisit

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// world is items that really change, with signals of changes and false ones.
type world struct {
	rates  []float64
	noisy  Noisy
	events []occurrence
}

type occurrence struct {
	at             float64
	item           int
	change, signal bool
}

func newWorld(r *rand.Rand, rates []float64, n Noisy, end float64) *world {
	w := &world{rates: rates, noisy: n}
	for i, d := range rates {
		for at := r.ExpFloat64() / d; at < end; at += r.ExpFloat64() / d {
			w.events = append(w.events, occurrence{at, i, true, r.Float64() < n.Recall})
		}
		if n.False > 0 {
			for at := r.ExpFloat64() / n.False; at < end; at += r.ExpFloat64() / n.False {
				w.events = append(w.events, occurrence{at, i, false, true})
			}
		}
	}
	slices.SortFunc(w.events, func(a, b occurrence) int { return cmp.Compare(a.at, b.at) })
	return w
}

// play lets a chooser visit at the pace of a budget and returns the mean
// freshness, without the first quarter.
func (w *world) play(budget, end float64, next func(now float64) int, told func(item int, now float64)) float64 {
	since := make([]float64, len(w.rates)) // stale since; +Inf is fresh
	for i := range since {
		since[i] = math.Inf(1)
	}
	from, stale, k := end/4, 0.0, 0
	endCycle := func(i int, now float64) {
		if start := max(since[i], from); now > start {
			stale += now - start
		}
	}
	for n := 1; ; n++ {
		now := float64(n) / budget
		if now > end {
			break
		}
		for ; k < len(w.events) && w.events[k].at <= now; k++ {
			e := w.events[k]
			if e.change {
				since[e.item] = min(since[e.item], e.at)
			}
			if e.signal {
				told(e.item, e.at)
			}
		}
		if i := next(now); i >= 0 {
			endCycle(i, now)
			since[i] = math.Inf(1)
		}
	}
	for i := range since {
		endCycle(i, end)
	}
	return 1 - stale/(end-from)/float64(len(w.rates))
}

// With noisy signals the schedule does as well as looking at the values of all
// items before each visit.
func TestScheduleNoisySignals(t *testing.T) {
	t.Parallel()
	for _, n := range []Noisy{{Recall: .6, False: .02}, {Recall: .9, False: .3}, {Recall: .5}, {Recall: .2, False: 3}} {
		r := rand.New(rand.NewPCG(5, 5))
		const items, budget, end = 80, 32., 30.
		rates := make([]float64, items)
		for i := range rates {
			rates[i] = math.Pow(10, 3*r.Float64()-2)
		}
		w := newWorld(r, rates, n, end)
		var s Schedule
		if err := s.SetSignals(0, n); err != nil {
			t.Fatal(err)
		}
		for _, d := range rates {
			if _, err := s.Add(1, d, 0); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Start(budget); err != nil {
			t.Fatal(err)
		}
		got := w.play(budget, end, func(now float64) int {
			id, ok := s.Next(now)
			if !ok {
				return -1
			}
			return int(id)
		}, func(i int, now float64) {
			if _, err := s.Signal(uint32(i), n.Evidence(rates[i]), now); err != nil {
				t.Error(err)
			}
		})
		last, evidence := make([]float64, items), make([]float64, items)
		want := w.play(budget, end, func(now float64) int {
			best, most := 0, -1.0
			for i, d := range rates {
				if v := n.At(1, d, now-last[i], evidence[i]); v > most {
					best, most = i, v
				}
			}
			last[best], evidence[best] = now, 0
			return best
		}, func(i int, _ float64) { evidence[i] += n.Evidence(rates[i]) })
		var deaf Schedule
		for _, d := range rates {
			if _, err := deaf.Add(1, d, 0); err != nil {
				t.Fatal(err)
			}
		}
		without := w.play(budget, end, func(now float64) int { id, _ := deaf.Next(now); return int(id) }, func(int, float64) {})
		t.Logf("%+v: %.4f, by all values %.4f, without signals %.4f", n, got, want, without)
		if !near(got, want, .02) || n.False < 1 && got < without+.02 {
			t.Errorf("%+v: freshness %.4f, by all values %.4f, without signals %.4f", n, got, want, without)
		}
	}
}

// Where each change is signalled and there are more signals than visits, those
// are visited that stay fresh longest, and the threshold comes to the price of
// the plan.
func TestScheduleTooManySignals(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(6, 6))
	const items, budget, end = 300, 40., 300.
	rates := make([]float64, items)
	planned := make([]Item, items)
	for i := range rates {
		rates[i] = math.Pow(10, 3*r.Float64()-2)
		planned[i] = Item{Importance: 1, Rate: rates[i], Signals: true}
	}
	want := plan(t, "fixed-optimal", planned, budget).Freshness
	n := Noisy{Recall: 1, False: 0}
	w := newWorld(r, rates, n, end)
	var s Schedule
	if err := s.SetSignals(0, n); err != nil {
		t.Fatal(err)
	}
	for _, d := range rates {
		if _, err := s.Add(1, d, 0); err != nil {
			t.Fatal(err)
		}
	}
	got := w.play(budget, end, func(now float64) int {
		id, ok := s.Next(now)
		if !ok {
			return -1
		}
		return int(id)
	}, func(i int, now float64) {
		if _, err := s.Signal(uint32(i), n.Evidence(rates[i]), now); err != nil {
			t.Error(err)
		}
	})
	t.Logf("%.4f, plan %.4f, threshold %.3g", got, want, s.Threshold())
	if got < want-.03 || got > want+.01 {
		t.Errorf("freshness %.4f, the plan says %.4f", got, want)
	}
}

// A host that takes few visits gets its own threshold: the outcome is that of
// the plan with caps.
func TestScheduleBusyGroup(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(9, 9))
	const n, budget, most = 1000, 500., 60. // group 1 takes 60 visits a time
	items := make([]Item, n)
	rates, importance := make([]float64, n), make([]float64, n)
	var s Schedule
	g := s.AddGroup()
	for i := range items {
		rates[i], importance[i] = math.Exp(4*r.Float64()-2), 1
		items[i] = Item{Importance: 1, Rate: rates[i]}
		of := uint32(0)
		if i%2 == 0 {
			items[i].Host, items[i].HostCap, of = "slow", most, g
		}
		if _, err := s.AddTo(of, 1, rates[i], 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Start(budget); err != nil {
		t.Fatal(err)
	}
	free, slow, empty := 0.0, 0, 0
	const visits = 100_000
	got := reach(rates, importance, budget, visits, func(now float64) int {
		s.SetBusy(g, now < free)
		id, ok := s.Next(now)
		if !ok {
			empty++
			return 1
		}
		if id%2 == 0 {
			free = max(now, free+1/most)
			slow++
		}
		return int(id)
	})
	want := plan(t, "fixed-optimal", items, budget).Freshness
	t.Logf("%.4f, plan with the cap %.4f, without %.4f; %d of the slow host, looks %.2f a visit", got, want, plan(t, "fixed-optimal", uncapped(items), budget).Freshness, slow, float64(s.looks)/visits)
	if !near(got, want, .01) || empty > visits/100 || float64(slow) > 1.02*most*visits/budget || float64(s.looks) > 6*visits {
		t.Errorf("freshness %.4f, want %.4f; %d times nothing, %d visits of the slow host, %d looks", got, want, empty, slow, s.looks)
	}
	s.SetBusy(g, true)
	s.SetBusy(0, true)
	if id, ok := s.Next(1e6); ok {
		t.Errorf("item %d of a busy group", id)
	}
}

func uncapped(items []Item) []Item {
	out := slices.Clone(items)
	for i := range out {
		out[i].HostCap = 0
	}
	return out
}

// Waiting until a visit is worth so much, and what it is worth then, are
// inverses, for each rule, and for noisy signals.
func TestRules(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(10, 10))
	for name, rule := range Rules() {
		for range 200 {
			mu, d, tau := math.Exp(r.NormFloat64()), math.Exp(2*r.NormFloat64()), math.Exp(2*r.NormFloat64())
			v := rule.Value(mu, d, tau)
			if v >= rule.most(mu, d)*(1-1e-5) {
				continue
			}
			if got := rule.Wait(mu, d, v); !near(got, tau, 1e-5*tau) {
				t.Errorf("%s, mu %g, rate %g: worth %g after %g, waits %g", name, mu, d, v, tau, got)
			}
		}
		if rule.Wait(1, 1, 0) != 0 || !math.IsInf(rule.Wait(1, 1, math.Inf(1)), 1) {
			t.Errorf("%s: worth nothing at once, or all at some time", name)
		}
	}
	for range 100 {
		n := Noisy{Recall: .05 + .9*r.Float64(), False: math.Exp(2 * r.NormFloat64())}
		mu, d, tau := math.Exp(r.NormFloat64()), math.Exp(r.NormFloat64()), math.Exp(r.NormFloat64())
		v := n.At(mu, d, tau, 0)
		if v < 1e-9 || v > .999*mu/d {
			continue
		}
		if got := n.Reach(mu, d, v); !near(got, tau, 1e-3*tau) {
			t.Errorf("%+v, mu %g, rate %g: worth %g after %g, reaches it at %g", n, mu, d, v, tau, got)
		}
		if a, b := n.At(mu, d, tau, 2*n.Evidence(d)), n.Value(mu, d, tau, 2); !near(a, b, 1e-9) {
			t.Errorf("%+v: two signals by evidence %g, by number %g", n, a, b)
		}
		if left := n.Fresh(d, n.FreshFor(d, .3, .2), .2); !near(left, .3, 1e-9) {
			t.Errorf("%+v: fresh with probability %g, want .3", n, left)
		}
	}
	if _, err := RuleOf("best"); err == nil {
		t.Error("a rule that is none was found")
	}
}

// An item rests after a visit, also one that is signalled, also where the budget
// could have it more often.
func TestScheduleRests(t *testing.T) {
	t.Parallel()
	var s Schedule
	s.SetRest(5)
	for range 10 {
		if _, err := s.Add(1, 1, -10); err != nil {
			t.Fatal(err)
		}
	}
	last, visits := [10]float64{}, 0
	for i := range last {
		last[i] = -10
	}
	for now := 0.; now < 100; now += .25 {
		if _, err := s.Signal(3, math.Inf(1), now); err != nil {
			t.Fatal(err)
		}
		id, ok := s.Next(now)
		if !ok {
			continue
		}
		if now-last[id] < 5 {
			t.Errorf("item %d at %g and %g", id, last[id], now)
		}
		last[id] = now
		visits++
	}
	if visits < 180 {
		t.Errorf("%d visits, want about 200", visits)
	}
}
