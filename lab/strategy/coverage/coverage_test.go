package coverage

import (
	"math"
	"testing"

	"github.com/freshet/freshet/internal/rng"
	"github.com/freshet/freshet/lab/webgraph"
	"github.com/freshet/freshet/lab/webgraph/rank"
)

func web(t *testing.T, pages int) *webgraph.Graph {
	t.Helper()
	r := rng.New(5, "coverage")
	out := make([][]uint32, pages)
	var sites []uint32
	for u := range out {
		for range r.IntN(8) {
			out[u] = append(out[u], uint32(r.IntN(u+1))) // old pages are popular
		}
		if u%7 == 0 {
			sites = append(sites, uint32(u))
		}
	}
	g, err := webgraph.New(out, sites)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// The points of a curve are what counting from scratch gives.
func TestPointsAreSums(t *testing.T) {
	t.Parallel()
	g := web(t, 500)
	w, err := NewWorth(t.Context(), g, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	rec := NewRecorder(w, 50)
	r := rng.New(6, "order")
	var order []uint32
	for _, u := range r.Perm(500) {
		order = append(order, uint32(u))
		rec.Output(uint32(u), 100, float64(len(order)))
		if r.IntN(3) == 0 {
			rec.Output(order[r.IntN(len(order))], 100, float64(len(order))) // again
		}
	}
	rec.Finish()
	if len(rec.Points) != 51 {
		t.Errorf("%d points", len(rec.Points))
	}
	for _, p := range rec.Points {
		fetched := order[:p.Pages]
		var ranks, links float64
		perSite := map[int]int{}
		for _, u := range fetched {
			ranks += w.Ranks[u]
			perSite[g.Site(u)]++
		}
		for u := range uint32(500) {
			for _, v := range g.Out(u) {
				for _, f := range fetched {
					if f == v {
						links++
					}
				}
			}
		}
		complete := 0
		for s, n := range perSite {
			if _, size := g.SiteSpan(s); int(size) == n {
				complete++
			}
		}
		sites := float64(g.Sites())
		if math.Abs(p.PageRank-ranks) > 1e-9 || p.InLinks != links/float64(g.Links()) || p.Sites != float64(len(perSite))/sites || p.Complete != float64(complete)/sites {
			t.Errorf("%+v, want %g, %g, %g, %g", p, ranks, links/float64(g.Links()), float64(len(perSite))/sites, float64(complete)/sites)
		}
	}
	sum, err := rec.Summary(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	if len(sum.PageRankAt) != len(Shares()) || len(sum.SubgraphTau) < len(Shares())-1 || sum.Tau == nil {
		t.Errorf("%+v", sum)
	}
}

// The best order has a tau near 1 with PageRank (ties of ranks are no
// agreement); ranks of the whole web agree with themselves.
func TestTaus(t *testing.T) {
	t.Parallel()
	g := web(t, 400)
	w, err := NewWorth(t.Context(), g, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	rec := NewRecorder(w, 10)
	best := rank.Best(w.Ranks)
	for i, u := range best {
		rec.Output(u, 1, float64(i))
	}
	rec.Finish()
	sum, err := rec.Summary(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	if *sum.Tau < 0.95 || sum.Area < 0.5 || len(sum.SubgraphTau) > 0 {
		t.Errorf("%+v, tau %g", sum, *sum.Tau)
	}
	if tau, err := w.subgraphTau(t.Context(), best); err != nil || math.Abs(tau-1) > 1e-12 {
		t.Errorf("tau of the whole web %g, %v", tau, err)
	}
}

// induced keeps exactly the links between the pages.
func TestInduced(t *testing.T) {
	t.Parallel()
	g := web(t, 100)
	pages := []uint32{0, 3, 4, 50, 51, 99}
	s := inducedSubgraph(g, pages)
	links := 0
	for i, u := range pages {
		for j, v := range pages {
			count := func(list []uint32, x uint32) (n int) {
				for _, y := range list {
					if y == x {
						n++
					}
				}
				return n
			}
			want := count(g.Out(u), v)
			links += want
			if out, in := count(s.Out(uint32(i)), uint32(j)), count(s.In(uint32(j)), uint32(i)); out != want || in != want {
				t.Errorf("%d to %d: %d links out, %d in, want %d", u, v, out, in, want)
			}
		}
	}
	if s.Nodes() != len(pages) || links == 0 {
		t.Errorf("%d pages, %d links", s.Nodes(), links)
	}
}
