// Package powerlaw fits discrete power laws to counts, such as the degrees of
// a web graph, and says how far the fit is to be believed:
//
//	p(x) = (x+s)^-g / zeta(g, xmin+s),  x = xmin, xmin+1, ...
//
// with Hurwitz's zeta function; s is 0 (Fit) or found, too (FitShifted). The exponent g is found by maximum likelihood,
// xmin by the least Kolmogorov-Smirnov distance, the goodness of fit by a
// parametric bootstrap, and the lognormal law is tried against it by Vuong's
// likelihood ratio (Clauset, Shalizi and Newman 2009). A straight line through
// the logarithms of a histogram is no estimate: for samples with g = 2.10 its
// slope is about 1.1.
package powerlaw

import (
	"errors"
	"math"
)

// Law is a fitted power law.
type Law struct {
	Exponent float64 // g
	StdErr   float64 // of the exponent, for xmin as given
	Shift    float64 // s, greater than -Xmin; 0 for the pure law
	Xmin     int64   // least value for which the law holds
	Tail     int64   // number of observations >= Xmin
	Distance float64 // Kolmogorov-Smirnov distance of the tail
}

// tailSum returns the sum of (y+s)^-g over y >= x.
func (l Law) tailSum(x int64) float64 { return hurwitzZeta(l.Exponent, float64(x)+l.Shift) }

// minTail is the least number of observations in a tail that may be chosen:
// below some fifty the estimate is biased (Clauset et al., 3.2).
const minTail = 50

// The exponent is looked for between these.
const (
	least    = 1.0001
	greatest = 30.0
)

// ErrFew is returned when no tail has enough different observations.
var ErrFew = errors.New("powerlaw: fewer than 50 observations, or all equal: nothing to fit")

// Fit finds exponent and xmin. Every value up to 64 is tried as xmin, then
// values at least 3 % apart, so that the work stays within some 400 fits.
func Fit(h *Histogram) (Law, error) {
	var best Law
	best.Distance = math.Inf(1)
	n, sum := h.total, 0.0
	for i, c := range h.counts {
		sum += float64(c) * h.logs[i]
	}
	last := int64(0)
	for i := range h.values {
		x := h.values[i]
		if n < minTail || i == len(h.values)-1 {
			break
		}
		if x <= 64 || float64(x) >= 1.03*float64(last) {
			last = x
			if l, ok := h.fitFrom(i, n, sum/float64(n), best.Distance); ok {
				best = l
			}
		}
		n -= h.counts[i]
		sum -= float64(h.counts[i]) * h.logs[i]
	}
	if best.Xmin == 0 {
		return Law{}, ErrFew
	}
	best.StdErr = stdErr(best)
	return best, nil
}

// FitAt finds the exponent for a given xmin.
func FitAt(h *Histogram, xmin int64) (Law, error) {
	i := h.firstAtLeast(xmin)
	n, mean := h.tailStatistics(i)
	if n == 0 || i >= len(h.values)-1 && h.values[i] == xmin {
		return Law{}, ErrFew
	}
	l := Law{Xmin: xmin, Tail: n, Exponent: maxLikelihoodExponent(float64(xmin), mean)}
	l.Distance, _ = h.ksDistance(i, l, math.Inf(1))
	l.StdErr = stdErr(l)
	return l, nil
}

// fitFrom fits the n values from index i on; it is false if the distance is
// not below limit.
func (h *Histogram) fitFrom(i int, n int64, meanLog, limit float64) (Law, bool) {
	l := Law{Xmin: h.values[i], Tail: n, Exponent: maxLikelihoodExponent(float64(h.values[i]), meanLog)}
	if l.Exponent > greatest-1e-3 { // next to no spread: not a power law
		return l, false
	}
	var ok bool
	l.Distance, ok = h.ksDistance(i, l, limit)
	return l, ok
}

// maxLikelihoodExponent maximises the likelihood. The logarithm of the likelihood of one
// observation is -ln zeta(g, xmin) - g meanLog, concave in g; its slope is
// brought to zero by Newton's method kept within a bracket.
func maxLikelihoodExponent(xmin, meanLog float64) float64 {
	low, high := least, greatest
	g := 1 + 1/max(meanLog-math.Log(xmin-.5), 1e-3) // the continuous estimate
	for range 60 {
		g = min(max(g, low), high)
		d1, d2 := logZetaSlopes(g, xmin)
		slope := -d1 - meanLog
		if slope > 0 {
			low = g
		} else {
			high = g
		}
		next := g + slope/d2
		if !(next > low && next < high) {
			next = (low + high) / 2
		}
		if math.Abs(next-g) < 1e-9 {
			return next
		}
		g = next
	}
	return g
}

// logZetaSlopes returns the first two derivatives of ln zeta(g, q) in g, by
// differences; the second is the variance of ln x under the law.
func logZetaSlopes(g, q float64) (first, second float64) {
	h := min(1e-4, (g-1)/8)
	a, b, c := math.Log(hurwitzZeta(g-h, q)), math.Log(hurwitzZeta(g, q)), math.Log(hurwitzZeta(g+h, q))
	return (c - a) / (2 * h), max((c-2*b+a)/(h*h), 1e-9)
}

func stdErr(l Law) float64 {
	_, v := logZetaSlopes(l.Exponent, float64(l.Xmin))
	return 1 / math.Sqrt(float64(l.Tail)*v)
}

// ksDistance returns the greatest difference of P(X >= y) between the law and
// the observations from index i on. Between two observed values the empirical
// side is constant and the law falls, so only the values and their successors
// count. It gives up, with false, as soon as limit is reached.
func (h *Histogram) ksDistance(i int, l Law, limit float64) (float64, bool) {
	g, n := l.Exponent, float64(l.Tail)
	z0 := l.tailSum(l.Xmin)
	left, worst := l.Tail, 0.0
	next, z := l.Xmin, z0 // z = beyond(next)
	for k := i; k < len(h.values); k++ {
		x := h.values[k]
		if x != next {
			z = l.tailSum(x)
			worst = max(worst, math.Abs(z/z0-float64(left)/n))
		}
		left -= h.counts[k]
		if l.Shift == 0 {
			z -= math.Exp(-g * h.logs[k])
		} else {
			z -= math.Pow(float64(x)+l.Shift, -g)
		}
		next = x + 1
		worst = max(worst, math.Abs(z/z0-float64(left)/n))
		if worst >= limit {
			return worst, false
		}
	}
	return worst, true
}

// CCDF returns P(X >= x) of the law, given X >= Xmin.
func (l Law) CCDF(x int64) float64 {
	if x <= l.Xmin {
		return 1
	}
	return l.tailSum(x) / l.tailSum(l.Xmin)
}
