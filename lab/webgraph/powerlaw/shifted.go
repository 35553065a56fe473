package powerlaw

import (
	"fmt"
	"math"
)

// FitShifted fits a power of the value plus a constant (Mandelbrot's form of the
// law): exponent, shift and xmin, which is the value whose fit has the least
// Kolmogorov-Smirnov distance.
//
// Webs that grow by copying or by preference have this law (their closed forms are
// quotients of gamma functions, which differ from it by a share of the order
// x^-2), and so has every law that is to have both an exponent and a mean. The pure
// power is its limit far out: where the tail is short, an estimate by the pure law
// reads the bend of the body, or has few observations to go by. This one uses the
// body as well. With a shift to bend the law, few values of xmin are enough: all up
// to 8, then values a fifth apart.
func FitShifted(h *Histogram) (Law, error) {
	best := Law{Distance: math.Inf(1)}
	n, last := h.total, int64(0)
	for i, x := range h.values {
		if n < minTail || i >= len(h.values)-2 {
			break
		}
		if x <= 8 || float64(x) >= 1.2*float64(last) {
			last = x
			if l, ok := h.shiftedFrom(i, n, 1e-3, best.Distance); ok {
				best = l
			}
		}
		n -= h.counts[i]
	}
	best, ok := h.shiftedFrom(h.firstAtLeast(best.Xmin), best.Tail, 1e-6, math.Inf(1))
	if !ok {
		return Law{}, ErrFew
	}
	var err error
	best.StdErr, err = shiftedErr(best)
	return best, err
}

// clearlyLess is how much less the distance of the shifted law must be than that of
// the pure one: with one parameter more it is always somewhat less.
const clearlyLess = .8

// FitBest fits both forms and returns the one to quote, and the pure law: the
// shifted one where its distance is clearly less. A form that cannot be fitted
// leaves the other; ErrFew tells that neither can.
func FitBest(h *Histogram) (quoted, pure Law, err error) {
	pure, err = Fit(h)
	shifted, failed := FitShifted(h)
	switch {
	case failed == nil && (err != nil || shifted.Distance < clearlyLess*pure.Distance):
		return shifted, pure, nil
	default:
		return pure, pure, err
	}
}

// shiftedFrom fits the n values from index i on. For a shift the exponent is found
// as that of the pure law; the shift by golden section of the likelihood on the
// logarithm of xmin+s, to tolerance. It is false if the greatest likelihood is at an
// end, as such values have no power law, and if the distance is not below limit.
func (h *Histogram) shiftedFrom(i int, n int64, tolerance, limit float64) (Law, bool) {
	if n == 0 {
		return Law{}, false
	}
	x := float64(h.values[i])
	lo, hi := math.Log(.01*x), math.Log(1e3*x)
	from, to := lo, hi
	const golden = .6180339887498949
	a, b := to-golden*(to-from), from+golden*(to-from)
	la, _ := h.shiftedLikelihood(i, n, math.Exp(a))
	lb, _ := h.shiftedLikelihood(i, n, math.Exp(b))
	for to-from > tolerance {
		if la > lb {
			to, b, lb = b, a, la
			a = to - golden*(to-from)
			la, _ = h.shiftedLikelihood(i, n, math.Exp(a))
		} else {
			from, a, la = a, b, lb
			b = from + golden*(to-from)
			lb, _ = h.shiftedLikelihood(i, n, math.Exp(b))
		}
	}
	at := (from + to) / 2
	_, g := h.shiftedLikelihood(i, n, math.Exp(at))
	l := Law{Exponent: g, Shift: math.Exp(at) - x, Xmin: h.values[i], Tail: n}
	if at < lo+2*tolerance || at > hi-2*tolerance || g > greatest-1e-3 {
		return l, false
	}
	var ok bool
	l.Distance, ok = h.ksDistance(i, l, limit)
	return l, ok
}

// shiftedLikelihood returns the greatest mean logarithm of the likelihood of the n values
// from index i on with q = xmin + s given, and the exponent that has it.
func (h *Histogram) shiftedLikelihood(i int, n int64, q float64) (like, g float64) {
	shift := q - float64(h.values[i])
	sum := 0.
	for k := i; k < len(h.values); k++ {
		sum += float64(h.counts[k]) * math.Log(float64(h.values[k])+shift)
	}
	mean := sum / float64(n)
	g = maxLikelihoodExponent(q, mean)
	return -math.Log(hurwitzZeta(g, q)) - g*mean, g
}

// shiftedErr returns the standard error of the exponent from the information that
// the law itself has of its two parameters: the covariance, under the law, of the
// derivatives of ln p(x).
func shiftedErr(l Law) (float64, error) {
	q := float64(l.Xmin) + l.Shift
	// ln p = -g ln(x+s) - ln zeta(g, q): the derivatives, less their means, are
	// those of -ln(x+s) and -g/(x+s). Their moments are sums over the law: term by
	// term first, then by integrals, whose remainder falls as a high power.
	z := hurwitzZeta(l.Exponent, q)
	var m [5]float64 // of a, b, aa, ab, bb with a = ln y, b = g/y
	add := func(y, weight float64) {
		a, b := math.Log(y), l.Exponent/y
		for k, v := range [5]float64{a, b, a * a, a * b, b * b} {
			m[k] += weight * v
		}
	}
	y := q
	for ; y < q+2000; y++ {
		add(y, math.Pow(y, -l.Exponent)/z)
	}
	for step := 1.01; y < 1e18*q; y *= step { // the middle of [y, step y) stands for it
		add(y*math.Sqrt(step), (hurwitzZeta(l.Exponent, y)-hurwitzZeta(l.Exponent, y*step))/z)
	}
	aa, ab, bb := m[2]-m[0]*m[0], m[3]-m[0]*m[1], m[4]-m[1]*m[1]
	v := bb / (aa*bb - ab*ab) / float64(l.Tail)
	if !(v > 0) || math.IsInf(v, 1) {
		return 0, fmt.Errorf("powerlaw: exponent %g and shift %g cannot be told apart", l.Exponent, l.Shift)
	}
	return math.Sqrt(v), nil
}
