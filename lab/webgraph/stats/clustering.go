package stats

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/freshet/freshet/internal/rng"
)

// Clustering says how often two neighbours of a page are linked. Directions are
// left out of account: pages are neighbours if either links to the other.
type Clustering struct {
	// Local is the mean over all pages of the share of pairs of neighbours that
	// are neighbours themselves, 0 for pages with fewer than two (Watts and
	// Strogatz 1998).
	Local float64 `json:"local"`
	// Transitivity is that share over the pairs of all pages together: three
	// times the triangles over the pairs of links that meet.
	Transitivity float64 `json:"transitivity"`
	// The half widths of intervals that hold the truth with 95 %; 0 if exact.
	LocalError        float64 `json:"local_error"`
	TransitivityError float64 `json:"transitivity_error"`

	Exact     bool  `json:"exact"`
	Triangles int64 `json:"triangles,omitempty"` // known if exact
	Wedges    int   `json:"wedges,omitempty"`    // pairs of neighbours looked at for each figure
}

// ClusteringOptions bound the work.
type ClusteringOptions struct {
	ExactLinks int64 // up to so many links all triangles are counted; 0: 4 million, -1: never
	Wedges     int   // else so many pairs are looked at; 0: 40,000, for +-0.5 % at most
	Seed       uint64
	Workers    int
}

// FindClustering counts triangles, or samples pairs of neighbours. The exact
// count needs about 4 bytes a link, the sample 4 bytes a page.
func FindClustering(ctx context.Context, g Graph, opt ClusteringOptions, tell Progress) (Clustering, error) {
	if opt.ExactLinks == 0 {
		opt.ExactLinks = 4_000_000
	}
	if opt.Wedges == 0 {
		opt.Wedges = 40_000
	}
	counts, err := neighbourCounts(ctx, g, opt.Workers, tell)
	if err != nil || len(counts) == 0 {
		return Clustering{Exact: true}, err
	}
	if g.Links() <= opt.ExactLinks {
		return countTriangles(ctx, g, counts)
	}
	return sampleWedges(ctx, g, counts, opt)
}

// countTriangles finds every triangle once, from the corner with the fewest
// neighbours: links are kept at their end with fewer, so that no list is longer
// than the square root of twice the links (Chiba and Nishizeki 1985).
func countTriangles(ctx context.Context, g Graph, counts []uint32) (Clustering, error) {
	n := len(counts)
	above := func(v, u uint32) bool { // is v kept at u?
		return counts[v] > counts[u] || counts[v] == counts[u] && v > u
	}
	starts := make([]uint64, n+1)
	var kept []uint32
	r := reader{g: g}
	for u := range uint32(n) {
		for _, v := range r.distinctNeighbours(u) {
			if above(v, u) {
				kept = append(kept, v)
			}
		}
		starts[u+1] = uint64(len(kept))
	}
	at := make([]uint32, n) // triangles at a corner
	marked := make([]uint32, n)
	t := ticker{ctx: ctx}
	c := Clustering{Exact: true}
	for u := range uint32(n) {
		if err := t.checkEvery(int64(u)); err != nil {
			return c, err
		}
		list := kept[starts[u]:starts[u+1]]
		for _, v := range list {
			marked[v] = u + 1
		}
		for _, v := range list {
			for _, w := range kept[starts[v]:starts[v+1]] {
				if marked[w] == u+1 {
					at[u]++
					at[v]++
					at[w]++
					c.Triangles++
				}
			}
		}
	}
	var pairs float64
	for u, d := range counts {
		if d >= 2 {
			p := float64(d) * float64(d-1) / 2
			pairs += p
			c.Local += float64(at[u]) / p
		}
	}
	c.Local /= float64(n)
	if pairs > 0 {
		c.Transitivity = 3 * float64(c.Triangles) / pairs
	}
	return c, nil
}

// sampleWedges samples pages evenly for the mean of local shares, and by their number
// of pairs for the share over all pairs (Seshadhri, Pinar and Kolda 2013).
func sampleWedges(ctx context.Context, g Graph, counts []uint32, opt ClusteringOptions) (Clustering, error) {
	c := Clustering{Wedges: opt.Wedges}
	r := rng.New(opt.Seed, "clustering")
	var pages []uint32
	for range opt.Wedges {
		pages = append(pages, r.Uint32N(uint32(len(counts))))
	}
	var err error
	if c.Local, c.LocalError, err = closedShare(ctx, g, pages, r); err != nil {
		return c, err
	}
	var total uint64
	pairs := func(d uint32) uint64 { return uint64(d) * uint64(max(d, 1)-1) / 2 }
	for _, d := range counts {
		total += pairs(d)
	}
	if total == 0 {
		return c, nil
	}
	places := make([]uint64, opt.Wedges)
	for i := range places {
		places[i] = r.Uint64N(total)
	}
	slices.Sort(places)
	pages = pages[:0]
	var end uint64
	for u, d := range counts {
		end += pairs(d)
		for len(pages) < len(places) && places[len(pages)] < end {
			pages = append(pages, uint32(u))
		}
	}
	c.Transitivity, c.TransitivityError, err = closedShare(ctx, g, pages, r)
	return c, err
}

// closedShare draws a pair of neighbours of each page and returns the share of those
// that are linked, with the half width of its interval (Agresti and Coull 1998).
func closedShare(ctx context.Context, g Graph, pages []uint32, r *rand.Rand) (p, half float64, err error) {
	slices.Sort(pages) // neighbours of a page that occurs again are at hand
	read := reader{g: g}
	var list []uint32
	hits := 0.
	t := ticker{ctx: ctx}
	for i, u := range pages {
		if err := t.checkEvery(int64(i)); err != nil {
			return 0, 0, err
		}
		if i == 0 || u != pages[i-1] {
			list = read.distinctNeighbours(u)
		}
		if len(list) < 2 {
			continue
		}
		a := r.IntN(len(list))
		b := (a + 1 + r.IntN(len(list)-1)) % len(list)
		if hasLink(g, list[a], list[b]) || hasLink(g, list[b], list[a]) {
			hits++
		}
	}
	k := float64(len(pages))
	const z = 1.96
	mid := (hits + z*z/2) / (k + z*z)
	return hits / k, z * math.Sqrt(mid*(1-mid)/(k+z*z)), nil
}
