package revisit

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// Noisy is what is known of the signals of an item: of its changes, which come
// at rate D, the share Recall is signalled, and False signals a time and Wrong
// for each true one come without a change.
type Noisy struct {
	Recall float64 // 0 to 1
	False  float64 // per time
	Wrong  float64 // per true signal
}

// Evidence is what one signal says of a change, as a logarithm: an item is as
// many times less likely to be fresh after it. +Inf where no signal is false.
func (n Noisy) Evidence(d float64) float64 {
	recall, noise := n.boundedNoise(d)
	switch {
	case recall == 0 || d <= 0:
		return 0
	case noise == 0:
		return math.Inf(1)
	}
	return math.Log1p(recall * d / noise)
}

// Fresh is the probability that an item is as it was tau ago, after signals of
// so much evidence.
func (n Noisy) Fresh(d, tau, evidence float64) float64 {
	recall, _ := n.boundedNoise(d)
	return math.Exp(-(1-recall)*d*max(0, tau) - evidence)
}

// Age is the mean time since the first change that no signal told of, tau after
// the last visit.
func (n Noisy) Age(d, tau float64) float64 {
	recall, _ := n.boundedNoise(d)
	d *= 1 - recall
	if d <= 0 || tau <= 0 {
		return 0
	}
	x := d * tau
	if x < 1e-4 { // the terms cancel: series
		return tau * x / 2 * (1 - x/3)
	}
	return tau + math.Expm1(-x)/d
}

// FreshFor is after what time since the last visit the probability to be fresh
// has fallen to share.
func (n Noisy) FreshFor(d, share, evidence float64) float64 {
	recall, _ := n.boundedNoise(d)
	left := -math.Log(share) - evidence
	if left <= 0 {
		return 0
	}
	return left / ((1 - recall) * d)
}

// boundedNoise keeps what was learned within its bounds, and returns the rate of all
// false signals of an item that changes at rate d.
func (n Noisy) boundedNoise(d float64) (recall, noise float64) {
	recall = min(max(n.Recall, 0), 1)
	return recall, max(n.False, 0) + max(n.Wrong, 0)*recall*d
}

// Reach is after what time without signals a visit is worth so much: +Inf for
// never. A signal that counts as b time brings it forward by b.
func (n Noisy) Reach(mu, d, value float64) float64 {
	recall, noise := n.boundedNoise(d)
	y := value * d / mu // everything in units of 1/d
	switch {
	case y <= 0:
		return 0
	case !(y < 1) || recall == 1:
		return math.Inf(1)
	case recall == 0:
		return solveWait(y) / d
	}
	scaled := Noisy{Recall: recall, False: noise / d}
	return invertRising(func(tau float64) float64 { return scaled.At(1, 1, tau, 0) }, y) / d
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
	recall, noise := n.boundedNoise(d)
	a, g := (1-recall)*d, recall*d+noise
	switch {
	case recall == 0:
		return Greedy(mu, d, tau) // signals say nothing
	case noise == 0 && signals > 0:
		return mu / d // it has changed for certain
	case noise == 0 || a == 0 && signals == 0:
		return mu * perfectSignalValue(d, a, g, tau)
	case a == 0: // each change is signalled, some signals are false: no time counts
		fresh := math.Pow(noise/g, float64(signals))
		return mu * silentValue(d, noise, g, fresh, signals)
	}
	return mu * valueInCycle(d, a, g, noise, tau+float64(signals)*math.Log(g/noise)/a)
}

// At is Value with the evidence of the signals in place of their number, for
// items whose signals come from sources of different worth; n is then what is
// known of all of them together. Recall is below 1.
func (n Noisy) At(mu, d, tau, evidence float64) float64 {
	recall, noise := n.boundedNoise(d)
	a, g := (1-recall)*d, recall*d+noise
	switch {
	case d <= 0 || tau <= 0 && evidence <= 0:
		return 0
	case math.IsInf(evidence, 1) || a == 0 && evidence > 0:
		return mu / d
	case recall == 0:
		return Greedy(mu, d, tau+evidence/d)
	case noise == 0 || a == 0:
		return mu * perfectSignalValue(d, a, g, tau)
	}
	return mu * valueInCycle(d, a, g, noise, tau+evidence/a)
}

// valueInCycle is the value of an item at a time plus signals that count as time.
func valueInCycle(d, a, g, noise, at float64) float64 {
	b := math.Log(g/noise) / a
	if at/b > terms {
		return Greedy(1, d, at)
	}
	psi, w := 0.0, 0.0
	share := 1 / (d + noise) // False^i/(D + False)^(i+1)
	for i := 0; float64(i) <= at/b; i++ {
		left := at - float64(i)*b
		psi += poissonTail(i, g*left) / g
		w += share * poissonTail(i, (d+noise)*left)
		share *= noise / (d + noise)
	}
	return max(0, w-math.Exp(-a*at)*psi)
}

// perfectSignalValue is the value where signals are never false and none came: cycles end
// at tau or at the first signal.
func perfectSignalValue(d, a, g, tau float64) float64 {
	return -math.Expm1(-d*tau)/d + math.Exp(-a*tau)*math.Expm1(-g*tau)/g
}

// silentValue is the value where each change is signalled: visits come at so many
// signals, whenever that is.
func silentValue(d, noise, g, fresh float64, signals int) float64 {
	psi, w, share := 0.0, 0.0, 1/(d+noise)
	for range signals {
		psi += 1 / g
		w += share
		share *= noise / (d + noise)
	}
	return max(0, w-fresh*psi)
}

// poissonTail is the probability that a Poisson variable of mean x exceeds i.
func poissonTail(i int, x float64) float64 {
	if x <= 0 {
		return 0
	}
	return mathext.GammaIncReg(float64(i+1), x)
}
