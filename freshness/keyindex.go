package freshness

import (
	"encoding/binary"

	"github.com/freshet/freshet/weburl"
)

// keyIndex numbers pages from 0 by their keys: 16 bytes a page for the key and
// some 6 for the table of numbers, where a map takes 40. Keys are hashes
// already. Nothing is taken out.
type keyIndex struct {
	keys  []weburl.Key
	slots []uint32 // number + 1; 0 is free
}

// indexOf returns the number of a page.
func (x *keyIndex) indexOf(k weburl.Key) (id uint32, ok bool) {
	if len(x.slots) == 0 {
		return 0, false
	}
	n := x.slots[x.slotOf(k)]
	return n - 1, n > 0
}

// slotOf is where a key stands, or the free slot where it would.
func (x *keyIndex) slotOf(k weburl.Key) uint64 {
	mask := uint64(len(x.slots) - 1)
	i := (binary.LittleEndian.Uint64(k[:8]) ^ binary.LittleEndian.Uint64(k[8:])) & mask
	for x.slots[i] > 0 && x.keys[x.slots[i]-1] != k {
		i = (i + 1) & mask
	}
	return i
}

// addKey takes a key that is not there and returns its number.
func (x *keyIndex) addKey(k weburl.Key) uint32 {
	if 4*(len(x.keys)+1) > 3*len(x.slots) {
		x.slots = make([]uint32, max(64, 2*len(x.slots)))
		for i := range x.keys {
			x.slots[x.slotOf(x.keys[i])] = uint32(i) + 1
		}
	}
	x.keys = append(x.keys, k)
	x.slots[x.slotOf(k)] = uint32(len(x.keys))
	return uint32(len(x.keys)) - 1
}
