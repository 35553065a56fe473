package check

import (
	"github.com/freshet/freshet/lab/strategy/syntax"
)

func (c *checker) stmts(list []syntax.Stmt) []Stmt {
	var out []Stmt
	for _, s := range list {
		out = append(out, c.stmt(s)...)
	}
	return out
}

// loop checks the body of a loop.
func (c *checker) loop(s syntax.Stmt) []Stmt {
	c.loops++
	defer func() { c.loops-- }()
	return c.stmt(s)
}

func (c *checker) stmt(s syntax.Stmt) []Stmt {
	switch s := s.(type) {
	case nil, *syntax.EmptyStmt:
		return nil
	case *syntax.Block:
		return c.stmts(s.List)
	case *syntax.AssignStmt:
		return c.assign(s)
	case *syntax.CallStmt:
		return c.callStmt(s)
	case *syntax.IfStmt:
		return []Stmt{&If{c.cond(s.Cond), c.stmt(s.Then), c.stmt(s.Else)}}
	case *syntax.WhileStmt:
		return []Stmt{&While{Pos: s.Pos, Cond: c.cond(s.Cond), Body: c.loop(s.Body)}}
	case *syntax.RepeatStmt:
		body := c.loop(&syntax.Block{List: s.List})
		return []Stmt{&While{Pos: s.Pos, Cond: c.cond(s.Cond), Body: body, Until: true}}
	case *syntax.ForStmt:
		return c.forStmt(s)
	}
	return nil
}

func (c *checker) cond(x syntax.Expr) *Expr {
	return c.convert(x, c.expr(x), booleanType, "a condition")
}

// assign checks left := right.
func (c *checker) assign(s *syntax.AssignStmt) []Stmt {
	left := c.target(s.Left)
	right := c.expr(s.Right)
	if left.Type.Kind == Invalid || right.Type.Kind == Invalid {
		return nil
	}
	if left.Type.scalar() {
		right = c.convert(s.Right, right, left.Type, "the left side")
		return []Stmt{&Assign{left, right}}
	}
	l, r := left.Type, right.Type
	nodes := l.Kind == Queue || l.Kind == Stack || l.Kind == Sorted
	switch {
	case l.Kind == File:
		c.errorf(s.Left, "a file is read-only: nothing can be assigned to it")
	case same(l, r):
	case nodes && r.Kind == Queue && same(l.Elem, r.Elem): // pushed in the queue's order
	default:
		at, end := s.Right.Span()
		c.diag.Errorf(at, end, "%s cannot be assigned to %s", r, l)
	}
	return []Stmt{&Assign{left, right}}
}

// target checks what stands left of :=.
func (c *checker) target(x syntax.Expr) *Expr {
	switch x := x.(type) {
	case *syntax.Ident:
		switch v := c.scope.find(x.Name).(type) {
		case *Var:
			v.assigned = true
			if v.loop {
				return c.errorf(x, "%q is the variable of the loop around it and cannot be assigned here", v.Name)
			}
			return c.load(x, v)
		case *Proc:
			if v == c.proc && v.Result != nil {
				v.Result.assigned = true
				return c.load(x, v.Result)
			}
			return c.errorf(x, "%q is a procedure; a function's value is assigned inside it", x.Name)
		case *constant:
			return c.errorf(x, "%q is a constant", x.Name)
		}
		return c.unknown(x, x.Name)
	case *syntax.Member:
		e := c.expr(x)
		if e.Type.Kind == Invalid {
			return e
		}
		if e.Op != OpAttr || e.Attr.Builtin != Declared {
			return c.errorf(x, "%q cannot be assigned", x.Name)
		}
		return e
	case *syntax.Index:
		return c.expr(x)
	case *syntax.Bad:
		return c.expr(x)
	}
	return c.errorf(x, "expected a variable, an attribute or an element left of :=")
}

func (c *checker) callStmt(s *syntax.CallStmt) []Stmt {
	if id, ok := s.X.(*syntax.Ident); ok && c.scope.find(id.Name) == nil {
		if st, ok := c.jump(id); ok {
			return st
		}
	}
	e := c.exprOrCall(s.X)
	switch e.Op {
	case OpMethod, OpCall, OpBuiltin:
		return []Stmt{&Do{e}}
	}
	if e.Type.Kind != Invalid {
		c.errorf(s.X, "this value is not used: expected an assignment or a call")
	}
	return nil
}

// jump recognises break, continue, exit and halt, which are no reserved words.
func (c *checker) jump(id *syntax.Ident) ([]Stmt, bool) {
	how := map[string]Jumps{"break": Break, "continue": Continue, "exit": Exit, "halt": Halt}[id.Name]
	if how == 0 {
		return nil, false
	}
	if c.loops == 0 && (how == Break || how == Continue) {
		c.errorf(id, "%s stands in no loop", id.Name)
	}
	if how == Exit && c.proc == nil {
		c.errorf(id, "exit leaves a procedure; halt ends the script")
	}
	return []Stmt{&Jump{id.At, how}}, true
}

// forStmt checks both kinds of for.
func (c *checker) forStmt(s *syntax.ForStmt) []Stmt {
	v, ok := c.scope.find(s.Var.Name).(*Var)
	if !ok {
		c.unknown(s.Var, s.Var.Name)
	}
	from := c.expr(s.From)
	var to *Expr
	if s.To != nil {
		to = c.expr(s.To)
	}
	if ok {
		if v.loop {
			c.errorf(s.Var, "%q is the variable of a loop around this one", v.Name)
		}
		if v.ByRef {
			c.errorf(s.Var, "the variable of a loop cannot be a var parameter")
		}
		v.read, v.assigned, v.loop = true, true, true
		defer func() { v.loop = false }()
	}
	body := c.loop(s.Body)
	if !ok {
		return nil
	}
	if s.To != nil {
		if v.Type.Kind != Integer && v.Type.Kind != Invalid {
			c.errorf(s.Var, "the variable of for is an integer, not %s", v.Type)
		}
		return []Stmt{&Count{s.Pos, v, c.convert(s.From, from, integerType, "the first value"), c.convert(s.To, to, integerType, "the last value"), s.Down, body}}
	}
	want := invalidType
	t := from.Type
	switch {
	case from.Op == OpAttr && t.Kind == Queue, t.Kind == File, t.Kind == Array:
		want = t.Elem
	case t.Kind == Map:
		want = t.Key
	case t.Kind != Invalid:
		c.errorf(s.From, "for ... in goes over links, a file, an array or the keys of a map, not %s: pop its elements in a while loop", t)
	}
	if want.Kind != Invalid && v.Type.Kind != Invalid && !same(want, v.Type) {
		c.errorf(s.Var, "the elements are of type %s, %q is %s", want, v.Name, v.Type)
	}
	return []Stmt{&Each{s.Pos, v, from, body}}
}
