// Package bv codes link graphs as the WebGraph framework does (Boldi and Vigna,
// WWW 2004), so that graphs of the Laboratory for Web Algorithmics and of Common
// Crawl can be read and ours be given to others, and so that a web whose links
// are mostly local takes a few bits a link.
//
// The list of a page is coded against one of the lists before it: blocks of that
// list that are copied, then intervals of consecutive numbers, then what is left
// as gaps in zeta codes. A list may depend on a list that depends on a list, so
// many times as MaxRef says.
package bv

import (
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/freshet/freshet/lab/webgraph/bitcode"
)

// FormatError says where the bits of a graph are wrong.
type FormatError struct {
	Page uint64
	Why  string
}

func (e *FormatError) Error() string { return fmt.Sprintf("page %d: %s", e.Page, e.Why) }

// readCode reads a number of a code.
func (p *Properties) readCode(r *bitcode.Reader, c code) uint64 {
	switch c {
	case gammaCode:
		return r.Gamma()
	case unaryCode:
		return r.Unary()
	case zetaCode:
		return r.Zeta(uint(p.ZetaK))
	case deltaCode:
		return r.Delta()
	default:
		return r.Nibble()
	}
}

// readListHeader reads the degree of page x and how many pages before is the list that
// it is copied from, 0 for none.
func (p *Properties) readListHeader(r *bitcode.Reader, x uint64) (degree, ref uint64, err error) {
	degree = p.readCode(r, p.degrees)
	switch {
	case r.Bad:
		return 0, 0, &FormatError{x, "the file ends or is damaged"}
	case degree > uint64(p.Nodes):
		return 0, 0, &FormatError{x, fmt.Sprintf("%d links in a graph of %d pages", degree, p.Nodes)}
	}
	if degree > 0 && p.Window > 0 {
		ref = p.readCode(r, p.references)
		if ref > uint64(p.Window) || ref > x {
			return 0, 0, &FormatError{x, fmt.Sprintf("copied from %d pages before", ref)}
		}
	}
	return degree, ref, nil
}

// scratch is memory of decoding.
type scratch struct {
	copied    []uint32
	intervals []uint32
}

// readListBody decodes the rest of the list of page x, copied from model, into buf.
func (p *Properties) readListBody(r *bitcode.Reader, x, degree, ref uint64, model, buf []uint32, s *scratch) ([]uint32, error) {
	s.copied, s.intervals = s.copied[:0], s.intervals[:0]
	if ref > 0 {
		if err := p.readCopiedBlocks(r, x, model, s); err != nil {
			return nil, err
		}
	}
	have := uint64(len(s.copied))
	if have > degree {
		return nil, &FormatError{x, "more links are copied than there are"}
	}
	extra := degree - have
	if extra > 0 && p.MinInterval > 0 {
		n, err := p.readIntervals(r, x, extra, s)
		if err != nil {
			return nil, err
		}
		extra -= n
	}
	from := len(buf)
	buf = append(buf, s.copied...)
	buf = append(buf, s.intervals...)
	sorted := len(s.copied) == 0 || len(s.intervals) == 0
	v := int64(x)
	for i := range extra {
		gap := p.readCode(r, p.residuals)
		if i == 0 {
			v += bitcode.Signed(gap)
			sorted = sorted && len(buf) == from
		} else {
			v += int64(gap) + 1
		}
		if v < 0 || v >= p.Nodes || gap > math.MaxInt64 {
			return nil, &FormatError{x, "a link leads outside"}
		}
		buf = append(buf, uint32(v))
	}
	if r.Bad {
		return nil, &FormatError{x, "the file ends or is damaged"}
	}
	if !sorted {
		slices.Sort(buf[from:])
	}
	for i := from + 1; i < len(buf); i++ {
		if buf[i] <= buf[i-1] {
			return nil, &FormatError{x, fmt.Sprintf("a link to page %d twice", buf[i])}
		}
	}
	return buf, nil
}

// readCopiedBlocks reads which blocks of model are copied.
func (p *Properties) readCopiedBlocks(r *bitcode.Reader, x uint64, model []uint32, s *scratch) error {
	blocks := p.readCode(r, p.counts)
	if blocks > uint64(len(model))+1 {
		return &FormatError{x, fmt.Sprintf("%d blocks of a list of %d", blocks, len(model))}
	}
	rest := model
	for i := range blocks {
		n := p.readCode(r, p.blocks)
		if i > 0 {
			n++
		}
		if n > uint64(len(rest)) {
			return &FormatError{x, "a block is longer than the list that it is of"}
		}
		if i%2 == 0 {
			s.copied = append(s.copied, rest[:n]...)
		}
		rest = rest[n:]
	}
	if blocks%2 == 0 {
		s.copied = append(s.copied, rest...)
	}
	return nil
}

// readIntervals reads runs of consecutive pages and returns how many they have.
func (p *Properties) readIntervals(r *bitcode.Reader, x, extra uint64, s *scratch) (uint64, error) {
	count := r.Gamma()
	if count > extra {
		return 0, &FormatError{x, fmt.Sprintf("%d intervals for %d links", count, extra)}
	}
	total, v := uint64(0), int64(x)
	for i := range count {
		gap := r.Gamma()
		if gap > 1<<40 {
			return 0, &FormatError{x, "an interval leads outside"}
		}
		if i == 0 {
			v += bitcode.Signed(gap)
		} else {
			v += int64(gap) + 1
		}
		n := r.Gamma() + uint64(p.MinInterval)
		if v < 0 || n > extra-total || v+int64(n) > p.Nodes {
			return 0, &FormatError{x, "an interval leads outside"}
		}
		for range n {
			s.intervals = append(s.intervals, uint32(v))
			v++
		}
		total += n
	}
	return total, nil
}

// Lists decodes the lists of all pages in order. The slice is valid until the
// next one. The sequence ends with the first error.
func Lists(p Properties, graph []byte) iter.Seq2[[]uint32, error] {
	return func(yield func([]uint32, error) bool) {
		r := bitcode.NewReader(graph)
		ring := make([][]uint32, p.Window+1)
		var s scratch
		links := int64(0)
		for x := range uint64(p.Nodes) {
			degree, ref, err := p.readListHeader(r, x)
			list := ring[x%uint64(len(ring))][:0]
			if err == nil && degree > 0 {
				list, err = p.readListBody(r, x, degree, ref, ring[(x-ref)%uint64(len(ring))], list, &s)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			ring[x%uint64(len(ring))] = list
			links += int64(len(list))
			if !yield(list, nil) {
				return
			}
		}
		if links != p.Links {
			yield(nil, fmt.Errorf("%d links; the properties say %d", links, p.Links))
		}
	}
}
