package change

import "math"

// Belief is what is believed of a rate: a Gamma distribution, of mean
// Shape/Time and relative width Shape^-1/2. A small shape is a wide belief: with
// 1/4 the rate may lie anywhere over some four decades.
//
// Changes that were counted in a time, and times without any, keep a Gamma
// distribution one (they are conjugate: the shape grows by the changes, the time
// by the time). A visit that saw that something changed, once or often, does
// not; the distribution is then replaced by the Gamma distribution of the same
// mean and variance (assumed-density filtering; Minka, A family of algorithms
// for approximate Bayesian inference, 2001). So two numbers keep all that visits
// at unequal intervals told, and how sure it is.
type Belief struct {
	Shape float64 // > 0
	Time  float64 // > 0
}

// Rate is the mean.
func (b Belief) Rate() float64 { return b.Shape / b.Time }

// Fresh is the probability that nothing changes for a time.
func (b Belief) Fresh(tau float64) float64 { return math.Pow(b.Time/(b.Time+tau), b.Shape) }

// Even is the time in which a change is as likely as none: a visit after it
// tells the most of the rate.
func (b Belief) Even() float64 { return b.Time * math.Expm1(math.Ln2/b.Shape) }

// Counted adds changes that were counted in a time.
func (b Belief) Counted(changes, tau float64) Belief { return Belief{b.Shape + changes, b.Time + tau} }

// Changed adds that something changed in a time.
func (b Belief) Changed(tau float64) Belief {
	a, x := b.Shape, tau/b.Time
	if x*max(1, a) < 1e-4 { // too short for two changes; the terms below cancel
		return Belief{a + 1, b.Time + tau/2}
	}
	// The distribution is (G(a, T) - u G(a, T+tau))/(1-u) with u the probability of
	// no change. In units of T:
	u, y := b.Fresh(tau), 1/(1+x)
	changed := -math.Expm1(-a * math.Log1p(x))
	mean := a * (1 - u*y) / changed
	variance := a*(a+1)*(1-u*y*y)/changed - mean*mean
	return Belief{mean * mean / variance, b.Time * mean / variance}
}
