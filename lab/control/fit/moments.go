package fit

import (
	"errors"
	"fmt"
	"math"
)

// MaxOrder is the greatest number of phases a law by moments may have.
const MaxOrder = 200

// Law is a phase-type law with how it was found, in words.
type Law struct {
	PH
	Method string   // what was matched by what, such as "hyperexponential-2, three moments"
	Notes  []string // what did not go as asked
}

// Moments finds a phase-type law of the given one to three moments about zero.
//
// One moment gives the exponential law; two a hyperexponential law of balanced
// means (SCV >= 1) or a mixture of Erlang k-1 and k (Tijms 1994). Three give,
// in this order, the hyperexponential law of order 2 (feasible iff SCV > 1 and
// m3 m1 > 1.5 m2^2), the Coxian law of order 2 (Telek, Heindl 2002) and the
// mixture of two Erlang laws of one order r, the smallest with SCV > 1/r and
// m3 m1 > m2^2 (r+2)/(r+1) (Johnson, Taaffe 1989). Moments that belong to no
// positive random variable are an error that names the violated inequality.
func Moments(m ...float64) (*Law, error) {
	if err := checkMoments(m); err != nil {
		return nil, err
	}
	var l *Law
	var err error
	switch len(m) {
	case 1:
		l = &Law{PH: PH{Beta: []float64{1}, S: [][]float64{{-1 / m[0]}}}, Method: "exponential, one moment"}
	case 2:
		l, err = twoMoments(m[0], m[1])
	default:
		l, err = threeMoments(m[0], m[1], m[2])
	}
	if err != nil {
		return nil, err
	}
	if err := l.Check(); err != nil {
		return nil, fmt.Errorf("%s: %w", l.Method, err)
	}
	return l, nil
}

// checkMoments says why m are not the moments of a positive law, if they are not.
func checkMoments(m []float64) error {
	if len(m) < 1 || len(m) > 3 {
		return fmt.Errorf("%d moments given: one to three are matched", len(m))
	}
	for i, v := range m {
		if !(v > 0) || math.IsInf(v, 0) {
			return fmt.Errorf("moment %d: %g is not a positive number", i+1, v)
		}
	}
	if len(m) > 1 && m[1] <= m[0]*m[0] {
		return fmt.Errorf("moment 2: %g is not above %g, the square of the mean: the variance would not be positive", m[1], m[0]*m[0])
	}
	if len(m) > 2 && m[2]*m[0] <= m[1]*m[1] {
		return fmt.Errorf("moment 3: %g is not above %g = m2^2/m1: no positive law of this mean and variance has it", m[2], m[1]*m[1]/m[0])
	}
	return nil
}

// twoMoments matches mean and variance.
func twoMoments(m1, m2 float64) (*Law, error) {
	scv := m2/(m1*m1) - 1
	if math.Abs(scv-1) < tolerance {
		return Moments(m1)
	}
	if scv > 1 {
		p := (1 + math.Sqrt((scv-1)/(scv+1))) / 2
		return &Law{PH: *HyperErlang([]float64{p, 1 - p}, []int{1, 1}, []float64{2 * p / m1, 2 * (1 - p) / m1}), Method: "hyperexponential-2 of balanced means, two moments"}, nil
	}
	k := math.Ceil((1 - tolerance) / scv)
	if k > MaxOrder {
		return nil, fmt.Errorf("SCV %.3g needs an Erlang law of %g phases; %d are the most", scv, k, MaxOrder)
	}
	p := (k*scv - math.Sqrt(max(0, k*(1+scv)-k*k*scv))) / (1 + scv)
	if p = max(p, 0); p < tolerance {
		return &Law{PH: *HyperErlang([]float64{1}, []int{int(k)}, []float64{k / m1}), Method: fmt.Sprintf("Erlang-%g, two moments", k)}, nil
	}
	rate := (k - p) / m1
	// Erlang k that with probability p skips its first phase.
	l := &Law{PH: *HyperErlang([]float64{1 - p}, []int{int(k)}, []float64{rate}), Method: fmt.Sprintf("mixture of Erlang-%g and Erlang-%g, two moments", k-1, k)}
	l.Beta[1] = p
	return l, nil
}

// threeMoments tries the families from the smallest order on.
func threeMoments(m1, m2, m3 float64) (*Law, error) {
	scv := m2/(m1*m1) - 1
	if scv > 1 && m3*m1 > 1.5*m2*m2 {
		if w, x, err := twoPoints(m1, m2/2, m3/6); err == nil {
			return &Law{PH: *HyperErlang(w[:], []int{1, 1}, []float64{1 / x[0], 1 / x[1]}), Method: "hyperexponential-2, three moments"}, nil
		}
	}
	if math.Abs(scv-1) < 1e-6 && math.Abs(m3/(6*m1*m1*m1)-1) < 1e-6 {
		l, err := Moments(m1)
		if err == nil {
			l.Method = "exponential, three moments"
		}
		return l, err
	}
	if l := coxianLaw(m1, m2, m3); l != nil {
		return l, nil
	}
	for r := 2; 2*r <= MaxOrder; r++ {
		f := float64(r)
		if math.Abs(scv*f-1) < 1e-9 && math.Abs(m3/(m1*m1*m1)*f*f/((f+1)*(f+2))-1) < 1e-9 {
			return &Law{PH: *HyperErlang([]float64{1}, []int{r}, []float64{f / m1}), Method: fmt.Sprintf("Erlang-%d, three moments", r)}, nil
		}
		if scv*f <= 1 || m3*m1 <= m2*m2*(f+2)/(f+1) {
			continue
		}
		w, x, err := twoPoints(m1/f, m2/(f*(f+1)), m3/(f*(f+1)*(f+2)))
		if err != nil {
			continue
		}
		return &Law{PH: *HyperErlang(w[:], []int{r, r}, []float64{1 / x[0], 1 / x[1]}), Method: fmt.Sprintf("mixture of two Erlang-%d, three moments", r)}, nil
	}
	l, err := twoMoments(m1, m2)
	if err == nil {
		l.Notes = append(l.Notes, fmt.Sprintf("the third moment needs more than %d phases and was left out", MaxOrder))
	}
	return l, err
}

// twoPoints finds the law on two points x > 0 of weights w whose moments are
// a1, a2, a3: the points are the roots of x^2 - A x + B with a2 = A a1 - B and
// a3 = A a2 - B a1. Phases of mean x in Erlang laws of one order have these
// reduced moments.
func twoPoints(a1, a2, a3 float64) (w, x [2]float64, err error) {
	det := a2 - a1*a1
	if det <= 0 {
		return w, x, errors.New("no variance is left between the branches")
	}
	a := (a3 - a1*a2) / det
	b := (a1*a3 - a2*a2) / det
	disc := a*a - 4*b
	if !(b > 0 && a > 0 && disc > 0) {
		return w, x, errors.New("no two positive points have these moments")
	}
	x[0] = (a + math.Sqrt(disc)) / 2
	x[1] = b / x[0] // the small root without cancellation
	w[0] = (a1 - x[1]) / (x[0] - x[1])
	w[1] = 1 - w[0]
	if !(w[0] > 0 && w[1] > 0) {
		return w, x, errors.New("the weights are not positive")
	}
	return w, x, nil
}

// twoPhasePoles returns the two rates of the order-2 law of three moments, the larger
// one last, and the coefficient c of its transform
// (l1 l2 + c s)/((s + l1)(s + l2)); ok reports whether they are real and positive.
func twoPhasePoles(m1, m2, m3 float64) (l1, l2, c float64, ok bool) {
	a1, a2, a3 := m1, m2/2, m3/6
	det := a2 - a1*a1
	if math.Abs(det) < 1e-12*a2 {
		return 0, 0, 0, false
	}
	a, b := (a3-a1*a2)/det, (a1*a3-a2*a2)/det
	disc := a*a - 4*b
	if !(a > 0 && b > 0 && disc >= 0) {
		return 0, 0, 0, false
	}
	x := (a + math.Sqrt(disc)) / 2
	l1, l2 = 1/x, x/b
	return l1, l2, l1 + l2 - m1*l1*l2, true
}

// coxianLaw returns the order-2 acyclic law of three moments, nil if there is none.
func coxianLaw(m1, m2, m3 float64) *Law {
	l1, l2, c, ok := twoPhasePoles(m1, m2, m3)
	if !ok || c < -tolerance*l2 || c > l2*(1+tolerance) {
		return nil
	}
	p := min(max(c/l2, 0), 1) // starts in the last, faster phase
	return &Law{PH: PH{Beta: []float64{1 - p, p}, S: [][]float64{{-l1, l1}, {0, -l2}}}, Method: "Coxian-2, three moments"}
}
