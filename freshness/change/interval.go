package change

import "math"

// Interval returns the range of rates in which the truth lies with 95 %
// confidence, by the likelihood ratio: all rates whose log-likelihood is within
// 1.92 (half the 95 % quantile of chi-square with one degree of freedom) of the
// greatest. low is 0 where no visit saw a change, high +Inf where all did.
func Interval(visits []Visit) (low, high float64, err error) {
	mle, err := MLE(visits)
	if err != nil {
		return 0, 0, err
	}
	const drop = 1.9207
	total := 0.0
	for _, v := range visits {
		if v.Interval > 0 && !math.IsInf(v.Interval, 0) {
			total += v.Interval
		}
	}
	best := 0.0 // log-likelihood 0 at either end
	if mle > 0 && !math.IsInf(mle, 1) {
		best = logLikelihood(visits, mle)
	}
	// Both ends are sought on the logarithm of the rate, from a rate that is in
	// the range outwards.
	at := mle
	switch {
	case mle == 0:
		at = 1e-12 / total
	case math.IsInf(mle, 1):
		at = 1e3 * float64(len(visits)) / total
	}
	outside := func(d float64) bool { return best-logLikelihood(visits, d) > drop }
	if mle > 0 {
		low = findEdge(at, 1/1.5, outside)
	}
	high = math.Inf(1)
	if !math.IsInf(mle, 1) {
		high = findEdge(at, 1.5, outside)
	}
	return low, high, nil
}

// logLikelihood is the logarithm of the probability of what the visits saw.
func logLikelihood(visits []Visit, d float64) (l float64) {
	for _, v := range visits {
		switch {
		case !(v.Interval > 0) || math.IsInf(v.Interval, 0):
		case v.Changed:
			l += math.Log(-math.Expm1(-d * v.Interval))
		default:
			l -= d * v.Interval
		}
	}
	return l
}

// findEdge steps from a rate inside by a factor until it is outside, then bisects.
func findEdge(inside, factor float64, outside func(float64) bool) float64 {
	out := inside
	for n := 0; n < 400 && !outside(out); n++ {
		inside, out = out, out*factor
	}
	for range 60 {
		mid := math.Sqrt(inside * out)
		if outside(mid) {
			out = mid
		} else {
			inside = mid
		}
	}
	return inside
}
