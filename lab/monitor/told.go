package monitor

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/freshet/freshet/freshness/revisit"
	"github.com/freshet/freshet/lab/field"
)

// told is a plan whose site reports real changes, each with some
// probability, and falsely now and then. The schedule knows how good the
// signals are.
type told struct {
	plan
	noisy revisit.Noisy
}

// Events of told are numbered after those of a plan.
const (
	notice = rested + 1 + iota // a signal arrives
	lie                        // the site tells of a change that is none
)

func readTold(args []string) (func(field.Field) (Strategy, error), error) {
	if len(args) < 2 || len(args) > 4 {
		return nil, errors.New("it has two to four arguments")
	}
	c, err := readVisitBudget(args[1])
	if err != nil {
		return nil, err
	}
	policy, rule, err := parsePolicy(args[0])
	if err != nil {
		return nil, err
	}
	if args[0] == adaptive {
		return nil, errors.New("the adaptive interval heeds no signals")
	}
	n := revisit.Noisy{Recall: 1}
	for i, to := range []*float64{&n.Recall, &n.False} {
		if len(args) <= i+2 {
			break
		}
		if *to, err = strconv.ParseFloat(args[i+2], 64); err != nil || !(*to >= 0) || math.IsInf(*to, 0) || i == 0 && *to > 1 {
			return nil, fmt.Errorf("%q is neither a share from 0 to 1 nor a number of false signals", args[i+2])
		}
	}
	return func(f field.Field) (Strategy, error) {
		p := plan{crew: c, asks: c.turn > 0, policy: policy, rates: perSecond(f), schedule: revisit.NewSchedule(rule)}
		if policy != nil {
			p.memo, p.recall = make([]float64, 2*octave*fine+1), min(n.Recall, mostRecall)
		}
		return &told{p, n}, nil
	}, nil
}

// Start begins the visits and the lies: on average, False a unit of time and
// page.
func (q *told) Start(s *Sim) {
	noisy := revisit.Noisy{Recall: q.noisy.Recall, False: q.noisy.False / field.Unit}
	q.noisy = noisy
	if q.policy == nil { // a plan reckons with them in its rates
		if err := q.schedule.SetSignals(0, noisy); err != nil {
			panic(fmt.Sprintf("monitor: schedule: %v", err))
		}
	}
	q.plan.Start(s)
	if noisy.False > 0 {
		s.After(q.nextLie(s), lie, 0, 0)
	}
}

func (q *told) nextLie(s *Sim) float64 {
	return -math.Log1p(-s.Unit()) / (q.noisy.False * field.Unit * float64(s.Pages()))
}

// Changed sends a notice.
func (q *told) Changed(s *Sim, page uint32) {
	if q.noisy.Recall == 1 || s.Unit() < q.noisy.Recall {
		s.Probe(notice, 0, page)
	}
}

// Done takes a notice in, or goes on with the plan.
func (q *told) Done(s *Sim, e Event) {
	switch e.What {
	case lie:
		s.Probe(notice, 0, uint32(s.Unit()*float64(s.Pages())))
		s.After(q.nextLie(s), lie, 0, 0)
		return
	case notice:
		evidence := q.noisy.Evidence(q.rates[e.Page])
		if q.policy != nil {
			evidence = q.signalWeight(s, e.Page)
		}
		if _, err := q.schedule.Signal(e.Page, evidence, s.Now()*field.Unit); err != nil {
			panic(fmt.Sprintf("monitor: schedule: %v", err))
		}
		q.startVisits(s)
		return
	}
	q.plan.Done(s, e)
}

// mostRecall is how much a plan believes signals to tell, as the live robot does:
// pages are polled all the same.
const mostRecall = .95

// signalWeight is what a signal counts for in a plan, which visits on a signal with the
// probability that the price of visits leaves: all or nothing.
func (q *told) signalWeight(s *Sim, page uint32) float64 {
	d := q.rates[page] * q.recall
	if s.Unit()*d > q.tariff.Rate(revisit.Item{Importance: 1, Rate: d, Signals: true}) {
		return 0
	}
	return math.Inf(1)
}
