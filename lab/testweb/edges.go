package testweb

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// Stored is a graph in memory: the links of all pages in one array, and where
// those of each page begin.
type Stored struct {
	starts []uint64
	links  []uint32
}

// Nodes returns the number of pages.
func (g *Stored) Nodes() uint64 { return uint64(len(g.starts) - 1) }

// Successors appends the links of page u.
func (g *Stored) Successors(u uint64, buf []uint64) []uint64 {
	for _, v := range g.links[g.starts[u]:g.starts[u+1]] {
		buf = append(buf, uint64(v))
	}
	return buf
}

// ReadEdges reads a graph from lines of two page numbers, a link each, in any
// order; lines that begin with # are left out. The links of a page keep their
// order. It takes 12 bytes a link and 8 a page.
func ReadEdges(r io.Reader) (*Stored, error) {
	var from, to []uint32
	nodes := uint64(0)
	in := bufio.NewScanner(r)
	for line := 1; in.Scan(); line++ {
		text := strings.TrimSpace(in.Text())
		if text == "" || text[0] == '#' {
			continue
		}
		u, v, err := parseEdgeLine(text)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		from, to = append(from, u), append(to, v)
		nodes = max(nodes, uint64(u)+1, uint64(v)+1)
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("read links: %w", err)
	}
	if nodes == 0 {
		return nil, errors.New("no link in it: want lines of two page numbers")
	}
	g := &Stored{starts: make([]uint64, nodes+1), links: make([]uint32, len(to))}
	for _, u := range from {
		g.starts[u+1]++
	}
	for u := range nodes {
		g.starts[u+1] += g.starts[u]
	}
	next := append([]uint64(nil), g.starts...)
	for i, u := range from {
		g.links[next[u]] = to[i]
		next[u]++
	}
	return g, nil
}

// parseEdgeLine reads two page numbers.
func parseEdgeLine(text string) (u, v uint32, err error) {
	f := strings.Fields(text)
	if len(f) != 2 {
		return 0, 0, fmt.Errorf("%.60q: want two page numbers", text)
	}
	var n [2]uint32
	for i, s := range f {
		x, err := strconv.ParseUint(s, 10, 32)
		if err != nil || x == math.MaxUint32 {
			return 0, 0, fmt.Errorf("%.40q is no page number: want 0 to 4294967294", s)
		}
		n[i] = uint32(x)
	}
	return n[0], n[1], nil
}
