package extract

import (
	"crypto/sha256"
	"math/bits"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// digest computes the page's digest and simhash.
func digest(p *Page) ([16]byte, uint64) {
	h := sha256.New()
	h.Write([]byte(p.Title))
	var sim simhash
	var a, b uint64
	for w := range strings.FieldsSeq(p.Text) {
		if noise(w) {
			continue
		}
		h.Write([]byte(w))
		h.Write([]byte{' '})
		c := xxhash.Sum64String(w)
		sim.add(a*0x9e3779b97f4a7c15 ^ bits.RotateLeft64(b, 21) ^ c)
		a, b = b, c
	}
	for _, l := range p.Links {
		if l.Kind == Image {
			continue
		}
		u := l.URL.String()
		if i := strings.IndexByte(u, '?'); i >= 0 && noise(u[i+1:]) {
			u = u[:i]
		}
		h.Write([]byte(u))
		h.Write([]byte{0})
	}
	return [16]byte(h.Sum(nil)[:16]), sim.sum()
}

// noise reports whether a word changes without the page changing: a time of
// day, or a long string of letters and digits such as a token.
func noise(w string) bool {
	digits, letters, other := 0, 0, 0
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

// simhash sums, bit by bit, the hashes of features.
type simhash struct {
	count [64]int32
	n     int
}

func (s *simhash) add(h uint64) {
	h ^= h >> 29
	h *= 0xbf58476d1ce4e5b9
	h ^= h >> 32
	s.n++
	for i := range 64 {
		s.count[i] += int32(h>>i&1)*2 - 1
	}
}

func (s *simhash) sum() uint64 {
	if s.n == 0 {
		return 0
	}
	var out uint64
	for i, c := range s.count {
		if c > 0 {
			out |= 1 << i
		}
	}
	return out
}

// Distance is the number of bits in which two simhashes differ: 0 to 3 for
// near-duplicates among many pages.
func Distance(a, b uint64) int { return bits.OnesCount64(a ^ b) }
