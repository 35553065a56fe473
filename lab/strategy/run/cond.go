package run

import (
	"github.com/freshet/freshet/lab/strategy/check"
)

// cond compiles an expression of type boolean.
func (c *compiler) cond(e *check.Expr) condFunc {
	switch e.Op {
	case check.OpConst:
		k := e.Int != 0
		return func() bool { return k }
	case check.OpAttr:
		return c.boolAttr(e)
	case check.OpNot:
		x := c.cond(e.Args[0])
		return func() bool { return !x() }
	case check.OpAnd:
		a, b := c.cond(e.Args[0]), c.cond(e.Args[1])
		return func() bool { return a() && b() }
	case check.OpOr:
		a, b := c.cond(e.Args[0]), c.cond(e.Args[1])
		return func() bool { return a() || b() }
	case check.OpIntToBool:
		x := c.word(e.Args[0])
		return func() bool { return x() != 0 }
	case check.OpLess, check.OpLessEqual, check.OpEqual, check.OpNotEqual:
		return c.compare(e)
	}
	var x wordFunc
	switch e.Op {
	case check.OpMethod:
		x = c.method(e)
	case check.OpCall:
		x = c.callWord(e)
	case check.OpIndex:
		x = c.index(e)
	default:
		x = c.load(e.Var)
	}
	return func() bool { return x() != 0 }
}

func (c *compiler) boolAttr(e *check.Expr) condFunc {
	m, node, col, p := c.m, c.node(e.Args[0]), c.m.cols[e.Attr.Column].bools, at(e)
	return func() bool {
		v := node()
		if uint64(v) >= uint64(len(col)) {
			m.noNode(p)
		}
		return col[v] != 0
	}
}

// compare compiles relations. Greater was turned round by the type check.
func (c *compiler) compare(e *check.Expr) condFunc {
	x, y := e.Args[0], e.Args[1]
	switch x.Type.Kind {
	case check.Real:
		return relation(e.Op, c.real(x), c.real(y))
	case check.String:
		return relation(e.Op, c.text(x), c.text(y))
	}
	if f := c.truth(e, x, y); f != nil {
		return f
	}
	a := c.word(x)
	if y.Op == check.OpConst {
		k := y.Int
		switch e.Op {
		case check.OpLess:
			return func() bool { return a() < k }
		case check.OpEqual:
			return func() bool { return a() == k }
		case check.OpNotEqual:
			return func() bool { return a() != k }
		}
	}
	if x.Op == check.OpConst && e.Op == check.OpLess { // n > 0
		k, b := x.Int, c.word(y)
		return func() bool { return k < b() }
	}
	if p, ok := c.global(x); ok {
		if q, ok := c.global(y); ok {
			switch e.Op {
			case check.OpLess:
				return func() bool { return *p < *q }
			case check.OpLessEqual:
				return func() bool { return *p <= *q }
			}
		}
	}
	return relation(e.Op, a, c.word(y))
}

// truth compiles n.visited = 0 and the like without making numbers of truth.
func (c *compiler) truth(e, x, y *check.Expr) condFunc {
	if e.Op != check.OpEqual && e.Op != check.OpNotEqual {
		return nil
	}
	if x.Op == check.OpConst {
		x, y = y, x
	}
	if y.Op != check.OpConst || y.Int != 0 && y.Int != 1 {
		return nil
	}
	switch {
	case x.Op == check.OpBoolToInt:
		x = x.Args[0]
	case x.Type.Kind != check.Boolean:
		return nil
	}
	f := c.cond(x)
	if (e.Op == check.OpEqual) == (y.Int == 1) {
		return f
	}
	return func() bool { return !f() }
}

func relation[T int64 | float64 | string](op check.Op, a, b func() T) condFunc {
	switch op {
	case check.OpLess:
		return func() bool { return a() < b() }
	case check.OpLessEqual:
		return func() bool { return a() <= b() }
	case check.OpEqual:
		return func() bool { return a() == b() }
	}
	return func() bool { return a() != b() }
}
