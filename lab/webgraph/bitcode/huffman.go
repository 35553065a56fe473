package bitcode

import (
	"container/heap"
	"fmt"
	"math/bits"
)

// MaxLength is the greatest length of a word of a Prefix code: a word is then
// found with one look into a table that stays in the cache.
const MaxLength = 12

// MaxNumbers is the greatest number of words of a Prefix code: with more, words
// could not differ much in length.
const MaxNumbers = 1 << (MaxLength - 2)

// Prefix is a prefix code for the numbers below a bound, fitted to how often they
// occur (Huffman 1952). Words are canonical, so that their lengths tell the code.
type Prefix struct {
	lengths []uint8                 // by number; 0: it has no word
	words   []uint16                // by number
	table   *[1 << MaxLength]uint16 // by the next MaxLength bits: number << 4 | length of its word
}

// NewPrefix returns the code for numbers that occur so often. Every number gets a
// word, those that do not occur the longest ones. There are at most
// MaxNumbers numbers.
func NewPrefix(counts []uint64) (*Prefix, error) {
	lengths, err := lengthsFor(counts)
	if err != nil {
		return nil, err
	}
	return ReadPrefix(lengths)
}

// lengthsFor returns the lengths of words of a Huffman code. Where a word would be
// too long the counts are flattened and the code is made again, which costs a
// fraction of a percent beside the best code of bounded length.
func lengthsFor(counts []uint64) ([]uint8, error) {
	if len(counts) == 0 || len(counts) > MaxNumbers {
		return nil, fmt.Errorf("prefix code for %d numbers: 1 to %d", len(counts), MaxNumbers)
	}
	lengths := make([]uint8, len(counts))
	if len(counts) == 1 {
		lengths[0] = 1
		return lengths, nil
	}
	flat := make([]uint64, len(counts))
	total := uint64(0)
	for _, c := range counts {
		total += c
	}
	for least := total >> (MaxLength + 4); ; least = 2*least + 1 {
		for i, c := range counts {
			flat[i] = max(c, least, 1)
		}
		if depths(flat, lengths) <= MaxLength {
			return lengths, nil
		}
	}
}

// node is one of a tree of words: numbers first, then pairs of nodes.
type node struct {
	count uint64
	i     int
}

type nodes []node

func (h nodes) Len() int { return len(h) }
func (h nodes) Less(a, b int) bool {
	return h[a].count < h[b].count || h[a].count == h[b].count && h[a].i < h[b].i
}
func (h nodes) Swap(a, b int) { h[a], h[b] = h[b], h[a] }
func (h *nodes) Push(x any)   { *h = append(*h, x.(node)) }
func (h *nodes) Pop() any {
	x := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return x
}

// depths fills in the lengths of the words of the Huffman code and returns the
// greatest.
func depths(counts []uint64, lengths []uint8) int {
	h := make(nodes, len(counts))
	for i, c := range counts {
		h[i] = node{c, i}
	}
	heap.Init(&h)
	parent := make([]int, 2*len(counts)-1)
	for next := len(counts); h.Len() > 1; next++ {
		a, b := heap.Pop(&h).(node), heap.Pop(&h).(node)
		parent[a.i], parent[b.i] = next, next
		heap.Push(&h, node{a.count + b.count, next})
	}
	depth := make([]int, len(parent))
	greatest := 0
	for i := len(parent) - 2; i >= 0; i-- {
		depth[i] = depth[parent[i]] + 1
		if i < len(counts) {
			lengths[i] = uint8(min(depth[i], 255))
			greatest = max(greatest, depth[i])
		}
	}
	return greatest
}

// ReadPrefix returns the code whose words have these lengths. It is an error if
// there is no such code or some bits would begin no word.
func ReadPrefix(lengths []uint8) (*Prefix, error) {
	if len(lengths) > MaxNumbers {
		return nil, fmt.Errorf("prefix code for %d numbers: at most %d", len(lengths), MaxNumbers)
	}
	p := &Prefix{lengths: lengths, words: make([]uint16, len(lengths)), table: new([1 << MaxLength]uint16)}
	at := 0
	for l := uint8(1); l <= MaxLength; l++ {
		for i, have := range lengths {
			switch {
			case have > MaxLength:
				return nil, fmt.Errorf("prefix code: the word of %d has %d bits", i, have)
			case have != l:
				continue
			}
			width := 1 << (MaxLength - l)
			if at+width > len(p.table) {
				return nil, fmt.Errorf("prefix code: there are no such lengths of words")
			}
			p.words[i] = uint16(at >> (MaxLength - l))
			for k := range width {
				p.table[at+k] = uint16(i)<<4 | uint16(l)
			}
			at += width
		}
	}
	if at != len(p.table) && !(len(lengths) == 1 && at == len(p.table)/2) {
		return nil, fmt.Errorf("prefix code: the lengths of its words leave bits without meaning")
	}
	return p, nil
}

// Lengths returns the lengths of the words.
func (p *Prefix) Lengths() []uint8 { return p.lengths }

// Cost returns the length of the word of x.
func (p *Prefix) Cost(x int) uint { return uint(p.lengths[x]) }

// Write writes the word of x.
func (p *Prefix) Write(w *Writer, x int) { w.Bits(uint64(p.words[x]), uint(p.lengths[x])) }

// Read reads a word and returns its number.
func (p *Prefix) Read(r *Reader) int {
	x, _ := p.ReadAhead(r)
	return x
}

// ReadLog reads a number that was written as the word of its Log class and the bits
// that follow.
func (p *Prefix) ReadLog(r *Reader) uint64 {
	class, next := p.ReadAhead(r)
	if class < 8 {
		return uint64(class)
	}
	least, width := UnLog(class)
	r.skip(uint64(width))
	return least + next>>(64-width)
}

// ReadAhead reads a word and returns its number and the bits after it, 45 at
// least, from the most significant bit on. Those are still to be read, or skipped.
func (p *Prefix) ReadAhead(r *Reader) (x int, next uint64) {
	w := r.window()
	e := p.table[w>>(64-MaxLength)]
	if e&15 == 0 {
		r.Bad = true
	}
	r.skip(uint64(e & 15))
	return int(e >> 4), w << (e & 15)
}

// Log is a number in two parts: a class that grows with its logarithm, four to an
// octave, which a Prefix codes, and the bits below, which have no law. Numbers
// below 8 are classes of their own.
func Log(x uint64) (class int, rest uint64, width uint) {
	if x < 8 {
		return int(x), 0, 0
	}
	width = uint(bits.Len64(x)) - 3
	return int(4*width + uint(x>>width)), x & (1<<width - 1), width
}

// UnLog returns the least number of a class and the number of bits that follow it.
func UnLog(class int) (least uint64, width uint) {
	if class < 8 {
		return uint64(class), 0
	}
	width = uint(class)/4 - 1
	return uint64(class&3|4) << width, width
}

// LogClasses is the number of classes of numbers of so many bits.
func LogClasses(width int) int {
	c, _, _ := Log(1<<width - 1)
	return c + 1
}
