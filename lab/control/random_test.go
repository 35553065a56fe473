package control

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/freshet/freshet/internal/rng"
)

// stiff draws rates over six decades, half of them zero.
type stiff struct{ *rand.Rand }

func (r stiff) rate() float64 {
	if r.IntN(2) == 0 {
		return 0
	}
	return math.Pow(10, 6*r.Float64()-3)
}

func (r stiff) phaseType(n int) ([]float64, [][]float64) {
	a, g, sum := make([]float64, n), make([][]float64, n), 0.0
	for i := range a {
		a[i] = 1 + float64(r.IntN(3))
		sum += a[i]
	}
	for i := range g {
		a[i] /= sum
		g[i] = make([]float64, n)
		for j := range g[i] {
			if j != i {
				g[i][j] = r.rate()
			}
			g[i][i] -= g[i][j]
		}
		g[i][i] -= r.rate()
	}
	return a, g
}

func (r stiff) spec() Spec {
	w, k := 1+r.IntN(2), 1+r.IntN(3)
	d := make([][][]float64, k+1)
	for i := range d {
		d[i] = make([][]float64, w)
		for a := range d[i] {
			d[i][a] = make([]float64, w)
		}
	}
	for a := range w {
		sum := 0.0
		for i := range d {
			for b := range w {
				if i > 0 || a != b {
					d[i][a][b] = r.rate()
					sum += d[i][a][b]
				}
			}
		}
		d[0][a][a] = -sum
	}
	beta, s := r.phaseType(1 + r.IntN(2))
	gamma, g := r.phaseType(2)
	return Spec{Capacity: 3 + r.IntN(3), Common: &Batches{d}, Thinning: []float64{.3, 1}, Service: &Service{beta, s}, Obsolescence: &Obsolescence{gamma, g}, Cost: someCost}
}

// On models of rates far apart the iteration may fail, but what it returns is
// right within ten times its error; and it seldom fails.
func TestStiffModels(t *testing.T) {
	t.Parallel()
	r := stiff{rng.New(5, t.Name())}
	solved, failed := 0, 0
	for solved < 60 {
		m, err := New(r.spec())
		if err != nil {
			continue
		}
		p := make([]int, m.N+1)
		for i := range p {
			p[i] = 1 + r.IntN(2)
		}
		want, err := m.SolveBy(t.Context(), p, Options{Method: Exact})
		if err != nil {
			continue // no long run, or no service
		}
		if want.Error > 1e-9 {
			t.Errorf("exact: error %g", want.Error)
		}
		solved++
		got, err := m.SolveBy(t.Context(), p, Options{Method: Iterative})
		if err != nil {
			failed++
			continue
		}
		if d := got.Distance(want); d > 1e-7 && d > 10*got.Error {
			t.Errorf("distance %g, stated error %g", d, got.Error)
		}
	}
	if failed > 10 {
		t.Errorf("the iteration failed on %d of %d models", failed, solved)
	}
	t.Logf("%d solved, the iteration failed on %d", solved, failed)
}
