package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/freshet/freshet/internal/rng"
)

// lists is a graph in memory; hosts holds the first page of each host.
type lists struct {
	out, in [][]uint32
	hosts   []uint32
}

func (g *lists) Nodes() int            { return len(g.out) }
func (g *lists) Out(u uint32) []uint32 { return g.out[u] }
func (g *lists) In(u uint32) []uint32  { return g.in[u] }
func (g *lists) Sites() int            { return len(g.hosts) }

func (g *lists) Links() (n int64) {
	for _, l := range g.out {
		n += int64(len(l))
	}
	return n
}

func (g *lists) SiteSpan(i int) (first, pages uint32) {
	end := uint32(len(g.out))
	if i+1 < len(g.hosts) {
		end = g.hosts[i+1]
	}
	return g.hosts[i], end - g.hosts[i]
}

type link [2]uint32

func graph(n int, all []link) *lists {
	g := &lists{out: make([][]uint32, n), in: make([][]uint32, n)}
	for _, l := range all {
		g.out[l[0]] = append(g.out[l[0]], l[1])
		g.in[l[1]] = append(g.in[l[1]], l[0])
	}
	for _, l := range g.in {
		slices.Sort(l)
	}
	return g
}

func path(n uint32) (all []link) {
	for u := range n - 1 {
		all = append(all, link{u, u + 1})
	}
	return all
}

func ring(n uint32) []link { return append(path(n), link{n - 1, 0}) }

func complete(n uint32) (all []link) {
	for u := range n {
		for v := range n {
			if u != v {
				all = append(all, link{u, v})
			}
		}
	}
	return all
}

// star links every leaf to page 0.
func star(n uint32) (all []link) {
	for u := uint32(1); u < n; u++ {
		all = append(all, link{u, 0})
	}
	return all
}

// drawGraph draws a graph with repeats and loops, sparse or dense.
func drawGraph(t *rapid.T, most int) *lists {
	n := rapid.IntRange(1, most).Draw(t, "n")
	end := rapid.Uint32Range(0, uint32(n-1))
	var all []link
	for range rapid.IntRange(0, 4*n).Draw(t, "links") {
		all = append(all, link{end.Draw(t, "u"), end.Draw(t, "v")})
	}
	g := graph(n, all)
	for u := uint32(0); int(u) < n; u += 1 + rapid.Uint32Range(0, 4).Draw(t, "host") {
		g.hosts = append(g.hosts, u)
	}
	return g
}

// skewed has n pages with k links each, most to pages with small numbers.
func skewed(n, k int, seed uint64) *lists {
	r := rng.New(seed, "skewed")
	var all []link
	for u := range uint32(n) {
		for range k {
			all = append(all, link{u, uint32(float64(n) * math.Pow(r.Float64(), 3))})
		}
	}
	return graph(n, all)
}

// sparse has links between random pages.
func sparse(n, links int, r *rand.Rand) *lists {
	var all []link
	for range links {
		all = append(all, link{r.Uint32N(uint32(n)), r.Uint32N(uint32(n))})
	}
	return graph(n, all)
}

// matrix says which pages link to which, loops excepted.
func (g *lists) matrix() [][]bool {
	m := make([][]bool, len(g.out))
	for u, out := range g.out {
		m[u] = make([]bool, len(g.out))
		for _, v := range out {
			if int(v) != u {
				m[u][v] = true
			}
		}
	}
	return m
}

// closure says which pages can be reached from which, by Warshall's algorithm.
func (g *lists) closure() [][]bool {
	m := g.matrix()
	for u := range m {
		m[u][u] = true
	}
	for k := range m {
		for u := range m {
			if m[u][k] {
				for v := range m {
					m[u][v] = m[u][v] || m[k][v]
				}
			}
		}
	}
	return m
}

func TestNeighbours(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t, 12)
		m := g.matrix()
		r := reader{g: g}
		for u := range m {
			var out, all []uint32
			for v := range m {
				if m[u][v] {
					out = append(out, uint32(v))
				}
				if m[u][v] || m[v][u] {
					all = append(all, uint32(v))
				}
				if u != v && hasLink(g, uint32(u), uint32(v)) != m[u][v] {
					t.Fatalf("link %d %d is %v", u, v, m[u][v])
				}
			}
			if got := r.outLinks(uint32(u)); !slices.Equal(got, out) {
				t.Fatalf("%d links to %v, want %v", u, got, out)
			}
			if got := r.distinctNeighbours(uint32(u)); !slices.Equal(got, all) {
				t.Fatalf("neighbours of %d %v, want %v", u, got, all)
			}
		}
	})
}

func TestSortLinks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SliceOfN(rapid.Uint32Range(0, 50), 0, 60).Draw(t, "v")
		sortLinks(v)
		if !slices.IsSorted(v) {
			t.Fatalf("not sorted: %v", v)
		}
	})
}
