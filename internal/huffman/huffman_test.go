package huffman

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestLengths(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		weights []uint32
		limit   int
		want    []uint8
	}{
		{nil, 8, nil},
		{[]uint32{7}, 8, []uint8{1}},
		{[]uint32{0, 9}, 8, []uint8{1, 1}},
		{[]uint32{1, 1, 2, 4, 8}, 8, []uint8{4, 4, 3, 2, 1}},
		{[]uint32{1, 1, 2, 4, 8}, 3, []uint8{3, 3, 3, 3, 1}},
		{[]uint32{5, 5, 5, 5}, 1, []uint8{2, 2, 2, 2}}, // no code has words of one bit
	} {
		t.Run(fmt.Sprint(c.weights, c.limit), func(t *testing.T) {
			t.Parallel()
			if got := Lengths(c.weights, c.limit); !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

// Codes are whole (Kraft's sum is one), bounded, and as short as the best of all
// codes, which are tried; without a bound that matters, as short as Huffman's.
func TestLengthsAreBest(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewChaCha8([32]byte{1}))
	for range 100 {
		w := make([]uint64, 2+r.IntN(6))
		for i := range w {
			w[i] = uint64(math.Exp(8 * r.Float64()))
		}
		for limit := 3; limit <= 8; limit++ {
			got := Lengths(w, limit)
			kraft, cost := 0., uint64(0)
			for i, l := range got {
				if int(l) > limit {
					t.Fatalf("%v within %d: %v", w, limit, got)
				}
				kraft += math.Ldexp(1, -int(l))
				cost += w[i] * uint64(l)
			}
			if kraft != 1 {
				t.Fatalf("%v within %d: %v, of sum %v", w, limit, got, kraft)
			}
			if best := tryAll(w, limit, 1<<limit); cost != best {
				t.Fatalf("%v within %d: %v takes %d, the best %d", w, limit, got, cost, best)
			}
		}
		cost := uint64(0)
		for i, l := range Lengths(w, 16) {
			cost += w[i] * uint64(l)
		}
		if best := merged(w); cost != best {
			t.Fatalf("%v: %d, Huffman's %d", w, cost, best)
		}
	}
}

// tryAll returns the least cost of a prefix code with words of at most limit bits
// that uses at most room, in units of the longest word.
func tryAll(w []uint64, limit, room int) uint64 {
	if len(w) == 0 {
		return 0
	}
	best := uint64(math.MaxUint64)
	for l := 1; l <= limit; l++ {
		rest := room - 1<<(limit-l)
		if rest < len(w)-1 {
			continue
		}
		if c := tryAll(w[1:], limit, rest); c != math.MaxUint64 {
			best = min(best, c+w[0]*uint64(l))
		}
	}
	return best
}

// merged is the cost of Huffman's code: the sum of all that he merges.
func merged(w []uint64) (cost uint64) {
	w = slices.Clone(w)
	for len(w) > 1 {
		slices.Sort(w)
		w[1] += w[0]
		cost += w[1]
		w = w[1:]
	}
	return cost
}
