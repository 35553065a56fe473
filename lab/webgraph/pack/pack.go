// Package pack codes the lists of links of a web of sites in less room than codes
// for the web at large do, so that graphs of 10^9 pages can be kept on a disk and
// read through the memory, and finds any list in some microseconds.
//
// As in the WebGraph framework (Boldi and Vigna, WWW 2004) a list is coded against
// one before it: blocks of that list that are copied, then what is left. What is
// different:
//
//   - Links inside the site are numbers below the size of the site, and links to
//     other sites are told by popularity (type ranks), since a page number of the
//     whole web costs more the greater the web is.
//   - All numbers are coded by prefix codes (Huffman) fitted to the graph; a gap by
//     the code for the gap to be expected, which is known from the number of links
//     that are left and the room for them, as in Golomb codes with a parameter for each list.
//   - The children of the pages of a site follow each other, so a run of pages is
//     told by its distance from the end of the last run of the pages before
//     (Apostolico and Drovandi 2009 tell links by those of the list before).
//   - Lists are coded in groups of 16 that do not depend on each other, and only the
//     places of groups are stored, as an Elias-Fano sequence: those of all lists
//     would cost a bit a link.
package pack

import (
	"fmt"

	"github.com/freshet/freshet/lab/webgraph/bitcode"
)

// Parts are the coded lists as they are stored.
type Parts struct {
	Codes  []byte   // lengths of the words of all codes
	Places []uint64 // where the groups begin
	Ranks  []uint64 // pages by popularity; empty if they are not used
	Bits   []byte   // the lists
}

// Lists are coded lists, open for reading. They are safe for concurrent use; each
// goroutine reads through a Reader of its own.
type Lists struct {
	nodes, links uint64
	sites        sites
	codes        *codes
	places       *bitcode.EliasFano
	ranks        *ranks
	bits         []byte
}

// layout says which sites the lists were coded with.
type layout uint8

const (
	eachAlone layout = iota // each page is a site
	allOne                  // all pages are one
	ownSites                // those of the graph
)

// version of the coding.
const version = 1

// headBytes come before the lengths of words: version, layout, whether ranks are
// used.
const headBytes = 3

// Open opens coded lists of a graph of so many pages and links. sites holds the
// first page of each site, and the end; empty if there are none. What the parts
// tell of themselves is checked; the lists are when they are read.
func Open(p Parts, nodes, links int64, starts []uint32) (*Lists, error) {
	l := &Lists{nodes: uint64(nodes), links: uint64(links), bits: p.Bits}
	if len(p.Codes) < headBytes || p.Codes[0] != version {
		return nil, fmt.Errorf("codes: not of version %d", version)
	}
	switch layout(p.Codes[1]) {
	case eachAlone:
	case allOne:
		l.sites = sites{0, uint32(nodes)}
	case ownSites:
		if len(starts) < 2 {
			return nil, fmt.Errorf("codes: they need the sites of the graph, which it does not tell")
		}
		l.sites = starts
	default:
		return nil, fmt.Errorf("codes: layout %d of sites", p.Codes[1])
	}
	var err error
	if l.codes, err = readCodes(p.Codes[headBytes:]); err != nil {
		return nil, err
	}
	if p.Codes[2] != 0 {
		if l.ranks, err = readRanks(l.nodes, p.Ranks); err != nil {
			return nil, err
		}
	}
	l.places, p.Places, err = bitcode.ReadEliasFano(p.Places)
	if err != nil {
		return nil, fmt.Errorf("places: %w", err)
	}
	if want := groupCount(l.nodes); l.places.Len() != want {
		return nil, fmt.Errorf("places: %d, want %d", l.places.Len(), want)
	}
	return l, nil
}

// groupCount returns the number of groups of a graph.
func groupCount(nodes uint64) uint64 { return (nodes + groupPages - 1) / groupPages }

func readCodes(b []byte) (*codes, error) {
	var all codes
	for t := range all {
		n := tableSize(t)
		if len(b) < n {
			return nil, fmt.Errorf("codes: the file ends within table %d", t)
		}
		var err error
		if all[t], err = bitcode.ReadPrefix(b[:n]); err != nil {
			return nil, fmt.Errorf("codes: table %d: %w", t, err)
		}
		b = b[n:]
	}
	if len(b) > 0 {
		return nil, fmt.Errorf("codes: %d bytes too many", len(b))
	}
	return &all, nil
}

// Nodes returns the number of pages.
func (l *Lists) Nodes() int64 { return int64(l.nodes) }
