package powerlaw

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/optimize"
)

// Comparison sets a power law against the lognormal law that fits the same
// tail best: p(x) is the normal probability that ln X lies between ln(x-1/2)
// and ln(x+1/2), given that it is above ln(xmin-1/2).
type Comparison struct {
	Mu, Sigma float64 // of the lognormal
	Ratio     float64 // ln likelihood of the power law less that of the lognormal
	Vuong     float64 // Ratio over its standard deviation: > 0 favours the power law
	P         float64 // two-sided chance of so great a |Vuong| if both are equally far from the truth
}

// CompareLognormal fits a lognormal to the tail of l and compares. A P above
// 0.1 means that the observations do not tell the two apart.
//
// As mu goes to minus infinity with the square of sigma, lognormals become a
// power law over any range, but for the rounding of small values. Far from 1 the
// two then all but coincide, and Vuong's statistic, a quotient of two numbers
// near 0, means nothing: with less than a factor of e^2 between the likelihoods
// of all observations together, P is 1.
func CompareLognormal(h *Histogram, l Law) (Comparison, error) {
	i := h.firstAtLeast(l.Xmin)
	n, meanLog := h.tailStatistics(i)
	if n == 0 {
		return Comparison{}, ErrFew
	}
	bad := func(x []float64) float64 {
		return -h.lognormalLikelihood(i, l.Xmin, x[0], math.Exp(x[1]), nil) / float64(n)
	}
	var c Comparison
	best := math.Inf(1)
	// The likelihood has a long flat ridge towards small mu and great sigma,
	// which is where lognormal tails look like power laws: start on both ends.
	for _, start := range [][]float64{{meanLog, 0}, {math.Log(float64(l.Xmin)) - 5, math.Log(3)}} {
		res, err := optimize.Minimize(optimize.Problem{Func: bad}, start,
			&optimize.Settings{MajorIterations: 400, FuncEvaluations: 800}, &optimize.NelderMead{})
		if res == nil {
			return Comparison{}, fmt.Errorf("powerlaw: fit a lognormal: %w", err)
		}
		if res.F < best {
			best, c.Mu, c.Sigma = res.F, res.X[0], math.Exp(res.X[1])
		}
	}
	logs := make([]float64, len(h.values)-i)
	h.lognormalLikelihood(i, l.Xmin, c.Mu, c.Sigma, logs)
	lz := math.Log(l.tailSum(l.Xmin))
	var sum, squares float64
	for k := range logs {
		d := -l.Exponent*math.Log(float64(h.values[i+k])+l.Shift) - lz - logs[k]
		sum += float64(h.counts[i+k]) * d
		squares += float64(h.counts[i+k]) * d * d
	}
	m := sum / float64(n)
	dev := math.Sqrt(max(squares/float64(n)-m*m, 0) * float64(n))
	c.Ratio = sum
	if dev > 0 {
		c.Vuong = sum / dev
	}
	c.P = 1
	if math.Abs(c.Ratio) >= 2 {
		c.P = math.Erfc(math.Abs(c.Vuong) / math.Sqrt2)
	}
	return c, nil
}

// lognormalLikelihood returns the logarithm of the likelihood of the values from index i
// on, and stores that of a single observation of each in each unless it is nil.
func (h *Histogram) lognormalLikelihood(i int, xmin int64, mu, sigma float64, each []float64) float64 {
	if sigma < 1e-3 || sigma > 1e3 || math.Abs(mu) > 1e5 {
		return math.Inf(-1)
	}
	norm := logTail((math.Log(float64(xmin)-.5) - mu) / sigma)
	var sum float64
	for k := i; k < len(h.values); k++ {
		x := float64(h.values[k])
		p := logBetween((math.Log(x-.5)-mu)/sigma, (math.Log(x+.5)-mu)/sigma) - norm
		if each != nil {
			each[k-i] = p
		}
		sum += float64(h.counts[k]) * p
	}
	return sum
}

// logBetween returns the logarithm of the normal probability of (a, b), a < b,
// from the tail on whose side the interval lies.
func logBetween(a, b float64) float64 {
	if b <= 0 {
		a, b = -b, -a
	}
	if a < 0 && b-a >= 1e-6 {
		return math.Log(.5 * (math.Erf(b/math.Sqrt2) - math.Erf(a/math.Sqrt2)))
	}
	if b-a < 1e-6 { // the difference would lose digits: density times width
		m := (a + b) / 2
		return -m*m/2 - .5*math.Log(2*math.Pi) + math.Log(b-a)
	}
	p, q := logTail(a), logTail(b)
	return p + math.Log(-math.Expm1(q-p))
}

// logTail returns ln P(Z > z) of the normal law, far out by Laplace's
// continued fraction, where erfc has underflowed.
func logTail(z float64) float64 {
	if z < 20 {
		return math.Log(.5 * math.Erfc(z/math.Sqrt2))
	}
	f := z
	for k := 30; k >= 1; k-- {
		f = z + float64(k)/f
	}
	return -z*z/2 - .5*math.Log(2*math.Pi) - math.Log(f)
}
