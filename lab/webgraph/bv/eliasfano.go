package bv

import "math/bits"

// eliasFano holds an ascending sequence of numbers in 2 + log2(greatest/n) bits
// each and finds any of them in constant time (Elias 1974, Fano 1971): the low
// bits stand in an array, the high ones as a bit vector in which the i-th one
// stands at (i-th number >> low) + i.
type eliasFano struct {
	low     uint // number of low bits
	n       uint64
	lows    []uint64
	highs   []uint64
	samples []uint64 // place of every sampleEvery-th one
}

const sampleEvery = 256

// newEliasFano returns an empty sequence for n numbers up to greatest.
func newEliasFano(n, greatest uint64) *eliasFano {
	e := new(eliasFano)
	if n > 0 && greatest > n {
		e.low = uint(bits.Len64(greatest/n)) - 1
	}
	e.lows = make([]uint64, (n*uint64(e.low)+63)/64+1)
	e.highs = make([]uint64, (n+greatest>>e.low)/64+1)
	e.samples = make([]uint64, 0, n/sampleEvery+1)
	return e
}

// push appends a number not less than the one before.
func (e *eliasFano) push(v uint64) {
	at := e.n * uint64(e.low)
	lo := v & (1<<e.low - 1)
	e.lows[at/64] |= lo << (at % 64)
	if at%64+uint64(e.low) > 64 {
		e.lows[at/64+1] |= lo >> (64 - at%64)
	}
	high := v>>e.low + e.n
	e.highs[high/64] |= 1 << (high % 64)
	if e.n%sampleEvery == 0 {
		e.samples = append(e.samples, high)
	}
	e.n++
}

// get returns the i-th number.
func (e *eliasFano) get(i uint64) uint64 {
	at := i * uint64(e.low)
	lo := e.lows[at/64] >> (at % 64)
	if at%64+uint64(e.low) > 64 {
		lo |= e.lows[at/64+1] << (64 - at%64)
	}
	return (e.select1(i)-i)<<e.low | lo&(1<<e.low-1)
}

// select1 returns the place of the i-th one of the high bits.
func (e *eliasFano) select1(i uint64) uint64 {
	place := e.samples[i/sampleEvery]
	left := i % sampleEvery
	word := place / 64
	w := e.highs[word] &^ (1<<(place%64) - 1) // the sampled one is the first
	for {
		c := uint64(bits.OnesCount64(w))
		if left < c {
			break
		}
		left -= c
		word++
		w = e.highs[word]
	}
	for ; left > 0; left-- {
		w &= w - 1
	}
	return word*64 + uint64(bits.TrailingZeros64(w))
}

// bytes returns the size in memory.
func (e *eliasFano) bytes() int64 {
	return int64(len(e.lows)+len(e.highs)+len(e.samples)) * 8
}
