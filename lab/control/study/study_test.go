package study

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/freshet/freshet/lab/control"
)

// model is of middling load: both too few and too many robots cost.
func model(t *testing.T, capacity int, starvation float64) *control.Model {
	t.Helper()
	in := fmt.Sprintf(`{"capacity":%d,
"common":{"d":[[[-3.4,0.2],[0.1,-1.0]],[[1.6,0],[0,0.5]],[[0.9,0],[0,0.3]],[[0.7,0],[0,0.1]]]},"thinning":[0.25,0.5,1],
"service":{"beta":[0.1,0.9],"s":[[-0.5,0],[0,-3]]},"obsolescence":{"gamma":[1],"g":[[-0.05]]},
"cost":{"loss":1,"obsolete":1,"response":0.05,"starvation":%g,"robot":0.1}}`, capacity, starvation)
	m, err := control.Read(strings.NewReader(in))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func study(t *testing.T) *Study {
	t.Helper()
	s, err := Do(t.Context(), "small", model(t, 24, 3), Config{Simulate: 4000, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The facts that a right study shows of the optimum.
func TestStudyShowsTheOptimum(t *testing.T) {
	t.Parallel()
	s := study(t)
	t.Run("pairs", func(t *testing.T) {
		if len(s.Pairs) != 3 {
			t.Fatalf("%d pairs of three modes", len(s.Pairs))
		}
		for _, p := range s.Pairs {
			for _, b := range s.Best.ByModes {
				if fmt.Sprint(b.Modes) == fmt.Sprint([]int{p.Low, p.High}) && (b.Cost < p.Cost-1e-9 || b.Cost > p.Cost+1e-9 || b.Thresholds[0] != p.Threshold) {
					t.Errorf("modes %v: %g at %d, the optimiser found %g at %v", b.Modes, p.Cost, p.Threshold, b.Cost, b.Thresholds)
				}
			}
		}
	})
	t.Run("capacity", func(t *testing.T) {
		n := len(s.Capacity)
		if a, b := s.Capacity[n-2], s.Capacity[n-1]; b.X != 36 || a.Cost/b.Cost-1 > .01 || b.Thresholds[0] != a.Thresholds[0] {
			t.Errorf("capacity still matters: %+v, %+v", a, b)
		}
	})
	t.Run("bounds", func(t *testing.T) {
		if len(s.Bounds) < 3 {
			t.Fatalf("bounds: got %d, want 3 or more", len(s.Bounds))
		}
		for i := 1; i < len(s.Bounds); i++ {
			if a, b := s.Bounds[i-1], s.Bounds[i]; a.Best.Cost < b.Best.Cost-1e-12 || a.Multipliers[0] < b.Multipliers[0]-1e-9 {
				t.Errorf("a tighter bound is cheaper: %+v, %+v", a, b)
			}
		}
	})
	t.Run("exponential service misplaces", func(t *testing.T) {
		if s.Naive == nil || s.Naive.Loss < 0 || s.Naive.Cost < s.Best.Best.Cost-1e-9 {
			t.Errorf("got %+v, want a loss and no less than the optimal cost %g", s.Naive, s.Best.Best.Cost)
		}
	})
	t.Run("simulation", func(t *testing.T) {
		c := s.Checks[0]
		if d := c.Simulated.Cost - c.Solved.Cost; d > 3*c.Simulated.HalfWidth.Cost || d < -3*c.Simulated.HalfWidth.Cost {
			t.Errorf("simulated cost: got %g ± %g, want the solved %g", c.Simulated.Cost, c.Simulated.HalfWidth.Cost, c.Solved.Cost)
		}
	})
	var page bytes.Buffer
	if err := Page([]*Study{s}).Write(&page); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Cost against threshold", "profit of control", "multiplier", "Number of pages", "variance of staleness"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page has no %q", want)
		}
	}
}

// The facts that a right study shows of the effects of parameters.
func TestStudyShowsEffects(t *testing.T) {
	t.Parallel()
	s := study(t)
	effects := map[string][]Point{}
	for _, e := range s.Effects {
		effects[e.Name] = e.Points
	}
	t.Run("mean of service", func(t *testing.T) {
		p := effects["Mean of service"]
		most := 0
		for i := range p {
			if p[i].Profit > p[most].Profit {
				most = i
			}
		}
		if most == 0 || most == len(p)-1 || p[most].Profit < .1 || p[0].Profit > p[most].Profit/4 || p[len(p)-1].Profit > p[most].Profit/4 {
			t.Errorf("profit is not largest in between: %+v", p)
		}
	})
	// With dear starvation more variance of service first raises thresholds.
	cheap := &Study{}
	r := &run{ctx: t.Context(), m: model(t, 24, 1)}
	if err := r.serviceVariance(cheap); err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string][]Point{"Variance of service": cheap.Effects[0].Points, "Variance of staleness": effects["Variance of staleness"]} {
		t.Run(name, func(t *testing.T) {
			if p[0].X >= p[len(p)-1].X || p[0].Thresholds[len(p[0].Thresholds)-1] <= p[len(p)-1].Thresholds[len(p[0].Thresholds)-1] {
				t.Errorf("more variance does not lower the thresholds: %+v", p)
			}
		})
	}
}

// One mode, no staleness: what cannot be varied is left out.
func TestStudyOfLittle(t *testing.T) {
	t.Parallel()
	m, err := control.Read(strings.NewReader(`{"capacity":3,"modes":[{"d":[[[-1]],[[1]]]}],"service":{"beta":[1],"s":[[-2]]},"obsolescence":null,"cost":{"loss":1}}`))
	if err != nil {
		t.Fatal(err)
	}
	s, err := Do(t.Context(), "little", m, Config{})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Pairs) != 0 || len(s.Effects) != 2 || s.Naive != nil {
		t.Errorf("%+v", s)
	}
	if err := Page([]*Study{s}).Write(new(bytes.Buffer)); err != nil {
		t.Fatal(err)
	}
}
