package member

import (
	"math/bits"

	"github.com/freshet/freshet/internal/huffman"
)

// Sizes of the alphabets of deflate (RFC 1951).
const (
	literals  = 286 // bytes, the end of a block, lengths of matches
	distances = 30
	endBlock  = 256
)

// The longest codes of literals and lengths, and of distances: a literal, a length
// with 5 bits more and a distance with 13 fit into a word with the seven bits that
// wait there at most.
const (
	maxBits         = 13
	maxDistanceBits = 12
)

// tally counts symbols.
type tally struct {
	lit  [literals]uint32
	dist [distances]uint32
}

// code is a Huffman code's bits, as deflate wants them, over the number of them:
// bits<<8 | number.
type code uint32

// codes are what is needed to write blocks: a code for every symbol that there
// is, whether seen or not, and the bits that tell a reader so.
type codes struct {
	lit    [literals]code
	length [maxMatch + 1]uint64 // of a match: code and extra bits, packed as a code is
	dist   [32]code
	head   []bitRun
	took   float64 // bits of a byte of a sample of what was learnt from
}

// bitRun is some bits.
type bitRun struct {
	bits uint64
	n    uint
}

// learnCodes makes the codes that suit what was counted.
func (c *codes) learnCodes(t *tally) {
	for i := range t.lit {
		t.lit[i] = t.lit[i]<<4 + 1 // what was not seen may come
	}
	for i := range t.dist {
		t.dist[i] = t.dist[i]<<4 + 1
	}
	lit, dist := huffman.Lengths(t.lit[:], maxBits), huffman.Lengths(t.dist[:], maxDistanceBits)
	assignCanonical(c.lit[:], lit)
	assignCanonical(c.dist[:], dist)
	for n := minMatch; n <= maxMatch; n++ {
		sym, extra, width := lengthSymbol(n)
		k := c.lit[sym]
		c.length[n] = (uint64(k>>8)|extra<<(k&0xff))<<8 | uint64(k&0xff) + uint64(width)
	}
	c.describeLengths(append(lit, dist...))
}

// assignCanonical gives canonical codes (RFC 1951, 3.2.2), bits reversed.
func assignCanonical(out []code, lengths []uint8) {
	var count, next [maxBits + 1]uint32
	for _, l := range lengths {
		count[l]++
	}
	count[0] = 0
	for n := 1; n <= maxBits; n++ {
		next[n] = (next[n-1] + count[n-1]) << 1
	}
	for i, l := range lengths {
		if l > 0 {
			out[i] = code(bits.Reverse32(next[l])>>(32-l))<<8 | code(l)
			next[l]++
		}
	}
}

// lengthSymbol returns the symbol of a match's length and its extra bits.
func lengthSymbol(n int) (sym int, extra uint64, width int) {
	if n == maxMatch {
		return 285, 0, 0
	}
	n -= 3
	if n < 8 {
		return 257 + n, 0, 0
	}
	width = bits.Len(uint(n)) - 3
	return 257 + 4*width + n>>width, uint64(n) & (1<<width - 1), width
}

// describeLengths makes the header of a block (RFC 1951, 3.2.7): the lengths of the
// codes, runs of equal ones shortened, under a code of their own.
func (c *codes) describeLengths(all []uint8) {
	const repeat = 16 // the length before, 3 to 6 times
	type item struct {
		sym   int
		extra uint64
	}
	var items []item
	var weight [17]uint32
	for i := 0; i < len(all); {
		run := 1
		for i+run < len(all) && all[i+run] == all[i] {
			run++
		}
		items = append(items, item{sym: int(all[i])})
		weight[all[i]]++
		i++
		for run--; run >= 3; {
			n := min(run, 6)
			items = append(items, item{repeat, uint64(n - 3)})
			weight[repeat]++
			i += n
			run -= n
		}
	}
	var used []int
	var counts []uint32
	for s, w := range weight {
		if w > 0 {
			used, counts = append(used, s), append(counts, w)
		}
	}
	var width [19]uint8
	if len(used) == 1 {
		width[used[0]] = 1
		width[(used[0]+1)%16] = 1 // a code of one symbol would not be complete
	} else {
		for i, n := range huffman.Lengths(counts, 7) {
			width[used[i]] = n
		}
	}
	var own [19]code
	assignCanonical(own[:], width[:])
	order := [19]int{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}
	c.head = append(c.head[:0], bitRun{literals - 257, 5}, bitRun{distances - 1, 5}, bitRun{19 - 4, 4})
	for _, s := range order {
		c.head = append(c.head, bitRun{uint64(width[s]), 3})
	}
	for _, it := range items {
		k := own[it.sym]
		c.head = append(c.head, bitRun{uint64(k >> 8), uint(k & 0xff)})
		if it.sym == repeat {
			c.head = append(c.head, bitRun{it.extra, 2})
		}
	}
	c.head = joinBitRuns(c.head)
}

// joinBitRuns puts runs together to as few as possible of at most 48 bits.
func joinBitRuns(in []bitRun) []bitRun {
	var out []bitRun
	for _, r := range in {
		if k := len(out) - 1; k >= 0 && out[k].n+r.n <= 48 {
			out[k].bits |= r.bits << out[k].n
			out[k].n += r.n
		} else {
			out = append(out, r)
		}
	}
	return out
}
