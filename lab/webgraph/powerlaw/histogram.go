package powerlaw

import (
	"math"
	"slices"
)

// Histogram counts how often each positive integer occurs. Degrees of 10^8
// pages have some 10^4 different values, so everything here works on values
// and counts and never on the single observations.
type Histogram struct {
	values []int64   // ascending, >= 1
	counts []int64   // > 0
	logs   []float64 // ln values
	total  int64
}

// NewHistogram makes a histogram of a map from values to counts. Values and
// counts below 1 are left out: a power law has no zero.
func NewHistogram(counts map[int64]int64) *Histogram {
	h := &Histogram{}
	for v, c := range counts {
		if v >= 1 && c >= 1 {
			h.values = append(h.values, v)
		}
	}
	slices.Sort(h.values)
	h.counts = make([]int64, len(h.values))
	h.logs = make([]float64, len(h.values))
	for i, v := range h.values {
		h.counts[i] = counts[v]
		h.total += counts[v]
		h.logs[i] = math.Log(float64(v))
	}
	return h
}

// Of counts the values.
func Of(values []int64) *Histogram {
	m := make(map[int64]int64)
	for _, v := range values {
		m[v]++
	}
	return NewHistogram(m)
}

// Total returns how many observations there are.
func (h *Histogram) Total() int64 { return h.total }

// Max returns the greatest value, 0 if there is none.
func (h *Histogram) Max() int64 {
	if len(h.values) == 0 {
		return 0
	}
	return h.values[len(h.values)-1]
}

// All yields the values in ascending order with their counts.
func (h *Histogram) All() func(yield func(value, count int64) bool) {
	return func(yield func(value, count int64) bool) {
		for i, v := range h.values {
			if !yield(v, h.counts[i]) {
				return
			}
		}
	}
}

// firstAtLeast returns the index of the first value that is at least x.
func (h *Histogram) firstAtLeast(x int64) int {
	i, _ := slices.BinarySearch(h.values, x)
	return i
}

// tailStatistics returns the number of observations from index i on and the mean of
// their logarithms.
func (h *Histogram) tailStatistics(i int) (n int64, meanLog float64) {
	var sum float64
	for k := i; k < len(h.values); k++ {
		n += h.counts[k]
		sum += float64(h.counts[k]) * h.logs[k]
	}
	if n > 0 {
		meanLog = sum / float64(n)
	}
	return n, meanLog
}
