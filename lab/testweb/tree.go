package testweb

import (
	"github.com/freshet/freshet/internal/rng"
)

// Graph is the web's link graph.
type Graph interface {
	// Nodes returns the number of pages.
	Nodes() uint64
	// Successors appends the pages that page u links to, in the order of the
	// page, to buf and returns it. It is called concurrently.
	Successors(u uint64, buf []uint64) []uint64
}

// treeFan is the number of documents a page of a Tree links to below it.
const treeFan = 4

// Tree is a graph that is all of a piece: each site is a tree whose pages are
// reachable from its document 0, sites hang on each other in the same way, and a
// few links by hash go across. It is computed, not stored, and it is what small
// tests want: a perfect robot with one seed finds every page.
type Tree struct {
	layout Layout
	nodes  uint64
	seed   uint64
}

// NewTree returns the tree over a layout of nodes pages.
func NewTree(nodes uint64, layout Layout, seed uint64) *Tree {
	return &Tree{layout, nodes, seed}
}

// Nodes returns the number of pages.
func (t *Tree) Nodes() uint64 { return t.nodes }

// Successors appends the links of page u.
func (t *Tree) Successors(u uint64, buf []uint64) []uint64 {
	host := t.layout.Host(u)
	first, pages := t.layout.Span(host)
	doc := u - first
	for c := doc*treeFan + 1; c <= doc*treeFan+treeFan && c < pages; c++ {
		buf = append(buf, first+c)
	}
	if doc > 0 {
		buf = append(buf, first, first+(doc-1)/treeFan)
	} else {
		for c := host*treeFan + 1; c <= host*treeFan+treeFan && c < t.layout.Hosts(); c++ {
			entry, _ := t.layout.Span(c)
			buf = append(buf, entry)
		}
	}
	h := rng.Mix(t.seed, u)
	buf = append(buf, first+h>>8%pages)
	if h&3 == 0 { // every fourth page links to a page anywhere
		buf = append(buf, rng.Mix(h, 1)%t.nodes)
	}
	return buf
}
