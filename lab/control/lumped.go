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

// kept returns how many phases are kept with i >= 1 pages present.
func (l *lumped) kept(i int) int { return min(i-1, l.keep) }

func newLumped(m *Model, policy []int, keep int) *lumped {
	l := &lumped{m: m, policy: policy, keep: keep, as: m.W * m.M}
	s := &solver{m: m, dim: make([]int, m.N+1), lev: make([]level, m.N+1), down: make([]mat, m.N+1), exit: make([][]float64, m.N+1), rate: make([][]mat, m.N+1)}
	l.solver = s
	l.law, l.stale, l.z = make([][][]float64, m.N+1), make([][][]float64, m.N+1), make([][]float64, m.N+1)
	for i := range s.dim {
		s.dim[i] = m.W
		if i > 0 {
			s.dim[i] = l.as * intPower(m.Q, l.kept(i))
		}
		l.up = append(l.up, l.upward(i))
		s.rate[i] = []mat{ones(s.dim[i])}
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

// upward is Model.upward with what is kept: formula (13).
func (l *lumped) upward(i int) []mat {
	m, room := l.m, l.m.N-i
	d := m.d[l.policy[i]]
	out := make([]mat, 1+min(m.K, room))
	if i == 0 {
		out[0] = d[0].clone()
	} else {
		out[0] = kronSum(d[0], m.phases(l.kept(i)))
	}
	for k := 1; k <= m.K; k++ {
		c := min(k, room)
		var b mat
		if i == 0 {
			b = kron(d[k], m.beta, power(m.gamma, l.kept(c)))
		} else {
			b = kron(d[k], identity(m.M), m.rest(l.kept(i)), power(m.gamma, l.kept(i+c)-l.kept(i)))
		}
		if out[c].a == nil {
			out[c] = b
		} else {
			out[c].add(b)
		}
	}
	return out
}

// downward is Model.downward with what is kept: formula (14).
func (l *lumped) downward(i int) mat {
	m, n := l.m, i-1
	if n <= l.keep {
		return m.downward(i)
	}
	size := intPower(m.Q, l.keep)
	out := zeros(l.as*size, l.as*size)
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
					base = remove(q, place, l.keep, m.Q) * m.Q
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
				if g := m.g0.a[digit(q, k, l.keep, m.Q)]; g > 0 {
					shift(k, identity(m.M), g)
				}
			}
		}
	}
	return out
}

// identityTimes returns n rows equal to v.
func identityTimes(v mat, n int) mat {
	out := zeros(n, v.c)
	for i := range n {
		copy(out.row(i), v.a)
	}
	return out
}

// digit returns the digit at place (from 0, the first is the most significant)
// of the number q of n digits to a base.
func digit(q, place, n, base int) int { return q / intPower(base, n-1-place) % base }

// remove returns q without the digit at place.
func remove(q, place, n, base int) int {
	low := intPower(base, n-1-place)
	return q/(low*base)*low + q%low
}

// solveChain finds the law of the reduced chain.
func (l *lumped) solveChain() error {
	s := l.solver
	for i := l.m.N; i >= 0; i-- {
		if i > 0 {
			s.down[i] = l.downward(i)
			s.exit[i] = s.down[i].sums()
		}
		v := s.room(i)
		for k, x := range l.up[i] {
			copy(v.up[k].a, x.a)
		}
		copy(v.u.a, s.rate[i][0].a)
		if err := s.eliminate(i); err != nil {
			return fmt.Errorf("%d pages present: %w", i, err)
		}
	}
	_, pi0, err := s.finish()
	if err != nil {
		return err
	}
	l.pi = s.law(pi0)
	for i := 1; i <= l.m.N; i++ {
		l.z[i] = make([]float64, l.as)
		size := intPower(l.m.Q, l.kept(i))
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
		n := l.kept(i)
		size := intPower(q, n)
		for k := range n {
			sum := make([]float64, l.as*q)
			for x, p := range l.pi[i] {
				sum[x/size*q+digit(x%size, k, n, q)] += p
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

// lumpedRounds is how often at most the laws are found anew.
const lumpedRounds = 400

// solve finds what agrees with itself.
func (l *lumped) solve(ctx context.Context) error {
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
			x := f.solve(l.arriving(k), next)
			l.mass = append([][]mat{x}, l.mass...)
			for i := k + 2; i <= l.m.N; i++ {
				if k >= l.keep {
					worst = max(worst, l.setLaw(i, k, x[i].a))
				}
			}
			next = x
		}
		if worst < 1e-11 {
			return l.ages()
		}
	}
	return fmt.Errorf("the laws of the lumped places did not settle in %d rounds", lumpedRounds)
}

// placeLife is the life of a page while it is at one place: formulas (15), (16).
type placeLife struct {
	l  *lumped
	k  int
	up [][]mat
	lu []mfactor
	g  []mat // where the level below is entered, if the page is still there
	e  []mat // probability that it leaves the place before
}

// factorPlace eliminates the levels from the top for the page at place k (from
// 0), while it stays there.
func (l *lumped) factorPlace(k int) (*placeLife, error) {
	m := l.m
	f := &placeLife{l: l, k: k, up: make([][]mat, m.N+1), lu: make([]mfactor, m.N+1), g: make([]mat, m.N+1), e: make([]mat, m.N+1)}
	for i := m.N; i >= k+2; i-- {
		d := m.d[l.policy[i]]
		room := m.N - i
		up := []mat{kronSum(kronSum(d[0], m.s), m.g)}
		for c := 1; c <= min(m.K, room); c++ {
			up = append(up, zeros(l.as*m.Q, l.as*m.Q))
		}
		for j := 1; j <= m.K; j++ {
			up[min(j, room)].add(kron(d[j], identity(m.M*m.Q)))
		}
		for c := len(up) - 1; c >= 1; c-- {
			if c < len(up)-1 {
				up[c].addMul(up[c+1], f.g[i+c+1])
			}
		}
		exit, down := l.leaving(i, k)
		if len(up) > 1 {
			up[0].addMul(up[1], f.g[i+1])
		}
		f.e[i] = zeros(len(exit), 1)
		for c := 1; c < len(up); c++ {
			f.e[i].addMul(up[c], f.e[i+c])
		}
		for x, v := range f.e[i].a {
			exit[x] += v
			f.e[i].a[x] = exit[x] - down[x]
		}
		lu, err := factor(up[0], exit)
		if err != nil {
			return nil, fmt.Errorf("place %d of %d: %w", k+1, i, err)
		}
		f.up[i], f.lu[i] = up, lu
		lu.solve(f.e[i])
		if i > k+2 {
			f.g[i] = zeros(l.as*m.Q, l.as*m.Q)
			for x, v := range down {
				f.g[i].set(x, x, v)
			}
			lu.solve(f.g[i])
		}
	}
	return f, nil
}

// leaving returns at which rates the page at place k leaves level i in all, and
// at which because one behind it goes stale, by (as, q).
func (l *lumped) leaving(i, k int) (exit, behind []float64) {
	m := l.m
	exit, behind = make([]float64, l.as*m.Q), make([]float64, l.as*m.Q)
	for x := range l.as {
		var ahead, after float64
		for j, r := range l.stale[i] {
			switch {
			case j < k:
				ahead += r[x]
			case j > k:
				after += r[x]
			}
		}
		for q := range m.Q {
			exit[x*m.Q+q] = ahead + after + m.g0.a[q] + m.s0.a[x%m.M]
			behind[x*m.Q+q] = after
		}
	}
	return exit, behind
}

// arriving returns the rates at which pages come to place k in a batch, for
// each level that the batch leads to.
func (l *lumped) arriving(k int) []mat {
	m := l.m
	out := make([]mat, m.N+1)
	for i := k + 2; i <= m.N; i++ {
		out[i] = zeros(1, l.as*m.Q)
	}
	for from := 0; from <= k+1; from++ {
		d, room := m.d[l.policy[from]], m.N-from
		for j := 1; j <= m.K; j++ {
			to := from + min(j, room)
			if to < k+2 {
				continue
			}
			var in mat
			if from == 0 {
				in = kron(rowVector(l.pi[0]).mul(d[j]), m.beta, m.gamma)
			} else {
				in = kron(rowVector(l.z[from]).mul(kron(d[j], identity(m.M))), m.gamma)
			}
			out[to].add(in)
		}
	}
	return out
}

// solve returns x with x (-T) = source + what moves up from the place behind.
func (f *placeLife) solve(source, behind []mat) []mat {
	l, m := f.l, f.l.m
	b := make([]mat, m.N+1)
	for i := m.N; i >= f.k+2; i-- {
		b[i] = source[i].clone()
		if i < m.N && behind[i+1].a != nil {
			b[i].add(l.advance(behind[i+1], i+1, f.k+1))
		}
		if i < m.N {
			b[i].addMul(b[i+1], f.g[i+1])
		}
	}
	x := make([]mat, m.N+1)
	for i := f.k + 2; i <= m.N; i++ {
		x[i] = b[i]
		for j := max(f.k+2, i-m.K); j < i; j++ {
			x[i].addMul(x[j], f.up[j][i-j])
		}
		f.lu[i].solveLeft(x[i].a)
	}
	return x
}

// advance returns the rates at which the page at place k of level i comes one
// place nearer: the head enters service, or one ahead goes stale.
func (l *lumped) advance(x mat, i, k int) mat {
	m := l.m
	out := zeros(1, l.as*m.Q)
	for y := range l.as {
		a, s := y/m.M, y%m.M
		ahead := 0.0
		for _, r := range l.stale[i][:k] {
			ahead += r[y]
		}
		for q := range m.Q {
			v := x.a[y*m.Q+q]
			out.a[y*m.Q+q] += v * ahead
			for s2, w := range m.beta.a {
				out.a[(a*m.M+s2)*m.Q+q] += v * m.s0.a[s] * w
			}
		}
	}
	return out
}

// ages finds the ages of the waiting pages: they grow by 1 a time.
func (l *lumped) ages() error {
	l.age = make([][]mat, max(0, l.m.N-1))
	next := make([]mat, l.m.N+1)
	for k := l.m.N - 2; k >= 0; k-- {
		f, err := l.factorPlace(k)
		if err != nil {
			return err
		}
		next = f.solve(l.mass[k], next)
		l.age[k] = next
	}
	return nil
}

// accruals returns the long-run rates.
func (l *lumped) accruals() (acc, length []float64) {
	m := l.m
	acc, length = make([]float64, accruals), make([]float64, m.N+1)
	service, _ := m.ServiceMoments()
	for i, pi := range l.pi {
		inner := len(pi) / m.W
		size := intPower(m.Q, l.kept(max(i, 1)))
		for x, p := range pi {
			length[i] += p
			o := acc
			o[accTime] += p
			o[accRobots] += p * float64(l.policy[i]+1)
			o[accLength] += p * float64(i)
			for k := 1; k <= m.K; k++ {
				for _, v := range m.d[l.policy[i]][k].row(x / inner) {
					o[accPages] += p * v * float64(k)
					o[accLoss] += p * v * float64(max(0, k-(m.N-i)))
					if i == 0 {
						o[accServed] += p * v // its service begins at once
					}
				}
			}
			if i == 0 {
				o[accStarvation] += p
				continue
			}
			o[accSuccess] += p * m.s0.a[x/size%m.M]
			for k := range l.kept(i) {
				o[accObsolete] += p * m.g0.a[digit(x%size, k, l.kept(i), m.Q)]
			}
			for k := l.kept(i); k < i-1; k++ {
				o[accObsolete] += p * l.stale[i][k][x/size]
			}
		}
	}
	for k := range l.age {
		for i := k + 2; i <= m.N; i++ {
			for x, n := range l.age[k][i].a {
				acc[accStaleTime] += n * m.g0.a[x%m.Q]
				if k == 0 {
					rate := m.s0.a[x/m.Q%m.M]
					acc[accServedTime] += n * rate
					acc[accServed] += l.mass[0][i].a[x] * rate
				}
			}
		}
	}
	acc[accServedTime] += acc[accServed] * service
	// By Little's law the two add to the length; the chain knows that better.
	f := acc[accLength] / (acc[accServedTime] + acc[accStaleTime])
	acc[accServedTime] *= f
	acc[accStaleTime] *= f
	return acc, length
}

// lumpedResult solves with keep phases kept.
func (m *Model) lumpedResult(ctx context.Context, policy []int, keep int) (Result, error) {
	p := make([]int, len(policy))
	for i, r := range policy {
		p[i] = r - 1
	}
	l := newLumped(m, p, keep)
	if err := l.solve(ctx); err != nil {
		return Result{}, err
	}
	acc, length := l.accruals()
	r, err := m.measures(acc)
	r.QueueLength = length
	r.Method, r.States = fmt.Sprintf("lumped, %d phases kept", keep), 0
	for _, n := range l.solver.dim {
		r.States += float64(n)
	}
	return r, err
}
