package control

import (
	"fmt"
	"math"
	"testing"

	"github.com/freshet/freshet/internal/rng"
)

// Every assignment of modes to states is solved by the brute force.
func TestPhaseAwareAgainstAllPolicies(t *testing.T) {
	t.Parallel()
	arrivals := Batches{[][][]float64{{{-4, .1}, {.05, -.25}}, {{2.9, 0}, {0, .2}}, {{1, 0}, {0, 0}}}}
	for name, s := range map[string]Spec{
		"average":  {Capacity: 2, Common: &arrivals, Thinning: []float64{.2, 1}, Service: hyperService, Cost: Cost{Loss: 3, Obsolete: 2, Starvation: 4, Robot: .2}, Obsolescence: staleLaws["exponential"]},
		"response": {Capacity: 2, Common: &arrivals, Thinning: []float64{.2, 1}, Service: hyperService, Cost: Cost{Loss: 1, Response: 5, Starvation: 4, Robot: .2}},
		"three":    {Capacity: 2, Common: &arrivals, Thinning: []float64{.2, .6, 1}, Service: exponential(1), Cost: Cost{Loss: 3, Response: .5, Starvation: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := mustNew(t, s)
			got, err := m.PhaseAware(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			index := map[string]int{}
			for a := range m.W {
				index[place{a, -1, nil}.key()] = len(index)
			}
			for i := 1; i <= m.N; i++ {
				for a := range m.W {
					for b := range m.M {
						index[place{a, b, make([]int, i-1)}.key()] = len(index)
					}
				}
			}
			n := len(index)
			modes := make([]int, n)
			p := plain{n: m.N, d: rowsOf(m), beta: s.Service.Beta, s: s.Service.S, gamma: []float64{1}, g: [][]float64{{0}}}
			if s.Obsolescence != nil {
				p.g = s.Obsolescence.G
			}
			p.aware = func(q place) int { return 1 + modes[index[place{q.a, q.s, make([]int, len(q.q))}.key()]] }
			cost := func() float64 { return s.Cost.costOfResult(p.solve(t)) }
			best := math.Inf(1)
			for {
				best = min(best, cost())
				i := 0
				for i < n && modes[i] == m.R-1 {
					modes[i] = 0
					i++
				}
				if i == n {
					break
				}
				modes[i]++
			}
			near(t, "cost", got.Cost, best, 1e-9)
			at := 0
			for _, row := range got.Policy {
				for _, r := range row {
					modes[at] = r - 1
					at++
				}
			}
			near(t, fmt.Sprint("cost of the policy ", got.Policy), cost(), best, 1e-9)
		})
	}
}

// With staleness of two phases: random modes of all states against the brute
// force, which numbers its states in its own way.
func TestPhaseAwareEvaluation(t *testing.T) {
	t.Parallel()
	stale := staleLaws["Erlang-2"]
	s := optimisable(3, stale, hyperService, false)
	m := mustNew(t, s)
	full, err := newSolver(m)
	if err != nil {
		t.Fatal(err)
	}
	r := rng.New(3, "modes")
	for range 5 {
		h := &howard{solver: full.projectedSolver(m.Cost.accrualWeights())}
		h.setPolicyModes(m.fixedModePolicy(1))
		for _, row := range h.mode {
			for x := range row {
				row[x] = r.IntN(m.R)
			}
		}
		p := plain{n: m.N, d: rowsOf(m), beta: s.Service.Beta, s: s.Service.S, gamma: stale.Gamma, g: stale.G}
		p.aware = func(q place) int {
			if q.s < 0 {
				return 1 + h.mode[0][q.a]
			}
			x := q.a*m.M + q.s
			for _, v := range q.q {
				x = x*m.Q + v
			}
			return 1 + h.mode[1+len(q.q)][x]
		}
		near(t, "cost", costOf(h.evaluateModes()), s.Cost.costOfResult(p.solve(t)), 1e-9)
	}
}
