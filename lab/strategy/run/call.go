package run

import (
	"github.com/freshet/freshet/lab/strategy/check"
)

// compileCall compiles the call of a procedure. It returns the frame of the call, in
// which the result stands until the next call.
func (c *compiler) compileCall(e *check.Expr) func() *frame {
	m, d, p := c.m, c.procs[e.Proc], placeOf(e)
	var args []func(*frame)
	for i, a := range e.Args {
		args = append(args, c.compileArgument(e.Proc.Params[i], a))
	}
	var owned, nodes []int // slots of containers to make, and of nodes
	var types []*check.Type
	isParam := map[*check.Var]bool{}
	for _, v := range e.Proc.Params {
		isParam[v] = v.ByRef || v.Type.Kind == check.File
	}
	cost := int64(1)
	for _, v := range e.Proc.Locals {
		if v.Type.Kind == check.AOQ && !isParam[v] {
			cost += int64(m.web.Sites()) / 64 // its table of servers
		}
		switch {
		case isParam[v]:
		case isObject(v.Type):
			owned, types = append(owned, v.Slot), append(types, v.Type)
		case v.Type.Kind == check.Node:
			nodes = append(nodes, v.Slot)
		}
	}
	return func() *frame {
		m.countSteps(p, cost)
		f := m.enterFrame(p, e.Proc.Frame, d.levels)
		for _, s := range nodes {
			f.words[s] = -1
		}
		for i, s := range owned {
			o, err := m.newObject(types[i])
			m.failOnError(p, err)
			f.objs[s] = o
		}
		for _, arg := range args {
			arg(f)
		}
		caller := m.f
		m.f = f
		sig := d.body()
		m.f = caller
		for _, s := range owned {
			m.failOnError(p, f.objs[s].Free())
			f.objs[s] = nil
		}
		m.depth--
		m.nesting -= d.levels
		if sig == haltScript {
			panic(halted{})
		}
		return f
	}
}

// halted ends the script from inside a procedure, whose caller may be in the
// middle of an expression.
type halted struct{}

// enterFrame reserves the frame of a call; the caller's stays current until the
// arguments are known.
func (m *machine) enterFrame(p place, n check.Frame, levels int) *frame {
	if m.nesting += levels; m.nesting > maxLevels {
		m.failAt(p, "procedures call each other too deep: %d calls are open", m.depth)
	}
	if m.depth == len(m.frames) {
		m.frames = append(m.frames, &frame{})
	}
	f := m.frames[m.depth]
	m.depth++
	f.words = clearedSlice(f.words, n.Words)
	f.strs = clearedSlice(f.strs, n.Strings)
	f.objs = clearedSlice(f.objs, n.Objects)
	f.refs = clearedSlice(f.refs, n.Refs)
	f.strRefs = clearedSlice(f.strRefs, n.StringRefs)
	return f
}

// clearedSlice returns a slice of n zero elements, v if it is big enough.
func clearedSlice[T any](v []T, n int) []T {
	if n > cap(v) {
		return make([]T, n)
	}
	v = v[:n]
	clear(v)
	return v
}

// compileArgument compiles what puts an argument into the frame of a call.
func (c *compiler) compileArgument(v *check.Var, a *check.Expr) func(*frame) {
	m, slot, p := c.m, v.Slot, placeOf(a)
	switch {
	case isObject(v.Type):
		obj := c.compileContainer(a)
		if v.ByRef || v.Type.Kind == check.File {
			return func(f *frame) { f.objs[slot] = obj() }
		}
		return func(f *frame) { m.copyInto(p, f.objs[slot], obj()) }
	case v.Type.Kind == check.String && v.ByRef:
		ref := c.textRef(a.Var)
		return func(f *frame) { f.strRefs[slot] = ref() }
	case v.Type.Kind == check.String:
		x := c.compileText(a)
		return func(f *frame) { f.strs[slot] = x() }
	case v.ByRef:
		ref := c.compileReference(a.Var)
		return func(f *frame) { f.refs[slot] = ref() }
	}
	x := c.compileWord(a)
	return func(f *frame) { f.words[slot] = x() }
}

// compileReference compiles the place of a variable that holds a word.
func (c *compiler) compileReference(v *check.Var) func() *int64 {
	m, slot := c.m, v.Slot
	switch {
	case !v.Local:
		p := &m.words[slot]
		return func() *int64 { return p }
	case v.ByRef:
		return func() *int64 { return m.f.refs[slot] }
	}
	return func() *int64 { return &m.f.words[slot] }
}

func (c *compiler) textRef(v *check.Var) func() *string {
	m, slot := c.m, v.Slot
	switch {
	case !v.Local:
		p := &m.strs[slot]
		return func() *string { return p }
	case v.ByRef:
		return func() *string { return m.f.strRefs[slot] }
	}
	return func() *string { return &m.f.strs[slot] }
}

// callWord compiles the call of a function whose value is a word.
func (c *compiler) callWord(e *check.Expr) wordFunc {
	call := c.compileCall(e)
	if e.Proc.Result == nil {
		return func() int64 { call(); return 0 }
	}
	slot := e.Proc.Result.Slot
	return func() int64 { return call().words[slot] }
}

// compileCallStmt compiles a call whose value is not used.
func (c *compiler) compileCallStmt(e *check.Expr) stmtFunc {
	switch e.Op {
	case check.OpCall:
		call := c.compileCall(e)
		return func() signal { call(); return goOn }
	case check.OpMethod:
		return c.doMethod(e)
	case check.OpBuiltin:
		return c.doBuiltin(e)
	}
	return func() signal { return goOn }
}
