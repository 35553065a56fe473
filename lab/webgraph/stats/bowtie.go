package stats

import (
	"context"
	"math/bits"
)

// BowTie divides the pages by the largest strong component (Broder et al. 2000).
// The counts sum to the number of pages.
type BowTie struct {
	Core         int64 // the largest strong component
	In           int64 // reach the core and cannot be reached from it
	Out          int64 // are reached from the core and cannot reach it
	Tubes        int64 // reached from In and reach Out, past the core
	Tendrils     int64 // the rest of the weak component around the core
	Disconnected int64 // other weak components
}

// set is a set of pages, a bit each.
type set []uint64

func newPageSet(n int) set          { return make(set, (n+63)/64) }
func (s set) hasPage(u uint32) bool { return s[u>>6]>>(u&63)&1 != 0 }
func (s set) addPage(u uint32)      { s[u>>6] |= 1 << (u & 63) }
func (s set) uniteExcept(t set, not set) { // adds what is in t but not in not
	for i := range s {
		s[i] |= t[i] &^ not[i]
	}
}

// spreadAlong adds to s all pages that are reached from its pages along next,
// breadth first. Pages in block are not entered. Wide frontiers are put in the
// order of pages, so that lists are read as they stand in the file: on webs of
// 10^7 pages that is several times as fast as the order in which they are found.
func (s set) spreadAlong(ctx context.Context, n int, next func(u uint32) []uint32, block set) error {
	queue, later := s.appendPagesTo(nil), []uint32(nil)
	var frontier set
	t := ticker{ctx: ctx}
	done := int64(0)
	for len(queue) > 0 {
		later = later[:0]
		for _, u := range queue {
			done++
			if err := t.checkEvery(done); err != nil {
				return err
			}
			for _, v := range next(u) {
				if !s.hasPage(v) && (block == nil || !block.hasPage(v)) {
					s.addPage(v)
					later = append(later, v)
				}
			}
		}
		if len(later) > n/64 {
			if frontier == nil {
				frontier = newPageSet(n)
			}
			clear(frontier)
			for _, v := range later {
				frontier.addPage(v)
			}
			later = frontier.appendPagesTo(later[:0])
		}
		queue, later = later, queue
	}
	return nil
}

// countPages returns the number of pages of s.
func (s set) countPages() (n int64) {
	for _, w := range s {
		n += int64(bits.OnesCount64(w))
	}
	return n
}

// appendPagesTo appends the pages of s to buf in ascending order.
func (s set) appendPagesTo(buf []uint32) []uint32 {
	for i, w := range s {
		for ; w != 0; w &= w - 1 {
			buf = append(buf, uint32(i<<6+bits.TrailingZeros64(w)))
		}
	}
	return buf
}

// FindBowTie divides the pages, given both kinds of components.
func FindBowTie(ctx context.Context, g Graph, strong, weak *Components) (BowTie, error) {
	n := g.Nodes()
	var b BowTie
	if n == 0 {
		return b, nil
	}
	core := newPageSet(n)
	home := uint32(0) // weak component of the core
	for u, c := range strong.Of {
		if c == strong.Largest {
			core.addPage(uint32(u))
			home = weak.Of[u]
		}
	}
	down, up := newPageSet(n), newPageSet(n)
	copy(down, core)
	copy(up, core)
	if err := down.spreadAlong(ctx, n, g.Out, nil); err != nil {
		return b, err
	}
	if err := up.spreadAlong(ctx, n, g.In, nil); err != nil {
		return b, err
	}
	// What is reached from In and reaches Out, without entering the core or
	// leaving the rest: a path from In to the rest never meets Out before.
	fromIn, toOut := newPageSet(n), newPageSet(n)
	fromIn.uniteExcept(up, core)
	toOut.uniteExcept(down, core)
	if err := fromIn.spreadAlong(ctx, n, g.Out, down); err != nil {
		return b, err
	}
	if err := toOut.spreadAlong(ctx, n, g.In, up); err != nil {
		return b, err
	}
	for u := range uint32(n) {
		switch {
		case core.hasPage(u):
			b.Core++
		case up.hasPage(u):
			b.In++
		case down.hasPage(u):
			b.Out++
		case fromIn.hasPage(u) && toOut.hasPage(u):
			b.Tubes++
		case weak.Of[u] == home:
			b.Tendrils++
		default:
			b.Disconnected++
		}
	}
	return b, nil
}
