package run

import (
	"strconv"

	"github.com/freshet/freshet/lab/strategy/check"
)

// maxText bounds the length of a string: a script that doubles one would
// otherwise fill the memory in a few turns.
const maxText = 64 << 10

// compileText compiles an expression of type string.
func (c *compiler) compileText(e *check.Expr) textFunc {
	m, p := c.m, placeOf(e)
	switch e.Op {
	case check.OpConst:
		k := e.Text
		return func() string { return k }
	case check.OpLoad:
		slot := e.Var.Slot
		switch {
		case !e.Var.Local:
			v := &m.strs[slot]
			return func() string { return *v }
		case e.Var.ByRef:
			return func() string { return *m.f.strRefs[slot] }
		}
		return func() string { return m.f.strs[slot] }
	case check.OpAdd:
		a, b := c.compileText(e.Args[0]), c.compileText(e.Args[1])
		return func() string {
			x, y := a(), b()
			if len(x)+len(y) > maxText {
				m.failAt(p, "a string of more than %d bytes", maxText)
			}
			m.countSteps(p, int64(len(x)+len(y))/64)
			return x + y
		}
	case check.OpAttr: // url
		node := c.compileKnownNode(e.Args[0])
		return func() string { return m.opt.Pages.URL(node()) }
	case check.OpCall:
		call := c.compileCall(e)
		result := e.Proc.Result.Slot
		return func() string { return call().strs[result] }
	case check.OpBuiltin: // string(x)
		return c.textOf(e.Args[0])
	case check.OpMethod:
		x := c.compileMethodValue(e)
		return func() string { return m.internedString(x()) }
	case check.OpIndex:
		x := c.compileIndex(e)
		return func() string { return m.internedString(x()) }
	}
	return func() string { return "" }
}

// textOf compiles how a value of any type is printed.
func (c *compiler) textOf(e *check.Expr) textFunc {
	switch e.Type.Kind {
	case check.String:
		return c.compileText(e)
	case check.Real:
		x := c.compileReal(e)
		return func() string { return strconv.FormatFloat(x(), 'g', -1, 64) }
	case check.Boolean:
		x := c.compileCondition(e)
		return func() string { return strconv.FormatBool(x()) }
	case check.Node:
		x := c.compileWord(e)
		return func() string {
			if v := x(); v >= 0 {
				return strconv.FormatInt(v, 10)
			}
			return "nil"
		}
	}
	x := c.compileWord(e)
	return func() string { return strconv.FormatInt(x(), 10) }
}
