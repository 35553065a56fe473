// Package rank computes PageRank and compares orders in which pages were
// visited: by the PageRank gathered along the way and by Kendall's tau. The two
// can disagree: an order that gathers much early may still be far from the
// falling order of ranks (Boldi, Santini and Vigna 2004).
package rank

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
)

// Graph is a directed graph with links both ways. Out and In return the ends
// and the starts of a page's links; a link that occurs twice counts twice. The
// slices are read, not kept, and are no longer used when the next of the same
// direction is asked for. Methods may be called concurrently unless there is a
// method View, which then gives each goroutine a graph of its own.
type Graph interface {
	Nodes() int
	Out(u uint32) []uint32
	In(u uint32) []uint32
}

// Options of PageRank; the zero value is the usual setting.
type Options struct {
	Damping   float64   // probability to follow a link, 0 < Damping < 1; 0: .85 (Page et al. 1998)
	Tolerance float64   // least sum of changes in a round; 0: 1e-9
	MaxRounds int       // 0: 500
	Jump      []float64 // where jumps lead, by weight; nil: anywhere alike
	Workers   int       // goroutines; 0: 1. The ranks do not depend on it.

	Progress func(round int, residual float64) // called after each round unless nil
}

// Result is PageRank with how well it has settled. The sum of the errors of all
// ranks is at most Residual*Damping/(1-Damping).
type Result struct {
	Ranks    []float64 // sum to 1
	Residual float64   // sum of the changes in the last round
	Rounds   int
	Damping  float64
}

// Bound returns the greatest possible sum of the errors of all ranks.
func (r *Result) Bound() float64 { return r.Residual * r.Damping / (1 - r.Damping) }

// block is how many pages are summed at a time. Sums are made by block and
// then over blocks in order, so they are the same for any number of workers.
const block = 1 << 14

// PageRank returns the stationary shares of a surfer who follows a link of his
// page with probability Damping and else jumps, as he does from a page without
// links. It is the power method by gathering: every page sums what its
// predecessors hand on. It keeps 20 bytes a page.
func PageRank(ctx context.Context, g Graph, opt Options) (*Result, error) {
	n := g.Nodes()
	if opt.Damping == 0 {
		opt.Damping = .85
	}
	if !(opt.Damping > 0 && opt.Damping < 1) {
		return nil, fmt.Errorf("PageRank: damping %g is not between 0 and 1", opt.Damping)
	}
	if opt.Tolerance == 0 {
		opt.Tolerance = 1e-9
	}
	if opt.MaxRounds == 0 {
		opt.MaxRounds = 500
	}
	jump, err := jumpShares(opt.Jump, n)
	if err != nil {
		return nil, err
	}
	res := &Result{Ranks: make([]float64, n), Damping: opt.Damping}
	if n == 0 {
		return res, nil
	}
	p := &power{opt: opt, jump: jump, ranks: res.Ranks, handed: make([]float64, n)}
	for range max(1, opt.Workers) {
		p.views = append(p.views, viewOf(g))
	}
	for u := range res.Ranks {
		res.Ranks[u] = jump(u)
	}
	p.degrees = make([]uint32, n)
	if _, err := p.sumOverBlocks(ctx, func(g Graph, from, to int) float64 {
		for u := from; u < to; u++ {
			p.degrees[u] = uint32(len(g.Out(uint32(u))))
		}
		return 0
	}); err != nil {
		return nil, err
	}
	for res.Rounds < opt.MaxRounds {
		if res.Residual, err = p.powerStep(ctx); err != nil {
			return nil, err
		}
		res.Rounds++
		if opt.Progress != nil {
			opt.Progress(res.Rounds, res.Residual)
		}
		if res.Residual < opt.Tolerance {
			break
		}
	}
	return res, nil
}

// viewOf returns the graph for the use of one goroutine.
func viewOf(g Graph) Graph {
	type lists = interface { // that of package stats and of webgraph.Graph
		Nodes() int
		Links() int64
		Out(u uint32) []uint32
		In(u uint32) []uint32
	}
	if v, ok := g.(interface{ View() lists }); ok {
		return v.View()
	}
	return g
}

// jumpShares returns the share of each page in the jumps.
func jumpShares(weights []float64, n int) (func(u int) float64, error) {
	if weights == nil {
		return func(int) float64 { return 1 / float64(n) }, nil
	}
	if len(weights) != n {
		return nil, fmt.Errorf("PageRank: %d jump weights for %d pages", len(weights), n)
	}
	var sum float64
	for u, w := range weights {
		if !(w >= 0) || math.IsInf(w, 0) {
			return nil, fmt.Errorf("PageRank: jump weight %g of page %d", w, u)
		}
		sum += w
	}
	if sum == 0 {
		return nil, fmt.Errorf("PageRank: all jump weights are 0")
	}
	return func(u int) float64 { return weights[u] / sum }, nil
}

// power is the state of the iteration.
type power struct {
	views   []Graph // of the workers
	opt     Options
	jump    func(u int) float64
	ranks   []float64
	degrees []uint32  // links of each page
	handed  []float64 // what a page hands to each of its links
}

// powerStep makes one step and returns the sum of changes.
func (p *power) powerStep(ctx context.Context) (float64, error) {
	lost, err := p.sumOverBlocks(ctx, func(_ Graph, from, to int) (sum float64) {
		for u := from; u < to; u++ {
			if d := p.degrees[u]; d > 0 {
				p.handed[u] = p.ranks[u] / float64(d)
			} else {
				p.handed[u] = 0
				sum += p.ranks[u]
			}
		}
		return sum
	})
	if err != nil {
		return 0, err
	}
	d := p.opt.Damping
	return p.sumOverBlocks(ctx, func(g Graph, from, to int) (change float64) {
		for v := from; v < to; v++ {
			var sum float64
			for _, u := range g.In(uint32(v)) {
				sum += p.handed[u]
			}
			r := (1-d+d*lost)*p.jump(v) + d*sum
			change += math.Abs(r - p.ranks[v])
			p.ranks[v] = r
		}
		return change
	})
}

// sumOverBlocks runs do on blocks of pages by the workers and sums what it returns.
func (p *power) sumOverBlocks(ctx context.Context, do func(g Graph, from, to int) float64) (float64, error) {
	n := len(p.ranks)
	sums := make([]float64, (n+block-1)/block)
	var next atomic.Int64
	var wg sync.WaitGroup
	for _, g := range p.views {
		wg.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(sums) {
					return
				}
				sums[i] = do(g, i*block, min((i+1)*block, n))
			}
		})
	}
	wg.Wait()
	var sum float64
	for _, s := range sums {
		sum += s
	}
	return sum, ctx.Err()
}
