package bv

import (
	"errors"
	"fmt"
	"os"

	"github.com/freshet/freshet/lab/webgraph/bitcode"
)

// Index finds the list of any page of a coded graph. It is safe for concurrent
// use; each goroutine reads through a Reader of its own.
type Index struct {
	f       *File
	offsets *bitcode.EliasFano
}

// OpenIndex opens a coded graph for access to any list. The places of the lists
// are read from BASE.offsets into an Elias-Fano sequence, about a byte a page.
func OpenIndex(base string) (*Index, error) {
	f, err := Open(base)
	if err != nil {
		return nil, err
	}
	x := &Index{f: f}
	data, err := os.ReadFile(base + ".offsets")
	if err == nil {
		err = x.readOffsets(data)
		if err != nil {
			err = fmt.Errorf("%s.offsets: %w", base, err)
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return x, nil
}

func (x *Index) readOffsets(data []byte) error {
	end := uint64(len(x.f.graph)) * 8
	x.offsets = bitcode.NewEliasFano(uint64(x.f.Nodes)+1, end)
	r := bitcode.NewReader(data)
	at := uint64(0)
	for u := range x.f.Nodes + 1 {
		gap := r.Gamma()
		if r.Bad || gap > end-at {
			return &FormatError{uint64(u), "the file ends, or the list begins after the end of the graph"}
		}
		at += gap
		x.offsets.Push(at)
	}
	return nil
}

// Nodes returns the number of pages.
func (x *Index) Nodes() int64 { return x.f.Nodes }

// Bytes returns the sizes of the lists and of their places.
func (x *Index) Bytes() (lists, places int64) { return x.f.Size(), x.offsets.Bytes() }

// Close gives the mapped memory back.
func (x *Index) Close() error { return x.f.Close() }

// Reader reads lists of an Index. It is for one goroutine.
type Reader struct {
	x     *Index
	chain []link
	lists [2][]uint32
	s     scratch
}

// link is a list that another one is copied from.
type link struct {
	page, at, degree, ref uint64 // at: the bit after the header
}

// NewReader returns a reader.
func (x *Index) NewReader() *Reader { return &Reader{x: x} }

// Out returns the pages that page u links to. The slice is valid until the next
// call. An error is a *FormatError.
func (r *Reader) Out(u uint32) ([]uint32, error) {
	p := &r.x.f.Properties
	bits := bitcode.NewReader(r.x.f.graph)
	r.chain = r.chain[:0]
	for page := uint64(u); ; {
		bits.Pos = r.x.offsets.Get(page)
		degree, ref, err := p.readListHeader(bits, page)
		if err != nil {
			return nil, err
		}
		r.chain = append(r.chain, link{page, bits.Pos, degree, ref})
		if degree == 0 || ref == 0 {
			break
		}
		page -= ref
	}
	var list []uint32
	for i := len(r.chain) - 1; i >= 0; i-- {
		l := r.chain[i]
		to := r.lists[i&1][:0]
		if l.degree > 0 {
			var err error
			bits.Pos = l.at
			if to, err = p.readListBody(bits, l.page, l.degree, l.ref, list, to, &r.s); err != nil {
				return nil, err
			}
		}
		r.lists[i&1], list = to, to
	}
	return list, nil
}
