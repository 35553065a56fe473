package control

import (
	"context"
	"fmt"
	"slices"
)

// Result holds the measures of one policy. Arrivals are offered pages; a
// probability is a share of them.
type Result struct {
	QueueLength     []float64 `json:"queue_length"`
	ArrivalRate     float64   `json:"arrival_rate"`
	Loss            float64   `json:"p_loss"`
	Obsolete        float64   `json:"p_obsolete"`
	Success         float64   `json:"p_success"`
	Starvation      float64   `json:"p_starvation"`
	Sojourn         float64   `json:"mean_sojourn"` // a lost page counts as 0
	SojournServed   float64   `json:"mean_sojourn_served"`
	SojournObsolete float64   `json:"mean_sojourn_obsolete"`
	MeanRobots      float64   `json:"mean_robots"`
	Cost            float64   `json:"cost"`
	Method          string    `json:"method"`
	Error           float64   `json:"error"` // relative, of the worst measure, as the method estimates it
	States          float64   `json:"states"`
}

// What accrues while the chain runs: rates of each state, summed in the long run.
const (
	accTime = iota
	accPages
	accLoss
	accObsolete
	accSuccess
	accStarvation
	accRobots
	accServedTime // sojourn of the arriving pages that get served, by the tagged page
	accStaleTime
	accServed // arriving pages that get served, by the tagged page
	accLength
	accruals
)

// maxLevel is the largest number of states of a level that is treated by
// dense matrices, maxDense the largest number of their entries.
const (
	maxLevel = 6000
	maxDense = 1e8
)

// InputError is an error of the model or of what is asked of it, not of the computation.
type InputError string

func (e InputError) Error() string { return string(e) }

// ErrTooLarge says that dense matrices will not do.
const ErrTooLarge = InputError("too many states")

// solver holds what all policies of a model share.
type solver struct {
	m    *Model
	dim  []int                   // states of a level
	down []mat                   // rates from level i to i-1
	exit [][]float64             // their row sums
	rate [][]mat                 // [level][mode] accruals of each state
	memo map[[2]int][]mat        // (level, mode) -> rates to the levels i, i+1, ..., i+K
	lev  []level                 // of the present policy, from the top down
	left []float64               // room for the rates out of a level
	tag  []struct{ h, y, z mat } // of the page at the last place of level i
}

// level is the elimination of all levels above.
type level struct {
	up   []mat   // rates into levels i, i+1, ... with those above censored
	lu   mfactor // of up[0], for i >= 1
	g    mat     // where level i-1 is entered
	u    mat     // accruals until it is, in units of 2^unit
	unit int
}

func newSolver(m *Model) (*solver, error) {
	s := &solver{m: m, dim: make([]int, m.N+1), memo: map[[2]int][]mat{}, lev: make([]level, m.N+1)}
	if _, dense := m.denseWork(); dense > maxDense || m.topLevelStates() > maxLevel {
		return nil, fmt.Errorf("%w: %.4g of them, %.4g with %d pages present", ErrTooLarge, m.States(), m.topLevelStates(), m.N)
	}
	s.dim[0] = m.W
	for i := 1; i <= m.N; i++ {
		s.dim[i] = m.W * m.M * intPower(m.Q, i-1)
	}
	s.down, s.exit = make([]mat, m.N+1), make([][]float64, m.N+1)
	for i := 1; i <= m.N; i++ {
		s.down[i] = m.downwardRates(i)
		s.exit[i] = s.down[i].rowSums()
	}
	if err := s.solveTaggedPage(); err != nil {
		return nil, err
	}
	s.rate = make([][]mat, m.N+1)
	for i := range s.rate {
		s.rate[i] = make([]mat, m.R)
		for r := range s.rate[i] {
			s.rate[i][r] = s.levelAccruals(i, r)
		}
	}
	return s, nil
}

// stalenessIdentity returns the staleness phases of n waiting pages as one identity.
func (m *Model) stalenessIdentity(n int) mat { return identityMatrix(intPower(m.Q, n)) }

// departureMatrix returns the rates at which a page leaves with n waiting, without the
// arrival phases: the first waiting page enters service, or one goes stale.
// Where staleness has one phase the n terms are the same; adding them one by one
// would make the time of a solution grow as the square of the capacity.
func (m *Model) departureMatrix(n int) mat {
	if m.Q == 1 {
		out := m.s0.mul(m.beta)
		for x := range m.M {
			out.set(x, x, out.at(x, x)+float64(n)*m.g0.a[0])
		}
		return out
	}
	out := kroneckerProduct(m.s0.mul(m.beta), onesVector(m.Q), m.stalenessIdentity(n-1))
	for k := 1; k <= n; k++ {
		out.addInPlace(kroneckerProduct(identityMatrix(m.M), m.stalenessIdentity(k-1), m.g0, m.stalenessIdentity(n-k)))
	}
	return out
}

// downwardRates returns Q(i, i-1), formula (5).
func (m *Model) downwardRates(i int) mat {
	if i == 1 {
		return kroneckerProduct(identityMatrix(m.W), m.s0)
	}
	return kroneckerProduct(identityMatrix(m.W), m.departureMatrix(i-1))
}

// phaseGenerator returns S (+) Gamma (+) ... (+) Gamma for n waiting pages.
func (m *Model) phaseGenerator(n int) mat {
	if m.Q == 1 {
		out := m.s.cloneMatrix()
		for x := range m.M {
			out.set(x, x, out.at(x, x)+float64(n)*m.g.a[0])
		}
		return out
	}
	p := m.s
	for range n {
		p = kronSum(p, m.g)
	}
	return p
}

// upwardRates returns Q(i, i), Q(i, i+1), ..., Q(i, min(i+K, N)) in mode r (from 0):
// formulas (2)-(4).
// The diagonal of Q(i, i) is not to be read.
func (m *Model) upwardRates(i, r int) []mat {
	room := m.N - i
	out := make([]mat, 1+min(m.K, room))
	if i == 0 {
		out[0] = m.d[r][0].cloneMatrix()
	} else {
		out[0] = kronSum(m.d[r][0], m.phaseGenerator(i-1))
	}
	for k := 1; k <= m.K; k++ {
		c := min(k, room)
		var b mat
		if i == 0 {
			b = kroneckerProduct(m.d[r][k], m.beta, kroneckerPower(m.gamma, c-1))
		} else {
			b = kroneckerProduct(m.d[r][k], identityMatrix(m.M), m.stalenessIdentity(i-1), kroneckerPower(m.gamma, c))
		}
		if out[c].a == nil {
			out[c] = b
		} else {
			out[c].addInPlace(b) // beyond the room
		}
	}
	return out
}

// solveTaggedPage computes for the page at the last place of level i, from all states
// without arrival phases, the probability h of being served and the mean times
// y = E[time; served], z = E[time; stale]. What comes after it does not matter.
func (s *solver) solveTaggedPage() error {
	m := s.m
	s.tag = make([]struct{ h, y, z mat }, m.N+1)
	for i := 1; i <= m.N; i++ {
		n := s.dim[i] / m.W
		t := &s.tag[i]
		t.h, t.y, t.z = zeroMatrix(n, 1), zeroMatrix(n, 1), zeroMatrix(n, 1)
		exit := make([]float64, n)
		var ahead mat // the head enters service or one ahead goes stale
		if i == 1 {
			copy(exit, m.s0.a)
		} else {
			copy(exit, m.departureMatrix(i-1).rowSums())
			// Without the tagged page's own staleness, which ends the story.
			if i == 2 {
				ahead = kroneckerProduct(m.s0.mul(m.beta), onesVector(m.Q))
			} else {
				ahead = kroneckerProduct(m.departureMatrix(i-2), identityMatrix(m.Q))
			}
		}
		f, err := factorizeMatrix(m.phaseGenerator(i-1).cloneMatrix(), exit)
		if err != nil {
			return fmt.Errorf("%d pages present: %w", i, err)
		}
		if i == 1 {
			for k := range t.h.a {
				t.h.a[k], t.y.a[k] = 1, 1
			}
			f.solveInPlace(t.y)
			continue
		}
		p := s.tag[i-1]
		t.h.addMul(ahead, p.h)
		f.solveInPlace(t.h)
		t.y.addMul(ahead, p.y)
		t.z.addMul(ahead, p.z)
		for k, h := range t.h.a {
			t.y.a[k] += h
			t.z.a[k] += max(0, 1-h)
		}
		f.solveInPlace(t.y)
		f.solveInPlace(t.z)
	}
	return nil
}

// averageOverEntering averages a vector on the states of level i+j over the staleness
// phases with which j pages arrive at level i.
func (m *Model) averageOverEntering(v mat, i, j int) mat {
	fold := func(v mat, p mat) mat {
		out := zeroMatrix(v.r/p.c, 1)
		for a := range out.a {
			for b, w := range p.a {
				out.a[a] += w * v.a[a*p.c+b]
			}
		}
		return out
	}
	if i == 0 {
		for range j - 1 {
			v = fold(v, m.gamma)
		}
		return fold(v, m.beta)
	}
	for range j {
		v = fold(v, m.gamma)
	}
	return v
}

// levelAccruals returns the accruals of the states of level i in mode r (from 0).
func (s *solver) levelAccruals(i, r int) mat {
	m := s.m
	out := zeroMatrix(s.dim[i], accruals)
	inner := s.dim[i] / m.W
	room := m.N - i
	stale := make([]float64, inner)
	if i >= 2 && m.Q == 1 {
		for x := range stale {
			stale[x] = float64(i-1) * m.g0.a[0]
		}
	} else if i >= 2 {
		for k := 1; k < i; k++ {
			v := kroneckerProduct(onesVector(m.M), onesVector(intPower(m.Q, k-1)), m.g0, onesVector(intPower(m.Q, i-1-k)))
			for x, w := range v.a {
				stale[x] += w
			}
		}
	}
	// tails[j]: rate of batches of at least j pages, by arrival phase.
	type entry struct{ h, y, z mat }
	enter := make([]entry, min(m.K, room)+1)
	for j := 1; j < len(enter); j++ {
		t := s.tag[i+j]
		enter[j] = entry{m.averageOverEntering(t.h, i, j), m.averageOverEntering(t.y, i, j), m.averageOverEntering(t.z, i, j)}
	}
	for a := range m.W {
		var pages, lost float64
		tail := make([]float64, m.K+2)
		for k := m.K; k >= 1; k-- {
			sum := 0.0
			for _, v := range m.d[r][k].row(a) {
				sum += v
			}
			tail[k] = tail[k+1] + sum
			pages += float64(k) * sum
			lost += float64(max(0, k-room)) * sum
		}
		for x := range inner {
			o := out.row(a*inner + x)
			o[accTime], o[accPages], o[accLoss], o[accRobots], o[accLength] = 1, pages, lost, float64(r+1), float64(i)
			if i == 0 {
				o[accStarvation] = 1
			} else {
				o[accObsolete] = stale[x]
				o[accSuccess] = m.s0.a[x*m.M/inner]
			}
			for j := 1; j < len(enter); j++ {
				o[accServed] += tail[j] * enter[j].h.a[x]
				o[accServedTime] += tail[j] * enter[j].y.a[x]
				o[accStaleTime] += tail[j] * enter[j].z.a[x]
			}
		}
	}
	return out
}

func onesVector(n int) mat {
	v := zeroMatrix(n, 1)
	for i := range v.a {
		v.a[i] = 1
	}
	return v
}

func intPower(b, n int) int {
	p := 1
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			p *= b
		}
		b *= b
	}
	return p
}

// cachedUpwardRates returns upward(i, r), remembered.
func (s *solver) cachedUpwardRates(i, r int) []mat {
	k := [2]int{i, r}
	b, ok := s.memo[k]
	if !ok {
		b = s.m.upwardRates(i, r)
		s.memo[k] = b
	}
	return b
}

// descendToLevel eliminates what is above level i, whose mode is r (from 0): formula
// (6). The levels above must be in place.
func (s *solver) descendToLevel(i, r int) error {
	q := s.cachedUpwardRates(i, r)
	l := s.levelMatrices(i)
	for k, x := range q {
		copy(l.up[k].a, x.a)
	}
	copy(l.u.a, s.rate[i][r].a)
	return s.eliminateLevel(i)
}

// levelMatrices returns level i with its matrices made.
func (s *solver) levelMatrices(i int) *level {
	l := &s.lev[i]
	if l.up == nil {
		for k := range 1 + min(s.m.K, s.m.N-i) {
			l.up = append(l.up, zeroMatrix(s.dim[i], s.dim[i+k]))
		}
		l.g, l.u = zeroMatrix(s.dim[i], s.dim[max(i-1, 0)]), zeroMatrix(s.dim[i], s.rate[i][0].c)
	}
	return l
}

// eliminateLevel finishes what descend began with the rates of level i.
func (s *solver) eliminateLevel(i int) error {
	l := &s.lev[i]
	l.unit = 0
	for k := 1; k < len(l.up); k++ {
		l.unit = max(l.unit, s.lev[i+k].unit)
	}
	l.u.shiftExponent(-l.unit)
	for k := len(l.up) - 1; k >= 1; k-- {
		if k < len(l.up)-1 {
			l.up[k].addMul(l.up[k+1], s.lev[i+k+1].g)
		}
		l.u.addMul(l.up[k], s.lev[i+k].u.inUnit(s.lev[i+k].unit, l.unit))
	}
	if len(l.up) > 1 {
		l.up[0].addMul(l.up[1], s.lev[i+1].g)
	}
	if i == 0 {
		return nil
	}
	s.left = append(s.left[:0], s.exit[i]...)
	f, err := factorizeMatrix(l.up[0], s.left)
	if err != nil {
		return err
	}
	l.lu = f
	copy(l.g.a, s.down[i].a)
	f.solveInPlace(l.g)
	f.solveInPlace(l.u)
	l.unit = l.u.normalizeExponent(l.unit)
	return nil
}

// finishElimination returns the long-run rates of the accruals once level 0 is reached,
// and the law of level 0 but for a factor.
func (s *solver) finishElimination() (acc, pi0 []float64, err error) {
	l := &s.lev[0]
	if pi0, err = stationaryLaw(l.up[0]); err != nil {
		return acc, nil, err
	}
	acc = make([]float64, l.u.c)
	for a, p := range pi0 {
		for k, v := range l.u.row(a) {
			acc[k] += p * v
		}
	}
	t := acc[accTime]
	for k := range acc {
		acc[k] /= t
	}
	return acc, pi0, nil
}

const errArrivalsEnd = InputError("the phases of arrival come to rest where no page arrives under this policy")

// measuresFromAccruals fills a Result from long-run rates: formulas (19), (20).
func (m *Model) measuresFromAccruals(acc []float64) (Result, error) {
	var r Result
	r.ArrivalRate = acc[accPages]
	if !(r.ArrivalRate > 0) {
		return r, errArrivalsEnd
	}
	r.Loss, r.Obsolete, r.Success = acc[accLoss]/r.ArrivalRate, acc[accObsolete]/r.ArrivalRate, acc[accSuccess]/r.ArrivalRate
	r.Starvation, r.MeanRobots = acc[accStarvation], acc[accRobots]
	r.SojournServed = acc[accServedTime] / acc[accServed]
	if acc[accObsolete] > 0 {
		r.SojournObsolete = acc[accStaleTime] / acc[accObsolete]
	}
	r.Sojourn = (acc[accServedTime] + acc[accStaleTime]) / r.ArrivalRate
	r.Cost = m.Cost.costOfResult(r)
	return r, nil
}

// costOfResult returns the cost of measures, formula (20).
func (c Cost) costOfResult(r Result) float64 {
	return r.ArrivalRate*(c.Loss*r.Loss+c.Obsolete*r.Obsolete) + c.Response*r.SojournServed + c.Starvation*r.Starvation + c.Robot*r.MeanRobots
}

// solveDense is Model.Solve by dense matrices.
func (s *solver) solveDense(ctx context.Context, policy []int) (Result, error) {
	m := s.m
	for i := m.N; i >= 0; i-- {
		if err := ctx.Err(); err != nil {
			return Result{}, err
		}
		if err := s.descendToLevel(i, policy[i]-1); err != nil {
			return Result{}, fmt.Errorf("%d pages present: %w", i, err)
		}
	}
	acc, pi0, err := s.finishElimination()
	if err != nil {
		return Result{}, err
	}
	r, err := m.measuresFromAccruals(acc)
	if err != nil {
		return r, err
	}
	pi := s.queueLaw(pi0)
	r.QueueLength = make([]float64, m.N+1)
	direct := make([]float64, accruals)
	for i, x := range pi {
		for a, p := range x {
			r.QueueLength[i] += p
			for k, v := range s.rate[i][policy[i]-1].row(a) {
				direct[k] += p * v
			}
		}
	}
	r.Method, r.States = Exact, m.States()
	r.Error, err = checkAccruals(acc, direct)
	return r, err
}

// queueLaw returns the stationary law by levels from the law of level 0, which may lack
// a factor: formula (7).
func (s *solver) queueLaw(pi0 []float64) [][]float64 {
	pi, units := [][]float64{pi0}, make([]int, s.m.N+1)
	for l := 1; l <= s.m.N; l++ {
		x := make([]float64, s.dim[l])
		row := rowVector(x)
		for i := max(0, l-s.m.K); i < l; i++ {
			if i == max(0, l-s.m.K) || units[i] > units[l] {
				units[l] = units[i]
			}
		}
		for i := max(0, l-s.m.K); i < l; i++ {
			row.addMul(rowVector(pi[i]).inUnit(units[i], units[l]), s.lev[i].up[l-i])
		}
		s.lev[l].lu.solveLeft(x)
		units[l] = row.normalizeExponent(units[l])
		pi = append(pi, x)
	}
	total, unit := 0.0, slices.Max(units)
	for l, x := range pi {
		rowVector(x).shiftExponent(units[l] - unit)
		for _, p := range x {
			total += p
		}
	}
	for _, x := range pi {
		rowVector(x).scaleInPlace(1 / total)
	}
	return pi
}
