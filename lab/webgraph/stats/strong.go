package stats

import (
	"context"
	"slices"
)

// Components says which pages belong together.
type Components struct {
	Of      []uint32 // component of each page, from 0
	Sizes   []uint32 // pages of each component
	Largest uint32   // the first of the greatest components
}

// Share returns which share of the pages is in the largest component.
func (c *Components) Share() float64 {
	if len(c.Of) == 0 {
		return 0
	}
	return float64(c.Sizes[c.Largest]) / float64(len(c.Of))
}

// measureComponents fills in Sizes and Largest for count components.
func (c *Components) measureComponents(count int) {
	c.Sizes = make([]uint32, count)
	for _, k := range c.Of {
		c.Sizes[k]++
	}
	for k, s := range c.Sizes {
		if s > c.Sizes[c.Largest] {
			c.Largest = uint32(k)
		}
	}
}

// frame is a page that is being visited: next is the place of the next link to
// look at.
type frame struct {
	page, next uint32
	inner      bool // an earlier page can be reached from here
}

// Strong finds the strong components: the greatest sets of pages that can all
// reach each other. The component of the page with the most links both ways,
// which in a web is the core, is found first, by what it reaches and what reaches it: two searches
// that read lists in the order of the file, where a search in depth jumps about
// (Fleischer, Hendrickson and Pinar 2000). The others are found by Tarjan's
// algorithm in the form of Pearce (Information Processing Letters 116, 2016),
// which keeps one number a page, with a stack of its own in place of recursion.
// It takes up to 12 bytes a page, and 12 for each page of the deepest path.
func Strong(ctx context.Context, g Graph, tell Progress) (*Components, error) {
	n := g.Nodes()
	core, err := strongComponentAround(ctx, g)
	if err != nil {
		return nil, err
	}
	// place holds 0 for pages not seen, then the lowest position reachable (from
	// 1 on), then, from n down, the number of the component. A position is never
	// above the numbers given to components so far, so one comparison serves both.
	place := make([]uint32, n)
	position, component := uint32(1), uint32(n)
	seen := int64(0)
	if n > 0 {
		for _, u := range core.appendPagesTo(nil) {
			place[u] = component
			seen++
		}
		component--
	}
	var path []frame
	var open []uint32
	t := ticker{ctx, tell, int64(n)}
	for s := range n {
		if place[s] != 0 {
			continue
		}
		path = append(path, frame{page: uint32(s)})
		place[s] = position
		position++
		for len(path) > 0 {
			f := &path[len(path)-1]
			list := g.Out(f.page)[f.next:]
			low := place[f.page]
			down := false
			for i, w := range list {
				p := place[w]
				if p == 0 {
					f.next += uint32(i) // looked at again when w is done
					down = true
					place[w] = position
					position++
					place[f.page] = low
					path = append(path, frame{page: w})
					break
				}
				if p < low {
					low = p
					f.inner = true
				}
			}
			if down {
				continue
			}
			u := f.page
			place[u] = low
			inner := f.inner
			path = path[:len(path)-1]
			seen++
			if err := t.checkEvery(seen); err != nil {
				return nil, err
			}
			if inner {
				open = append(open, u)
				continue
			}
			position--
			for len(open) > 0 && place[open[len(open)-1]] >= low {
				place[open[len(open)-1]] = component
				open = open[:len(open)-1]
				position--
			}
			place[u] = component
			component--
		}
	}
	for u := range place {
		place[u] = uint32(n) - place[u]
	}
	c := &Components{Of: place}
	c.measureComponents(n - int(component))
	return c, nil
}

// strongComponentAround returns the strong component of the page with the greatest product of
// links both ways.
func strongComponentAround(ctx context.Context, g Graph) (set, error) {
	n := g.Nodes()
	var best uint32
	most := -1
	t := ticker{ctx: ctx}
	for u := range uint32(n) {
		if err := t.checkEvery(int64(u)); err != nil {
			return nil, err
		}
		if p := len(g.Out(u)) * len(g.In(u)); p > most {
			best, most = u, p
		}
	}
	down, up := newPageSet(n), newPageSet(n)
	if n == 0 {
		return up, nil
	}
	down.addPage(best)
	if err := down.spreadAlong(ctx, n, g.Out, nil); err != nil {
		return nil, err
	}
	for i := range down { // what the page does not reach is not searched
		down[i] = ^down[i]
	}
	up.addPage(best)
	return up, up.spreadAlong(ctx, n, g.In, down)
}

// disjoint are sets of pages that are joined: each page knows one of its set
// with a smaller number, or itself if it is the first.
type disjoint []uint32

func (p disjoint) findRoot(u uint32) uint32 {
	for p[u] != u {
		p[u] = p[p[u]]
		u = p[u]
	}
	return u
}

func (p disjoint) joinSets(u, v uint32) {
	a, b := p.findRoot(u), p.findRoot(v)
	if a < b {
		p[b] = a
	} else {
		p[a] = b
	}
}

// Weak finds the weak components: sets of pages joined by links of either
// direction. Pages are joined with the first two that they link to, which is
// enough to gather nearly all into one set; only the links of the others are
// then looked at, both ways (Sutton, Ben-Nun and Barak 2018). 4 bytes a page.
func Weak(ctx context.Context, g Graph, tell Progress) (*Components, error) {
	n := g.Nodes()
	parent := make(disjoint, n)
	for u := range parent {
		parent[u] = uint32(u)
	}
	t := ticker{ctx, tell, 2 * int64(n)}
	for u := range uint32(n) {
		if err := t.checkEvery(int64(u)); err != nil {
			return nil, err
		}
		list := g.Out(u)
		for _, v := range list[:min(len(list), 2)] {
			parent.joinSets(u, v)
		}
	}
	main := parent.likelyLargestSet()
	for u := range uint32(n) {
		if err := t.checkEvery(int64(n) + int64(u)); err != nil {
			return nil, err
		}
		if parent.findRoot(u) == parent.findRoot(main) {
			continue
		}
		for _, v := range g.Out(u) {
			parent.joinSets(u, v)
		}
		for _, v := range g.In(u) {
			parent.joinSets(u, v)
		}
	}
	// Roots are the least pages of their components, so each is met first.
	count := uint32(0)
	for u, p := range parent {
		if int(p) == u {
			parent[u] = count
			count++
		} else {
			parent[u] = parent[p] // p < u has its number already
		}
	}
	c := &Components{Of: parent}
	c.measureComponents(int(count))
	return c, nil
}

// likelyLargestSet returns a page of what is probably the greatest set: the commonest of a
// thousand pages' sets. Any page would do, only slower.
func (p disjoint) likelyLargestSet() uint32 {
	counts := make(map[uint32]int)
	var best uint32
	for i := range min(1000, len(p)) {
		r := p.findRoot(uint32(uint64(i) * uint64(len(p)) / 1000))
		counts[r]++
		if counts[r] > counts[best] {
			best = r
		}
	}
	return best
}

// Histogram counts the components by size, in descending order of size.
func (c *Components) Histogram() (sizes []uint32, counts []int64) {
	m := make(map[uint32]int64)
	for _, s := range c.Sizes {
		m[s]++
	}
	for s := range m {
		sizes = append(sizes, s)
	}
	slices.Sort(sizes)
	slices.Reverse(sizes)
	for _, s := range sizes {
		counts = append(counts, m[s])
	}
	return sizes, counts
}
