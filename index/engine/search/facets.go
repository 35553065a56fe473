package search

import (
	"cmp"
	"slices"

	"github.com/freshet/freshet/index"
	"github.com/freshet/freshet/index/engine/segment"
)

// facetColumns are the keyword columns that are counted, by the name of their
// facet.
var facetColumns = map[string]segment.Kind{"host": segment.HostColumn, "type": segment.TypeColumn, "lang": segment.LangColumn, "kind": segment.KindColumn}

// facetCounter counts values of matches: by ordinal within a segment, by value
// across segments.
type facetCounter struct {
	part    *Part
	matches int
	current map[string][]uint32
	all     map[string]map[string]int
}

func newFacetCounter() *facetCounter {
	c := &facetCounter{current: map[string][]uint32{}, all: map[string]map[string]int{}}
	for name := range facetColumns {
		c.all[name] = map[string]int{}
	}
	return c
}

// addWindow counts the matches of a window.
func (c *facetCounter) addWindow(p *Part, base uint32, w *window) {
	if c.part != p {
		c.endPart()
		c.part = p
		for name, k := range facetColumns {
			c.current[name] = make([]uint32, len(p.Segment.Keyword(k).Values()))
		}
	}
	if c.matches += w.countBits(); c.matches > facetLimit {
		return
	}
	for name, k := range facetColumns {
		column, counts := p.Segment.Keyword(k), c.current[name]
		forEachBit(base, w, func(doc uint32) { counts[column.Ordinal(doc)]++ })
	}
}

// endPart adds the counts of a segment to the totals.
func (c *facetCounter) endPart() {
	if c.part == nil {
		return
	}
	for name, k := range facetColumns {
		values := c.part.Segment.Keyword(k).Values()
		for ordinal, n := range c.current[name] {
			if n > 0 && values[ordinal] != "" {
				c.all[name][values[ordinal]] += int(n)
			}
		}
	}
	c.part = nil
}

// topCounts returns the most frequent values of each facet.
func (c *facetCounter) topCounts() map[string][]index.Count {
	c.endPart()
	out := map[string][]index.Count{}
	for name, counts := range c.all {
		for v, n := range counts {
			out[name] = append(out[name], index.Count{Value: v, Count: n})
		}
		slices.SortFunc(out[name], func(a, b index.Count) int {
			return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Value, b.Value))
		})
		out[name] = out[name][:min(len(out[name]), index.FacetSize)]
	}
	return out
}
