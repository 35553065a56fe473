package gen

import (
	"fmt"
	"math"
	"math/bits"
	"sort"
)

// Law is a distribution of whole numbers with a power-law tail: a shifted and
// truncated discrete Pareto law,
//
//	P(D >= least+j) = (1 + j/scale)^-(exponent-1),  0 <= j <= most-least,
//
// so that P(D = d) falls as d^-exponent, and scale sets the mean. Unlike a pure
// power law it has both the exponent and the mean of what is measured on the web.
type Law struct {
	Exponent, Scale float64
	Least, Most     uint32
	tail            []uint64 // P(D >= least+1+i) in units of 2^-64, descending
	guide           []uint32 // by the first bits of a draw, an upper bound of the index
}

// guideBits is the number of leading bits that a draw is looked up by.
const guideBits = 12

// NewLaw returns the law of an exponent greater than 1 and a mean between least
// and most.
func NewLaw(exponent, mean float64, least, most uint32) (*Law, error) {
	if !(exponent > 1) || math.IsInf(exponent, 1) {
		return nil, fmt.Errorf("exponent %g: want more than 1", exponent)
	}
	if !(mean >= float64(least)) || mean > float64(most) {
		return nil, fmt.Errorf("mean %g: want %d to %d", mean, least, most)
	}
	l := &Law{Exponent: exponent, Least: least, Most: most}
	lo, hi := 1e-9, 1e12
	if greatest := l.tailMean(hi); mean > greatest {
		return nil, fmt.Errorf("mean %g with at most %d: want %d to %.6g", mean, most, least, greatest)
	}
	for range 200 { // bisection on a logarithmic scale
		mid := math.Sqrt(lo * hi)
		if l.tailMean(mid) < mean {
			lo = mid
		} else {
			hi = mid
		}
	}
	l.Scale = hi
	l.tabulateTail()
	return l, nil
}

// lawTail returns P(D >= least+j).
func (l *Law) lawTail(j, scale float64) float64 { return math.Pow(1+j/scale, -(l.Exponent - 1)) }

// Mean returns the mean.
func (l *Law) Mean() float64 { return l.tailMean(l.Scale) }

// tailMean adds the tail probabilities up: the first thousand one by one, the rest by
// the Euler-Maclaurin formula.
func (l *Law) tailMean(scale float64) float64 {
	const direct = 1000
	sum := float64(l.Least)
	n := float64(l.Most - l.Least)
	for j := 1.0; j <= min(n, direct); j++ {
		sum += l.lawTail(j, scale)
	}
	if n <= direct {
		return sum
	}
	a, b := direct+1.0, n
	e := 2 - l.Exponent // of the integral of the tail
	integral := scale / e * (math.Pow(1+b/scale, e) - math.Pow(1+a/scale, e))
	if math.Abs(e) < 1e-9 {
		integral = scale * math.Log((1+b/scale)/(1+a/scale))
	}
	slope := func(j float64) float64 {
		return -(l.Exponent - 1) / scale * math.Pow(1+j/scale, -l.Exponent)
	}
	return sum + integral + (l.lawTail(a, scale)+l.lawTail(b, scale))/2 + (slope(b)-slope(a))/12
}

// tableMost is the greatest number of values that are tabulated.
const tableMost = 1 << 17

func (l *Law) tabulateTail() {
	n := min(l.Most-l.Least, tableMost)
	l.tail = make([]uint64, n)
	for i := range l.tail {
		l.tail[i] = toFraction64(l.lawTail(float64(i+1), l.Scale))
	}
	l.guide = make([]uint32, 1<<guideBits+1)
	for g := range l.guide[:1<<guideBits] {
		x := uint64(g) << (64 - guideBits)
		l.guide[g] = uint32(sort.Search(len(l.tail), func(i int) bool { return x >= l.tail[i] }))
	}
}

// toFraction64 returns p in units of 2^-64.
func toFraction64(p float64) uint64 {
	if p >= 1 {
		return math.MaxUint64
	}
	return uint64(p * (1 << 64))
}

// Draw maps 64 random bits to a value: the smaller the bits, the greater the
// value.
func (l *Law) Draw(x uint64) uint32 {
	g := x >> (64 - guideBits)
	lo, hi := int(l.guide[g+1]), int(l.guide[g])
	for lo < hi {
		mid := (lo + hi) / 2
		if x < l.tail[mid] {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == tableMost && l.Most-l.Least > tableMost {
		u := (float64(x) + .5) / (1 << 64)
		j := math.Floor(l.Scale * (math.Pow(u, -1/(l.Exponent-1)) - 1))
		return l.Least + uint32(min(j, float64(l.Most-l.Least)))
	}
	return l.Least + uint32(lo)
}

// Beyond returns P(D >= d).
func (l *Law) Beyond(d uint32) float64 {
	switch {
	case d <= l.Least:
		return 1
	case d > l.Most:
		return 0
	}
	return l.lawTail(float64(d-l.Least), l.Scale)
}

// scaleBelow maps 64 random bits to 0 .. n-1.
func scaleBelow(x, n uint64) uint64 {
	hi, _ := bits.Mul64(x, n)
	return hi
}
