package coverage

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/freshet/freshet/lab/webgraph/rank"
)

// subgraph is the part of a web between some of its pages, renumbered in
// their order.
type subgraph struct {
	outStarts, inStarts []int
	outs, ins           []uint32
}

// Nodes implements rank.Graph.
func (s *subgraph) Nodes() int { return len(s.outStarts) - 1 }

// Out implements rank.Graph.
func (s *subgraph) Out(u uint32) []uint32 { return s.outs[s.outStarts[u]:s.outStarts[u+1]] }

// In implements rank.Graph.
func (s *subgraph) In(u uint32) []uint32 { return s.ins[s.inStarts[u]:s.inStarts[u+1]] }

// inducedSubgraph returns the subgraph of pages, which ascend.
func inducedSubgraph(web rank.Graph, pages []uint32) *subgraph {
	number := make([]uint32, web.Nodes()) // + 1
	for i, u := range pages {
		number[u] = uint32(i + 1)
	}
	s := &subgraph{outStarts: []int{0}, inStarts: []int{0}}
	for _, u := range pages {
		for _, v := range web.Out(u) {
			if k := number[v]; k > 0 {
				s.outs = append(s.outs, k-1)
			}
		}
		for _, v := range web.In(u) {
			if k := number[v]; k > 0 {
				s.ins = append(s.ins, k-1)
			}
		}
		s.outStarts, s.inStarts = append(s.outStarts, len(s.outs)), append(s.inStarts, len(s.ins))
	}
	return s
}

// tieDigits is to how many digits ranks are compared: what differs by less
// differs by the errors of the power method only.
const tieDigits = 6

// subgraphTau is Kendall's tau between the PageRank of the part of the web that
// consists of pages and the PageRank of the whole, over these pages.
func (w *Worth) subgraphTau(ctx context.Context, order []uint32) (float64, error) {
	pages := slices.Clone(order)
	slices.Sort(pages)
	part, err := rank.PageRank(ctx, inducedSubgraph(w.web, pages), rank.Options{Tolerance: 1e-8})
	if err != nil {
		return 0, fmt.Errorf("PageRank of %d fetched pages: %w", len(pages), err)
	}
	a, b := make([]float64, len(pages)), make([]float64, len(pages))
	for i, u := range pages {
		a[i], b[i] = roundSignificant(part.Ranks[i]), roundSignificant(w.Ranks[u])
	}
	return rank.Tau(a, b)
}

// roundSignificant returns v with so many significant digits.
func roundSignificant(v float64) float64 {
	if v <= 0 {
		return 0
	}
	scale := math.Pow(10, float64(tieDigits-1)-math.Floor(math.Log10(v)))
	return math.Round(v*scale) / scale
}
