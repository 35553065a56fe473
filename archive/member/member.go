// Package member packs one record into one gzip member (RFC 1951, 1952), fast
// for records of the size of a page.
//
// A general encoder spends most of its time on such a record in counting
// symbols and making a Huffman code for them. Records of an archive are alike:
// the code of the one before suits the next nearly as well. So an Encoder
// learns a code from a record and keeps it, until a record shows that it fits
// no more, or many have passed.
package member

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"
	"slices"
)

// Matches: what is searched for, and what deflate can say.
const (
	minMatch  = 4
	maxMatch  = 258
	maxAway   = 32 << 10
	tableBits = 13
	// chunk is how much becomes a block of its own.
	chunk = 64 << 10
)

// Learning: after so many blocks anew, or as soon as a symbol takes so much
// more bits than it did.
const (
	learnAfter = 256
	learnWorse = 1.1
)

// Encoder packs records. Its zero value is ready; it must not be used by two
// goroutines at once.
type Encoder struct {
	table [1 << tableBits]uint32 // where in the record five bytes were seen last
	steps []step

	codes   codes
	learned int // blocks written since the code was learnt
	known   bool

	out  []byte
	bits uint64 // not in out yet
	n    uint   // how many, less than 8
}

// step is some literals, then a match; of the last one length is 0.
type step struct {
	literals uint32
	length   uint16
	away     uint16 // less one
}

// Append appends a gzip member with the content of src.
func (e *Encoder) Append(dst, src []byte) []byte {
	e.out, e.bits, e.n = append(dst, 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255), 0, 0 // "fastest", system unknown
	clear(e.table[:])
	dull := 0 // how many chunks more are taken to be like one that did not shrink
	for at := 0; ; at += chunk {
		end := min(at+chunk, len(src))
		if dull > 0 {
			dull--
			e.store(src[at:end], end == len(src))
		} else if !e.block(src, at, end) {
			dull = 7
		}
		if end == len(src) {
			break
		}
	}
	e.align()
	out := binary.LittleEndian.AppendUint32(e.out, crc32.ChecksumIEEE(src))
	e.out = nil
	return binary.LittleEndian.AppendUint32(out, uint32(len(src)))
}

// block writes src[at:end] and reports whether it shrank.
func (e *Encoder) block(src []byte, at, end int) bool {
	e.out = slices.Grow(e.out, 2*(end-at)+1024) // a symbol takes at most 14 bits
	from := place{e.out, e.bits, e.n}
	if !e.known || e.learned >= learnAfter {
		if !e.known {
			e.codes.learn(&tally{})
		}
		e.write(src, at, end)
		e.again(from, src[at:end])
	}
	symbols := e.write(src, at, end)
	took := float64(e.since(from)) / float64(symbols)
	switch {
	case e.learned == 0:
		e.codes.symbol = took
	case took > learnWorse*e.codes.symbol:
		e.again(from, src[at:end])
		symbols = e.write(src, at, end)
		e.codes.symbol = float64(e.since(from)) / float64(symbols)
	}
	e.learned++
	if len(e.out)-len(from.out) > end-at+5 {
		e.rewind(from)
		e.store(src[at:end], end == len(src))
		return false
	}
	return true
}

// again learns from what was just written and takes it back.
func (e *Encoder) again(from place, src []byte) {
	e.rewind(from)
	clear(e.table[:])
	e.study(src)
}

// place is where writing stands.
type place struct {
	out  []byte
	bits uint64
	n    uint
}

func (e *Encoder) since(m place) int { return 8*(len(e.out)-len(m.out)) + int(e.n) - int(m.n) }
func (e *Encoder) rewind(m place)    { e.out, e.bits, e.n = e.out[:len(m.out)], m.bits, m.n }

func load32(b []byte, i int) uint32 { return binary.LittleEndian.Uint32(b[i:]) }
func load64(b []byte, i int) uint64 { return binary.LittleEndian.Uint64(b[i:]) }

// slot is where a table has what begins with the five low bytes of x.
func slot(x uint64) uint64 { return x << 24 * 0x9e3779b97f4a7c15 >> (64 - tableBits) }

// matched is the length of the common beginning of a and b, which is the
// shorter.
func matched(a, b []byte) int {
	n := 0
	for len(b)-n >= 8 && len(a)-n >= 8 {
		if x := load64(a, n) ^ load64(b, n); x != 0 {
			return n + bits.TrailingZeros64(x)>>3
		}
		n += 8
		if n > maxMatch {
			return n
		}
	}
	for n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// study learns the code of the steps.
func (e *Encoder) study(src []byte) {
	var t tally
	for _, s := range e.steps {
		for _, c := range src[:s.literals] {
			t.lit[c]++
		}
		src = src[s.literals:]
		if s.length == 0 {
			break
		}
		sym, _, _ := lengthSymbol(int(s.length))
		t.lit[sym]++
		t.dist[distanceSymbol(uint32(s.away))]++
		src = src[s.length:]
	}
	e.codes.learn(&t)
	e.known, e.learned = true, 0
}

// distanceSymbol returns the symbol of a distance less one.
func distanceSymbol(away uint32) uint32 {
	if away < 2 {
		return away
	}
	width := uint32(bits.Len32(away)) - 2
	return 2*width + away>>width
}

// write writes src[at:end] as a block and returns the number of symbols. Matches are
// searched for greedily, with one candidate at a place, and what is found is
// written at once: the branches that a processor guesses wrong, of which most
// of the time is made, are met only once.
func (e *Encoder) write(src []byte, at, end int) int {
	kind := uint64(2 << 1)
	if end == len(src) {
		kind |= 1
	}
	e.put(kind, 3)
	for _, r := range e.codes.head {
		e.put(r.bits, r.n)
	}
	c, table := &e.codes, &e.table
	steps := e.steps[:0]
	out, o := e.out[:cap(e.out)], len(e.out)
	word, n := e.bits, e.n
	src = src[:end]
	next, s := at, at      // next is the first byte behind the last match
	if s == 0 && end > 0 { // where the table has nothing it says 0
		k := c.lit[src[0]]
		word |= uint64(k>>8) << (n & 63)
		n += uint(k & 0xff)
		s = 1
	}
	symbols := 1
	for s < end-13 {
		// The candidates of two places are looked up before it is known whether the
		// first is good, so that neither is waited for.
		x := load64(src, s)
		h, h2 := slot(x), slot(x>>8)
		from := int(table[h])
		table[h] = uint32(s)
		from2 := int(table[h2])
		found, found2 := load32(src, from), load32(src, from2)
		if found != uint32(x) || s-from > maxAway {
			k := c.lit[byte(x)]
			word |= uint64(k>>8) << (n & 63)
			n += uint(k & 0xff)
			s++
			table[h2] = uint32(s)
			if found2 != uint32(x>>8) || s-from2 > maxAway {
				k := c.lit[byte(x>>8)]
				word |= uint64(k>>8) << (n & 63)
				n += uint(k & 0xff)
				binary.LittleEndian.PutUint64(out[o:], word)
				o += int(n >> 3)
				word >>= n & 56
				n &= 7
				s++
				continue
			}
			binary.LittleEndian.PutUint64(out[o:], word)
			o += int(n >> 3)
			word >>= n & 56
			n &= 7
			from = from2
		}
		length := 12
		if y := load64(src, s+4) ^ load64(src, from+4); y != 0 {
			length = 4 + bits.TrailingZeros64(y)>>3
		} else {
			length += matched(src[from+12:], src[s+12:])
			length = min(length, maxMatch)
		}
		away := uint32(s - from - 1)
		steps = append(steps, step{uint32(s - next), uint16(length), uint16(away)})
		l := c.length[length]
		word |= l >> 8 << (n & 63)
		n += uint(l & 0xff)
		sym := distanceSymbol(away)
		k := c.dist[sym]
		word |= uint64(k>>8) << (n & 63)
		n += uint(k & 0xff)
		if sym >= 4 {
			width := sym>>1 - 1
			word |= uint64(away&(1<<width-1)) << (n & 63)
			n += uint(width)
		}
		binary.LittleEndian.PutUint64(out[o:], word)
		o += int(n >> 3)
		word >>= n & 56
		n &= 7
		symbols += 2 + s - next
		s += length
		next = s
	}
	for ; s < end; s++ {
		k := c.lit[src[s]]
		word |= uint64(k>>8) << (n & 63)
		n += uint(k & 0xff)
		binary.LittleEndian.PutUint64(out[o:], word)
		o += int(n >> 3)
		word >>= n & 56
		n &= 7
	}
	symbols += end - next
	e.steps = append(steps, step{literals: uint32(end - next)})
	e.out, e.bits, e.n = out[:o], word, n
	e.put(uint64(c.lit[endBlock]>>8), uint(c.lit[endBlock]&0xff))
	return symbols
}

// store writes a block as it is.
func (e *Encoder) store(src []byte, last bool) {
	for {
		part := src[:min(len(src), 65535)]
		src = src[len(part):]
		kind := uint64(0)
		if last && len(src) == 0 {
			kind = 1
		}
		e.put(kind, 3)
		e.align()
		e.out = binary.LittleEndian.AppendUint16(e.out, uint16(len(part)))
		e.out = binary.LittleEndian.AppendUint16(e.out, ^uint16(len(part)))
		e.out = append(e.out, part...)
		if len(src) == 0 {
			return
		}
	}
}

// put writes at most 48 bits.
func (e *Encoder) put(x uint64, n uint) {
	e.bits |= x << e.n
	e.n += n
	for e.n >= 8 {
		e.out = append(e.out, byte(e.bits))
		e.bits >>= 8
		e.n -= 8
	}
}

// align fills the last byte up.
func (e *Encoder) align() {
	if e.n > 0 {
		e.out = append(e.out, byte(e.bits))
		e.bits, e.n = 0, 0
	}
}
