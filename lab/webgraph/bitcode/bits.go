// Package bitcode reads and writes numbers as strings of bits: the universal codes
// of Elias and the zeta codes of Boldi and Vigna, prefix codes fitted to counts
// (Huffman 1952), and ascending sequences after Elias and Fano of which any number
// is found at once. Bits stand in bytes from the most significant one on.
package bitcode

import (
	"encoding/binary"
	"io"
	"math/bits"
)

// Reader reads bits from the most significant one of each byte on. Reading
// past the end or a number that is too great sets Bad and gives zeros: a caller
// looks once for a whole list.
type Reader struct {
	data []byte
	Pos  uint64 // in bits
	Bad  bool
}

// NewReader returns a reader of data.
func NewReader(data []byte) *Reader { return &Reader{data: data} }

// peekWindow returns the next bits, at least 57 of them (zeros after the end), from
// the most significant bit on.
func (r *Reader) peekWindow() uint64 {
	i := r.Pos >> 3
	if i+8 <= uint64(len(r.data)) {
		return binary.BigEndian.Uint64(r.data[i:]) << (r.Pos & 7)
	}
	var tail [8]byte
	if i < uint64(len(r.data)) {
		copy(tail[:], r.data[i:])
	}
	return binary.BigEndian.Uint64(tail[:]) << (r.Pos & 7)
}

// skipBits moves on.
func (r *Reader) skipBits(n uint64) {
	r.Pos += n
	if r.Pos > uint64(len(r.data))*8 {
		r.Bad = true
	}
}

// Bits reads a number of n <= 64 bits.
func (r *Reader) Bits(n uint) uint64 {
	if n > 56 {
		high := r.Bits(n - 32)
		return high<<32 | r.Bits(32)
	}
	v := r.peekWindow() >> (64 - n)
	r.skipBits(uint64(n))
	return v
}

// Unary reads a number of zeros that a one ends.
func (r *Reader) Unary() uint64 {
	n := uint64(0)
	for {
		z := uint64(bits.LeadingZeros64(r.peekWindow()))
		if z < 57 {
			r.skipBits(z + 1)
			return n + z
		}
		n += 57
		r.skipBits(57)
		if r.Bad {
			return 0
		}
	}
}

// Gamma reads Elias's gamma code of x+1.
func (r *Reader) Gamma() uint64 {
	w := r.peekWindow()
	z := uint(bits.LeadingZeros64(w))
	if z <= 28 {
		r.skipBits(uint64(2*z + 1))
		return w<<z>>(63-z) - 1
	}
	n := r.Unary()
	if n > 63 {
		r.Bad = true
		return 0
	}
	return (1<<n | r.Bits(uint(n))) - 1
}

// Delta reads Elias's delta code of x+1.
func (r *Reader) Delta() uint64 {
	n := r.Gamma()
	if n > 63 {
		r.Bad = true
		return 0
	}
	return (1<<n | r.Bits(uint(n))) - 1
}

// Zeta reads the zeta code of x+1 with shrinking factor k (Boldi and Vigna, DCC
// 2004), made for power laws.
func (r *Reader) Zeta(k uint) uint64 {
	h := r.Unary()
	if h*uint64(k)+uint64(k) > 64 {
		r.Bad = true
		return 0
	}
	left := uint64(1) << (uint(h) * k)
	m := r.Bits(uint(h)*k + k - 1)
	if m < left {
		return m + left - 1
	}
	return m<<1 + r.Bits(1) - 1
}

// Below reads a number below n > 0, all of which are as likely: its word has the
// logarithm of n in bits, rounded down or up.
func (r *Reader) Below(n uint64) uint64 {
	width := uint(bits.Len64(n - 1))
	short := uint64(1)<<width - n // so many words are one bit shorter
	if width == 0 {
		return 0
	}
	v := r.Bits(width - 1)
	if v < short {
		return v
	}
	return v<<1 + r.Bits(1) - short
}

// Skip moves on by so many bits.
func (r *Reader) Skip(n uint64) { r.skipBits(n) }

// Nibble reads a number in groups of three bits; a one before a group says that
// it is the last.
func (r *Reader) Nibble() uint64 {
	x := uint64(0)
	for range 22 {
		g := r.Bits(4)
		x = x<<3 | g&7
		if g&8 != 0 {
			return x
		}
	}
	r.Bad = true
	return 0
}

// Writer writes bits from the most significant one of each byte on.
type Writer struct {
	data []byte
	acc  uint64 // the last bits, right-aligned
	n    uint   // how many, less than 8
}

// Len returns the number of bits written.
func (w *Writer) Len() uint64 { return uint64(len(w.data))*8 + uint64(w.n) }

// WriteTo hands whole bytes on to out and keeps the rest.
func (w *Writer) WriteTo(out io.Writer) (int64, error) {
	n, err := out.Write(w.data)
	w.data = w.data[:0]
	return int64(n), err
}

// Bytes returns the whole bytes that were written. They are valid until more is.
func (w *Writer) Bytes() []byte { return w.data }

// Reset forgets what was written.
func (w *Writer) Reset() { w.data, w.acc, w.n = w.data[:0], 0, 0 }

// Bits writes the n <= 56 low bits of v.
func (w *Writer) Bits(v uint64, n uint) {
	w.acc = w.acc<<n | v&(1<<n-1)
	w.n += n
	for w.n >= 8 {
		w.n -= 8
		w.data = append(w.data, byte(w.acc>>w.n))
	}
}

// Append writes all that was written to other.
func (w *Writer) Append(other *Writer) {
	if w.n == 0 {
		w.data = append(w.data, other.data...)
	} else {
		for _, b := range other.data {
			w.Bits(uint64(b), 8)
		}
	}
	w.Bits(other.acc, other.n)
}

// Pad fills the last byte with zeros.
func (w *Writer) Pad() {
	if w.n > 0 {
		w.Bits(0, 8-w.n)
	}
}

// Below writes a number below n, 0 < n <= 2^56, as Reader.Below reads it.
func (w *Writer) Below(v, n uint64) {
	width := uint(bits.Len64(n - 1))
	short := uint64(1)<<width - n
	switch {
	case width == 0:
	case v < short:
		w.Bits(v, width-1)
	default:
		w.Bits(v+short, width)
	}
}

// Unary writes x zeros and a one.
func (w *Writer) Unary(x uint64) {
	for ; x >= 56; x -= 56 {
		w.Bits(0, 56)
	}
	w.Bits(1, uint(x)+1)
}

// Gamma writes Elias's gamma code of x+1.
func (w *Writer) Gamma(x uint64) {
	n := uint(bits.Len64(x+1)) - 1
	w.Unary(uint64(n))
	if n > 56 {
		w.Bits((x+1)>>32, n-32)
		w.Bits(x+1, 32)
		return
	}
	w.Bits(x+1, n)
}

// Zeta writes the zeta code of x+1 with shrinking factor k.
func (w *Writer) Zeta(x uint64, k uint) {
	x++
	h := (uint(bits.Len64(x)) - 1) / k
	w.Unary(uint64(h))
	left := uint64(1) << (h * k)
	if x-left < left {
		w.Bits(x-left, h*k+k-1)
	} else {
		w.Bits(x, h*k+k)
	}
}

// Signed and Unsigned fold the integers onto the natural numbers: 0, -1, 1, -2 ...
func Signed(x uint64) int64 { return int64(x>>1) ^ -int64(x&1) }

func Unsigned(x int64) uint64 { return uint64(x<<1) ^ uint64(x>>63) }
