// Package tune turns the log of a running robot and its indexer into thresholds
// for the throttle: it fits arrivals and service of the pages that were indexed,
// builds the queueing model of lab/control, and optimises it.
//
// The arrivals of the log are taken for those of all agents; with fewer agents
// each batch of them comes with the share of agents that are active (the thinned
// process of docs/robot-control.md). A log that was made under control, with
// fewer agents than the limit, says too little: turn the throttle off while
// logging.
package tune

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/freshet/freshet/lab/control"
	"github.com/freshet/freshet/lab/control/fit"
)

// Page is one line of the log: times in seconds since any moment.
type Page struct {
	Arrived float64 // when it was fetched
	Done    float64 // when it was searchable
	Seconds float64 // that the indexer worked on it
}

// Config says what to build of a log. Zero values mean the defaults.
type Config struct {
	Agents   []int   // numbers of active agents to choose from, fewest first
	Capacity int     // most pages in the queue of the model; default 100
	Order    int     // phases of arrivals and service at most; default 3
	Stale    float64 // mean seconds until a waiting page is stale; 0 is never
	Cost     control.Cost
	MaxBatch int // default 16
}

// Least is the smallest log that is fitted.
const Least = 200

// ErrShort is the error of a log with too few pages.
var ErrShort = errors.New("too few pages")

// Measured is what the log itself says of the time that it covers.
type Measured struct {
	Pages      int     `json:"pages"`
	Seconds    float64 `json:"seconds"`
	Rate       float64 `json:"arrival_rate"`    // pages a second
	Service    float64 `json:"service_seconds"` // mean
	Load       float64 `json:"load"`            // share of time that the indexer worked
	Starvation float64 `json:"starvation"`      // 1 - load, at least 0
	Response   float64 `json:"response"`        // mean seconds from fetched to searchable
	Queue      float64 `json:"queue"`           // mean pages waiting or in service, by Little's law
	// Lost is the share of pages that a queue of the model's capacity would have
	// had no room for; Stale the share that went stale waiting, in expectation.
	Lost  float64 `json:"lost"`
	Stale float64 `json:"stale"`
	Cost  float64 `json:"cost"` // as the model counts it, but for robots
}

// Measure reads off a log, with the capacity, staleness and costs of a model.
func Measure(log []Page, c Config) Measured {
	if len(log) == 0 {
		return Measured{}
	}
	m := Measured{Pages: len(log)}
	first, last := math.Inf(1), math.Inf(-1)
	for _, p := range log {
		first, last = min(first, p.Arrived), max(last, p.Done)
		m.Service += p.Seconds
		m.Response += p.Done - p.Arrived
	}
	n := float64(len(log))
	if m.Seconds = last - first; m.Seconds > 0 {
		m.Load = m.Service / m.Seconds
		m.Rate = n / m.Seconds
	}
	m.Starvation = max(0, 1-m.Load)
	m.Service /= n
	m.Response /= n
	m.Queue = m.Rate * m.Response
	m.Lost, m.Stale = waitingOutcomes(log, c)
	m.Cost = m.Rate*(c.Cost.Loss*m.Lost+c.Cost.Obsolete*m.Stale) + c.Cost.Response*m.Response + c.Cost.Starvation*m.Starvation
	return m
}

// waitingOutcomes goes through arrivals and departures in order of time.
func waitingOutcomes(log []Page, c Config) (lost, stale float64) {
	arrived, done := make([]float64, len(log)), make([]float64, len(log))
	for i, p := range log {
		arrived[i], done[i] = p.Arrived, p.Done
		if wait := p.Done - p.Seconds - p.Arrived; c.Stale > 0 && wait > 0 {
			stale -= math.Expm1(-wait / c.Stale)
		}
	}
	slices.Sort(arrived)
	slices.Sort(done)
	gone := 0
	for i, at := range arrived {
		for gone < len(done) && done[gone] <= at {
			gone++
		}
		if c.Capacity > 0 && i-gone >= c.Capacity {
			lost++
		}
	}
	n := float64(len(log))
	return lost / n, stale / n
}

// Proposal is the outcome.
type Proposal struct {
	Log      Measured         `json:"log"`
	Model    control.Spec     `json:"model"`
	Optimum  *control.Optimum `json:"optimum"`
	Expected control.Result   `json:"expected"` // under the proposed thresholds
	Without  control.Result   `json:"without"`  // all agents at any length
	// Thresholds and Agents are the setting of the throttle.
	Thresholds []int    `json:"thresholds"`
	Agents     []int    `json:"agents"`
	Words      []string `json:"words"`
}

// Propose fits and optimises.
func Propose(ctx context.Context, log []Page, c Config) (*Proposal, error) {
	if err := c.checkAndDefault(); err != nil {
		return nil, err
	}
	if len(log) < Least {
		return nil, fmt.Errorf("%w: %d in the log, at least %d are needed", ErrShort, len(log), Least)
	}
	arrivals := make([]float64, len(log))
	service := make([]float64, 0, len(log))
	for i, p := range log {
		if math.IsNaN(p.Arrived) || math.IsInf(p.Arrived, 0) || !(p.Seconds >= 0) || math.IsInf(p.Seconds, 0) {
			return nil, fmt.Errorf("page %d of the log: arrived %g, served in %g s", i, p.Arrived, p.Seconds)
		}
		arrivals[i] = p.Arrived
		if p.Seconds > 0 {
			service = append(service, p.Seconds)
		}
	}
	slices.Sort(arrivals)
	process, err := fit.FitArrivals(ctx, fit.Epochs(arrivals), fit.ArrivalOptions{Regimes: 2, Order: c.Order, MaxBatch: c.MaxBatch})
	if err != nil {
		return nil, fmt.Errorf("fit arrivals: %w", err)
	}
	sample, err := fit.NewSample(service)
	if err != nil {
		return nil, fmt.Errorf("fit service: %w", err)
	}
	law, err := fit.FitService(ctx, sample, fit.ServiceOptions{Branches: 2, Order: c.Order})
	if err != nil {
		return nil, fmt.Errorf("fit service: %w", err)
	}
	p := &Proposal{Log: Measure(log, c), Words: append(slices.Clone(process.Words), law.Words...)}
	p.Model = c.thinnedModelSpec(process.D, law.PH)
	return p, p.optimizeThresholds(ctx, c)
}

func (c *Config) checkAndDefault() error {
	if c.Capacity == 0 {
		c.Capacity = 100
	}
	if c.Order == 0 {
		c.Order = 3
	}
	if c.MaxBatch == 0 {
		c.MaxBatch = 16
	}
	switch {
	case len(c.Agents) < 2 || !slices.IsSorted(c.Agents) || c.Agents[0] < 0 || c.Agents[len(c.Agents)-1] < 1:
		return fmt.Errorf("agents %v: at least two numbers to choose from, rising, none negative", c.Agents)
	case c.Capacity < 2 || c.Order < 1 || c.Order > 8 || c.MaxBatch < 1:
		return fmt.Errorf("capacity %d, order %d, batches of %d: a capacity of 2 and more, an order of 1 to 8, batches of 1 and more", c.Capacity, c.Order, c.MaxBatch)
	case !(c.Stale >= 0) || math.IsInf(c.Stale, 0):
		return fmt.Errorf("pages go stale after %g s: a number from 0 up", c.Stale)
	}
	return nil
}

// thinnedModelSpec builds the model: the common process thinned by the share of agents.
func (c *Config) thinnedModelSpec(d [][][]float64, service fit.PH) control.Spec {
	most := float64(c.Agents[len(c.Agents)-1])
	s := control.Spec{
		Capacity: c.Capacity, Common: &control.Batches{D: d}, Cost: c.Cost,
		Service: &control.Service{Beta: service.Beta, S: service.S},
	}
	for _, n := range c.Agents {
		s.Thinning = append(s.Thinning, float64(n)/most)
	}
	if c.Stale > 0 {
		s.Obsolescence = &control.Obsolescence{Gamma: []float64{1}, G: [][]float64{{-1 / c.Stale}}}
	}
	return s
}

// optimizeThresholds finds the thresholds and what they are worth.
func (p *Proposal) optimizeThresholds(ctx context.Context, c Config) error {
	m, err := control.New(p.Model)
	if err != nil {
		return fmt.Errorf("model: %w", err)
	}
	if p.Optimum, err = m.Optimize(ctx, control.Options{}); err != nil {
		return fmt.Errorf("optimise: %w", err)
	}
	best := p.Optimum.Best
	if p.Expected, err = m.Solve(ctx, best.Policy); err != nil {
		return err
	}
	all := make([]int, m.N+1)
	for i := range all {
		all[i] = m.R
	}
	if p.Without, err = m.Solve(ctx, all); err != nil {
		return err
	}
	p.Thresholds, p.Agents = throttleSetting(best.Policy, c.Agents)
	return nil
}

// throttleSetting translates a policy (modes by pages present) for the throttle, which
// knows thresholds between the numbers of agents, fewest first.
func throttleSetting(policy, agents []int) (thresholds, used []int) {
	for i := 1; i < len(policy); i++ {
		if policy[i] != policy[i-1] {
			thresholds = append(thresholds, i-1)
			used = append(used, agents[policy[i-1]-1])
		}
	}
	used = append(used, agents[policy[len(policy)-1]-1])
	slices.Reverse(used)
	return thresholds, used
}
