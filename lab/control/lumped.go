package control

import (
	"context"
	"fmt"
	"math"
)

// The lumped model keeps the staleness phases of the first few waiting pages
// only. Of the others it knows, for each number of pages and phases of arrival
// and service, the law of the phase of the page at each place as if the phases
// of different pages were independent: formulas (12)-(17) of docs/robot-control.md.
// What is kept, the other places' laws and the stationary law of the reduced
// chain determine one another; they are found in turn until they agree.

// lumped is a reduced model.
type lumped struct {
	m      *Model
	policy []int // modes from 0
	keep   int   // waiting pages whose phases are kept
	solver *solver
	up     [][]mat
	as     int           // W*M
	pi     [][]float64   // law of the reduced chain by levels
	z      [][]float64   // of it, (arrival, service) from level 1
	law    [][][]float64 // [level][place-1] the phase of that page, (as, q), sums to 1 for each as
	stale  [][][]float64 // [level][place-1][as] rate at which that page goes stale
	mass   [][]mat       // [place-1][level] the page's phases times z
	age    [][]mat       // the same with the page's age
}

// keptPhaseCount returns how many phases are kept with i >= 1 pages present.
func (l *lumped) keptPhaseCount(i int) int { return min(i-1, l.keep) }

func newLumped(m *Model, policy []int, keep int) *lumped {
	l := &lumped{m: m, policy: policy, keep: keep, as: m.W * m.M}
	s := &solver{m: m, dim: make([]int, m.N+1), lev: make([]level, m.N+1), down: make([]mat, m.N+1), exit: make([][]float64, m.N+1), rate: make([][]mat, m.N+1)}
	l.solver = s
	l.law, l.stale, l.z = make([][][]float64, m.N+1), make([][][]float64, m.N+1), make([][]float64, m.N+1)
	for i := range s.dim {
		s.dim[i] = m.W
		if i > 0 {
			s.dim[i] = l.as * intPower(m.Q, l.keptPhaseCount(i))
		}
		l.up = append(l.up, l.lumpedUpward(i))
		s.rate[i] = []mat{onesVector(s.dim[i])}
		for range max(0, i-1) {
			l.law[i], l.stale[i] = append(l.law[i], make([]float64, l.as*m.Q)), append(l.stale[i], make([]float64, l.as))
		}
		for k := range l.law[i] {
			for x := range l.as {
				copy(l.law[i][k][x*m.Q:], m.gamma.a)
			}
		}
	}
	return l
}

// lumpedUpward is Model.upward with what is kept: formula (13).
func (l *lumped) lumpedUpward(i int) []mat {
	m, room := l.m, l.m.N-i
	d := m.d[l.policy[i]]
	out := make([]mat, 1+min(m.K, room))
	if i == 0 {
		out[0] = d[0].cloneMatrix()
	} else {
		out[0] = kronSum(d[0], m.phaseGenerator(l.keptPhaseCount(i)))
	}
	for k := 1; k <= m.K; k++ {
		c := min(k, room)
		var b mat
		if i == 0 {
			b = kroneckerProduct(d[k], m.beta, kroneckerPower(m.gamma, l.keptPhaseCount(c)))
		} else {
			b = kroneckerProduct(d[k], identityMatrix(m.M), m.stalenessIdentity(l.keptPhaseCount(i)), kroneckerPower(m.gamma, l.keptPhaseCount(i+c)-l.keptPhaseCount(i)))
		}
		if out[c].a == nil {
			out[c] = b
		} else {
			out[c].addInPlace(b)
		}
	}
	return out
}

// lumpedDownward is Model.downward with what is kept: formula (14).
func (l *lumped) lumpedDownward(i int) mat {
	m, n := l.m, i-1
	if n <= l.keep {
		return m.downwardRates(i)
	}
	size := intPower(m.Q, l.keep)
	out := zeroMatrix(l.as*size, l.as*size)
	next := l.law[i][l.keep] // of the page that comes to be kept
	for x := range l.as {
		a, s := x/m.M, x%m.M
		tail := 0.0
		for k := l.keep; k < n; k++ {
			tail += l.stale[i][k][x]
		}
		for q := range size {
			row := out.row(x*size + q)
			row[x*size+q] += tail
			shift := func(place int, service mat, rate float64) { // the kept page at place leaves
				base := 0
				if l.keep > 0 {
					base = removeDigit(q, place, l.keep, m.Q) * m.Q
				}
				for s2, w := range service.row(s) {
					if w == 0 {
						continue
					}
					to := (a*m.M + s2) * size
					if l.keep == 0 {
						row[to] += rate * w
						continue
					}
					for p, v := range next[x*m.Q : (x+1)*m.Q] {
						row[to+base+p] += rate * w * v
					}
				}
			}
			if m.s0.a[s] > 0 {
				shift(0, identityTimes(m.beta, m.M), m.s0.a[s])
			}
			for k := range l.keep {
				if g := m.g0.a[digitAt(q, k, l.keep, m.Q)]; g > 0 {
					shift(k, identityMatrix(m.M), g)
				}
			}
		}
	}
	return out
}

// identityTimes returns n rows equal to v.
func identityTimes(v mat, n int) mat {
	out := zeroMatrix(n, v.c)
	for i := range n {
		copy(out.row(i), v.a)
	}
	return out
}

// digitAt returns the digit at place (from 0, the first is the most significant)
// of the number q of n digits to a base.
func digitAt(q, place, n, base int) int { return q / intPower(base, n-1-place) % base }

// removeDigit returns q without the digit at place.
func removeDigit(q, place, n, base int) int {
	low := intPower(base, n-1-place)
	return q/(low*base)*low + q%low
}

// solveChain finds the law of the reduced chain.
func (l *lumped) solveChain() error {
	s := l.solver
	for i := l.m.N; i >= 0; i-- {
		if i > 0 {
			s.down[i] = l.lumpedDownward(i)
			s.exit[i] = s.down[i].rowSums()
		}
		v := s.levelMatrices(i)
		for k, x := range l.up[i] {
			copy(v.up[k].a, x.a)
		}
		copy(v.u.a, s.rate[i][0].a)
		if err := s.eliminateLevel(i); err != nil {
			return fmt.Errorf("%d pages present: %w", i, err)
		}
	}
	_, pi0, err := s.finishElimination()
	if err != nil {
		return err
	}
	l.pi = s.queueLaw(pi0)
	for i := 1; i <= l.m.N; i++ {
		l.z[i] = make([]float64, l.as)
		size := intPower(l.m.Q, l.keptPhaseCount(i))
		for x, p := range l.pi[i] {
			l.z[i][x/size] += p
		}
	}
	return nil
}

// keptLaws takes the laws of the kept places from the chain.
func (l *lumped) keptLaws() {
	q := l.m.Q
	for i := 2; i <= l.m.N; i++ {
		n := l.keptPhaseCount(i)
		size := intPower(q, n)
		for k := range n {
			sum := make([]float64, l.as*q)
			for x, p := range l.pi[i] {
				sum[x/size*q+digitAt(x%size, k, n, q)] += p
			}
			l.setLaw(i, k, sum)
		}
	}
}

// setLaw sets the law of a page's phase from masses and returns the greatest
// change of its stale rate.
func (l *lumped) setLaw(i, k int, mass []float64) float64 {
	q, worst := l.m.Q, 0.0
	for x := range l.as {
		law, part, total := l.law[i][k][x*q:(x+1)*q], mass[x*q:(x+1)*q], 0.0
		for _, v := range part {
			total += v
		}
		if !(total > 0) {
			continue
		}
		rate := 0.0
		for j, v := range part {
			law[j] = v / total
			rate += law[j] * l.m.g0.a[j]
		}
		worst = max(worst, math.Abs(rate-l.stale[i][k][x])/max(rate, 1e-300))
		l.stale[i][k][x] = rate
	}
	return worst
}

// lumpedRounds is the maximum number of iterations of the laws.
const lumpedRounds = 400

// solveFixedPoint finds what agrees with itself.
func (l *lumped) solveFixedPoint(ctx context.Context) error {
	for i := range l.stale {
		for k := range l.stale[i] {
			for x := range l.as {
				for j, g := range l.m.g0.a {
					l.stale[i][k][x] += l.m.gamma.a[j] * g
				}
			}
		}
	}
	for range lumpedRounds {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := l.solveChain(); err != nil {
			return err
		}
		l.keptLaws()
		l.mass = nil
		worst := 0.0
		next := make([]mat, l.m.N+1) // of the place behind
		for k := l.m.N - 2; k >= 0; k-- {
			f, err := l.factorPlace(k)
			if err != nil {
				return err
			}
			x := f.solvePlace(l.arrivalRatesAtPlace(k), next)
			l.mass = append([][]mat{x}, l.mass...)
			for i := k + 2; i <= l.m.N; i++ {
				if k >= l.keep {
					worst = max(worst, l.setLaw(i, k, x[i].a))
				}
			}
			next = x
		}
		if worst < 1e-11 {
			return l.solveWaitingAges()
		}
	}
	return fmt.Errorf("the laws of the lumped places did not settle in %d rounds", lumpedRounds)
}

// lumpedResult solves with keep phases kept.
func (m *Model) lumpedResult(ctx context.Context, policy []int, keep int) (Result, error) {
	p := make([]int, len(policy))
	for i, r := range policy {
		p[i] = r - 1
	}
	l := newLumped(m, p, keep)
	if err := l.solveFixedPoint(ctx); err != nil {
		return Result{}, err
	}
	acc, length := l.lumpedAccruals()
	r, err := m.measuresFromAccruals(acc)
	r.QueueLength = length
	r.Method, r.States = fmt.Sprintf("lumped, %d phases kept", keep), 0
	for _, n := range l.solver.dim {
		r.States += float64(n)
	}
	return r, err
}
