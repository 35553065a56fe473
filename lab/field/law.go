package field

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// Law is a distribution of positive numbers with mean 1: gaps between events
// in multiples of their mean, or rates of resources in multiples of theirs.
type Law interface {
	// Draw returns a number.
	Draw(r *rand.Rand) float64
	// Residual returns the time from a moment chosen at random to the next
	// event when gaps follow the law: the first gap of a process that has gone
	// on for ever. Its density is the law's tail P(X > x); it is drawn as a
	// uniform part of a gap chosen in proportion to its length.
	Residual(r *rand.Rand) float64
	// String returns what ParseLaw reads.
	String() string
}

// Exponential is the law without memory: a Poisson process.
type Exponential struct{}

// Draw returns a gap.
func (Exponential) Draw(r *rand.Rand) float64 { return r.ExpFloat64() }

// Residual returns a first gap.
func (Exponential) Residual(r *rand.Rand) float64 { return r.ExpFloat64() }

func (Exponential) String() string { return "exponential" }

// Deterministic gaps are all equal; the first one is a uniform part of a gap.
type Deterministic struct{}

// Draw returns a gap.
func (Deterministic) Draw(*rand.Rand) float64 { return 1 }

// Residual returns a first gap.
func (Deterministic) Residual(r *rand.Rand) float64 { return r.Float64() }

func (Deterministic) String() string { return "deterministic" }

// Uniform is even on [1-Width, 1+Width].
type Uniform struct{ Width float64 }

// Draw returns a gap.
func (u Uniform) Draw(r *rand.Rand) float64 { return 1 - u.Width + 2*u.Width*r.Float64() }

// Residual returns a first gap.
func (u Uniform) Residual(r *rand.Rand) float64 {
	a, b := 1-u.Width, 1+u.Width
	return r.Float64() * math.Sqrt(a*a+r.Float64()*(b*b-a*a))
}

func (u Uniform) String() string { return "uniform:" + formatParameter(u.Width) }

// Pareto has the tail (m/x)^Shape with Shape > 1: many short gaps, few very
// long ones.
type Pareto struct{ Shape float64 }

func (p Pareto) drawParetoTail(r *rand.Rand, shape float64) float64 {
	return (p.Shape - 1) / p.Shape * math.Pow(1-r.Float64(), -1/shape)
}

// Draw returns a gap.
func (p Pareto) Draw(r *rand.Rand) float64 { return p.drawParetoTail(r, p.Shape) }

// Residual returns a first gap: by length, the shape is less by one.
func (p Pareto) Residual(r *rand.Rand) float64 { return r.Float64() * p.drawParetoTail(r, p.Shape-1) }

func (p Pareto) String() string { return "pareto:" + formatParameter(p.Shape) }

// Lognormal has a logarithm of standard deviation Sigma.
type Lognormal struct{ Sigma float64 }

// Draw returns a gap.
func (l Lognormal) Draw(r *rand.Rand) float64 {
	return math.Exp(l.Sigma*r.NormFloat64() - l.Sigma*l.Sigma/2)
}

// Residual returns a first gap: by length, the logarithm's mean is more by Sigma squared.
func (l Lognormal) Residual(r *rand.Rand) float64 {
	return r.Float64() * math.Exp(l.Sigma*r.NormFloat64()+l.Sigma*l.Sigma/2)
}

func (l Lognormal) String() string { return "lognormal:" + formatParameter(l.Sigma) }

// Weibull has the tail exp(-(x/s)^Shape): Shape < 1 bursts, > 1 regular.
type Weibull struct{ Shape float64 }

func (w Weibull) unitMeanScale() float64 { return 1 / math.Gamma(1+1/w.Shape) }

// Draw returns a gap.
func (w Weibull) Draw(r *rand.Rand) float64 {
	return w.unitMeanScale() * math.Pow(r.ExpFloat64(), 1/w.Shape)
}

// Residual returns a first gap: by length, (x/s)^Shape is Gamma(1 + 1/Shape).
func (w Weibull) Residual(r *rand.Rand) float64 {
	return r.Float64() * w.unitMeanScale() * math.Pow(drawGamma(r, 1+1/w.Shape), 1/w.Shape)
}

func (w Weibull) String() string { return "weibull:" + formatParameter(w.Shape) }

// drawGamma draws from the gamma distribution of shape k >= 1 and scale 1
// (Marsaglia, Tsang 2000).
func drawGamma(r *rand.Rand, k float64) float64 {
	d := k - 1./3
	c := 1 / math.Sqrt(9*d)
	for {
		x := r.NormFloat64()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v = v * v * v
		if math.Log(1-r.Float64()) < x*x/2+d-d*v+d*math.Log(v) {
			return d * v
		}
	}
}

// Empirical draws from observed values, scaled to mean 1.
type Empirical struct {
	values []float64
	sums   []float64 // running, for draws in proportion to length
}

// NewEmpirical returns the law of observed values. At least one is positive,
// none is negative.
func NewEmpirical(values []float64) (*Empirical, error) {
	var sum float64
	for i, v := range values {
		if !(v >= 0) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("%w: empirical law: value %d is %g", ErrInput, i+1, v)
		}
		sum += v
	}
	if sum == 0 {
		return nil, fmt.Errorf("%w: empirical law: no positive value", ErrInput)
	}
	e := &Empirical{values: slices.Clone(values), sums: make([]float64, len(values))}
	mean := sum / float64(len(values))
	sum = 0
	for i := range e.values {
		e.values[i] /= mean
		sum += e.values[i]
		e.sums[i] = sum
	}
	return e, nil
}

// Draw returns a gap.
func (e *Empirical) Draw(r *rand.Rand) float64 { return e.values[r.IntN(len(e.values))] }

// Residual returns a first gap.
func (e *Empirical) Residual(r *rand.Rand) float64 {
	u := r.Float64() * e.sums[len(e.sums)-1]
	i := min(sort.SearchFloat64s(e.sums, u), len(e.values)-1)
	return r.Float64() * e.values[i]
}

// String returns the law with its values.
func (e *Empirical) String() string {
	s := make([]string, len(e.values))
	for i, v := range e.values {
		s[i] = formatParameter(v)
	}
	return "empirical:" + strings.Join(s, ",")
}

// Laws says what ParseLaw understands.
const Laws = "exponential, deterministic, uniform:WIDTH (0..1), pareto:SHAPE (> 1), lognormal:SIGMA, weibull:SHAPE, empirical:V1,V2,..."

// shapedLaw are the laws with one parameter and its range.
func shapedLaw(name string, v float64) (law Law, ok bool) {
	switch name {
	case "uniform":
		return Uniform{v}, v >= 0 && v <= 1
	case "pareto":
		return Pareto{v}, v > 1 && v <= 1e6
	case "lognormal":
		return Lognormal{v}, v >= 0 && v <= 10
	case "weibull":
		return Weibull{v}, v >= 0.1 && v <= 1e3
	}
	return nil, false
}

// ParseLaw reads a law: a name and its parameter after a colon; see Laws.
func ParseLaw(s string) (Law, error) {
	name, arg, has := strings.Cut(s, ":")
	bad := func() error { return fmt.Errorf("%w: no law %q; there are %s", ErrInput, s, Laws) }
	switch name {
	case "", "exponential":
		if has {
			return nil, bad()
		}
		return Exponential{}, nil
	case "deterministic":
		if has {
			return nil, bad()
		}
		return Deterministic{}, nil
	case "empirical":
		var vs []float64
		for f := range strings.SplitSeq(arg, ",") {
			v, err := strconv.ParseFloat(strings.TrimSpace(f), 64)
			if err != nil {
				return nil, fmt.Errorf("%w: empirical law: %q is no number", ErrInput, f)
			}
			vs = append(vs, v)
		}
		return NewEmpirical(vs)
	}
	v, err := strconv.ParseFloat(arg, 64)
	if err != nil {
		return nil, bad()
	}
	law, ok := shapedLaw(name, v)
	if !ok {
		return nil, bad()
	}
	return law, nil
}

func formatParameter(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
