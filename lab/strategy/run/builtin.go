package run

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/freshet/freshet/lab/strategy/check"
	"github.com/freshet/freshet/lab/strategy/contain"
)

// checkpointSteps is what a checkpoint costs: files are synced, which takes
// milliseconds.
const checkpointSteps = 10_000

// builtinWord compiles a builtin function whose value is an integer or a node.
func (c *compiler) builtinWord(e *check.Expr) wordFunc {
	m, p := c.m, placeOf(e)
	switch e.Text {
	case "integer": // of a node
		node := c.compileKnownNode(e.Args[0])
		return func() int64 { return int64(node()) }
	case "node":
		x := c.compileWord(e.Args[0])
		return func() int64 {
			v := x()
			if uint64(v) >= uint64(m.n) {
				m.failAt(p, "unknown node %d: the web has nodes 0 to %d", v, m.n-1)
			}
			return v
		}
	case "pages":
		return func() int64 { return m.result.Pages }
	case "length":
		x := c.compileText(e.Args[0])
		return func() int64 {
			s := x()
			m.countSteps(p, int64(len(s))/64)
			return int64(utf8.RuneCountInString(s))
		}
	case "trunc":
		x := c.compileReal(e.Args[0])
		return func() int64 { return m.truncateReal(p, x()) }
	case "round":
		x := c.compileReal(e.Args[0])
		return func() int64 { return m.truncateReal(p, math.Round(x())) }
	case "random":
		x := c.compileWord(e.Args[0])
		return func() int64 {
			n := x()
			if n <= 0 {
				m.failAt(p, "random(%d): the bound must be positive", n)
			}
			return m.rnd.Int64N(n)
		}
	case "abs":
		x := c.compileWord(e.Args[0])
		return func() int64 { v := x(); return max(v, -v) }
	case "min":
		a, b := c.compileWord(e.Args[0]), c.compileWord(e.Args[1])
		return func() int64 { return min(a(), b()) }
	case "max":
		a, b := c.compileWord(e.Args[0]), c.compileWord(e.Args[1])
		return func() int64 { return max(a(), b()) }
	}
	return func() int64 { return 0 }
}

// builtinReal compiles a builtin function whose value is real.
func (c *compiler) builtinReal(e *check.Expr) realFunc {
	m, p := c.m, placeOf(e)
	switch e.Text {
	case "now":
		return func() float64 { return m.clock.nextFetchTime() }
	case "random":
		return func() float64 { return m.rnd.Float64() }
	}
	x := c.compileReal(e.Args[0])
	switch e.Text {
	case "sqrt":
		return func() float64 {
			v := x()
			if v < 0 {
				m.failAt(p, "sqrt(%g): the argument is negative", v)
			}
			return math.Sqrt(v)
		}
	case "ln":
		return func() float64 {
			v := x()
			if v <= 0 {
				m.failAt(p, "ln(%g): the argument is not positive", v)
			}
			return math.Log(v)
		}
	case "exp":
		return func() float64 { return math.Exp(x()) }
	case "abs":
		return func() float64 { return math.Abs(x()) }
	}
	y := c.compileReal(e.Args[1])
	if e.Text == "min" {
		return func() float64 { return min(x(), y()) }
	}
	return func() float64 { return max(x(), y()) }
}

// doBuiltin compiles a builtin as a statement.
func (c *compiler) doBuiltin(e *check.Expr) stmtFunc {
	m, p := c.m, placeOf(e)
	switch e.Text {
	case "output":
		node := c.compileKnownNode(e.Args[0])
		return func() signal { m.outputPage(p, node()); return goOn }
	case "wait":
		x := c.compileReal(e.Args[0])
		return func() signal {
			s := x()
			if !(s >= 0 && s <= 1e12) {
				m.failAt(p, "wait(%g): want 0 to 1e12 seconds", s)
			}
			m.countSteps(p, int64(len(m.clock.free)))
			m.clock.idleAll(s)
			return goOn
		}
	case "checkpoint":
		return func() signal {
			m.countSteps(p, checkpointSteps+int64(m.n)/64)
			m.failOnError(p, m.saveAttributes())
			return goOn
		}
	case "print":
		return c.compilePrint(e)
	}
	switch e.Type.Kind {
	case check.String:
		x := c.compileText(e)
		return func() signal { x(); return goOn }
	case check.Real:
		x := c.compileReal(e)
		return func() signal { x(); return goOn }
	}
	x := c.compileWord(e)
	return func() signal { x(); return goOn }
}

// compilePrint compiles print(...): the values, a space between them, and a new line.
func (c *compiler) compilePrint(e *check.Expr) stmtFunc {
	m, p := c.m, placeOf(e)
	var texts []textFunc
	for _, a := range e.Args {
		texts = append(texts, c.textOf(a))
	}
	return func() signal {
		parts := make([]string, len(texts))
		for i, t := range texts {
			parts[i] = t()
		}
		line := strings.Join(parts, " ") + "\n"
		if m.printed += int64(len(line)); m.printed > maxPrinted {
			m.failOnError(p, fmt.Errorf("print: %w: more than %d bytes", contain.ErrLimit, maxPrinted))
		}
		m.countSteps(p, int64(len(line))/64)
		if m.opt.Log != nil {
			if _, err := m.opt.Log.Write([]byte(line)); err != nil {
				m.failOnError(p, err)
			}
		}
		return goOn
	}
}
