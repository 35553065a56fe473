package extract

import (
	"math/bits"
	"strings"
	"testing"

	"github.com/zeebo/xxh3"
)

// plainSimhash counts with one counter a bit.
func plainSimhash(words []uint64) (sum uint64) {
	var count [64]int
	var a, b uint64
	for _, c := range words {
		c *= 0x9e3779b97f4a7c15
		c ^= c >> 32
		x := a*0x9e3779b97f4a7c15 ^ bits.RotateLeft64(b, 21) ^ c
		x ^= x >> 29
		x *= 0xbf58476d1ce4e5b9
		x ^= x >> 32
		for j := range 64 {
			count[j] += int(x>>j&1)*2 - 1
		}
		a, b = b, c
	}
	for j, c := range count {
		if c > 0 {
			sum |= 1 << j
		}
	}
	return sum
}

// The counters that stand upright, fed in pieces, against one counter a bit.
func TestSimhash(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 2, 15, 16, 17, 254, 255, 256, 1000, 5001} {
		for _, piece := range []int{1, 16, 100, 5001} {
			var s simhash
			var words []uint64
			waiting := []uint64{0, 0}
			for i := range uint64(n) {
				words = append(words, i*i)
				if waiting = append(waiting, mixWord(i*i)); len(waiting) > piece {
					waiting = waiting[:s.addFeatures(waiting)]
				}
			}
			s.addRemaining(waiting)
			if got, want := s.majorityBits(), plainSimhash(words); got != want {
				t.Errorf("%d features in pieces of %d: %x, want %x", n, piece, got, want)
			}
		}
	}
}

// The digest and the simhash against the plain way of doing it, word by word.
func FuzzDigest(f *testing.F) {
	for _, s := range []string{
		"", "a", "one two  three", " eightttt ninewords žąsis гуси", strings.Repeat("word 12:30 9f8e7d6c5b4a39281706f5e4 and ! more ", 9), strings.Repeat("x", 63) + " y", strings.Repeat("x", 64) + " ",
		strings.Repeat("a b c d e f g 12:30 h ", 300), strings.Repeat(" ", 5000), strings.Repeat("x", 2047) + " y " + strings.Repeat("z", 2046) + " ", strings.Repeat("seven7 ", 400) + strings.Repeat("t0k3n", 900),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var kept strings.Builder
		var numbers []uint64
		words := strings.Split(text, " ")
		if words[len(words)-1] == "" {
			words = words[:len(words)-1]
		}
		for i, w := range words {
			if isNoise(w) {
				continue
			}
			kept.WriteString(w)
			if i < len(words)-1 || strings.HasSuffix(text, " ") {
				kept.WriteString(" ")
			}
			numbers = append(numbers, wordNumber(w))
		}
		h := xxh3.New()
		_, _ = h.WriteString("title\x00" + kept.String())
		if len(words) > 0 && !isNoise(words[len(words)-1]) {
			_, _ = h.WriteString(" ")
		}
		digest, simhash := computeDigest(&Page{Title: "title", Text: text}, spacesIn(text))
		if want := h.Sum128().Bytes(); digest != want || simhash != plainSimhash(numbers) {
			t.Errorf("%q: %x %x, want %x %x", text, digest, simhash, want, plainSimhash(numbers))
		}
	})
}
