package extract

import (
	"math/bits"
	"strings"
	"sync"

	"github.com/cespare/xxhash/v2"
	"github.com/zeebo/xxh3"
)

// digester computes digests and simhashes, one after the other.
type digester struct {
	hash  *xxh3.Hasher
	words [2 + 15 + batch + 64]uint64 // numbers; the first two only begin features
	sim   simhash
}

// batch is how many words are counted at a time.
const batch = 256

var digesters = sync.Pool{New: func() any { return &digester{hash: xxh3.New()} }}

// computeDigest computes the page's digest and simhash. The text is folded: its words
// are parted by single spaces, each of which has a bit in spaces. The digest tells
// versions of a page and copies of hosts apart; it is no seal against whoever
// makes pages.
func computeDigest(p *Page, spaces []uint64) ([16]byte, uint64) {
	d := digesters.Get().(*digester)
	defer digesters.Put(d)
	d.hash.Reset()
	_, _ = d.hash.WriteString(p.Title) // never fails
	_, _ = d.hash.WriteString("\x00")
	d.hashText(p.Text, spaces)
	for i := range p.Links {
		l := &p.Links[i]
		if l.Kind == Image {
			continue
		}
		u := l.URL.String()
		if q := l.URL.Query(); isNoise(q) {
			u = u[:len(u)-len(q)-1]
		}
		_, _ = d.hash.WriteString(u)
		_, _ = d.hash.WriteString("\x00")
	}
	return d.hash.Sum128().Bytes(), d.sim.majorityBits()
}

// hashText hashes the words but noise, each with the space behind it, and adds their
// triples to the simhash: first the numbers of many words, then the features,
// since loops that do one thing each keep what they need in registers.
func (d *digester) hashText(text string, spaces []uint64) {
	d.sim = simhash{}
	if text == "" {
		return
	}
	d.words[0], d.words[1] = 0, 0
	kept, start, n := 0, 0, 2
	for block := range len(text)/64 + 1 {
		ends := spaces[block]
		if block == len(text)/64 && text[len(text)-1] != ' ' { // the end of the text ends a word, too
			ends |= 1 << (len(text) % 64)
		}
		for ; ends != 0; ends &= ends - 1 {
			i, end := start, block*64+bits.TrailingZeros64(ends)
			start = end + 1
			if end-i <= 8 && i+8 <= len(text) { // nearly all
				w := loadUint64(text[i:i+8]) & wordMask[(end-i)&15]
				if byte(w)-'0' > ':'-'0' {
					d.words[n] = mixWord(w)
					n++
					continue
				}
			}
			w := text[i:end]
			if isNoise(w) {
				_, _ = d.hash.WriteString(text[kept:i])
				kept = min(end+1, len(text))
				continue
			}
			d.words[n] = mixWord(wordNumber(w))
			n++
		}
		if n >= batch {
			n = d.sim.addFeatures(d.words[:n])
		}
	}
	n = d.sim.addFeatures(d.words[:n])
	d.sim.addRemaining(d.words[:n])
	if kept < len(text) {
		_, _ = d.hash.WriteString(text[kept:])
		_, _ = d.hash.WriteString(" ")
	}
}

// wordMask keeps the first n bytes of eight.
var wordMask = func() (t [16]uint64) {
	for n := range t {
		t[n] = 1<<(8*min(n, 8)) - 1
	}
	return t
}()

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

// loadUint64 reads eight bytes, the first as the lowest.
func loadUint64(w string) uint64 {
	_ = w[7]
	return uint64(w[0]) | uint64(w[1])<<8 | uint64(w[2])<<16 | uint64(w[3])<<24 | uint64(w[4])<<32 | uint64(w[5])<<40 | uint64(w[6])<<48 | uint64(w[7])<<56
}

// isNoiseSuspect reports whether a word may be noise at all: a number, or long enough
// for a token.
func isNoiseSuspect(text string, i, end int) bool {
	return end-i >= 20 || end > i && (text[i]-'0' <= ':'-'0')
}

// isNoise reports whether a word changes without the page changing: a time of
// day, or a long string of letters and digits such as a token.
func isNoise(w string) bool {
	digits, letters, other := 0, 0, 0
	if !isNoiseSuspect(w, 0, len(w)) {
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
// a hash is a carry through the planes; sixteen hashes are first added among
// themselves, with five operations each (Harley and Seal's carry-save adder).
type simhash struct {
	planes [32]uint64
	n      int // features
}

// mixWord spreads the number of a word over all its bits.
func mixWord(word uint64) uint64 {
	word *= 0x9e3779b97f4a7c15
	return word ^ word>>32
}

// tripleFeature is the hash of three words that follow one another.
func tripleFeature(a, b, c uint64) uint64 {
	h := a*0x9e3779b97f4a7c15 ^ bits.RotateLeft64(b, 21) ^ c
	h = (h ^ h>>29) * 0xbf58476d1ce4e5b9
	return h ^ h>>32
}

// addWithCarry adds three bits in each place.
func addWithCarry(a, b, c uint64) (sum, high uint64) {
	u := a ^ b
	return u ^ c, a&b | u&c
}

// addFeatures adds the features of words, of which the first two only begin features. It
// takes them by sixteen; those that are left, with two before them, it moves to the
// front and returns how many words are there then.
func (s *simhash) addFeatures(words []uint64) int {
	p0, p1, p2, p3 := s.planes[0], s.planes[1], s.planes[2], s.planes[3]
	w := words
	for len(w) >= 18 {
		x := (*[18]uint64)(w)
		var a, b, c, d, e uint64
		p0, a = addWithCarry(p0, tripleFeature(x[0], x[1], x[2]), tripleFeature(x[1], x[2], x[3]))
		p0, b = addWithCarry(p0, tripleFeature(x[2], x[3], x[4]), tripleFeature(x[3], x[4], x[5]))
		p1, c = addWithCarry(p1, a, b)
		p0, a = addWithCarry(p0, tripleFeature(x[4], x[5], x[6]), tripleFeature(x[5], x[6], x[7]))
		p0, b = addWithCarry(p0, tripleFeature(x[6], x[7], x[8]), tripleFeature(x[7], x[8], x[9]))
		p1, d = addWithCarry(p1, a, b)
		p2, e = addWithCarry(p2, c, d)
		p0, a = addWithCarry(p0, tripleFeature(x[8], x[9], x[10]), tripleFeature(x[9], x[10], x[11]))
		p0, b = addWithCarry(p0, tripleFeature(x[10], x[11], x[12]), tripleFeature(x[11], x[12], x[13]))
		p1, c = addWithCarry(p1, a, b)
		p0, a = addWithCarry(p0, tripleFeature(x[12], x[13], x[14]), tripleFeature(x[13], x[14], x[15]))
		p0, b = addWithCarry(p0, tripleFeature(x[14], x[15], x[16]), tripleFeature(x[15], x[16], x[17]))
		p1, d = addWithCarry(p1, a, b)
		p2, a = addWithCarry(p2, c, d)
		p3, a = addWithCarry(p3, e, a)
		s.rippleAdd(4, a)
		s.n += 16
		w = w[16:]
	}
	s.planes[0], s.planes[1], s.planes[2], s.planes[3] = p0, p1, p2, p3
	return copy(words, w)
}

// addRemaining adds features one by one.
func (s *simhash) addRemaining(words []uint64) {
	for i := 2; i < len(words); i++ {
		s.rippleAdd(0, tripleFeature(words[i-2], words[i-1], words[i]))
		s.n++
	}
}

// rippleAdd adds a to the plane at i.
func (s *simhash) rippleAdd(i int, a uint64) {
	for ; a != 0; i++ {
		s.planes[i], a = s.planes[i]^a, s.planes[i]&a
	}
}

// majorityBits sets the bits that more than half of the features have.
func (s *simhash) majorityBits() uint64 {
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
