package check

import (
	"github.com/freshet/freshet/lab/strategy/syntax"
)

func (c *checker) checkStmts(list []syntax.Stmt) []Stmt {
	var out []Stmt
	for _, s := range list {
		out = append(out, c.checkStmt(s)...)
	}
	return out
}

// checkLoopBody checks the body of a loop.
func (c *checker) checkLoopBody(s syntax.Stmt) []Stmt {
	c.loops++
	defer func() { c.loops-- }()
	return c.checkStmt(s)
}

func (c *checker) checkStmt(s syntax.Stmt) []Stmt {
	switch s := s.(type) {
	case nil, *syntax.EmptyStmt:
		return nil
	case *syntax.Block:
		return c.checkStmts(s.List)
	case *syntax.AssignStmt:
		return c.checkAssignment(s)
	case *syntax.CallStmt:
		return c.callStmt(s)
	case *syntax.IfStmt:
		return []Stmt{&If{c.checkCondition(s.Cond), c.checkStmt(s.Then), c.checkStmt(s.Else)}}
	case *syntax.WhileStmt:
		return []Stmt{&While{Pos: s.Pos, Cond: c.checkCondition(s.Cond), Body: c.checkLoopBody(s.Body)}}
	case *syntax.RepeatStmt:
		body := c.checkLoopBody(&syntax.Block{List: s.List})
		return []Stmt{&While{Pos: s.Pos, Cond: c.checkCondition(s.Cond), Body: body, Until: true}}
	case *syntax.ForStmt:
		return c.checkForStmt(s)
	}
	return nil
}

func (c *checker) checkCondition(x syntax.Expr) *Expr {
	return c.convertTo(x, c.checkExpr(x), booleanType, "a condition")
}

// checkAssignment checks left := right.
func (c *checker) checkAssignment(s *syntax.AssignStmt) []Stmt {
	left := c.checkAssignTarget(s.Left)
	right := c.checkExpr(s.Right)
	if left.Type.Kind == Invalid || right.Type.Kind == Invalid {
		return nil
	}
	if left.Type.isScalar() {
		right = c.convertTo(s.Right, right, left.Type, "the left side")
		return []Stmt{&Assign{left, right}}
	}
	l, r := left.Type, right.Type
	nodes := l.Kind == Queue || l.Kind == Stack || l.Kind == Sorted
	switch {
	case l.Kind == File:
		c.reportErrorf(s.Left, "a file is read-only: nothing can be assigned to it")
	case sameType(l, r):
	case nodes && r.Kind == Queue && sameType(l.Elem, r.Elem): // pushed in the queue's order
	default:
		at, end := s.Right.Span()
		c.diag.Errorf(at, end, "%s cannot be assigned to %s", r, l)
	}
	return []Stmt{&Assign{left, right}}
}

// checkAssignTarget checks what stands left of :=.
func (c *checker) checkAssignTarget(x syntax.Expr) *Expr {
	switch x := x.(type) {
	case *syntax.Ident:
		switch v := c.scope.findName(x.Name).(type) {
		case *Var:
			v.assigned = true
			if v.loop {
				return c.reportErrorf(x, "%q is the variable of the loop around it and cannot be assigned here", v.Name)
			}
			return c.loadVariable(x, v)
		case *Proc:
			if v == c.proc && v.Result != nil {
				v.Result.assigned = true
				return c.loadVariable(x, v.Result)
			}
			return c.reportErrorf(x, "%q is a procedure; a function's value is assigned inside it", x.Name)
		case *constant:
			return c.reportErrorf(x, "%q is a constant", x.Name)
		}
		return c.reportUnknownName(x, x.Name)
	case *syntax.Member:
		e := c.checkExpr(x)
		if e.Type.Kind == Invalid {
			return e
		}
		if e.Op != OpAttr || e.Attr.Builtin != Declared {
			return c.reportErrorf(x, "%q cannot be assigned", x.Name)
		}
		return e
	case *syntax.Index:
		return c.checkExpr(x)
	case *syntax.Bad:
		return c.checkExpr(x)
	}
	return c.reportErrorf(x, "expected a variable, an attribute or an element left of :=")
}

func (c *checker) callStmt(s *syntax.CallStmt) []Stmt {
	if id, ok := s.X.(*syntax.Ident); ok && c.scope.findName(id.Name) == nil {
		if st, ok := c.checkJump(id); ok {
			return st
		}
	}
	e := c.exprOrCall(s.X)
	switch e.Op {
	case OpMethod, OpCall, OpBuiltin:
		return []Stmt{&Do{e}}
	}
	if e.Type.Kind != Invalid {
		c.reportErrorf(s.X, "this value is not used: expected an assignment or a call")
	}
	return nil
}

// checkJump recognises break, continue, exit and halt, which are no reserved words.
func (c *checker) checkJump(id *syntax.Ident) ([]Stmt, bool) {
	how := map[string]Jumps{"break": Break, "continue": Continue, "exit": Exit, "halt": Halt}[id.Name]
	if how == 0 {
		return nil, false
	}
	if c.loops == 0 && (how == Break || how == Continue) {
		c.reportErrorf(id, "%s stands in no loop", id.Name)
	}
	if how == Exit && c.proc == nil {
		c.reportErrorf(id, "exit leaves a procedure; halt ends the script")
	}
	return []Stmt{&Jump{id.At, how}}, true
}

// checkForStmt checks both kinds of for.
func (c *checker) checkForStmt(s *syntax.ForStmt) []Stmt {
	v, ok := c.scope.findName(s.Var.Name).(*Var)
	if !ok {
		c.reportUnknownName(s.Var, s.Var.Name)
	}
	from := c.checkExpr(s.From)
	var to *Expr
	if s.To != nil {
		to = c.checkExpr(s.To)
	}
	if ok {
		if v.loop {
			c.reportErrorf(s.Var, "%q is the variable of a loop around this one", v.Name)
		}
		if v.ByRef {
			c.reportErrorf(s.Var, "the variable of a loop cannot be a var parameter")
		}
		v.read, v.assigned, v.loop = true, true, true
		defer func() { v.loop = false }()
	}
	body := c.checkLoopBody(s.Body)
	if !ok {
		return nil
	}
	if s.To != nil {
		if v.Type.Kind != Integer && v.Type.Kind != Invalid {
			c.reportErrorf(s.Var, "the variable of for is an integer, not %s", v.Type)
		}
		return []Stmt{&Count{s.Pos, v, c.convertTo(s.From, from, integerType, "the first value"), c.convertTo(s.To, to, integerType, "the last value"), s.Down, body}}
	}
	want := invalidType
	t := from.Type
	switch {
	case from.Op == OpAttr && t.Kind == Queue, t.Kind == File, t.Kind == Array:
		want = t.Elem
	case t.Kind == Map:
		want = t.Key
	case t.Kind != Invalid:
		c.reportErrorf(s.From, "for ... in goes over links, a file, an array or the keys of a map, not %s: pop its elements in a while loop", t)
	}
	if want.Kind != Invalid && v.Type.Kind != Invalid && !sameType(want, v.Type) {
		c.reportErrorf(s.Var, "the elements are of type %s, %q is %s", want, v.Name, v.Type)
	}
	return []Stmt{&Each{s.Pos, v, from, body}}
}
