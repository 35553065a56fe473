package change

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// moments integrates the mean and the variance of a rate under a Gamma belief,
// times the likelihood of what was seen.
func moments(b Belief, likelihood func(d float64) float64) (mean, variance float64) {
	sum, first, second := 0., 0., 0.
	const steps = 40_000
	for i := range steps {
		l := -60 + 70*(float64(i)+.5)/steps // logarithm of d Time
		d := math.Exp(l) / b.Time
		w := math.Exp(b.Shape*l-math.Exp(l)) * likelihood(d)
		sum, first, second = sum+w, first+w*d, second+w*d*d
	}
	mean = first / sum
	return mean, second/sum - mean*mean
}

// What a visit adds has the mean and variance of Bayes' theorem, by numerical
// integration; so do the probability to be fresh and the even odds.
func TestBelief(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 7))
	for range 60 {
		b := Belief{.2 + 3*r.Float64(), math.Exp(2 * r.NormFloat64())}
		tau := b.Time * math.Exp(3*r.NormFloat64())
		after := b.Changed(tau)
		mean, variance := moments(b, func(d float64) float64 { return -math.Expm1(-d * tau) })
		if !near(after.Rate(), mean, .002*mean) || !near(after.Rate()/after.Time, variance, .01*variance) {
			t.Errorf("%+v, changed in %g: %+v; mean %g, variance %g", b, tau, after, mean, variance)
		}
		if after.Shape < b.Shape || after.Time < b.Time*(1-1e-9) {
			t.Errorf("%+v, changed in %g: %+v is less sure", b, tau, after)
		}
		same := b.Counted(0, tau)
		mean, _ = moments(b, func(d float64) float64 { return math.Exp(-d * tau) })
		if !near(same.Rate(), mean, .002*mean) {
			t.Errorf("%+v, unchanged in %g: mean %g, want %g", b, tau, same.Rate(), mean)
		}
		if got := b.Fresh(b.Even()); !near(got, .5, 1e-9) {
			t.Errorf("%+v: at even odds %g is fresh", b, got)
		}
	}
	// Too short for two changes: a change counted in the middle.
	b := Belief{.25, 1e6}
	for _, tau := range []float64{1e-3, 1, 99, 101, 1000} {
		if got := b.Changed(tau); !near(got.Shape, 1.25, .002) || !near(got.Time, 1e6+tau/2, .01*tau+1e-6) {
			t.Errorf("changed in %g: %+v", tau, got)
		}
	}
}

// A history comes to the maximum of likelihood of its visits, however unequal
// their intervals are and whatever the prior was.
func TestHistoryIrregular(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(8, 2))
	for _, prior := range []Prior{{1e-3, .25}, DefaultPrior, {1, 1}} {
		for range 5 {
			d := 1e-3 * math.Exp(r.NormFloat64())
			var h History
			now := time.Unix(0, 0)
			h.Observe(now, false, prior)
			var visits []Visit
			for range 400 {
				tau := math.Exp(1.5*r.NormFloat64()) / d
				now = now.Add(time.Duration(tau * float64(time.Second)))
				visits = append(visits, Visit{tau, r.Float64() < -math.Expm1(-d*tau)})
				h.Observe(now, visits[len(visits)-1].Changed, prior)
			}
			want, err := MLE(visits)
			if err != nil {
				t.Fatal(err)
			}
			if got := h.Rate(prior); !near(got, want, .25*want) {
				t.Errorf("prior %+v, rate %g: %g, by likelihood %g", prior, d, got, want)
			}
		}
	}
}

// Signals are changes counted, and their silence is time without: a page that is
// visited once in twenty changes is known all the same, and one that is not
// visited, too. Missed and false signals do no harm.
func TestHeard(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(8, 3))
	prior := Prior{Rate: .1, Shape: .25}
	for _, c := range []struct{ recall, precision float64 }{{1, 1}, {.95, .99}, {.7, .9}, {.5, .5}} {
		for _, perVisit := range []float64{.1, 1, 20} {
			const d = .5
			estimate, runs := 0., 20.
			for range int(runs) {
				var h History
				now := time.Unix(0, 0)
				h.Observe(now, false, prior)
				for range 200 {
					tau := perVisit / d * r.ExpFloat64()
					changes, told := poisson(r, d*tau*(1-c.recall)), poisson(r, d*tau*c.recall)
					wrong := poisson(r, d*tau*c.recall*(1-c.precision)/c.precision)
					now = now.Add(time.Duration(tau * float64(time.Second)))
					h.ObserveHeard(now, changes+told > 0, prior, Heard{Signals: told + wrong, Recall: c.recall, Precision: c.precision})
				}
				estimate += h.Rate(prior) / runs
			}
			if !near(estimate, d, .12*d) {
				t.Errorf("recall %g, precision %g, %g changes a visit: rate %.3f, want %g", c.recall, c.precision, perVisit, estimate, d)
			}
		}
	}
	quiet := Heard{Recall: .9}.Belief(prior.asBelief(), 1000)
	if want := .25 / (2.5 + 900); !near(quiet.Rate(), want, 1e-12) {
		t.Errorf("after 1000 s of silence %g, want %g", quiet.Rate(), want)
	}
	if b := (Heard{}).Belief(prior.asBelief(), 1000); b != prior.asBelief() {
		t.Errorf("without signals their silence says nothing: %+v", b)
	}
}

// poisson draws by exponential steps.
func poisson(r *rand.Rand, mean float64) float64 {
	n := 0.
	for at := r.ExpFloat64(); at < mean; at += r.ExpFloat64() {
		n++
	}
	return n
}
