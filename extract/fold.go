package extract

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strings"
)

// folder gathers text with white space folded to single spaces, and notes where
// these stand: there words end.
type folder struct {
	b      []byte
	spaces []uint64 // a bit for each byte of b, and a word or more behind them
	space  bool
	end    [64]byte
}

// emptied returns a folder without text that has the memory of this one, unless
// that is huge.
func (f *folder) emptied() folder {
	if cap(f.b) > 1<<20 {
		return folder{}
	}
	return folder{b: f.b[:0], spaces: f.spaces[:0]}
}

func (f *folder) addGap() { f.space = true }

// Len is the number of bytes gathered.
func (f *folder) Len() int { return len(f.b) }

// String returns a copy of the text.
func (f *folder) String() string { return string(f.b) }

// appendText appends text up to limit. Words with single spaces between them, which
// is nearly all text, are copied in one piece.
func (f *folder) appendText(text []byte, limit int) {
	for {
		i := 0
		for i < len(text) && isSpace(text[i]) {
			i++
		}
		if i > 0 {
			f.space = true
			text = text[i:]
		}
		at, room := len(f.b), limit-len(f.b)
		if f.space && at > 0 {
			at, room = at+1, room-1
		}
		if len(text) == 0 || room <= 0 {
			return
		}
		piece := text[:min(len(text), room+1)]
		f.growBits(at + len(piece))
		end := f.foldedPrefix(piece, at)
		full := end > room
		if full { // the last word does not fit
			end = max(0, bytes.LastIndexByte(text[:end], ' '))
			f.forgetSpaces(at + end)
		}
		if end == 0 {
			return
		}
		if at > len(f.b) {
			f.noteSpaces(len(f.b), 1)
			f.b = append(f.b, ' ')
		}
		f.space = false
		f.b = append(f.b, text[:end]...)
		if full {
			return
		}
		text = text[end:]
	}
}

// growBits makes room for the bits of n bytes of text.
func (f *folder) growBits(n int) {
	if more := n/64 + 2 - len(f.spaces); more > 0 {
		f.spaces = append(f.spaces, make([]uint64, more)...)
	}
}

// noteSpaces takes down the spaces among the 64 bytes at at.
func (f *folder) noteSpaces(at int, spaces uint64) {
	w := f.spaces[at/64:]
	w[0] |= spaces << (at % 64)
	w[1] |= spaces >> 1 >> (63 - at%64)
}

// forgetSpaces strikes out what was noted from at on.
func (f *folder) forgetSpaces(at int) {
	w := f.spaces[at/64:]
	w[0] &= 1<<(at%64) - 1
	clear(w[1:])
}

// foldedPrefix returns how much at the front of the text, which begins with no white
// space, is folded already, without a space at its end. It notes the spaces in it,
// the text standing at at.
func (f *folder) foldedPrefix(text []byte, at int) int {
	i, before := 0, uint64(0) // before: 1 if the byte before is a space
	for i < len(text) {
		blank, control := blankAndControl(f.firstBlock(text[i:]))
		odd := control | blank&(blank<<1|before)
		if left := len(text) - i; left < 64 {
			odd |= 1 << left
		}
		size := bits.TrailingZeros64(odd) // 64 if there is nothing odd
		blank &= 1<<size - 1
		f.noteSpaces(at+i, blank)
		i, before = i+size, blank>>63
		if size == 64 {
			continue
		}
		if i == len(text) || isSpace(text[i]) {
			break
		}
		i, before = i+1, 0 // a control character that is no white space
	}
	if text[i-1] == ' ' {
		i--
		f.spaces[(at+i)/64] &^= 1 << ((at + i) % 64)
	}
	return i
}

// firstBlock returns the first 64 bytes of the text, or what there is of it and any
// others: those that follow in the document, if it is long enough.
func (f *folder) firstBlock(text []byte) *[64]byte {
	if cap(text) >= 64 {
		return (*[64]byte)(text[:64])
	}
	copy(f.end[:], text)
	return &f.end
}

// Constants of arithmetic on the eight bytes of a word at once.
const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// blankAndControl returns a bit for each of 64 bytes, the first the lowest: in blank those
// up to ' ', in control those before ' '. Without a loop it takes two fifths of
// the time that eight bytes after eight bytes would.
func blankAndControl(b *[64]byte) (blank, control uint64) {
	b0, c0 := aboveSpace(binary.LittleEndian.Uint64(b[0:]))
	b1, c1 := aboveSpace(binary.LittleEndian.Uint64(b[8:]))
	b2, c2 := aboveSpace(binary.LittleEndian.Uint64(b[16:]))
	b3, c3 := aboveSpace(binary.LittleEndian.Uint64(b[24:]))
	b4, c4 := aboveSpace(binary.LittleEndian.Uint64(b[32:]))
	b5, c5 := aboveSpace(binary.LittleEndian.Uint64(b[40:]))
	b6, c6 := aboveSpace(binary.LittleEndian.Uint64(b[48:]))
	b7, c7 := aboveSpace(binary.LittleEndian.Uint64(b[56:]))
	blank = ^transposeBits(b0>>7 | b1>>6 | b2>>5 | b3>>4 | b4>>3 | b5>>2 | b6>>1 | b7)
	control = ^(c0>>7 | c1>>6 | c2>>5 | c3>>4 | c4>>3 | c5>>2 | c6>>1 | c7)
	if control != 0 {
		control = transposeBits(control)
	}
	return blank, control
}

// aboveSpace returns the high bits of the bytes that are more than ' ', and of those that
// are at least ' '.
func aboveSpace(x uint64) (more, least uint64) {
	low := x &^ highs
	return (low + (0x7f-' ')*ones | x) & highs, (low + (0x80-' ')*ones | x) & highs
}

// transposeBits mirrors the 8 by 8 bits of x (Warren, Hacker's Delight, 7-3).
func transposeBits(x uint64) uint64 {
	t := (x ^ x>>7) & 0x00aa00aa00aa00aa
	x ^= t ^ t<<7
	t = (x ^ x>>14) & 0x0000cccc0000cccc
	x ^= t ^ t<<14
	t = (x ^ x>>28) & 0x00000000f0f0f0f0
	return x ^ t ^ t<<28
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f' }

func foldSpace(s string, limit int) string {
	var f folder
	f.appendText([]byte(s), limit)
	return strings.ToValidUTF8(f.String(), "\uFFFD")
}

// spacesIn returns a bit for each byte of a text: 1 where it is a space.
func spacesIn(text string) []uint64 {
	spaces := make([]uint64, len(text)/64+1)
	for i := range len(text) {
		if text[i] == ' ' {
			spaces[i/64] |= 1 << (i % 64)
		}
	}
	return spaces
}
