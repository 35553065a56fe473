// Package rng makes independent, reproducible random streams.
//
// A simulation that is to be the same bit for bit on any number of cores must
// not share a generator between tasks, and streams whose seeds differ in a few
// bits must not be correlated. So every stream is a ChaCha8 generator (the
// cipher of math/rand/v2) keyed by SHA-256 of a seed and the labels that name
// the stream: (seed, field, replication, stream). Equal names give equal
// streams; any other name gives an unrelated one.
package rng

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
)

// Key returns the ChaCha8 key of the stream named by seed and labels. Labels
// are length-prefixed before hashing, so ("ab","c") and ("a","bc") differ.
// A label is an integer, a string or anything else that fmt prints uniquely.
func Key(seed uint64, labels ...any) [32]byte {
	h := sha256.New()
	var buf [8]byte
	binary.LittleEndian.PutUint64(buf[:], seed)
	h.Write(buf[:])
	for _, l := range labels {
		s := fmt.Sprintf("%T:%v", l, l)
		binary.LittleEndian.PutUint64(buf[:], uint64(len(s)))
		h.Write(buf[:])
		h.Write([]byte(s))
	}
	return [32]byte(h.Sum(nil))
}

// New returns the stream named by seed and labels. It is not safe for
// concurrent use: give each goroutine a stream of its own name.
func New(seed uint64, labels ...any) *rand.Rand {
	return rand.New(Source(seed, labels...))
}

// Source is New without the methods of rand.Rand, for hot loops that call
// Uint64 directly.
func Source(seed uint64, labels ...any) *rand.ChaCha8 {
	return rand.NewChaCha8(Key(seed, labels...))
}

// Mix hashes (seed, x) to 64 uniform bits without state: the pure function
// behind virtual webs and behaviours, where an item's randomness must be
// computable from its number alone. It is the finaliser of SplitMix64 applied
// twice (Steele, Lea, Flood 2014); it passes no cryptographic test and needs none.
func Mix(seed, x uint64) uint64 {
	z := x + seed*0x9e3779b97f4a7c15 + 0x9e3779b97f4a7c15
	for range 2 {
		z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
		z = (z ^ (z >> 27)) * 0x94d049bb133111eb
		z ^= z >> 31
		z += seed
	}
	return z
}

// Unit maps 64 random bits to [0, 1) with 53 bits of precision.
func Unit(bits uint64) float64 { return float64(bits>>11) / (1 << 53) }
