package pack

import (
	"math/bits"

	"github.com/freshet/freshet/lab/webgraph/bitcode"
)

// groupPages is the number of pages of a group. Lists are copied from others of
// their group only, so any list is found by decoding half a group in the mean,
// and the places of groups alone are stored.
const groupPages = 16

// longList is the number of links from which on a list is told with its length in
// bits, to be skipped, and is neither copied nor copied from.
const longList = 1024

// Every number that is coded belongs to a kind; kinds that depend on what the
// reader knows already have a table for each context.
const (
	refTable        = 0            // pages back to the list that is copied, 0: none, groupPages: a long list
	localCountTable = refTable + 1 // links inside the site that are not copied; by whether some are
	crossCountTable = localCountTable + 2
	blocksTable     = crossCountTable + 2 // number of blocks
	blockTable      = blocksTable + 1     // lengths: the first, those left out, those copied
	localTable      = blockTable + 3      // links inside the site, by the gap to be expected
	crossTable      = localTable + 33     // links to other sites, by the gap to be expected
	rankTable       = crossTable + 33     // links to other sites: class of popularity, by that of the one before
	tableCount      = rankTable + rankClasses + 1
)

// Numbers of a local table: gaps by logarithm, then what else a link may be.
var (
	gapClasses = bitcode.LogClasses(32)
	runClass   = gapClasses            // so many consecutive pages, by logarithm
	nextClass  = 2 * gapClasses        // so many pages after the last run that a page of the group had
	nearClass  = nextClass + nextPages // so many pages from the page itself
	localSize  = nearClass + 2*nearPages + 1
)

const (
	nextPages = 16
	nearPages = 8
	// rankClasses is the number of classes of popularity; class 0 are the pages
	// that are told by their number.
	rankClasses = 64
)

// tableSize returns the number of numbers of a table.
func tableSize(t int) int {
	switch {
	case t == refTable:
		return groupPages + 1
	case t < localTable:
		return gapClasses
	case t < crossTable:
		return localSize
	case t < rankTable:
		return gapClasses
	default:
		return rankClasses
	}
}

// gapContext returns the context of a gap: the logarithm of the mean gap when so
// many links are left for so many pages.
func gapContext(pages, links uint64) int {
	return max(min(bits.Len64(pages/max(links, 1)), 32), 0)
}

// lengths are the lengths of all words, and what a list would cost by them.
type lengths [tableCount][]uint8

// guessLengths returns initial lengths: the lengths of codes for power laws.
func guessLengths() *lengths {
	var l lengths
	for t := range l {
		l[t] = make([]uint8, tableSize(t))
		for i := range l[t] {
			l[t][i] = 5
			if t == refTable || t >= localTable && t < crossTable && i >= runClass {
				l[t][i] = 4
			}
		}
	}
	return &l
}

// counts are how often each number of each table occurred.
type counts [tableCount][]uint64

func newCounts() *counts {
	var c counts
	for t := range c {
		c[t] = make([]uint64, tableSize(t))
	}
	return &c
}

// codes are the codes of all tables.
type codes [tableCount]*bitcode.Prefix

// fitCodes returns the codes that fit the counts.
func (c *counts) fitCodes() (*codes, error) {
	var all codes
	for t := range c {
		var err error
		if all[t], err = bitcode.NewPrefix(c[t]); err != nil {
			return nil, err
		}
	}
	return &all, nil
}

func (c *codes) codeLengths() *lengths {
	var l lengths
	for t := range c {
		l[t] = c[t].Lengths()
	}
	return &l
}
