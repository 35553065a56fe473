package syntax

import "slices"

// maxNesting bounds how deep statements and expressions nest, so that no script
// exhausts the stack.
const maxNesting = 250

// maxScript bounds the length of a script in bytes.
const maxScript = 1 << 20

// Parse reads a script. Errors and warnings go to diag; the tree is never nil,
// but may be used further only if there were no errors.
func Parse(src string, d Dialect, diag *Diagnostics) *Script {
	if len(src) > maxScript {
		diag.Errorf(Pos{1, 1}, 2, "the script has %d bytes; at most %d are read", len(src), maxScript)
		return &Script{Body: &Block{Pos: Pos{1, 1}}}
	}
	p := &parser{lex: newLexer(src, d, diag), diag: diag}
	p.tok = p.lex.next()
	p.prev = Token{Pos: Pos{1, 1}, End: 1}
	return p.script()
}

// parser is a recursive descent parser with one token of look-ahead. It never
// reads beyond that token, so that the lexer can be asked for raw text after it.
type parser struct {
	lex     *lexer
	diag    *Diagnostics
	tok     Token // the current one
	prev    Token // the one before
	depth   int
	tooDeep bool
	wrongAt Pos // of the last error: one error a place
}

func (p *parser) next() {
	p.prev = p.tok
	p.tok = p.lex.next()
}

// errorf reports an error at the current token, unless one was reported there.
func (p *parser) errorf(format string, args ...any) {
	p.errorAt(p.tok.Pos, p.tok.End, format, args...)
}

func (p *parser) errorAt(at Pos, end int, format string, args ...any) {
	if at != p.wrongAt && !p.tooDeep {
		p.diag.Errorf(at, end, format, args...)
	}
	p.wrongAt = at
}

// accept moves over a token of the kind and reports whether it was there.
func (p *parser) accept(k Kind) bool {
	if p.tok.Kind != k {
		return false
	}
	p.next()
	return true
}

// expect is accept, with an error if the token is not there. why says what the
// token is for.
func (p *parser) expect(k Kind, why string) bool {
	if p.accept(k) {
		return true
	}
	p.errorf("expected %q %s, found %s", k.String(), why, p.tok)
	return false
}

// expectAfter is expect for what should close the line before: the error stands
// after the last token, where the missing one belongs.
func (p *parser) expectAfter(k Kind, why string) bool {
	if p.accept(k) {
		return true
	}
	p.errorAt(Pos{p.prev.Pos.Line, p.prev.End}, p.prev.End+1, "expected %q %s, found %s", k.String(), why, p.tok)
	return false
}

// skipTo moves on until a token of one of the kinds or the end.
func (p *parser) skipTo(kinds ...Kind) {
	for p.tok.Kind != EOF && !slices.Contains(kinds, p.tok.Kind) {
		p.next()
	}
}

// nest enters one level; false if there are too many.
func (p *parser) nest() bool {
	p.depth++
	if p.depth <= maxNesting {
		return true
	}
	p.errorf("nested deeper than %d levels", maxNesting)
	p.tooDeep = true
	p.skipTo() // what follows cannot be understood
	return false
}

func (p *parser) unnest() { p.depth-- }

// sections are the words that begin a declaration.
var sections = []Kind{Attributes, Var, Const, Procedure, Function, Begin}

func (p *parser) script() *Script {
	s := &Script{}
	if p.accept(Program) {
		s.Name = p.tok.Text
		p.expect(Word, "after program")
		p.expectAfter(Semicolon, "after the program's name")
	}
	s.Decls = p.decls()
	s.Dialect = p.lex.dialect
	if p.tok.Kind != Begin {
		p.errorf("expected a declaration or %q, found %s", "begin", p.tok)
		p.skipTo(Begin)
	}
	s.Body = p.block()
	if p.expectAfter(Dot, "after the last end") && p.tok.Kind != EOF {
		p.errorf("nothing may follow the last \"end.\", found %s", p.tok)
	}
	return s
}

// name reads a declared name, with a parameter in parentheses if params.
func (p *parser) name(params bool) (Name, bool) {
	n := Name{Pos: p.tok.Pos, Text: p.tok.Text}
	if p.tok.Kind != Word {
		if p.tok.Kind >= keywordsBegin {
			p.errorf("%s is a reserved word and cannot be a name%s", p.tok, p.reservedHint())
		} else {
			p.errorf("expected a name, found %s", p.tok)
		}
		return n, false
	}
	p.next()
	if params && p.tok.Kind == LParen {
		var ok bool
		n.At = p.lex.pos
		if n.Param, ok = p.lex.raw(); !ok {
			p.errorf("this parenthesis is not closed on its line")
		} else if n.Param == "" {
			p.errorf("expected an attribute (of a queue) or a path (of a file) in the parentheses")
		}
		p.next()
		p.accept(RParen)
	}
	return n, true
}

// reservedHint says that the thesis's dialect reserves fewer words.
func (p *parser) reservedHint() string {
	if p.lex.dialect == Strict && p.tok.Kind >= oursBegin {
		return " (a script of the thesis may use it: begin the script with {$thesis})"
	}
	return ""
}
