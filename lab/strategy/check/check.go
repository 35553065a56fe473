package check

import (
	"maps"
	"slices"
	"strings"

	"github.com/freshet/freshet/internal/spell"
	"github.com/freshet/freshet/lab/strategy/syntax"
)

// Options change what a script means from outside.
type Options struct {
	Set map[string]string // values of constants, instead of those in the script
}

// Check types a script. Errors and warnings go to diag; the program may be used
// only if there were no errors.
func Check(s *syntax.Script, opt Options, diag *syntax.Diagnostics) *Program {
	c := &checker{diag: diag, dialect: s.Dialect, set: maps.Clone(opt.Set), prog: &Program{}, attrs: map[string]*Attr{}}
	c.builtinAttrs()
	c.scope = &scope{names: map[string]any{}}
	c.checkDeclarations(s.Decls)
	for _, p := range c.bodies {
		c.procBody(p.proc, p.decl)
	}
	c.warnUnused(c.scope)
	c.prog.Body = c.checkStmts(s.Body.List)
	c.prog.Frame = c.frameOf(c.prog.Globals)
	c.unusedGlobals()
	for _, name := range slices.Sorted(maps.Keys(c.set)) {
		diag.Errorf(syntax.Pos{Line: 1, Col: 1}, 2, "no constant %q to set", name)
	}
	c.popsFileTwice(s.Body)
	return c.prog
}

// checker holds what is known while checking.
type checker struct {
	diag    *syntax.Diagnostics
	dialect syntax.Dialect
	set     map[string]string
	prog    *Program
	attrs   map[string]*Attr
	scope   *scope
	proc    *Proc // that is being checked; nil in the main body
	loops   int
	bodies  []pending
}

// pending is a procedure whose heading is known and whose body is not checked:
// bodies may call what is declared after them.
type pending struct {
	proc *Proc
	decl *syntax.Proc
}

// constant is the value of a declared constant.
type constant struct {
	value *Expr
	at    syntax.Pos
}

// scope maps names to *Var, *constant and *Proc.
type scope struct {
	names map[string]any
	outer *scope
}

func (s *scope) findName(name string) any {
	for ; s != nil; s = s.outer {
		if v, ok := s.names[name]; ok {
			return v
		}
	}
	return nil
}

func (c *checker) reportErrorf(e syntax.Expr, format string, args ...any) *Expr {
	at, end := e.Span()
	c.diag.Errorf(at, end, format, args...)
	return &Expr{Op: OpConst, Type: invalidType, Pos: at, End: end}
}

func (c *checker) reportErrorAt(n syntax.Name, format string, args ...any) {
	c.diag.Errorf(n.Pos, n.Pos.Col+len(n.Text), format, args...)
}

// builtinAttrs declares what every node has.
func (c *checker) builtinAttrs() {
	for _, a := range []*Attr{
		{Name: "outlinks", Type: nodesType, Builtin: Outlinks},
		{Name: "inlinks", Type: nodesType, Builtin: Inlinks},
		{Name: "url", Type: stringType, Builtin: URL},
		{Name: "server", Type: integerType, Builtin: Server},
		{Name: "depth", Type: integerType, Builtin: Depth},
		{Name: "age", Type: realType, Builtin: Age},
		{Name: "size", Type: integerType, Builtin: Size},
	} {
		c.attrs[a.Name] = a
	}
	visited := &Attr{Name: "visited", Type: booleanType, used: true}
	c.attrs["visited"] = visited
	c.prog.Attrs = []*Attr{visited}
}

// declareName puts a name into the innermost scope.
func (c *checker) declareName(n syntax.Name, v any) {
	if _, ok := c.scope.names[n.Text]; ok {
		c.reportErrorAt(n, "%q is declared twice", n.Text)
		return
	}
	c.scope.names[n.Text] = v
}

func (c *checker) checkDeclarations(ds []syntax.Decl) {
	for _, d := range ds {
		if a, ok := d.(*syntax.AttrSection); ok { // queues of any section may be sorted by them
			if c.proc != nil {
				for _, v := range a.List {
					c.reportErrorAt(v.Names[0], "attributes are declared outside of procedures")
				}
				continue
			}
			c.declareAttributes(a)
		}
	}
	for _, d := range ds {
		switch d := d.(type) {
		case *syntax.ConstSection:
			for _, k := range d.List {
				c.declareConstant(k)
			}
		case *syntax.VarSection:
			for _, v := range d.List {
				c.declareVariables(v)
			}
		case *syntax.Proc:
			if c.proc != nil {
				c.reportErrorAt(d.Name, "a procedure cannot be declared inside another")
				continue
			}
			c.checkHeading(d)
		}
	}
}

func (c *checker) declareAttributes(s *syntax.AttrSection) {
	for _, d := range s.List {
		t := c.resolveType(d.Type)
		for _, n := range d.Names {
			if n.Param != "" {
				c.reportErrorAt(n, "an attribute has no parameter")
			}
			if !t.isScalar() || t.Kind == String {
				if t.Kind != Invalid {
					c.reportErrorAt(n, "an attribute is an integer, real, boolean or node, not %s", t)
				}
				t = invalidType
			}
			switch old := c.attrs[n.Text]; {
			case old != nil && n.Text == "visited" && t.Kind == Boolean:
				continue // every node has it
			case old != nil && (old.Builtin == Outlinks || old.Builtin == Inlinks || n.Text == "visited"):
				c.reportErrorAt(n, "every node has %q already, of type %s", n.Text, old.Type)
			case old != nil && old.Builtin == Declared:
				c.reportErrorAt(n, "attribute %q is declared twice", n.Text)
			default:
				a := &Attr{Name: n.Text, Type: t, Column: len(c.prog.Attrs), at: n.Pos}
				c.attrs[n.Text] = a
				c.prog.Attrs = append(c.prog.Attrs, a)
			}
		}
	}
}

// resolveType resolves a type as written.
func (c *checker) resolveType(t *syntax.Type) *Type {
	bad := func(at syntax.Pos, format string, args ...any) *Type {
		c.diag.Errorf(at, at.Col+1, format, args...)
		return invalidType
	}
	elem := func(what string) *Type {
		e := c.resolveType(t.Elem)
		if e.Kind != Invalid && !e.isScalar() {
			return bad(t.Elem.Pos, "%s holds integers, reals, booleans, strings or nodes, not %s", what, e)
		}
		return e
	}
	switch t.Kind {
	case syntax.IntegerType:
		return integerType
	case syntax.RealType:
		return realType
	case syntax.BooleanType:
		return booleanType
	case syntax.StringType:
		return stringType
	case syntax.NodeType:
		return nodeType
	case syntax.File:
		return &Type{Kind: File, Elem: nodeType}
	case syntax.AOQ:
		return &Type{Kind: AOQ, Elem: nodesType}
	case syntax.Queue:
		e := elem("a queue")
		if t.Param != "" {
			return c.sortedBy(t.Param, t.At, e)
		}
		return &Type{Kind: Queue, Elem: e}
	case syntax.Stack:
		return &Type{Kind: Stack, Elem: elem("a stack")}
	case syntax.Array:
		return &Type{Kind: Array, Elem: elem("an array")}
	case syntax.Map:
		k, e := c.resolveType(t.Key), elem("a map")
		if k.Kind != Invalid && k.Kind != Integer && k.Kind != String && k.Kind != Node {
			return bad(t.Key.Pos, "the keys of a map are integers, strings or nodes, not %s", k)
		}
		return &Type{Kind: Map, Key: k, Elem: e}
	}
	return invalidType
}

// sortedBy is the type queue(by) of elem.
func (c *checker) sortedBy(by string, at syntax.Pos, elem *Type) *Type {
	switch elem.Kind {
	case Integer, Real:
		return &Type{Kind: Sorted, Elem: elem} // the parameter only says: sorted
	case Invalid:
		return invalidType
	case Node:
	default:
		c.diag.Errorf(at, at.Col+len(by), "a sorted queue holds nodes, integers or reals, not %s", elem)
		return invalidType
	}
	a := c.attrs[strings.ToLower(by)]
	switch {
	case a == nil:
		c.diag.Errorf(at, at.Col+len(by), "unknown attribute %q%s", by, spell.Suggest(strings.ToLower(by), slices.Sorted(maps.Keys(c.attrs))))
		return invalidType
	case a.Type.Kind != Integer && a.Type.Kind != Real && a.Type.Kind != Boolean:
		if a.Type.Kind != Invalid {
			c.diag.Errorf(at, at.Col+len(by), "a queue is sorted by numbers; %q is %s", by, a.Type)
		}
		return invalidType
	}
	c.noteAttributeUse(a)
	return &Type{Kind: Sorted, Elem: nodeType, By: a}
}

// noteAttributeUse notes that an attribute is used.
func (c *checker) noteAttributeUse(a *Attr) {
	a.used = true
	switch a.Builtin {
	case Depth:
		c.prog.Uses.Depth = true
	case Age:
		c.prog.Uses.Age = true
	case Server:
		c.prog.Uses.Server = true
	}
}

// declareVariables declares variables, in the current procedure or globally.
func (c *checker) declareVariables(d *syntax.VarDecl) []*Var {
	t := c.resolveType(d.Type)
	var list []*Var
	for _, n := range d.Names {
		v := &Var{Name: n.Text, Type: t, Local: c.proc != nil, ByRef: d.ByRef, at: n.Pos}
		switch {
		case n.Param == "" || t.Kind == Invalid:
		case t.Kind == File:
			v.Path = n.Param
		case t.Kind == Queue:
			v.Type = c.sortedBy(n.Param, n.At, t.Elem)
		case t.Kind == Sorted:
			c.diag.Errorf(n.At, n.At.Col+len(n.Param), "the queue is sorted twice: after its name and in its type")
		default:
			c.diag.Errorf(n.At, n.At.Col+len(n.Param), "only a queue (sorted by an attribute) and a file (its path) have a parameter, not %s", t)
		}
		if v.Type.Kind == File && v.Local {
			c.reportErrorAt(n, "a file is declared outside of procedures")
		}
		if v.Type.Kind == AOQ || v.Type.Kind == File {
			c.prog.Uses.Server = c.prog.Uses.Server || v.Type.Kind == AOQ
		}
		c.declareName(n, v)
		list = append(list, v)
		if c.proc != nil {
			c.proc.Locals = append(c.proc.Locals, v)
		} else {
			c.prog.Globals = append(c.prog.Globals, v)
		}
	}
	return list
}

func (c *checker) checkHeading(d *syntax.Proc) {
	p := &Proc{Name: d.Name.Text, at: d.Name.Pos}
	c.declareName(d.Name, p)
	outer := c.scope
	c.scope, c.proc = &scope{names: map[string]any{}}, p // parameters are declared again with the body
	for _, v := range d.Params {
		p.Params = append(p.Params, c.declareVariables(v)...)
	}
	if d.Result != nil {
		t := c.resolveType(d.Result)
		if !t.isScalar() && t.Kind != Invalid {
			c.diag.Errorf(d.Result.Pos, d.Result.Pos.Col+1, "a function's value is an integer, real, boolean, string or node, not %s", t)
			t = invalidType
		}
		p.Result = &Var{Name: p.Name, Type: t, Local: true, at: p.at, read: true}
		p.Locals = append(p.Locals, p.Result)
	}
	c.scope, c.proc = outer, nil
	c.prog.Procs = append(c.prog.Procs, p)
	c.bodies = append(c.bodies, pending{p, d})
}

func (c *checker) procBody(p *Proc, d *syntax.Proc) {
	c.proc = p
	c.scope = &scope{names: map[string]any{}, outer: c.scope}
	for _, v := range p.Params {
		c.scope.names[v.Name] = v
		v.assigned, v.param = true, true
	}
	c.checkDeclarations(d.Decls)
	p.Body = c.checkStmts(d.Body.List)
	p.Frame = c.frameOf(p.Locals)
	if p.Result != nil && !p.Result.assigned {
		c.diag.Warnf(p.at, p.at.Col+len(p.Name), "function %q never gets a value: assign to its name", p.Name)
	}
	c.warnUnused(c.scope)
	c.scope, c.proc = c.scope.outer, nil
}

// frameOf gives variables their slots.
func (c *checker) frameOf(vars []*Var) Frame {
	var f Frame
	for _, v := range vars {
		n := &f.Words
		switch {
		case v.Type.Kind == String && v.ByRef:
			n = &f.StringRefs
		case v.Type.Kind == String:
			n = &f.Strings
		case v.Type.isScalar() && v.ByRef:
			n = &f.Refs
		case v.Type.isScalar():
		default:
			n = &f.Objects
		}
		v.Slot = *n
		*n++
	}
	return f
}
