package syntax

import (
	"strings"
	"unicode/utf8"
)

// lexer cuts a script into tokens, one at a time: the parser may change how the
// text is read in between (paths of files are raw text, not tokens).
type lexer struct {
	src     string
	off     int
	pos     Pos // of src[off]
	dialect Dialect
	begun   bool // a token was read: directives come too late
	diag    *Diagnostics
}

func newLexer(src string, d Dialect, diag *Diagnostics) *lexer {
	return &lexer{src: strings.TrimPrefix(src, "\uFEFF"), pos: Pos{1, 1}, dialect: d, diag: diag}
}

// peekByte returns the byte n places on, 0 at the end.
func (l *lexer) peekByte(n int) byte {
	if l.off+n < len(l.src) {
		return l.src[l.off+n]
	}
	return 0
}

// advanceRune moves over one character.
func (l *lexer) advanceRune() {
	if l.src[l.off] == '\n' {
		l.off++
		l.pos = Pos{l.pos.Line + 1, 1}
		return
	}
	_, n := utf8.DecodeRuneInString(l.src[l.off:])
	l.off += n
	l.pos.Col++
}

// skipBlanks skips white space and comments.
func (l *lexer) skipBlanks() {
	for l.off < len(l.src) {
		switch c := l.src[l.off]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f':
			l.advanceRune()
		case c == '/' && l.peekByte(1) == '/':
			for l.off < len(l.src) && l.src[l.off] != '\n' {
				l.advanceRune()
			}
		case c == '{':
			l.skipComment()
		default:
			return
		}
	}
}

// skipComment skips a { comment }; {$thesis} and {$strict} before the first token
// choose the dialect.
func (l *lexer) skipComment() {
	start, at := l.off, l.pos
	for l.off < len(l.src) && l.src[l.off] != '}' {
		l.advanceRune()
	}
	if l.off == len(l.src) {
		l.diag.Errorf(at, at.Col+1, "this comment is never closed; } ends it")
		return
	}
	l.advanceRune()
	body := l.src[start+1 : l.off-1]
	if !strings.HasPrefix(body, "$") {
		return
	}
	name := strings.ToLower(strings.TrimSpace(body[1:]))
	switch {
	case name != "thesis" && name != "strict":
		l.diag.Warnf(at, l.pos.Col, "no directive %q; there are thesis and strict", name)
	case l.begun:
		l.diag.Errorf(at, l.pos.Col, "{$%s} must stand before everything but comments", name)
	case name == "thesis":
		l.dialect = Thesis
	default:
		l.dialect = Strict
	}
}

// nextToken reads one token.
func (l *lexer) nextToken() Token {
	for {
		l.skipBlanks()
		l.begun = true
		t := Token{Pos: l.pos}
		if l.off == len(l.src) {
			t.End = l.pos.Col + 1
			return t
		}
		start := l.off
		c := l.src[l.off]
		switch {
		case isLetterByte(c):
			for isLetterByte(l.peekByte(0)) || isDigitByte(l.peekByte(0)) {
				l.advanceRune()
			}
			t.Text = strings.ToLower(l.src[start:l.off])
			t.Kind = keywordKind(t.Text, l.dialect)
		case isDigitByte(c):
			t.Kind = l.scanNumber()
			t.Text = l.src[start:l.off]
		case c == '"' || c == '\'':
			t.Kind = String
			t.Text = l.scanQuoted(c)
		default:
			kind, n := punctuationKind(c, l.peekByte(1))
			if n == 0 {
				l.reportStray()
				continue
			}
			t.Kind = kind
			for range n {
				l.advanceRune()
			}
		}
		t.End = l.pos.Col
		return t
	}
}

func isLetterByte(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' }
func isDigitByte(c byte) bool  { return '0' <= c && c <= '9' }

// scanNumber reads digits [. digits] [e [sign] digits].
func (l *lexer) scanNumber() Kind {
	kind := Int
	digits := func() {
		for isDigitByte(l.peekByte(0)) {
			l.advanceRune()
		}
	}
	digits()
	if l.peekByte(0) == '.' && isDigitByte(l.peekByte(1)) {
		kind = Real
		l.advanceRune()
		digits()
	}
	if e := l.peekByte(0); e == 'e' || e == 'E' {
		sign := 0
		if s := l.peekByte(1); s == '+' || s == '-' {
			sign = 1
		}
		if isDigitByte(l.peekByte(1 + sign)) {
			kind = Real
			for range 1 + sign {
				l.advanceRune()
			}
			digits()
		}
	}
	return kind
}

// scanQuoted reads a string; the quote is doubled inside it. A string ends with
// its line.
func (l *lexer) scanQuoted(quote byte) string {
	at := l.pos
	l.advanceRune()
	var b strings.Builder
	for {
		c := l.peekByte(0)
		switch {
		case l.off == len(l.src) || c == '\n':
			l.diag.Errorf(at, l.pos.Col, "this string is not closed on its line")
			return b.String()
		case c == quote && l.peekByte(1) == quote:
			l.advanceRune()
		case c == quote:
			l.advanceRune()
			return b.String()
		}
		start := l.off
		l.advanceRune()
		b.WriteString(l.src[start:l.off])
	}
}

// punctuationKind returns the token that c begins and its length, 0 if none.
func punctuationKind(c, after byte) (Kind, int) {
	switch c {
	case ':':
		if after == '=' {
			return Assign, 2
		}
		return Colon, 1
	case '<':
		switch after {
		case '=':
			return LessEqual, 2
		case '>':
			return NotEqual, 2
		}
		return Less, 1
	case '>':
		if after == '=' {
			return GreaterEqual, 2
		}
		return Greater, 1
	}
	if i := strings.IndexByte(";:,.()[]", c); i >= 0 {
		return Semicolon + Kind(i), 1
	}
	if i := strings.IndexByte("+-*/", c); i >= 0 {
		return Plus + Kind(i), 1
	}
	if c == '=' {
		return Equal, 1
	}
	return EOF, 0
}

// reportStray reports a character that begins nothing, and those like it after it.
func (l *lexer) reportStray() {
	at, start := l.pos, l.off
	r, n := utf8.DecodeRuneInString(l.src[l.off:])
	if r == utf8.RuneError && n == 1 {
		l.diag.Errorf(at, at.Col+1, "byte 0x%02x is no character: the script is not UTF-8", l.src[l.off])
		for r == utf8.RuneError && n == 1 && l.off < len(l.src) {
			l.advanceRune()
			r, n = utf8.DecodeRuneInString(l.src[l.off:])
		}
		return
	}
	for l.off < len(l.src) && l.src[l.off] >= utf8.RuneSelf {
		l.advanceRune()
	}
	if l.off == start {
		l.advanceRune()
	}
	l.diag.Errorf(at, l.pos.Col, "%q begins nothing in this language", l.src[start:l.off])
}

// scanRawText reads text up to a closing parenthesis, which it leaves, on this line.
func (l *lexer) scanRawText() (string, bool) {
	n := strings.IndexAny(l.src[l.off:], ")\n")
	if n < 0 || l.src[l.off+n] == '\n' {
		return "", false
	}
	text := l.src[l.off : l.off+n]
	for end := l.off + n; l.off < end; {
		l.advanceRune()
	}
	return strings.TrimSpace(text), true
}
