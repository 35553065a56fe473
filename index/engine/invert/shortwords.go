package invert

import (
	"math/bits"
	"math/rand/v2"
)

// shortWords maps words of up to 16 bytes to their numbers: a hash table with
// linear probing that is at most half full. Every word of a text is looked up
// here; a Go map takes about three times as long.
type shortWords struct {
	seed  [2]uint64
	slots []shortSlot // a power of two
	count int
}

// shortSlot is empty if the number is 0.
type shortSlot struct {
	key [2]uint64
	id  formID
}

func newShortWords() shortWords {
	return shortWords{seed: [2]uint64{rand.Uint64(), rand.Uint64() | 1}, slots: make([]shortSlot, 1<<10)}
}

// hashSlot is where the search for a key begins: both halves of a product, as in
// wyhash. Who does not know the seed cannot find keys that collide.
func (t *shortWords) hashSlot(key [2]uint64) uint64 {
	high, low := bits.Mul64(key[0]^t.seed[0], key[1]^t.seed[1])
	return (high ^ low) & uint64(len(t.slots)-1)
}

// findWord returns the number of a word, 0 if it is unknown.
func (t *shortWords) findWord(key [2]uint64) formID {
	for i := t.hashSlot(key); ; i = (i + 1) & uint64(len(t.slots)-1) {
		if s := &t.slots[i]; s.key == key || s.id == 0 {
			return s.id
		}
	}
}

// addWord adds a word that is unknown.
func (t *shortWords) addWord(key [2]uint64, id formID) {
	if t.count++; 2*t.count > len(t.slots) {
		old := t.slots
		t.slots = make([]shortSlot, 2*len(old))
		for _, s := range old {
			if s.id != 0 {
				t.putWord(s)
			}
		}
	}
	t.putWord(shortSlot{key, id})
}

func (t *shortWords) putWord(s shortSlot) {
	i := t.hashSlot(s.key)
	for t.slots[i].id != 0 {
		i = (i + 1) & uint64(len(t.slots)-1)
	}
	t.slots[i] = s
}
