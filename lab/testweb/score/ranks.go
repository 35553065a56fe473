package score

import (
	"context"
	"runtime"

	"github.com/freshet/freshet/lab/webgraph/rank"
)

// Linked is a graph that is stored with its links both ways.
type Linked interface {
	// Linked returns what is stored.
	Linked() rank.Graph
}

// PageRank returns the PageRank of every page of the graph itself, not of what a
// robot saw of it. See rank.PageRank.
func PageRank(ctx context.Context, g Graph) ([]float64, error) {
	r, err := rank.PageRank(ctx, bothWays(g), rank.Options{Workers: runtime.GOMAXPROCS(0)})
	if err != nil {
		return nil, err
	}
	return r.Ranks, nil
}

// both is a graph in memory with its links both ways.
type both struct{ out, in lists }

// lists are those of pages one after another, and where those of each page begin.
type lists struct {
	starts []uint64
	links  []uint32
}

func (r lists) outLinks(u uint32) []uint32 { return r.links[r.starts[u]:r.starts[u+1]] }

// Nodes implements rank.Graph, as do the others.
func (b *both) Nodes() int            { return len(b.out.starts) - 1 }
func (b *both) Out(u uint32) []uint32 { return b.out.outLinks(u) }
func (b *both) In(u uint32) []uint32  { return b.in.outLinks(u) }

// bothWays returns a graph with its links both ways, reading all of it unless it
// is stored so.
func bothWays(g Graph) rank.Graph {
	if l, ok := g.(Linked); ok {
		return l.Linked()
	}
	n := g.Nodes()
	b := &both{lists{starts: make([]uint64, n+1)}, lists{starts: make([]uint64, n+2)}}
	var buf []uint64
	for u := range n {
		buf = g.Successors(u, buf[:0])
		for _, v := range buf {
			b.out.links = append(b.out.links, uint32(v))
			b.in.starts[v+2]++
		}
		b.out.starts[u+1] = uint64(len(b.out.links))
	}
	for v := range n {
		b.in.starts[v+2] += b.in.starts[v+1]
	}
	b.in.links = make([]uint32, len(b.out.links))
	for u := range n {
		for _, v := range b.Out(uint32(u)) {
			b.in.links[b.in.starts[v+1]] = uint32(u) // starts[v+1] walks to the end of v's row
			b.in.starts[v+1]++
		}
	}
	b.in.starts = b.in.starts[:n+1]
	return b
}
