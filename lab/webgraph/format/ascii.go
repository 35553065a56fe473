package format

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
)

// ReadASCII reads WebGraph's ASCII format: the number of pages on the first line,
// then a line for each page with the pages that it links to. The slice is valid
// until the next one; the sequence ends with the first error. Lines may be of any
// length.
func ReadASCII(r io.Reader) (nodes int64, lists iter.Seq2[[]uint32, error], err error) {
	in := bufio.NewReaderSize(r, 1<<16)
	first, err := numbersOfLine(in, nil)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, nil, &LineError{1, err.Error()}
	}
	if len(first) != 1 {
		return 0, nil, &LineError{1, fmt.Sprintf("%d numbers; want one: the number of pages", len(first))}
	}
	nodes = int64(first[0])
	return nodes, func(yield func([]uint32, error) bool) {
		var list []uint32
		for u := range nodes {
			list, err = numbersOfLine(in, list[:0])
			if errors.Is(err, io.EOF) && u == nodes-1 {
				err = nil // no end of line after the last one
			}
			if errors.Is(err, io.EOF) {
				err = fmt.Errorf("the file ends; %d pages were announced", nodes)
			}
			for _, v := range list {
				if int64(v) >= nodes && err == nil {
					err = fmt.Errorf("page %d of a web of %d pages", v, nodes)
				}
			}
			if err != nil {
				yield(nil, &LineError{u + 2, err.Error()})
				return
			}
			if !yield(list, nil) {
				return
			}
		}
		if rest, err := numbersOfLine(in, nil); len(rest) > 0 || err != nil && !errors.Is(err, io.EOF) {
			yield(nil, &LineError{nodes + 2, fmt.Sprintf("more lines than pages: %d were announced", nodes)})
		}
	}, nil
}

// numbersOfLine appends the numbers of a line to list. io.EOF means that the file
// ended with this line or before it.
func numbersOfLine(in *bufio.Reader, list []uint32) ([]uint32, error) {
	x, digits := uint64(0), 0
	for {
		c, err := in.ReadByte()
		if err == nil && c-'0' <= 9 {
			x = x*10 + uint64(c-'0')
			if x > maxPage {
				return list, fmt.Errorf("the greatest page number is %d", uint64(maxPage))
			}
			digits++
			continue
		}
		if digits > 0 {
			list = append(list, uint32(x))
			x, digits = 0, 0
		}
		switch {
		case err != nil:
			return list, err
		case c == '\n':
			return list, nil
		case c != ' ' && c != '\t' && c != '\r':
			return list, fmt.Errorf("%q in a list of page numbers", c)
		}
	}
}

// WriteASCII writes WebGraph's ASCII format.
func WriteASCII(w io.Writer, g Graph) error {
	out := bufio.NewWriterSize(w, 1<<16)
	if _, err := fmt.Fprintln(out, g.Nodes()); err != nil {
		return err
	}
	var line []byte
	for u := range g.Nodes() {
		line = line[:0]
		for i, v := range g.Out(uint32(u)) {
			if i > 0 {
				line = append(line, ' ')
			}
			line = strconv.AppendUint(line, uint64(v), 10)
		}
		if _, err := out.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return out.Flush()
}
