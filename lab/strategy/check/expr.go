package check

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/freshet/freshet/internal/spell"
	"github.com/freshet/freshet/lab/strategy/syntax"
)

// checkExpr types an expression that must have a value.
func (c *checker) checkExpr(x syntax.Expr) *Expr {
	e := c.exprOrCall(x)
	if e.Type.Kind == None {
		return c.reportErrorf(x, "this call has no value")
	}
	return e
}

func (c *checker) exprOrCall(x syntax.Expr) *Expr {
	at, end := x.Span()
	switch x := x.(type) {
	case *syntax.Bad:
		return &Expr{Type: invalidType, Pos: at, End: end}
	case *syntax.Literal:
		return c.checkLiteral(x)
	case *syntax.Paren:
		return c.checkExpr(x.X)
	case *syntax.Ident:
		return c.checkIdent(x)
	case *syntax.Unary:
		return c.checkUnary(x)
	case *syntax.Binary:
		return c.checkBinary(x)
	case *syntax.Call:
		return c.checkCall(x, x.Name, x.Args)
	case *syntax.Member:
		return c.checkMember(x)
	case *syntax.Index:
		return c.checkIndex(x)
	}
	return c.reportErrorf(x, "this cannot be understood")
}

func newExpr(x syntax.Expr, op Op, t *Type, args ...*Expr) *Expr {
	at, end := x.Span()
	for _, a := range args {
		if a.Type.Kind == Invalid {
			t = invalidType
		}
	}
	return &Expr{Op: op, Type: t, Pos: at, End: end, Args: args}
}

func (c *checker) checkLiteral(x *syntax.Literal) *Expr {
	switch x.Kind {
	case syntax.String:
		e := newExpr(x, OpConst, stringType)
		e.Text = x.Text
		return e
	case syntax.Real:
		v, err := strconv.ParseFloat(x.Text, 64)
		if err != nil {
			return c.reportErrorf(x, "%s does not fit a real", x.Text)
		}
		e := newExpr(x, OpConst, realType)
		e.Real = v
		return e
	}
	v, err := strconv.ParseInt(x.Text, 10, 64)
	if err != nil {
		return c.reportErrorf(x, "%s does not fit a 64-bit integer", x.Text)
	}
	e := newExpr(x, OpConst, integerType)
	e.Int = v
	return e
}

// loadVariable reads a variable.
func (c *checker) loadVariable(x syntax.Expr, v *Var) *Expr {
	e := newExpr(x, OpLoad, v.Type)
	e.Var = v
	return e
}

func (c *checker) checkIdent(x *syntax.Ident) *Expr {
	switch v := c.scope.findName(x.Name).(type) {
	case *Var:
		v.read = true
		return c.loadVariable(x, v)
	case *constant:
		e := *v.value
		e.Pos, e.End = x.Span()
		return &e
	case *Proc:
		return c.checkCall(x, x.Name, nil)
	}
	switch x.Name {
	case "true", "false":
		e := newExpr(x, OpConst, booleanType)
		if x.Name == "true" {
			e.Int = 1
		}
		return e
	case "nil":
		e := newExpr(x, OpConst, nilType)
		e.Int = -1
		return e
	}
	if _, ok := builtinFunctions()[x.Name]; ok {
		return c.checkCall(x, x.Name, nil)
	}
	return c.reportUnknownName(x, x.Name)
}

// reportUnknownName reports a name that is not declared and suggests one.
func (c *checker) reportUnknownName(x syntax.Expr, name string) *Expr {
	var known []string
	for s := c.scope; s != nil; s = s.outer {
		known = append(known, slices.Collect(maps.Keys(s.names))...)
	}
	hint := nearestName(name, known) // the script's own names first
	if hint == "" {
		hint = nearestName(name, append(slices.Collect(maps.Keys(builtinFunctions())), "true", "false", "nil", "break", "continue", "exit", "halt"))
	}
	return c.reportErrorf(x, "unknown name %q%s", name, hint)
}

// nearestName is the nearest of the known names, if one is near.
func nearestName(name string, known []string) string {
	slices.Sort(known)
	if s := spell.Suggest(name, known); strings.Contains(s, "did you mean") {
		return s
	}
	return ""
}

func (c *checker) checkUnary(x *syntax.Unary) *Expr {
	e := c.checkExpr(x.X)
	if x.Op == syntax.Not {
		return newExpr(x, OpNot, booleanType, c.convertTo(x.X, e, booleanType, "not"))
	}
	if e.Type.Kind == Boolean && c.dialect == syntax.Thesis {
		e = c.convertTo(x.X, e, integerType, "a sign")
	}
	if e.Type.Kind != Invalid && !e.Type.isNumeric() {
		return c.reportErrorf(x, "a sign stands before numbers, not %s", e.Type)
	}
	if x.Op == syntax.Plus {
		return e
	}
	return foldConstants(newExpr(x, OpNeg, e.Type, e))
}

func (c *checker) checkBinary(x *syntax.Binary) *Expr {
	a, b := c.checkExpr(x.X), c.checkExpr(x.Y)
	switch x.Op {
	case syntax.And, syntax.Or:
		op := OpAnd
		if x.Op == syntax.Or {
			op = OpOr
		}
		c.sameInBothDialects(x, a, b)
		return newExpr(x, op, booleanType, c.convertTo(x.X, a, booleanType, x.Op.String()), c.convertTo(x.Y, b, booleanType, x.Op.String()))
	case syntax.Less, syntax.LessEqual, syntax.Equal, syntax.NotEqual, syntax.GreaterEqual, syntax.Greater:
		return c.checkComparison(x, a, b)
	}
	return c.checkArithmetic(x, a, b)
}

// sameInBothDialects warns where a script means something else in the thesis's
// dialect and is correct in it, too: a and b = c of booleans.
func (c *checker) sameInBothDialects(x *syntax.Binary, a, b *Expr) {
	if c.dialect == syntax.Thesis {
		return
	}
	for _, side := range []struct {
		rel   syntax.Expr
		typed *Expr
		near  int // the operand of the relation that stands beside the operator
	}{{x.X, a, 1}, {x.Y, b, 0}} {
		r, ok := side.rel.(*syntax.Binary)
		if !ok || (r.Op != syntax.Equal && r.Op != syntax.NotEqual) || len(side.typed.Args) != 2 || isRelation(otherOperand(x, side.rel)) {
			continue
		}
		if near := side.typed.Args[side.near]; near.Type.Kind == Boolean || near.Op == OpBoolToInt {
			at, end := x.Span()
			c.diag.Warnf(at, end, "relations bind tighter than %s here, looser in the thesis's dialect: parentheses make it the same in both", x.Op)
			return
		}
	}
}

func otherOperand(x *syntax.Binary, side syntax.Expr) syntax.Expr {
	if side == x.X {
		return x.Y
	}
	return x.X
}

func isRelation(x syntax.Expr) bool {
	b, ok := x.(*syntax.Binary)
	return ok && b.Op >= syntax.Less && b.Op <= syntax.Greater
}

// checkComparison types relations; booleans compare with 0 and 1.
func (c *checker) checkComparison(x *syntax.Binary, a, b *Expr) *Expr {
	ka, kb := a.Type.Kind, b.Type.Kind
	if ka == Invalid || kb == Invalid {
		return newExpr(x, OpConst, booleanType, a, b)
	}
	equality := x.Op == syntax.Equal || x.Op == syntax.NotEqual
	switch {
	case ka == kb && (ka <= String && ka != Invalid), a.Type.isNumeric() && b.Type.isNumeric():
	case ka == Boolean && kb == Integer, ka == Integer && kb == Boolean:
	case (ka == Node || ka == Nil) && (kb == Node || kb == Nil):
		if !equality {
			return c.reportErrorf(x, "nodes are equal or not; compare their numbers with integer(n)")
		}
	default:
		return c.reportErrorf(x, "%s cannot be compared with %s", a.Type, b.Type)
	}
	a, b = c.unifyTypes(x, a, b)
	op := map[syntax.Kind]Op{
		syntax.Less: OpLess, syntax.LessEqual: OpLessEqual, syntax.Equal: OpEqual, syntax.NotEqual: OpNotEqual,
		syntax.Greater: OpLess, syntax.GreaterEqual: OpLessEqual,
	}[x.Op]
	if x.Op == syntax.Greater || x.Op == syntax.GreaterEqual {
		a, b = b, a
	}
	return newExpr(x, op, booleanType, a, b)
}

// unifyTypes converts both sides to one type.
func (c *checker) unifyTypes(x syntax.Expr, a, b *Expr) (*Expr, *Expr) {
	to := a.Type
	switch ka, kb := a.Type.Kind, b.Type.Kind; {
	case ka == Real || kb == Real:
		to = realType
	case ka == Integer || kb == Integer:
		to = integerType
	case ka == Nil:
		to = b.Type
	}
	return c.widenType(x, a, to), c.widenType(x, b, to)
}

// widenType converts without loss: boolean to integer to real.
func (c *checker) widenType(x syntax.Expr, e *Expr, to *Type) *Expr {
	if e.Type.Kind == Boolean && to.Kind != Boolean {
		e = foldConstants(newExpr(x, OpBoolToInt, integerType, e))
	}
	if e.Type.Kind == Integer && to.Kind == Real {
		e = foldConstants(newExpr(x, OpIntToReal, realType, e))
	}
	return e
}

// checkArithmetic types + - * / div mod.
func (c *checker) checkArithmetic(x *syntax.Binary, a, b *Expr) *Expr {
	op := map[syntax.Kind]Op{syntax.Plus: OpAdd, syntax.Minus: OpSub, syntax.Star: OpMul, syntax.Slash: OpDiv, syntax.Div: OpDiv, syntax.Mod: OpMod}[x.Op]
	if a.Type.Kind == Invalid || b.Type.Kind == Invalid {
		return newExpr(x, op, invalidType)
	}
	if x.Op == syntax.Plus && a.Type.Kind == String && b.Type.Kind == String {
		return newExpr(x, OpAdd, stringType, a, b)
	}
	if c.dialect == syntax.Thesis {
		a, b = c.intOfBool(x, a), c.intOfBool(x, b)
	}
	if !a.Type.isNumeric() || !b.Type.isNumeric() {
		return c.reportErrorf(x, "%q takes numbers, not %s and %s", x.Op.String(), a.Type, b.Type)
	}
	if (x.Op == syntax.Div || x.Op == syntax.Mod) && (a.Type.Kind == Real || b.Type.Kind == Real) {
		return c.reportErrorf(x, "%q takes integers, not %s and %s", x.Op.String(), a.Type, b.Type)
	}
	a, b = c.unifyTypes(x, a, b)
	if op == OpDiv || op == OpMod {
		if b.Op == OpConst && b.Type.Kind == Integer && b.Int == 0 {
			return c.reportErrorf(x, "division by zero")
		}
	}
	return foldConstants(newExpr(x, op, a.Type, a, b))
}

func (c *checker) intOfBool(x syntax.Expr, e *Expr) *Expr {
	if e.Type.Kind == Boolean {
		return c.widenType(x, e, integerType)
	}
	return e
}

// convertTo makes e fit a place of type to; what names the place.
func (c *checker) convertTo(x syntax.Expr, e *Expr, to *Type, what string) *Expr {
	from := e.Type
	switch {
	case from.Kind == Invalid || to.Kind == Invalid:
		return &Expr{Op: OpConst, Type: to, Pos: e.Pos, End: e.End}
	case sameType(from, to):
		return e
	case from.Kind == Integer && to.Kind == Real:
		return c.widenType(x, e, to)
	case from.Kind == Nil && to.Kind == Node:
		n := *e
		n.Type = nodeType
		return &n
	case from.Kind == Integer && to.Kind == Boolean && e.Op == OpConst && (e.Int == 0 || e.Int == 1):
		n := *e
		n.Type = booleanType
		return &n
	case from.Kind == Integer && to.Kind == Boolean:
		if c.dialect == syntax.Thesis {
			return newExpr(x, OpIntToBool, booleanType, e)
		}
		return c.reportErrorf(x, "%s is boolean, this is an integer: write ... <> 0", what)
	case from.Kind == Boolean && to.Kind == Integer:
		if c.dialect == syntax.Thesis {
			return c.widenType(x, e, to)
		}
		return c.reportErrorf(x, "%s is an integer, this is boolean: write integer(...)", what)
	case from.Kind == Real && to.Kind == Integer:
		return c.reportErrorf(x, "%s is an integer, this is real: write trunc(...) or round(...)", what)
	}
	return c.reportErrorf(x, "%s is %s, this is %s", what, to, from)
}

// declareConstant declares a constant; its value may use those before it.
func (c *checker) declareConstant(k *syntax.ConstDecl) {
	e := c.checkExpr(k.Value)
	if e.Type.Kind == Invalid {
		c.declareName(k.Name, &constant{e, k.Name.Pos})
		return
	}
	if e.Op != OpConst {
		c.reportErrorf(k.Value, "the value of a constant must be known before the script runs")
	}
	if text, ok := c.set[k.Name.Text]; ok && c.proc == nil {
		delete(c.set, k.Name.Text)
		if err := setConstant(e, text); err != "" {
			c.reportErrorAt(k.Name, "%s is set to %q, which is no %s", k.Name.Text, text, e.Type)
		}
	}
	c.declareName(k.Name, &constant{e, k.Name.Pos})
}

// setConstant gives a constant the value that text says in its type.
func setConstant(e *Expr, text string) string {
	var err error
	switch e.Type.Kind {
	case Integer:
		e.Int, err = strconv.ParseInt(text, 10, 64)
	case Real:
		e.Real, err = strconv.ParseFloat(text, 64)
	case Boolean:
		var b bool
		b, err = strconv.ParseBool(text)
		e.Int = 0
		if b {
			e.Int = 1
		}
	case String:
		e.Text = text
	default:
		return "not settable"
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// foldConstants computes an operation on constants.
func foldConstants(e *Expr) *Expr {
	for _, a := range e.Args {
		if a.Op != OpConst {
			return e
		}
	}
	if e.Type.Kind == Invalid {
		return e
	}
	a := e.Args[0]
	b := e.Args[len(e.Args)-1]
	c := &Expr{Op: OpConst, Type: e.Type, Pos: e.Pos, End: e.End}
	isRealType := e.Type.Kind == Real
	switch {
	case e.Op == OpIntToReal:
		c.Real = float64(a.Int)
	case e.Op == OpBoolToInt:
		c.Int = a.Int
	case e.Op == OpNeg && isRealType:
		c.Real = -a.Real
	case e.Op == OpNeg:
		c.Int = -a.Int
	case e.Op == OpAdd && isRealType:
		c.Real = a.Real + b.Real
	case e.Op == OpAdd:
		c.Int = a.Int + b.Int
	case e.Op == OpSub && isRealType:
		c.Real = a.Real - b.Real
	case e.Op == OpSub:
		c.Int = a.Int - b.Int
	case e.Op == OpMul && isRealType:
		c.Real = a.Real * b.Real
	case e.Op == OpMul:
		c.Int = a.Int * b.Int
	case e.Op == OpDiv && isRealType:
		c.Real = a.Real / b.Real
	case e.Op == OpDiv && b.Int != 0:
		c.Int = a.Int / b.Int
	case e.Op == OpMod && b.Int != 0:
		c.Int = a.Int % b.Int
	default:
		return e
	}
	return c
}
