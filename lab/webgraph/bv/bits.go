package bv

import (
	"encoding/binary"
	"math/bits"
)

// bitReader reads bits from the most significant one of each byte on. Reading
// past the end or a number that is too great sets bad and gives zeros: a caller
// looks once for a whole list.
type bitReader struct {
	data []byte
	pos  uint64 // in bits
	bad  bool
}

// window returns the next bits, at least 57 of them (zeros after the end), from
// the most significant bit on.
func (r *bitReader) window() uint64 {
	i := r.pos >> 3
	if i+8 <= uint64(len(r.data)) {
		return binary.BigEndian.Uint64(r.data[i:]) << (r.pos & 7)
	}
	var tail [8]byte
	if i < uint64(len(r.data)) {
		copy(tail[:], r.data[i:])
	}
	return binary.BigEndian.Uint64(tail[:]) << (r.pos & 7)
}

// skip moves on.
func (r *bitReader) skip(n uint64) {
	r.pos += n
	if r.pos > uint64(len(r.data))*8 {
		r.bad = true
	}
}

// bits reads a number of n <= 64 bits.
func (r *bitReader) bits(n uint) uint64 {
	if n > 56 {
		high := r.bits(n - 32)
		return high<<32 | r.bits(32)
	}
	v := r.window() >> (64 - n)
	r.skip(uint64(n))
	return v
}

// unary reads a number of zeros that a one ends.
func (r *bitReader) unary() uint64 {
	n := uint64(0)
	for {
		z := uint64(bits.LeadingZeros64(r.window()))
		if z < 57 {
			r.skip(z + 1)
			return n + z
		}
		n += 57
		r.skip(57)
		if r.bad {
			return 0
		}
	}
}

// gamma reads Elias's gamma code of x+1.
func (r *bitReader) gamma() uint64 {
	w := r.window()
	z := uint(bits.LeadingZeros64(w))
	if z <= 28 {
		r.skip(uint64(2*z + 1))
		return w<<z>>(63-z) - 1
	}
	n := r.unary()
	if n > 63 {
		r.bad = true
		return 0
	}
	return (1<<n | r.bits(uint(n))) - 1
}

// delta reads Elias's delta code of x+1.
func (r *bitReader) delta() uint64 {
	n := r.gamma()
	if n > 63 {
		r.bad = true
		return 0
	}
	return (1<<n | r.bits(uint(n))) - 1
}

// zeta reads the zeta code of x+1 with shrinking factor k (Boldi and Vigna, DCC
// 2004), made for power laws.
func (r *bitReader) zeta(k uint) uint64 {
	h := r.unary()
	if h*uint64(k)+uint64(k) > 64 {
		r.bad = true
		return 0
	}
	left := uint64(1) << (uint(h) * k)
	m := r.bits(uint(h)*k + k - 1)
	if m < left {
		return m + left - 1
	}
	return m<<1 + r.bits(1) - 1
}

// nibble reads a number in groups of three bits; a one before a group says that
// it is the last.
func (r *bitReader) nibble() uint64 {
	x := uint64(0)
	for range 22 {
		g := r.bits(4)
		x = x<<3 | g&7
		if g&8 != 0 {
			return x
		}
	}
	r.bad = true
	return 0
}

// bitWriter writes bits from the most significant one of each byte on.
type bitWriter struct {
	data []byte
	acc  uint64 // the last bits, right-aligned
	n    uint   // how many, less than 8
}

// len returns the number of bits written.
func (w *bitWriter) len() uint64 { return uint64(len(w.data))*8 + uint64(w.n) }

func (w *bitWriter) reset() { w.data, w.acc, w.n = w.data[:0], 0, 0 }

// bits writes the n <= 56 low bits of v.
func (w *bitWriter) bits(v uint64, n uint) {
	w.acc = w.acc<<n | v&(1<<n-1)
	w.n += n
	for w.n >= 8 {
		w.n -= 8
		w.data = append(w.data, byte(w.acc>>w.n))
	}
}

// append writes all that was written to other.
func (w *bitWriter) append(other *bitWriter) {
	if w.n == 0 {
		w.data = append(w.data, other.data...)
	} else {
		for _, b := range other.data {
			w.bits(uint64(b), 8)
		}
	}
	w.bits(other.acc, other.n)
}

// pad fills the last byte with zeros.
func (w *bitWriter) pad() {
	if w.n > 0 {
		w.bits(0, 8-w.n)
	}
}

func (w *bitWriter) unary(x uint64) {
	for ; x >= 56; x -= 56 {
		w.bits(0, 56)
	}
	w.bits(1, uint(x)+1)
}

func (w *bitWriter) gamma(x uint64) {
	n := uint(bits.Len64(x+1)) - 1
	w.unary(uint64(n))
	if n > 56 {
		w.bits((x+1)>>32, n-32)
		w.bits(x+1, 32)
		return
	}
	w.bits(x+1, n)
}

func (w *bitWriter) zeta(x uint64, k uint) {
	x++
	h := (uint(bits.Len64(x)) - 1) / k
	w.unary(uint64(h))
	left := uint64(1) << (h * k)
	if x-left < left {
		w.bits(x-left, h*k+k-1)
	} else {
		w.bits(x, h*k+k)
	}
}

// signed and unsigned fold the integers onto the natural numbers: 0, -1, 1, -2 ...
func signed(x uint64) int64 { return int64(x>>1) ^ -int64(x&1) }

func unsigned(x int64) uint64 { return uint64(x<<1) ^ uint64(x>>63) }
