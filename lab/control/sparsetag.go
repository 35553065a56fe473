package control

import (
	"context"
	"math"
)

// tags are for the page at the last place, from all phases of service and
// staleness: the probability of being served and mean times, by the phases of
// staleness first. Formula (8) without a matrix.
type tags struct {
	h, y, z []float64
}

// nextPlaceTags returns the tags of place i from the tags of the place before it.
func (p *sparse) nextPlaceTags(i int, before tags) (tags, error) {
	n := p.stalenessPhaseCount(i) * p.m.M
	t := tags{make([]float64, n), make([]float64, n), make([]float64, n)}
	if i == 1 {
		for k := range t.h {
			t.h[k], t.y[k] = 1, 1
		}
		return t, p.solvePlaceLifetime(i, t.y)
	}
	p.addDeparturesAhead(i, before.h, t.h)
	if err := p.solvePlaceLifetime(i, t.h); err != nil {
		return t, err
	}
	p.addDeparturesAhead(i, before.y, t.y)
	p.addDeparturesAhead(i, before.z, t.z)
	for k, h := range t.h {
		t.y[k] += h
		t.z[k] += max(0, 1-h)
	}
	if err := p.solvePlaceLifetime(i, t.y); err != nil {
		return t, err
	}
	return t, p.solvePlaceLifetime(i, t.z)
}

// addDeparturesAhead adds to out what follows when the head enters service or a page ahead
// of the tagged one goes stale.
func (p *sparse) addDeparturesAhead(i int, before, out []float64) {
	m, n := p.m, i-1
	size := p.stalenessPhaseCount(i - 1)
	for q := range p.stalenessPhaseCount(i) {
		from := before[q%size*m.M : (q%size+1)*m.M]
		start := 0.0
		for s, v := range m.beta.a {
			start += v * from[s]
		}
		for s, v := range m.s0.a {
			out[q*m.M+s] += v * start
		}
	}
	for k := range n - 1 {
		low := intPower(m.Q, n-1-k) * m.M
		for high := range intPower(m.Q, k) {
			from := before[high*low : (high+1)*low]
			for q, g := range m.g0.a {
				if g == 0 {
					continue
				}
				for x, v := range out[(high*m.Q+q)*low : (high*m.Q+q+1)*low] {
					out[(high*m.Q+q)*low+x] = v + g*from[x]
				}
			}
		}
	}
}

// solvePlaceLifetime overwrites b by (-T)^{-1} b for place i: one pass against the order of
// the phases if those do not return, else as many as it takes.
func (p *sparse) solvePlaceLifetime(i int, b []float64) error {
	m := p.m
	x := make([]float64, len(b))
	inverse := map[int]mat{}
	for range maxRounds {
		worst := 0.0
		rhs := make([]float64, m.M)
		o := p.newOdometer(i-1, true)
		for {
			copy(rhs, b[o.q*m.M:])
			for k, d := range o.digit {
				for to, v := range m.g.row(d) {
					if v != 0 && to != d {
						for s, w := range x[(o.q+(to-d)*o.low[k])*m.M:][:m.M] {
							rhs[s] += v * w
						}
					}
				}
			}
			inv, ok := inverse[o.key]
			if !ok {
				exit := append([]float64(nil), m.s0.a...)
				for s := range exit {
					for _, d := range o.digit {
						exit[s] -= m.g.at(d, d)
					}
				}
				f, err := factorizeMatrix(m.s.cloneMatrix(), exit)
				if err != nil {
					return err
				}
				inv = identityMatrix(m.M)
				f.solveInPlace(inv)
				inverse[o.key] = inv
			}
			for s := range m.M {
				v := 0.0
				for z, w := range inv.row(s) {
					v += w * rhs[z]
				}
				at := o.q*m.M + s
				if d := math.Abs(v - x[at]); d > 1e-15*math.Abs(v) {
					worst = max(worst, d/math.Abs(v))
				}
				x[at] = v
			}
			if !o.nextState(m.Q, p.weight, true) {
				break
			}
		}
		if worst < 1e-13 {
			copy(b, x)
			return nil
		}
	}
	return errSlow
}

// foldLastPhases averages a vector by (staleness, service) over the phases of the last c
// pages.
func (p *sparse) foldLastPhases(v []float64, c int) []float64 {
	gamma := p.gamma[c]
	out := make([]float64, len(v)/len(gamma))
	for q := range len(out) / p.m.M {
		for t, g := range gamma {
			if g != 0 {
				for s := range p.m.M {
					out[q*p.m.M+s] += g * v[(q*len(gamma)+t)*p.m.M+s]
				}
			}
		}
	}
	return out
}

// addSojourns adds to acc the fates of the arriving pages.
func (p *sparse) addSojourns(acc []float64) error {
	m := p.m
	var t tags
	for i := 1; i <= m.N; i++ {
		var err error
		if t, err = p.nextPlaceTags(i, t); err != nil {
			return err
		}
		for c := 1; c <= min(m.K, i); c++ {
			from := i - c
			tail := make([]float64, m.W)
			for k := c; k <= m.K; k++ {
				for a, v := range m.d[p.policy[from]][k].rowSums() {
					tail[a] += v
				}
			}
			for which, v := range [][]float64{t.h, t.y, t.z} {
				acc[[]int{accServed, accServedTime, accStaleTime}[which]] += p.sumOverBatchPlace(from, c, tail, v)
			}
		}
	}
	return nil
}

// sumOverBatchPlace sums v over the pages that come as the c-th of a batch at level from.
func (p *sparse) sumOverBatchPlace(from, c int, tail, v []float64) float64 {
	m, sum := p.m, 0.0
	if from == 0 {
		e := rowVector(m.beta.a).mul(mat{m.M, 1, p.foldLastPhases(v, c-1)}).a[0]
		for a, x := range p.x[0] {
			sum += x * tail[a] * e
		}
		return sum
	}
	e := p.foldLastPhases(v, c)
	for x, w := range p.x[from] {
		sum += w * tail[x%p.as/m.M] * e[x/p.as*m.M+x%m.M]
	}
	return sum
}

// sparseAccruals returns the long-run rates and the law of the number of pages.
func (p *sparse) sparseAccruals() (acc, length []float64, err error) {
	m := p.m
	acc, length = make([]float64, accruals), make([]float64, m.N+1)
	for i, x := range p.x {
		d, room := m.d[p.policy[i]], m.N-i
		pages, lost := make([]float64, m.W), make([]float64, m.W)
		for k := 1; k <= m.K; k++ {
			for a, v := range d[k].rowSums() {
				pages[a] += float64(k) * v
				lost[a] += float64(max(0, k-room)) * v
			}
		}
		stale := p.staleRates(i)
		as := len(x) / len(stale)
		for y, v := range x {
			length[i] += v
			a := y % as * m.W / as
			acc[accPages] += v * pages[a]
			acc[accLoss] += v * lost[a]
			acc[accObsolete] += v * stale[y/as]
			if i > 0 {
				acc[accSuccess] += v * m.s0.a[y%m.M]
			}
		}
		acc[accTime] += length[i]
		acc[accRobots] += length[i] * float64(p.policy[i]+1)
		acc[accLength] += length[i] * float64(i)
	}
	acc[accStarvation] = length[0]
	return acc, length, p.addSojourns(acc)
}

// solveIteratively solves without a matrix of the chain.
func (m *Model) solveIteratively(ctx context.Context, policy []int) (Result, error) {
	modes := make([]int, len(policy))
	for i, r := range policy {
		modes[i] = r - 1
	}
	p, err := newSparse(ctx, m, modes)
	if err != nil {
		return Result{}, err
	}
	wrong, err := p.iterateLaw(ctx)
	if err != nil {
		return Result{}, err
	}
	acc, length, err := p.sparseAccruals()
	if err != nil {
		return Result{}, err
	}
	r, err := m.measuresFromAccruals(acc)
	if err != nil {
		return r, err
	}
	r.QueueLength, r.Method, r.States = length, Iterative, m.States()
	r.Error, err = balanceError(acc)
	r.Error = max(r.Error, wrong)
	return r, err
}
