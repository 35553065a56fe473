package check

import (
	"maps"
	"slices"
	"strings"

	"github.com/freshet/freshet/lab/strategy/syntax"
)

// builtin is the signature of a function or procedure that is always there.
type builtin struct {
	params   []*Type
	optional int // so many of the last parameters may be left out
	any      bool
	result   *Type
}

// builtins returns what every script can call. Conversions (integer, real,
// string, node), min, max, abs and random are typed by their arguments.
func builtins() map[string]builtin {
	return map[string]builtin{
		"output":     {params: []*Type{nodeType}, result: noneType},
		"wait":       {params: []*Type{realType}, result: noneType},
		"print":      {any: true, result: noneType},
		"checkpoint": {result: noneType},
		"now":        {result: realType},
		"pages":      {result: integerType},
		"sqrt":       {params: []*Type{realType}, result: realType},
		"ln":         {params: []*Type{realType}, result: realType},
		"exp":        {params: []*Type{realType}, result: realType},
		"trunc":      {params: []*Type{realType}, result: integerType},
		"round":      {params: []*Type{realType}, result: integerType},
		"length":     {params: []*Type{stringType}, result: integerType},
		"random":     {params: []*Type{integerType}, optional: 1},
		"abs":        {any: true},
		"min":        {any: true},
		"max":        {any: true},
	}
}

// conversions are the words of types that convert when called.
func conversions() map[string]*Type {
	return map[string]*Type{"integer": integerType, "real": realType, "string": stringType, "node": nodeType}
}

// call types name(args).
func (c *checker) call(x syntax.Expr, name string, args []syntax.Expr) *Expr {
	switch v := c.scope.find(name).(type) {
	case *Proc:
		return c.callProc(x, v, args)
	case *Var:
		return c.errorf(x, "%q is a variable of type %s and cannot be called", name, v.Type)
	case *constant:
		return c.errorf(x, "%q is a constant and cannot be called", name)
	}
	if to, ok := conversions()[name]; ok {
		return c.conversion(x, to, args)
	}
	b, ok := builtins()[name]
	if !ok {
		for _, a := range args {
			c.expr(a)
		}
		return c.unknown(x, name)
	}
	e := newExpr(x, OpBuiltin, b.result)
	e.Text = name
	if b.any {
		return c.anyCall(x, e, args)
	}
	if len(args) > len(b.params) || len(args) < len(b.params)-b.optional {
		return c.errorf(x, "%s takes %d arguments, not %d", name, len(b.params), len(args))
	}
	for i, a := range args {
		e.Args = append(e.Args, c.convert(a, c.expr(a), b.params[i], "the argument of "+name))
	}
	if name == "random" {
		e.Type = realType
		if len(args) == 1 {
			e.Type = integerType
		}
	}
	return e
}

// anyCall types print, abs, min and max.
func (c *checker) anyCall(x syntax.Expr, e *Expr, args []syntax.Expr) *Expr {
	for _, a := range args {
		e.Args = append(e.Args, c.expr(a))
	}
	for i, a := range e.Args {
		switch {
		case a.Type.Kind == Invalid:
			return newExpr(x, OpConst, invalidType)
		case e.Text == "print" && !a.Type.scalar(), e.Text != "print" && !a.Type.numeric():
			return c.errorf(args[i], "%s takes no %s", e.Text, a.Type)
		}
	}
	want := map[string]int{"abs": 1, "min": 2, "max": 2, "print": len(args)}[e.Text]
	if len(args) != want {
		return c.errorf(x, "%s takes %d arguments, not %d", e.Text, want, len(args))
	}
	switch e.Text {
	case "abs":
		e.Type = e.Args[0].Type
	case "min", "max":
		e.Args[0], e.Args[1] = c.unify(x, e.Args[0], e.Args[1])
		e.Type = e.Args[0].Type
	}
	return e
}

// conversion types integer(x), real(x), string(x) and node(x).
func (c *checker) conversion(x syntax.Expr, to *Type, args []syntax.Expr) *Expr {
	if len(args) != 1 {
		return c.errorf(x, "%s(...) converts one value, not %d", to, len(args))
	}
	e := c.expr(args[0])
	from := e.Type.Kind
	ok := false
	switch to.Kind {
	case Integer:
		ok = from == Integer || from == Boolean || from == Node
	case Real:
		ok = from == Integer || from == Real
	case String:
		ok = e.Type.scalar()
	case Node:
		ok = from == Integer || from == Node || from == Nil
	}
	switch {
	case from == Invalid:
		return e
	case !ok && to.Kind == Integer && from == Real:
		return c.errorf(x, "a real is made an integer by trunc(...) or round(...)")
	case !ok:
		return c.errorf(x, "%s cannot be converted to %s", e.Type, to)
	case to.Kind == Real:
		return c.lift(x, e, realType)
	case to.Kind == Integer && from == Boolean:
		return c.lift(x, e, integerType)
	case same(e.Type, to):
		return e
	}
	r := newExpr(x, OpBuiltin, to, e)
	r.Text = to.String()
	return r
}

// callProc types the call of a declared procedure or function.
func (c *checker) callProc(x syntax.Expr, p *Proc, args []syntax.Expr) *Expr {
	t := noneType
	if p.Result != nil {
		t = p.Result.Type
	}
	e := newExpr(x, OpCall, t)
	e.Proc = p
	if len(args) != len(p.Params) {
		return c.errorf(x, "%s takes %d arguments, not %d", p.Name, len(p.Params), len(args))
	}
	for i, a := range args {
		param := p.Params[i]
		v := c.expr(a)
		switch {
		case v.Type.Kind == Invalid || param.Type.Kind == Invalid:
		case param.ByRef || param.Type.Kind == File:
			if v.Op != OpLoad || v.Var.loop || !same(v.Type, param.Type) {
				v = c.errorf(a, "parameter %q of %s wants a variable of type %s that no loop runs over", param.Name, p.Name, param.Type)
			} else {
				v.Var.assigned = true
			}
		case param.Type.scalar():
			v = c.convert(a, v, param.Type, "parameter "+param.Name)
		case !same(v.Type, param.Type) && !(v.Type.Kind == Queue && param.Type.Elem != nil && (param.Type.Kind == Stack || param.Type.Kind == Sorted) && same(v.Type.Elem, param.Type.Elem)):
			v = c.errorf(a, "parameter %q of %s is %s, this is %s", param.Name, p.Name, param.Type, v.Type)
		}
		e.Args = append(e.Args, v)
	}
	return e
}

// member types x.name and x.name(args).
func (c *checker) member(x *syntax.Member) *Expr {
	r := c.expr(x.X)
	switch {
	case r.Type.Kind == Invalid:
		for _, a := range x.Args {
			c.expr(a)
		}
		return r
	case r.Type.Kind == Node:
		return c.attribute(x, r)
	case r.Type.scalar() || r.Type.Kind == Nil:
		return c.errorf(x, "%s has no members", r.Type)
	}
	return c.method(x, r)
}

// attribute types n.name and n.contains("word").
func (c *checker) attribute(x *syntax.Member, n *Expr) *Expr {
	if x.Name == "contains" && c.attrs["contains"] == nil {
		if len(x.Args) != 1 {
			return c.errorf(x, `contains takes the word that is looked for: n.contains("word")`)
		}
		e := newExpr(x, OpMethod, booleanType, n, c.convert(x.Args[0], c.expr(x.Args[0]), stringType, "the word"))
		e.Text = "contains"
		return e
	}
	a := c.attrs[x.Name]
	if a == nil {
		return c.errorf(x, "a node has no attribute %q%s", x.Name, suggestion(x.Name, append(slices.Collect(maps.Keys(c.attrs)), "contains")))
	}
	if x.Called && len(x.Args) > 0 {
		return c.errorf(x, "attribute %q takes no arguments", x.Name)
	}
	c.use(a)
	e := newExpr(x, OpAttr, a.Type, n)
	e.Attr = a
	return e
}

// method types the methods of containers.
func (c *checker) method(x *syntax.Member, r *Expr) *Expr {
	params, result, ok := signature(r.Type, x.Name)
	if !ok {
		return c.errorf(x, "%s has no %q; it has %s", r.Type, x.Name, strings.Join(methodNames(r.Type), ", "))
	}
	if len(x.Args) != len(params) {
		return c.errorf(x, "%s of %s takes %d arguments, not %d", x.Name, r.Type, len(params), len(x.Args))
	}
	e := newExpr(x, OpMethod, result, r)
	e.Text = x.Name
	for i, a := range x.Args {
		e.Args = append(e.Args, c.convert(a, c.expr(a), params[i], "the argument of "+x.Name))
	}
	return e
}

// signature returns the parameters and the result of a container's method.
func signature(t *Type, name string) (params []*Type, result *Type, ok bool) {
	switch name {
	case "size":
		return nil, integerType, true
	case "clear":
		return nil, noneType, t.Kind != File
	}
	switch t.Kind {
	case Queue, Sorted, Stack, File:
		switch name {
		case "pop", "top":
			return nil, t.Elem, true
		case "push":
			return []*Type{t.Elem}, noneType, t.Kind != File
		}
	case AOQ:
		switch name {
		case "push":
			return []*Type{nodeType}, noneType, true
		case "pop", "top":
			return []*Type{integerType}, nodesType, true
		case "server", "find":
			return []*Type{integerType}, integerType, true
		case "largest", "total":
			return nil, integerType, true
		}
	case Array:
		switch name {
		case "push":
			return []*Type{t.Elem}, noneType, true
		case "pop", "top":
			return nil, t.Elem, true
		case "resize":
			return []*Type{integerType}, noneType, true
		}
	case Map:
		switch name {
		case "has":
			return []*Type{t.Key}, booleanType, true
		case "remove":
			return []*Type{t.Key}, noneType, true
		}
	}
	return nil, nil, false
}

// methodNames lists the methods of a container.
func methodNames(t *Type) []string {
	var names []string
	for _, n := range []string{"push", "pop", "top", "size", "clear", "server", "find", "largest", "total", "resize", "has", "remove"} {
		if _, _, ok := signature(t, n); ok {
			names = append(names, n)
		}
	}
	return names
}

// index types a[i] and m[k].
func (c *checker) index(x *syntax.Index) *Expr {
	r, i := c.expr(x.X), c.expr(x.I)
	switch r.Type.Kind {
	case Invalid:
		return r
	case Array:
		return newExpr(x, OpIndex, r.Type.Elem, r, c.convert(x.I, i, integerType, "the index"))
	case Map:
		return newExpr(x, OpIndex, r.Type.Elem, r, c.convert(x.I, i, r.Type.Key, "the key"))
	}
	return c.errorf(x, "only arrays and maps are indexed, not %s", r.Type)
}
