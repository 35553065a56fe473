package run

import (
	"context"
	"errors"
	"fmt"

	"github.com/freshet/freshet/lab/strategy/check"
	"github.com/freshet/freshet/lab/strategy/syntax"
)

// Live tells what a live crawl knows of its pages; links are those of the web,
// URLs and words those of Options.Pages.
type Live interface {
	Server(u uint32) int
	Depth(u uint32) int
	Age(u uint32) float64 // seconds since the page was found
}

// Session is a program whose functions are called from outside: a live crawl
// asks for the place of a page. Its main body has been run. A session is not
// safe for concurrent use.
type Session struct {
	m       *machine
	c       *compiler
	program *check.Program
	steps   int64
	arg     *check.Var
}

// NewSession runs the program's main body and keeps its variables. The file is
// empty there, whatever Nodes() of the web says. MaxSteps is for the body and
// for each call.
func NewSession(ctx context.Context, p *check.Program, opt Options, live Live) (*Session, error) {
	m, err := newMachine(ctx, p, opt, live)
	if err != nil {
		if m != nil {
			err = errors.Join(err, m.releaseContainers())
		}
		return nil, err
	}
	s := &Session{m: m, program: p, steps: opt.MaxSteps, arg: &check.Var{Name: "page", Type: &check.Type{Kind: check.Node}, Slot: p.Frame.Words}}
	s.c = newCompiler(m, p)
	body := s.c.compileBlock(p.Body)
	if err := m.runProtected(func() { body() }); err != nil {
		return nil, errors.Join(err, m.releaseContainers())
	}
	return s, nil
}

// Close gives back what the session holds.
func (s *Session) Close() error { return s.m.releaseContainers() }

// Function returns a function of the script that takes a node: word, unless
// nil, is its value as a real. ok is false if the script has none of the name.
func (s *Session) Function(name string) (call func(u uint32) (float64, error), ok bool, err error) {
	for _, p := range s.program.Procs {
		if p.Name != name {
			continue
		}
		if len(p.Params) != 1 || p.Params[0].Type.Kind != check.Node || p.Params[0].ByRef {
			return nil, true, fmt.Errorf("%s is to have one parameter, a node", name)
		}
		kind := check.None
		if p.Result != nil {
			kind = p.Result.Type.Kind
		}
		pos := syntax.Pos{Line: 1, Col: 1}
		arg := &check.Expr{Op: check.OpLoad, Type: s.arg.Type, Var: s.arg, Pos: pos, End: 2}
		e := &check.Expr{Op: check.OpCall, Type: &check.Type{Kind: kind}, Proc: p, Args: []*check.Expr{arg}, Pos: pos, End: 2}
		return s.bindCall(s.c.callWord(e), kind), true, nil
	}
	return nil, false, nil
}

// bindCall makes a call from outside of a compiled one.
func (s *Session) bindCall(word wordFunc, kind check.Kind) func(uint32) (float64, error) {
	m, place := s.m, &s.m.words[s.arg.Slot]
	var v int64
	run := func() { v = word() }
	return func(u uint32) (float64, error) {
		*place = int64(u)
		m.done, m.steps = 0, tickSteps
		m.setTickWindow()
		v = 0
		if err := m.runProtected(run); err != nil {
			m.depth, m.nesting, m.f = 0, 0, nil
			return 0, err
		}
		if kind == check.Real {
			return wordToReal(v), nil
		}
		return float64(v), nil
	}
}

// Forget sets all attributes to zero.
func (s *Session) Forget() {
	for _, c := range s.m.cols {
		clear(c.file.Data())
	}
}
