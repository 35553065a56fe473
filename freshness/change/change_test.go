package change

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

func near(a, b, tol float64) bool { return math.Abs(a-b) <= tol }

// Ten visits a unit apart, six of which saw a change.
func TestKnownNumbers(t *testing.T) {
	t.Parallel()
	var visits []Visit
	for i := range 10 {
		visits = append(visits, Visit{1, i < 6})
	}
	mle, err := MLE(visits)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name      string
		got, want float64
	}{{"naive", Naive(10, 6, 1), .6}, {"MLE", mle, .916291}, {"regular", Regular(10, 6, 1), .847298}} {
		if !near(tt.got, tt.want, 1e-6) {
			t.Errorf("%s: %.6f, want %.6f", tt.name, tt.got, tt.want)
		}
	}
}

// At a regular interval the likelihood has a closed form, and for irregular
// ones the likelihood itself, scanned, peaks where MLE says.
func TestMLE(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		var visits []Visit
		rate := math.Exp(r.NormFloat64())
		for range 40 {
			tau := r.ExpFloat64() + .01
			visits = append(visits, Visit{tau, r.Float64() < 1-math.Exp(-rate*tau)})
		}
		d, err := MLE(visits)
		if err != nil {
			t.Fatal(err)
		}
		if d == 0 || math.IsInf(d, 1) {
			continue
		}
		like := func(d float64) (l float64) {
			for _, v := range visits {
				if v.Changed {
					l += math.Log(-math.Expm1(-d * v.Interval))
				} else {
					l -= d * v.Interval
				}
			}
			return l
		}
		if at := like(d); like(d*1.001) > at || like(d*.999) > at {
			t.Errorf("likelihood is not greatest at %g", d)
		}
	}
	if _, err := MLE([]Visit{{-1, true}, {math.NaN(), true}}); err == nil {
		t.Error("visits without interval gave an estimate")
	}
	if d, _ := MLE([]Visit{{1, false}}); d != 0 {
		t.Errorf("nothing changed: %g", d)
	}
	if d, _ := MLE([]Visit{{1, true}}); !math.IsInf(d, 1) {
		t.Errorf("everything changed: %g", d)
	}
}

// The estimators find the rate of simulated pages; the naive one is low.
func TestRecovery(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	const n, rate, interval = 20000, 1.5, 1.0
	changed, sum := 0, 0.0
	for range n {
		since, seen := 0.0, false // time of the last change in the interval
		for at := r.ExpFloat64() / rate; at < interval; at += r.ExpFloat64() / rate {
			since, seen = at, true
		}
		if seen {
			changed++
			sum += interval - since
		} else {
			sum += interval
		}
	}
	if got := Regular(n, float64(changed), interval); !near(got, rate, .06) {
		t.Errorf("regular %g", got)
	}
	if got := Dated(n, changed, sum); !near(got, rate, .06) {
		t.Errorf("dated %g", got)
	}
	if got := Naive(n, changed, interval); got > rate*.6 {
		t.Errorf("naive %g is not biased low", got)
	}
}

// A history survives being written, in 40 bytes; damaged bytes are refused or
// give one that works.
func FuzzHistory(f *testing.F) {
	h := History{Visits: 3.5, Changes: 1, Time: 1e6, Last: time.UnixMilli(1_700_000_000_123).UTC()}
	b, err := h.AppendBinary(nil)
	if err != nil || len(b) != Size {
		f.Fatal(len(b), err)
	}
	f.Add(b)
	f.Add([]byte("short"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var h History
		if h.UnmarshalBinary(b) != nil {
			return
		}
		again, _ := h.AppendBinary(nil)
		var back History
		if err := back.UnmarshalBinary(again); err != nil || back != h {
			t.Errorf("%+v, again %+v, %v", h, back, err)
		}
		if r := h.Rate(DefaultPrior); !(r > 0) || math.IsInf(r, 0) {
			t.Errorf("rate %g of %+v", r, h)
		}
	})
}

func TestHistory(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var h History
	if h.Rate(Prior{}) != DefaultPrior.Rate {
		t.Error("an item never visited has the prior's rate")
	}
	for i := range 200 { // every hour, changed half of the time: ln 2 an hour
		h.Observe(start.Add(time.Duration(i)*time.Hour), i%2 == 0, DefaultPrior)
	}
	if got := h.Rate(DefaultPrior) * 3600; !near(got, math.Ln2, .03) {
		t.Errorf("rate %g an hour", got)
	}
	before := h
	h.Observe(start, true, DefaultPrior) // the clock went back
	if h != before {
		t.Error("a visit in the past counted")
	}
	for i := range 2000 { // it stopped changing: the old evidence fades
		h.Observe(start.Add(time.Duration(200+i)*time.Hour), false, DefaultPrior)
	}
	if got := h.Rate(DefaultPrior) * 3600; got > .05 {
		t.Errorf("rate %g an hour three months after the last change", got)
	}
	if r := h.Rate(DefaultPrior); r <= 0 || math.IsInf(r, 0) {
		t.Errorf("rate %g", r)
	}
}
