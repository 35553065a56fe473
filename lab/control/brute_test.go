package control

import (
	"fmt"
	"math"
	"testing"
)

// The brute force knows nothing of Kronecker products, levels or censoring: it
// walks from state to state by the rules of the model, writes one balance
// equation a state and solves them by elimination with pivoting.

// plain is what the brute force knows: modes d[r][k][a][b].
type plain struct {
	n      int
	d      [][][][]float64
	beta   []float64
	s      [][]float64
	gamma  []float64
	g      [][]float64
	policy []int
	aware  func(p place) int // the mode where it depends on the phases
}

func (m *plain) mode(p place) int {
	if m.aware != nil {
		return m.aware(p)
	}
	return m.policy[present(p)]
}

type place struct {
	a, s int // s = -1 with no page present
	q    []int
}

func (p place) key() string { return fmt.Sprint(p.a, p.s, p.q) }

func leaveRate(t [][]float64, i int) float64 {
	sum := 0.0
	for _, v := range t[i] {
		sum -= v
	}
	return max(0, sum)
}

// choose calls f for every way in which k phases are drawn from law.
func choose(law []float64, k int, f func(q []int, w float64)) {
	var walk func(q []int, w float64)
	walk = func(q []int, w float64) {
		if len(q) == k {
			f(append([]int(nil), q...), w)
			return
		}
		for i, v := range law {
			if v > 0 {
				walk(append(append([]int(nil), q...), i), w*v)
			}
		}
	}
	walk(nil, 1)
}

func present(p place) int {
	if p.s < 0 {
		return 0
	}
	return 1 + len(p.q)
}

// serve calls f for what the end of a service leads to.
func (m *plain) serve(p place, f func(place, float64)) {
	if len(p.q) == 0 {
		f(place{p.a, -1, nil}, 1)
		return
	}
	for s, w := range m.beta {
		f(place{p.a, s, append([]int(nil), p.q[1:]...)}, w)
	}
}

func without(q []int, i int) []int {
	return append(append([]int(nil), q[:i]...), q[i+1:]...)
}

func with(q []int, i, v int) []int {
	c := append([]int(nil), q...)
	c[i] = v
	return c
}

// moves calls f for each move with its rate.
func (m *plain) moves(p place, f func(to place, rate float64)) {
	n := present(p)
	d := m.d[m.mode(p)-1]
	for k := range d {
		for b, v := range d[k][p.a] {
			if v <= 0 {
				continue
			}
			c := min(k, m.n-n)
			if c == 0 {
				f(place{b, p.s, p.q}, v)
				continue
			}
			if n > 0 {
				choose(m.gamma, c, func(q []int, w float64) { f(place{b, p.s, append(append([]int(nil), p.q...), q...)}, v*w) })
				continue
			}
			for s, x := range m.beta {
				choose(m.gamma, c-1, func(q []int, w float64) { f(place{b, s, q}, v*w*x) })
			}
		}
	}
	if n == 0 {
		return
	}
	for s, v := range m.s[p.s] {
		if s != p.s && v > 0 {
			f(place{p.a, s, p.q}, v)
		}
	}
	m.serve(p, func(to place, w float64) { f(to, w*leaveRate(m.s, p.s)) })
	for i, x := range p.q {
		for y, v := range m.g[x] {
			if y != x && v > 0 {
				f(place{p.a, p.s, with(p.q, i, y)}, v)
			}
		}
		f(place{p.a, p.s, without(p.q, i)}, leaveRate(m.g, x))
	}
}

// gauss solves a x = b by elimination with partial pivoting.
func gauss(t *testing.T, a [][]float64, b []float64) []float64 {
	t.Helper()
	n := len(b)
	for k := range n {
		p := k
		for i := k; i < n; i++ {
			if math.Abs(a[i][k]) > math.Abs(a[p][k]) {
				p = i
			}
		}
		if a[p][k] == 0 {
			t.Fatal("brute force: singular")
		}
		a[k], a[p], b[k], b[p] = a[p], a[k], b[p], b[k]
		for i := k + 1; i < n; i++ {
			f := a[i][k] / a[k][k]
			if f == 0 {
				continue
			}
			for j := k; j < n; j++ {
				a[i][j] -= f * a[k][j]
			}
			b[i] -= f * b[k]
		}
	}
	x := make([]float64, n)
	for i := n - 1; i >= 0; i-- {
		x[i] = b[i]
		for j := i + 1; j < n; j++ {
			x[i] -= a[i][j] * x[j]
		}
		x[i] /= a[i][i]
	}
	return x
}

// solve returns the measures.
func (m *plain) solve(t *testing.T) Result {
	t.Helper()
	index, states := map[string]int{}, []place{}
	id := func(p place) int {
		k := p.key()
		if i, ok := index[k]; ok {
			return i
		}
		index[k] = len(states)
		states = append(states, p)
		return index[k]
	}
	id(place{0, -1, nil})
	type move struct {
		from, to int
		rate     float64
	}
	var all []move
	for i := 0; i < len(states); i++ {
		m.moves(states[i], func(to place, rate float64) {
			if rate > 0 {
				all = append(all, move{i, id(to), rate})
			}
		})
	}
	n := len(states)
	a, b := make([][]float64, n), make([]float64, n)
	for i := range a {
		a[i] = make([]float64, n)
	}
	for _, v := range all {
		a[v.to][v.from] += v.rate
		a[v.from][v.from] -= v.rate
	}
	for j := range n {
		a[n-1][j] = 1
	}
	b[n-1] = 1
	pi := gauss(t, a, b)

	r := Result{QueueLength: make([]float64, m.n+1), States: float64(n)}
	var lost, stale, served, servedTime, staleTime float64
	memo := map[string][3]float64{}
	for i, p := range states {
		l := present(p)
		r.QueueLength[l] += pi[i]
		mode := m.mode(p)
		r.MeanRobots += float64(mode) * pi[i]
		if l > 0 {
			served += pi[i] * leaveRate(m.s, p.s)
		}
		for _, q := range p.q {
			stale += pi[i] * leaveRate(m.g, q)
		}
		for k, d := range m.d[mode-1] {
			if k == 0 {
				continue
			}
			rate := 0.0
			for _, v := range d[p.a] {
				rate += v
			}
			r.ArrivalRate += pi[i] * float64(k) * rate
			lost += pi[i] * float64(max(0, k-(m.n-l))) * rate
			for c := 1; c <= min(k, m.n-l); c++ { // each accepted page, seen with those before it
				put := func(s int, q []int, w float64) {
					f := m.fate(t, memo, s, q)
					servedTime += pi[i] * rate * w * f[1]
					staleTime += pi[i] * rate * w * f[2]
				}
				if l > 0 {
					choose(m.gamma, c, func(q []int, w float64) { put(p.s, append(append([]int(nil), p.q...), q...), w) })
					continue
				}
				for s, x := range m.beta {
					choose(m.gamma, c-1, func(q []int, w float64) { put(s, q, w*x) })
				}
			}
		}
	}
	r.Starvation = r.QueueLength[0]
	r.Loss, r.Obsolete, r.Success = lost/r.ArrivalRate, stale/r.ArrivalRate, served/r.ArrivalRate
	r.SojournServed = servedTime / served
	if stale > 0 {
		r.SojournObsolete = staleTime / stale
	}
	for i, p := range r.QueueLength {
		r.Sojourn += float64(i) * p / r.ArrivalRate
	}
	return r
}

// fate follows the last page of those present: P(served), E[time; served],
// E[time; stale], by one set of equations over all phases with as many present.
func (m *plain) fate(t *testing.T, memo map[string][3]float64, s int, q []int) [3]float64 {
	t.Helper()
	key := place{0, s, q}.key()
	if f, ok := memo[key]; ok {
		return f
	}
	var here []place
	index := map[string]int{}
	every := make([]float64, len(m.gamma))
	for i := range every {
		every[i] = 1
	}
	for x := range m.beta {
		choose(every, len(q), func(q []int, _ float64) {
			p := place{0, x, q}
			index[p.key()] = len(here)
			here = append(here, p)
		})
	}
	n := len(here)
	out := make([][]float64, 3)
	first := make([]float64, n)
	for what := range out {
		a, b := make([][]float64, n), make([]float64, n)
		for i, p := range here {
			a[i] = make([]float64, n)
			go1 := func(to place, rate float64) {
				a[i][i] += rate
				a[i][index[to.key()]] -= rate
			}
			down := func(to place, rate float64) {
				a[i][i] += rate
				b[i] += rate * m.fate(t, memo, to.s, to.q)[what]
			}
			for y, v := range m.s[p.s] {
				if y != p.s && v > 0 {
					go1(place{0, y, p.q}, v)
				}
			}
			end := leaveRate(m.s, p.s)
			switch {
			case end == 0:
			case len(p.q) == 0: // the page itself is served
				a[i][i] += end
				if what == 0 {
					b[i] += end
				}
			default:
				m.serve(p, func(to place, w float64) {
					if w > 0 {
						down(to, w*end)
					}
				})
			}
			for k, x := range p.q {
				for y, v := range m.g[x] {
					if y != x && v > 0 {
						go1(place{0, p.s, with(p.q, k, y)}, v)
					}
				}
				gone := leaveRate(m.g, x)
				switch {
				case gone == 0:
				case k == len(p.q)-1: // the page itself is stale
					a[i][i] += gone
				default:
					down(place{0, p.s, without(p.q, k)}, gone)
				}
			}
			switch what {
			case 1:
				b[i] += first[i]
			case 2:
				b[i] += 1 - first[i]
			}
		}
		out[what] = gauss(t, a, b)
		if what == 0 {
			first = out[0]
		}
	}
	for i, p := range here {
		memo[p.key()] = [3]float64{out[0][i], out[1][i], out[2][i]}
	}
	return memo[key]
}
