// Package strategy tries download strategies on a stored web, without a robot.
//
// A strategy is a script in a small language made for it (package syntax): it
// sees nodes and their links, keeps queues, and outputs nodes in the order in
// which a robot would fetch them. The language is that of a 2008 thesis, whose
// scripts run unchanged, with additions: see docs/strategy-language.md.
//
// A script is read (syntax), checked (check), compiled to closures and run
// (run); its containers spill to disk (contain). Scripts of well-known
// strategies come with the package (Scripts).
package strategy

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/freshet/freshet/lab/strategy/check"
	"github.com/freshet/freshet/lab/strategy/run"
	"github.com/freshet/freshet/lab/strategy/syntax"
)

//go:embed scripts/*.strategy
var shipped embed.FS

// extension is that of the shipped scripts' files.
const extension = ".strategy"

// Scripts returns the names of the shipped strategies.
func Scripts() []string {
	entries, err := shipped.ReadDir("scripts")
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), extension))
	}
	return names
}

// Read returns a script: the content of a file, or of a shipped strategy by its
// name. file is what messages call it.
func Read(name string) (file, src string, err error) {
	b, err := os.ReadFile(name)
	if err == nil {
		return name, string(b), nil
	}
	if slices.Contains(Scripts(), name) {
		b, err := shipped.ReadFile("scripts/" + name + extension)
		return name + extension, string(b), err
	}
	if errors.Is(err, os.ErrNotExist) && filepath.Base(name) == name {
		return "", "", fmt.Errorf("%w; shipped strategies are %s", err, strings.Join(Scripts(), ", "))
	}
	return "", "", err
}

// Dialects that a script can be read in; Auto reads it as strict and, if that
// gives errors and the thesis's dialect none, as the thesis's.
const (
	Auto   = "auto"
	Strict = "strict"
	Thesis = "thesis"
)

// Script is a script that was read and checked.
type Script struct {
	File    string
	Source  string
	Dialect syntax.Dialect
	Program *check.Program
	// Diagnostics are errors and warnings in order; the program can be run only if
	// there is no error.
	Diagnostics []syntax.Diagnostic
	Errors      int
}

// Load reads and checks a script. set gives values to its constants.
func Load(file, src, dialect string, set map[string]string) (*Script, error) {
	switch dialect {
	case Strict, Thesis:
		d := syntax.Strict
		if dialect == Thesis {
			d = syntax.Thesis
		}
		return loadScript(file, src, d, set), nil
	case Auto, "":
	default:
		return nil, fmt.Errorf("no dialect %q; there are %s, %s and %s", dialect, Auto, Strict, Thesis)
	}
	s := loadScript(file, src, syntax.Strict, set)
	if s.Errors == 0 {
		return s, nil
	}
	t := loadScript(file, src, syntax.Thesis, set)
	if t.Errors > 0 || t.Dialect == s.Dialect { // the script may choose itself
		return s, nil
	}
	for _, d := range s.Diagnostics {
		if !d.Warning {
			d.Message = "read in the thesis's dialect, because in ours: " + d.Message
			d.Warning = true
			t.Diagnostics = append([]syntax.Diagnostic{d}, t.Diagnostics...)
			break
		}
	}
	return t, nil
}

func loadScript(file, src string, d syntax.Dialect, set map[string]string) *Script {
	var diag syntax.Diagnostics
	tree := syntax.Parse(src, d, &diag)
	s := &Script{File: file, Source: src, Dialect: tree.Dialect}
	if diag.Errors() == 0 {
		s.Program = check.Check(tree, check.Options{Set: set}, &diag)
	}
	diag.Sort()
	s.Diagnostics, s.Errors = diag.List, diag.Errors()
	return s
}

// Failure is an error of a running script with the script's text, so that it can
// show the place.
type Failure struct {
	Script *Script
	At     syntax.Diagnostic
	err    error
}

// Error shows the message, the source line and a caret.
func (f *Failure) Error() string { return f.At.Human(f.Script.File, f.Script.Source) }

// Unwrap returns the *run.Error.
func (f *Failure) Unwrap() error { return f.err }

// Run runs a script that has no errors. An error of the script is a *Failure;
// the result is then what was done until it.
func Run(ctx context.Context, s *Script, opt run.Options) (run.Result, error) {
	if s.Errors > 0 {
		return run.Result{}, fmt.Errorf("%s has %d errors", s.File, s.Errors)
	}
	res, err := run.Run(ctx, s.Program, opt)
	var e *run.Error
	if errors.As(err, &e) {
		return res, &Failure{s, syntax.Diagnostic{Pos: e.Pos, End: e.End, Message: e.Msg}, err}
	}
	return res, err
}
