// Package member packs one record into one gzip member (RFC 1951, 1952), fast
// for records of the size of a page.
//
// A general encoder spends most of its time on such a record in counting
// symbols and making a Huffman code for them. Records of an archive are alike:
// the code of one before suits the next nearly as well. So an Encoder keeps a few
// codes, takes the one that a sample of the record likes best, and learns a new one
// when it sees that none fits.
package member

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
)

// chunk is how much becomes a block of its own: what a window has places for.
const chunk = 1<<16 - lead

// Encoder packs records. Its zero value is ready; it must not be used by two
// goroutines at once.
type Encoder struct {
	finder finder
	shelf  shelf

	out  []byte
	bits uint64 // not in out yet
	n    uint   // how many, less than 8
}

// Append appends a gzip member with the content of src.
func (e *Encoder) Append(dst, src []byte) []byte {
	e.out, e.bits, e.n = append(dst, 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255), 0, 0 // "fastest", system unknown
	dull := 0                                                                    // how many chunks more are taken to be like one that did not shrink
	for rest := src; ; {
		part := rest[:min(chunk, len(rest))]
		rest = rest[len(part):]
		if dull > 0 {
			dull--
			e.storeRaw(part, len(rest) == 0)
		} else if !e.encodeBlock(part, len(rest) == 0) {
			dull = 7
		}
		if len(rest) == 0 {
			break
		}
	}
	e.alignByte()
	out := binary.LittleEndian.AppendUint32(e.out, crc32.ChecksumIEEE(src))
	e.out = nil
	return binary.LittleEndian.AppendUint32(out, uint32(len(src)))
}

// encodeBlock writes a block and reports whether it shrank.
func (e *Encoder) encodeBlock(part []byte, last bool) bool {
	from := place{e.out, e.bits, e.n}
	c, doubt := e.shelf.chooseCode(part)
	e.writeCoded(c, part, last)
	if doubt {
		var t tally
		e.finder.countSymbols(&t, part)
		if learnt := e.shelf.learnIfBetter(c, &t, part); learnt != nil {
			e.rewindTo(from)
			e.writeCoded(learnt, part, last)
		}
	}
	if len(e.out)-len(from.out) > len(part)+5 {
		e.rewindTo(from)
		e.storeRaw(part, last)
		return false
	}
	return true
}

// writeCoded writes a block with a code.
func (e *Encoder) writeCoded(c *codes, part []byte, last bool) {
	kind := uint64(2 << 1)
	if last {
		kind |= 1
	}
	e.putBits(kind, 3)
	for _, r := range c.head {
		e.putBits(r.bits, r.n)
	}
	e.out = slices.Grow(e.out, len(room{}))
	to := (*room)(e.out[len(e.out) : len(e.out)+len(room{})])
	var size int
	size, e.bits, e.n = e.finder.writeSymbols(to, c, part, e.bits, e.n)
	e.out = e.out[:len(e.out)+size]
	e.putBits(uint64(c.lit[endBlock]>>8), uint(c.lit[endBlock]&0xff))
}

// place is where writing stands.
type place struct {
	out  []byte
	bits uint64
	n    uint
}

func (e *Encoder) rewindTo(m place) { e.out, e.bits, e.n = e.out[:len(m.out)], m.bits, m.n }

// storeRaw writes a block as it is.
func (e *Encoder) storeRaw(src []byte, last bool) {
	for {
		part := src[:min(len(src), 65535)]
		src = src[len(part):]
		kind := uint64(0)
		if last && len(src) == 0 {
			kind = 1
		}
		e.putBits(kind, 3)
		e.alignByte()
		e.out = binary.LittleEndian.AppendUint16(e.out, uint16(len(part)))
		e.out = binary.LittleEndian.AppendUint16(e.out, ^uint16(len(part)))
		e.out = append(e.out, part...)
		if len(src) == 0 {
			return
		}
	}
}

// putBits writes at most 48 bits.
func (e *Encoder) putBits(x uint64, n uint) {
	e.bits |= x << e.n
	e.n += n
	for e.n >= 8 {
		e.out = append(e.out, byte(e.bits))
		e.bits >>= 8
		e.n -= 8
	}
}

// alignByte fills the last byte up.
func (e *Encoder) alignByte() {
	if e.n > 0 {
		e.out = append(e.out, byte(e.bits))
		e.bits, e.n = 0, 0
	}
}
