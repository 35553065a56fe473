package bitcode

import (
	"fmt"
	"math/bits"

	"github.com/freshet/freshet/internal/huffman"
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
	if len(counts) == 0 || len(counts) > MaxNumbers {
		return nil, fmt.Errorf("prefix code for %d numbers: 1 to %d", len(counts), MaxNumbers)
	}
	return ReadPrefix(huffman.Lengths(counts, MaxLength))
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
	r.skipBits(uint64(width))
	return least + next>>(64-width)
}

// ReadAhead reads a word and returns its number and the bits after it, 45 at
// least, from the most significant bit on. Those are still to be read, or skipped.
func (p *Prefix) ReadAhead(r *Reader) (x int, next uint64) {
	w := r.peekWindow()
	e := p.table[w>>(64-MaxLength)]
	if e&15 == 0 {
		r.Bad = true
	}
	r.skipBits(uint64(e & 15))
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
