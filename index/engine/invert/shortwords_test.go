package invert

import (
	"math/rand/v2"
	"testing"
)

// The table finds the words that were added, and no others.
func TestShortWords(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	table, want := newShortWords(), map[[2]uint64]formID{}
	for len(want) < 5000 {
		key := [2]uint64{r.Uint64() >> r.IntN(60), uint64(r.IntN(3))}
		if key == ([2]uint64{}) { // no word
			continue
		}
		if got := table.findWord(key); got != want[key] {
			t.Fatalf("word %x has the number %d, want %d", key, got, want[key])
		}
		if want[key] == 0 {
			id := formID(len(want) + 1)
			table.addWord(key, id)
			want[key] = id
		}
	}
	for key, id := range want {
		if got := table.findWord(key); got != id {
			t.Errorf("word %x has the number %d, want %d", key, got, id)
		}
	}
}
