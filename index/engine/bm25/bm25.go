// Package bm25 scores a term in a document with fields: BM25F (Robertson,
// Zaragoza 2009, "The Probabilistic Relevance Framework: BM25 and Beyond").
//
//	f     = sum over fields of weight tf / (1 - b + b length/average)
//	score = idf f / (K1 + f)
//
// Lengths are stored in a byte, so the factor of each field is a table of 256
// entries. A list of postings keeps bounds of f / (K1 + f) for average lengths
// that were fixed when its segment was written; Bound converts them for others.
package bm25

import (
	"math"
	"math/bits"

	"github.com/freshet/freshet/index/engine/postings"
)

// K1 says how fast repetitions of a word lose value.
const K1 = 1.2

// Field is the weight of a field and how much its length counts (b).
type Field struct{ Weight, B float64 }

// Fields of a document. A word of the title says more about a page than one of
// its body, and a long title is seldom longer for repeating itself.
var (
	Title = Field{Weight: 4, B: .4}
	URL   = Field{Weight: 1, B: .4}
	Body  = Field{Weight: 1, B: .6}
)

// Averages are average lengths of the fields in words.
type Averages struct{ Title, URL, Body float64 }

// atLeastOne keeps the averages of an empty index usable.
func (a Averages) atLeastOne() Averages {
	return Averages{max(a.Title, 1), max(a.URL, 1), max(a.Body, 1)}
}

// Lengths are the lengths of a document's fields, each in a byte: title, URL
// and body from the lowest byte on.
type Lengths uint32

// PackLengths returns the lengths in words as they are stored.
func PackLengths(title, url, body int) Lengths {
	return Lengths(lengthByte(title)) | Lengths(lengthByte(url))<<8 | Lengths(lengthByte(body))<<16
}

// Words returns the lengths in words, as exactly as they are stored.
func (l Lengths) Words() (title, url, body int) {
	return lengthOf(byte(l)), lengthOf(byte(l >> 8)), lengthOf(byte(l >> 16))
}

// lengthByte keeps four bits behind the leading one: lengths up to 31 are
// exact, others are rounded down by at most 6 %.
func lengthByte(n int) byte {
	if n < 32 {
		return byte(max(n, 0))
	}
	shift := bits.Len(uint(n)) - 5
	return byte(min(32+(shift-1)*16+n>>shift-16, 255))
}

// lengthOf is the length that a byte stands for.
func lengthOf(b byte) int {
	if b < 32 {
		return int(b)
	}
	shift := (int(b)-32)/16 + 1
	return (16 + (int(b)-32)%16) << shift
}

// Norms are the factors of the fields for given averages.
type Norms struct {
	averages         Averages
	title, url, body [256]float32
}

// NewNorms returns the factors for averages.
func NewNorms(a Averages) *Norms {
	n := &Norms{averages: a.atLeastOne()}
	fill := func(t *[256]float32, f Field, average float64) {
		for i := range t {
			t[i] = float32(f.Weight / (1 - f.B + f.B*float64(lengthOf(byte(i)))/average))
		}
	}
	fill(&n.title, Title, n.averages.Title)
	fill(&n.url, URL, n.averages.URL)
	fill(&n.body, Body, n.averages.Body)
	return n
}

// Saturation returns f / (K1 + f) of a term with a code of package postings in
// a document with lengths.
func (n *Norms) Saturation(code uint32, l Lengths) float32 {
	var f float32
	if code&1 == 0 {
		f = float32(code>>1+1) * n.body[byte(l>>16)]
	} else {
		total, title, url := postings.UnpackCode(code)
		f = float32(title)*n.title[byte(l)] + float32(url)*n.url[byte(l>>8)]
		if rest := int64(total) - int64(title) - int64(url); rest > 0 {
			f += float32(rest) * n.body[byte(l>>16)]
		}
	}
	return f / (K1 + f)
}

// maxImpact is the impact of a saturation of one.
const maxImpact = 1<<16 - 1

// Impact returns the saturation rounded up to 16 bits.
func (n *Norms) Impact(code uint32, l Lengths) uint16 {
	return uint16(min(math.Ceil(float64(n.Saturation(code, l))*maxImpact*(1+1e-6)), maxImpact))
}

// Bound converts impacts that were written with other averages into bounds of
// the saturation with the averages of these norms.
//
// With a greater average a field counts more, but no more than the ratio of
// the averages: 1 - b + b l/a >= (r/a)(1 - b + b l/r) for a >= r. So f grows at
// most by the greatest ratio of the fields.
func (n *Norms) Bound(written Averages) func(impact uint16) float64 {
	w := written.atLeastOne()
	ratio := max(1, n.averages.Title/w.Title, n.averages.URL/w.URL, n.averages.Body/w.Body)
	return func(impact uint16) float64 {
		if impact == maxImpact {
			return 1
		}
		s := float64(impact) / maxImpact
		return ratio * s / (1 + (ratio-1)*s) * (1 + 1e-6)
	}
}

// IDF is how much a word says that stands in count of total documents.
func IDF(count, total int) float64 {
	return math.Log1p((float64(max(total-count, 0)) + .5) / (float64(count) + .5))
}
