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
	p.tok = p.lex.nextToken()
	p.prev = Token{Pos: Pos{1, 1}, End: 1}
	return p.parseScript()
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

func (p *parser) advanceToken() {
	p.prev = p.tok
	p.tok = p.lex.nextToken()
}

// errorHere reports an error at the current token, unless one was reported there.
func (p *parser) errorHere(format string, args ...any) {
	p.errorAtPos(p.tok.Pos, p.tok.End, format, args...)
}

func (p *parser) errorAtPos(at Pos, end int, format string, args ...any) {
	if at != p.wrongAt && !p.tooDeep {
		p.diag.Errorf(at, end, format, args...)
	}
	p.wrongAt = at
}

// acceptToken moves over a token of the kind and reports whether it was there.
func (p *parser) acceptToken(k Kind) bool {
	if p.tok.Kind != k {
		return false
	}
	p.advanceToken()
	return true
}

// expectToken is accept, with an error if the token is not there. why says what the
// token is for.
func (p *parser) expectToken(k Kind, why string) bool {
	if p.acceptToken(k) {
		return true
	}
	p.errorHere("expected %q %s, found %s", k.String(), why, p.tok)
	return false
}

// expectAfter is expect for what should close the line before: the error stands
// after the last token, where the missing one belongs.
func (p *parser) expectAfter(k Kind, why string) bool {
	if p.acceptToken(k) {
		return true
	}
	p.errorAtPos(Pos{p.prev.Pos.Line, p.prev.End}, p.prev.End+1, "expected %q %s, found %s", k.String(), why, p.tok)
	return false
}

// skipTo moves on until a token of one of the kinds or the end.
func (p *parser) skipTo(kinds ...Kind) {
	for p.tok.Kind != EOF && !slices.Contains(kinds, p.tok.Kind) {
		p.advanceToken()
	}
}

// enterLevel enters one level; false if there are too many.
func (p *parser) enterLevel() bool {
	p.depth++
	if p.depth <= maxNesting {
		return true
	}
	p.errorHere("nested deeper than %d levels", maxNesting)
	p.tooDeep = true
	p.skipTo() // what follows cannot be understood
	return false
}

func (p *parser) leaveLevel() { p.depth-- }

// sections are the words that begin a declaration.
var sections = []Kind{Attributes, Var, Const, Procedure, Function, Begin}

func (p *parser) parseScript() *Script {
	s := &Script{}
	if p.acceptToken(Program) {
		s.Name = p.tok.Text
		p.expectToken(Word, "after program")
		p.expectAfter(Semicolon, "after the program's name")
	}
	s.Decls = p.parseDeclarations()
	s.Dialect = p.lex.dialect
	if p.tok.Kind != Begin {
		p.errorHere("expected a declaration or %q, found %s", "begin", p.tok)
		p.skipTo(Begin)
	}
	s.Body = p.parseBlock()
	if p.expectAfter(Dot, "after the last end") && p.tok.Kind != EOF {
		p.errorHere("nothing may follow the last \"end.\", found %s", p.tok)
	}
	return s
}

// parseName reads a declared name, with a parameter in parentheses if params.
func (p *parser) parseName(params bool) (Name, bool) {
	n := Name{Pos: p.tok.Pos, Text: p.tok.Text}
	if p.tok.Kind != Word {
		if p.tok.Kind >= keywordsBegin {
			p.errorHere("%s is a reserved word and cannot be a name%s", p.tok, p.reservedHint())
		} else {
			p.errorHere("expected a name, found %s", p.tok)
		}
		return n, false
	}
	p.advanceToken()
	if params && p.tok.Kind == LParen {
		var ok bool
		n.At = p.lex.pos
		if n.Param, ok = p.lex.scanRawText(); !ok {
			p.errorHere("this parenthesis is not closed on its line")
		} else if n.Param == "" {
			p.errorHere("expected an attribute (of a queue) or a path (of a file) in the parentheses")
		}
		p.advanceToken()
		p.acceptToken(RParen)
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
