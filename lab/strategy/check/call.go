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

// builtinFunctions returns what every script can call. Conversions (integer, real,
// string, node), min, max, abs and random are typed by their arguments.
func builtinFunctions() map[string]builtin {
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

// conversionTypes are the words of types that convert when called.
func conversionTypes() map[string]*Type {
	return map[string]*Type{"integer": integerType, "real": realType, "string": stringType, "node": nodeType}
}

// checkCall types name(args).
func (c *checker) checkCall(x syntax.Expr, name string, args []syntax.Expr) *Expr {
	switch v := c.scope.findName(name).(type) {
	case *Proc:
		return c.callProc(x, v, args)
	case *Var:
		return c.reportErrorf(x, "%q is a variable of type %s and cannot be called", name, v.Type)
	case *constant:
		return c.reportErrorf(x, "%q is a constant and cannot be called", name)
	}
	if to, ok := conversionTypes()[name]; ok {
		return c.checkConversion(x, to, args)
	}
	b, ok := builtinFunctions()[name]
	if !ok {
		for _, a := range args {
			c.checkExpr(a)
		}
		return c.reportUnknownName(x, name)
	}
	e := newExpr(x, OpBuiltin, b.result)
	e.Text = name
	if b.any {
		return c.anyCall(x, e, args)
	}
	if len(args) > len(b.params) || len(args) < len(b.params)-b.optional {
		return c.reportErrorf(x, "%s takes %d arguments, not %d", name, len(b.params), len(args))
	}
	for i, a := range args {
		e.Args = append(e.Args, c.convertTo(a, c.checkExpr(a), b.params[i], "the argument of "+name))
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
		e.Args = append(e.Args, c.checkExpr(a))
	}
	for i, a := range e.Args {
		switch {
		case a.Type.Kind == Invalid:
			return newExpr(x, OpConst, invalidType)
		case e.Text == "print" && !a.Type.isScalar(), e.Text != "print" && !a.Type.isNumeric():
			return c.reportErrorf(args[i], "%s takes no %s", e.Text, a.Type)
		}
	}
	want := map[string]int{"abs": 1, "min": 2, "max": 2, "print": len(args)}[e.Text]
	if len(args) != want {
		return c.reportErrorf(x, "%s takes %d arguments, not %d", e.Text, want, len(args))
	}
	switch e.Text {
	case "abs":
		e.Type = e.Args[0].Type
	case "min", "max":
		e.Args[0], e.Args[1] = c.unifyTypes(x, e.Args[0], e.Args[1])
		e.Type = e.Args[0].Type
	}
	return e
}

// checkConversion types integer(x), real(x), string(x) and node(x).
func (c *checker) checkConversion(x syntax.Expr, to *Type, args []syntax.Expr) *Expr {
	if len(args) != 1 {
		return c.reportErrorf(x, "%s(...) converts one value, not %d", to, len(args))
	}
	e := c.checkExpr(args[0])
	from := e.Type.Kind
	ok := false
	switch to.Kind {
	case Integer:
		ok = from == Integer || from == Boolean || from == Node
	case Real:
		ok = from == Integer || from == Real
	case String:
		ok = e.Type.isScalar()
	case Node:
		ok = from == Integer || from == Node || from == Nil
	}
	switch {
	case from == Invalid:
		return e
	case !ok && to.Kind == Integer && from == Real:
		return c.reportErrorf(x, "a real is made an integer by trunc(...) or round(...)")
	case !ok:
		return c.reportErrorf(x, "%s cannot be converted to %s", e.Type, to)
	case to.Kind == Real:
		return c.widenType(x, e, realType)
	case to.Kind == Integer && from == Boolean:
		return c.widenType(x, e, integerType)
	case sameType(e.Type, to):
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
		return c.reportErrorf(x, "%s takes %d arguments, not %d", p.Name, len(p.Params), len(args))
	}
	for i, a := range args {
		param := p.Params[i]
		v := c.checkExpr(a)
		switch {
		case v.Type.Kind == Invalid || param.Type.Kind == Invalid:
		case param.ByRef || param.Type.Kind == File:
			if v.Op != OpLoad || v.Var.loop || !sameType(v.Type, param.Type) {
				v = c.reportErrorf(a, "parameter %q of %s wants a variable of type %s that no loop runs over", param.Name, p.Name, param.Type)
			} else {
				v.Var.assigned = true
			}
		case param.Type.isScalar():
			v = c.convertTo(a, v, param.Type, "parameter "+param.Name)
		case !sameType(v.Type, param.Type) && !(v.Type.Kind == Queue && param.Type.Elem != nil && (param.Type.Kind == Stack || param.Type.Kind == Sorted) && sameType(v.Type.Elem, param.Type.Elem)):
			v = c.reportErrorf(a, "parameter %q of %s is %s, this is %s", param.Name, p.Name, param.Type, v.Type)
		}
		e.Args = append(e.Args, v)
	}
	return e
}

// checkMember types x.name and x.name(args).
func (c *checker) checkMember(x *syntax.Member) *Expr {
	r := c.checkExpr(x.X)
	switch {
	case r.Type.Kind == Invalid:
		for _, a := range x.Args {
			c.checkExpr(a)
		}
		return r
	case r.Type.Kind == Node:
		return c.checkAttribute(x, r)
	case r.Type.isScalar() || r.Type.Kind == Nil:
		return c.reportErrorf(x, "%s has no members", r.Type)
	}
	return c.checkMethod(x, r)
}

// checkAttribute types n.name and n.contains("word").
func (c *checker) checkAttribute(x *syntax.Member, n *Expr) *Expr {
	if x.Name == "contains" && c.attrs["contains"] == nil {
		if len(x.Args) != 1 {
			return c.reportErrorf(x, `contains takes the word that is looked for: n.contains("word")`)
		}
		e := newExpr(x, OpMethod, booleanType, n, c.convertTo(x.Args[0], c.checkExpr(x.Args[0]), stringType, "the word"))
		e.Text = "contains"
		return e
	}
	a := c.attrs[x.Name]
	if a == nil {
		return c.reportErrorf(x, "a node has no attribute %q%s", x.Name, nearestName(x.Name, append(slices.Collect(maps.Keys(c.attrs)), "contains")))
	}
	if x.Called && len(x.Args) > 0 {
		return c.reportErrorf(x, "attribute %q takes no arguments", x.Name)
	}
	c.noteAttributeUse(a)
	e := newExpr(x, OpAttr, a.Type, n)
	e.Attr = a
	return e
}

// checkMethod types the methods of containers.
func (c *checker) checkMethod(x *syntax.Member, r *Expr) *Expr {
	params, result, ok := methodSignature(r.Type, x.Name)
	if !ok {
		return c.reportErrorf(x, "%s has no %q; it has %s", r.Type, x.Name, strings.Join(methodNames(r.Type), ", "))
	}
	if len(x.Args) != len(params) {
		return c.reportErrorf(x, "%s of %s takes %d arguments, not %d", x.Name, r.Type, len(params), len(x.Args))
	}
	e := newExpr(x, OpMethod, result, r)
	e.Text = x.Name
	for i, a := range x.Args {
		e.Args = append(e.Args, c.convertTo(a, c.checkExpr(a), params[i], "the argument of "+x.Name))
	}
	return e
}

// methodSignature returns the parameters and the result of a container's method.
func methodSignature(t *Type, name string) (params []*Type, result *Type, ok bool) {
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
		if _, _, ok := methodSignature(t, n); ok {
			names = append(names, n)
		}
	}
	return names
}

// checkIndex types a[i] and m[k].
func (c *checker) checkIndex(x *syntax.Index) *Expr {
	r, i := c.checkExpr(x.X), c.checkExpr(x.I)
	switch r.Type.Kind {
	case Invalid:
		return r
	case Array:
		return newExpr(x, OpIndex, r.Type.Elem, r, c.convertTo(x.I, i, integerType, "the index"))
	case Map:
		return newExpr(x, OpIndex, r.Type.Elem, r, c.convertTo(x.I, i, r.Type.Key, "the key"))
	}
	return c.reportErrorf(x, "only arrays and maps are indexed, not %s", r.Type)
}
