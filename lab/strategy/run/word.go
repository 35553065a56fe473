package run

import (
	"math"

	"github.com/freshet/freshet/lab/strategy/check"
)

// word compiles an expression of any scalar type but string. Reals are bits.
func (c *compiler) word(e *check.Expr) wordFunc {
	switch e.Type.Kind {
	case check.Boolean:
		if e.Op != check.OpLoad && e.Op != check.OpConst {
			x := c.cond(e)
			return func() int64 { return word(x()) }
		}
	case check.Real:
		if e.Op != check.OpLoad {
			x := c.real(e)
			return func() int64 { return bits(x()) }
		}
	}
	switch e.Op {
	case check.OpConst:
		k := e.Int
		return func() int64 { return k }
	case check.OpLoad:
		return c.load(e.Var)
	case check.OpAttr:
		return c.attr(e)
	case check.OpNeg, check.OpAdd, check.OpSub, check.OpMul, check.OpDiv, check.OpMod:
		return c.arithmetic(e)
	case check.OpBoolToInt:
		return c.word(e.Args[0])
	case check.OpMethod:
		return c.method(e)
	case check.OpCall:
		return c.callWord(e)
	case check.OpBuiltin:
		return c.builtinWord(e)
	case check.OpIndex:
		return c.index(e)
	}
	return func() int64 { return 0 }
}

// load reads a variable that holds a word.
func (c *compiler) load(v *check.Var) wordFunc {
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

// elem is word for what goes into containers: strings are interned.
func (c *compiler) elem(e *check.Expr) wordFunc {
	if e.Type.Kind != check.String {
		return c.word(e)
	}
	m, x, p := c.m, c.text(e), at(e)
	return func() int64 { return m.intern(p, x()) }
}

// node compiles an expression of type node.
func (c *compiler) node(e *check.Expr) wordFunc { return c.word(e) }

// known is node, with an error if it is nil.
func (c *compiler) known(e *check.Expr) func() uint32 {
	m, x, p := c.m, c.node(e), at(e)
	return func() uint32 {
		v := x()
		if v < 0 {
			m.noNode(p)
		}
		return uint32(v)
	}
}

// linksOf compiles n.outlinks and n.inlinks.
func (c *compiler) linksOf(e *check.Expr) func() []uint32 {
	web, node := c.m.web, c.known(e.Args[0])
	if e.Attr.Builtin == check.Outlinks {
		return func() []uint32 { return web.Out(node()) }
	}
	return func() []uint32 { return web.In(node()) }
}

// attr compiles an attribute whose value is a word but no real or boolean.
func (c *compiler) attr(e *check.Expr) wordFunc {
	m, a, p := c.m, e.Attr, at(e)
	switch a.Builtin {
	case check.Server:
		node := c.known(e.Args[0])
		return func() int64 { return int64(m.server(node())) }
	case check.Depth:
		node := c.known(e.Args[0])
		return func() int64 { return m.depthOf(node()) }
	case check.Size:
		node := c.known(e.Args[0])
		return func() int64 { return m.opt.Pages.Size(node()) }
	}
	node := c.node(e.Args[0])
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

// arithmetic compiles integers, with the common operands specialised.
func (c *compiler) arithmetic(e *check.Expr) wordFunc {
	a := c.word(e.Args[0])
	if e.Op == check.OpNeg {
		return func() int64 { return -a() }
	}
	y := e.Args[1]
	if y.Op == check.OpConst {
		return constArithmetic(e.Op, a, y.Int)
	}
	if q, ok := c.global(y); ok {
		switch e.Op {
		case check.OpAdd:
			return func() int64 { return a() + *q }
		case check.OpSub:
			return func() int64 { return a() - *q }
		}
	}
	m, b, p := c.m, c.word(y), at(e)
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
				m.failed(p, "division by zero")
			}
			return x / y
		}
	}
	return func() int64 {
		x, y := a(), b()
		if y == 0 {
			m.failed(p, "division by zero")
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

// index compiles a[i] and m[k].
func (c *compiler) index(e *check.Expr) wordFunc {
	m, obj, key, p := c.m, c.object(e.Args[0]), c.elem(e.Args[1]), at(e)
	if e.Args[0].Type.Kind == check.Map {
		return func() int64 {
			k := key()
			return obj().(*table).get(k)
		}
	}
	return func() int64 {
		i := key()
		return *obj().(*array).cell(m, p, i)
	}
}

// real compiles an expression of type real.
func (c *compiler) real(e *check.Expr) realFunc {
	m, p := c.m, at(e)
	switch e.Op {
	case check.OpConst:
		k := e.Real
		return func() float64 { return k }
	case check.OpIntToReal:
		x := c.word(e.Args[0])
		return func() float64 { return float64(x()) }
	case check.OpAttr:
		if e.Attr.Builtin == check.Age {
			node := c.known(e.Args[0])
			return func() float64 { return m.age(int64(node())) }
		}
		node, col := c.node(e.Args[0]), m.cols[e.Attr.Column].reals
		return func() float64 {
			v := node()
			if uint64(v) >= uint64(len(col)) {
				m.noNode(p)
			}
			return col[v]
		}
	case check.OpNeg:
		x := c.real(e.Args[0])
		return func() float64 { return -x() }
	case check.OpAdd, check.OpSub, check.OpMul, check.OpDiv:
		return c.realArithmetic(e)
	case check.OpBuiltin:
		return c.builtinReal(e)
	}
	var x wordFunc // load, method, call, index
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
	return func() float64 { return real(x()) }
}

func (c *compiler) realArithmetic(e *check.Expr) realFunc {
	m, p := c.m, at(e)
	a, b := c.real(e.Args[0]), c.real(e.Args[1])
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
			m.failed(p, "division by zero")
		}
		return x / y
	}
}

// trunc makes an integer of a real, with an error where none is near.
func (m *machine) trunc(p place, v float64) int64 {
	if math.IsNaN(v) || v >= 1<<63 || v < -1<<63 {
		m.failed(p, "%g does not fit an integer", v)
	}
	return int64(v)
}
