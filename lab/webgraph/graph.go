// Package webgraph stores the link graph of a web so that hundreds of millions
// of links are opened at once and read at the speed of memory.
//
// A graph is a folder. The links of all pages stand one after another in a file
// of 32-bit page numbers, in the order of the pages, and a second file says where
// those of each page begin (compressed sparse rows); a second pair of files holds
// the links the other way round. Or they are coded, in a sixth of the room (package
// pack). They are mapped into memory, so that opening
// reads nothing, what is not asked for is never read, and a list of links is a
// slice of the file itself. A table of sites says which consecutive pages make a
// site, and attributes of pages are columns: mapped arrays, too, because reading
// a number from a key-value store takes hundreds of times as long.
//
// A folder is written under another name and renamed when it is whole; graph.json
// in it lists the files with their sizes and checksums (XXH3).
package webgraph

import (
	"errors"
	"fmt"
	"sort"
	"sync"
)

// MaxNodes is the greatest number of pages of a stored graph: their numbers have
// 32 bits.
const MaxNodes = 1<<32 - 1

// Graph is a graph that is open for reading. Its methods may be called
// concurrently; slices that it returns are the stored ones, unless links are coded:
// do not write to them, and do not use them after Close.
type Graph struct {
	dir     string
	meta    Meta
	out, in rows
	codes   [2]*coded // of links out and in, in place of rows
	sites   []uint32  // first page of each site, and the end; nil: no sites
	names   []byte    // of all pages, one after another; nil: no names
	nameAt  []uint64  // where each begins, and the end

	mu       sync.Mutex // guards mappings, which grow with columns
	mappings []mapping
}

// rows are the links of one direction.
type rows struct {
	starts []uint64 // index of each page's first link, and the end
	links  []uint32
}

func (r rows) linksOf(u uint32) []uint32 {
	a, b := r.starts[u], r.starts[u+1]
	return r.links[a:b:b]
}

// Nodes returns the number of pages.
func (g *Graph) Nodes() int { return int(g.meta.Nodes) }

// Links returns the number of links.
func (g *Graph) Links() int64 { return g.meta.Links }

// Out returns the pages that page u links to, in the order of the page; a page
// that is linked twice stands in it twice.
func (g *Graph) Out(u uint32) []uint32 {
	if c := g.codes[0]; c != nil {
		return c.decodeOwnList(u)
	}
	return g.out.linksOf(u)
}

// In returns the pages that link to page u, in ascending order.
func (g *Graph) In(u uint32) []uint32 {
	if c := g.codes[1]; c != nil {
		return c.decodeOwnList(u)
	}
	return g.in.linksOf(u)
}

// OutDegree returns the number of links of page u.
func (g *Graph) OutDegree(u uint32) int { return len(g.Out(u)) }

// InDegree returns the number of links to page u.
func (g *Graph) InDegree(u uint32) int { return len(g.In(u)) }

// Meta returns what is known of the graph as a whole.
func (g *Graph) Meta() Meta { return g.meta }

// Dir returns the folder that the graph was opened from, "" for one in memory.
func (g *Graph) Dir() string { return g.dir }

// Sites returns the number of sites, 0 if the graph does not tell sites.
func (g *Graph) Sites() int { return max(len(g.sites)-1, 0) }

// Site returns the site of page u. The graph must have sites.
func (g *Graph) Site(u uint32) int {
	return sort.Search(len(g.sites), func(i int) bool { return g.sites[i] > u }) - 1
}

// SiteSpan returns the first page of a site and the number of its pages.
func (g *Graph) SiteSpan(site int) (first, pages uint32) {
	return g.sites[site], g.sites[site+1] - g.sites[site]
}

// Name returns the name of page u, such as its URL, "" if the graph has none.
func (g *Graph) Name(u uint32) string {
	if g.nameAt == nil {
		return ""
	}
	return string(g.names[g.nameAt[u]:g.nameAt[u+1]])
}

// Named reports whether pages have names.
func (g *Graph) Named() bool { return g.nameAt != nil }

// Close gives the mapped memory back.
func (g *Graph) Close() error {
	var errs []error
	for _, m := range g.mappings {
		errs = append(errs, m.unmap())
	}
	g.out, g.in, g.codes, g.sites, g.names, g.nameAt, g.mappings = rows{}, rows{}, [2]*coded{}, nil, nil, nil, nil
	return errors.Join(errs...)
}

// New returns a graph in memory from the links of each page. sites holds the
// first page of each site in ascending order, beginning with 0; nil: no sites.
func New(out [][]uint32, sites []uint32) (*Graph, error) {
	g := &Graph{meta: Meta{Sorted: true}}
	g.out.starts = make([]uint64, 1, len(out)+1)
	for u, list := range out {
		for i, v := range list {
			if int(v) >= len(out) {
				return nil, fmt.Errorf("page %d links to page %d of a web of %d pages", u, v, len(out))
			}
			g.meta.Sorted = g.meta.Sorted && (i == 0 || list[i-1] < v)
		}
		g.out.links = append(g.out.links, list...)
		g.out.starts = append(g.out.starts, uint64(len(g.out.links)))
	}
	g.in = transposedInMemory(g.out)
	if sites != nil {
		if err := checkSites(sites, uint64(len(out))); err != nil {
			return nil, err
		}
		g.sites = append(append(g.sites, sites...), uint32(len(out)))
	}
	g.meta.Nodes, g.meta.Links, g.meta.Sites = int64(len(out)), int64(len(g.out.links)), int64(g.Sites())
	return g, nil
}

// checkSites says what is wrong with the first pages of sites.
func checkSites(sites []uint32, nodes uint64) error {
	for i, first := range sites {
		switch {
		case i == 0 && first != 0:
			return fmt.Errorf("site 0 begins with page %d: want 0", first)
		case i > 0 && first <= sites[i-1]:
			return fmt.Errorf("site %d begins with page %d, site %d with %d: want ascending", i-1, sites[i-1], i, first)
		case uint64(first) >= nodes:
			return fmt.Errorf("site %d begins with page %d of a web of %d pages", i, first, nodes)
		}
	}
	return nil
}
