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

// measure fills in Sizes and Largest for count components.
func (c *Components) measure(count int) {
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
// reach each other. They are numbered so that links between components lead
// from higher to lower numbers. It is Tarjan's algorithm in the form of Pearce
// (Information Processing Letters 116, 2016), which keeps one number a page,
// with a stack of its own in place of recursion: 4 bytes a page, 4 for the
// pages whose component is open, and 12 for each page of the deepest path.
func Strong(ctx context.Context, g Graph, tell Progress) (*Components, error) {
	n := g.Nodes()
	// place holds 0 for pages not seen, then the lowest position reachable (from
	// 1 on), then, from n down, the number of the component. A position is never
	// above the numbers given to components so far, so one comparison serves both.
	place := make([]uint32, n)
	var path []frame
	var open []uint32
	position, component := uint32(1), uint32(n)
	t := ticker{ctx, tell, int64(n)}
	seen := int64(0)
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
			if err := t.at(seen); err != nil {
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
	c.measure(n - int(component))
	return c, nil
}

// Weak finds the weak components: sets of pages joined by links of either
// direction. Pages are joined by disjoint sets with path halving; 4 bytes a page.
func Weak(ctx context.Context, g Graph, tell Progress) (*Components, error) {
	n := g.Nodes()
	parent := make([]uint32, n)
	for u := range parent {
		parent[u] = uint32(u)
	}
	find := func(u uint32) uint32 {
		for parent[u] != u {
			parent[u] = parent[parent[u]]
			u = parent[u]
		}
		return u
	}
	t := ticker{ctx, tell, int64(n)}
	for u := range n {
		if err := t.at(int64(u)); err != nil {
			return nil, err
		}
		a := find(uint32(u))
		for _, v := range g.Out(uint32(u)) {
			if b := find(v); a < b {
				parent[b] = a
			} else if b < a {
				parent[a] = b
				a = b
			}
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
	c.measure(int(count))
	return c, nil
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
