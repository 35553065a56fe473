package bitcode

import (
	"fmt"
	"math/bits"
)

// EliasFano holds an ascending sequence of numbers in 2 + log2(greatest/n) bits
// each and finds any of them in constant time (Elias 1974, Fano 1971): the low
// bits stand in an array, the high ones as a bit vector in which the i-th one
// stands at (i-th number >> low) + i.
type EliasFano struct {
	low     uint // number of low bits
	n       uint64
	lows    []uint64
	highs   []uint64
	samples []uint64 // place of every sampleEvery-th one
}

const sampleEvery = 256

// NewEliasFano returns an empty sequence for n numbers up to greatest.
func NewEliasFano(n, greatest uint64) *EliasFano {
	e := new(EliasFano)
	if n > 0 && greatest > n {
		e.low = uint(bits.Len64(greatest/n)) - 1
	}
	e.lows = make([]uint64, (n*uint64(e.low)+63)/64+1)
	e.highs = make([]uint64, (n+greatest>>e.low)/64+1)
	e.samples = make([]uint64, 0, n/sampleEvery+1)
	return e
}

// Push appends a number not less than the one before.
func (e *EliasFano) Push(v uint64) {
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

// Get returns the i-th number.
func (e *EliasFano) Get(i uint64) uint64 {
	at := i * uint64(e.low)
	lo := e.lows[at/64] >> (at % 64)
	if at%64+uint64(e.low) > 64 {
		lo |= e.lows[at/64+1] << (64 - at%64)
	}
	return (e.selectHighBit(i)-i)<<e.low | lo&(1<<e.low-1)
}

// selectHighBit returns the place of the i-th one of the high bits.
func (e *EliasFano) selectHighBit(i uint64) uint64 {
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

// Bytes returns the size in memory.
func (e *EliasFano) Bytes() int64 {
	return int64(len(e.lows)+len(e.highs)+len(e.samples)) * 8
}

// Len returns how many numbers there are.
func (e *EliasFano) Len() uint64 { return e.n }

// Words returns the sequence as numbers to be stored.
func (e *EliasFano) Words() []uint64 {
	w := []uint64{e.n, uint64(e.low), uint64(len(e.lows)), uint64(len(e.highs)), uint64(len(e.samples))}
	w = append(w, e.lows...)
	w = append(w, e.highs...)
	return append(w, e.samples...)
}

// ReadEliasFano returns the sequence whose Words stand at the beginning of w, and
// what follows them. The sequence is not copied. What the words tell of
// themselves is checked, so that Get(i) of an i below Len ends and stays inside,
// whatever numbers are stored.
func ReadEliasFano(w []uint64) (*EliasFano, []uint64, error) {
	if len(w) < 5 {
		return nil, nil, fmt.Errorf("sequence: it ends within its head")
	}
	e := &EliasFano{n: w[0], low: uint(w[1])}
	lows, highs, samples := w[2], w[3], w[4]
	w = w[5:]
	size := uint64(len(w))
	if e.low > 63 || lows > size || highs > size-lows || samples > size-lows-highs {
		return nil, nil, fmt.Errorf("sequence: its parts are longer than the file")
	}
	if e.n > size*64 || lows < (e.n*uint64(e.low)+63)/64+1 || samples != (e.n+sampleEvery-1)/sampleEvery {
		return nil, nil, fmt.Errorf("sequence: its parts do not fit %d numbers", e.n)
	}
	e.lows, w = w[:lows:lows], w[lows:]
	e.highs, w = w[:highs:highs], w[highs:]
	e.samples, w = w[:samples:samples], w[samples:]
	ones := uint64(0)
	for i, x := range e.highs {
		c := uint64(bits.OnesCount64(x))
		// A word has 64 ones at most, so one sample at most.
		if k := (ones + sampleEvery - 1) / sampleEvery; k*sampleEvery < ones+c {
			y := x
			for range k*sampleEvery - ones {
				y &= y - 1
			}
			if k >= samples || e.samples[k] != uint64(i)*64+uint64(bits.TrailingZeros64(y)) {
				return nil, nil, fmt.Errorf("sequence: sample %d is wrong", k)
			}
		}
		ones += c
	}
	if ones != e.n {
		return nil, nil, fmt.Errorf("sequence: it holds %d numbers, not %d", ones, e.n)
	}
	return e, w, nil
}
