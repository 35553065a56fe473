package revisit

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/freshet/freshet/internal/dueheap"
)

// reach follows a chooser of visits and returns the expected freshness, without
// the first quarter.
func reach(rates, importance []float64, budget float64, visits int, next func(now float64) int) float64 {
	n := len(rates)
	last := make([]float64, n)
	weight, fresh := 0.0, 0.0
	from, end := float64(visits)/4/budget, float64(visits)/budget
	gain := func(i int, until float64) {
		if start := max(last[i], from); until > start {
			d := rates[i]
			fresh += importance[i] * (math.Exp(-d*(start-last[i])) - math.Exp(-d*(until-last[i]))) / d
		}
	}
	for k := range visits {
		now := float64(k+1) / budget
		i := next(now)
		gain(i, now)
		last[i] = now
	}
	for i := range rates {
		gain(i, end)
		weight += importance[i]
	}
	return fresh / (end - from) / weight
}

// The schedule comes as near to the optimal plan as looking at all values
// before each visit does, and stays there when the budget changes.
func TestScheduleReachesTheOptimum(t *testing.T) {
	t.Parallel()
	const n = 2000
	r := rand.New(rand.NewPCG(3, 3))
	items := make([]Item, n)
	rates, importance := make([]float64, n), make([]float64, n)
	for i := range items {
		rates[i], importance[i] = math.Exp(4*r.Float64()-2), 1+3*r.Float64()
		items[i] = Item{Importance: importance[i], Rate: rates[i]}
	}
	var s, started Schedule
	for i := range items {
		for _, s := range []*Schedule{&s, &started} {
			if _, err := s.Add(importance[i], rates[i], 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := started.Start(1000); err != nil {
		t.Fatal(err)
	}
	for k := range 20_000 {
		started.Next(float64(k) / 1000)
	}
	price, err := NewTariff(Policies()["fixed-optimal"], items, ones(n), 1000)
	if err != nil {
		t.Fatal(err)
	}
	if got := started.Threshold(); !near(got, price.price, .1*price.price) {
		t.Errorf("the threshold is %g after a start at %g", got, price.price)
	}
	start := 0.0
	for _, budget := range []float64{1000, 4000, 500} {
		const visits = 200_000
		got := reach(rates, importance, budget, visits, func(now float64) int {
			id, ok := s.Next(start + now)
			if !ok {
				t.Fatal("nothing to visit")
			}
			return int(id)
		})
		start += visits / budget
		if want := plan(t, "fixed-optimal", items, budget).Freshness; !near(got, want, 1e-3) {
			t.Errorf("budget %g: %.5f, the optimum is %.5f", budget, got, want)
		}
	}
}

// Items whose rates are set follow their new rates; nothing is lost or visited
// by a stale entry.
func TestScheduleSet(t *testing.T) {
	t.Parallel()
	var s Schedule
	for range 100 {
		if _, err := s.Add(1, 1, 0); err != nil {
			t.Fatal(err)
		}
	}
	count := func(from float64) (slow, fast int) {
		for k := range 10_000 {
			id, ok := s.Next(from + float64(k)/100)
			if !ok {
				t.Fatal("nothing to visit")
			}
			if id < 50 {
				slow++
			} else {
				fast++
			}
		}
		return slow, fast
	}
	if a, b := count(0); a < 4900 || b < 4900 {
		t.Errorf("equal items: %d and %d visits", a, b)
	}
	for range 20 { // many stale entries
		for id := range uint32(50) {
			if err := s.Set(id, 1, .01); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(s.heap) > 64+3*len(s.items) {
		t.Errorf("%d entries for %d items", len(s.heap), len(s.items))
	}
	a, b := count(100)
	pl := plan(t, "fixed-optimal", append(same(50, .01), same(50, 1)...), 100)
	if want := pl.Shares[0].Rate / pl.Shares[99].Rate; !near(float64(a)/float64(b), want, .15*want) {
		t.Errorf("slow to fast visits %.3f, want %.3f", float64(a)/float64(b), want)
	}
	if err := s.Set(100, 1, 1); !errors.Is(err, ErrID) {
		t.Errorf("an item that is not there: %v", err)
	}
	if _, err := s.Add(1, math.NaN(), 0); err == nil {
		t.Error("a rate that is no number was taken")
	}
}

func ones(n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = 1
	}
	return out
}

func same(n int, rate float64) []Item {
	out := make([]Item, n)
	for i := range out {
		out[i] = Item{Importance: 1, Rate: rate}
	}
	return out
}

// A visit looks at few items, whatever the rates and however far the budget is
// from that of the start.
func TestScheduleWork(t *testing.T) {
	t.Parallel()
	for name, rate := range map[string]func(i int) float64{
		"equal rates": func(int) float64 { return 1 }, "equal rates, much too fast": func(int) float64 { return 1000 }, "two rates": func(i int) float64 { return 1 + float64(i%2) }, "four decades": func(i int) float64 { return math.Pow(10, float64(i%401)/100-2) },
	} {
		for _, started := range []float64{0, 100, 1000, 10_000} {
			var s Schedule
			const n, budget, visits = 2000, 1000., 60_000
			for i := range n {
				if _, err := s.Add(1, rate(i), 0); err != nil {
					t.Fatal(err)
				}
			}
			if started > 0 {
				if err := s.Start(started); err != nil {
					t.Fatal(err)
				}
			}
			for k := range visits {
				if _, ok := s.Next(float64(k+1) / budget); !ok {
					t.Fatal("nothing to visit")
				}
			}
			if per := float64(s.looks) / visits; per > 4 {
				t.Errorf("%s, started for a budget of %g: %.1f looks a visit", name, started, per)
			}
		}
	}
}

// Things that do not change are never visited, and do not hide those that do.
func TestScheduleIdle(t *testing.T) {
	t.Parallel()
	var s Schedule
	if _, ok := s.Next(1); ok {
		t.Error("an empty schedule had something to visit")
	}
	for range 10 {
		if _, err := s.Add(1, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := s.Next(1); ok {
		t.Error("what never changes was visited")
	}
	id, err := s.Add(1, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	for now := 1.0; now < 100; now++ {
		if got, ok := s.Next(now); !ok || got != id {
			t.Fatalf("at %g: %d, %v", now, got, ok)
		}
	}
}

// wait against bisection.
func TestWait(t *testing.T) {
	t.Parallel()
	for y := 1e-9; y < 1; y = y*1.3 + 1e-4*y {
		want := invertRising(func(x float64) float64 {
			if x < 1e-3 {
				return x * x * (.5 - x/3)
			}
			return -math.Expm1(-x) - x*math.Exp(-x)
		}, y)
		if got := solveWait(y); !near(got, want, 1e-6*want) {
			t.Errorf("y %g: %g, want %g", y, got, want)
		}
	}
}

func TestScheduleSize(t *testing.T) {
	t.Parallel()
	if n := unsafe.Sizeof(scheduled{}) + unsafe.Sizeof(dueheap.Entry{}); n > 64 {
		t.Errorf("%d bytes an item", n)
	}
}

// Ten million items of rates over four decades.
func BenchmarkSchedule(b *testing.B) {
	const n = 10_000_000
	r := rand.New(rand.NewPCG(4, 4))
	var s Schedule
	s.items, s.heap = make([]scheduled, 0, n), make(dueheap.Heap, 0, n)
	for range n {
		if _, err := s.Add(1, math.Pow(10, 4*r.Float64()-6), -1e5*r.Float64()); err != nil {
			b.Fatal(err)
		}
	}
	const budget = 100
	if err := s.Start(budget); err != nil {
		b.Fatal(err)
	}
	now := 0.0
	for range n / 20 {
		now += 1. / budget
		s.Next(now)
	}
	b.ResetTimer()
	for b.Loop() {
		now += 1. / budget
		s.Next(now)
	}
	b.ReportMetric(float64(unsafe.Sizeof(scheduled{})+unsafe.Sizeof(dueheap.Entry{})), "bytes/item")
}
