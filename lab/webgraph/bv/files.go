package bv

import (
	"fmt"
	"io"
	"iter"
	"os"

	"golang.org/x/sys/unix"
)

// File is a graph in files of the WebGraph framework, open for reading.
type File struct {
	Properties
	graph []byte
}

// Open opens BASE.properties and BASE.graph.
func Open(base string) (*File, error) {
	text, err := os.Open(base + ".properties")
	if err != nil {
		return nil, err
	}
	defer text.Close()
	f := new(File)
	if f.Properties, err = ReadProperties(text); err != nil {
		return nil, fmt.Errorf("%s.properties: %w", base, err)
	}
	g, err := os.Open(base + ".graph")
	if err != nil {
		return nil, err
	}
	defer g.Close()
	st, err := g.Stat()
	if err != nil {
		return nil, err
	}
	if f.Nodes > 8*st.Size() { // a list has one bit at least
		return nil, fmt.Errorf("%s.graph: damaged: %d bytes for %d pages, which %s.properties tells", base, st.Size(), f.Nodes, base)
	}
	if st.Size() == 0 {
		return f, nil
	}
	if f.graph, err = unix.Mmap(int(g.Fd()), 0, int(st.Size()), unix.PROT_READ, unix.MAP_SHARED); err != nil {
		return nil, fmt.Errorf("map %s.graph into memory: %w", base, err)
	}
	return f, nil
}

// Lists decodes the lists of all pages in order; see the function Lists.
func (f *File) Lists() iter.Seq2[[]uint32, error] { return Lists(f.Properties, f.graph) }

// Size returns the number of bytes of the lists.
func (f *File) Size() int64 { return int64(len(f.graph)) }

// Close gives the mapped memory back.
func (f *File) Close() error {
	if f.graph == nil {
		return nil
	}
	err := unix.Munmap(f.graph)
	f.graph = nil
	return err
}

// Graph is what is written: a webgraph.Graph.
type Graph interface {
	Nodes() int
	Out(u uint32) []uint32
}

// Write writes the three files of a graph. It returns the number of bits of the
// lists.
func Write(graph, offsets, properties io.Writer, p Properties, g Graph, progress func(done int64) error) (uint64, error) {
	e := NewEncoder(p, graph, offsets)
	for u := range g.Nodes() {
		if u&(1<<14-1) == 0 {
			if err := progress(int64(u)); err != nil {
				return 0, err
			}
		}
		if err := e.Append(g.Out(uint32(u))); err != nil {
			return 0, err
		}
	}
	return e.Finish(properties)
}
