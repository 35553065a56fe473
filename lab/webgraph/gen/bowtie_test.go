package gen

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/freshet/freshet/lab/webgraph/stats"
)

// both is a graph in memory with links both ways.
type both struct{ out, in [][]uint32 }

func (g both) Nodes() int            { return len(g.out) }
func (g both) Out(u uint32) []uint32 { return g.out[u] }
func (g both) In(u uint32) []uint32  { return g.in[u] }
func (g both) Links() (n int64) {
	for _, l := range g.out {
		n += int64(len(l))
	}
	return n
}

func bothWays(out [][]uint32) both {
	g := both{out, make([][]uint32, len(out))}
	for u, list := range out {
		for _, v := range list {
			g.in[v] = append(g.in[v], uint32(u))
		}
	}
	return g
}

// The bow-tie that is asked for comes out, as found by the analysis.
func TestBowTie(t *testing.T) {
	t.Parallel()
	for _, want := range []BowTie{DefaultBowTie(), {.28, .21, .21}, {.77, 0, .23}, {.9, .05, .03}, {.3, .6, .02}, {.2, .1, .5}} {
		for _, n := range []int64{3000, 20_000} {
			_, out := made(t, Spec{Model: "host-local", Nodes: n, BowTie: want, Seed: 4})
			g := bothWays(out)
			strong, err := stats.Strong(t.Context(), g, nil)
			if err != nil {
				t.Fatal(err)
			}
			weak, err := stats.Weak(t.Context(), g, nil)
			if err != nil {
				t.Fatal(err)
			}
			b, err := stats.FindBowTie(t.Context(), g, strong, weak)
			if err != nil {
				t.Fatal(err)
			}
			share := func(pages int64) float64 { return float64(pages) / float64(n) }
			tolerance := map[int64]float64{3000: .04, 20_000: .015}[n]
			if math.Abs(share(b.Core)-want.SCC) > tolerance || math.Abs(share(b.In)-want.In) > tolerance || math.Abs(share(b.Out)-want.Out) > tolerance {
				t.Errorf("%d pages: bow-tie %.3f, %.3f, %.3f, want %v", n, share(b.Core), share(b.In), share(b.Out), want)
			}
		}
	}
}

func TestImpossibleBowTie(t *testing.T) {
	t.Parallel()
	for _, b := range []BowTie{{.5, .5, .1}, {.01, 0, 0}, {.5, -.1, 0}, {math.NaN(), 0, 0}, {.5, math.NaN(), .1}, {.5, .1, math.Inf(1)}} {
		if _, err := (Spec{Model: "host-local", Nodes: 1000, BowTie: b}).Plan(); err == nil {
			t.Errorf("%v is accepted", b)
		}
	}
	if _, err := (Spec{Model: "er", Nodes: 1000, BowTie: DefaultBowTie()}).Plan(); err == nil {
		t.Error("er takes a bow-tie")
	}
}

// Whatever is asked: the classes have all pages, and arranging sizes neither makes
// nor loses any.
func TestClasses(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		scc := rapid.Float64Range(.05, 1).Draw(t, "scc")
		in := rapid.Float64Range(0, 1-scc).Draw(t, "in")
		b := BowTie{scc, in, rapid.Float64Range(0, 1-scc-in).Draw(t, "out")}
		z := b.leafShare()
		share := b.classShares(z)
		sum := 0.
		for k, s := range share {
			if s < -1e-9 || math.IsNaN(s) {
				t.Fatalf("%v: class %d has %g", b, k, s)
			}
			sum += s
		}
		if sum > 1+1e-6 || sum < 1-1e-6 {
			t.Fatalf("%v: the classes have %g together, %v", b, sum, share)
		}
		sizes := rapid.SliceOfN(rapid.Uint32Range(1, 50), 1, 200).Draw(t, "sizes")
		before := slices.Clone(sizes)
		arrangeByClass(sizes, share)
		table := Table{0}
		for _, n := range sizes {
			table = append(table, table[len(table)-1]+n)
		}
		c := newClasses(table, uint64(table[len(table)-1]), share)
		pages, sites := uint64(0), uint64(0)
		for k, s := range c {
			if s.page != pages || s.site != sites {
				t.Fatalf("class %d begins with page %d of site %d, not %d of %d", k, s.page, s.site, pages, sites)
			}
			for i := range s.sites {
				if c.classOfSite(s.site+i) != k {
					t.Fatalf("site %d is of class %d, not %d", s.site+i, c.classOfSite(s.site+i), k)
				}
			}
			pages, sites = pages+s.pages, sites+s.sites
		}
		if sites != table.Hosts() || pages != uint64(table[len(table)-1]) || c[inCore].sites == 0 {
			t.Fatalf("%d sites with %d pages in classes: %v", sites, pages, c)
		}
		slices.Sort(before)
		slices.Sort(sizes)
		if !slices.Equal(before, sizes) {
			t.Fatal("arranging changed the sizes")
		}
	})
}
