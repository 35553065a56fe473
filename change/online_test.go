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
		s.Signalled(false, 10, now)
	}
	if s.Precision() > .05 || !near(s.FalseRate(), .1, .005) {
		t.Errorf("after 100 false signals: %+v, precision %g, false %g", s, s.Precision(), s.FalseRate())
	}
	now = now.Add(10 * HalfLife)
	for range 20 {
		s.Signalled(true, 10, now)
	}
	if s.Precision() < .9 || s.Recall() < .9 || s.FalseRate() > .02 {
		t.Errorf("after ten half-lives and 20 true signals: %+v, precision %g", s, s.Precision())
	}
}

// Recall and rate of false signals come out of simulated visits.
func TestTrustLearns(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(9, 1))
	const recall, changes, noise, step = .7, .01, .004, 1.0
	var s Trust
	var now time.Time
	for range 2_000_000 {
		s.Polled(false, step, now)
		if r.Float64() < changes*step {
			if r.Float64() < recall {
				s.Signalled(true, 0, now)
			} else {
				s.Polled(true, 0, now)
			}
		}
		if r.Float64() < noise*step {
			s.Signalled(false, 0, now)
		}
	}
	if !near(s.Recall(), recall, .02) || !near(s.FalseRate(), noise, .0004) || !near(s.Precision(), recall*changes/(recall*changes+noise), .02) {
		t.Errorf("recall %g, false %g, precision %g", s.Recall(), s.FalseRate(), s.Precision())
	}
}

// The prior of a group comes to its items' rate, and begins at the base.
func TestGroup(t *testing.T) {
	t.Parallel()
	var g Group
	if g.Prior(Prior{}) != DefaultPrior {
		t.Errorf("an empty group: %+v", g.Prior(Prior{}))
	}
	r := rand.New(rand.NewPCG(2, 9))
	const d = 1e-3
	for range 5000 {
		tau := 200 + 800*r.Float64()
		g.Observe(tau, r.Float64() < -math.Expm1(-d*tau))
	}
	if got := g.Prior(DefaultPrior).Rate; !near(got, d, .1*d) {
		t.Errorf("rate %g, want %g", got, d)
	}
	// A group that was never visited goes by what all groups together say.
	var all, none Group
	all.Add(g)
	all.Add(none)
	if got := none.Prior(all.Prior(DefaultPrior)).Rate; !near(got, d, .1*d) {
		t.Errorf("rate %g of a new group, want %g", got, d)
	}
	g.Observe(math.NaN(), true)
	g.Observe(-1, true)
	if math.IsNaN(g.Time) || g.Visits > 1001 {
		t.Errorf("%+v", g)
	}
}
