package extract

import (
	"math/bits"
	"strings"
	"sync"

	"github.com/cespare/xxhash/v2"
	"github.com/zeebo/xxh3"
)

var hashers = sync.Pool{New: func() any { return xxh3.New() }}

// digest computes the page's digest and simhash. The text is folded: its words
// are parted by single spaces. The digest tells versions of a page and copies of
// hosts apart; it is no seal against whoever makes pages.
func digest(p *Page) ([16]byte, uint64) {
	h := hashers.Get().(*xxh3.Hasher)
	defer hashers.Put(h)
	h.Reset()
	_, _ = h.WriteString(p.Title) // never fails
	_, _ = h.WriteString("\x00")
	sim, piece := simhash{}, 0
	text := p.Text
	var a, b uint64
	start := 0
	for at := 0; at <= len(text); at += 64 {
		for ends := blanks(text, at); ends != 0; ends &= ends - 1 {
			i, end := start, at+bits.TrailingZeros64(ends)
			if start = end + 1; i == len(text) {
				break
			}
			if suspect(text, i, end) && noise(text[i:end]) {
				_, _ = h.WriteString(text[piece:i])
				piece = min(end+1, len(text))
				continue
			}
			var c uint64 // the word, as wordNumber has it
			if end-i <= 8 && i+8 <= len(text) {
				c = load(text[i:i+8]) & (1<<(8*uint(end-i)) - 1)
			} else {
				c = wordNumber(text[i:end])
			}
			c *= 0x9e3779b97f4a7c15
			c ^= c >> 32
			if sim.add(a*0x9e3779b97f4a7c15 ^ bits.RotateLeft64(b, 21) ^ c) {
				sim.eight()
			}
			a, b = b, c
		}
	}
	if piece < len(text) {
		_, _ = h.WriteString(text[piece:])
		_, _ = h.WriteString(" ")
	}
	for _, l := range p.Links {
		if l.Kind == Image {
			continue
		}
		u := l.URL.String()
		if i := strings.IndexByte(u, '?'); i >= 0 && noise(u[i+1:]) {
			u = u[:i]
		}
		_, _ = h.WriteString(u)
		_, _ = h.WriteString("\x00")
	}
	return h.Sum128().Bytes(), sim.sum()
}

// Constants of arithmetic on the eight bytes of a word at once.
const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// blanks marks the blanks among the 64 bytes of the text at i, the first by the
// lowest bit; the end of the text counts as one.
func blanks(text string, i int) (marks uint64) {
	end := min(i+64, len(text))
	n := 0
	for ; i+8 <= end; i, n = i+8, n+8 {
		x := load(text[i:i+8]) ^ ' '*ones
		x = ^((x&^highs + ^uint64(highs)) | x) & highs // the high bit of each byte that was a blank
		marks |= x >> 7 * 0x0102040810204080 >> 56 << n
	}
	for ; i < end; i, n = i+1, n+1 {
		if text[i] == ' ' {
			marks |= 1 << n
		}
	}
	if n < 64 {
		marks |= 1 << n
	}
	return marks
}

// wordNumber returns a number that stands for a word: its letters if they are at most
// eight, as nearly always, else a hash.
func wordNumber(w string) (word uint64) {
	if len(w) > 8 {
		return xxhash.Sum64String(w)
	}
	for j := len(w) - 1; j >= 0; j-- {
		word = word<<8 | uint64(w[j])
	}
	return word
}

// load reads eight bytes, the first as the lowest.
func load(w string) uint64 {
	_ = w[7]
	return uint64(w[0]) | uint64(w[1])<<8 | uint64(w[2])<<16 | uint64(w[3])<<24 | uint64(w[4])<<32 | uint64(w[5])<<40 | uint64(w[6])<<48 | uint64(w[7])<<56
}

// suspect reports whether a word may be noise at all: a number, or long enough
// for a token.
func suspect(text string, i, end int) bool {
	return end-i >= 20 || end > i && (text[i]-'0' <= ':'-'0')
}

// noise reports whether a word changes without the page changing: a time of
// day, or a long string of letters and digits such as a token.
func noise(w string) bool {
	digits, letters, other := 0, 0, 0
	if !suspect(w, 0, len(w)) {
		return false
	}
	for i := range len(w) {
		switch c := w[i]; {
		case c >= '0' && c <= '9':
			digits++
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			letters++
		default:
			other++
		}
	}
	if len(w) >= 20 && digits >= 3 && other <= len(w)/4 {
		return true
	}
	return letters == 0 && digits >= 3 && digits <= 6 && strings.Count(w, ":") > 0 && other == strings.Count(w, ":")
}

// simhash counts, bit by bit, the ones among the hashes of features. The
// counters stand upright: plane i holds bit i of all 64 of them, so that adding
// a hash is a carry through the planes; eight hashes are first added among
// themselves, with five operations each (Harley and Seal's carry-save adder).
type simhash struct {
	wait   [8]uint64 // hashes not added yet
	planes [32]uint64
	n      int // features
}

// add adds the hash of a feature; full says that eight must be called.
func (s *simhash) add(h uint64) (full bool) {
	h = (h ^ h>>29) * 0xbf58476d1ce4e5b9
	s.wait[s.n&7] = h ^ h>>32
	s.n++
	return s.n&7 == 0
}

// carry adds three bits in each place.
func carry(a, b, c uint64) (sum, high uint64) {
	u := a ^ b
	return u ^ c, a&b | u&c
}

// eight adds the waiting hashes to the planes.
func (s *simhash) eight() {
	w, p := &s.wait, &s.planes
	var a, b, c, d, e, f uint64
	p[0], a = carry(p[0], w[0], w[1])
	p[0], b = carry(p[0], w[2], w[3])
	p[0], c = carry(p[0], w[4], w[5])
	p[0], d = carry(p[0], w[6], w[7])
	p[1], e = carry(p[1], a, b)
	p[1], f = carry(p[1], c, d)
	p[2], a = carry(p[2], e, f)
	s.ripple(3, a)
}

// ripple adds a to the plane at i.
func (s *simhash) ripple(i int, a uint64) {
	for ; a != 0; i++ {
		s.planes[i], a = s.planes[i]^a, s.planes[i]&a
	}
}

// sum sets the bits that more than half of the features have.
func (s *simhash) sum() uint64 {
	for _, h := range s.wait[:s.n&7] {
		s.ripple(0, h)
	}
	// All 64 counters are compared with n/2 at once, from their highest bits down.
	half := s.n / 2
	var greater uint64
	equal := ^uint64(0)
	for i := bits.Len(uint(s.n)) - 1; i >= 0; i-- {
		if half>>i&1 == 0 {
			greater |= equal & s.planes[i]
			equal &^= s.planes[i]
		} else {
			equal &= s.planes[i]
		}
	}
	return greater
}

// Distance is the number of bits in which two simhashes differ: 0 to 3 for
// near-duplicates among many pages.
func Distance(a, b uint64) int { return bits.OnesCount64(a ^ b) }
