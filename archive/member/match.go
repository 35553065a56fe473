package member

import (
	"encoding/binary"
	"math/bits"
)

// Matches: what is searched for, and what deflate can say.
const (
	minMatch  = 8
	maxMatch  = 258
	maxAway   = 32 << 10
	tableBits = 14
)

// lead is the room before a chunk in a window, so that place 0 is none.
const lead = 8

// window is a chunk, between some room before it and some that may be read
// behind it. A place in it is 16 bits: as the array is longer than that, the
// compiler leaves all checks of bounds out.
type window [1<<16 + 16]byte

func (w *window) loadWindow(i uint) uint64 { return binary.LittleEndian.Uint64(w[uint16(i):][:8]) }

// room is for what a chunk becomes, at most maxBits a byte.
type room [1<<17 + 8]byte

func (r *room) storeBits(i uint, x uint64) { binary.LittleEndian.PutUint64(r[i&(1<<17-1):][:8], x) }

// finder finds matches in a chunk.
type finder struct {
	table  [1 << tableBits]uint16 // where eight bytes were seen last
	window window
	steps  [chunk/minMatch + 1]step // that the last chunk took
	n      int                      // how many of them
}

// step is some literals, then a match: their number, its length<<16 and its
// distance less one <<32. The last one has no match, which is length 0.
type step uint64

// tableSlot is where a table has what begins with x.
func tableSlot(x uint64) uint64 { return x * 0x9e3779b97f4a7c15 >> (64 - tableBits) }

// writeSymbols writes the symbols of part behind n bits and returns how many bytes that
// made, and the bits that make no byte yet.
//
// Matches are searched for greedily, with one candidate at a place, and what is found
// is written at once: the branches that a processor guesses wrong, of which much
// of the time is made, are met only once. Shorter matches than of eight bytes would
// save little and be guessed wrong as often.
func (f *finder) writeSymbols(out *room, c *codes, part []byte, word uint64, waiting uint) (int, uint64, uint) {
	clear(f.table[:])
	f.n = 0
	win, table := &f.window, &f.table
	end := lead + uint(copy(win[lead:], part))
	// The low byte of n counts bits; what is added to it with a code's bits above
	// is no matter.
	n, o := uint64(waiting), uint(0)
	next, s := uint(lead), uint(lead) // next is the first byte behind the last match
	for s+17 <= end {
		x := win.loadWindow(s)
		h := tableSlot(x)
		from := uint(table[h])
		table[h] = uint16(s)
		if win.loadWindow(from) != x || s-from > maxAway || from == 0 {
			k := uint64(c.lit[byte(x)])
			word |= k >> 8 << (n & 63)
			n += k
			s++
			x = win.loadWindow(s)
			h = tableSlot(x)
			from = uint(table[h])
			table[h] = uint16(s)
			if win.loadWindow(from) != x || s-from > maxAway || from == 0 {
				k = uint64(c.lit[byte(x)])
				word |= k >> 8 << (n & 63)
				n += k
				out.storeBits(o, word)
				o += uint(n >> 3 & 7)
				word >>= n & 56
				n &= 7
				s++
				continue
			}
		}
		length := minMatch + uint(bits.TrailingZeros64(win.loadWindow(s+8)^win.loadWindow(from+8)))>>3
		if length == 16 {
			length = min(length+matchLength(win[from+16:end], win[s+16:end]), maxMatch)
		}
		away := s - from - 1
		f.steps[f.n] = step(s-next) | step(length)<<16 | step(away)<<32
		f.n++
		l := c.length[length]
		word |= l >> 8 << (n & 63)
		n += l
		sym, width := distanceSymbol(uint32(away))
		k := uint64(c.dist[sym&31])
		word |= k >> 8 << (n & 63)
		n += k
		word |= uint64(away) & (1<<(width&31) - 1) << (n & 63)
		n += uint64(width)
		out.storeBits(o, word)
		o += uint(n >> 3 & 7)
		word >>= n & 56
		n &= 7
		s += length
		next = s
	}
	for ; s < end; s++ {
		k := uint64(c.lit[win[uint16(s)]])
		word |= k >> 8 << (n & 63)
		n += k
		out.storeBits(o, word)
		o += uint(n >> 3 & 7)
		word >>= n & 56
		n &= 7
	}
	f.steps[f.n] = step(end - next)
	f.n++
	return int(o), word, uint(n)
}

// matchLength is the length of the common beginning of a and b, which is the
// shorter, or more than a match may have.
func matchLength(a, b []byte) uint {
	n := 0
	for len(b)-n >= 8 && len(a)-n >= 8 {
		if x := binary.LittleEndian.Uint64(a[n:]) ^ binary.LittleEndian.Uint64(b[n:]); x != 0 {
			return uint(n + bits.TrailingZeros64(x)>>3)
		}
		n += 8
		if n > maxMatch {
			return uint(n)
		}
	}
	for n < len(b) && a[n] == b[n] {
		n++
	}
	return uint(n)
}

// countSymbols counts the symbols of what was written last.
func (f *finder) countSymbols(t *tally, part []byte) {
	for _, s := range f.steps[:f.n] {
		for _, c := range part[:s&0xffff] {
			t.lit[c]++
		}
		part = part[s&0xffff:]
		length := int(s >> 16 & 0xffff)
		if length == 0 {
			return
		}
		sym, _, _ := lengthSymbol(length)
		t.lit[sym]++
		away, _ := distanceSymbol(uint32(s >> 32))
		t.dist[away]++
		part = part[length:]
	}
}

// distanceSymbol returns the symbol of a distance less one, and how many of its
// low bits follow.
func distanceSymbol(away uint32) (sym, width uint32) {
	width = uint32(bits.Len32(away|2)) - 2
	return 2*width + away>>(width&31), width
}
