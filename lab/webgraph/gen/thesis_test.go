package gen

import (
	"math"
	"testing"

	"github.com/freshet/freshet/internal/rng"
	"github.com/freshet/freshet/lab/webgraph/stats"
)

// What the 2008 thesis had wrong, besides the exponents (TestThesisParameters):
// documents' names (lab/testweb/name) and P(i) = i^-a without a norm (TestLaw adds
// the law up). Two pages have one prototype with probability 1/n, not n^-2.
func TestSharedPrototype(t *testing.T) {
	t.Parallel()
	const n, pairs = 50, 40_000
	g := &growth{pages: n + 1, mean: 3, src: rng.Source(1, "prototypes")}
	same := 0.
	for range pairs {
		a, _ := g.drawPrototype(n)
		b, _ := g.drawPrototype(n)
		// Pages 0 and 1 begin at the same place: page 0 has no links.
		if a == b {
			same++
		}
	}
	want := pairs * (float64(n-2) + 4) / (n * n) // n - 2 places with one page, one with two
	if math.Abs(same-want) > 5*math.Sqrt(want) {
		t.Errorf("%.0f of %d pairs have one prototype, want %.0f", same, pairs, want)
	}
}

// Pages that copy from one prototype are fans of the same centres: webs by copying
// are full of bipartite cores, webs of the same numbers of pages and links by chance
// have none, and those by preference few beyond the oldest pages.
func TestBipartiteCores(t *testing.T) {
	t.Parallel()
	cores := map[string]*stats.Trawled{}
	for _, model := range []string{"copying", "er"} {
		_, out := made(t, Spec{Model: model, Nodes: 4000, Links: 7 * 4000, Seed: 2})
		found, err := stats.Trawl(t.Context(), bothWays(out), stats.TrawlOptions{Fans: 3, Centres: 3}, nil)
		if err != nil {
			t.Fatal(err)
		}
		cores[model] = found
	}
	if c := cores["copying"]; c.Count < 50 || c.Covered < 300 {
		t.Errorf("copying makes %d cores with %d fans", c.Count, c.Covered)
	}
	if c := cores["er"]; c.Count > 0 {
		t.Errorf("chance makes %d cores", c.Count)
	}
}
