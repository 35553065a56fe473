package extract

import (
	"bytes"

	"golang.org/x/net/html"
)

// lexer cuts a document that is wholly in memory into the tokens that
// html.Tokenizer would return, several times as fast: it looks for the next
// interesting byte instead of reading each, copies nothing, and decodes names,
// text and attributes only when asked. What is rare and intricate (NUL bytes,
// escaped scripts, plaintext, tags with very many attributes) it does not
// attempt: it stops with doubt, and the caller starts over with the Tokenizer.
// FuzzLexer compares the two.
type lexer struct {
	b          []byte
	start, pos int // the token is b[start:pos]
	kind       html.TokenType
	data       span // text, or the name of a tag
	attrs      []attr
	next       int    // attribute that TagAttr returns next
	rawTag     string // the text up to its end tag comes next
	rawText    bool   // the text holds no entities
	ended      bool   // the document ended inside a token
	returns    bool   // there are carriage returns
	amp        int    // the first ampersand that stands at or behind the place where one was looked for last
	doubt      bool
	scratch    []byte
	lowered    []byte
}

type (
	span struct{ start, end int }
	attr struct{ key, val span }
)

// Bounds beyond which the lexer leaves a document to the Tokenizer.
const (
	maxAttrs = 64
	maxToken = 1 << 20
)

// resetLexer begins a document.
func (z *lexer) resetLexer(b []byte) {
	*z = lexer{b: b, attrs: z.attrs[:0], scratch: z.scratch[:0], lowered: z.lowered[:0]}
	z.doubt = bytes.IndexByte(b, 0) >= 0
	z.returns = bytes.IndexByte(b, '\r') >= 0
	z.amp = -1
}

// hasAmpersand reports whether there is an ampersand in a part of the document. To ask for
// one part behind the other costs one look for each ampersand.
func (z *lexer) hasAmpersand(s span) bool {
	if z.amp < s.start {
		z.amp = len(z.b)
		if n := bytes.IndexByte(z.b[s.start:], '&'); n >= 0 {
			z.amp = s.start + n
		}
	}
	return z.amp < s.end
}

func isASCIILetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// Next scans the next token.
func (z *lexer) Next() html.TokenType {
	if z.pos-z.start > maxToken {
		z.doubt = true
	}
	z.start = z.pos
	if z.doubt || z.ended || z.pos >= len(z.b) {
		return z.emitToken(html.ErrorToken, z.pos)
	}
	if z.rawTag != "" {
		end := z.rawEnd()
		z.rawText = z.rawTag != "textarea" && z.rawTag != "title"
		z.rawTag = ""
		if z.doubt {
			return z.emitToken(html.ErrorToken, z.pos)
		}
		if end > z.pos {
			return z.textUpTo(end)
		}
	}
	z.rawText = false
	for i := z.pos; ; i++ {
		n := bytes.IndexByte(z.b[i:], '<')
		if n < 0 || i+n+1 >= len(z.b) {
			return z.textUpTo(len(z.b))
		}
		i += n
		c := z.b[i+1]
		if !isASCIILetter(c) && c != '/' && c != '!' && c != '?' {
			continue
		}
		if i > z.start {
			return z.textUpTo(i)
		}
		return z.scanMarkup(c)
	}
}

func (z *lexer) emitToken(k html.TokenType, end int) html.TokenType {
	z.kind, z.pos = k, end
	return k
}

func (z *lexer) textUpTo(end int) html.TokenType {
	z.data = span{z.start, end}
	return z.emitToken(html.TextToken, end)
}

// scanMarkup scans what begins with '<' and c.
func (z *lexer) scanMarkup(c byte) html.TokenType {
	i := z.start + 2
	switch {
	case c == '!':
		if bytes.HasPrefix(z.b[i:], []byte("--")) {
			return z.emitToken(html.CommentToken, z.commentEnd(i+2))
		}
		return z.emitToken(html.CommentToken, z.afterAngle(i)) // a doctype or a bogus comment
	case c == '?':
		return z.emitToken(html.CommentToken, z.afterAngle(i-1))
	case c != '/':
		return z.scanTag(i-1, html.StartTagToken)
	case i >= len(z.b):
		return z.textUpTo(len(z.b))
	case z.b[i] == '>':
		return z.emitToken(html.CommentToken, i+1)
	case isASCIILetter(z.b[i]):
		return z.scanTag(i, html.EndTagToken)
	}
	return z.emitToken(html.CommentToken, z.afterAngle(i))
}

// afterAngle returns the place behind the next '>'.
func (z *lexer) afterAngle(i int) int {
	n := bytes.IndexByte(z.b[i:], '>')
	if n < 0 {
		z.ended = true
		return len(z.b)
	}
	return i + n + 1
}

// commentEnd returns the place behind a comment whose content begins at i.
func (z *lexer) commentEnd(i int) int {
	dashes, beginning := 0, true
	for ; i < len(z.b); i++ {
		switch z.b[i] {
		case '-':
			dashes++
			continue
		case '>':
			if dashes >= 2 || beginning {
				return i + 1
			}
		case '!':
			if dashes >= 2 && i+1 < len(z.b) {
				i++
				if z.b[i] == '>' {
					return i + 1
				}
				if z.b[i] == '-' {
					dashes, beginning = 1, false
					continue
				}
			}
		}
		dashes, beginning = 0, false
	}
	z.ended = true
	return len(z.b)
}

// rawEnd finds the end tag of rawTag, or the end of the document.
func (z *lexer) rawEnd() int {
	if z.rawTag == "plaintext" {
		z.doubt = true
		return z.pos
	}
	end := len(z.b)
	for i := z.pos; i < len(z.b); i++ {
		n := bytes.IndexByte(z.b[i:], '<')
		if n < 0 {
			break
		}
		i += n
		name := i + 2
		after := name + len(z.rawTag)
		if after < len(z.b) && z.b[i+1] == '/' && equalFold(z.b[name:after], z.rawTag) && (isSpace(z.b[after]) || z.b[after] == '/' || z.b[after] == '>') {
			end = i
			break
		}
	}
	if z.rawTag == "script" && bytes.Contains(z.b[z.pos:end], []byte("<!--")) {
		z.doubt = true
	}
	return end
}

// scanTag scans a tag whose name begins at i.
func (z *lexer) scanTag(i int, k html.TokenType) html.TokenType {
	b := z.b
	z.attrs, z.next = z.attrs[:0], 0
	z.data.start = i
	for i < len(b) && !isSpace(b[i]) && b[i] != '/' && b[i] != '>' {
		i++
	}
	z.data.end = i
	for {
		for i < len(b) && isSpace(b[i]) {
			i++
		}
		if i >= len(b) {
			z.ended = true // a tag that does not end is none
			return z.emitToken(html.ErrorToken, len(b))
		}
		if b[i] == '>' {
			i++
			break
		}
		var a attr
		a, i = z.scanAttribute(i)
		if k == html.StartTagToken && a.key.end > a.key.start && !z.hasAttribute(a.key) {
			z.attrs = append(z.attrs, a)
		}
		if len(z.attrs) > maxAttrs {
			z.doubt = true
			return z.emitToken(html.ErrorToken, i)
		}
	}
	if k == html.EndTagToken {
		return z.emitToken(k, i)
	}
	z.rawTag = rawName(b[z.data.start:z.data.end])
	if b[i-2] == '/' && (len(z.attrs) == 0 || i-2 != z.attrs[len(z.attrs)-1].val.end-1) {
		return z.emitToken(html.SelfClosingTagToken, i)
	}
	return z.emitToken(k, i)
}

// scanAttribute scans one attribute from i, which may be empty; it returns the
// place behind it.
func (z *lexer) scanAttribute(i int) (attr, int) {
	b := z.b
	a := attr{key: span{start: i}}
	for i < len(b) && (b[i] == '=' && i == a.key.start || b[i] != '=' && b[i] != '/' && b[i] != '>' && !isSpace(b[i])) {
		i++
	}
	a.key.end = i
	a.val = span{i, i}
	for i < len(b) && isSpace(b[i]) {
		i++
	}
	if i >= len(b) {
		return a, i
	}
	if b[i] == '/' {
		return a, i + 1
	}
	if b[i] != '=' {
		return a, i
	}
	for i++; i < len(b) && isSpace(b[i]); i++ {
	}
	if i >= len(b) || b[i] == '>' {
		return a, i
	}
	if quote := b[i]; quote == '"' || quote == '\'' {
		i++
		n := bytes.IndexByte(b[i:], quote)
		if n < 0 {
			return a, len(b)
		}
		a.val = span{i, i + n}
		return a, i + n + 1
	}
	a.val.start = i
	for i < len(b) && !isSpace(b[i]) && b[i] != '>' {
		i++
	}
	a.val.end = i
	return a, i
}

// hasAttribute reports whether the tag has an attribute of the same name already.
func (z *lexer) hasAttribute(key span) bool {
	for _, a := range z.attrs {
		if equalFold(z.b[a.key.start:a.key.end], z.b[key.start:key.end]) {
			return true
		}
	}
	return false
}

// equalFold compares without regard to the case of ASCII letters.
func equalFold[T string | []byte](a []byte, b T) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] && (a[i]^b[i] != 0x20 || !isASCIILetter(a[i])) {
			return false
		}
	}
	return true
}

// rawName returns the name of an element whose content is text, else "".
func rawName(name []byte) string {
	switch name[0] | 0x20 {
	case 'i', 'n', 'p', 's', 't', 'x':
	default:
		return ""
	}
	for _, r := range [...]string{"script", "style", "title", "iframe", "textarea", "noscript", "noframes", "noembed", "xmp", "plaintext"} {
		if equalFold(name, r) {
			return r
		}
	}
	return ""
}

// NextIsNotRawText makes the content of the element be tokens.
func (z *lexer) NextIsNotRawText() { z.rawTag = "" }

// Raw returns the token as it stands in the document.
func (z *lexer) Raw() []byte { return z.b[z.start:z.pos] }

// Text returns the text of a text token. Unlike the Tokenizer's it keeps
// carriage returns. It is valid until the next call.
func (z *lexer) Text() []byte {
	s := z.b[z.data.start:z.data.end]
	if z.rawText || !z.hasAmpersand(z.data) {
		return s
	}
	z.scratch = appendUnescaped(z.scratch[:0], s, false)
	return z.scratch
}

// TagName returns the lower-case name of the tag and whether it has attributes.
func (z *lexer) TagName() (name []byte, attrs bool) {
	return z.lowerASCII(z.b[z.data.start:z.data.end]), len(z.attrs) > 0
}

// TagAttr returns the next attribute; both are valid until the next call.
func (z *lexer) TagAttr() (key, val []byte, more bool) {
	if z.next >= len(z.attrs) {
		return nil, nil, false
	}
	a := z.attrs[z.next]
	z.next++
	key, val = z.lowerASCII(z.b[a.key.start:a.key.end]), z.b[a.val.start:a.val.end]
	if z.returns && bytes.IndexByte(val, '\r') >= 0 {
		z.doubt = true
	}
	if z.hasAmpersand(a.val) {
		z.scratch = appendUnescaped(z.scratch[:0], val, true)
		val = z.scratch
	}
	return key, val, z.next < len(z.attrs)
}

func (z *lexer) lowerASCII(s []byte) []byte {
	for i, c := range s {
		if c < 'A' || c > 'Z' {
			continue
		}
		z.lowered = append(z.lowered[:0], s...)
		for j := i; j < len(s); j++ {
			if c := s[j]; c >= 'A' && c <= 'Z' {
				z.lowered[j] = c + 'a' - 'A'
			}
		}
		return z.lowered
	}
	return s
}

// appendUnescaped appends s with its character references replaced.
func appendUnescaped(dst, s []byte, attribute bool) []byte {
	for {
		i := bytes.IndexByte(s, '&')
		if i < 0 {
			return append(dst, s...)
		}
		dst = append(dst, s[:i]...)
		s = s[i:]
		n := referenceLength(s)
		dst = appendReference(dst, s[:n], attribute, s[n:])
		s = s[n:]
	}
}

// referenceLength is the length of what may be a character reference at the begin
// of s: the ampersand, its name or number, and a semicolon.
func referenceLength(s []byte) int {
	i := 1
	if i < len(s) && s[i] == '#' {
		i++
	}
	for i < len(s) && (isASCIILetter(s[i]) || s[i] >= '0' && s[i] <= '9') {
		i++
	}
	if i < len(s) && s[i] == ';' {
		i++
	}
	return i
}

// appendReference decodes one reference. The table of names is the library's,
// behind html.UnescapeString, which reads text; in attributes a name counts
// only as a whole, and not at all without semicolon before '='.
func appendReference(dst, ref []byte, attribute bool, rest []byte) []byte {
	switch string(ref) {
	case "&":
		return append(dst, '&')
	case "&amp;":
		return append(dst, '&')
	case "&quot;":
		return append(dst, '"')
	case "&nbsp;":
		return append(dst, "\u00a0"...)
	}
	out := html.UnescapeString(string(ref))
	if attribute && ref[1] != '#' {
		whole := false
		if ref[len(ref)-1] == ';' {
			whole = out[len(out)-1] != ';' || string(ref) == "&semi;"
		} else {
			whole = !(len(rest) > 0 && rest[0] == '=') && len([]rune(out)) == 1
		}
		if !whole {
			return append(dst, ref...)
		}
	}
	return append(dst, out...)
}
