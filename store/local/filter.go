package local

import "math/bits"

// filter is a split-block Bloom filter (Putze, Sanders, Singler: Cache-,
// hash- and space-efficient Bloom filters, 2007): a key sets one bit in each of
// the eight words of one block of 64 bytes, so that it costs one cache line. At
// its capacity it takes 12 bits a key and is wrong about 0.5 % of the keys that
// it does not hold.
type filter struct {
	words []uint64
	n     int
}

const (
	blockWords = 8
	blockKeys  = 512 / 12
)

func newFilter(capacity int) filter {
	return filter{words: anonymous(blockWords * max(1, (capacity+blockKeys-1)/blockKeys))}
}

func (f *filter) keyCapacity() int { return len(f.words) / blockWords * blockKeys }

// blockAndBits returns the block of a print and where its bits stand: six bits of the
// second value for each word.
func (f *filter) blockAndBits(p uint64) (block []uint64, spots uint64) {
	h := p * 0xd6e8feb86659fd93
	h ^= h >> 32
	h *= 0xd6e8feb86659fd93
	b, _ := bits.Mul64(h, uint64(len(f.words)/blockWords))
	return f.words[b*blockWords : (b+1)*blockWords : (b+1)*blockWords], (p ^ p>>29) * 0xbf58476d1ce4e5b9 >> 16
}

func (f *filter) addFingerprint(p uint64) {
	block, spots := f.blockAndBits(p)
	for i := range block {
		block[i] |= 1 << (spots & 63)
		spots >>= 6
	}
	f.n++
}

func (f *filter) hasFingerprint(p uint64) bool {
	block, spots := f.blockAndBits(p)
	for i := range block {
		if block[i]&(1<<(spots&63)) == 0 {
			return false
		}
		spots >>= 6
	}
	return true
}
