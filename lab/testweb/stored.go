package testweb

import (
	"github.com/freshet/freshet/lab/webgraph"
	"github.com/freshet/freshet/lab/webgraph/rank"
)

// folder is a stored graph.
type folder struct {
	g *webgraph.Graph
}

// sites is a stored graph that tells its sites, which become the hosts.
type sites struct {
	folder
}

// Linked returns the graph that is stored, with its links both ways.
func (f folder) Linked() rank.Graph { return f.g }

// FromStored returns the graph of a test web that is a stored graph. If that has
// sites the result is a Layout, too: the sites are the hosts.
func FromStored(g *webgraph.Graph) Graph {
	if g.Sites() > 0 {
		return sites{folder{g}}
	}
	return folder{g}
}

func (f folder) Nodes() uint64 { return uint64(f.g.Nodes()) }

func (f folder) Successors(u uint64, buf []uint64) []uint64 {
	for _, v := range f.g.Out(uint32(u)) {
		buf = append(buf, uint64(v))
	}
	return buf
}

func (s sites) Hosts() uint64 { return uint64(s.g.Sites()) }

func (s sites) Host(page uint64) uint64 { return uint64(s.g.Site(uint32(page))) }

func (s sites) Span(host uint64) (first, pages uint64) {
	f, n := s.g.SiteSpan(int(host))
	return uint64(f), uint64(n)
}

// Collect computes all links of a graph once and keeps them, 4 bytes a link and 8
// a page: for work that reads them many times.
func Collect(g Graph) *Stored {
	n := g.Nodes()
	s := &Stored{starts: make([]uint64, 1, n+1)}
	var buf []uint64
	for u := range n {
		buf = g.Successors(u, buf[:0])
		for _, v := range buf {
			s.links = append(s.links, uint32(v))
		}
		s.starts = append(s.starts, uint64(len(s.links)))
	}
	return s
}
