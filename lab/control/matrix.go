package control

import (
	"errors"
	"math"
)

// mat is a dense matrix by rows.
type mat struct {
	r, c int
	a    []float64
}

func zeroMatrix(r, c int) mat { return mat{r, c, make([]float64, r*c)} }

func identityMatrix(n int) mat {
	m := zeroMatrix(n, n)
	for i := range n {
		m.a[i*n+i] = 1
	}
	return m
}

// fromRows copies rows of equal length.
func fromRows(rows [][]float64) mat {
	m := zeroMatrix(len(rows), len(rows[0]))
	for i, r := range rows {
		copy(m.row(i), r)
	}
	return m
}

func rowVector(v []float64) mat { return mat{1, len(v), v} }

func (m mat) row(i int) []float64     { return m.a[i*m.c : (i+1)*m.c] }
func (m mat) at(i, j int) float64     { return m.a[i*m.c+j] }
func (m mat) set(i, j int, v float64) { m.a[i*m.c+j] = v }

func (m mat) cloneMatrix() mat { return mat{m.r, m.c, append([]float64(nil), m.a...)} }

// addInPlace adds b to m in place and returns m.
func (m mat) addInPlace(b mat) mat {
	for i, v := range b.a {
		m.a[i] += v
	}
	return m
}

// scaleInPlace multiplies m in place and returns it.
func (m mat) scaleInPlace(f float64) mat {
	for i := range m.a {
		m.a[i] *= f
	}
	return m
}

// A time until an overloaded queue empties grows as a power of its capacity and
// soon exceeds what a float64 can hold. Such times are therefore kept in units
// of a power of two, which drop out in the quotients that are wanted.
const maxExponent = 300

// shiftExponent multiplies m by 2^by.
func (m mat) shiftExponent(by int) {
	if by == 0 {
		return
	}
	for k, v := range m.a {
		m.a[k] = math.Ldexp(v, by)
	}
}

// inUnit returns m, which is in units of 2^from, in units of 2^to: m itself if
// they are equal.
func (m mat) inUnit(from, to int) mat {
	if from == to {
		return m
	}
	m = m.cloneMatrix()
	m.shiftExponent(from - to)
	return m
}

// normalizeExponent brings the greatest entry of m, which is in units of 2^unit, near 1
// if it is far from 1, and returns the unit that m is in then.
func (m mat) normalizeExponent(unit int) int {
	greatest := 0.0
	for _, v := range m.a {
		greatest = max(greatest, math.Abs(v))
	}
	_, e := math.Frexp(greatest)
	if -maxExponent <= e && e <= maxExponent {
		return unit
	}
	m.shiftExponent(-e)
	return unit + e
}

// rowSums returns the row sums.
func (m mat) rowSums() []float64 {
	s := make([]float64, m.r)
	for i := range s {
		for _, v := range m.row(i) {
			s[i] += v
		}
	}
	return s
}

// addMul adds a*b to m in place.
func (m mat) addMul(a, b mat) {
	n := b.c
	for i := range a.r {
		out := m.a[i*n : (i+1)*n]
		for k, v := range a.row(i) {
			if v == 0 {
				continue
			}
			for j, w := range b.a[k*n : (k+1)*n] {
				out[j] += v * w
			}
		}
	}
}

// mul returns m*b.
func (m mat) mul(b mat) mat {
	p := zeroMatrix(m.r, b.c)
	p.addMul(m, b)
	return p
}

// kroneckerProduct returns the Kronecker product of the factors, from left to right.
func kroneckerProduct(f ...mat) mat {
	p := f[0]
	for _, b := range f[1:] {
		q := zeroMatrix(p.r*b.r, p.c*b.c)
		for i := range p.r {
			for j := range p.c {
				v := p.at(i, j)
				if v == 0 {
					continue
				}
				for k := range b.r {
					out := q.a[(i*b.r+k)*q.c+j*b.c:]
					for l, w := range b.row(k) {
						out[l] = v * w
					}
				}
			}
		}
		p = q
	}
	return p
}

// kronSum returns the Kronecker sum of two square matrices.
func kronSum(a, b mat) mat {
	return kroneckerProduct(a, identityMatrix(b.r)).addInPlace(kroneckerProduct(identityMatrix(a.r), b))
}

// kroneckerPower returns the n-fold Kronecker power; the 0-fold one is the number 1.
func kroneckerPower(m mat, n int) mat {
	p := identityMatrix(1)
	for range n {
		p = kroneckerProduct(p, m)
	}
	return p
}

var errClosed = errors.New("states of a level are never left downwards")

// mfactor is the LU factorisation of -Q for the rates Q within a set of
// states that is left at the rates exit. Like elimination by Grassmann, Taksar
// and Heyman it never subtracts: a diagonal is the sum of what remains to its
// right and the exit. So every entry has small relative error however stiff Q.
type mfactor struct {
	n  int
	lu mat // below the diagonal minus L, on it U, above it minus U
}

// factorizeMatrix factorises in place; the diagonal of q is not read, q and exit are
// overwritten.
func factorizeMatrix(q mat, exit []float64) (mfactor, error) {
	n := q.r
	for k := range n {
		rk := q.row(k)
		d := exit[k]
		for _, v := range rk[k+1:] {
			d += v
		}
		if !(d > 0) {
			return mfactor{}, errClosed
		}
		rk[k] = d
		for i := k + 1; i < n; i++ {
			ri := q.row(i)
			if ri[k] == 0 {
				continue
			}
			l := ri[k] / d
			ri[k] = l
			for j := k + 1; j < n; j++ {
				ri[j] += l * rk[j]
			}
			exit[i] += l * exit[k]
		}
	}
	return mfactor{n, q}, nil
}

// solveInPlace overwrites b by (-Q)^{-1} b.
func (f mfactor) solveInPlace(b mat) {
	n, c := f.n, b.c
	for i := 1; i < n; i++ {
		out := b.a[i*c : (i+1)*c]
		for j, l := range f.lu.row(i)[:i] {
			if l != 0 {
				for k, v := range b.a[j*c : (j+1)*c] {
					out[k] += l * v
				}
			}
		}
	}
	for i := n - 1; i >= 0; i-- {
		out, r := b.a[i*c:(i+1)*c], f.lu.row(i)
		for j := i + 1; j < n; j++ {
			if u := r[j]; u != 0 {
				for k, v := range b.a[j*c : (j+1)*c] {
					out[k] += u * v
				}
			}
		}
		for k := range out {
			out[k] /= r[i]
		}
	}
}

// solveLeft overwrites x by x (-Q)^{-1}.
func (f mfactor) solveLeft(x []float64) {
	for j := range f.n {
		r := f.lu.row(j)
		x[j] /= r[j]
		if x[j] != 0 {
			for k := j + 1; k < f.n; k++ {
				x[k] += x[j] * r[k]
			}
		}
	}
	for i := f.n - 1; i > 0; i-- {
		if x[i] != 0 {
			for j, l := range f.lu.row(i)[:i] {
				x[j] += x[i] * l
			}
		}
	}
}

// errReducible says that the stationary law depends on where the chain begins.
var errReducible = errors.New("the phases fall into separate classes, so that the long run depends on the start")

// stationaryLaw returns the stationary law of the rates q (its diagonal is not
// read). Transient states get 0; with more than one closed class there is none.
func stationaryLaw(q mat) ([]float64, error) {
	n := q.r
	reach := make([][]bool, n)
	for i := range reach {
		reach[i] = make([]bool, n)
		stack := []int{i}
		reach[i][i] = true
		for len(stack) > 0 {
			k := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			for j, v := range q.row(k) {
				if v > 0 && !reach[i][j] {
					reach[i][j] = true
					stack = append(stack, j)
				}
			}
		}
	}
	// A state that is reached from everywhere lies in the only closed class.
	in := make([]int, 0, n)
	for j := range n {
		all := true
		for i := range n {
			all = all && reach[i][j]
		}
		if all {
			in = append(in, j)
		}
	}
	if len(in) == 0 {
		return nil, errReducible
	}
	m := len(in)
	a := zeroMatrix(m, m)
	for i, s := range in {
		for j, t := range in {
			a.set(i, j, q.at(s, t))
		}
	}
	x := make([]float64, m)
	if !eliminateGTH(a, x) {
		return nil, errReducible
	}
	pi := make([]float64, n)
	for i, s := range in {
		pi[s] = x[i]
	}
	return pi, nil
}

// eliminateGTH puts the stationary law of the rates or probabilities a (the diagonal is
// not read) into x by elimination without subtraction and overwrites a. It
// says false if some state is never left towards those before it.
func eliminateGTH(a mat, x []float64) bool {
	m := a.r
	for k := m - 1; k > 0; k-- {
		rk := a.row(k)[:k]
		d := 0.0
		for _, v := range rk {
			d += v
		}
		if !(d > 0) {
			return false
		}
		for i := range k {
			ri := a.row(i)
			f := ri[k] / d
			ri[k] = f
			if f != 0 {
				for j, v := range rk {
					ri[j] += f * v
				}
			}
		}
	}
	total := 1.0
	x[0] = 1
	for k := 1; k < m; k++ {
		x[k] = 0
		for i := range k {
			x[k] += x[i] * a.at(i, k)
		}
		total += x[k]
	}
	for i := range x {
		x[i] /= total
	}
	return true
}
