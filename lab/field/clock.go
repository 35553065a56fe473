package field

import (
	"math"
	"math/bits"
	"math/rand/v2"

	"github.com/freshet/freshet/internal/dueheap"
)

// clock says when the next event is and on which page: for ever, in order.
type clock interface {
	nextOccurrence() (t float64, page uint32)
}

// merged is the superposition of independent Poisson clocks of equal rate.
type merged struct {
	r     *rand.Rand
	bits  *rand.ChaCha8 // what r draws from
	gap   float64       // mean gap of the whole
	pages uint32
	spare uint32 // random bits not yet used
	left  bool   // there are some
	t     float64
}

func newMerged(r *rand.ChaCha8, gap float64, pages int) *merged {
	return &merged{r: rand.New(r), bits: r, gap: gap, pages: uint32(pages)}
}

func (m *merged) nextOccurrence() (float64, uint32) {
	m.t += m.r.ExpFloat64() * m.gap
	return m.t, m.randomPage()
}

// randomPage returns a page, each with the same probability: the integer part of 32
// random bits times their number (Lemire 2019), where the few draws that would
// favour some pages are made again.
func (m *merged) randomPage() uint32 {
	for {
		word := m.spare
		if m.left = !m.left; m.left {
			w := m.bits.Uint64()
			word, m.spare = uint32(w>>32), uint32(w)
		}
		v := uint64(word) * uint64(m.pages)
		if low := uint32(v); low >= m.pages || low >= -m.pages%m.pages {
			return uint32(v >> 32)
		}
	}
}

// uniformBelow returns an integer in [0, n), uniform but for n/2^64.
func uniformBelow(r *rand.ChaCha8, n uint64) uint64 {
	hi, _ := bits.Mul64(r.Uint64(), n)
	return hi
}

// weighted is merged with clocks of different rates: the page is drawn by
// Walker's alias method.
type weighted struct {
	merged
	keep  []float64
	alias []uint32
}

func newWeighted(r *rand.ChaCha8, rates []float64) *weighted {
	n := len(rates)
	var sum float64
	for _, v := range rates {
		sum += v
	}
	w := &weighted{*newMerged(r, 1/sum, n), make([]float64, n), make([]uint32, n)}
	var small, large []uint32
	for i, v := range rates {
		w.keep[i], w.alias[i] = v/sum*float64(n), uint32(i)
		if w.keep[i] < 1 {
			small = append(small, uint32(i))
		} else {
			large = append(large, uint32(i))
		}
	}
	for len(small) > 0 && len(large) > 0 {
		s, l := small[len(small)-1], large[len(large)-1]
		small = small[:len(small)-1]
		w.alias[s] = l
		w.keep[l] -= 1 - w.keep[s]
		if w.keep[l] < 1 {
			large = large[:len(large)-1]
			small = append(small, l)
		}
	}
	for _, i := range append(small, large...) { // what rounding left
		w.keep[i] = 1
	}
	return w
}

func (w *weighted) nextOccurrence() (float64, uint32) {
	t, p := w.merged.nextOccurrence()
	if w.r.Float64() >= w.keep[p] {
		p = w.alias[p]
	}
	return t, p
}

// clocks merges one clock a page.
type clocks struct {
	r    *rand.Rand
	law  Law
	mean []float64 // gap of each page
	heap dueheap.Heap
}

// newClocks starts a clock a page; a page of rate 0 has none.
func newClocks(r *rand.Rand, law Law, rates []float64, horizon float64) *clocks {
	c := &clocks{r: r, law: law, mean: make([]float64, len(rates))}
	for i, v := range rates {
		c.mean[i] = 1 / v
		if t := law.Residual(r) / v; t < horizon { // an infinite one or a NaN is left out
			c.heap = append(c.heap, dueheap.Entry{At: t, ID: uint32(i)})
		}
	}
	c.heap.Order()
	return c
}

func (c *clocks) nextOccurrence() (float64, uint32) {
	if len(c.heap) == 0 {
		return math.Inf(1), 0
	}
	top := c.heap[0]
	c.heap.Replace(dueheap.Entry{At: top.At + c.law.Draw(c.r)*c.mean[top.ID], ID: top.ID})
	return top.At, top.ID
}
