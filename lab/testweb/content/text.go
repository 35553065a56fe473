// Package content writes the pages of a synthetic web: text in English, Russian
// or Lithuanian with words by Zipf's law, a title whose words recur in the text
// (so that a search for them finds the page), and HTML in the many habits of
// real authors.
//
// Everything is a pure function of 64-bit keys: the same key gives the same
// bytes on any machine, and no page is stored. Writing a page of 3 KB takes a
// few microseconds and, with a reused buffer, no allocation.
package content

import (
	"math"

	"github.com/freshet/freshet/internal/rng"
)

// zipfExponent is the exponent of word frequencies in running text (Zipf 1949:
// close to 1 in every language).
const zipfExponent = 1.05

// aliasCell is a cell of Vose's alias table: a draw lands in a cell, then keeps
// its rank or takes the other by comparing 32 more bits with keep.
type aliasCell struct {
	keep  uint32
	other uint32
}

// zipfAliasTable builds the alias table of P(rank r) ~ (r+1)^-exponent, r < n
// (Vose, IEEE Trans. Software Engineering 17, 1991).
func zipfAliasTable(n int, exponent float64) []aliasCell {
	p := make([]float64, n)
	var sum float64
	for r := range p {
		p[r] = math.Pow(float64(r+1), -exponent)
		sum += p[r]
	}
	var small, large []int
	for r := range p {
		p[r] *= float64(n) / sum
		if p[r] < 1 {
			small = append(small, r)
		} else {
			large = append(large, r)
		}
	}
	cells := make([]aliasCell, n)
	for r := range cells {
		cells[r] = aliasCell{math.MaxUint32, uint32(r)}
	}
	for len(small) > 0 && len(large) > 0 {
		s, l := small[len(small)-1], large[len(large)-1]
		small = small[:len(small)-1]
		cells[s] = aliasCell{uint32(p[s] * math.MaxUint32), uint32(l)}
		p[l] -= 1 - p[s]
		if p[l] < 1 {
			large = large[:len(large)-1]
			small = append(small, l)
		}
	}
	return cells
}

// drawWordRank draws a rank from 64 random bits.
func (w *Words) drawWordRank(bits uint64) int {
	r := bits >> 32 & (vocabularySize - 1)
	if c := w.alias[r]; uint32(bits) > c.keep {
		return int(c.other)
	}
	return int(r)
}

// Topic is what a page is about: ranks of words that stand in its title and
// recur in its text.
type Topic [3]uint16

// Topic returns the topic of a key: rarer words, none of the commonest.
func (w *Words) Topic(key uint64) Topic {
	const first = 400 // below stand the words of every text
	var t Topic
	for i := range t {
		t[i] = uint16(first + rng.Mix(key, uint64(i))%(vocabularySize-first))
	}
	return t
}

// AppendTitle appends the title of a topic: its words, the first with a capital.
func (w *Words) AppendTitle(dst []byte, l Language, t Topic) []byte {
	dst = append(dst, w.title[l][t[0]]...)
	for _, r := range t[1:] {
		dst = append(dst, ' ')
		dst = append(dst, w.words[l][r]...)
	}
	return dst
}

// AppendSentence appends the sentence of a key, 5 to 20 words, some of them the
// topic's.
func (w *Words) AppendSentence(dst []byte, l Language, t Topic, key uint64) []byte {
	h := rng.Mix(key, 0)
	n := 5 + int(h%8) + int(h>>8%8)
	comma := 2 + int(h>>16%16)
	about := int(h >> 24 % 32)
	words := w.words[l]
	for i := range n {
		r := 0
		if i == about || i == about-9 {
			r = int(t[h>>32%3])
		} else {
			r = w.drawWordRank(rng.Mix(key, uint64(i+1)))
		}
		switch {
		case i == 0:
			dst = append(dst, w.title[l][r]...)
			continue
		case i == comma:
			dst = append(dst, ", "...)
		default:
			dst = append(dst, ' ')
		}
		dst = append(dst, words[r]...)
	}
	return append(dst, '.')
}
