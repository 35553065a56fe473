package format

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"iter"
)

// recordSize is the size of a record of a page in the files of the thesis.
const recordSize = 32

// record tells of a page: little-endian, in this order.
type record struct {
	Node    uint64
	Out, In uint32 // numbers of links
	OutAt   uint64 // where its links begin in the file of links, in bytes
	InAt    uint64 // where the pages that link to it do
}

func parseRecord(b []byte) record {
	le := binary.LittleEndian
	return record{le.Uint64(b), le.Uint32(b[8:]), le.Uint32(b[12:]), le.Uint64(b[16:]), le.Uint64(b[24:])}
}

func (r record) appendTo(b []byte) []byte {
	le := binary.LittleEndian
	b = le.AppendUint64(b, r.Node)
	b = le.AppendUint32(b, r.Out)
	b = le.AppendUint32(b, r.In)
	b = le.AppendUint64(b, r.OutAt)
	return le.AppendUint64(b, r.InAt)
}

// ReadFixed reads the files of fixed records: nodes holds a record of 32 bytes for
// each page, in the order of their numbers (64-bit number, 32-bit counts of links
// from and to the page, 64-bit positions of both lists), links the lists, as
// 64-bit page numbers. The slice is valid until the next one; the sequence ends
// with the first error.
func ReadFixed(nodes io.Reader, size int64, links io.ReaderAt, linksSize int64) (int64, iter.Seq2[[]uint32, error], error) {
	if size%recordSize != 0 {
		return 0, nil, fmt.Errorf("%d bytes are no whole number of records of %d bytes", size, recordSize)
	}
	n := size / recordSize
	if n > maxPage+1 {
		return 0, nil, fmt.Errorf("%d pages: the greatest number is %d", n, uint64(maxPage))
	}
	in := bufio.NewReaderSize(nodes, 1<<16)
	return n, func(yield func([]uint32, error) bool) {
		var list []uint32
		var rec [recordSize]byte
		var raw []byte
		for u := range n {
			_, err := io.ReadFull(in, rec[:])
			r := parseRecord(rec[:])
			if err == nil && r.Node != uint64(u) {
				err = fmt.Errorf("it is of page %d", r.Node)
			}
			if err == nil {
				list, raw, err = fixedList(links, linksSize, r, n, list[:0], raw)
			}
			if err != nil {
				yield(nil, fmt.Errorf("record %d: %w", u, err))
				return
			}
			if !yield(list, nil) {
				return
			}
		}
	}, nil
}

// fixedList reads the links of a page.
func fixedList(links io.ReaderAt, size int64, r record, nodes int64, list []uint32, raw []byte) ([]uint32, []byte, error) {
	need := int64(r.Out) * 8
	if r.OutAt > uint64(size) || need > size-int64(r.OutAt) {
		return list, raw, fmt.Errorf("%d links from byte %d on: the file of links has %d bytes", r.Out, r.OutAt, size)
	}
	if int64(cap(raw)) < need {
		raw = make([]byte, need)
	}
	raw = raw[:need]
	if _, err := links.ReadAt(raw, int64(r.OutAt)); err != nil && need > 0 {
		return list, raw, err
	}
	for ; len(raw) > 0; raw = raw[8:] {
		v := binary.LittleEndian.Uint64(raw)
		if v >= uint64(nodes) {
			return list, raw, fmt.Errorf("a link to page %d of %d", v, nodes)
		}
		list = append(list, uint32(v))
	}
	return list, raw, nil
}

// Both is a graph that knows its links the other way round.
type Both interface {
	Graph
	In(u uint32) []uint32
}

// WriteFixed writes the files of fixed records: the links from a page, then the
// links to it, page by page.
func WriteFixed(nodes, links io.Writer, g Both) error {
	recs, lists := bufio.NewWriterSize(nodes, 1<<16), bufio.NewWriterSize(links, 1<<16)
	var b []byte
	at := uint64(0)
	for u := range uint32(g.Nodes()) {
		out, in := g.Out(u), g.In(u)
		r := record{Node: uint64(u), Out: uint32(len(out)), In: uint32(len(in)), OutAt: at, InAt: at + 8*uint64(len(out))}
		at = r.InAt + 8*uint64(len(in))
		if _, err := recs.Write(r.appendTo(b[:0])); err != nil {
			return err
		}
		for _, list := range [][]uint32{out, in} {
			for _, v := range list {
				b = binary.LittleEndian.AppendUint64(b[:0], uint64(v))
				if _, err := lists.Write(b); err != nil {
					return err
				}
			}
		}
	}
	if err := recs.Flush(); err != nil {
		return err
	}
	return lists.Flush()
}
