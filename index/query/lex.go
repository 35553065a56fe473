package query

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

type kind byte

const (
	word    kind = iota // foo, foo*, or "foo bar" when quoted
	opening             // (
	closing             // )
	either              // OR or |
)

// token is one piece of the query. A word may be excluded (-), belong to a
// field (field:), be quoted, and end with a star.
type token struct {
	kind   kind
	not    bool
	field  string // as written, lower case; known to be a field
	text   string
	quoted bool
	prefix bool
}

// lexQuery cuts a query into tokens; every string has some.
func lexQuery(s string) []token {
	var out []token
	for {
		s = strings.TrimLeftFunc(s, unicode.IsSpace)
		if s == "" {
			return out
		}
		var t token
		t, s = lexOne(s)
		if t.kind != word || t.text != "" {
			out = append(out, t)
		}
	}
}

// lexOne takes one token off the front of s, which is not empty.
func lexOne(s string) (token, string) {
	var t token
	rest := s
	for rest[0] == '-' || rest[0] == '+' {
		t.not = t.not != (rest[0] == '-')
		rest = rest[1:]
		if r, _ := utf8.DecodeRuneInString(rest); rest == "" || unicode.IsSpace(r) {
			return token{}, rest // a dash between words is no operator
		}
	}
	switch rest[0] {
	case '(':
		t.kind = opening
		return t, rest[1:]
	case ')':
		return token{kind: closing}, rest[1:]
	case '|':
		return token{kind: either}, rest[1:]
	}
	if i := strings.IndexByte(rest, ':'); i > 0 && len(rest) > i+1 && isField(rest[:i]) && strings.TrimLeftFunc(rest[i+1:], unicode.IsSpace) == rest[i+1:] {
		t.field = strings.ToLower(rest[:i])
		rest = rest[i+1:]
	}
	if rest[0] == '"' {
		return lexQuoted(t, rest[1:])
	}
	end := strings.IndexFunc(rest, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`()|"`, r) })
	if end < 0 {
		end = len(rest)
	}
	t.text = rest[:end]
	if t.text == "OR" && t.field == "" && !t.not {
		return token{kind: either}, rest[end:]
	}
	if cut := strings.TrimRight(t.text, "*"); cut != t.text {
		t.text, t.prefix = cut, true
	}
	if end == 0 { // a field with a parenthesis or bar behind it: skip the sign
		return t, rest[1:]
	}
	return t, rest[end:]
}

// lexQuoted reads up to the closing quote or the end. A star behind the quote
// makes a prefix of a single word.
func lexQuoted(t token, s string) (token, string) {
	text, rest, _ := strings.Cut(s, `"`)
	t.text, t.quoted = strings.Join(strings.Fields(text), " "), true
	if strings.HasPrefix(rest, "*") {
		t.prefix = true
		rest = rest[1:]
	}
	return t, rest
}

func isField(name string) bool {
	name = strings.ToLower(name)
	return textFields[name] != "" || keywordFields[name] != "" || rangeFields[name] != ""
}
