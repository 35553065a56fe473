package pack

import (
	"fmt"
	"math/bits"

	"github.com/freshet/freshet/lab/webgraph/bitcode"
)

// ranks tell pages by their popularity. Few pages have most of the links between
// sites, so a link costs less as a class of popularity, and the number of the
// page within the class, than as a gap: about the entropy of the targets. A class
// are the pages with about as many links from other sites, in the order of their
// numbers; its pages are stored as an Elias-Fano sequence. Pages with one such
// link are told by their own number, class 0: to list them would cost more.
type ranks struct {
	nodes   uint64
	class   []uint8 // of each page
	index   []uint32
	members [rankClasses]*bitcode.EliasFano // of classes from 1 on; nil: empty
}

// place is where ranks have a page.
type place struct {
	class uint8
	index uint32
}

// rankClass returns the class of a page with so many links from other sites: two
// classes for a doubling.
func rankClass(links uint32) uint8 {
	if links < 2 {
		return 0
	}
	n := bits.Len32(links)
	return uint8(2*(n-2) + int(links>>(n-2)&1) + 1)
}

// newRanks orders the pages by the number of links from other sites, links, whose
// array becomes part of the ranks.
func newRanks(links []uint32) *ranks {
	r := &ranks{nodes: uint64(len(links)), class: make([]uint8, len(links)), index: links}
	var sizes [rankClasses]uint64
	for v, n := range links {
		c := rankClass(n)
		r.class[v] = c
		sizes[c]++
	}
	for c := 1; c < rankClasses; c++ {
		if sizes[c] > 0 {
			r.members[c] = bitcode.NewEliasFano(sizes[c], r.nodes)
		}
	}
	for v, c := range r.class {
		r.index[v] = uint32(v)
		if c > 0 {
			r.index[v] = uint32(r.members[c].Len())
			r.members[c].Push(uint64(v))
		}
	}
	return r
}

func (r *ranks) placeOfPage(v uint32) place { return place{r.class[v], r.index[v]} }

// classSize returns the number of pages of a class.
func (r *ranks) classSize(class uint8) uint64 {
	switch {
	case class == 0:
		return r.nodes
	case r.members[class] == nil:
		return 0
	default:
		return r.members[class].Len()
	}
}

// rankWords returns the ranks as numbers to be stored.
func (r *ranks) rankWords() []uint64 {
	var w []uint64
	for c, m := range r.members {
		if m != nil {
			w = append(append(w, uint64(c)), m.Words()...)
		}
	}
	return w
}

// readRanks reads what words wrote.
func readRanks(nodes uint64, w []uint64) (*ranks, error) {
	r := &ranks{nodes: nodes}
	for len(w) > 0 {
		c := w[0]
		if c == 0 || c >= rankClasses || r.members[c] != nil {
			return nil, fmt.Errorf("class of popularity %d", c)
		}
		m, rest, err := bitcode.ReadEliasFano(w[1:])
		if err != nil {
			return nil, fmt.Errorf("class of popularity %d: %w", c, err)
		}
		if m.Len() == 0 {
			return nil, fmt.Errorf("class of popularity %d is empty", c)
		}
		r.members[c], w = m, rest
	}
	return r, nil
}
