package fit

import (
	"fmt"
	"math"
)

// Infeasible says why moments and correlations belong to no process of a family.
type Infeasible struct{ Why string }

func (e *Infeasible) Error() string { return e.Why }

func infeasiblef(format string, args ...any) error {
	return &Infeasible{fmt.Sprintf(format, args...)}
}

// MAP2 finds the Markovian arrival process of two phases whose times between
// arrivals have the first three moments m1, m2, m3 and the correlation lag1 at
// lag 1, in the canonical forms of Bodrog, Heindl, Horvath, Telek (2008).
//
// All correlations of such a process are rho_k = gamma^k rho_0 with
// rho_0 = (1 - 1/SCV)/2 and -1 <= gamma < 1, so no lag exceeds rho_0; the error
// is then *Infeasible and says by how much. m3 = 0 leaves the third moment
// free.
func MAP2(m1, m2, m3, lag1 float64) (*BMAP, error) {
	if err := checkMoments([]float64{m1, m2}); err != nil {
		return nil, err
	}
	scv := m2/(m1*m1) - 1
	if math.Abs(scv-1) < 1e-6 {
		if math.Abs(lag1) < 1e-6 {
			return &BMAP{D: [][][]float64{{{-1 / m1}}, {{1 / m1}}}}, nil
		}
		return nil, infeasiblef("SCV 1 makes every correlation of two phases 0, the log has %.3f", lag1)
	}
	bound := (1 - 1/scv) / 2
	gamma := lag1 / bound
	if gamma >= 1 {
		return nil, infeasiblef("with SCV %.4g two phases reach correlations below (1 - 1/SCV)/2 = %.3f; the log has %.3f at lag 1: regimes of less than exponential variability are needed", scv, bound, lag1)
	}
	return MAP2Decay(m1, m2, m3, gamma)
}

// MAP2Decay is MAP2 with the decay gamma of correlations, rho_k = gamma^k rho_0
// with rho_0 = (1 - 1/SCV)/2, in place of the correlation at lag 1.
func MAP2Decay(m1, m2, m3, gamma float64) (*BMAP, error) {
	if err := checkMoments([]float64{m1, m2}); err != nil {
		return nil, err
	}
	if !(gamma >= -1 && gamma < 1) {
		return nil, infeasiblef("decay %g is not from -1 to 1", gamma)
	}
	scv := m2/(m1*m1) - 1
	if m3 == 0 {
		l, err := twoMoments(m1, m2)
		if err != nil {
			return nil, err
		}
		m3 = l.Moments(3)[2]
		if scv < 1 {
			return map2AnySkew(m1, m2, gamma)
		}
	}
	return canonicalMAP2(m1, m2, m3, gamma)
}

// decayOf is the decay by least squares over all lags, as far as two phases
// of this SCV can have it.
func decayOf(scv float64, lags []float64) float64 {
	bound := (1 - 1/scv) / 2
	best, least := 0.0, math.Inf(1)
	for i := -999; i < 1000; i++ {
		gamma := float64(i) / 1000
		f, e := bound, 0.0
		for _, v := range lags {
			f *= gamma
			e += (f - v) * (f - v)
		}
		if e < least {
			best, least = gamma, e
		}
	}
	return best
}

// canonicalMAP2 solves for the canonical form of decay gamma.
func canonicalMAP2(m1, m2, m3, gamma float64) (*BMAP, error) {
	l1, l2, c, ok := twoPhasePoles(m1, m2, m3)
	if !ok {
		scv := m2/(m1*m1) - 1
		if scv > 1 {
			return nil, infeasiblef("no law of two phases has the third moment %.4g; with SCV %.4g it must be above 1.5 m2^2/m1 = %.4g", m3, scv, 1.5*m2*m2/m1)
		}
		return nil, infeasiblef("no law of two phases has SCV %.4g and the third moment %.4g", scv, m3)
	}
	for _, l := range [][2]float64{{l1, l2}, {l2, l1}} {
		if b := canonicalProcess(l[0], l[1], c, gamma); b != nil {
			return b, nil
		}
	}
	return nil, infeasiblef("the three moments and the correlation decay %.3f together fit no process of two phases", gamma)
}

// canonicalProcess returns the process of rates l1, l2, transform coefficient c and
// decay gamma, nil if its probabilities a, b would leave [0, 1].
func canonicalProcess(l1, l2, c, gamma float64) *BMAP {
	valid := func(a, b float64) bool {
		return a >= -tolerance && a <= 1+tolerance && b >= -tolerance && b <= 1+tolerance
	}
	unit := func(v float64) float64 { return min(max(v, 0), 1) }
	if gamma < 0 {
		b := (l2 - gamma*(l1+l2) - c*(1-gamma)) / l2
		a := -gamma / b
		if !valid(a, b) {
			return nil
		}
		a, b = unit(a), unit(b)
		return processOrNil(&BMAP{D: [][][]float64{{{-l1, (1 - a) * l1}, {0, -l2}}, {{0, a * l1}, {b * l2, (1 - b) * l2}}}})
	}
	// a l1 + b l2 = k with a b = gamma.
	k := c*(1-gamma) + gamma*(l1+l2)
	disc := k*k - 4*l1*l2*gamma
	if disc < 0 {
		if disc < -tolerance*k*k {
			return nil
		}
		disc = 0
	}
	for _, sign := range []float64{1, -1} {
		a := (k + sign*math.Sqrt(disc)) / (2 * l1)
		b := (k - a*l1) / l2
		if !valid(a, b) {
			continue
		}
		a, b = unit(a), unit(b)
		if m := processOrNil(&BMAP{D: [][][]float64{{{-l1, (1 - a) * l1}, {0, -l2}}, {{a * l1, 0}, {(1 - b) * l2, b * l2}}}}); m != nil {
			return m
		}
	}
	return nil
}

func processOrNil(b *BMAP) *BMAP {
	if b.Check() != nil {
		return nil
	}
	return b
}

// map2AnySkew looks for a third moment that a process of two phases with
// SCV < 1 can have together with the decay.
func map2AnySkew(m1, m2, gamma float64) (*BMAP, error) {
	scv := m2/(m1*m1) - 1
	if scv < .5 {
		return nil, infeasiblef("SCV %.4g is less than 0.5, the least of two phases", scv)
	}
	low := m2 * m2 / m1
	for i := 1; i < 400; i++ {
		if b, err := canonicalMAP2(m1, m2, low*(1+float64(i)/400), gamma); err == nil {
			return b, nil
		}
	}
	return nil, infeasiblef("SCV %.4g with the correlation decay %.3f fits no process of two phases", scv, gamma)
}
