package bitcode

import (
	"math/rand/v2"
	"testing"
)

func TestEliasFano(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	for _, most := range []uint64{0, 1, 3, 70, 5000} {
		v := make([]uint64, 3000)
		at := uint64(0)
		for i := range v {
			at += r.Uint64N(most + 1)
			if r.IntN(500) == 0 {
				at += most * 100
			}
			v[i] = at
		}
		e := NewEliasFano(uint64(len(v)), at)
		for _, x := range v {
			e.Push(x)
		}
		for i, x := range v {
			if got := e.Get(uint64(i)); got != x {
				t.Fatalf("most %d: number %d is %d, want %d", most, i, got, x)
			}
		}
	}
}
