package gen

import (
	"errors"
	"math"
	"slices"
	"testing"
)

// The share of links on the site is the one asked for, and links ascend.
func TestIntraShare(t *testing.T) {
	t.Parallel()
	for _, want := range []float64{.3, .6, .8} {
		p, out := made(t, Spec{Model: "host-local", Nodes: 40_000, Intra: want, Seed: 9})
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

// From ten seeds nearly all of a host-local web is reached, and nearly nothing of
// a web by copying alone: that is why it is the default.
func TestReachable(t *testing.T) {
	t.Parallel()
	const n = 30_000
	seeds := []uint32{5, 3000, 6000, 9000, 12_000, 15_000, 18_000, 21_000, 24_000, 27_000}
	_, local := made(t, Spec{Model: "host-local", Nodes: n, Seed: 2})
	_, copied := made(t, Spec{Model: "copying", Nodes: n, Seed: 2})
	a, b := reached(local, slices.Clone(seeds)...), reached(copied, slices.Clone(seeds)...)
	t.Logf("%d of %d pages reached in a host-local web, %d in one by copying", a, n, b)
	if a < n*90/100 || b > n*10/100 {
		t.Errorf("%d of %d pages reached in a host-local web, %d in one by copying", a, n, b)
	}
}

// Sizes of sites have the exponent and the mean.
func TestSites(t *testing.T) {
	t.Parallel()
	sites, _, err := drawSites(2_000_000, 40_000, 2.1, 3)
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
