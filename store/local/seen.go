package local

import (
	"encoding/binary"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/freshet/freshet/weburl"
)

// seen answers most questions of whether a URL is known from bounded memory. It
// only holds URLs whose records are durable; what it cannot say the records on
// disk do, so that the answer is exact whatever was left out here.
//
// First stands a hash table of 63-bit prints. As long as all URLs fit, it knows
// everything: two URLs share a print with probability 2^-63. When it is full, a
// new print takes the place of one near it that was not asked for lately (second
// chance, Corbató 1968), and from then on Bloom filters hold every URL, too: a
// URL in none of them is new, without a look at the disk; one that is only in
// them may be known. So the links of the hosts at work are answered by the table,
// new ones by the filters, and the disk is asked for a known URL that was not
// met for long and for one new URL of some hundred.
//
// All is cut into shards, so that growing one copies little and briefly. Who asks
// shares the lock with others: beside them it only marks what was asked for, in one
// atomic step.
type seen struct {
	limits
	mu     sync.RWMutex // guards what follows
	shards [seenShards]shard
}

const seenShards = 64

// limits bound the memory of a shard, or of all of them.
type limits struct {
	prints int // in the table
	filter int // bytes of the filters; beyond it they err more often
}

type shard struct {
	limits
	slots []uint64 // prints, the lowest bit says asked for lately; 0 is free
	n     int
	known []filter // of all URLs once the table was full, each twice as large
	bytes int
}

func newSeen(l limits) *seen {
	s := &seen{limits: l}
	for i := range s.shards {
		s.shards[i].limits = limits{max(16, l.prints/seenShards), max(64, l.filter/seenShards)}
	}
	return s
}

// fingerprintOf mixes both halves of a key. 0 stands for a free slot, and the lowest
// bit is the table's.
func fingerprintOf(k weburl.Key) uint64 {
	hi, lo := binary.BigEndian.Uint64(k[:8]), binary.BigEndian.Uint64(k[8:])
	h := (bits.RotateLeft64(hi, 32) ^ lo) * 0x9e3779b97f4a7c15
	h ^= h >> 32
	return max(h&^1, 2)
}

// answer is what seen says of a URL.
type answer int

const (
	unknown answer = iota // never added
	known
	unsure // ask the disk
)

func (s *seen) shardOf(p uint64) *shard { return &s.shards[p>>58] }

// lookupURL says whether a URL was added.
func (s *seen) lookupURL(k weburl.Key) answer {
	p := fingerprintOf(k)
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.shardOf(p).lookupFingerprint(p)
}

func (sh *shard) lookupFingerprint(p uint64) answer {
	if len(sh.slots) > 0 {
		slot := &sh.slots[sh.findFreeOrEqual(p)]
		if q := atomic.LoadUint64(slot); q != 0 {
			if q&1 == 0 {
				atomic.OrUint64(slot, 1)
			}
			return known
		}
	}
	for i := len(sh.known) - 1; i >= 0; i-- {
		if sh.known[i].hasFingerprint(p) {
			return unsure
		}
	}
	return unknown
}

// knownAll tells of each key whether it is in the table. A table of millions is in
// no cache: the slots where the searches begin are all loaded first, so that the
// waits for memory overlap.
func (s *seen) knownAll(keys []weburl.Key, is []bool) {
	var prints, first [64]uint64
	s.mu.RLock()
	defer s.mu.RUnlock()
	for at := 0; at < len(keys); at += len(prints) {
		some := keys[at:min(at+len(prints), len(keys))]
		for i, k := range some {
			p := fingerprintOf(k)
			prints[i], first[i] = p, 0
			if sh := s.shardOf(p); len(sh.slots) > 0 {
				first[i] = atomic.LoadUint64(&sh.slots[sh.homeSlot(p)])
			}
		}
		for i := range some {
			// Marked already and in its place, or to be searched for.
			is[at+i] = first[i] == prints[i]|1 || s.shardOf(prints[i]).lookupFingerprint(prints[i]) == known
		}
	}
}

// Known implements store.Knower.
func (s *Store) Known(keys []weburl.Key, known []bool) { s.seen.knownAll(keys, known) }

// addURL inserts a URL that was not added before.
func (s *seen) addURL(k weburl.Key) {
	p := fingerprintOf(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	sh := s.shardOf(p)
	sh.insertFingerprint(p)
	if sh.known != nil {
		sh.filterFor(0).addFingerprint(p)
	}
}

// rememberURL puts a URL that was added before back into the table.
func (s *seen) rememberURL(k weburl.Key) {
	p := fingerprintOf(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shardOf(p).insertFingerprint(p)
}

// releaseMemory gives the memory back.
func (s *seen) releaseMemory() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.shards {
		sh := &s.shards[i]
		release(sh.slots)
		for j := range sh.known {
			release(sh.known[j].words)
		}
		sh.slots, sh.known, sh.n = nil, nil, 0
	}
}

// heldBytes is how many bytes are held.
func (s *seen) heldBytes() (n int64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for i := range s.shards {
		n += int64(8*len(s.shards[i].slots) + s.shards[i].bytes)
	}
	return n
}

// filterFor returns the filter that takes the next URLs; a first one has room
// for n and as many more.
func (sh *shard) filterFor(n int) *filter {
	for i := range sh.known {
		n += sh.known[i].n
	}
	last := len(sh.known) - 1
	if last < 0 || sh.known[last].n >= sh.known[last].keyCapacity() {
		capacity := max(64, n)
		if last < 0 {
			capacity *= 2
		}
		if room := sh.filter - sh.bytes; last < 0 || room >= 8*blockWords {
			f := newFilter(min(capacity, max(64, room/8/blockWords*blockKeys)))
			sh.bytes += 8 * len(f.words)
			sh.known = append(sh.known, f)
			last++
		}
	}
	return &sh.known[last]
}

// The table is at most four fifths full.
const (
	loadNum = 4
	loadDen = 5
)

// insertFingerprint puts a print into the table if it is not there.
func (sh *shard) insertFingerprint(p uint64) {
	if loadDen*(sh.n+1) > loadNum*len(sh.slots) && sh.n < sh.prints {
		sh.growTable()
	}
	i := sh.findFreeOrEqual(p)
	if sh.slots[i] != 0 {
		return
	}
	if sh.n >= sh.prints {
		if sh.known == nil {
			sh.fillFilter()
		}
		sh.evictFingerprint(p)
		i = sh.findFreeOrEqual(p)
	}
	sh.slots[i] = p
	sh.n++
}

// fillFilter makes the first filter, of what is in the table.
func (sh *shard) fillFilter() {
	f := sh.filterFor(sh.n)
	for _, q := range sh.slots {
		if q != 0 {
			f.addFingerprint(q &^ 1)
		}
	}
}

// evictFingerprint takes out a print that was not asked for since the search last passed
// it. The search begins where p belongs: a hand that goes round the table would
// leave room behind it, and crowd what is before it into one long run.
func (sh *shard) evictFingerprint(p uint64) {
	for i := sh.homeSlot(p); ; {
		switch q := sh.slots[i]; {
		case q == 0:
		case q&1 != 0:
			sh.slots[i] = q &^ 1
		default:
			sh.removeSlot(i)
			return
		}
		if i++; i == len(sh.slots) {
			i = 0
		}
	}
}

// removeSlot frees a slot and closes the gap: prints behind it that were pushed past
// it move up (Knuth, The Art of Computer Programming 3, algorithm 6.4 R).
func (sh *shard) removeSlot(gap int) {
	size := len(sh.slots)
	sh.slots[gap] = 0
	sh.n--
	for j := gap; ; {
		if j++; j == size {
			j = 0
		}
		q := sh.slots[j]
		if q == 0 {
			return
		}
		// q may stay if its home lies behind the gap, up to j, in the circle.
		if home := sh.homeSlot(q); (j-home+size)%size < (j-gap+size)%size {
			continue
		}
		sh.slots[gap], sh.slots[j] = q, 0
		gap = j
	}
}

// homeSlot is where the search for a print begins.
func (sh *shard) homeSlot(p uint64) int {
	h, _ := bits.Mul64(p>>1<<7, uint64(len(sh.slots))) // the upper six bits chose the shard
	return int(h)
}

// findFreeOrEqual returns the slot of p, or the free slot where it belongs.
func (sh *shard) findFreeOrEqual(p uint64) int {
	for i := sh.homeSlot(p); ; {
		if q := atomic.LoadUint64(&sh.slots[i]); q == 0 || q&^1 == p {
			return i
		}
		if i++; i == len(sh.slots) {
			i = 0
		}
	}
}

// growTable makes the table half as large again, up to what its limit needs.
func (sh *shard) growTable() {
	old := sh.slots
	sh.slots = anonymous(min(max(64, len(old)*3/2), sh.prints*loadDen/loadNum+1))
	for _, p := range old {
		if p != 0 {
			sh.slots[sh.findFreeOrEqual(p)] = p
		}
	}
	release(old)
}
