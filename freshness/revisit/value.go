package revisit

import "math"

// Value says what a visit now is worth: to an item of importance mu that
// changes at rate d and was visited tau ago. A robot that always visits the item
// of the greatest value follows the policy without solving for anything; values
// rise with tau.
type Value func(mu, d, tau float64) float64

// Values lists the rules by name; a new one is one function and one line.
func Values() map[string]Value {
	return map[string]Value{
		"greedy":              Greedy,
		"most-likely-changed": MostLikelyChanged,
		"most-changes":        MostChanges,
		"sweep":               Sweep,
		"expected-loss":       ExpectedLoss{Wasted: 1, Late: 1, Patience: 86400}.Value,
	}
}

// Greedy is (mu/d)(1 - e^{-d tau}(1 + d tau)): the freshness that the visit
// gains beyond what waiting would (Olston, Pandey 2002; Busa-Fekete et al.
// 2025). With many items it comes to the freshness-optimal intervals; items
// that change too fast to be kept fresh are left behind.
func Greedy(mu, d, tau float64) float64 {
	if d <= 0 || tau <= 0 {
		return 0
	}
	x := d * tau
	if x < 1e-4 { // the terms cancel: series
		return mu / d * x * x / 2 * (1 - 2*x/3)
	}
	return mu / d * (-math.Expm1(-x) - x*math.Exp(-x))
}

// MostLikelyChanged is mu (1 - e^{-d tau}), the rule of a 2008 thesis.
func MostLikelyChanged(mu, d, tau float64) float64 { return -mu * math.Expm1(-d*max(0, tau)) }

// MostChanges is mu d tau, the expected number of changes. It comes to visits
// in proportion to the change rate, which is worse than equal ones.
func MostChanges(mu, d, tau float64) float64 { return mu * d * max(0, tau) }

// Sweep is tau: the item visited longest ago.
func Sweep(_, _, tau float64) float64 { return max(0, tau) }

// ExpectedLoss is the thesis's loss of a visit at tau: Wasted if nothing has
// changed, and Late + e^{x/T} - x/T - 1 for a change that was x ago, T being the
// Patience in which a delay begins to hurt.
type ExpectedLoss struct {
	Wasted, Late float64
	Patience     float64
}

// horizon bounds tau/T: beyond it the exponential loss of an item that was
// forgotten would drown every other, and with d T <= 1 its expectation over all
// time has no finite value.
const horizon = 30

// Value is the expectation over Poisson changes, in closed form:
//
//	W e^{-d tau} + (L-1)(1 - e^{-d tau}) + d (e^{tau/T} - e^{-d tau})/(d + 1/T) - (tau - (1 - e^{-d tau})/d)/T
func (l ExpectedLoss) Value(mu, d, tau float64) float64 {
	if d <= 0 || tau <= 0 {
		return mu * l.Wasted
	}
	tau = min(tau, horizon*l.Patience)
	same := math.Exp(-d * tau)
	return mu * (l.Wasted*same + (l.Late-1)*(1-same) + d*(math.Exp(tau/l.Patience)-same)/(d+1/l.Patience) - (tau-(1-same)/d)/l.Patience)
}
