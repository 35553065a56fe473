package fit

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// Survival returns the probability of a time beyond each x, by uniformisation
// (Jensen 1953) of each part of the chain that is not connected with the
// others: with q the largest rate of the part and P = I + S/q,
// P(X > x) = sum_k e^(-qx) (qx)^k/k! beta P^k 1. The numbers beta P^k 1 are
// shared by all x and end by themselves where the part is an Erlang branch, so
// that rates of very different size do not cost many steps.
func (p *PH) Survival(x []float64) []float64 {
	one := make([]float64, p.Order())
	for i := range one {
		one[i] = 1
	}
	out := p.expectationAt(x, one)
	for k := range out {
		out[k] = min(out[k], 1)
	}
	return out
}

// CDF returns the probability that the time is at most x, 1 - beta e^(Sx) 1.
func (p *PH) CDF(x float64) float64 { return 1 - p.Survival([]float64{x})[0] }

// Density returns the density at each x >= 0, beta e^(Sx) (-S 1), computed
// like Survival.
func (p *PH) Density(x []float64) []float64 {
	exit := make([]float64, p.Order())
	for i, row := range p.S {
		for _, v := range row {
			exit[i] -= v
		}
		if exit[i] < tolerance*-row[i] {
			exit[i] = 0
		}
	}
	return p.expectationAt(x, exit)
}

// expectationAt returns beta e^(Sx) f at each x; negative x count as 0.
func (p *PH) expectationAt(x, f []float64) []float64 {
	out := make([]float64, len(x))
	most := 0.0
	for _, v := range x {
		most = math.Max(most, v)
	}
	for _, part := range p.connectedPhases() {
		q := 0.0
		for _, i := range part {
			q = math.Max(q, -p.S[i][i])
		}
		steps, all := p.uniformizedSteps(part, f, q, most)
		for k, v := range x {
			v = math.Max(v, 0)
			if !all && poissonWindow(q*v) > float64(len(steps)) {
				out[k] += p.matrixExponential(part, f, v)
				continue
			}
			out[k] += poissonMean(steps, q*v)
		}
	}
	return out
}

// connectedPhases groups the phases that are connected.
func (p *PH) connectedPhases() [][]int {
	n := p.Order()
	seen := make([]bool, n)
	var out [][]int
	for first := range n {
		if seen[first] {
			continue
		}
		seen[first] = true
		part := []int{first}
		for at := 0; at < len(part); at++ {
			i := part[at]
			for j := range n {
				if !seen[j] && (p.S[i][j] != 0 || p.S[j][i] != 0) {
					seen[j] = true
					part = append(part, j)
				}
			}
		}
		out = append(out, part)
	}
	return out
}

// longest is how many steps uniformisation may take; times that need more are
// left to the matrix exponential.
const longest = 1_000_000

// uniformizedSteps returns beta P^k f over the phases of part, as far as the mean of
// Poisson counts up to q*most needs them; all is false if they are cut short.
func (p *PH) uniformizedSteps(part []int, f []float64, q, most float64) (out []float64, all bool) {
	const negligible = 1e-15
	v, w := make([]float64, len(part)), make([]float64, len(part))
	for a, i := range part {
		v[a] = p.Beta[i]
	}
	last := int(math.Min(poissonWindow(q*most), longest))
	for k := 0; k <= last; k++ {
		alive, sum := 0.0, 0.0
		for a, b := range v {
			alive += b
			sum += b * f[part[a]]
		}
		if alive < negligible {
			return out, true
		}
		out = append(out, sum)
		clear(w)
		for a, i := range part {
			if v[a] == 0 {
				continue
			}
			for b, j := range part {
				move := p.S[i][j] / q
				if a == b {
					move++
				}
				w[b] += v[a] * move
			}
		}
		v, w = w, v
	}
	return out, poissonWindow(q*most) <= longest
}

// matrixExponential returns beta e^(Sx) f over the phases of part.
func (p *PH) matrixExponential(part []int, f []float64, x float64) float64 {
	s := mat.NewDense(len(part), len(part), nil)
	for a, i := range part {
		for b, j := range part {
			s.Set(a, b, x*p.S[i][j])
		}
	}
	var e mat.Dense
	e.Exp(s)
	sum := 0.0
	for a, i := range part {
		for b, j := range part {
			sum += p.Beta[i] * e.At(a, b) * f[j]
		}
	}
	return math.Max(sum, 0)
}

// poissonWindow is the count that a Poisson variable of this mean hardly exceeds.
func poissonWindow(mean float64) float64 { return mean + 9*math.Sqrt(mean) + 40 }

// poissonMean returns the mean of f at a Poisson count, f being 0 past its end.
func poissonMean(f []float64, mean float64) float64 {
	if mean == 0 {
		if len(f) == 0 {
			return 0
		}
		return f[0]
	}
	low := math.Max(0, mean-9*math.Sqrt(mean)-40)
	if !(low < float64(len(f))) {
		return 0
	}
	from := int(low)
	to := int(math.Min(float64(len(f)-1), poissonWindow(mean)))
	lg, _ := math.Lgamma(float64(from) + 1)
	logp := float64(from)*math.Log(mean) - mean - lg
	var sum float64
	for k := from; k <= to; k++ {
		sum += math.Exp(logp) * f[k]
		logp += math.Log(mean / float64(k+1))
	}
	return sum
}
