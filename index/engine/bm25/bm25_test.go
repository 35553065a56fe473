package bm25

import (
	"math/rand/v2"
	"testing"

	"github.com/freshet/freshet/index/engine/postings"
)

// A bound that was written with other averages is never below the saturation.
func TestBoundHolds(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		average := func() Averages {
			return Averages{r.Float64() * 30, r.Float64() * 30, r.Float64() * 3000}
		}
		written, now := average(), average()
		old, norms := NewNorms(written), NewNorms(now)
		bound := norms.Bound(written)
		for range 20 {
			code := postings.PackCode(1+uint32(r.IntN(50)), uint32(r.IntN(4)), uint32(r.IntN(4)))
			l := PackLengths(r.IntN(40), r.IntN(40), r.IntN(20_000))
			if s, b := float64(norms.Saturation(code, l)), bound(old.Impact(code, l)); s > b {
				t.Fatalf("saturation %g above the bound %g: averages %v, written %v", s, b, now, written)
			}
		}
	}
}

func TestLengthByte(t *testing.T) {
	t.Parallel()
	last := -1
	for b := range 256 {
		n := lengthOf(byte(b))
		if n <= last || int(lengthByte(n)) != b {
			t.Errorf("byte %d stands for %d, which is byte %d", b, n, lengthByte(n))
		}
		last = n
	}
	if got := lengthByte(1 << 30); got != 255 {
		t.Errorf("a huge length is byte %d", got)
	}
}

// A rarer word, a more frequent one, a shorter document and a title count more.
func TestOrder(t *testing.T) {
	t.Parallel()
	n := NewNorms(Averages{6, 6, 500})
	l := PackLengths(6, 6, 500)
	base := n.Saturation(postings.PackCode(1, 0, 0), l)
	for name, s := range map[string]float32{
		"frequent": n.Saturation(postings.PackCode(2, 0, 0), l),
		"shorter":  n.Saturation(postings.PackCode(1, 0, 0), PackLengths(6, 6, 50)),
		"title":    n.Saturation(postings.PackCode(1, 1, 0), l),
	} {
		if s <= base {
			t.Errorf("%s: %g, not above %g", name, s, base)
		}
	}
	if IDF(3, 100) <= IDF(30, 100) || IDF(200, 100) <= 0 {
		t.Error("idf does not fall with the count, or is not positive")
	}
}
