package tune

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/freshet/freshet/lab/control"
)

// queue makes the log of a single server with Poisson arrivals.
func queue(r *rand.Rand, n int, rate, service float64) []Page {
	log := make([]Page, n)
	now, free := 0.0, 0.0
	for i := range log {
		now += r.ExpFloat64() / rate
		s := r.ExpFloat64() * service
		free = max(free, now) + s
		log[i] = Page{Arrived: now, Done: free, Seconds: s}
	}
	return log
}

// A log of M/M/1 gives its rates back, and the model's queue is the log's.
func TestMeasureAndModel(t *testing.T) {
	t.Parallel()
	log := queue(rand.New(rand.NewPCG(1, 2)), 40_000, .6, 1)
	m := Measure(log, Config{Capacity: 5, Stale: 4})
	if math.Abs(m.Rate-.6) > .02 || math.Abs(m.Service-1) > .02 || math.Abs(m.Starvation-.4) > .02 || math.Abs(m.Response-2.5) > .25 {
		t.Errorf("%+v, want rate .6, service 1, starvation .4, response 2.5", m)
	}
	// P(at least 5 present) = .6^5; E[1 - e^{-W/4}] with P(W > w) = .6 e^{-.4 w} is .6 (1/4)/(1/4 + .4).
	if want := math.Pow(.6, 5); math.Abs(m.Lost-want) > .02 || math.Abs(m.Stale-.6*.25/.65) > .02 {
		t.Errorf("lost %g, stale %g; want %g, %g", m.Lost, m.Stale, want, .6*.25/.65)
	}
	p, err := Propose(t.Context(), log, Config{Agents: []int{1, 4}, Cost: control.Cost{Loss: 1, Response: .1, Starvation: 1}})
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Without; math.Abs(got.SojournServed-2.5) > .3 || math.Abs(got.Starvation-.4) > .03 {
		t.Errorf("model without control: response %g, starvation %g", got.SojournServed, got.Starvation)
	}
}

// Where the indexer is slower than the robots, control pays: the proposal costs
// less than any fixed number of agents, by the model and by simulation, and its
// setting is one that the throttle takes.
func TestPropose(t *testing.T) {
	t.Parallel()
	log := queue(rand.New(rand.NewPCG(3, 4)), 5000, 2, 1)
	c := Config{Agents: []int{1, 2, 4}, Capacity: 40, Stale: 30, Cost: control.Cost{Loss: 2, Obsolete: 2, Response: .1, Starvation: 3}}
	p, err := Propose(t.Context(), log, c)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range p.Optimum.Fixed {
		if p.Expected.Cost > f.Cost*(1+1e-9) {
			t.Errorf("control costs %g, %d agents always %g", p.Expected.Cost, c.Agents[f.Mode-1], f.Cost)
		}
	}
	if p.Expected.Cost >= p.Without.Cost || p.Expected.Starvation > .6 {
		t.Errorf("with control %+v, without %+v", p.Expected, p.Without)
	}
	if len(p.Agents) != len(p.Thresholds)+1 || !slices.IsSorted(p.Thresholds) || !slices.IsSorted(p.Agents) {
		t.Errorf("thresholds %v, agents %v", p.Thresholds, p.Agents)
	}
	m, err := control.New(p.Model)
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.Simulate(t.Context(), p.Optimum.Best.Policy, control.Simulation{Pages: 100_000, Replications: 4, WarmUp: -1, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(s.Cost-p.Expected.Cost) > max(.05*p.Expected.Cost, 4*s.HalfWidth.Cost) {
		t.Errorf("cost %g by the model, %g by simulation (+- %g)", p.Expected.Cost, s.Cost, s.HalfWidth.Cost)
	}
}

func TestProposeErrors(t *testing.T) {
	t.Parallel()
	log := queue(rand.New(rand.NewPCG(5, 6)), 300, 1, 1)
	if _, err := Propose(t.Context(), log[:50], Config{Agents: []int{1, 2}}); !errors.Is(err, ErrShort) {
		t.Errorf("short log: %v", err)
	}
	for name, c := range map[string]Config{
		"one number": {Agents: []int{4}}, "falling": {Agents: []int{4, 2}}, "capacity": {Agents: []int{1, 2}, Capacity: 1}, "stale": {Agents: []int{1, 2}, Stale: math.NaN()},
	} {
		if _, err := Propose(t.Context(), log, c); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	bad := slices.Clone(log)
	bad[7].Seconds = math.Inf(1)
	if _, err := Propose(t.Context(), bad, Config{Agents: []int{1, 2}}); err == nil {
		t.Error("an endless service was taken")
	}
}
