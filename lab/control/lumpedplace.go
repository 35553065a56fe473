package control

import (
	"fmt"
)

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
			up = append(up, zeroMatrix(l.as*m.Q, l.as*m.Q))
		}
		for j := 1; j <= m.K; j++ {
			up[min(j, room)].addInPlace(kroneckerProduct(d[j], identityMatrix(m.M*m.Q)))
		}
		for c := len(up) - 1; c >= 1; c-- {
			if c < len(up)-1 {
				up[c].addMul(up[c+1], f.g[i+c+1])
			}
		}
		exit, down := l.departureRates(i, k)
		if len(up) > 1 {
			up[0].addMul(up[1], f.g[i+1])
		}
		f.e[i] = zeroMatrix(len(exit), 1)
		for c := 1; c < len(up); c++ {
			f.e[i].addMul(up[c], f.e[i+c])
		}
		for x, v := range f.e[i].a {
			exit[x] += v
			f.e[i].a[x] = exit[x] - down[x]
		}
		lu, err := factorizeMatrix(up[0], exit)
		if err != nil {
			return nil, fmt.Errorf("place %d of %d: %w", k+1, i, err)
		}
		f.up[i], f.lu[i] = up, lu
		lu.solveInPlace(f.e[i])
		if i > k+2 {
			f.g[i] = zeroMatrix(l.as*m.Q, l.as*m.Q)
			for x, v := range down {
				f.g[i].set(x, x, v)
			}
			lu.solveInPlace(f.g[i])
		}
	}
	return f, nil
}

// departureRates returns at which rates the page at place k leaves level i in all, and
// at which because one behind it goes stale, by (as, q).
func (l *lumped) departureRates(i, k int) (exit, behind []float64) {
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

// arrivalRatesAtPlace returns the rates at which pages come to place k in a batch, for
// each level that the batch leads to.
func (l *lumped) arrivalRatesAtPlace(k int) []mat {
	m := l.m
	out := make([]mat, m.N+1)
	for i := k + 2; i <= m.N; i++ {
		out[i] = zeroMatrix(1, l.as*m.Q)
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
				in = kroneckerProduct(rowVector(l.pi[0]).mul(d[j]), m.beta, m.gamma)
			} else {
				in = kroneckerProduct(rowVector(l.z[from]).mul(kroneckerProduct(d[j], identityMatrix(m.M))), m.gamma)
			}
			out[to].addInPlace(in)
		}
	}
	return out
}

// solvePlace returns x with x (-T) = source + what moves up from the place behind.
func (f *placeLife) solvePlace(source, behind []mat) []mat {
	l, m := f.l, f.l.m
	b := make([]mat, m.N+1)
	for i := m.N; i >= f.k+2; i-- {
		b[i] = source[i].cloneMatrix()
		if i < m.N && behind[i+1].a != nil {
			b[i].addInPlace(l.advancementRates(behind[i+1], i+1, f.k+1))
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

// advancementRates returns the rates at which the page at place k of level i comes one
// place nearer: the head enters service, or one ahead goes stale.
func (l *lumped) advancementRates(x mat, i, k int) mat {
	m := l.m
	out := zeroMatrix(1, l.as*m.Q)
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

// solveWaitingAges finds the ages of the waiting pages: they grow by 1 a time.
func (l *lumped) solveWaitingAges() error {
	l.age = make([][]mat, max(0, l.m.N-1))
	next := make([]mat, l.m.N+1)
	for k := l.m.N - 2; k >= 0; k-- {
		f, err := l.factorPlace(k)
		if err != nil {
			return err
		}
		next = f.solvePlace(l.mass[k], next)
		l.age[k] = next
	}
	return nil
}

// lumpedAccruals returns the long-run rates.
func (l *lumped) lumpedAccruals() (acc, length []float64) {
	m := l.m
	acc, length = make([]float64, accruals), make([]float64, m.N+1)
	service, _ := m.ServiceMoments()
	for i, pi := range l.pi {
		inner := len(pi) / m.W
		size := intPower(m.Q, l.keptPhaseCount(max(i, 1)))
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
			for k := range l.keptPhaseCount(i) {
				o[accObsolete] += p * m.g0.a[digitAt(x%size, k, l.keptPhaseCount(i), m.Q)]
			}
			for k := l.keptPhaseCount(i); k < i-1; k++ {
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
