package local

import (
	"encoding/binary"
	"math/bits"
	"sync"

	"github.com/freshet/freshet/weburl"
)

// seen answers whether a URL is known without touching the disk: an open
// hash table of 64-bit fingerprints of page keys, rebuilt when the store opens.
// Two URLs share a fingerprint with probability 2^-64, so that among 10^8 URLs
// one is taken for known wrongly with probability 0.03 % (birthday bound).
//
// It is cut into shards, so that growing one copies little and briefly. Beyond
// its limit it remembers no more, and Has answers maybe: the store then looks.
type seen struct {
	shards [64]shard
	limit  int // entries a shard may hold
}

type shard struct {
	mu    sync.Mutex
	slots []uint64 // 0 is free
	n     int
	full  bool // entries were left out
}

func newSeen(limit int) *seen { return &seen{limit: max(1, limit/64)} }

// print mixes both halves of a key; 0 stands for a free slot.
func print(k weburl.Key) uint64 {
	hi, lo := binary.BigEndian.Uint64(k[:8]), binary.BigEndian.Uint64(k[8:])
	h := (bits.RotateLeft64(hi, 32) ^ lo) * 0x9e3779b97f4a7c15
	h ^= h >> 32
	return max(h, 1)
}

// add inserts a key. It reports whether the key was new for certain, and
// whether it may have been (the table is full).
func (s *seen) add(k weburl.Key) (fresh, maybe bool) {
	p := print(k)
	sh := &s.shards[p>>58]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if 4*(sh.n+1) > 3*len(sh.slots) && sh.n < s.limit {
		sh.grow()
	}
	if len(sh.slots) == 0 {
		return false, true
	}
	i := sh.find(p)
	if sh.slots[i] == p {
		return false, false
	}
	if sh.n >= s.limit {
		sh.full = true
		return false, true
	}
	sh.slots[i] = p
	sh.n++
	return !sh.full, sh.full
}

// remove takes a key out again, after the batch that added it failed.
func (s *seen) remove(k weburl.Key) {
	p := print(k)
	sh := &s.shards[p>>58]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if len(sh.slots) == 0 {
		return
	}
	i := sh.find(p)
	if sh.slots[i] != p {
		return
	}
	sh.slots[i] = 0
	sh.n--
	// Close the gap: entries behind it may have been pushed past it.
	mask := len(sh.slots) - 1
	for j := (i + 1) & mask; sh.slots[j] != 0; j = (j + 1) & mask {
		q := sh.slots[j]
		sh.slots[j] = 0
		sh.slots[sh.find(q)] = q
	}
}

// find returns the slot of p, or the free slot where it belongs.
func (sh *shard) find(p uint64) int {
	mask := len(sh.slots) - 1
	i := int(p) & mask
	for sh.slots[i] != 0 && sh.slots[i] != p {
		i = (i + 1) & mask
	}
	return i
}

func (sh *shard) grow() {
	old := sh.slots
	sh.slots = make([]uint64, max(64, 2*len(old)))
	for _, p := range old {
		if p != 0 {
			sh.slots[sh.find(p)] = p
		}
	}
}

// len counts the keys.
func (s *seen) len() int64 {
	var n int64
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		n += int64(sh.n)
		sh.mu.Unlock()
	}
	return n
}
