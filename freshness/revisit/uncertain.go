package revisit

import "math"

// Uncertain is Greedy where the rate is not known but believed to be Gamma
// distributed with mean d and a shape: the mean of Greedy over it. The freshness
// that visits at a fixed interval gain is a mean over rates, too, so that it is
// what Greedy is for rates that are known: with T = shape/d and u = tau/T
//
//	mu T (a ((1+u)^(1-a) - 1)/(1-a) - 1 + (1+u)^-a), a = shape
//
// An item of a wide belief is never given up for good: it may change slower
// than the mean.
func Uncertain(mu, d, shape, tau float64) float64 {
	if d <= 0 || tau <= 0 {
		return 0
	}
	t := shape / d
	return mu * t * unitGain(shape, tau/t)
}

// unitGain is the value for mu = T = 1; its derivative is a u (1+u)^(-a-1).
func unitGain(a, u float64) float64 {
	if u*max(a, 1) < 1e-4 { // the terms cancel: series
		return a * u * u / 2 * (1 - 2*(a+1)*u/3)
	}
	l := math.Log1p(u)
	grown := l
	if math.Abs(a-1) > 1e-9 {
		grown = math.Expm1((1-a)*l) / (1 - a)
	}
	return a*grown + math.Expm1(-a*l)
}

// mostUncertain is what Uncertain comes to after a long time.
func mostUncertain(mu, d, shape float64) float64 {
	if shape <= 1 {
		return math.Inf(1)
	}
	return mu / d * shape / (shape - 1)
}

// waitUncertain is when Uncertain has grown to a value, below the most. On
// logarithms the gain is concave and below a u^2/2, so that Newton's method
// climbs to the root from that of the latter without passing it.
func waitUncertain(mu, d, shape, value float64) float64 {
	t := shape / d
	y := value / (mu * t)
	if y <= 0 {
		return 0
	}
	u := math.Sqrt(2 * y / shape)
	for range 60 {
		g := unitGain(shape, u)
		step := math.Log(y/g) * g / (shape * u * u * math.Exp((-shape-1)*math.Log1p(u)))
		u *= math.Exp(min(step, 20))
		if step < 1e-7 || u > 1e200 {
			break
		}
	}
	return t * u
}
