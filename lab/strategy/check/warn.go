package check

import (
	"maps"
	"slices"

	"github.com/freshet/freshet/lab/strategy/syntax"
)

// warnUnused warns of variables of a procedure's scope that are never read, parameters excepted: their
// number may be given by the caller.
func (c *checker) warnUnused(s *scope) {
	for _, name := range slices.Sorted(maps.Keys(s.names)) {
		v, ok := s.names[name].(*Var)
		if ok && v.Local && !v.read && !v.param {
			c.diag.Warnf(v.at, v.at.Col+len(v.Name), "%q is never used", v.Name)
		}
	}
}

// unusedGlobals warns of variables and attributes that are never read.
func (c *checker) unusedGlobals() {
	for _, v := range c.prog.Globals {
		if !v.read {
			c.diag.Warnf(v.at, v.at.Col+len(v.Name), "%q is never used", v.Name)
		}
	}
	for _, a := range c.prog.Attrs {
		if !a.used {
			c.diag.Warnf(a.at, a.at.Col+len(a.Name), "attribute %q is never used", a.Name)
		}
	}
}

// popsFileTwice warns of a loop that takes two nodes of a file in one turn: a
// habit of old scripts, which pass over every second page or output one twice.
func (c *checker) popsFileTwice(s syntax.Stmt) {
	switch s := s.(type) {
	case *syntax.Block:
		for _, in := range s.List {
			c.popsFileTwice(in)
		}
	case *syntax.IfStmt:
		c.popsFileTwice(s.Then)
		c.popsFileTwice(s.Else)
	case *syntax.WhileStmt:
		c.warnRepeatedPops(s.Body)
		c.popsFileTwice(s.Body)
	case *syntax.RepeatStmt:
		body := &syntax.Block{List: s.List}
		c.warnRepeatedPops(body)
		c.popsFileTwice(body)
	case *syntax.ForStmt:
		c.warnRepeatedPops(s.Body)
		c.popsFileTwice(s.Body)
	}
}

// warnRepeatedPops warns of the second pop of each file in a loop's body, inner loops
// excepted.
func (c *checker) warnRepeatedPops(body syntax.Stmt) {
	seen := map[*Var]bool{}
	walkExprs(body, func(x syntax.Expr) {
		m, ok := x.(*syntax.Member)
		if !ok || m.Name != "pop" {
			return
		}
		id, ok := m.X.(*syntax.Ident)
		if !ok {
			return
		}
		v, _ := c.scope.findName(id.Name).(*Var)
		if v == nil || v.Type.Kind != File {
			return
		}
		if seen[v] {
			at, end := m.Span()
			c.diag.Warnf(at, end, "%q is popped a second time in one turn of the loop: nodes may be passed over, or fetched twice", v.Name)
		}
		seen[v] = true
	})
}

// walkExprs calls f with every expression of a statement that belongs to the
// same turn of a loop.
func walkExprs(s syntax.Stmt, f func(syntax.Expr)) {
	switch s := s.(type) {
	case *syntax.Block:
		for _, in := range s.List {
			walkExprs(in, f)
		}
	case *syntax.AssignStmt:
		walkExpr(s.Left, f)
		walkExpr(s.Right, f)
	case *syntax.CallStmt:
		walkExpr(s.X, f)
	case *syntax.IfStmt:
		walkExpr(s.Cond, f)
		walkExprs(s.Then, f)
		walkExprs(s.Else, f)
	}
}

func walkExpr(x syntax.Expr, f func(syntax.Expr)) {
	f(x)
	var in []syntax.Expr
	switch x := x.(type) {
	case *syntax.Unary:
		in = []syntax.Expr{x.X}
	case *syntax.Binary:
		in = []syntax.Expr{x.X, x.Y}
	case *syntax.Paren:
		in = []syntax.Expr{x.X}
	case *syntax.Call:
		in = x.Args
	case *syntax.Member:
		in = append([]syntax.Expr{x.X}, x.Args...)
	case *syntax.Index:
		in = []syntax.Expr{x.X, x.I}
	}
	for _, y := range in {
		walkExpr(y, f)
	}
}
