// Package study asks of one model what control is worth and what its best
// thresholds depend on: pairs of modes, capacity, mean and variance of service
// and staleness, the policies beyond thresholds, bounds in place of costs. Its
// results are a page of plots and tables.
package study

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/freshet/freshet/lab/control"
	"github.com/freshet/freshet/lab/control/fit"
)

// Config says how much work is done.
type Config struct {
	Simulate int                                  // pages offered in each of ten replications of the best policies; 0 simulates none
	Seed     uint64                               // of the simulation
	Progress func(done, total int64, what string) // may be nil
	Options  control.Options                      // how policies are solved
}

// Study is what was found.
type Study struct {
	Name     string               `json:"name"`
	Model    *control.Model       `json:"-"`
	Best     *control.Optimum     `json:"optimum"`
	Aware    *control.PhaseAware  `json:"-"`
	Gap      *float64             `json:"phase_aware_gap,omitempty"`
	Pairs    []Pair               `json:"pairs"`
	Capacity []Point              `json:"capacity"`
	Effects  []Effect             `json:"effects"`
	Bounds   []*control.Bounded   `json:"bounds"`
	Checks   []Check              `json:"checks,omitempty"`
	Naive    *Naive               `json:"exponential_service,omitempty"`
	Laws     map[string][]float64 `json:"-"` // of the number of pages, by policy
}

// Pair is the cost of two modes by the threshold between them.
type Pair struct {
	Low       int       `json:"low"`
	High      int       `json:"high"`
	Costs     []float64 `json:"-"` // from threshold -1
	Threshold int       `json:"threshold"`
	Cost      float64   `json:"cost"`
	Profit    float64   `json:"profit"` // part of the cost of the better of the two modes alone
}

// Point is an optimum at one value of a parameter.
type Point struct {
	X          float64 `json:"x"`
	Thresholds []int   `json:"thresholds"`
	Cost       float64 `json:"cost"`
	Profit     float64 `json:"profit"` // of control, part of the cost of the best fixed mode
	Method     string  `json:"method"`
	Error      float64 `json:"error"`
}

// Effect is how the optimum moves with a parameter.
type Effect struct {
	Name   string  `json:"name"`
	X      string  `json:"x"`
	Note   string  `json:"note,omitempty"`
	Log    bool    `json:"-"`
	Points []Point `json:"points"`
}

// Check is a policy solved and simulated.
type Check struct {
	Name      string             `json:"name"`
	Solved    control.Result     `json:"solved"`
	Simulated *control.Simulated `json:"simulated"`
}

// Naive is what it costs to take service for exponential.
type Naive struct {
	Thresholds []int   `json:"thresholds"` // best if service were exponential
	Cost       float64 `json:"cost"`       // theirs with the true service
	Loss       float64 `json:"loss"`       // by which part that is dearer than the true optimum
}

// What the parameters are set to.
var (
	factors      = []float64{.05, .1, .2, .4, .7, 1, 1.4, 2, 4, 10, 30}
	serviceSCVs  = []float64{.25, .5, 1, 2, 4, 10, 30, 86}
	staleSCVs    = []float64{.25, .5, 1, 2, 4, 10}
	boundFactors = []float64{.5, .7, .85, .95, 1}
)

// staleCapacity is the capacity at which the variance of staleness is varied:
// its phases multiply with every page.
const staleCapacity = 20

// twoMoments is said of variants of the service law.
const twoMoments = "Service by its mean and variance only: hyperexponential of balanced means or a mixture of Erlang laws."

// variantStates is the number of states up to which a variant is solved by the
// iterative method: there are many variants.
const variantStates = 2e5

// run is a study under way.
type run struct {
	ctx  context.Context
	c    Config
	m    *control.Model
	done int64
}

// reportStep reports progress; its error reports whether the study was cancelled.
func (r *run) reportStep(what string) error {
	r.done++
	if r.c.Progress != nil {
		r.c.Progress(r.done, steps, what)
	}
	return r.ctx.Err()
}

// steps is about how many calls of step a study makes.
const steps = 70

// Do studies a model. An interrupt of the context ends it between two steps.
func Do(ctx context.Context, name string, m *control.Model, c Config) (*Study, error) {
	r := &run{ctx: ctx, c: c, m: m}
	if err := r.reportStep("optimum"); err != nil {
		return nil, err
	}
	best, err := m.Optimize(ctx, c.Options)
	if err != nil {
		return nil, err
	}
	s := &Study{Name: name, Model: m, Best: best}
	if err := r.reportStep("policies that see the phases"); err != nil {
		return nil, err
	}
	switch p, err := m.PhaseAware(ctx, best.Best.Policy, best.Unrestricted.Policy); {
	case err == nil:
		gap := control.Gap(best.Best.Cost, p.Cost)
		p.Gap, s.Aware, s.Gap = gap, p, &gap
	case !errors.Is(err, control.ErrTooLarge):
		return nil, fmt.Errorf("policies that see the phases: %w", err)
	}
	for _, part := range []struct {
		what string
		do   func(*Study) error
	}{
		{"pairs of modes", r.studyModePairs},
		{"capacity", r.varyCapacity},
		{"mean of service", r.serviceMean},
		{"variance of service", r.serviceVariance},
		{"mean of staleness", r.staleMean},
		{"variance of staleness", r.staleVariance},
		{"exponential service", r.studyExponentialService},
		{"bounds", r.studyStarvationBound},
		{"laws", r.studyQueueLaws},
		{"simulation", r.simulateOptima},
	} {
		if err := part.do(s); err != nil {
			return nil, fmt.Errorf("%s: %w", part.what, err)
		}
	}
	return s, nil
}

func (r *run) studyModePairs(s *Study) error {
	for low := 1; low < r.m.R; low++ {
		for high := low + 1; high <= r.m.R; high++ {
			if err := r.reportStep(fmt.Sprintf("modes %d and %d", low, high)); err != nil {
				return err
			}
			costs, err := r.m.Pair(r.ctx, low, high, r.c.Options)
			if err != nil {
				return err
			}
			p := Pair{Low: low, High: high, Costs: costs, Cost: math.Inf(1)}
			for k, c := range costs {
				if c < p.Cost {
					p.Cost, p.Threshold = c, k-1
				}
			}
			if math.IsInf(p.Cost, 1) {
				continue
			}
			p.Profit = controlProfit(p.Cost, costs[0], costs[len(costs)-1])
			s.Pairs = append(s.Pairs, p)
		}
	}
	return nil
}

// controlProfit returns by which part the best of fixed is dearer than cost, of itself.
func controlProfit(cost float64, fixed ...float64) float64 {
	least := math.Inf(1)
	for _, f := range fixed {
		least = min(least, f)
	}
	if math.IsInf(least, 1) || least == 0 {
		return 0
	}
	return max(0, (least-cost)/least)
}

// optimizeVariant optimises a variant.
func (r *run) optimizeVariant(x float64, m *control.Model) (Point, error) {
	o := r.c.Options
	o.ThresholdsOnly = true
	if o.Method == "" || o.Method == control.Auto {
		o.MaxStates = variantStates
	}
	best, err := m.Optimize(r.ctx, o)
	if err != nil {
		return Point{}, fmt.Errorf("at %g: %w", x, err)
	}
	var fixed []float64
	for _, f := range best.Fixed {
		fixed = append(fixed, f.Cost)
	}
	return Point{X: x, Thresholds: best.Best.Thresholds, Cost: best.Best.Cost, Profit: controlProfit(best.Best.Cost, fixed...), Method: best.Best.Measures.Method, Error: best.Best.Measures.Error}, nil
}

func (r *run) varyCapacity(s *Study) error {
	for _, f := range []float64{.05, .1, .2, .35, .5, .75, 1, 1.5} {
		n := int(math.Round(f * float64(r.m.N)))
		if n < 1 || len(s.Capacity) > 0 && s.Capacity[len(s.Capacity)-1].X == float64(n) {
			continue
		}
		if err := r.reportStep(fmt.Sprintf("capacity %d", n)); err != nil {
			return err
		}
		v, err := r.m.WithCapacity(n)
		if err != nil {
			return err
		}
		p, err := r.optimizeVariant(float64(n), v)
		if err != nil {
			return err
		}
		s.Capacity = append(s.Capacity, p)
	}
	return nil
}

// varyParameter adds the effect of a parameter.
func (r *run) varyParameter(s *Study, e Effect, values []float64, variant func(x float64) (*control.Model, error)) error {
	for _, x := range values {
		if err := r.reportStep(fmt.Sprintf("%s %g", e.Name, x)); err != nil {
			return err
		}
		m, err := variant(x)
		if err != nil {
			return fmt.Errorf("at %g: %w", x, err)
		}
		p, err := r.optimizeVariant(x, m)
		if err != nil {
			return err
		}
		e.Points = append(e.Points, p)
	}
	s.Effects = append(s.Effects, e)
	return nil
}

// fitLaw is a phase-type law of a mean and a squared coefficient of variation.
func fitLaw(mean, scv float64) (*fit.Law, error) { return fit.Moments(mean, mean*mean*(1+scv)) }

func (r *run) serviceMean(s *Study) error {
	mean, scv := r.m.ServiceMoments()
	return r.varyParameter(s, Effect{Name: "Mean of service", X: "mean service time, times that of the model", Log: true, Note: twoMoments}, factors, func(f float64) (*control.Model, error) {
		l, err := fitLaw(mean*f, clampSCV(scv))
		if err != nil {
			return nil, err
		}
		return r.m.WithService(control.Service{Beta: l.Beta, S: l.S})
	})
}

// clampSCV keeps a law of two moments to few phases.
func clampSCV(scv float64) float64 { return max(scv, .1) }

func (r *run) serviceVariance(s *Study) error {
	mean, _ := r.m.ServiceMoments()
	return r.varyParameter(s, Effect{Name: "Variance of service", X: "squared coefficient of variation of service", Log: true, Note: twoMoments}, serviceSCVs, func(scv float64) (*control.Model, error) {
		l, err := fitLaw(mean, scv)
		if err != nil {
			return nil, err
		}
		return r.m.WithService(control.Service{Beta: l.Beta, S: l.S})
	})
}

func (r *run) staleMean(s *Study) error {
	mean, _ := r.m.StaleMoments()
	if math.IsInf(mean, 1) {
		return nil
	}
	e := Effect{Name: "Mean of staleness", X: "mean time to staleness, times that of the model", Log: true, Note: "staleness taken as exponential"}
	return r.varyParameter(s, e, factors, func(f float64) (*control.Model, error) {
		return r.m.WithObsolescence(&control.Obsolescence{Gamma: []float64{1}, G: [][]float64{{-1 / (mean * f)}}})
	})
}

func (r *run) staleVariance(s *Study) error {
	mean, _ := r.m.StaleMoments()
	if math.IsInf(mean, 1) || r.m.R < 2 {
		return nil
	}
	n := min(r.m.N, staleCapacity)
	e := Effect{Name: "Variance of staleness", X: "squared coefficient of variation of the time to staleness", Log: true, Note: fmt.Sprintf("capacity %d, modes 1 and %d only", n, r.m.R)}
	return r.varyParameter(s, e, staleSCVs, func(scv float64) (*control.Model, error) {
		l, err := fitLaw(mean, scv)
		if err != nil {
			return nil, err
		}
		m, err := r.m.WithCapacity(n)
		if err != nil {
			return nil, err
		}
		if m, err = m.Only(1, r.m.R); err != nil {
			return nil, err
		}
		return m.WithObsolescence(&control.Obsolescence{Gamma: l.Beta, G: l.S})
	})
}

// studyExponentialService takes service for exponential.
func (r *run) studyExponentialService(s *Study) error {
	mean, scv := r.m.ServiceMoments()
	if math.Abs(scv-1) < 1e-9 {
		return nil
	}
	if err := r.reportStep("exponential service"); err != nil {
		return err
	}
	m, err := r.m.WithService(control.Service{Beta: []float64{1}, S: [][]float64{{-1 / mean}}})
	if err != nil {
		return err
	}
	p, err := r.optimizeVariant(1, m)
	if err != nil {
		return err
	}
	policy, err := r.m.FromThresholds(p.Thresholds)
	if err != nil {
		return err
	}
	res, err := r.m.SolveBy(r.ctx, policy, r.c.Options)
	if err != nil {
		return err
	}
	s.Naive = &Naive{Thresholds: p.Thresholds, Cost: res.Cost, Loss: control.Gap(res.Cost, s.Best.Best.Cost)}
	return nil
}

// studyStarvationBound tightens a bound on starvation from what the optimum has.
func (r *run) studyStarvationBound(s *Study) error {
	for _, f := range boundFactors {
		if err := r.reportStep("bounds"); err != nil {
			return err
		}
		at := f * s.Best.Best.Measures.Starvation
		b, err := r.m.OptimizeBounded(r.ctx, []control.Bound{{Measure: "p_starvation", AtMost: at}})
		switch {
		case errors.Is(err, control.ErrInfeasible), errors.Is(err, control.ErrTooLarge):
			continue
		case err != nil:
			return err
		}
		s.Bounds = append(s.Bounds, b)
	}
	return nil
}

// studyQueueLaws keeps the law of the number of pages of the best and the fixed policies.
func (r *run) studyQueueLaws(s *Study) error {
	s.Laws = map[string][]float64{"best thresholds": s.Best.Best.Measures.QueueLength}
	for _, f := range s.Best.Fixed {
		p := make([]int, r.m.N+1)
		for i := range p {
			p[i] = f.Mode
		}
		res, err := r.m.SolveBy(r.ctx, p, r.c.Options)
		if err != nil {
			return err
		}
		s.Laws[fmt.Sprintf("always mode %d", f.Mode)] = res.QueueLength
	}
	return nil
}

// simulateOptima simulates the best policies.
func (r *run) simulateOptima(s *Study) error {
	if r.c.Simulate == 0 {
		return nil
	}
	policies := map[string][]int{"best thresholds": s.Best.Best.Policy}
	names := []string{"best thresholds"}
	if u := s.Best.Unrestricted; u.Gap > 0 {
		policies["any mode at any level"] = u.Policy
		names = append(names, "any mode at any level")
	}
	for _, name := range names {
		if err := r.reportStep("simulation of " + name); err != nil {
			return err
		}
		solved, err := r.m.SolveBy(r.ctx, policies[name], r.c.Options)
		if err != nil {
			return err
		}
		simulated, err := r.m.Simulate(r.ctx, policies[name], control.Simulation{Seed: r.c.Seed, Replications: 10, Pages: r.c.Simulate, WarmUp: -1})
		if err != nil {
			return err
		}
		s.Checks = append(s.Checks, Check{name, solved, simulated})
	}
	return nil
}
