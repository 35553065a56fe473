package fresh

import (
	"math"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/freshet/freshet/freshness/change"
	"github.com/freshet/freshet/freshness/revisit"
)

// learner keeps a site fresh by the code that learns in the live robot, on a
// clock of its own: thousands of times as fast.
type learner struct {
	site      *site
	rule      string
	known     bool // the rates
	recall    float64
	precision float64
	r         *rand.Rand

	history  []change.History
	group    change.Group
	trust    change.Trust
	heard    []float64 // signals since the last visit
	version  []int
	schedule *revisit.Schedule
}

func (l *learner) prior() change.Prior { return l.group.Prior(change.DefaultPrior) }

func (l *learner) clock(t float64) time.Time {
	return time.Unix(1, 0).Add(time.Duration(t * float64(time.Second)))
}

// source is what is known of the signals, as the robot reckons with it.
func (l *learner) source() revisit.Noisy {
	if l.trust.True < 5 {
		return revisit.Noisy{}
	}
	p := l.trust.Precision()
	return revisit.Noisy{Recall: min(l.trust.Recall(), .95), Wrong: (1 - p) / p}
}

// belief is what is believed of a page now.
func (l *learner) belief(page int, now float64) change.Belief {
	if l.known {
		return change.Belief{Shape: 1e9, Time: 1e9 / l.site.rates[page]}
	}
	h := change.Heard{Signals: l.heard[page], Recall: l.source().Recall, Precision: l.trust.Precision()}
	return h.Belief(l.history[page].Belief(l.prior()), now-l.history[page].Last.Sub(l.clock(0)).Seconds())
}

// visit learns from what a page is now.
func (l *learner) visit(page int, now float64) {
	v := l.site.versionAt(page, now)
	l.site.told[page] = append(l.site.told[page], delivery{now, v})
	changed, first := v != l.version[page], l.history[page].Last.IsZero()
	seconds := l.clock(now).Sub(l.history[page].Last).Seconds()
	p := l.prior()
	rate := l.history[page].Own(p)
	l.history[page].ObserveHeard(l.clock(now), changed, p, change.Heard{Signals: l.heard[page], Recall: l.source().Recall, Precision: l.trust.Precision()})
	if !first {
		l.group.Observe(seconds, changed)
		if l.recall > 0 {
			l.trust.Visited(l.heard[page], changed, seconds, rate, l.clock(now))
		}
	}
	l.version[page], l.heard[page] = v, 0
	b := l.belief(page, now)
	must(l.schedule.SetSignals(0, l.source()))
	must(l.schedule.Believe(uint32(page), b.Shape))
	must(l.schedule.Visited(uint32(page), 1, b.Rate(), now))
	if !l.known && l.recall == 0 && b.Shape < 10 && l.r.Float64() < .25 {
		must(l.schedule.Probe(uint32(page), now+b.Even()))
	}
}

// signal tells of a page.
func (l *learner) signal(page int, now float64) {
	l.heard[page]++
	b := l.belief(page, now)
	must(l.schedule.Believe(uint32(page), b.Shape))
	must(l.schedule.Set(uint32(page), 1, b.Rate()))
	_, err := l.schedule.Signal(uint32(page), -math.Log1p(-l.trust.Precision()), now)
	must(err)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// run keeps the site for its time and returns the freshness between two moments.
func (l *learner) run(t *testing.T, budget, from, to float64) float64 {
	t.Helper()
	n := len(l.site.rates)
	l.site.restartHistory()
	l.history, l.heard, l.version = make([]change.History, n), make([]float64, n), make([]int, n)
	rule, err := revisit.RuleOf(l.rule)
	must(err)
	l.schedule = revisit.NewSchedule(rule)
	l.schedule.SetRest(.01)
	for range n {
		_, err := l.schedule.Add(1, change.DefaultPrior.Rate, -1)
		must(err)
	}
	told := make([]int, n)
	look := 0.
	for i := 0; float64(i)/budget < to; i++ {
		now := float64(i) / budget
		for page := range told {
			signals := 0
			for v := l.site.versionAt(page, now-.05); told[page] < v; told[page]++ { // signals take a while
				if l.r.Float64() < l.recall {
					signals++
				}
			}
			if wrong := l.site.rates[page] * l.recall * (1/l.precision - 1) / budget; l.r.Float64() < wrong {
				signals++
			}
			for range signals {
				l.signal(page, now)
			}
		}
		if i < n { // all pages once
			l.visit(i, now)
			continue
		}
		if now >= look {
			look = now + 2
			for page := range n {
				b := l.belief(page, now)
				if _, rate, _, _ := l.schedule.Known(uint32(page)); math.Abs(rate-b.Rate()) > .05*rate {
					must(l.schedule.Believe(uint32(page), b.Shape))
					must(l.schedule.Set(uint32(page), 1, b.Rate()))
				}
			}
		}
		if id, ok := l.schedule.Next(now); ok {
			l.visit(int(id), now)
		}
	}
	f, _, _ := l.site.measureKnowledge(from, to)
	return f
}

// What is learned comes near to what is known: from nothing, over four decades
// of rates, with signals of all kinds and without, in ten minutes.
func TestLearn(t *testing.T) {
	t.Parallel()
	const budget, from, to = 12., 120., 600.
	runs := 1
	if os.Getenv("FRESHET_LONG") != "" {
		runs = 6
	}
	freshness := func(rule string, known bool, recall, precision float64) (f float64) {
		for seed := range uint64(runs) {
			s := newSite(Config{Pages: 240, Hosts: 1, Slowest: .0005, Warm: to * time.Second, Seed: seed})
			l := &learner{site: s, rule: rule, known: known, recall: recall, precision: precision, r: rand.New(rand.NewPCG(seed, 1))}
			f += l.run(t, budget, from, to) / float64(runs)
			if !known && recall > 0 && (math.Abs(l.trust.Recall()-recall) > .3 || math.Abs(l.trust.Precision()-precision) > .2) {
				t.Errorf("signals: recall %.3f, precision %.3f learned of %g, %g", l.trust.Recall(), l.trust.Precision(), recall, precision)
			}
		}
		return f
	}
	uniform := freshness("sweep", false, 0, 1)
	for _, c := range []struct {
		recall, precision float64
		least             float64 // of what knowing the rates gains over uniform visits
	}{{0, 1, .5}, {1, 1, .9}, {.7, .9, .6}, {.5, .5, .6}} {
		known, learned := freshness("greedy", true, c.recall, c.precision), freshness("greedy", false, c.recall, c.precision)
		t.Logf("recall %g, precision %g: learned %.3f, known %.3f, uniform %.3f", c.recall, c.precision, learned, known, uniform)
		if learned < uniform+c.least*(known-uniform) {
			t.Errorf("recall %g, precision %g: learned %.3f, known %.3f, uniform %.3f", c.recall, c.precision, learned, known, uniform)
		}
	}
}
