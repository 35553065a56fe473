package local

import (
	"encoding/binary"
	"fmt"
	"sync"
	"testing"

	"github.com/freshet/freshet/weburl"
)

// key returns the key of the i-th page of a web of 50 hosts.
func key(i int) weburl.Key {
	mix := func(x uint64) uint64 { // the end of SplitMix64
		x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
		x = (x ^ x>>27) * 0x94d049bb133111eb
		return x ^ x>>31
	}
	var k weburl.Key
	binary.BigEndian.PutUint64(k[:8], mix(uint64(i%50)*0x9e3779b97f4a7c15))
	binary.BigEndian.PutUint64(k[8:], mix(uint64(i+1000)*0x9e3779b97f4a7c15))
	return k
}

// Whatever the room, no URL that was added is called unknown, and none that was
// not is called known; with room for all there is no doubt.
func TestSeen(t *testing.T) {
	t.Parallel()
	const n = 30_000
	for _, c := range []struct {
		limits
		unsure float64 // share of unknown URLs that may be unsure
	}{
		{limits{n * 2, 1 << 20}, 0},
		{limits{n / 4, 1 << 20}, 0.02},
		{limits{n / 100, 1 << 20}, 0.02},
		{limits{1, 1}, 1},
		{limits{n / 4, n / 2}, 1},
	} {
		t.Run(fmt.Sprintf("%d prints, filters of %d bytes", c.prints, c.filter), func(t *testing.T) {
			t.Parallel()
			s := newSeen(c.limits)
			defer s.releaseMemory()
			doubts := 0
			for i := range n {
				switch s.lookupURL(key(i)) {
				case known:
					t.Fatalf("URL %d is known before it was added", i)
				case unsure:
					doubts++
				}
				s.addURL(key(i))
				old := i * 7 % (i + 1)
				switch s.lookupURL(key(old)) {
				case unknown:
					t.Fatalf("URL %d is forgotten after %d", old, i)
				case unsure:
					s.rememberURL(key(old))
					if s.lookupURL(key(old)) != known {
						t.Fatalf("URL %d is not remembered", old)
					}
				}
			}
			if got := float64(doubts) / n; got > c.unsure {
				t.Errorf("%.2f %% of new URLs in doubt, want at most %.2f %%", 100*got, 100*c.unsure)
			}
			if got, bound := s.heldBytes(), int64(10*max(c.prints, 16*seenShards)*3/2+max(c.filter, 1024*seenShards)+64*seenShards*8); got > bound {
				t.Errorf("%d bytes, bound %d", got, bound)
			}
		})
	}
}

// URLs that are asked for again and again stay in the table while others come
// and go.
func TestSeenKeepsWhatIsAskedFor(t *testing.T) {
	t.Parallel()
	s := newSeen(limits{8000, 1 << 20})
	defer s.releaseMemory()
	asked, missed := 0, 0
	for i := range 100_000 {
		s.addURL(key(i))
		if hot := i % 1000; i > 20_000 {
			asked++
			if s.lookupURL(key(hot)) != known {
				missed++
				s.rememberURL(key(hot))
			}
		}
	}
	if 10*missed > asked {
		t.Errorf("1,000 URLs asked for every 1,000 others: %d of %d times they were left out of a table for 8,000", missed, asked)
	}
}

// However often the table was filled, prints stand near where they belong.
func TestSeenStaysShort(t *testing.T) {
	t.Parallel()
	s := newSeen(limits{20_000, 1 << 20})
	defer s.releaseMemory()
	for i := range 500_000 {
		s.addURL(key(i))
	}
	far, n := 0, 0
	for i := range s.shards {
		sh := &s.shards[i]
		for at, p := range sh.slots {
			if p != 0 {
				n++
				far += (at - sh.homeSlot(p&^1) + len(sh.slots)) % len(sh.slots)
			}
		}
	}
	if mean := float64(far) / float64(n); mean > 6 { // 2 for a table that was filled once to four fifths
		t.Errorf("%d prints stand %.1f slots from their place", n, mean)
	}
}

func FuzzSeen(f *testing.F) {
	f.Add([]byte("abcabcdefabc"), uint16(3), uint16(3))
	f.Add([]byte{0, 0, 255, 255, 1, 0, 1}, uint16(0), uint16(600))
	f.Fuzz(func(t *testing.T, ops []byte, prints, bytes uint16) {
		s := newSeen(limits{int(prints), int(bytes)})
		defer s.releaseMemory()
		model := map[weburl.Key]bool{}
		for i := 0; i+1 < len(ops); i += 2 {
			k := weburl.Key{ops[i] >> 6 << 6, 8: ops[i], 9: ops[i+1] & 7}
			switch a := s.lookupURL(k); {
			case a == unknown && model[k], a == known && !model[k]:
				t.Fatalf("%x: answer %d, added %v", k, a, model[k])
			case model[k]:
				s.rememberURL(k)
			default:
				s.addURL(k)
				model[k] = true
			}
		}
	})
}

// Many keys at once are told as each alone, while others are added: what was
// there before is known, what is never added is not.
func TestKnownAtOnce(t *testing.T) {
	t.Parallel()
	const n = 20_000
	s := newSeen(limits{4 * n, 1 << 20})
	defer s.releaseMemory()
	for i := range n / 2 {
		s.addURL(key(i))
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		for i := n / 2; i < n; i++ {
			s.addURL(key(i))
		}
	})
	for g := range 3 {
		wg.Go(func() {
			for at := g; at < n/2-200; at += 97 {
				keys := make([]weburl.Key, at%201)
				for i := range keys {
					keys[i] = key(at + i + i%2*2*n)
				}
				is := make([]bool, len(keys))
				s.knownAll(keys, is)
				for i := range is {
					if is[i] != (i%2 == 0) {
						t.Errorf("key %d of %d at %d: known %v", i, len(keys), at, is[i])
					}
				}
			}
		})
	}
}

// BenchmarkKnown asks for the links of a page in a table of 4 million, in which
// each is a miss of the cache.
func BenchmarkKnown(b *testing.B) {
	const n = 4 << 20
	s := newSeen(limits{8 << 20, 1 << 20})
	defer s.releaseMemory()
	for i := range n {
		s.addURL(key(i))
	}
	keys, is := make([]weburl.Key, 32), make([]bool, 32)
	for _, how := range []struct {
		name string
		ask  func()
	}{
		{"each", func() {
			for i := range keys {
				is[i] = s.lookupURL(keys[i]) == known
			}
		}},
		{"all", func() { s.knownAll(keys, is) }},
	} {
		b.Run(how.name, func(b *testing.B) {
			for at := 0; b.Loop(); at++ {
				for i := range keys {
					keys[i] = key((at*7919 + i*104_729) % n)
				}
				how.ask()
			}
		})
	}
}

func BenchmarkSeen(b *testing.B) {
	s := newSeen(limits{8 << 20, 256 << 20})
	defer s.releaseMemory()
	var k weburl.Key
	for i := range b.N {
		k[0], k[8], k[9], k[10], k[11] = byte(i>>20), byte(i), byte(i>>8), byte(i>>16), byte(i>>24)
		if s.lookupURL(k) != known {
			s.addURL(k)
		}
	}
}
