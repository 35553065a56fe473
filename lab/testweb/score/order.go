package score

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/freshet/freshet/lab/webgraph/rank"
)

// MaxOrder is the greatest web whose order is judged: PageRank needs 16 bytes a
// page, 8 a link where the graph is not stored both ways, and a pass over all
// links for each of some fifty rounds.
const MaxOrder = 20_000_000

// marks are the shares of the web at which the gathered PageRank is read.
var marks = [...]float64{.01, .05, .1, .25, .5, .75, 1}

// judgeOrder judges the order of first visits.
func (b *book) judgeOrder(ctx context.Context, opt Options) error {
	c, g := &b.card, opt.Graph
	n := g.Nodes()
	if n > MaxOrder {
		return nil
	}
	visited := make([]int64, 0, len(b.pages))
	for p := range b.pages {
		if p < 0 || uint64(p) >= n {
			return fmt.Errorf("truth log: page %d of a web of %d pages: the log is of another web", p, n)
		}
		visited = append(visited, p)
	}
	slices.SortFunc(visited, func(x, y int64) int {
		if d := b.pages[x].firstAt.Compare(b.pages[y].firstAt); d != 0 {
			return d
		}
		return int(x - y)
	})
	if len(visited) > 0 {
		seeds := b.findSeeds(g, visited)
		c.Seeds = len(seeds)
		c.Reachable = countReachable(g, seeds)
		c.CoverageReachable = float64(len(visited)) / float64(c.Reachable)
		if opt.Obtainable != nil {
			c.Obtainable = opt.Obtainable(seeds)
		}
	}
	ranks, err := PageRank(ctx, g)
	if err != nil {
		return err
	}
	gathered, i := 0., 0
	for _, m := range marks {
		for ; i < len(visited) && float64(i) < m*float64(n); i++ {
			gathered += ranks[visited[i]]
		}
		c.PageRankAt[strconv.FormatFloat(m, 'g', -1, 64)] = gathered
	}
	if len(visited) > 1 {
		values := make([]float64, len(visited))
		for i, p := range visited {
			values[i] = ranks[p]
		}
		if tau := Falling(values); !math.IsNaN(tau) {
			c.KendallTau = &tau
		}
	}
	return nil
}

// findSeeds returns the pages, of those visited in order, that no page visited before
// links to: the robot was told of them, and not by a sitemap.
func (b *book) findSeeds(g Graph, visited []int64) (seeds []uint64) {
	linked := make([]uint64, (g.Nodes()+63)/64)
	var buf []uint64
	for _, p := range visited {
		if u := uint64(p); linked[u/64]&(1<<(u%64)) == 0 && !b.pages[p].mapped {
			seeds = append(seeds, u)
		}
		buf = g.Successors(uint64(p), buf[:0])
		for _, v := range buf {
			linked[v/64] |= 1 << (v % 64)
		}
	}
	return seeds
}

// countReachable counts the pages that links lead to from some, themselves included.
func countReachable(g Graph, from []uint64) uint64 {
	seen := make([]uint64, (g.Nodes()+63)/64)
	n := uint64(0)
	for _, u := range from {
		seen[u/64] |= 1 << (u % 64)
		n++
	}
	var buf []uint64
	for stack := slices.Clone(from); len(stack) > 0; {
		u := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		buf = g.Successors(u, buf[:0])
		for _, v := range buf {
			if seen[v/64]&(1<<(v%64)) == 0 {
				seen[v/64] |= 1 << (v % 64)
				n++
				stack = append(stack, v)
			}
		}
	}
	return n
}

// Falling returns Kendall's tau-b between a sequence and its falling order: 1 if
// the values fall all along, -1 if they rise, about 0 if their order is random,
// NaN if all are equal.
func Falling(values []float64) float64 {
	place := make([]float64, len(values))
	for i := range place {
		place[i] = -float64(i)
	}
	tau, err := rank.Tau(place, values)
	if err != nil { // a value is no number
		return math.NaN()
	}
	return tau
}
