package revisit

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// Noisy is what is known of the signals of an item: of its changes, which come
// at rate D, the share Recall is signalled, and False signals a time come
// without a change.
type Noisy struct {
	Recall float64 // 0 to 1
	False  float64 // per time
}

// terms bounds the sums of Value: with signals that say next to nothing the
// sums are long and their value is that of none.
const terms = 2000

// Value is what a visit is worth to an item that was visited tau ago and has
// been signalled so many times since (Busa-Fekete et al. 2025). With
//
//	a = (1 - Recall) D, g = Recall D + False, b = ln(g/False)/a, i = tau + b signals
//
// the item is fresh with probability e^{-a i}: a signal counts as much as b
// time. A robot that visits at i has cycles of mean length psi in which the
// item is fresh for w, and the value is mu (w - e^{-a i} psi). Without signals
// it is Greedy.
func (n Noisy) Value(mu, d, tau float64, signals int) float64 {
	if d <= 0 || tau <= 0 && signals == 0 {
		return 0
	}
	recall, noise := min(max(n.Recall, 0), 1), max(n.False, 0)
	a, g := (1-recall)*d, recall*d+noise
	switch {
	case recall == 0:
		return Greedy(mu, d, tau) // signals say nothing
	case noise == 0 && signals > 0:
		return mu / d // it has changed for certain
	case noise == 0 || a == 0 && signals == 0:
		return mu * perfect(d, a, g, tau)
	case a == 0: // each change is signalled, some signals are false: no time counts
		fresh := math.Pow(noise/g, float64(signals))
		return mu * silent(d, noise, g, fresh, signals)
	}
	b := math.Log(g/noise) / a
	at := tau + b*float64(signals)
	if at/b > terms {
		return Greedy(mu, d, tau)
	}
	psi, w := 0.0, 0.0
	share := 1 / (d + noise) // False^i/(D + False)^(i+1)
	for i := 0; float64(i) <= at/b; i++ {
		left := at - float64(i)*b
		psi += tail(i, g*left) / g
		w += share * tail(i, (d+noise)*left)
		share *= noise / (d + noise)
	}
	return mu * max(0, w-math.Exp(-a*at)*psi)
}

// perfect is the value where signals are never false and none came: cycles end
// at tau or at the first signal.
func perfect(d, a, g, tau float64) float64 {
	return -math.Expm1(-d*tau)/d + math.Exp(-a*tau)*math.Expm1(-g*tau)/g
}

// silent is the value where each change is signalled: visits come at so many
// signals, whenever that is.
func silent(d, noise, g, fresh float64, signals int) float64 {
	psi, w, share := 0.0, 0.0, 1/(d+noise)
	for range signals {
		psi += 1 / g
		w += share
		share *= noise / (d + noise)
	}
	return max(0, w-fresh*psi)
}

// tail is the probability that a Poisson variable of mean x exceeds i.
func tail(i int, x float64) float64 {
	if x <= 0 {
		return 0
	}
	return mathext.GammaIncReg(float64(i+1), x)
}
