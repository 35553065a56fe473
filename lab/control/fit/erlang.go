package fit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"
)

// branches are Erlang laws side by side: weights, whole orders, rates.
type branches struct {
	weight []float64
	order  []int
	rate   []float64
}

// branchParameters counts what was estimated: weights, rates, orders.
func (b *branches) branchParameters() int { return 3*len(b.order) - 1 }

// Sample describes positive values: ascending order and sums that the fits share.
type Sample struct {
	Sorted  []float64
	Moments [3]float64 // about zero
}

// NewSample sorts a copy of x, whose values must be positive and finite.
func NewSample(x []float64) (*Sample, error) {
	if len(x) < 2 {
		return nil, fmt.Errorf("%d values: at least two are needed", len(x))
	}
	s := &Sample{Sorted: slices.Clone(x)}
	slices.Sort(s.Sorted)
	for _, v := range s.Sorted {
		if !(v > 0) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("value %g: want a positive number", v)
		}
		for k := range s.Moments {
			s.Moments[k] += math.Pow(v, float64(k+1)) / float64(len(x))
		}
	}
	return s, nil
}

// SCV returns the squared coefficient of variation of the sample.
func (s *Sample) SCV() float64 { return s.Moments[1]/(s.Moments[0]*s.Moments[0]) - 1 }

// Quantile returns the value below which the share q of the sample lies.
func (s *Sample) Quantile(q float64) float64 {
	i := int(q * float64(len(s.Sorted)))
	return s.Sorted[min(max(i, 0), len(s.Sorted)-1)]
}

// maxRounds bounds the rounds of expectation-maximisation; gain is the rise of
// the logarithmic likelihood per value below which it stops.
const (
	maxRounds = 400
	gain      = 1e-7
)

// binned is a sample reduced to at most so many points of equal logarithmic
// width, each with its weight and mean: expectation-maximisation visits points.
type binned struct {
	x, lx, weight []float64
	n             float64
}

const bins = 4000

// binValues groups the sample; small samples keep their values.
func (s *Sample) binValues() *binned {
	b := &binned{n: float64(len(s.Sorted))}
	low, high := math.Log(s.Sorted[0]), math.Log(s.Sorted[len(s.Sorted)-1])
	width := (high - low) / bins
	exact := len(s.Sorted) <= bins || width <= 0
	last := -1
	for _, v := range s.Sorted {
		k := last + 1
		if !exact {
			k = int((math.Log(v) - low) / width)
		}
		if k != last || len(b.x) == 0 {
			b.x, b.weight = append(b.x, 0), append(b.weight, 0)
			last = k
		}
		i := len(b.x) - 1
		b.weight[i]++
		b.x[i] += v
	}
	b.lx = make([]float64, len(b.x))
	for i := range b.x {
		b.x[i] /= b.weight[i]
		b.lx[i] = math.Log(b.x[i])
	}
	return b
}

// HyperErlangEM fits a mixture of Erlang laws to a sample by expectation-
// maximisation (Thuemmler, Buchholz, Telek 2006). The number of branches, up
// to maxBranches, is the one of the least BIC; the orders of the branches are
// estimated along with weights and rates, so that no enumeration of orders is
// needed, and sum to at most maxOrder.
func HyperErlangEM(ctx context.Context, s *Sample, maxBranches, maxOrder int) (*Law, error) {
	if maxBranches < 1 || maxOrder < 1 {
		return nil, errors.New("at least one branch of one phase is needed")
	}
	data := s.binValues()
	var best *branches
	bic := math.Inf(1)
	worse := 0
	for n := 1; n <= min(maxBranches, maxOrder) && worse < 2; n++ {
		b, ll, err := data.fitBranches(ctx, s, n, maxOrder)
		if err != nil {
			return nil, err
		}
		if v := float64(b.branchParameters())*math.Log(data.n) - 2*ll; v < bic {
			best, bic, worse = b, v, 0
		} else {
			worse++
		}
	}
	l := &Law{PH: *HyperErlang(best.weight, best.order, best.rate), Method: fmt.Sprintf("hyper-Erlang of orders %v, maximum likelihood", best.order)}
	return l, l.Check()
}

// fitBranches fits n branches: first with the orders as real numbers (gamma laws), which
// lets each find its shape, then rounded.
func (d *binned) fitBranches(ctx context.Context, s *Sample, n, maxOrder int) (*branches, float64, error) {
	shape, rate, weight := make([]float64, n), make([]float64, n), make([]float64, n)
	for i := range n {
		q := s.Quantile((float64(i) + .5) / float64(n))
		shape[i], rate[i], weight[i] = 1, 1/q, 1/float64(n)
	}
	rounded := false
	last := math.Inf(-1)
	for round := 0; ; round++ {
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		ll := d.branchEMStep(weight, shape, rate, rounded, float64(maxOrder))
		if ll-last < gain*d.n || round == maxRounds {
			if rounded {
				break
			}
			rounded, round, ll = true, 0, math.Inf(-1)
			roundOrders(shape, rate, maxOrder)
		}
		last = ll
	}
	b := &branches{rate: rate}
	for i, v := range shape {
		b.weight, b.order = append(b.weight, weight[i]), append(b.order, int(v))
	}
	return b, last, nil
}

// branchEMStep does one round of expectation-maximisation in place and returns the
// logarithmic likelihood before it.
func (d *binned) branchEMStep(weight, shape, rate []float64, fixed bool, maxShape float64) float64 {
	n := len(weight)
	sum, first, logs := make([]float64, n), make([]float64, n), make([]float64, n)
	p, base := make([]float64, n), make([]float64, n)
	for j := range n {
		lg, _ := math.Lgamma(shape[j])
		base[j] = math.Log(weight[j]) + shape[j]*math.Log(rate[j]) - lg
	}
	var ll float64
	for i, x := range d.x {
		top := math.Inf(-1)
		for j := range p {
			p[j] = base[j] + (shape[j]-1)*d.lx[i] - rate[j]*x
			top = max(top, p[j])
		}
		var total float64
		for j := range p {
			p[j] = math.Exp(p[j] - top)
			total += p[j]
		}
		ll += d.weight[i] * (top + math.Log(total))
		for j := range p {
			q := d.weight[i] * p[j] / total
			sum[j] += q
			first[j] += q * x
			logs[j] += q * d.lx[i]
		}
	}
	for j := range n {
		weight[j] = max(sum[j]/d.n, 1e-12)
		if sum[j] < 1e-9*d.n {
			continue // an empty branch stays where it is
		}
		mean := first[j] / sum[j]
		if !fixed {
			shape[j] = gammaShape(math.Log(mean)-logs[j]/sum[j], maxShape)
		}
		rate[j] = shape[j] / mean
	}
	normalizeSum(weight)
	return ll
}

// gammaShape returns the shape a >= 1 of the gamma law of greatest likelihood
// when the logarithm of the mean exceeds the mean of logarithms by s: the root
// of ln a - digamma(a) = s, by Minka's start (2002) and Newton's steps on 1/a.
func gammaShape(s, most float64) float64 {
	if s < 1e-12 {
		return most
	}
	a := (3 - s + math.Sqrt((s-3)*(s-3)+24*s)) / (12 * s)
	for range 6 {
		d := 1/a - trigammaAt(a)
		a = 1 / (1/a + (math.Log(a)-mathext.Digamma(a)-s)/(a*a*d))
		if !(a > 0) {
			return 1
		}
	}
	return min(max(a, 1), most)
}

// trigammaAt is the derivative of digamma, by recurrence and Stirling's series.
func trigammaAt(x float64) float64 {
	var v float64
	for ; x < 8; x++ {
		v += 1 / (x * x)
	}
	y := 1 / (x * x)
	return v + 1/x + y/2 + y/x*(1./6-y*(1./30-y*(1./42-y/30)))
}

// roundOrders makes shapes whole numbers that sum to at most most, keeping the
// branches' means.
func roundOrders(shape, rate []float64, most int) {
	total := 0
	for i, v := range shape {
		o := max(1, math.Round(v))
		rate[i] *= o / v
		shape[i] = o
		total += int(o)
	}
	for ; total > most; total-- {
		k := 0
		for i := range shape {
			if shape[i] > shape[k] {
				k = i
			}
		}
		if shape[k] <= 1 {
			return
		}
		rate[k] *= (shape[k] - 1) / shape[k]
		shape[k]--
	}
}

func normalizeSum(p []float64) {
	var sum float64
	for _, v := range p {
		sum += v
	}
	for i := range p {
		p[i] /= sum
	}
}
