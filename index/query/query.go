// Package query is the language of the search box: a string becomes a tree,
// the tree is simplified, and an engine walks it.
//
//	madonna music            both words
//	madonna OR music         either ("|" does as well)
//	"like a prayer"          the words in a row
//	-live  -"greatest hits"  not this
//	madon*                   words that begin so
//	title:prayer             the word in one text field
//	host:lib.example lang:lt type:pdf kind:audio ext:flac   exact filters
//	size:>700mb year:1980..1989 date:2024-05.. date:7d      ranges
//	(a OR b) c               grouping
//
// Every string has a meaning: a box that answers "syntax error" is of no use.
// What does not parse as an operator is a word; an open quote or parenthesis
// closes at the end. Every tree prints itself in the same language.
package query

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Node is a tree of a query: And, Or, Not, Term, Phrase, Filter or Range.
type Node interface {
	// String prints the node in the query language; Parse of it gives the
	// same tree back.
	String() string
}

// And matches what all of its nodes match; an empty And matches everything.
type And []Node

// Or matches what at least one of its nodes matches.
type Or []Node

// Not matches what its node does not match.
type Not struct{ Node }

// Term is one word as the user wrote it; the engine's analyser decides what it
// is (a word with a hyphen may become two). Field "" means every text field.
type Term struct {
	Field  string
	Text   string
	Prefix bool // the word may go on: madon*
}

// Phrase is several words in a row.
type Phrase struct {
	Field string
	Text  string // words separated by single spaces
}

// Filter keeps what has exactly this value in a keyword field. Values are
// lower case.
type Filter struct {
	Field string
	Value string
}

// Range keeps what lies in [Min, Max] in a numeric field: size in bytes, year,
// date in seconds since 1970 UTC, duration in seconds. An open end is an infinity.
type Range struct {
	Field    string
	Min, Max float64
}

// Fields by what may stand after the colon. A name that is in none of them is
// no field: "http:" or "note:" are words.
var (
	textFields    = map[string]string{"title": "title", "artist": "artist", "album": "album", "actor": "actor", "name": "name", "folder": "folder", "url": "url", "inurl": "url", "intitle": "title"}
	keywordFields = map[string]string{"host": "host", "site": "host", "type": "type", "lang": "lang", "language": "lang", "kind": "kind", "ext": "ext", "filetype": "ext", "genre": "genre", "online": "online"}
	rangeFields   = map[string]string{"size": "size", "year": "year", "date": "date", "duration": "duration", "rating": "rating"}
)

// Parse reads a query. Relative dates ("date:7d") are counted back from now.
// The tree is simplified; an empty query is And(nil).
func Parse(s string, now time.Time) Node {
	p := parser{lex: lexQuery(strings.ToValidUTF8(s, "\uFFFD")), now: now}
	var all And
	for !p.atEnd() {
		all = append(all, p.parseAlternatives())
		if !p.atEnd() && p.peekToken().kind == closing { // a parenthesis nobody opened
			p.takeToken()
		}
	}
	return Simplify(all)
}

func (n And) String() string { return joinNodes(n, " ") }
func (n Or) String() string  { return joinNodes(n, " OR ") }

func joinNodes(nodes []Node, sep string) string {
	parts := make([]string, len(nodes))
	for i, n := range nodes {
		parts[i] = n.String()
		switch n := n.(type) {
		case And:
			parts[i] = "(" + parts[i] + ")"
		case Or:
			if len(n) > 1 {
				parts[i] = "(" + parts[i] + ")"
			}
		}
	}
	return strings.Join(parts, sep)
}

func (n Not) String() string {
	switch n.Node.(type) {
	case And, Or:
		return "-(" + n.Node.String() + ")"
	}
	return "-" + n.Node.String()
}

func (n Term) String() string {
	s := n.Text
	if t := lexQuery(s); len(t) != 1 || t[0] != (token{kind: word, text: s}) || s[0] == '-' || s[0] == '+' {
		s = `"` + s + `"`
	}
	if n.Prefix {
		s += "*"
	}
	return prefixField(n.Field, s)
}

func (n Phrase) String() string { return prefixField(n.Field, `"`+n.Text+`"`) }
func (n Filter) String() string {
	if t := lexQuery(n.Value); len(t) != 1 || t[0].text != n.Value || t[0].quoted || t[0].field != "" {
		return n.Field + `:"` + n.Value + `"`
	}
	return n.Field + ":" + n.Value
}

func (n Range) String() string {
	return n.Field + ":" + n.formatEnd(n.Min) + ".." + n.formatEnd(n.Max)
}

func (n Range) formatEnd(v float64) string {
	switch {
	case math.IsInf(v, 0):
		return ""
	case n.Field == "date":
		return time.Unix(int64(v), 0).UTC().Format("2006-01-02T15:04:05Z")
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

func prefixField(field, s string) string {
	if field == "" {
		return s
	}
	return field + ":" + s
}

// Simplify flattens nested Ands and Ors, drops empty ones and repetitions, and
// removes double negation.
func Simplify(n Node) Node {
	switch n := n.(type) {
	case And:
		return flattenNodes(n, func(c Node) []Node {
			if a, ok := c.(And); ok {
				return a
			}
			return nil
		}, func(nodes []Node) Node { return And(nodes) })
	case Or:
		return flattenNodes(n, func(c Node) []Node {
			if o, ok := c.(Or); ok {
				return o
			}
			return nil
		}, func(nodes []Node) Node { return Or(nodes) })
	case Not:
		inner := Simplify(n.Node)
		if again, ok := inner.(Not); ok {
			return again.Node
		}
		if Empty(inner) {
			return And(nil)
		}
		return Not{inner}
	}
	return n
}

// flattenNodes simplifies the children, takes those of the same kind apart, and leaves
// out the empty and the repeated.
func flattenNodes(nodes []Node, same func(Node) []Node, pack func([]Node) Node) Node {
	var out []Node
	seen := map[string]bool{}
	for _, c := range nodes {
		c = Simplify(c)
		parts := same(c)
		if parts == nil {
			if Empty(c) {
				continue
			}
			parts = []Node{c}
		}
		for _, part := range parts {
			if key := fmt.Sprintf("%T %s", part, part); !seen[key] {
				seen[key] = true
				out = append(out, part)
			}
		}
	}
	switch len(out) {
	case 0:
		return And(nil)
	case 1:
		return out[0]
	}
	return pack(out)
}

// Empty reports whether n is the query that matches everything.
func Empty(n Node) bool {
	a, ok := n.(And)
	return n == nil || (ok && len(a) == 0)
}

// Walk calls f for n and everything below it; not reports whether an odd number
// of negations stands above.
func Walk(n Node, f func(n Node, not bool)) { walkNodes(n, false, f) }

func walkNodes(n Node, not bool, f func(Node, bool)) {
	f(n, not)
	switch n := n.(type) {
	case And:
		for _, c := range n {
			walkNodes(c, not, f)
		}
	case Or:
		for _, c := range n {
			walkNodes(c, not, f)
		}
	case Not:
		walkNodes(n.Node, !not, f)
	}
}

// Words returns the texts that a match should show marked: terms and phrases
// outside negations, in order.
func Words(n Node) []string {
	var out []string
	Walk(n, func(n Node, not bool) {
		if not {
			return
		}
		switch n := n.(type) {
		case Term:
			out = append(out, n.Text)
		case Phrase:
			out = append(out, n.Text)
		}
	})
	return out
}

// Value returns the value of the first filter on field that is asked for, not
// excluded, or "".
func Value(n Node, field string) string {
	var v string
	Walk(n, func(n Node, not bool) {
		if f, ok := n.(Filter); ok && !not && v == "" && f.Field == field {
			v = f.Value
		}
	})
	return v
}
