package control

import (
	"math"
	"strings"
	"testing"
)

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	// Each case is a sound model with one thing replaced.
	const sound = `{"capacity":3,"modes":[{"d":[[[-3,1],[0,-2]],[[2,0],[1,1]]]},{"d":[[[-3,1],[0,-2]],[[1,0],[0,1]],[[1,0],[1,0]]]}],` +
		`"service":{"beta":[0.5,0.5],"s":[[-2,1],[0,-1]]},"obsolescence":{"gamma":[1,0],"g":[[-1,1],[0,-1]]},"thresholds":[1],` +
		`"cost":{"loss":1,"obsolete":1,"response":1,"starvation":1,"robot":1}}`
	if _, err := Read(strings.NewReader(sound)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, with, want string }{
		{`"capacity":3`, `"capacity":0`, "capacity: 0 is not in 1..100000"},
		{`"capacity":3`, `"capacity":100001`, "capacity: 100001 is not in"},
		{`"capacity":3`, `"capacity":2.5`, "capacity: a number 2.5 does not belong here"},
		{`"capacity":3,`, ``, "capacity: 0 is not in"},
		{`"modes":[`, `"models":[`, `unknown field "models"`},
		{`"modes":[{`, `"modes":[],"x":[{`, `unknown field "x"`},
		{`[0,-2]],[[2,0],[1,1]]`, `[0,-2.1]],[[2,0],[1,1]]`, "modes[0].d[0][1][1]: -2.1, want -2 so that the row sums to 0"},
		{`[[-3,1],[0,-2]],[[2,0],[1,1]]`, `[[-1,-1],[0,-2]],[[2,0],[1,1]]`, "modes[0].d[0][0][1]: rate -1 is negative"},
		{`[[2,0],[1,1]]`, `[[2,0],[3,-1]]`, "modes[0].d[1][1][1]: rate -1 is negative"},
		{`[[2,0],[1,1]]`, `[[2,0]]`, "modes[0].d[1]: 1 rows, want 2"},
		{`[[2,0],[1,1]]`, `[[2,0],[1,1,0]]`, "modes[0].d[1][1]: 3 entries, want 2"},
		{`,[[2,0],[1,1]]`, ``, "modes[0].d: 1 matrices, want D_0 and at least D_1"},
		{`[[[-3,1],[0,-2]],[[1,0],[0,1]],[[1,0],[1,0]]]`, `[[[-1]],[[1]]]`, "modes[1].d[0]: 1 phases, modes[0] has 2; all modes share the phases"},
		{`"modes":[{"d":`, `"modes":[{"d":[]},{"d":`, "modes[0].d: 0 matrices"},
		{`"thresholds":[1]`, `"idle":"run"`, "idle: goes with robots only"},
		{`"thresholds":[1]`, `"thinning":[1]`, "thinning: goes with common only"},
		{`"thresholds":[1]`, `"common":{"d":[[[-1]],[[1]]]}`, "modes: give one of modes, robots, common, marked"},
		{`"thresholds":[1]`, `"thresholds":[1,2]`, "thresholds: 2 entries, want 1 for 2 modes"},
		{`"thresholds":[1]`, `"thresholds":[4]`, "thresholds[0]: 4 is not in -1..3"},
		{`"thresholds":[1]`, `"thresholds":[-2]`, "thresholds[0]: -2 is not in -1..3"},
		{`"thresholds":[1]`, `"thresholds":[1],"policy":[1,1,1,1]`, "policy and thresholds: give one of them"},
		{`"thresholds":[1]`, `"policy":[1,1,1]`, "policy: 3 entries, want 4: one for each of 0..3 pages"},
		{`"thresholds":[1]`, `"policy":[1,1,3,1]`, "policy[2]: no mode 3; there are 1..2"},
		{`"beta":[0.5,0.5]`, `"beta":[0.5,0.4]`, "service.beta: the sum is 0.9, not 1"},
		{`"beta":[0.5,0.5]`, `"beta":[1.5,-0.5]`, "service.beta[0]: 1.5 is no probability"},
		{`"beta":[0.5,0.5]`, `"beta":[]`, "service.beta: missing or empty"},
		{`"beta":[0.5,0.5]`, `"beta":[1]`, "service.s: 2 rows, want 1"},
		{`"s":[[-2,1],[0,-1]]`, `"s":[[-2,3],[0,-1]]`, "service.s[0]: the row sums to 1, more than 0"},
		{`"s":[[-2,1],[0,-1]]`, `"s":[[2,1],[0,-1]]`, "service.s[0][0]: 2 on the diagonal is positive"},
		{`"s":[[-2,1],[0,-1]]`, `"s":[[-2,-1],[0,-1]]`, "service.s[0][1]: rate -1 is negative"},
		{`"s":[[-2,1],[0,-1]]`, `"s":[[-2,1],[1,-1]]`, ""},
		{`"s":[[-2,1],[0,-1]]`, `"s":[[-1,1],[1,-1]]`, "service.s[0]: service never ends from this phase"},
		{`"service":{"beta":[0.5,0.5],"s":[[-2,1],[0,-1]]},`, ``, "service: missing"},
		{`"g":[[-1,1],[0,-1]]`, `"g":[[-1,1]]`, "obsolescence.g: 1 rows, want 2"},
		{`"g":[[-1,1],[0,-1]]`, `"g":[[-1,"a"],[0,-1]]`, "obsolescence.g: a string does not belong here"},
		{`"gamma":[1,0]`, `"gamma":[0.5,0]`, "obsolescence.gamma: the sum is 0.5, not 1"},
		{`"robot":1`, `"robot":-1`, "cost.robot: -1 is negative"},
		{`"loss":1`, `"loss":1e999`, "cost.loss: a number 1e999 does not belong here"},
		{`"loss":1`, `"loss":1e61`, "cost.loss: 1e+61 is more than 1e+60"},
		{`"s":[[-2,1]`, `"s":[[-2,1e-61]`, "service.s[0][1]: 1e-61 is outside 1e-60 to 1e+60: choose another unit of time"},
		{`"loss":1`, `"lost":1`, `unknown field "lost"`},
		{`"robot":1}}`, `"robot":1}`, "the model's object is cut short"},
		{`"robot":1}}`, `"robot":1}} x`, "something follows"},
		{`{"capacity":3`, `{"capacity":3 3`, "line 1 column"},
		{`-3,1],[0,-2]],[[2,0],[1,1]`, `-1e308,1e308],[0,-2]],[[1e308,0],[1,1]`, "modes[0].d[0][0][0]: -1e+308 is outside 1e-60 to 1e+60: choose another unit of time"},
	} {
		in := strings.Replace(sound, c.old, c.with, 1)
		if in == sound {
			t.Errorf("%s is not in the sound model", c.old)
			continue
		}
		_, err := Read(strings.NewReader(in))
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.with, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %s", c.with, err, c.want)
		}
	}
}

func TestNewRefusesOtherWays(t *testing.T) {
	t.Parallel()
	b := mapArrivals(1)
	for want, s := range map[string]Spec{
		`idle: "" is neither run nor freeze`:               {Robots: []Batches{b}},
		"robots: empty":                                    {Robots: []Batches{}, Idle: "run"},
		"robots[9].d: 1024 phases of the robots together":  {Robots: []Batches{b, b, b, b, b, b, b, b, b, b}, Idle: "run"},
		"robots[0].d[0][0][0]: -2, want -1":                {Robots: []Batches{{[][][]float64{{{-2}}, {{1}}}}}, Idle: "run"},
		"thinning: missing or empty":                       {Common: &b},
		"thinning[1]: 1.5 is not in 0..1":                  {Common: &b, Thinning: []float64{1, 1.5}},
		"thinning[0]: NaN is not in 0..1":                  {Common: &b, Thinning: []float64{math.NaN()}},
		"marked.robots: missing or empty":                  {Marked: &Marked{D0: [][]float64{{-1}}}},
		"marked.d0: missing or empty":                      {Marked: &Marked{Robots: [][][][]float64{{{{1}}}}}},
		"marked.robots[0][0]: 2 rows, want 1":              {Marked: &Marked{D0: [][]float64{{-1}}, Robots: [][][][]float64{{{{1}, {1}}}}}},
		"marked.d0[0][0]: -1, want -2":                     {Marked: &Marked{D0: [][]float64{{-1}}, Robots: [][][][]float64{{{{1}}}, {{{1}}}}}},
		"modes[0].d[1][0][0]: not a finite number":         {Modes: []Batches{{[][][]float64{{{-1}}, {{math.Inf(1)}}}}}},
		"modes: empty":                                     {Modes: []Batches{}},
		"modes: give one of modes, robots, common, marked": {},
		"more than 5e+07":                                  {Common: &Batches{make([][][]float64, 60001)}, Thinning: make([]float64, 1000)},
	} {
		if s.Common != nil && len(s.Common.D) > 4 {
			for k := range s.Common.D {
				s.Common.D[k] = [][]float64{{1}}
			}
			s.Common.D[0] = [][]float64{{-60000}}
		}
		s.Capacity, s.Service = 2, exponential(1)
		if _, err := New(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestSolveRefuses(t *testing.T) {
	t.Parallel()
	apart := Batches{[][][]float64{{{-1, 0}, {0, -2}}, {{1, 0}, {0, 2}}}}
	together := mapArrivals(1)
	silent := Batches{[][][]float64{{{-1, 1}, {1, -1}}, {{0, 0}, {0, 0}}}}
	m := mustNew(t, Spec{Capacity: 2, Modes: []Batches{apart, silent, together}, Service: exponential(1)})
	for want, p := range map[string][]int{
		"modes [1] that it uses the arrivals are reducible": {1, 1, 1},
		"policy: 2 entries, want 3":                         {1, 1},
		"policy[0]: no mode 4":                              {4, 1, 1},
		"":                                                  {3, 1, 1},
	} {
		_, err := m.Solve(t.Context(), p)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v: %v, want %s", p, err, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{
		`{"capacity":2,"modes":[{"d":[[[-2]],[[2]]]}],"service":{"beta":[1],"s":[[-4]]},"obsolescence":null,"cost":{"loss":10}}`,
		`{"capacity":3,"modes":[{"d":[[[-3,1],[0,-2]],[[2,0],[1,1]]]},{"d":[[[-3,1],[0,-2]],[[1,0],[0,1]],[[1,0],[1,0]]]}],"service":{"beta":[0.5,0.5],"s":[[-2,1],[0,-1]]},"obsolescence":{"gamma":[1,0],"g":[[-1,1],[0,-1]]},"thresholds":[1]}`,
		`{"capacity":2,"robots":[{"d":[[[-1]],[[1]]]},{"d":[[[-1]],[[1]]]}],"idle":"freeze","service":{"beta":[1],"s":[[-1]]},"policy":[2,1,1]}`,
		`{"capacity":2,"common":{"d":[[[-1]],[[1]]]},"thinning":[0.2,1],"service":{"beta":[1],"s":[[-1e-300]]},"policy":[2,1,1]}`,
		`{"capacity":2,"marked":{"d0":[[-2]],"robots":[[[[1]]],[[[1]]]]},"service":{"beta":[1],"s":[[-1e300]]},"policy":[2,1,1]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Read(strings.NewReader(string(b)))
		if err != nil {
			return
		}
		if m.Policy() == nil || m.N > 4 || m.States() > 300 || m.K > 10 {
			return
		}
		r, err := m.Solve(t.Context(), m.Policy())
		if err != nil {
			return
		}
		for _, p := range append([]float64{r.Loss, r.Obsolete, r.Success, r.Starvation}, r.QueueLength...) {
			if !(p >= -1e-9 && p <= 1+1e-9) {
				t.Errorf("probability %g in %+v", p, r)
			}
		}
	})
}
