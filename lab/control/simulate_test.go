package control

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/freshet/freshet/internal/rng"
)

// instances are the models that every method must agree on.
func instances() map[string]Spec {
	four := []float64{.3, .7, 1.1, 2}
	var modes []Batches
	for _, f := range four {
		modes = append(modes, mapArrivals(f))
	}
	single := Batches{[][][]float64{{{-1.1, .1}, {.05, -.25}}, {{.9, .1}, {.02, .18}}}}
	other := Batches{[][][]float64{{{-2, .5}, {1, -1.5}}, {{1.5, 0}, {0, .5}}}}
	m := map[string]Spec{
		"M/M/1/10":       {Capacity: 10, Modes: []Batches{poisson(.9)}, Service: exponential(1)},
		"M/M/1/1":        {Capacity: 1, Modes: []Batches{poisson(.9)}, Service: exponential(1)},
		"M/M/1/10+M":     {Capacity: 10, Modes: []Batches{poisson(1.4)}, Service: exponential(1), Obsolescence: staleLaws["exponential"]},
		"MX/M/1/7":       {Capacity: 7, Modes: []Batches{{[][][]float64{{{-.5}}, {{.2}}, {{.1}}, {{.05}}, {{.15}}}}}, Service: exponential(1.2)},
		"MAP/PH/1/6+M":   {Capacity: 6, Modes: []Batches{single}, Service: hyperService, Obsolescence: staleLaws["exponential"]},
		"one page, BMAP": {Capacity: 1, Modes: []Batches{mapArrivals(1)}, Service: coxService, Obsolescence: staleLaws["Erlang-2"]},
		"robots run":     {Capacity: 6, Robots: []Batches{single, other, poisson(.4)}, Idle: "run", Policy: []int{3, 3, 2, 2, 1, 1, 1}},
		"robots freeze":  {Capacity: 6, Robots: []Batches{single, other}, Idle: "freeze", Policy: []int{2, 2, 2, 1, 1, 1, 1}},
		"marked":         {Capacity: 6, Marked: &Marked{D0: [][]float64{{-3, .5}, {.3, -1}}, Robots: [][][][]float64{{{{1, 0}, {0, .2}}}, {{{.5, .2}, {0, .1}}, {{.5, .3}, {.2, .2}}}}}, Policy: []int{2, 2, 2, 1, 1, 1, 2}},
		"four modes":     {Capacity: 6, Modes: modes, Policy: []int{4, 4, 3, 2, 2, 1, 1}},
		"thinned":        {Capacity: 6, Common: ptr(mapArrivals(1)), Thinning: []float64{.2, .45, .8, 1}, Policy: []int{4, 4, 3, 2, 2, 1, 1}},
		"N=100":          {Capacity: 100, Modes: modes, Service: exponential(.5), Obsolescence: &Obsolescence{[]float64{1}, [][]float64{{-.01}}}, Policy: (&Model{N: 100}).fixedModePolicy(2)},
		"defective staleness": {
			Capacity: 5, Modes: []Batches{mapArrivals(1)}, Service: coxService,
			Obsolescence: &Obsolescence{[]float64{.4, .6}, [][]float64{{-1, 0}, {0, 0}}},
		},
	}
	for law, stale := range staleLaws {
		m[law] = Spec{Capacity: 6, Modes: modes, Service: hyperService, Obsolescence: stale, Policy: []int{4, 4, 3, 2, 2, 1, 1}}
	}
	for name, s := range m {
		if s.Service == nil {
			s.Service = hyperService
		}
		s.Cost = someCost
		m[name] = s
	}
	return m
}

// numbers lists the measures with the half widths.
func numbers(s *Simulated) map[string][2]float64 {
	out := map[string][2]float64{}
	r, h := reflect.ValueOf(s.Result), reflect.ValueOf(s.HalfWidth)
	for i := range h.NumField() {
		name := h.Type().Field(i).Name
		if v, ok := h.Field(i).Interface().(float64); ok {
			out[name] = [2]float64{r.FieldByName(name).Float(), v}
		}
	}
	for i, v := range s.HalfWidth.QueueLength {
		out[fmt.Sprint("p_", i)] = [2]float64{s.QueueLength[i], v}
	}
	return out
}

func TestSimulationAgainstSolver(t *testing.T) {
	t.Parallel()
	var within, all int
	t.Run("instances", func(t *testing.T) {
		results := make(chan [2]int, 100)
		t.Cleanup(func() {
			close(results)
			for r := range results {
				within, all = within+r[0], all+r[1]
			}
		})
		for name, s := range instances() {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				m := mustNew(t, s)
				want, err := m.Solve(t.Context(), m.Policy())
				if err != nil {
					t.Fatal(err)
				}
				got, err := m.Simulate(t.Context(), m.Policy(), Simulation{Seed: 7, Replications: 16, Pages: 12000, WarmUp: -1})
				if err != nil {
					t.Fatal(err)
				}
				exact := numbers(&Simulated{Result: want, HalfWidth: got.HalfWidth})
				in, n := 0, 0
				for k, v := range numbers(got) {
					d := math.Abs(v[0] - exact[k][0])
					// 16 replications: 95 % lie within 2.13 standard errors; none may lie beyond 5.5.
					if d > 5.5/2.131*v[1]+1e-6 && !(strings.HasPrefix(k, "p_") && exact[k][0] < 1e-4) {
						t.Errorf("%s: simulated %g ± %g, solved %g", k, v[0], v[1], exact[k][0])
					}
					if v[1] > 0 {
						n++
						if d <= v[1] {
							in++
						}
					}
				}
				if got.Error > .1 {
					t.Errorf("intervals are wide: %g", got.Error)
				}
				results <- [2]int{in, n}
			})
		}
	})
	if part := float64(within) / float64(all); part < .88 || part > .995 {
		t.Errorf("%d of %d intervals of 95 %% hold the solution", within, all)
	}
}

func TestSimulationIsReproducible(t *testing.T) {
	t.Parallel()
	s := instances()["Erlang-2"]
	m := mustNew(t, s)
	c := Simulation{Seed: 3, Replications: 4, Time: 500, WarmUp: .2}
	a, err := m.Simulate(t.Context(), s.Policy, c)
	if err != nil {
		t.Fatal(err)
	}
	b, err := m.Simulate(t.Context(), s.Policy, c)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(a, b) {
		t.Error("equal seeds, different results")
	}
	if math.Abs(a.Time-2000) > 1e-9 {
		t.Errorf("simulated %g, want 4 * 500", a.Time)
	}
	c.Seed = 4
	if b, err = m.Simulate(t.Context(), s.Policy, c); err != nil || a.Cost == b.Cost {
		t.Error("different seeds, equal results")
	}
}

func TestSimulationRefuses(t *testing.T) {
	t.Parallel()
	s := instances()["M/M/1/10"]
	m := mustNew(t, s)
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Simulate(done, m.Policy(), Simulation{Replications: 2, Time: 1e12}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for want, c := range map[string]Simulation{
		"needs 2 at least":             {Replications: 1, Time: 5},
		"positive time or a positive":  {Replications: 2},
		"positive time or a positive ": {Replications: 2, Time: 1, Pages: 1},
		"simulate longer":              {Replications: 2, Time: 1e-9},
	} {
		if _, err := m.Simulate(t.Context(), m.Policy(), c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// Pages whose staleness lies far ahead leave events behind that never happen:
// they must not pile up.
func TestCalendarIsBounded(t *testing.T) {
	t.Parallel()
	s := Spec{Capacity: 5, Modes: []Batches{poisson(1)}, Service: exponential(1), Obsolescence: &Obsolescence{[]float64{1}, [][]float64{{-1e-9}}}}
	m := mustNew(t, s)
	r := newSimulationRun(m, m.Policy(), m.phaseTransitions(), rngFor(t))
	for range 20000 {
		if err := r.stepUntil(math.Inf(1)); err != nil {
			t.Fatal(err)
		}
		if len(r.calendar) > 4*m.N+64 {
			t.Fatalf("%d events in the calendar", len(r.calendar))
		}
	}
}

func BenchmarkSimulate(b *testing.B) {
	s := instances()["Erlang-2"]
	m := mustNew(b, s)
	r := newSimulationRun(m, s.Policy, m.phaseTransitions(), rngFor(b))
	b.ReportAllocs()
	for b.Loop() {
		if err := r.stepUntil(math.Inf(1)); err != nil {
			b.Fatal(err)
		}
	}
}

func rngFor(t testing.TB) *rand.Rand { return rng.New(1, t.Name()) }
