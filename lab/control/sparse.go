package control

import (
	"context"
	"errors"
	"fmt"
	"math"
)

// The iterative method keeps one number a state and no matrix of the chain:
// every rate is a product of entries of the small matrices. Iteration by
// Gauss and Seidel through the levels is sped up by aggregation: after each
// round the masses by level, arrival and service phase are replaced by those of
// the reduced chain whose stale rates are the present ones (formula (18)),
// which that chain gives exactly.

// sparse holds the law as x[level][staleness phases][arrival, service].
type sparse struct {
	m      *Model
	policy []int // modes from 0
	as     int
	x      [][]float64
	up     [][]mat     // [level][c]: D_k that lead c levels up, those beyond the room added
	gamma  [][]float64 // Kronecker powers
	block  []map[int]mat
	weight []int // of a staleness phase in the key of block
	coarse *lumped
	buf    []float64
}

// stalenessPhaseCount returns the number of staleness phases with i pages present.
func (p *sparse) stalenessPhaseCount(i int) int { return intPower(p.m.Q, max(0, i-1)) }

func newSparse(ctx context.Context, m *Model, policy []int) (*sparse, error) {
	p := &sparse{m: m, policy: policy, as: m.W * m.M, x: make([][]float64, m.N+1), up: make([][]mat, m.N+1), block: make([]map[int]mat, m.N+1), weight: make([]int, m.Q)}
	for q := 1; q < m.Q; q++ {
		p.weight[q] = intPower(m.N, q-1)
	}
	g := kroneckerPower(m.gamma, 0)
	for range min(m.K, m.N) + 1 {
		p.gamma = append(p.gamma, g.a)
		g = kroneckerProduct(g, m.gamma)
	}
	for i := range p.x {
		n := m.W
		if i > 0 {
			n = p.as * p.stalenessPhaseCount(i)
		}
		p.x[i] = make([]float64, n)
		d, room := m.d[policy[i]], m.N-i
		p.up[i] = []mat{d[0].cloneMatrix()}
		for k := 1; k <= m.K; k++ {
			if c := min(k, room); c < len(p.up[i]) {
				p.up[i][c].addInPlace(d[k])
			} else {
				p.up[i] = append(p.up[i], d[k].cloneMatrix())
			}
		}
		p.block[i] = map[int]mat{}
	}
	p.buf = make([]float64, len(p.x[m.N]))
	p.coarse = newLumped(m, policy, 0)
	if err := p.coarse.solveFixedPoint(ctx); err != nil {
		return nil, err
	}
	p.startIndependent()
	return p, nil
}

// startIndependent takes for a start the phases of the pages as independent.
func (p *sparse) startIndependent() {
	m := p.m
	copy(p.x[0], p.coarse.pi[0])
	for i := 1; i <= m.N; i++ {
		for y, z := range p.coarse.z[i] {
			law := []float64{z}
			for k := range i - 1 {
				next := make([]float64, 0, len(law)*m.Q)
				for _, v := range law {
					for _, w := range p.coarse.law[i][k][y*m.Q : (y+1)*m.Q] {
						next = append(next, v*w)
					}
				}
				law = next
			}
			for q, v := range law {
				p.x[i][q*p.as+y] = v
			}
		}
	}
}

// levelInflow puts into b the rates at which the states of level i are entered from
// other levels.
func (p *sparse) levelInflow(i int, b []float64) {
	clear(b)
	y := make([]float64, p.as)
	for c := 1; c <= min(p.m.K, i); c++ {
		if l := i - c; c < len(p.up[l]) {
			p.inflowFrom(l, c, b, y)
		}
	}
	if i == p.m.N {
		return
	}
	if i == 0 {
		for x, v := range p.x[1] {
			b[x/p.m.M] += v * p.m.s0.a[x%p.m.M]
		}
		return
	}
	p.inflowServed(i, b, y)
	p.inflowStale(i, b)
}

// inflowFrom adds what c pages bring from level l.
func (p *sparse) inflowFrom(l, c int, b, y []float64) {
	m, d := p.m, p.up[l][c]
	if l == 0 {
		v := rowVector(p.x[0]).mul(d)
		for t, g := range p.gamma[c-1] {
			for x := range y {
				b[t*p.as+x] += v.a[x/m.M] * m.beta.a[x%m.M] * g
			}
		}
		return
	}
	gamma := p.gamma[c]
	for q := range p.stalenessPhaseCount(l) {
		from := p.x[l][q*p.as : (q+1)*p.as]
		clear(y)
		for a := range m.W {
			for a2, v := range d.row(a) {
				if v != 0 {
					for s := range m.M {
						y[a2*m.M+s] += v * from[a*m.M+s]
					}
				}
			}
		}
		for t, g := range gamma {
			if g != 0 {
				out := b[(q*len(gamma)+t)*p.as:]
				for x, v := range y {
					out[x] += g * v
				}
			}
		}
	}
}

// inflowServed adds the ends of service with i+1 pages present, i >= 1.
func (p *sparse) inflowServed(i int, b, y []float64) {
	m, above, size := p.m, p.x[i+1], p.stalenessPhaseCount(i)
	for q := range size {
		clear(y)
		for first := range m.Q {
			from := above[(first*size+q)*p.as:]
			for x := range y {
				y[x] += from[x]
			}
		}
		out := b[q*p.as : (q+1)*p.as]
		for a := range m.W {
			end := 0.0
			for s, v := range m.s0.a {
				end += v * y[a*m.M+s]
			}
			for s, v := range m.beta.a {
				out[a*m.M+s] += end * v
			}
		}
	}
}

// inflowStale adds the pages that go stale with i+1 pages present, i >= 1.
func (p *sparse) inflowStale(i int, b []float64) {
	m, above := p.m, p.x[i+1]
	for k := range i {
		low := intPower(m.Q, i-1-k) * p.as
		for high := range intPower(m.Q, k) {
			out := b[high*low : (high+1)*low]
			for q, g := range m.g0.a {
				if g == 0 {
					continue
				}
				for x, v := range above[(high*m.Q+q)*low : (high*m.Q+q+1)*low] {
					out[x] += g * v
				}
			}
		}
	}
}

// odometer walks through the staleness phases of n pages.
type odometer struct {
	digit []int
	low   []int
	q     int
	key   int // of the counts of phases
}

func (p *sparse) newOdometer(n int, descending bool) *odometer {
	o := &odometer{digit: make([]int, n), low: make([]int, n)}
	for k := range n {
		o.low[k] = intPower(p.m.Q, n-1-k)
		if descending {
			o.digit[k] = p.m.Q - 1
			o.q += o.low[k] * o.digit[k]
			o.key += p.weight[o.digit[k]]
		}
	}
	return o
}

// nextState moves by one and reports whether there was one.
func (o *odometer) nextState(base int, weight []int, descending bool) bool {
	for k := len(o.digit) - 1; k >= 0; k-- {
		d := o.digit[k]
		to := d + 1
		if descending {
			to = d - 1
		}
		if to < 0 {
			to = base - 1
		}
		to %= base
		o.digit[k] = to
		o.q += (to - d) * o.low[k]
		o.key += weight[to] - weight[d]
		if descending && d > 0 || !descending && d < base-1 {
			return true
		}
	}
	return false
}

// blockInverse returns the inverse of the rates among the phases of arrival
// and service of level i, less those out of the staleness phases, transposed.
func (p *sparse) blockInverse(i int, o *odometer) (mat, error) {
	if v, ok := p.block[i][o.key]; ok {
		return v, nil
	}
	m := p.m
	var q mat
	if i == 0 {
		q = p.up[0][0].cloneMatrix()
	} else {
		q = kronSum(p.up[i][0], m.s)
	}
	exit := make([]float64, q.r)
	for x := range exit {
		for _, d := range o.digit {
			exit[x] -= m.g.at(d, d)
		}
		if i > 0 {
			exit[x] += m.s0.a[x%m.M]
		}
		a := x * m.W / q.r
		for _, d := range p.up[i][1:] {
			for _, v := range d.row(a) {
				exit[x] += v
			}
		}
	}
	f, err := factorizeMatrix(q, exit)
	if err != nil {
		return mat{}, fmt.Errorf("%d pages present: %w", i, err)
	}
	inv := identityMatrix(q.r)
	f.solveInPlace(inv)
	t := zeroMatrix(q.r, q.r)
	for a := range q.r {
		for b := range q.r {
			t.set(b, a, inv.at(a, b))
		}
	}
	p.block[i][o.key] = t
	return t, nil
}

// relaxLevel solves level i for what enters it and returns how much it changed.
func (p *sparse) relaxLevel(i int, descending bool) (float64, error) {
	x := p.x[i]
	b := p.buf[:len(x)]
	p.levelInflow(i, b)
	m, as := p.m, p.as
	if i == 0 {
		as = m.W
	}
	rhs := make([]float64, as)
	o := p.newOdometer(max(0, i-1), descending)
	changed := 0.0
	var inv mat
	last := -1
	for {
		copy(rhs, b[o.q*as:])
		for k, d := range o.digit {
			for from := range m.Q {
				if v := m.g.at(from, d); v != 0 && from != d {
					for y, w := range x[(o.q+(from-d)*o.low[k])*as:][:as] {
						rhs[y] += v * w
					}
				}
			}
		}
		if o.key != last {
			var err error
			if inv, err = p.blockInverse(i, o); err != nil {
				return 0, err
			}
			last = o.key
		}
		out := x[o.q*as : (o.q+1)*as]
		for y := range out {
			v := 0.0
			for z, w := range inv.row(y) {
				v += w * rhs[z]
			}
			changed += math.Abs(v - out[y])
			out[y] = v
		}
		if !o.nextState(m.Q, p.weight, descending) {
			return changed, nil
		}
	}
}

// staleRate returns the stale rate of all waiting pages of each state of a
// level: by staleness phases.
func (p *sparse) staleRates(i int) []float64 {
	out := make([]float64, p.stalenessPhaseCount(i))
	o := p.newOdometer(max(0, i-1), false)
	for {
		for _, d := range o.digit {
			out[o.q] += p.m.g0.a[d]
		}
		if !o.nextState(p.m.Q, p.weight, false) {
			return out
		}
	}
}

// aggregateMasses gives the masses by level, arrival and service their exact
// proportions for the present phases of staleness.
func (p *sparse) aggregateMasses() error {
	c := p.coarse
	mass := make([][]float64, p.m.N+1)
	for i := 1; i <= p.m.N; i++ {
		mass[i] = make([]float64, p.as)
		stale := make([]float64, p.as)
		for q, g := range p.staleRates(i) {
			for y, v := range p.x[i][q*p.as : (q+1)*p.as] {
				mass[i][y] += v
				stale[y] += g * v
			}
		}
		for k := range c.stale[i] {
			clear(c.stale[i][k])
		}
		if i >= 2 {
			for y, v := range stale {
				if mass[i][y] > 0 {
					c.stale[i][0][y] = v / mass[i][y]
				}
			}
		}
	}
	if err := c.solveChain(); err != nil {
		return err
	}
	copy(p.x[0], c.pi[0])
	for i := 1; i <= p.m.N; i++ {
		for y, z := range c.z[i] {
			if mass[i][y] > 0 {
				mass[i][y] = z / mass[i][y]
			}
		}
		for x := range p.x[i] {
			p.x[i][x] *= mass[i][x%p.as]
		}
	}
	return nil
}

var errSlow = errors.New("the iteration does not converge")

// The iteration ends when the mass that is still to move, by the rate of
// convergence of the last rounds, is less than settled, or when rounding keeps
// a change of less than noise from falling for as many rounds as patience.
const (
	settled   = 1e-12
	noise     = 1e-13
	patience  = 30
	maxRounds = 2000
)

// iterateLaw finds the law and returns the mass that it may be wrong by.
func (p *sparse) iterateLaw(ctx context.Context) (float64, error) {
	before, least, since, rate := math.Inf(1), math.Inf(1), 0, 0.0
	for round := range maxRounds {
		changed := 0.0
		for i := p.m.N; i >= 0; i-- {
			if err := ctx.Err(); err != nil {
				return 0, err
			}
			c, err := p.relaxLevel(i, false)
			if err != nil {
				return 0, err
			}
			changed += c
		}
		for i := range p.m.N + 1 {
			if _, err := p.relaxLevel(i, true); err != nil {
				return 0, err
			}
		}
		if err := p.aggregateMasses(); err != nil {
			return 0, err
		}
		// The rate is that of the worst of the last rounds, fading slowly.
		rate = max(.9*rate, min(changed/before, .9999))
		if changed == 0 {
			return 0, nil
		}
		if left := changed * rate / (1 - rate); round > 2 && left < settled {
			return left, nil
		}
		if changed < .7*least {
			least, since = changed, 0
		} else if since++; since >= patience && changed < noise {
			return changed * patience, nil
		}
		before = changed
	}
	return 0, fmt.Errorf("%w: a round still changes a mass of %.1g", errSlow, before)
}
