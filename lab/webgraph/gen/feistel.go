package gen

import "math/bits"

// permutation is a keyed permutation of 0 .. n-1 that is computed both ways without
// a table: a Feistel network on the least number of bits that hold n, split in two
// parts, and what falls outside is sent through again (cycle walking; Black and
// Rogaway 2002). It stirs and does not hide: it is no cipher.
type permutation struct {
	n, key      uint64
	left, right uint // bits of the parts
}

// feistelPairs is the number of pairs of rounds.
const feistelPairs = 3

func newPermutation(n, key uint64) permutation {
	width := uint(bits.Len64(max(n, 2) - 1))
	return permutation{n: n, key: key, left: width / 2, right: width - width/2}
}

// roundFunction is the round function.
func (p *permutation) roundFunction(x uint64, round uint64) uint64 {
	z := (x + p.key + round*0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9
	z ^= z >> 29
	z *= 0x94d049bb133111eb
	return z >> 32
}

// permute returns where x < n goes.
func (p *permutation) permute(x uint64) uint64 {
	for {
		l, r := x>>p.right, x&(1<<p.right-1)
		for i := range uint64(feistelPairs) {
			r ^= p.roundFunction(l, 2*i) & (1<<p.right - 1)
			l ^= p.roundFunction(r, 2*i+1) & (1<<p.left - 1)
		}
		if x = l<<p.right | r; x < p.n {
			return x
		}
	}
}

// unpermute returns what goes to y < n.
func (p *permutation) unpermute(y uint64) uint64 {
	for {
		l, r := y>>p.right, y&(1<<p.right-1)
		for i := uint64(feistelPairs); i > 0; i-- {
			l ^= p.roundFunction(r, 2*i-1) & (1<<p.left - 1)
			r ^= p.roundFunction(l, 2*i-2) & (1<<p.right - 1)
		}
		if y = l<<p.right | r; y < p.n {
			return y
		}
	}
}
