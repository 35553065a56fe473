package rank

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"pgregory.net/rapid"

	"github.com/freshet/freshet/internal/rng"
)

// lists is a graph in memory.
type lists struct{ out, in [][]uint32 }

func graph(n int, links [][2]uint32) *lists {
	g := &lists{make([][]uint32, n), make([][]uint32, n)}
	for _, l := range links {
		g.out[l[0]] = append(g.out[l[0]], l[1])
		g.in[l[1]] = append(g.in[l[1]], l[0])
	}
	return g
}

func (g *lists) Nodes() int            { return len(g.out) }
func (g *lists) Out(u uint32) []uint32 { return g.out[u] }
func (g *lists) In(u uint32) []uint32  { return g.in[u] }

func ring(n uint32) (links [][2]uint32) {
	for u := range n {
		links = append(links, [2]uint32{u, (u + 1) % n})
	}
	return links
}

// star links every leaf to page 0, which links to all of them if back.
func star(n uint32, back bool) (links [][2]uint32) {
	for u := uint32(1); u < n; u++ {
		links = append(links, [2]uint32{u, 0})
		if back {
			links = append(links, [2]uint32{0, u})
		}
	}
	return links
}

// Closed forms: on a ring all ranks are equal; in a star with back links the
// centre has (1+d(n-1))/(n(1+d)); without, x = (1-d+d c)/n each for the leaves
// and c = x + d (n-1) x for the centre, whose own rank is handed to all.
func TestPageRankClosedForms(t *testing.T) {
	t.Parallel()
	const d, n = .85, 20
	leaf := 1 / (n + d*(n-1))
	for _, c := range []struct {
		name   string
		links  [][2]uint32
		centre float64
	}{
		{"ring", ring(n), 1. / n},
		{"no links", nil, 1. / n},
		{"star with back links", star(n, true), (1 + d*(n-1)) / (n * (1 + d))},
		{"star", star(n, false), leaf * (1 + d*(n-1))},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, err := PageRank(context.Background(), graph(n, c.links), Options{Tolerance: 1e-13})
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(r.Ranks[0]-c.centre) > 1e-12 || math.Abs(r.Ranks[5]-(1-c.centre)/(n-1)) > 1e-12 {
				t.Errorf("ranks %g, %g; want %g at the centre", r.Ranks[0], r.Ranks[5], c.centre)
			}
		})
	}
}

func drawGraph(t *rapid.T, most int) *lists {
	n := rapid.IntRange(1, most).Draw(t, "n")
	end := rapid.Uint32Range(0, uint32(n-1))
	var links [][2]uint32
	for range rapid.IntRange(0, 4*n).Draw(t, "links") {
		links = append(links, [2]uint32{end.Draw(t, "u"), end.Draw(t, "v")})
	}
	return graph(n, links)
}

// An independent way: solve the linear system with gonum, with jumps of unequal
// weight and links that occur twice.
func TestPageRankSolvesTheSystem(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t, 20)
		n := g.Nodes()
		d := rapid.Float64Range(.1, .95).Draw(t, "damping")
		jump := make([]float64, n)
		var sum float64
		for u := range jump {
			jump[u] = 1 + float64(rapid.IntRange(0, 3).Draw(t, "jump"))
			sum += jump[u]
		}
		a, b := mat.NewDense(n, n, nil), mat.NewVecDense(n, nil)
		for u := range n {
			a.Set(u, u, 1)
			b.SetVec(u, (1-d)*jump[u]/sum)
		}
		for u, out := range g.out {
			for _, v := range out {
				a.Set(int(v), u, a.At(int(v), u)-d/float64(len(out)))
			}
			for v := range n {
				if len(out) == 0 {
					a.Set(v, u, a.At(v, u)-d*jump[v]/sum)
				}
			}
		}
		var want mat.VecDense
		if err := want.SolveVec(a, b); err != nil {
			t.Skip(err)
		}
		r, err := PageRank(context.Background(), g, Options{Damping: d, Jump: jump, Tolerance: 1e-6})
		if err != nil {
			t.Fatal(err)
		}
		var wrong, total float64
		for u, x := range r.Ranks {
			wrong += math.Abs(x - want.AtVec(u))
			total += x
		}
		if wrong > r.Bound()+1e-10 || math.Abs(total-1) > 1e-9 || r.Residual >= 1e-6 {
			t.Fatalf("off by %g, bound %g; sum %g, residual %g", wrong, r.Bound(), total, r.Residual)
		}
	})
}

func TestPageRankIsTheSameForAnyWorkers(t *testing.T) {
	t.Parallel()
	const n = 3*block + 17
	r := rng.New(1, "links")
	var links [][2]uint32
	for range 4 * n {
		links = append(links, [2]uint32{r.Uint32N(n), r.Uint32N(n) % (1 + r.Uint32N(n))})
	}
	g := graph(n, links)
	one, err := PageRank(context.Background(), g, Options{})
	if err != nil {
		t.Fatal(err)
	}
	three, err := PageRank(context.Background(), g, Options{Workers: 3})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(one.Ranks, three.Ranks) || one.Residual != three.Residual {
		t.Error("ranks depend on the number of workers")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := PageRank(ctx, g, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestPageRankRefuses(t *testing.T) {
	t.Parallel()
	g := graph(2, nil)
	for _, o := range []Options{{Damping: 1}, {Damping: -1}, {Damping: math.NaN()}, {Jump: []float64{1}}, {Jump: []float64{0, 0}}, {Jump: []float64{1, -1}}} {
		if _, err := PageRank(context.Background(), g, o); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
	if r, err := PageRank(context.Background(), graph(0, nil), Options{}); err != nil || len(r.Ranks) != 0 {
		t.Errorf("no pages: %v, %v", r, err)
	}
}

// Tau agrees with the definition by all pairs and, where nothing is tied, with
// gonum's tau-a.
func TestTau(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 40).Draw(t, "n")
		a, b := make([]float64, n), make([]float64, n)
		for i := range n {
			a[i], b[i] = float64(rapid.IntRange(0, 9).Draw(t, "a")), float64(rapid.IntRange(0, 30).Draw(t, "b"))
		}
		var s, na, nb float64
		for i := range n {
			for j := range i {
				x, y := sign(a[i]-a[j]), sign(b[i]-b[j])
				s, na, nb = s+x*y, na+x*x, nb+y*y
			}
		}
		got, err := Tau(a, b)
		if err != nil {
			t.Fatal(err)
		}
		if want := s / math.Sqrt(na*nb); math.Abs(got-want) > 1e-12 || math.IsNaN(got) != math.IsNaN(want) {
			t.Fatalf("tau %g, by pairs %g", got, want)
		}
	})
	r := rng.New(3, "tau")
	a, b := make([]float64, 500), make([]float64, 500)
	for i := range a {
		a[i] = r.Float64()
		b[i] = a[i] + r.Float64()
	}
	if got, _ := Tau(a, b); math.Abs(got-stat.Kendall(a, b, nil)) > 1e-12 {
		t.Errorf("tau %g, gonum says %g", got, stat.Kendall(a, b, nil))
	}
	if _, err := Tau(a, b[1:]); err == nil {
		t.Error("unequal lengths were accepted")
	}
	if _, err := Tau([]float64{1, math.NaN()}, []float64{1, 2}); err == nil {
		t.Error("NaN was accepted")
	}
}

func sign(v float64) float64 {
	switch {
	case v > 0:
		return 1
	case v < 0:
		return -1
	}
	return 0
}

func TestOrders(t *testing.T) {
	t.Parallel()
	w := []float64{4, 1, 3, 2}
	best := Best(w)
	if !slices.Equal(best, []uint32{0, 2, 3, 1}) {
		t.Fatalf("best order %v", best)
	}
	got, err := Gathered(w, best, []float64{0, .25, .5, 1, 2})
	if err != nil || !slices.Equal(got, []float64{0, .4, .7, 1, 1}) {
		t.Errorf("gathered %v, %v", got, err)
	}
	got, _ = Gathered(w, []uint32{2, 2, 9}, []float64{.5, 1})
	if !slices.Equal(got, []float64{.3, .3}) {
		t.Errorf("gathered with a repeat and a page that is not one: %v", got)
	}
	if _, err := Gathered(w, best, []float64{1, .5}); err == nil {
		t.Error("falling shares were accepted")
	}
	// Steps of the curve: .4 .7 .9 1, by trapezoids (.2 + .55 + .8 + .95)/4.
	if a := Area(w, best); math.Abs(a-.625) > 1e-12 {
		t.Errorf("area %g, want .625", a)
	}
	if a := Area(w, best[:1]); math.Abs(a-(.2+.4*3)/4) > 1e-12 {
		t.Errorf("area of one page %g", a)
	}
	if tau, err := TauOfOrder(w, best); err != nil || tau != 1 {
		t.Errorf("tau of the best order %g, %v", tau, err)
	}
	if tau, _ := TauOfOrder(w, []uint32{1, 3, 1, 2, 0}); tau != -1 {
		t.Errorf("tau of the worst order %g", tau)
	}
	if _, err := TauOfOrder(w, []uint32{4}); err == nil {
		t.Error("a page that is not one was accepted")
	}
}

func BenchmarkTau(b *testing.B) {
	r := rng.New(4, "bench")
	x, y := make([]float64, 1_000_000), make([]float64, 1_000_000)
	for i := range x {
		x[i], y[i] = r.Float64(), r.Float64()
	}
	for b.Loop() {
		_, _ = Tau(x, y)
	}
}
