// Package stats measures link graphs of webs: degrees, weak and strong
// components and the bow-tie they form, reciprocity, links inside hosts,
// clustering, distances, cores, PageRank. Everything works on graphs of 10^8
// pages with a few words a page in addition to the graph; where an exact answer
// would take too long, it samples and says how far the answer can be off.
//
// A link that stands twice in a page is two links for degrees, PageRank, links
// inside hosts and reciprocity, and one for everything else. A link of a page to itself
// counts for degrees and PageRank only.
package stats

import (
	"context"
	"slices"
)

// Graph is a directed graph with links both ways. Out(u) is in any order, In(u)
// ascending; both may hold repeats. The slices are read, not kept, and are no
// longer used when the next of the same direction is asked for. Methods may be
// called concurrently unless there is a method View, as of a webgraph.Graph whose
// links are coded: then each goroutine takes a view of its own.
type Graph = interface {
	Nodes() int
	Links() int64
	Out(u uint32) []uint32
	In(u uint32) []uint32
}

// goroutineView returns the graph for the use of one goroutine.
func goroutineView(g Graph) Graph {
	if v, ok := g.(interface{ View() Graph }); ok {
		return v.View()
	}
	return g
}

// Hosts is a graph whose pages are grouped: host i holds consecutive pages.
// Together the hosts hold all pages.
type Hosts interface {
	Sites() int // 0: hosts are not known
	SiteSpan(site int) (first, pages uint32)
}

// Progress is called now and then with the steps done of total; nil is silent.
type Progress func(done, total int64)

// ticker looks after cancelling and progress in a loop over pages.
type ticker struct {
	ctx   context.Context
	tell  Progress
	total int64
}

// every is how many pages a loop treats between two looks at its context.
const every = 1 << 14

// checkEvery returns the error of a context that has ended. It is cheap but for every
// 2^14th page.
func (t *ticker) checkEvery(u int64) error {
	if u&(every-1) != 0 {
		return nil
	}
	if t.tell != nil {
		t.tell(u, t.total)
	}
	return t.ctx.Err()
}

// simplifyList appends to buf the different values of the ascending list without u.
func simplifyList(buf, list []uint32, u uint32) []uint32 {
	start := len(buf)
	for _, v := range list {
		if v != u && (len(buf) == start || buf[len(buf)-1] != v) {
			buf = append(buf, v)
		}
	}
	return buf
}

// reader reads neighbours with buffers of its own: one for each goroutine.
type reader struct {
	g        Graph
	out, all []uint32
}

// outLinks returns the different pages that u links to, itself excepted, in
// ascending order. The slice holds until the next call.
func (r *reader) outLinks(u uint32) []uint32 {
	r.out = append(r.out[:0], r.g.Out(u)...)
	sortLinks(r.out)
	r.out = simplifyList(r.out[:0], r.out, u)
	return r.out
}

// distinctNeighbours returns the different pages that u links to or that link to u, in
// ascending order. The slice holds until the next call.
func (r *reader) distinctNeighbours(u uint32) []uint32 {
	out, in := r.outLinks(u), r.g.In(u)
	all := r.all[:0]
	i, j := 0, 0
	for i < len(out) || j < len(in) {
		var v uint32
		if j == len(in) || i < len(out) && out[i] < in[j] {
			v = out[i]
			i++
		} else {
			v = in[j]
			j++
		}
		if v != u && (len(all) == 0 || all[len(all)-1] != v) {
			all = append(all, v)
		}
	}
	r.all = all
	return all
}

// sortLinks sorts a list that is often sorted already, and mostly short.
func sortLinks(v []uint32) {
	if slices.IsSorted(v) {
		return
	}
	if len(v) > 24 {
		slices.Sort(v)
		return
	}
	for i := 1; i < len(v); i++ {
		x, j := v[i], i
		for ; j > 0 && v[j-1] > x; j-- {
			v[j] = v[j-1]
		}
		v[j] = x
	}
}

// hasLink reports whether u links to v.
func hasLink(g Graph, u, v uint32) bool {
	_, ok := slices.BinarySearch(g.In(v), u)
	return ok
}
