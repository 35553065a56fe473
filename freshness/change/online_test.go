package change

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// visitsAtRandom calls see for visits at rate p of an item that changes at rate d.
func visitsAtRandom(r *rand.Rand, d func(now float64) float64, p float64, visits int, see func(changed bool)) {
	now := 0.0
	for range visits {
		tau := r.ExpFloat64() / p
		see(r.Float64() < -math.Expm1(-d(now)*tau))
		now += tau
	}
}

func constant(d float64) func(float64) float64 { return func(float64) float64 { return d } }

// Both on-line estimators come to the rate, whatever it is beside the visits'.
func TestOnline(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 5))
	for _, d := range []float64{.05, 1, 4} {
		const p, visits = 2.0, 200_000
		lln, sa := LLN{Visits: p}, Approximation{Visits: p}
		visitsAtRandom(r, constant(d), p, visits, func(changed bool) { lln.Observe(changed); sa.Observe(changed) })
		if got := lln.Rate(); !near(got, d, .04*d) {
			t.Errorf("law of large numbers: %g, want %g", got, d)
		}
		if got := sa.Rate(); !near(got, d, .1*d) {
			t.Errorf("stochastic approximation: %g, want %g", got, d)
		}
	}
	if got := (&LLN{Visits: 3}).Rate(); got != 0 {
		t.Errorf("before any visit: %g", got)
	}
	all := LLN{Visits: 3}
	for range 10 {
		all.Observe(true)
	}
	if got := all.Rate(); got != 30 { // 3*10/1: finite where everything changed
		t.Errorf("ten of ten changed: %g, want 30", got)
	}
}

// When the rate jumps, the approximation follows and the law of large numbers lags.
func TestApproximationFollows(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(6, 6))
	const p = 2.0
	lln, sa := LLN{Visits: p}, Approximation{Visits: p, Fade: .6}
	see := func(changed bool) { lln.Observe(changed); sa.Observe(changed) }
	visitsAtRandom(r, constant(.2), p, 20_000, see)
	visitsAtRandom(r, constant(3), p, 10_000, see)
	if a, b := math.Abs(sa.Rate()-3), math.Abs(lln.Rate()-3); a > .5 || a > b/2 {
		t.Errorf("after the jump to 3: approximation %g, law of large numbers %g", sa.Rate(), lln.Rate())
	}
}

// A source that lies loses its weight, and wins it back.
func TestTrust(t *testing.T) {
	t.Parallel()
	var s Trust
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	if s.Precision() != .75 || s.FalseRate() != 0 {
		t.Errorf("an unknown source: precision %g, false %g", s.Precision(), s.FalseRate())
	}
	for range 100 {
		s.Visited(1, false, 10, .01, now)
	}
	if s.Precision() > .05 || !near(s.FalseRate(), .1, .005) {
		t.Errorf("after 100 false signals: %+v, precision %g, false %g", s, s.Precision(), s.FalseRate())
	}
	now = now.Add(10 * HalfLife)
	for range 20 {
		s.Visited(1, true, 10, .01, now)
	}
	if s.Precision() < .9 || s.Recall() < .5 || s.FalseRate() > .02 {
		t.Errorf("after ten half-lives and 20 true signals: %+v, precision %g", s, s.Precision())
	}
}

// Recall, precision and rate of false signals come out of simulated visits: of
// pages that change often and seldom beside the visits, some of which come at
// once after a signal.
func TestTrustLearns(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(9, 1))
	for _, recall := range []float64{.3, .7, .97} {
		const precision = .8
		var s Trust
		var now time.Time
		told, alone := 0., 0.
		for range 200_000 {
			d := .005 * math.Pow(40, r.Float64()) // a step
			changes, signals, tau := 0, 0., 0.
			at := r.ExpFloat64() * 20 // a poll, unless a signal brings the visit
			for tau < at {
				switch x := r.Float64(); {
				case x < d*recall:
					changes, signals = changes+1, signals+1
				case x < d:
					changes++
				case x < d+d*recall*(1-precision)/precision:
					signals++
				}
				if tau++; signals > 0 && r.Float64() < .5 {
					break
				}
			}
			s.Visited(signals, changes > 0, tau, d, now)
			told, alone = told+signals, alone+tau
		}
		if !near(s.Recall(), recall, .05) || !near(s.Precision(), precision, .06) || !near(s.FalseRate(), (1-precision)*told/alone, .3*(1-precision)*told/alone) {
			t.Errorf("recall %.3f of %g, precision %.3f of %g, false %.5f of %.5f", s.Recall(), recall, s.Precision(), precision, s.FalseRate(), (1-precision)*told/alone)
		}
	}
}

// The prior of a group comes to the mean rate of its items, as unlike as they
// are, and begins at the base.
func TestGroup(t *testing.T) {
	t.Parallel()
	var g Group
	if g.Prior(Prior{}) != DefaultPrior {
		t.Errorf("an empty group: %+v", g.Prior(Prior{}))
	}
	r := rand.New(rand.NewPCG(2, 9))
	const d = 1e-3
	for range 20000 {
		tau := 200 + 100*r.Float64()
		rate := r.NormFloat64()
		rate = d * rate * rate // chi-square: Gamma of shape 1/2 and mean d
		g.Observe(tau, r.Float64() < -math.Expm1(-rate*tau))
	}
	if got := g.Prior(Prior{Rate: 1e-6, Shape: .5}).Rate; !near(got, d, .25*d) {
		t.Errorf("rate %g, want %g", got, d)
	}
	const want = .25
	if got := g.Prior(Prior{Rate: 1e-6, Shape: want}); got.Shape != want {
		t.Errorf("shape %g, want %g", got.Shape, want)
	}
	// A group that was never visited goes by what all groups together say.
	var all, none Group
	all.Add(g)
	all.Add(none)
	if got := none.Prior(all.Prior(Prior{Rate: 1e-6, Shape: .5})).Rate; !near(got, d, .25*d) {
		t.Errorf("rate %g of a new group, want %g", got, d)
	}
	g.Observe(math.NaN(), true)
	g.Observe(-1, true)
	if math.IsNaN(g.Time) || g.Visits > 1001 {
		t.Errorf("%+v", g)
	}
}
