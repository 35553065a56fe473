// Package fit turns logs into the processes of the controlled queue: service
// or content sizes into a phase-type law, epochs of arrivals into a batch
// Markovian arrival process, each with how well it fits.
//
// A phase-type law PH(beta, S) is the time a Markov chain that starts in phase
// i with probability beta_i and moves by the rates S takes to leave its
// phases. A batch Markovian arrival process moves by D_0 without arrivals and
// by D_k with a batch of k. Laws come from moments (closed forms) and from
// samples (expectation-maximisation); each is checked to be a valid generator
// before it is returned. docs/robot-control-fitting.md has the formulas.
package fit

import (
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"
)

// PH is a phase-type law in the shape of a model's service: the probabilities
// Beta of the first phase and the rates S by rows, whose row sums are <= 0.
type PH struct {
	Beta []float64   `json:"beta"`
	S    [][]float64 `json:"s"`
}

// tolerance of row sums, relative to the row's largest rate: fitted matrices
// are made of divisions and must not fail for their last bit.
const tolerance = 1e-9

// Order returns the number of phases.
func (p *PH) Order() int { return len(p.Beta) }

// Check says what is wrong with the law, naming the entry: wrong shape,
// negative or infinite entries, beta that does not sum to one, a phase from
// which the time never ends.
func (p *PH) Check() error {
	n := len(p.Beta)
	if n == 0 {
		return fmt.Errorf("beta: empty")
	}
	var sum float64
	for i, b := range p.Beta {
		if !(b >= 0 && b <= 1+tolerance) {
			return fmt.Errorf("beta[%d]: %g is no probability", i, b)
		}
		sum += b
	}
	if math.Abs(sum-1) > tolerance {
		return fmt.Errorf("beta: sums to %g, not to 1", sum)
	}
	if err := checkRates("s", p.S, n, true); err != nil {
		return err
	}
	ends := make([]bool, n)
	for changed := true; changed; {
		changed = false
		for i, row := range p.S {
			if ends[i] {
				continue
			}
			exit := 0.0
			for _, v := range row {
				exit -= v
			}
			on := exit > tolerance*math.Abs(row[i])
			for j, v := range row {
				on = on || (j != i && v > 0 && ends[j])
			}
			if on {
				ends[i], changed = true, true
			}
		}
	}
	for i, e := range ends {
		if !e {
			return fmt.Errorf("s[%d]: the time never ends from this phase", i)
		}
	}
	return nil
}

// checkRates checks the shape and signs of a square matrix of rates: of a
// (sub)generator with negative diagonal and row sums <= 0, or of one without
// negative entries.
func checkRates(name string, m [][]float64, n int, generator bool) error {
	if len(m) != n {
		return fmt.Errorf("%s: %d rows, want %d", name, len(m), n)
	}
	for i, row := range m {
		if len(row) != n {
			return fmt.Errorf("%s[%d]: %d entries, want %d", name, i, len(row), n)
		}
		var sum float64
		for j, v := range row {
			switch {
			case math.IsNaN(v) || math.IsInf(v, 0):
				return fmt.Errorf("%s[%d][%d]: %g is no finite number", name, i, j, v)
			case v < 0 && (!generator || i != j):
				return fmt.Errorf("%s[%d][%d]: %g is negative", name, i, j, v)
			}
			sum += v
		}
		switch {
		case generator && row[i] >= 0:
			return fmt.Errorf("%s[%d][%d]: %g on the diagonal is not negative", name, i, i, row[i])
		case generator && sum > -tolerance*row[i]:
			return fmt.Errorf("%s[%d]: the row sums to %g, more than 0", name, i, sum)
		}
	}
	return nil
}

// denseMatrix copies rows into a matrix, times factor.
func denseMatrix(rows [][]float64, factor float64) *mat.Dense {
	m := mat.NewDense(len(rows), len(rows), nil)
	for i, row := range rows {
		for j, v := range row {
			m.Set(i, j, factor*v)
		}
	}
	return m
}

// Moments returns the first n moments about zero, m_k = k! beta (-S)^-k 1.
func (p *PH) Moments(n int) []float64 {
	var lu mat.LU
	lu.Factorize(denseMatrix(p.S, -1))
	v := mat.NewVecDense(len(p.Beta), nil)
	for i := range p.Beta {
		v.SetVec(i, 1)
	}
	out := make([]float64, n)
	for k := range out {
		if err := lu.SolveVecTo(v, false, v); err != nil {
			// A badly conditioned S still gives figures; only a singular one
			// does not, which Check excludes.
			if _, ok := err.(mat.Condition); !ok {
				out[k] = math.NaN()
				continue
			}
		}
		v.ScaleVec(float64(k+1), v)
		for i, b := range p.Beta {
			out[k] += b * v.AtVec(i)
		}
	}
	return out
}

// Mean returns the mean.
func (p *PH) Mean() float64 { return p.Moments(1)[0] }

// SCV returns the squared coefficient of variation, variance / mean^2.
func (p *PH) SCV() float64 {
	m := p.Moments(2)
	return m[1]/(m[0]*m[0]) - 1
}

// Scale returns the law of the time multiplied by factor > 0.
func (p *PH) Scale(factor float64) *PH {
	q := &PH{Beta: append([]float64(nil), p.Beta...), S: make([][]float64, len(p.S))}
	for i, row := range p.S {
		q.S[i] = make([]float64, len(row))
		for j, v := range row {
			q.S[i][j] = v / factor
		}
	}
	return q
}

// Sample draws one time.
func (p *PH) Sample(r *rand.Rand) float64 {
	phase := drawIndex(r, p.Beta)
	var t float64
	for phase >= 0 {
		row := p.S[phase]
		t += r.ExpFloat64() / -row[phase]
		u := r.Float64() * -row[phase]
		next := -1
		for j, v := range row {
			if j == phase {
				continue
			}
			if u -= v; u < 0 {
				next = j
				break
			}
		}
		phase = next
	}
	return t
}

// drawIndex returns an index by its probability; the last one takes the rest.
func drawIndex(r *rand.Rand, p []float64) int {
	u := r.Float64()
	for i, v := range p {
		if u -= v; u < 0 {
			return i
		}
	}
	return len(p) - 1
}

// zeroRows makes an n by n matrix of zeros by rows.
func zeroRows(n int) [][]float64 {
	m := make([][]float64, n)
	for i := range m {
		m[i] = make([]float64, n)
	}
	return m
}

// HyperErlang makes the mixture that with probability weights[i] takes the
// Erlang time of orders[i] phases of rate rates[i] each.
func HyperErlang(weights []float64, orders []int, rates []float64) *PH {
	n := 0
	for _, o := range orders {
		n += o
	}
	p := &PH{Beta: make([]float64, n), S: zeroRows(n)}
	at := 0
	for i, o := range orders {
		p.Beta[at] = weights[i]
		for k := range o {
			p.S[at][at] = -rates[i]
			if k+1 < o {
				p.S[at][at+1] = rates[i]
			}
			at++
		}
	}
	return p
}
