package run

import (
	"github.com/freshet/freshet/lab/strategy/check"
)

// compileCondition compiles an expression of type boolean.
func (c *compiler) compileCondition(e *check.Expr) condFunc {
	switch e.Op {
	case check.OpConst:
		k := e.Int != 0
		return func() bool { return k }
	case check.OpAttr:
		return c.boolAttr(e)
	case check.OpNot:
		x := c.compileCondition(e.Args[0])
		return func() bool { return !x() }
	case check.OpAnd:
		a, b := c.compileCondition(e.Args[0]), c.compileCondition(e.Args[1])
		return func() bool { return a() && b() }
	case check.OpOr:
		a, b := c.compileCondition(e.Args[0]), c.compileCondition(e.Args[1])
		return func() bool { return a() || b() }
	case check.OpIntToBool:
		x := c.compileWord(e.Args[0])
		return func() bool { return x() != 0 }
	case check.OpLess, check.OpLessEqual, check.OpEqual, check.OpNotEqual:
		return c.compileComparison(e)
	}
	var x wordFunc
	switch e.Op {
	case check.OpMethod:
		x = c.compileMethodValue(e)
	case check.OpCall:
		x = c.callWord(e)
	case check.OpIndex:
		x = c.compileIndex(e)
	default:
		x = c.compileLoad(e.Var)
	}
	return func() bool { return x() != 0 }
}

func (c *compiler) boolAttr(e *check.Expr) condFunc {
	m, node, col, p := c.m, c.compileNode(e.Args[0]), c.m.cols[e.Attr.Column].bools, placeOf(e)
	return func() bool {
		v := node()
		if uint64(v) >= uint64(len(col)) {
			m.noNode(p)
		}
		return col[v] != 0
	}
}

// compileComparison compiles relations. Greater was turned round by the type check.
func (c *compiler) compileComparison(e *check.Expr) condFunc {
	x, y := e.Args[0], e.Args[1]
	switch x.Type.Kind {
	case check.Real:
		return relationFunc(e.Op, c.compileReal(x), c.compileReal(y))
	case check.String:
		return relationFunc(e.Op, c.compileText(x), c.compileText(y))
	}
	if f := c.compileTruthTest(e, x, y); f != nil {
		return f
	}
	a := c.compileWord(x)
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
		k, b := x.Int, c.compileWord(y)
		return func() bool { return k < b() }
	}
	if p, ok := c.globalWord(x); ok {
		if q, ok := c.globalWord(y); ok {
			switch e.Op {
			case check.OpLess:
				return func() bool { return *p < *q }
			case check.OpLessEqual:
				return func() bool { return *p <= *q }
			}
		}
	}
	return relationFunc(e.Op, a, c.compileWord(y))
}

// compileTruthTest compiles n.visited = 0 and the like without making numbers of truth.
func (c *compiler) compileTruthTest(e, x, y *check.Expr) condFunc {
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
	f := c.compileCondition(x)
	if (e.Op == check.OpEqual) == (y.Int == 1) {
		return f
	}
	return func() bool { return !f() }
}

func relationFunc[T int64 | float64 | string](op check.Op, a, b func() T) condFunc {
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
