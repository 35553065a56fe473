package score

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/freshet/freshet/lab/webgraph/rank"
)

// MaxOrder is the greatest web whose order is judged: PageRank needs 12 bytes a
// page and a pass over all links for each of some fifty rounds.
const MaxOrder = 20_000_000

// marks are the shares of the web at which the gathered PageRank is read.
var marks = [...]float64{.01, .05, .1, .25, .5, .75, 1}

// order judges the order of first visits.
func (b *book) order(opt Options) error {
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
		c.Reachable = reachable(g, uint64(visited[0]))
		c.CoverageReachable = float64(len(visited)) / float64(c.Reachable)
		if opt.Obtainable != nil {
			c.Obtainable = opt.Obtainable(uint64(visited[0]))
		}
	}
	ranks := PageRank(g)
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

// reachable counts the pages that links lead to from a page, itself included.
func reachable(g Graph, from uint64) uint64 {
	seen := make([]uint64, (g.Nodes()+63)/64)
	seen[from/64] |= 1 << (from % 64)
	n := uint64(1)
	var buf []uint64
	for stack := []uint64{from}; len(stack) > 0; {
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

// The usual damping (Page et al. 1998), and when to stop.
const (
	damping   = .85
	tolerance = 1e-9 // of the sum of changes
	rounds    = 200
)

// PageRank returns the PageRank of every page: the stationary share of a surfer
// who follows a link with probability .85 and else jumps anywhere, as he does
// from pages without links. The ranks sum to 1.
func PageRank(g Graph) []float64 {
	n := g.Nodes()
	ranks, next := make([]float64, n), make([]float64, n)
	for i := range ranks {
		ranks[i] = 1 / float64(n)
	}
	var buf []uint64
	for range rounds {
		lost := 0.
		clear(next)
		for u := range n {
			buf = g.Successors(u, buf[:0])
			if len(buf) == 0 {
				lost += ranks[u]
				continue
			}
			each := ranks[u] / float64(len(buf))
			for _, v := range buf {
				next[v] += each
			}
		}
		jump := (1 - damping + damping*lost) / float64(n)
		change := 0.
		for i := range next {
			next[i] = jump + damping*next[i]
			change += math.Abs(next[i] - ranks[i])
		}
		ranks, next = next, ranks
		if change < tolerance {
			break
		}
	}
	return ranks
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
