package bitcode

import (
	"math"
	"math/rand/v2"
	"testing"
)

// A prefix code of counts is within a hundredth of a bit... of the entropy where
// counts are powers of two, and within one bit always; what is written is read.
func TestPrefix(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 3, 17, 200, MaxNumbers} {
		counts := make([]uint64, n)
		var total float64
		for i := range counts {
			counts[i] = uint64(1e6 * math.Pow(float64(i+1), -1.3))
			total += float64(counts[i])
		}
		p, err := NewPrefix(counts)
		if err != nil {
			t.Fatal(err)
		}
		var entropy, cost float64
		for i, c := range counts {
			if c > 0 {
				entropy += float64(c) * math.Log2(total/float64(c))
			}
			cost += float64(c) * float64(p.Cost(i))
		}
		if cost < entropy || cost > 1.05*entropy+total {
			t.Errorf("%d numbers: %.3f bits each, entropy %.3f", n, cost/total, entropy/total)
		}
		var w Writer
		var want []int
		for range 1000 {
			x := r.IntN(n)
			want = append(want, x)
			p.Write(&w, x)
		}
		w.Pad()
		q, err := ReadPrefix(p.Lengths())
		if err != nil {
			t.Fatal(err)
		}
		in := NewReader(w.Bytes())
		for _, x := range want {
			if got := q.Read(in); got != x || in.Bad {
				t.Fatalf("%d numbers: %d read as %d", n, x, got)
			}
		}
	}
	// Counts that are powers of two: the lengths are their logarithms.
	p, err := NewPrefix([]uint64{8, 4, 2, 1, 1})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []uint{1, 2, 3, 4, 4} {
		if p.Cost(i) != want {
			t.Errorf("length of word %d: %d, want %d", i, p.Cost(i), want)
		}
	}
	for _, bad := range [][]uint8{{1, 1, 1}, {2, 1}, {13, 1}, {}} {
		if _, err := ReadPrefix(bad); err == nil {
			t.Errorf("lengths %v: no error", bad)
		}
	}
}

func TestLog(t *testing.T) {
	t.Parallel()
	last := -1
	for x := range uint64(5000) {
		class, rest, width := Log(x)
		least, w := UnLog(class)
		if least+rest != x || w != width || class < last || class > last+1 {
			t.Fatalf("%d: class %d, %d in %d bits, read as %d in %d", x, class, rest, width, least+rest, w)
		}
		last = class
	}
	for _, x := range []uint64{1<<32 - 1, 1 << 32, 1<<63 + 12345, math.MaxUint64} {
		class, rest, _ := Log(x)
		if least, _ := UnLog(class); least+rest != x {
			t.Errorf("%d read as %d", x, least+rest)
		}
	}
}
