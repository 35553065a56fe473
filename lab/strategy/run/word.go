package run

import (
	"math"

	"github.com/freshet/freshet/lab/strategy/check"
)

// compileWord compiles an expression of any scalar type but string. Reals are bits.
func (c *compiler) compileWord(e *check.Expr) wordFunc {
	switch e.Type.Kind {
	case check.Boolean:
		if e.Op != check.OpLoad && e.Op != check.OpConst {
			x := c.compileCondition(e)
			return func() int64 { return boolToWord(x()) }
		}
	case check.Real:
		if e.Op != check.OpLoad {
			x := c.compileReal(e)
			return func() int64 { return realToWord(x()) }
		}
	}
	switch e.Op {
	case check.OpConst:
		k := e.Int
		return func() int64 { return k }
	case check.OpLoad:
		return c.compileLoad(e.Var)
	case check.OpAttr:
		return c.compileAttribute(e)
	case check.OpNeg, check.OpAdd, check.OpSub, check.OpMul, check.OpDiv, check.OpMod:
		return c.compileArithmetic(e)
	case check.OpBoolToInt:
		return c.compileWord(e.Args[0])
	case check.OpMethod:
		return c.compileMethodValue(e)
	case check.OpCall:
		return c.callWord(e)
	case check.OpBuiltin:
		return c.builtinWord(e)
	case check.OpIndex:
		return c.compileIndex(e)
	}
	return func() int64 { return 0 }
}

// compileLoad reads a variable that holds a word.
func (c *compiler) compileLoad(v *check.Var) wordFunc {
	m, slot := c.m, v.Slot
	switch {
	case !v.Local:
		p := &m.words[slot]
		return func() int64 { return *p }
	case v.ByRef:
		return func() int64 { return *m.f.refs[slot] }
	}
	return func() int64 { return m.f.words[slot] }
}

// compileElement is word for what goes into containers: strings are interned.
func (c *compiler) compileElement(e *check.Expr) wordFunc {
	if e.Type.Kind != check.String {
		return c.compileWord(e)
	}
	m, x, p := c.m, c.compileText(e), placeOf(e)
	return func() int64 { return m.internString(p, x()) }
}

// compileNode compiles an expression of type node.
func (c *compiler) compileNode(e *check.Expr) wordFunc { return c.compileWord(e) }

// compileKnownNode is node, with an error if it is nil.
func (c *compiler) compileKnownNode(e *check.Expr) func() uint32 {
	m, x, p := c.m, c.compileNode(e), placeOf(e)
	return func() uint32 {
		v := x()
		if v < 0 {
			m.noNode(p)
		}
		return uint32(v)
	}
}

// compileLinks compiles n.outlinks and n.inlinks.
func (c *compiler) compileLinks(e *check.Expr) func() []uint32 {
	web, node := c.m.web, c.compileKnownNode(e.Args[0])
	if e.Attr.Builtin == check.Outlinks {
		return func() []uint32 { return web.Out(node()) }
	}
	return func() []uint32 { return web.In(node()) }
}

// compileAttribute compiles an attribute whose value is a word but no real or boolean.
func (c *compiler) compileAttribute(e *check.Expr) wordFunc {
	m, a, p := c.m, e.Attr, placeOf(e)
	switch a.Builtin {
	case check.Server:
		node := c.compileKnownNode(e.Args[0])
		return func() int64 { return int64(m.serverOfPage(node())) }
	case check.Depth:
		node := c.compileKnownNode(e.Args[0])
		return func() int64 { return m.depthOf(node()) }
	case check.Size:
		node := c.compileKnownNode(e.Args[0])
		return func() int64 { return m.opt.Pages.Size(node()) }
	}
	node := c.compileNode(e.Args[0])
	if a.Type.Kind == check.Node {
		col := m.cols[a.Column].nodes
		return func() int64 {
			v := node()
			if uint64(v) >= uint64(len(col)) {
				m.noNode(p)
			}
			return int64(col[v]) - 1
		}
	}
	col := m.cols[a.Column].ints
	return func() int64 {
		v := node()
		if uint64(v) >= uint64(len(col)) {
			m.noNode(p)
		}
		return col[v]
	}
}

// compileArithmetic compiles integers, with the common operands specialised.
func (c *compiler) compileArithmetic(e *check.Expr) wordFunc {
	a := c.compileWord(e.Args[0])
	if e.Op == check.OpNeg {
		return func() int64 { return -a() }
	}
	y := e.Args[1]
	if y.Op == check.OpConst {
		return constArithmetic(e.Op, a, y.Int)
	}
	if q, ok := c.globalWord(y); ok {
		switch e.Op {
		case check.OpAdd:
			return func() int64 { return a() + *q }
		case check.OpSub:
			return func() int64 { return a() - *q }
		}
	}
	m, b, p := c.m, c.compileWord(y), placeOf(e)
	switch e.Op {
	case check.OpAdd:
		return func() int64 { return a() + b() }
	case check.OpSub:
		return func() int64 { return a() - b() }
	case check.OpMul:
		return func() int64 { return a() * b() }
	case check.OpDiv:
		return func() int64 {
			x, y := a(), b()
			if y == 0 {
				m.failAt(p, "division by zero")
			}
			return x / y
		}
	}
	return func() int64 {
		x, y := a(), b()
		if y == 0 {
			m.failAt(p, "division by zero")
		}
		return x % y
	}
}

// constArithmetic is arithmetic with a constant that is not zero where it
// divides: the type check saw to that.
func constArithmetic(op check.Op, a wordFunc, k int64) wordFunc {
	switch op {
	case check.OpAdd:
		return func() int64 { return a() + k }
	case check.OpSub:
		return func() int64 { return a() - k }
	case check.OpMul:
		return func() int64 { return a() * k }
	case check.OpDiv:
		return func() int64 { return a() / k }
	}
	return func() int64 { return a() % k }
}

// compileIndex compiles a[i] and m[k].
func (c *compiler) compileIndex(e *check.Expr) wordFunc {
	m, obj, key, p := c.m, c.compileContainer(e.Args[0]), c.compileElement(e.Args[1]), placeOf(e)
	if e.Args[0].Type.Kind == check.Map {
		return func() int64 {
			k := key()
			return obj().(*table).getCell(k)
		}
	}
	return func() int64 {
		i := key()
		return *obj().(*array).cellAt(m, p, i)
	}
}

// compileReal compiles an expression of type real.
func (c *compiler) compileReal(e *check.Expr) realFunc {
	m, p := c.m, placeOf(e)
	switch e.Op {
	case check.OpConst:
		k := e.Real
		return func() float64 { return k }
	case check.OpIntToReal:
		x := c.compileWord(e.Args[0])
		return func() float64 { return float64(x()) }
	case check.OpAttr:
		if e.Attr.Builtin == check.Age {
			node := c.compileKnownNode(e.Args[0])
			return func() float64 { return m.fetchAge(int64(node())) }
		}
		node, col := c.compileNode(e.Args[0]), m.cols[e.Attr.Column].reals
		return func() float64 {
			v := node()
			if uint64(v) >= uint64(len(col)) {
				m.noNode(p)
			}
			return col[v]
		}
	case check.OpNeg:
		x := c.compileReal(e.Args[0])
		return func() float64 { return -x() }
	case check.OpAdd, check.OpSub, check.OpMul, check.OpDiv:
		return c.realArithmetic(e)
	case check.OpBuiltin:
		return c.builtinReal(e)
	}
	var x wordFunc // load, method, call, index
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
	return func() float64 { return wordToReal(x()) }
}

func (c *compiler) realArithmetic(e *check.Expr) realFunc {
	m, p := c.m, placeOf(e)
	a, b := c.compileReal(e.Args[0]), c.compileReal(e.Args[1])
	switch e.Op {
	case check.OpAdd:
		return func() float64 { return a() + b() }
	case check.OpSub:
		return func() float64 { return a() - b() }
	case check.OpMul:
		return func() float64 { return a() * b() }
	}
	return func() float64 {
		x, y := a(), b()
		if y == 0 {
			m.failAt(p, "division by zero")
		}
		return x / y
	}
}

// truncateReal makes an integer of a real, with an error where none is near.
func (m *machine) truncateReal(p place, v float64) int64 {
	if math.IsNaN(v) || v >= 1<<63 || v < -1<<63 {
		m.failAt(p, "%g does not fit an integer", v)
	}
	return int64(v)
}
