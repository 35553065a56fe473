package rank

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Gathered returns which share of all weight is held by the first pages of an
// order: shares[i] is asked of order[:round(shares[i]*pages)], where pages is
// the number of weights. A page that occurs again, or is not one, adds
// nothing. Shares must rise; they may exceed the length of the order.
func Gathered(weights []float64, order []uint32, shares []float64) ([]float64, error) {
	if !slices.IsSorted(shares) {
		return nil, fmt.Errorf("gathered weight: shares %v do not rise", shares)
	}
	var total float64
	for _, w := range weights {
		total += w
	}
	out := make([]float64, len(shares))
	seen := make([]bool, len(weights))
	var sum float64
	k := 0
	for i, s := range shares {
		for ; k < len(order) && k < int(math.Round(s*float64(len(weights)))); k++ {
			if u := order[k]; int(u) < len(weights) && !seen[u] {
				seen[u] = true
				sum += weights[u]
			}
		}
		if total > 0 {
			out[i] = sum / total
		}
	}
	return out, nil
}

// Best returns the order that gathers weight fastest: falling weights, equal
// ones by page number.
func Best(weights []float64) []uint32 {
	order := make([]uint32, len(weights))
	for u := range order {
		order[u] = uint32(u)
	}
	slices.SortStableFunc(order, func(a, b uint32) int { return cmp.Compare(weights[b], weights[a]) })
	return order
}

// Area returns the mean of the gathered share over the whole order, 0 to 1: the
// area under the curve of Gathered with a point for every page. Random orders
// have about a half. Pages missing from the order count as never gathered.
func Area(weights []float64, order []uint32) float64 {
	var total, sum, area float64
	for _, w := range weights {
		total += w
	}
	if total == 0 {
		return 0
	}
	seen := make([]bool, len(weights))
	n := 0
	for _, u := range order {
		if int(u) >= len(weights) || seen[u] {
			continue
		}
		seen[u] = true
		area += sum + weights[u]/2
		sum += weights[u]
		n++
	}
	area += sum * float64(len(weights)-n)
	return area / total / float64(len(weights))
}

// Tau returns Kendall's tau-b of two sequences of equal length: 1 if they order
// all pairs alike, -1 if all the other way, NaN if either is constant or has
// fewer than two values. It is Knight's algorithm (JASA 61, 1966): sort by the
// first, count by a merge sort how many exchanges sorting by the second needs,
// O(n log n); the definition by pairs would take hours for 10^7 pages.
func Tau(a, b []float64) (float64, error) {
	if len(a) != len(b) {
		return 0, fmt.Errorf("tau of %d and %d values", len(a), len(b))
	}
	p := make([]pair, len(a))
	for i := range a {
		if math.IsNaN(a[i]) || math.IsNaN(b[i]) {
			return 0, fmt.Errorf("tau: value %d is not a number", i)
		}
		p[i] = pair{a[i], b[i]}
	}
	slices.SortFunc(p, func(x, y pair) int {
		if c := cmp.Compare(x.a, y.a); c != 0 {
			return c
		}
		return cmp.Compare(x.b, y.b)
	})
	n := int64(len(p))
	all := n * (n - 1) / 2
	tiesA := tiedPairs(p, func(x, y pair) bool { return x.a == y.a })
	tiesBoth := tiedPairs(p, func(x, y pair) bool { return x == y })
	v := make([]float64, n)
	for i := range p {
		v[i] = p[i].b
	}
	discordant := countInversions(v, make([]float64, n))
	tiesB := tiedPairs(v, func(x, y float64) bool { return x == y })
	concordant := all - tiesA - tiesB + tiesBoth - discordant
	return float64(concordant-discordant) / math.Sqrt(float64(all-tiesA)*float64(all-tiesB)), nil
}

// TauOfOrder returns Kendall's tau-b between an order of visits and the weights
// of the pages visited: 1 if the heaviest came first. Only pages in the order
// count, each at its first visit.
func TauOfOrder(weights []float64, order []uint32) (float64, error) {
	seen := make([]bool, len(weights))
	var place, weight []float64
	for _, u := range order {
		if int(u) >= len(weights) {
			return 0, fmt.Errorf("tau: page %d of %d", u, len(weights))
		}
		if !seen[u] {
			seen[u] = true
			place = append(place, -float64(len(place)))
			weight = append(weight, weights[u])
		}
	}
	return Tau(place, weight)
}

type pair struct{ a, b float64 }

// tiedPairs counts the pairs of equal values in a sorted sequence.
func tiedPairs[T any](v []T, equal func(x, y T) bool) int64 {
	var sum, run int64
	for i := 1; i < len(v); i++ {
		if equal(v[i-1], v[i]) {
			run++
			sum += run
		} else {
			run = 0
		}
	}
	return sum
}

// countInversions sorts v and returns the number of pairs that stood in falling order.
func countInversions(v, tmp []float64) int64 {
	if len(v) < 2 {
		return 0
	}
	m := len(v) / 2
	count := countInversions(v[:m], tmp[:m]) + countInversions(v[m:], tmp[m:])
	copy(tmp, v)
	i, j := 0, m
	for k := range v {
		if j == len(v) || i < m && tmp[i] <= tmp[j] {
			v[k] = tmp[i]
			i++
			continue
		}
		v[k] = tmp[j]
		count += int64(m - i)
		j++
	}
	return count
}
