package gen

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/freshet/freshet/lab/testweb"
)

// A permutation is one, and from is the other way of at.
func TestPermutation(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := newPermutation(rapid.Uint64Range(1, 3000).Draw(t, "n"), rapid.Uint64().Draw(t, "key"))
		seen := make([]bool, p.n)
		for x := range p.n {
			y := p.permute(x)
			if y >= p.n || seen[y] || p.unpermute(y) != x {
				t.Fatalf("%d of %d goes to %d, from where %d comes", x, p.n, y, p.unpermute(y))
			}
			seen[y] = true
		}
		great := newPermutation(rapid.Uint64Range(1<<40, 1<<62).Draw(t, "great"), p.key)
		x := rapid.Uint64Range(0, great.n-1).Draw(t, "x")
		if y := great.permute(x); y >= great.n || great.unpermute(y) != x {
			t.Fatalf("%d of %d goes to %d, from where %d comes", x, great.n, y, great.unpermute(y))
		}
	})
}

// Neighbours do not stay neighbours: where x goes says nothing of where x+1 goes.
func TestPermutationStirs(t *testing.T) {
	t.Parallel()
	const n, cells = 100_003, 10
	p := newPermutation(n, 7)
	var counts [cells][cells]float64
	for x := range uint64(n - 1) {
		counts[p.permute(x)*cells/n][p.permute(x+1)*cells/n]++
	}
	chi2 := 0.
	for _, row := range counts {
		for _, c := range row {
			d := c - n/(cells*cells)
			chi2 += d * d / (n / (cells * cells))
		}
	}
	if chi2 > 160 { // 99 degrees of freedom: p = 1e-4
		t.Errorf("chi-square of pairs %.0f", chi2)
	}
}

// v is linked by u if and only if u links to v: all pairs of webs of any size.
func TestMatchedBothWays(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint64Range(50, 500).Draw(t, "pages")
		seed := rapid.Uint64().Draw(t, "seed")
		layout, err := testweb.NewSites(n, rapid.Uint64Range(2, n/8).Draw(t, "sites"), seed)
		if err != nil {
			t.Fatal(err)
		}
		m, err := NewMatched(MatchedOptions{Nodes: n, Intra: .5, Seed: seed}, layout)
		if err != nil {
			t.Skip(err)
		}
		in := make([][]uint64, n)
		for u := range n {
			list := m.Successors(u, nil)
			for i, v := range list {
				if v >= n || v == u || i > 0 && v <= list[i-1] {
					t.Fatalf("page %d of %d links to %v", u, n, list)
				}
				in[v] = append(in[v], u)
			}
		}
		for v := range n {
			if got := m.Predecessors(v, nil); !slices.Equal(got, in[v]) {
				t.Fatalf("page %d of %d is linked by %v, not %v", v, n, in[v], got)
			}
		}
	})
}

// The same at sizes that nobody can store, from random pages both ways.
func TestMatchedGreat(t *testing.T) {
	t.Parallel()
	for _, n := range []uint64{1_000_003, 1<<42 - 12345, 1 << 42} {
		layout, err := testweb.NewSites(n, 0, 5)
		if err != nil {
			t.Fatal(err)
		}
		m, err := NewMatched(MatchedOptions{Nodes: n, Seed: 5}, layout)
		if err != nil {
			t.Fatal(err)
		}
		links := 0.
		const sample = 100
		for i := range uint64(sample) {
			u := scaleBelow((i*2+1)*0x9e3779b97f4a7c15, n)
			out := m.Successors(u, nil)
			links += float64(len(out))
			for _, v := range out[:min(len(out), 20)] {
				if _, ok := slices.BinarySearch(m.Predecessors(v, nil), u); !ok {
					t.Fatalf("%d pages: %d links to %d, which does not know", n, u, v)
				}
			}
			for _, w := range m.Predecessors(u, nil) {
				if _, ok := slices.BinarySearch(m.Successors(w, nil), u); !ok {
					t.Fatalf("%d pages: %d is said to be linked by %d, which does not know", n, u, w)
				}
			}
		}
		if mean := links / sample; math.Abs(mean-8) > 4 {
			t.Errorf("%d pages: %.1f links a page", n, mean)
		}
	}
}
