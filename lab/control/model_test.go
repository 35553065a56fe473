package control

import (
	"fmt"
	"math"
	"testing"
)

// The instances against the brute force, and by the iterative method.
func TestInstances(t *testing.T) {
	t.Parallel()
	for name, s := range instances() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := mustNew(t, s)
			want := mustSolve(t, s)
			got, err := m.solveIteratively(t.Context(), m.Policy())
			if err != nil {
				t.Fatal(err)
			}
			same(t, got, want, 1e-9)
			if m.States() > 400 {
				return // the smaller ones of the laws are in TestAgainstBruteForce
			}
			p := plain{n: m.N, d: rowsOf(m), beta: s.Service.Beta, s: s.Service.S, gamma: []float64{1}, g: [][]float64{{0}}, policy: m.Policy()}
			if s.Obsolescence != nil {
				p.gamma, p.g = s.Obsolescence.Gamma, s.Obsolescence.G
			}
			same(t, want, p.solve(t), 1e-9)
		})
	}
}

// tuples numbers the phases of several robots, the last one counting fastest.
func tuples(robots []Batches) [][]int {
	out := [][]int{{}}
	for _, b := range robots {
		var next [][]int
		for _, t := range out {
			for a := range b.D[0] {
				next = append(next, append(append([]int(nil), t...), a))
			}
		}
		out = next
	}
	return out
}

// Robots of their own, by what one robot does at a time.
func TestModesOfRobots(t *testing.T) {
	t.Parallel()
	robots := []Batches{mapArrivals(1), poisson(.3), {[][][]float64{{{-2, .5, 0}, {1, -1.5, .25}, {0, 0, -1}}, {{1.5, 0, 0}, {0, .25, 0}, {.5, 0, .5}}}}}
	phases := tuples(robots)
	for _, idle := range []string{"run", "freeze"} {
		m := mustNew(t, Spec{Capacity: 2, Robots: robots, Idle: idle, Service: exponential(1)})
		if m.R != 3 || m.W != 6 || m.K != 3 {
			t.Fatalf("%d modes, %d phases, batches to %d", m.R, m.W, m.K)
		}
		for r := 1; r <= m.R; r++ {
			want := make([]mat, m.K+1)
			for k := range want {
				want[k] = zeroMatrix(m.W, m.W)
			}
			for x, from := range phases {
				for y, to := range phases {
					for l, b := range robots {
						others := true
						for i := range from {
							others = others && (i == l || from[i] == to[i])
						}
						if !others {
							continue
						}
						for k := range b.D {
							v := b.D[k][from[l]][to[l]]
							switch {
							case l < r: // active
								want[k].a[x*m.W+y] += v
							case idle == "run": // moves, its pages are thrown away
								want[0].a[x*m.W+y] += v
							}
						}
					}
				}
			}
			sameModes(t, fmt.Sprint(idle, r), m.d[r-1], want)
		}
	}
}

func sameModes(t *testing.T, name string, got, want []mat) {
	t.Helper()
	for k := range want {
		for i, v := range want[k].a {
			if math.Abs(got[k].a[i]-v) > 1e-12 {
				t.Errorf("%s: D_%d entry %d: %g, want %g", name, k, i, got[k].a[i], v)
			}
		}
	}
}

func TestThinnedAndMarkedModes(t *testing.T) {
	t.Parallel()
	b := mapArrivals(1)
	m := mustNew(t, Spec{Capacity: 2, Common: &b, Thinning: []float64{.25, 1}, Service: exponential(1)})
	for r, p := range []float64{.25, 1} {
		want := make([]mat, len(b.D))
		for k := range b.D {
			want[k] = fromRows(b.D[k]).scaleInPlace(p)
		}
		want[0] = fromRows(b.D[0])
		for k := 1; k < len(b.D); k++ {
			want[0].addInPlace(fromRows(b.D[k]).scaleInPlace(1 - p))
		}
		sameModes(t, fmt.Sprint("thinned by ", p), m.d[r], want)
	}
	mk := instances()["marked"].Marked
	m = mustNew(t, instances()["marked"])
	first := []mat{fromRows(mk.D0).addInPlace(fromRows(mk.Robots[1][0])).addInPlace(fromRows(mk.Robots[1][1])), fromRows(mk.Robots[0][0]), zeroMatrix(2, 2)}
	both := []mat{fromRows(mk.D0), fromRows(mk.Robots[0][0]).addInPlace(fromRows(mk.Robots[1][0])), fromRows(mk.Robots[1][1])}
	sameModes(t, "one marked robot", m.d[0], first)
	sameModes(t, "two marked robots", m.d[1], both)
}
