package gen

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
)

// The share of links on the site is the one asked for, and links ascend.
func TestIntraShare(t *testing.T) {
	t.Parallel()
	for _, want := range []float64{.3, .6, .8} {
		p, out := made(t, Spec{Model: "host-local", Nodes: 20_000, Intra: want, Seed: 9})
		local, all := 0., 0.
		for u, list := range out {
			first, pages := p.sites.Span(p.sites.Host(uint64(u)))
			for i, v := range list {
				if uint64(v)-first < pages {
					local++
				}
				if int(v) == u || i > 0 && v <= list[i-1] {
					t.Fatalf("page %d: link %d goes to %d after %d", u, i, v, list[max(i, 1)-1])
				}
			}
			all += float64(len(list))
		}
		if got := local / all; math.Abs(got-want) > .02 {
			t.Errorf("share of links on the site %.3f, want %.2f", got, want)
		}
	}
	var impossible *IntraError
	if _, err := (Spec{Model: "host-local", Nodes: 20_000, Intra: .99}).Plan(); !errors.As(err, &impossible) || impossible.Most > .99 || impossible.Most < .8 {
		t.Errorf("share of .99: %v", err)
	}
}

// reached counts the pages that links lead to from some pages.
func reached(out [][]uint32, seeds ...uint32) int {
	seen := make([]bool, len(out))
	n := 0
	for stack := seeds; len(stack) > 0; {
		u := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[u] {
			continue
		}
		seen[u] = true
		n++
		stack = append(stack, out[u]...)
	}
	return n
}

// From its first page the strong component and OUT of a host-local web are reached,
// from ten seeds that and more; nearly nothing of a web by copying alone.
func TestReachable(t *testing.T) {
	t.Parallel()
	const n = 30_000
	seeds := []uint32{5, 3000, 6000, 9000, 12_000, 15_000, 18_000, 21_000, 24_000, 27_000}
	_, local := made(t, Spec{Model: "host-local", Nodes: n, Seed: 2})
	_, copied := made(t, Spec{Model: "copying", Nodes: n, Seed: 2})
	a, b, core := reached(local, slices.Clone(seeds)...), reached(copied, slices.Clone(seeds)...), reached(local, 0)
	t.Logf("%d of %d pages reached in a host-local web, %d of them from the first page, %d in one by copying", a, n, core, b)
	if want := n * (DefaultBowTie().SCC + DefaultBowTie().Out); math.Abs(float64(core)-want) > .02*n {
		t.Errorf("%d of %d pages reached from the first page, want %.0f: the strong component and OUT", core, n, want)
	}
	if a < core || b > n*10/100 {
		t.Errorf("%d of %d pages reached in a host-local web, %d from the first page; %d in one by copying", a, n, core, b)
	}
}

// Exponents of host-local webs. Where they are near 2, small sites bend the law of
// links to a page.
func TestHostLocalExponents(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		Spec
		in, out float64 // tolerances
	}{
		{Spec{Nodes: 100_000}, .2, .06},
		{Spec{Nodes: 100_000, In: 2.4, Out: 2.4}, .12, .06},
		{Spec{Nodes: 100_000, In: 2.7, Out: 2.3, Intra: .7}, .1, .06},
	} {
		t.Run(fmt.Sprint(tt.In), func(t *testing.T) {
			t.Parallel()
			tt.Model, tt.Seed = "host-local", 3
			p, err := tt.Plan()
			if err != nil {
				t.Fatal(err)
			}
			m, err := p.Trial(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%+v", m)
			if math.Abs(m.In-p.In) > tt.in || math.Abs(m.Out-p.Out) > tt.out || math.Abs(*m.Intra-p.Intra) > .01 || math.Abs(m.Degree/8-1) > .03 {
				t.Errorf("exponents %.3f and %.3f for %g and %g, %.3f of the links on the site for %g, %.2f links a page",
					m.In, m.Out, p.In, p.Out, *m.Intra, p.Intra, m.Degree)
			}
		})
	}
}

// Sizes of sites have the exponent and the mean.
func TestSites(t *testing.T) {
	t.Parallel()
	sites, err := drawSiteTable(2_000_000, 40_000, 2.1, DefaultBowTie().classShares(.07), 3)
	if err != nil {
		t.Fatal(err)
	}
	if n := float64(sites.Hosts()); math.Abs(n/40_000-1) > .15 {
		t.Errorf("%.0f sites, want 40000", n)
	}
	var sizes []int
	for s := range sites.Hosts() {
		first, pages := sites.Span(s)
		if sites.Host(first) != s || sites.Host(first+pages-1) != s {
			t.Fatalf("site %d has pages %d to %d", s, first, first+pages)
		}
		sizes = append(sizes, int(pages))
	}
	if got, err := hill(sizes, 0, 200); math.Abs(got-2.1) > .15 {
		t.Errorf("exponent of sizes %.3f +- %.3f", got, err)
	}
}

// The least webs are webs, too.
func TestLeastWebs(t *testing.T) {
	t.Parallel()
	for _, n := range []int64{2, 3, 10, 64, 65, 130} {
		_, out := made(t, Spec{Model: "host-local", Nodes: n, Seed: 7})
		for u, list := range out {
			for _, v := range list {
				if int64(v) >= n || int(v) == u {
					t.Errorf("%d pages: page %d links to %v", n, u, list)
				}
			}
		}
	}
}
