package extract

import (
	"crypto/sha256"
	"math/bits"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// digest computes the page's digest and simhash. The text is folded: its words
// are parted by single spaces.
func digest(p *Page) ([16]byte, uint64) {
	h := sha256.New()
	buf := make([]byte, 0, 4096) // the hash takes long pieces faster than short
	put := func(s string) {
		for len(s) > 0 {
			if len(buf) == cap(buf) {
				h.Write(buf)
				buf = buf[:0]
			}
			n := min(len(s), cap(buf)-len(buf))
			buf = append(buf, s[:n]...)
			s = s[n:]
		}
	}
	put(p.Title)
	put("\x00")
	var sim simhash
	var a, b uint64
	text, piece := p.Text, 0
	for i := 0; i < len(text); {
		end := i
		for end < len(text) && text[end] != ' ' {
			end++
		}
		if w := text[i:end]; noise(w) {
			put(text[piece:i])
			piece = min(end+1, len(text))
		} else {
			c := wordHash(text, i, end)
			sim.add(a*0x9e3779b97f4a7c15 ^ bits.RotateLeft64(b, 21) ^ c)
			a, b = b, c
		}
		i = end + 1
	}
	if piece < len(text) {
		put(text[piece:])
		put(" ")
	}
	for _, l := range p.Links {
		if l.Kind == Image {
			continue
		}
		u := l.URL.String()
		if i := strings.IndexByte(u, '?'); i >= 0 && noise(u[i+1:]) {
			u = u[:i]
		}
		put(u)
		put("\x00")
	}
	h.Write(buf)
	return [16]byte(h.Sum(nil)[:16]), sim.sum()
}

// wordHash hashes text[i:end]. Most words have at most eight letters: those are
// read as one integer.
func wordHash(text string, i, end int) uint64 {
	n := end - i
	if n > 8 {
		return xxhash.Sum64String(text[i:end])
	}
	var x uint64
	if i+8 <= len(text) {
		w := text[i : i+8]
		x = uint64(w[0]) | uint64(w[1])<<8 | uint64(w[2])<<16 | uint64(w[3])<<24 | uint64(w[4])<<32 | uint64(w[5])<<40 | uint64(w[6])<<48 | uint64(w[7])<<56
		x &= 1<<(8*n) - 1
	} else {
		for j := n - 1; j >= 0; j-- {
			x = x<<8 | uint64(text[i+j])
		}
	}
	x *= 0x9e3779b97f4a7c15
	return x ^ x>>32
}

// noise reports whether a word changes without the page changing: a time of
// day, or a long string of letters and digits such as a token.
func noise(w string) bool {
	digits, letters, other := 0, 0, 0
	if w == "" || len(w) < 20 && (w[0] < '0' || w[0] > '9') && w[0] != ':' {
		return false // no number, and too short for a token
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

// simhash sums, bit by bit, the hashes of features. Eight counters of a byte
// share a word, so that a feature costs eight additions instead of 64; every
// 255 features the bytes are emptied into the wide counters.
type simhash struct {
	lanes [8]uint64
	count [64]int32 // features with the bit set
	n     int32
}

// spread[b] holds bit i of b in byte i.
var spread = func() (t [256]uint64) {
	for b := range t {
		for i := range 8 {
			t[b] |= uint64(b>>i&1) << (8 * i)
		}
	}
	return t
}()

func (s *simhash) add(h uint64) {
	h ^= h >> 29
	h *= 0xbf58476d1ce4e5b9
	h ^= h >> 32
	for i := range s.lanes {
		s.lanes[i] += spread[byte(h>>(8*i))]
	}
	if s.n++; s.n%255 == 0 {
		s.empty()
	}
}

func (s *simhash) empty() {
	for i, l := range s.lanes {
		for j := range 8 {
			s.count[8*i+j] += int32(l >> (8 * j) & 255)
		}
		s.lanes[i] = 0
	}
}

func (s *simhash) sum() uint64 {
	s.empty()
	var out uint64
	for i, c := range s.count {
		if 2*c > s.n {
			out |= 1 << i
		}
	}
	return out
}

// Distance is the number of bits in which two simhashes differ: 0 to 3 for
// near-duplicates among many pages.
func Distance(a, b uint64) int { return bits.OnesCount64(a ^ b) }
