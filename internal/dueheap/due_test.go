package dueheap

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Whatever is pushed, replaced and popped, the heap gives what a sorted list
// gives.
func TestHeap(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		var h Heap
		var list []float64
		for range r.IntN(40) {
			at := float64(r.IntN(20))
			h, list = append(h, Entry{At: at}), append(list, at)
		}
		h.Order()
		for range 100 {
			slices.Sort(list)
			switch at := float64(r.IntN(20)); {
			case len(list) == 0 || r.IntN(3) == 0:
				h.Push(Entry{At: at})
				list = append(list, at)
			case r.IntN(2) == 0:
				if got := h.Pop(); got.At != list[0] {
					t.Fatalf("popped %g, the least is %g", got.At, list[0])
				}
				list = list[1:]
			default:
				if h[0].At != list[0] {
					t.Fatalf("first is %g, the least is %g", h[0].At, list[0])
				}
				h.Replace(Entry{At: at})
				list[0] = at
			}
		}
		if len(h) != len(list) {
			t.Fatalf("%d entries, want %d", len(h), len(list))
		}
	}
}
