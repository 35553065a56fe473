// Package format reads and writes link graphs in the formats of others: lists of
// links, WebGraph's ASCII and BVGraph files, links exported from a store, and the
// fixed records of a 2008 thesis.
package format

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// LineError says what is wrong with a line.
type LineError struct {
	Line int64
	Why  string
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Why) }

// maxLine is the length of the longest line of a list of links.
const maxLine = 1 << 16

// ReadEdges reads lines of two page numbers, separated by blanks, a tab or a
// comma, and calls add for each. Empty lines and lines that begin with # or % are
// left out. A bad line is a *LineError; an error of add ends the reading.
func ReadEdges(r io.Reader, add func(u, v uint32) error) error {
	in := bufio.NewReaderSize(r, maxLine)
	for n := int64(1); ; n++ {
		text, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			return &LineError{n, fmt.Sprintf("longer than %d bytes: not a list of links", maxLine)}
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("line %d: %w", n, err)
		}
		end := err != nil
		if text = bytes.TrimSpace(text); len(text) > 0 && text[0] != '#' && text[0] != '%' {
			u, v, why := parseEdge(text)
			if why != "" {
				return &LineError{n, why}
			}
			if err := add(u, v); err != nil {
				return err
			}
		}
		if end {
			return nil
		}
	}
}

// parseEdge parses a trimmed line.
func parseEdge(text []byte) (u, v uint32, why string) {
	u, rest, why := parsePageNumber(text)
	if why != "" {
		return 0, 0, why
	}
	n := len(rest)
	rest = bytes.TrimLeft(rest, " \t")
	if len(rest) > 0 && rest[0] == ',' {
		rest = bytes.TrimLeft(rest[1:], " \t")
	}
	if len(rest) == 0 {
		return 0, 0, fmt.Sprintf("%.40q: one number; want two: the page and the page that it links to", text)
	}
	if len(rest) == n { // "12x"
		return 0, 0, fmt.Sprintf("%.40q is no page number", text)
	}
	v, rest, why = parsePageNumber(rest)
	if rest = bytes.TrimSpace(rest); why == "" && len(rest) > 0 {
		why = fmt.Sprintf("%.40q after two page numbers", rest)
	}
	return u, v, why
}

// maxPage is the greatest page number.
const maxPage = 1<<32 - 2

// parsePageNumber parses the digits that text begins with.
func parsePageNumber(text []byte) (n uint32, rest []byte, why string) {
	x, i := uint64(0), 0
	for i < len(text) && text[i]-'0' <= 9 {
		x = x*10 + uint64(text[i]-'0')
		if x > maxPage {
			return 0, nil, fmt.Sprintf("%.40q: the greatest page number is %d", text, uint64(maxPage))
		}
		i++
	}
	if i == 0 {
		return 0, nil, fmt.Sprintf("%.40q is no page number", text)
	}
	return uint32(x), text[i:], ""
}

// Graph is what is written: a webgraph.Graph.
type Graph interface {
	Nodes() int
	Links() int64
	Out(u uint32) []uint32
}

// WriteEdges writes the links of pages from to before to, two numbers and a tab
// a line.
func WriteEdges(w io.Writer, g Graph, from, to int) error {
	out := bufio.NewWriterSize(w, 1<<16)
	var line []byte
	for u := from; u < to; u++ {
		for _, v := range g.Out(uint32(u)) {
			line = strconv.AppendUint(line[:0], uint64(u), 10)
			line = append(line, '\t')
			line = strconv.AppendUint(line, uint64(v), 10)
			if _, err := out.Write(append(line, '\n')); err != nil {
				return err
			}
		}
	}
	return out.Flush()
}
