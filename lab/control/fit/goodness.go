package fit

import "math"

// Pair is a figure of the log and the same figure of the fit.
type Pair struct {
	Sample float64 `json:"sample"`
	Fit    float64 `json:"fit"`
}

// Goodness says how well a law fits a sample.
type Goodness struct {
	Samples int    `json:"samples"`         // values of the log, 0 where moments were given
	Moments []Pair `json:"moments"`         // about zero, from the first on
	SCV     *Pair  `json:"scv,omitempty"`   // variance / mean^2
	Lags    []Pair `json:"lags,omitempty"`  // correlations from lag 1 on
	KS      *KS    `json:"ks,omitempty"`    // greatest distance of the distribution functions
	Score   *Score `json:"score,omitempty"` // likelihood
}

// KS is the distance of Kolmogorov and Smirnov between log and fit. Critical,
// 1.358/sqrt(n), is what independent samples of the very law exceed in 5 % of
// cases. It is a yardstick, no test: the law was fitted to the same sample,
// and the values of a log depend on each other.
type KS struct {
	Distance float64 `json:"distance"`
	At       float64 `json:"at"`
	Critical float64 `json:"critical"`
}

// Score is the logarithmic likelihood and the information criterion of
// Schwarz, parameters ln n - 2 ln L: less is better.
type Score struct {
	LogLikelihood float64 `json:"log_likelihood"`
	BIC           float64 `json:"bic"`
}

// ranks is how many order statistics the distance looks at; with more values
// than that the error is at most 1/ranks.
const ranks = 4000

// Distance compares a sample with a law.
func (s *Sample) Distance(p *PH) KS {
	n := len(s.Sorted)
	step := max(1, n/ranks)
	var at []int
	for i := 0; i < n; i += step {
		at = append(at, i)
	}
	if at[len(at)-1] != n-1 {
		at = append(at, n-1)
	}
	x := make([]float64, len(at))
	for k, i := range at {
		x[k] = s.Sorted[i]
	}
	ks := KS{Critical: 1.358 / math.Sqrt(float64(n))}
	for k, alive := range p.Survival(x) {
		low, high := at[k], at[k] // equal values count as one jump
		for low > 0 && s.Sorted[low-1] == x[k] {
			low--
		}
		for high < n-1 && s.Sorted[high+1] == x[k] {
			high++
		}
		f := 1 - alive
		d := math.Max(math.Abs(f-float64(low)/float64(n)), math.Abs(float64(high+1)/float64(n)-f))
		if d > ks.Distance {
			ks.Distance, ks.At = d, x[k]
		}
	}
	return ks
}

// Goodness compares a process with the figures it was made from.
func (s Summary) Goodness(b *BMAP) (Goodness, error) {
	p, err := b.Marginal()
	if err != nil {
		return Goodness{}, err
	}
	lags, err := b.Lags(len(s.Lags))
	if err != nil {
		return Goodness{}, err
	}
	m := p.Moments(max(2, len(s.Moments)))
	g := Goodness{SCV: &Pair{Sample: s.Moments[1]/(s.Moments[0]*s.Moments[0]) - 1, Fit: m[1]/(m[0]*m[0]) - 1}}
	for k, v := range s.Moments {
		g.Moments = append(g.Moments, Pair{v, m[k]})
	}
	for k, v := range s.Lags {
		g.Lags = append(g.Lags, Pair{v, lags[k]})
	}
	return g, nil
}
