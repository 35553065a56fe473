package run

import (
	"math"

	"github.com/freshet/freshet/lab/strategy/check"
)

// Closures of a compiled program. They hold pointers to global variables and
// read local ones from the machine's current frame. A word is an integer, a
// boolean (0 or 1), a node (-1 is nil), the bits of a real, or, in containers,
// the number of an interned string.
type (
	wordFunc func() int64
	condFunc func() bool
	realFunc func() float64
	textFunc func() string
	stmtFunc func() signal
)

// signal says how a statement ended.
type signal uint8

const (
	goOn       signal = iota
	breakLoop         // leave the innermost loop
	nextTurn          // go on with its next turn
	leaveProc         // leave the procedure
	haltScript        // end the script
)

func wordToReal(v int64) float64  { return math.Float64frombits(uint64(v)) }
func realToWord(v float64) int64  { return int64(math.Float64bits(v)) }
func placeOf(e *check.Expr) place { return place{e.Pos, e.End} }

func boolToWord(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// compiler turns typed trees into closures of one machine.
type compiler struct {
	m     *machine
	procs map[*check.Proc]*procedure
}

// newCompiler returns the compiler of a program whose procedures are compiled.
func newCompiler(m *machine, p *check.Program) *compiler {
	c := &compiler{m: m, procs: map[*check.Proc]*procedure{}}
	for _, pr := range p.Procs {
		c.procs[pr] = &procedure{}
	}
	for _, pr := range p.Procs {
		c.compileProcedure(pr)
	}
	return c
}

// procedure is a compiled procedure; its body is set after all are known.
type procedure struct {
	proc *check.Proc
	body stmtFunc
	// levels is how deep its closures nest at most, about: what a call costs of the
	// Go stack.
	levels int
}

// maxLevels bounds the nesting of closures over all calls: some 100 MB of stack.
const maxLevels = 400_000

func (c *compiler) compileProcedure(p *check.Proc) {
	d := c.procs[p]
	d.proc = p
	d.body = c.compileBlock(p.Body)
	d.levels = 8 + 4*stmtsDepth(p.Body)
}

// stmtsDepth is how deep statements and expressions nest.
func stmtsDepth(list []check.Stmt) int {
	deepest := 0
	for _, s := range list {
		d := 0
		switch s := s.(type) {
		case *check.Assign:
			d = max(exprDepth(s.Left), exprDepth(s.Right))
		case *check.Do:
			d = exprDepth(s.X)
		case *check.If:
			d = max(exprDepth(s.Cond), stmtsDepth(s.Then), stmtsDepth(s.Else))
		case *check.While:
			d = max(exprDepth(s.Cond), stmtsDepth(s.Body))
		case *check.Count:
			d = max(exprDepth(s.From), exprDepth(s.To), stmtsDepth(s.Body))
		case *check.Each:
			d = max(exprDepth(s.X), stmtsDepth(s.Body))
		}
		deepest = max(deepest, d+1)
	}
	return deepest
}

func exprDepth(e *check.Expr) int {
	d := 0
	for _, a := range e.Args {
		d = max(d, exprDepth(a))
	}
	return d + 1
}

// compileBlock compiles a list of statements, the short ones without a loop.
func (c *compiler) compileBlock(list []check.Stmt) stmtFunc {
	var fs []stmtFunc
	for _, s := range list {
		fs = append(fs, c.compileStmt(s))
	}
	switch len(fs) {
	case 0:
		return func() signal { return goOn }
	case 1:
		return fs[0]
	case 2:
		a, b := fs[0], fs[1]
		return func() signal {
			if s := a(); s != goOn {
				return s
			}
			return b()
		}
	case 3:
		a, b, d := fs[0], fs[1], fs[2]
		return func() signal {
			if s := a(); s != goOn {
				return s
			}
			if s := b(); s != goOn {
				return s
			}
			return d()
		}
	}
	return func() signal {
		for _, f := range fs {
			if s := f(); s != goOn {
				return s
			}
		}
		return goOn
	}
}

func (c *compiler) compileStmt(s check.Stmt) stmtFunc {
	switch s := s.(type) {
	case *check.Assign:
		return c.compileAssign(s.Left, s.Right)
	case *check.Do:
		return c.compileCallStmt(s.X)
	case *check.If:
		return c.ifStmt(s)
	case *check.While:
		return c.compileWhile(s)
	case *check.Count:
		return c.compileCount(s)
	case *check.Each:
		return c.compileEach(s)
	case *check.Jump:
		sig := map[check.Jumps]signal{check.Break: breakLoop, check.Continue: nextTurn, check.Exit: leaveProc, check.Halt: haltScript}[s.How]
		return func() signal { return sig }
	}
	return func() signal { return goOn }
}

func (c *compiler) ifStmt(s *check.If) stmtFunc {
	cond, then := c.compileCondition(s.Cond), c.compileBlock(s.Then)
	if len(s.Else) == 0 {
		return func() signal {
			if cond() {
				return then()
			}
			return goOn
		}
	}
	els := c.compileBlock(s.Else)
	return func() signal {
		if cond() {
			return then()
		}
		return els()
	}
}

func (c *compiler) compileWhile(s *check.While) stmtFunc {
	m, cond, body, at := c.m, c.compileCondition(s.Cond), c.compileBlock(s.Body), place{s.Pos, s.Pos.Col + 1}
	if s.Until {
		return func() signal {
			for {
				if sig := body(); sig > breakLoop && sig != nextTurn {
					return sig
				} else if sig == breakLoop {
					return goOn
				}
				if m.steps--; m.steps < 0 {
					m.checkLimits(at)
				}
				if cond() {
					return goOn
				}
			}
		}
	}
	return func() signal {
		for cond() {
			if m.steps--; m.steps < 0 {
				m.checkLimits(at)
			}
			if sig := body(); sig != goOn {
				if sig == breakLoop {
					break
				}
				if sig != nextTurn {
					return sig
				}
			}
		}
		return goOn
	}
}

func (c *compiler) compileCount(s *check.Count) stmtFunc {
	m, from, to, body, at := c.m, c.compileWord(s.From), c.compileWord(s.To), c.compileBlock(s.Body), place{s.Pos, s.Pos.Col + 1}
	set := c.setWord(s.Var)
	step := int64(1)
	if s.Down {
		step = -1
	}
	return func() signal {
		i, last := from(), to()
		if s.Down && i < last || !s.Down && i > last {
			return goOn
		}
		for ; ; i += step {
			set(i)
			if m.steps--; m.steps < 0 {
				m.checkLimits(at)
			}
			if sig := body(); sig != goOn {
				if sig == breakLoop {
					return goOn
				}
				if sig != nextTurn {
					return sig
				}
			}
			if i == last {
				return goOn
			}
		}
	}
}

// compileEach compiles for v in x: links, a file, an array, the keys of a map.
func (c *compiler) compileEach(s *check.Each) stmtFunc {
	m, body, at := c.m, c.compileBlock(s.Body), place{s.Pos, s.Pos.Col + 1}
	set := c.setElem(s.Var)
	turn := func(v int64) signal {
		set(v)
		if m.steps--; m.steps < 0 {
			m.checkLimits(at)
		}
		sig := body()
		if sig == nextTurn {
			return goOn
		}
		return sig
	}
	over := func(n func() int, elem func(i int) int64) signal {
		for i := 0; i < n(); i++ {
			if sig := turn(elem(i)); sig != goOn {
				if sig == breakLoop {
					return goOn
				}
				return sig
			}
		}
		return goOn
	}
	if s.X.Op == check.OpAttr {
		list := c.compileLinks(s.X)
		return func() signal {
			for _, v := range list() {
				if sig := turn(int64(v)); sig != goOn {
					if sig == breakLoop {
						return goOn
					}
					return sig
				}
			}
			return goOn
		}
	}
	obj := c.compileContainer(s.X)
	return func() signal {
		switch o := obj().(type) {
		case *file:
			start := o.at
			return over(func() int { return o.n - start }, func(i int) int64 { return int64(start + i) })
		case *array:
			return over(func() int { return len(o.cells) }, func(i int) int64 { return o.cells[i] })
		case *table:
			keys := o.sortedKeys()
			m.countSteps(at, int64(len(keys)))
			return over(func() int { return len(keys) }, func(i int) int64 { return keys[i] })
		}
		return goOn
	}
}

// setWord returns what stores a word in a scalar variable that is no string.
func (c *compiler) setWord(v *check.Var) func(int64) {
	m, slot := c.m, v.Slot
	switch {
	case !v.Local:
		p := &m.words[slot]
		return func(x int64) { *p = x }
	case v.ByRef:
		return func(x int64) { *m.f.refs[slot] = x }
	}
	return func(x int64) { m.f.words[slot] = x }
}

// setElem is setWord for elements of containers, which may be strings.
func (c *compiler) setElem(v *check.Var) func(int64) {
	if v.Type.Kind != check.String {
		return c.setWord(v)
	}
	m, set := c.m, c.setText(v)
	return func(x int64) { set(m.internedString(x)) }
}

func (c *compiler) setText(v *check.Var) func(string) {
	m, slot := c.m, v.Slot
	switch {
	case !v.Local:
		p := &m.strs[slot]
		return func(x string) { *p = x }
	case v.ByRef:
		return func(x string) { *m.f.strRefs[slot] = x }
	}
	return func(x string) { m.f.strs[slot] = x }
}
