package control

// A policy is cut at a level: the levels above it have been eliminated
// downwards (solver.lev), those up to it upwards (foot). Both parts are shared
// by all policies that agree there, so that an optimum over very many policies
// costs a few products of small matrices for each.

// foot is the elimination of the levels 0..i: what happens from an entry at
// level i until a level above is reached. Formulas (9)-(11).
type foot struct {
	to   []mat // to[k]: probabilities that level i+k is reached first, k >= 1; to[0] is work space
	u    mat   // accruals until then, in units of 2^unit
	unit int
}

func (s *solver) newFoot(i int) foot {
	f := foot{to: make([]mat, 1+min(s.m.K, s.m.N-i)), u: zeroMatrix(s.dim[i], s.rate[i][0].c)}
	for k := range f.to {
		f.to[k] = zeroMatrix(s.dim[i], s.dim[i+k])
	}
	return f
}

// eliminateFromBelow puts into f the elimination of levels 0..i, i < N, with mode r (from
// 0) at level i and below the levels under.
func (s *solver) eliminateFromBelow(f, under *foot, i, r int) error {
	q := s.cachedUpwardRates(i, r)
	s.left = append(s.left[:0], make([]float64, s.dim[i])...)
	copy(f.u.a, s.rate[i][r].a)
	for k := range q {
		copy(f.to[k].a, q[k].a)
		if i > 0 && k+1 < len(under.to) {
			f.to[k].addMul(s.down[i], under.to[k+1])
		}
		if k == 0 {
			continue
		}
		for x := range s.left {
			for _, v := range f.to[k].row(x) {
				s.left[x] += v
			}
		}
	}
	f.unit = 0
	if i > 0 {
		f.unit = max(0, under.unit)
		f.u.shiftExponent(-f.unit)
		f.u.addMul(s.down[i], under.u.inUnit(under.unit, f.unit))
	}
	lu, err := factorizeMatrix(f.to[0], s.left)
	if err != nil {
		return err
	}
	for _, x := range f.to[1:] {
		lu.solveInPlace(x)
	}
	lu.solveInPlace(f.u)
	f.unit = f.u.normalizeExponent(f.unit)
	return nil
}

// passage holds the way from levels i+1..i+K down to level i.
type passage struct {
	p    []mat // p[k]: where level i is entered from level i+k
	u    []mat // accruals until then, in units of 2^unit
	unit int
}

// closing is the room that closing a cycle at level i needs.
type closing struct {
	passage
	cycle, u mat
	pi       []float64
	acc      []float64
}

func (s *solver) newClosing(i int) closing {
	n, cols := s.dim[i], s.rate[i][0].c
	c := closing{cycle: zeroMatrix(n, n), u: zeroMatrix(n, cols), pi: make([]float64, n), acc: make([]float64, cols)}
	for k := range 1 + min(s.m.K, s.m.N-i) {
		c.p, c.passage.u = append(c.p, zeroMatrix(s.dim[i+k], n)), append(c.passage.u, zeroMatrix(s.dim[i+k], cols))
	}
	return c
}

// openLevel prepares for level i what the levels above, which have been eliminated,
// have to tell. It is shared by all feet.
func (s *solver) openLevel(c *closing, i int) {
	c.unit = 0
	for k := 1; k < len(c.p); k++ {
		c.unit = max(c.unit, s.lev[i+k].unit)
	}
	for k := 1; k < len(c.p); k++ {
		l := &s.lev[i+k]
		copy(c.passage.u[k].a, l.u.a)
		c.passage.u[k].shiftExponent(l.unit - c.unit)
		if k == 1 {
			copy(c.p[1].a, l.g.a)
			continue
		}
		clear(c.p[k].a)
		c.p[k].addMul(l.g, c.p[k-1])
		c.passage.u[k].addMul(l.g, c.passage.u[k-1])
	}
}

// closePolicy returns the long-run rates of the accruals of the policy whose upper
// levels were opened and whose lower ones are f; the slice is reused. A policy
// without a single long run has none: nil.
func (c *closing) closePolicy(f *foot) []float64 {
	c.setEntryCycle(f)
	unit := max(f.unit, c.unit)
	copy(c.u.a, f.u.a)
	c.u.shiftExponent(f.unit - unit)
	for k := 1; k < len(f.to); k++ {
		c.u.addMul(f.to[k], c.passage.u[k].inUnit(c.unit, unit))
	}
	if !eliminateGTH(c.cycle, c.pi) {
		c.setEntryCycle(f)
		pi, err := stationaryLaw(c.cycle)
		if err != nil {
			return nil
		}
		copy(c.pi, pi)
	}
	clear(c.acc)
	for a, p := range c.pi {
		for k, v := range c.u.row(a) {
			c.acc[k] += p * v
		}
	}
	t := c.acc[0]
	if !(t > 0) {
		return nil
	}
	for k := range c.acc {
		c.acc[k] /= t
	}
	return c.acc
}

// setEntryCycle puts the chain of successive entries into level i into cycle.
func (c *closing) setEntryCycle(f *foot) {
	clear(c.cycle.a)
	for k := 1; k < len(f.to); k++ {
		c.cycle.addMul(f.to[k], c.p[k])
	}
}
