package fit

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"
)

// BMAP is a batch Markovian arrival process in the shape of a model's mode:
// D[0] holds the rates of moves without arrivals, D[k] those with a batch of
// k; the rows of the sum are 0.
type BMAP struct {
	D [][][]float64 `json:"d"`
}

// Order returns the number of phases.
func (b *BMAP) Order() int {
	if len(b.D) == 0 {
		return 0
	}
	return len(b.D[0])
}

// Check says what is wrong with the process, naming the entry: wrong shape,
// negative rates, rows that do not sum to 0, phases that are not all reached
// from each other, no arrivals.
func (b *BMAP) Check() error {
	n := b.Order()
	if len(b.D) < 2 || n == 0 {
		return errors.New("d: want D_0 and at least D_1")
	}
	for k, m := range b.D {
		if err := checkRates(fmt.Sprintf("d[%d]", k), m, n, k == 0); err != nil {
			return err
		}
	}
	arrivals := 0.0
	all := zeroRows(n)
	for i := range n {
		var sum float64
		for k, m := range b.D {
			for j, v := range m[i] {
				sum += v
				all[i][j] += v
				if k > 0 {
					arrivals += v
				}
			}
		}
		if math.Abs(sum) > 1e-7*-b.D[0][i][i] {
			return fmt.Errorf("d: row %d of the sum of all matrices is %g, not 0", i, sum)
		}
	}
	if arrivals == 0 {
		return errors.New("d[1]: no arrivals at all")
	}
	for from := range n {
		for to, ok := range reachableStates(all, from) {
			if !ok && to != from {
				return fmt.Errorf("d: phase %d is never reached from phase %d", to, from)
			}
		}
	}
	return nil
}

// reachableStates tells which states are entered sooner or later from a state.
func reachableStates(moves [][]float64, from int) []bool {
	seen := make([]bool, len(moves))
	stack := []int{from}
	for len(stack) > 0 {
		i := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for j, v := range moves[i] {
			if v > 0 && !seen[j] {
				seen[j] = true
				stack = append(stack, j)
			}
		}
	}
	return seen
}

// embedded are the matrices of a process watched at its arrivals.
type embedded struct {
	start *mat.VecDense // phase after an arrival in the long run
	m     *mat.Dense    // (-D_0)^-1: mean times in phases
	p     *mat.Dense    // (-D_0)^-1 (D_1 + ... + D_K): phases from arrival to arrival
}

func (b *BMAP) embedAtArrivals() (*embedded, error) {
	n := b.Order()
	e := &embedded{m: new(mat.Dense), p: new(mat.Dense)}
	if err := e.m.Inverse(denseMatrix(b.D[0], -1)); err != nil {
		var c mat.Condition
		if !errors.As(err, &c) || math.IsInf(float64(c), 1) {
			return nil, fmt.Errorf("d[0]: arrivals cease in some phase: %w", err)
		}
	}
	moves := mat.NewDense(n, n, nil)
	for _, m := range b.D[1:] {
		moves.Add(moves, denseMatrix(m, 1))
	}
	e.p.Mul(e.m, moves)
	p := zeroRows(n)
	for i := range p {
		for j := range p[i] {
			p[i][j] = math.Max(0, e.p.At(i, j))
		}
	}
	e.start = mat.NewVecDense(n, stationaryProbabilities(p))
	return e, nil
}

// stationaryProbabilities returns the law that stays the same under the transition
// probabilities p, which have one recurrent class, by elimination without
// subtractions (Grassmann, Taksar, Heyman 1985). States outside the class,
// such as phases in which no time between arrivals starts, get 0.
func stationaryProbabilities(p [][]float64) []float64 {
	recurrent := make([]bool, len(p))
	for j := range p {
		recurrent[j] = true
	}
	for i := range p {
		for j, ok := range reachableStates(p, i) {
			recurrent[j] = recurrent[j] && ok
		}
	}
	var class []int
	for j, ok := range recurrent {
		if ok {
			class = append(class, j)
		}
	}
	a := make([][]float64, len(class))
	for i, from := range class {
		for _, to := range class {
			a[i] = append(a[i], p[from][to])
		}
	}
	pi := make([]float64, len(p))
	for i, v := range eliminateStates(a) {
		pi[class[i]] = v
	}
	return pi
}

// eliminateStates is stationary for irreducible a, which it overwrites.
func eliminateStates(a [][]float64) []float64 {
	n := len(a)
	for k := n - 1; k > 0; k-- {
		var out float64
		for j := range k {
			out += a[k][j]
		}
		for i := range k {
			a[i][k] /= out
			for j := range k {
				a[i][j] += a[i][k] * a[k][j]
			}
		}
	}
	pi := make([]float64, n)
	pi[0] = 1
	for k := 1; k < n; k++ {
		for i := range k {
			pi[k] += pi[i] * a[i][k]
		}
	}
	normalizeSum(pi)
	return pi
}

// Marginal returns the law of the time between batches.
func (b *BMAP) Marginal() (*PH, error) {
	e, err := b.embedAtArrivals()
	if err != nil {
		return nil, err
	}
	p := &PH{S: b.D[0]}
	for i := range b.Order() {
		p.Beta = append(p.Beta, e.start.AtVec(i))
	}
	return p, nil
}

// Lags returns the correlations of the times between batches at lags 1..n:
// (start M P^k M 1 - mean^2) / variance, M = (-D_0)^-1, P = M (D_1 + ... + D_K).
func (b *BMAP) Lags(n int) ([]float64, error) {
	e, err := b.embedAtArrivals()
	if err != nil {
		return nil, err
	}
	order := b.Order()
	times := mat.NewVecDense(order, nil) // mean time to the next arrival, by phase
	for i := range order {
		for j := range order {
			times.SetVec(i, times.AtVec(i)+e.m.At(i, j))
		}
	}
	var left mat.VecDense // start M
	left.MulVec(e.m.T(), e.start)
	mean := mat.Dot(e.start, times)
	variance := 2*mat.Dot(&left, times) - mean*mean
	out := make([]float64, n)
	for k := range out {
		var next mat.VecDense
		next.MulVec(e.p.T(), &left)
		left = next
		if out[k] = (mat.Dot(&left, times) - mean*mean) / variance; math.Abs(out[k]) < 1e-13 {
			out[k] = 0 // what rounding leaves of independent times
		}
	}
	return out, nil
}

// Rate returns arrivals per time, batches times their sizes.
func (b *BMAP) Rate() (float64, error) {
	p, err := b.Marginal()
	if err != nil {
		return 0, err
	}
	sizes, err := b.Sizes()
	if err != nil {
		return 0, err
	}
	var size float64
	for k, v := range sizes {
		size += float64(k+1) * v
	}
	return size / p.Mean(), nil
}

// Sizes returns the law of batch sizes: entry k is the share of batches of k+1.
func (b *BMAP) Sizes() ([]float64, error) {
	e, err := b.embedAtArrivals()
	if err != nil {
		return nil, err
	}
	var left mat.VecDense
	left.MulVec(e.m.T(), e.start)
	out := make([]float64, len(b.D)-1)
	for k, m := range b.D[1:] {
		for i, row := range m {
			for _, v := range row {
				out[k] += left.AtVec(i) * v
			}
		}
	}
	return out, nil
}

// Sample draws n times between batches and the size of the batch that ends
// each, from the law after an arrival in the long run.
func (b *BMAP) Sample(r *rand.Rand, n int) (gaps []float64, sizes []int, err error) {
	start, err := b.Marginal()
	if err != nil {
		return nil, nil, err
	}
	phase := drawIndex(r, start.Beta)
	var t float64
	for len(gaps) < n {
		rate := -b.D[0][phase][phase]
		t += r.ExpFloat64() / rate
		k, next := b.pickMove(phase, r.Float64()*rate)
		phase = next
		if k > 0 {
			gaps, sizes = append(gaps, t), append(sizes, k)
			t = 0
		}
	}
	return gaps, sizes, nil
}

// pickMove picks the batch and the next phase of a move out of phase, u being
// uniform below its rate.
func (b *BMAP) pickMove(phase int, u float64) (k, next int) {
	last, lastPhase := 0, phase
	for k, m := range b.D {
		for j, v := range m[phase] {
			if (k == 0 && j == phase) || v == 0 {
				continue
			}
			last, lastPhase = k, j
			if u -= v; u < 0 {
				return k, j
			}
		}
	}
	return last, lastPhase // rounding
}

// Batches returns a process whose batches, of any phase, have the given law:
// D_k = sizes[k-1] D_1. The receiver must have single arrivals only.
func (b *BMAP) Batches(sizes []float64) *BMAP {
	out := &BMAP{D: [][][]float64{b.D[0]}}
	for _, share := range sizes {
		m := zeroRows(b.Order())
		for i, row := range b.D[1] {
			for j, v := range row {
				m[i][j] = share * v
			}
		}
		out.D = append(out.D, m)
	}
	return out
}

// Renewal returns the process whose times between arrivals are independent and
// follow p: D_0 = S, D_1 = -S 1 beta.
func Renewal(p *PH) *BMAP {
	d1 := zeroRows(p.Order())
	for i, row := range p.S {
		exit := 0.0
		for _, v := range row {
			exit -= v
		}
		if exit < tolerance*-row[i] {
			continue
		}
		for j, b := range p.Beta {
			d1[i][j] = exit * b
		}
	}
	return &BMAP{D: [][][]float64{p.S, d1}}
}
