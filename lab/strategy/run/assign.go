package run

import (
	"github.com/freshet/freshet/lab/strategy/check"
)

// compileAssign compiles left := right.
func (c *compiler) compileAssign(left, right *check.Expr) stmtFunc {
	switch {
	case isObject(left.Type):
		return c.assignObject(left, right)
	case left.Op == check.OpAttr:
		return c.assignAttr(left, right)
	case left.Op == check.OpIndex:
		return c.assignIndex(left, right)
	case left.Type.Kind == check.String:
		set, x := c.setText(left.Var), c.compileText(right)
		return func() signal { set(x()); return goOn }
	}
	return c.assignWord(left.Var, right)
}

// assignWord compiles v := right of a word, global variables without a call.
func (c *compiler) assignWord(v *check.Var, right *check.Expr) stmtFunc {
	m, slot := c.m, v.Slot
	if !v.Local {
		p := &m.words[slot]
		if q, k, ok := c.constantIncrement(right); ok {
			if p == q {
				return func() signal { *p += k; return goOn }
			}
			return func() signal { *p = *q + k; return goOn }
		}
		if right.Op == check.OpConst && right.Type.Kind != check.Real {
			k := right.Int
			return func() signal { *p = k; return goOn }
		}
		x := c.compileWord(right)
		return func() signal { *p = x(); return goOn }
	}
	x := c.compileWord(right)
	if v.ByRef {
		return func() signal { *m.f.refs[slot] = x(); return goOn }
	}
	return func() signal {
		y := x() // may call a procedure
		m.f.words[slot] = y
		return goOn
	}
}

// constantIncrement recognises q + k of a global q and a constant k.
func (c *compiler) constantIncrement(e *check.Expr) (q *int64, k int64, ok bool) {
	if e.Type.Kind != check.Integer || (e.Op != check.OpAdd && e.Op != check.OpSub) || e.Args[1].Op != check.OpConst {
		return nil, 0, false
	}
	q, ok = c.globalWord(e.Args[0])
	k = e.Args[1].Int
	if e.Op == check.OpSub {
		k = -k
	}
	return q, k, ok
}

// globalWord returns the place of a global variable that holds a word.
func (c *compiler) globalWord(e *check.Expr) (*int64, bool) {
	if e.Op != check.OpLoad || e.Var.Local || e.Type.Kind == check.String || isObject(e.Type) {
		return nil, false
	}
	return &c.m.words[e.Var.Slot], true
}

// assignAttr compiles n.attribute := right.
func (c *compiler) assignAttr(left, right *check.Expr) stmtFunc {
	col := c.m.cols[left.Attr.Column]
	node, p := c.compileNode(left.Args[0]), placeOf(left)
	m := c.m
	index := func(v int64, n int) int64 {
		if uint64(v) >= uint64(n) {
			m.noNode(p)
		}
		return v
	}
	switch left.Attr.Type.Kind {
	case check.Boolean:
		col := col.bools
		if right.Op == check.OpConst {
			k := uint8(right.Int)
			return func() signal { col[index(node(), len(col))] = k; return goOn }
		}
		x := c.compileCondition(right)
		return func() signal {
			i := index(node(), len(col))
			col[i] = uint8(boolToWord(x()))
			return goOn
		}
	case check.Real:
		col, x := col.reals, c.compileReal(right)
		return func() signal {
			i := index(node(), len(col))
			col[i] = x()
			return goOn
		}
	case check.Node:
		col, x := col.nodes, c.compileWord(right)
		return func() signal {
			i := index(node(), len(col))
			col[i] = uint32(x() + 1)
			return goOn
		}
	}
	ints, x := col.ints, c.compileWord(right)
	return func() signal {
		i := index(node(), len(ints))
		ints[i] = x()
		return goOn
	}
}

// noNode ends the run: a node variable that nothing was assigned to.
func (m *machine) noNode(p place) {
	m.failAt(p, "unknown node: nothing was assigned to this variable (it is nil)")
}

// assignIndex compiles a[i] := right and m[k] := right.
func (c *compiler) assignIndex(left, right *check.Expr) stmtFunc {
	m, obj, key, x, p := c.m, c.compileContainer(left.Args[0]), c.compileElement(left.Args[1]), c.compileElement(right), placeOf(left)
	if left.Args[0].Type.Kind == check.Map {
		return func() signal {
			k, v := key(), x()
			m.failOnError(p, obj().(*table).setCell(k, v))
			return goOn
		}
	}
	return func() signal {
		i, v := key(), x()
		*obj().(*array).cellAt(m, p, i) = v
		return goOn
	}
}

// cellAt returns the place of an element.
func (a *array) cellAt(m *machine, p place, i int64) *int64 {
	if uint64(i) >= uint64(len(a.cells)) {
		m.failAt(p, "index %d of an array of %d", i, len(a.cells))
	}
	return &a.cells[i]
}

// assignObject compiles the copy of a container.
func (c *compiler) assignObject(left, right *check.Expr) stmtFunc {
	m, dst, p := c.m, c.compileContainer(left), placeOf(right)
	if q, ok := c.globalContainer(left).(*nodeQueue); ok && right.Op == check.OpAttr { // q := n.outlinks
		list := c.compileLinks(right)
		return func() signal {
			l := list()
			m.countSteps(p, int64(len(l)))
			m.failOnError(p, q.Clear())
			m.failOnError(p, q.PushAll(l))
			return goOn
		}
	}
	src := c.compileContainer(right)
	return func() signal {
		s := src()
		m.copyInto(p, dst(), s)
		return goOn
	}
}
