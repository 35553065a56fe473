package postgres

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/freshet/freshet/index/analysis"
	"github.com/freshet/freshet/index/query"
)

// condition is a query as the database takes it.
type condition struct {
	languages []string
	args      []any
	// terms are the queries of single words outside negations, for the score.
	terms []string
}

// always and nothing are conditions without a column.
const (
	always  = "true"
	nothing = "false"
)

// part is a piece of a query: one over words alone is a tsquery, and stays one
// as long as it meets only its like, since one lookup in the index is better
// than two.
type part struct {
	words string // a tsquery in parentheses
	sql   string // or a condition
}

func (c *condition) addArg(v any) string {
	c.args = append(c.args, v)
	return fmt.Sprintf("$%d", len(c.args))
}

// whereClause makes the condition of a whole query.
func (c *condition) whereClause(n query.Node) string { return c.partSQL(c.nodeCondition(n, false)) }

func (c *condition) partSQL(p part) string {
	if p.words != "" {
		return "words @@ " + c.addArg(p.words) + "::tsquery"
	}
	return p.sql
}

func (c *condition) nodeCondition(n query.Node, not bool) part {
	switch n := n.(type) {
	case query.And:
		if len(n) == 0 {
			return part{sql: always}
		}
		return c.joinConditions(n, not, " & ", " and ")
	case query.Or:
		if len(n) == 0 {
			return part{sql: nothing}
		}
		return c.joinConditions(n, not, " | ", " or ")
	case query.Not:
		p := c.nodeCondition(n.Node, !not)
		if p.words != "" {
			return part{words: "!" + p.words}
		}
		return part{sql: "not (" + p.sql + ")"}
	case query.Term:
		return c.termCondition(n, not)
	case query.Phrase:
		return c.phraseCondition(n.Field, analysis.Analyzer{}.Tokens(nil, databaseText(n.Text)), not)
	case query.Filter:
		return filterCondition(n)
	case query.Range:
		return c.rangeCondition(n)
	}
	return part{sql: always}
}

// joinConditions joins nodes: those over words into one tsquery, that and the others into
// a condition.
func (c *condition) joinConditions(nodes []query.Node, not bool, word, sql string) part {
	var words, conditions []string
	for _, n := range nodes {
		p := c.nodeCondition(n, not)
		switch {
		case p.words != "":
			words = append(words, p.words)
		case p.sql == always && word == " & ", p.sql == nothing && word == " | ": // changes nothing
		default:
			conditions = append(conditions, p.sql)
		}
	}
	if len(words) == 0 && len(conditions) == 0 {
		if word == " & " {
			return part{sql: always}
		}
		return part{sql: nothing}
	}
	if len(words) > 0 {
		w := part{words: "(" + strings.Join(words, word) + ")"}
		if len(conditions) == 0 {
			return w
		}
		conditions = append(conditions, c.partSQL(w))
	}
	return part{sql: "(" + strings.Join(conditions, sql) + ")"}
}

// fieldMark is the mark of a field in a tsquery; ok is false for a field that web
// pages do not have.
func fieldMark(field string) (mark string, ok bool) {
	switch field {
	case "":
		return "", true
	case "title":
		return string(titlePart), true
	case "url", "name", "folder":
		return string(namePart), true
	}
	return "", false
}

// termCondition looks for a word as itself and as its stem in each language. A text that
// is several words is a phrase.
func (c *condition) termCondition(n query.Term, not bool) part {
	toks := analysis.Analyzer{}.Tokens(nil, databaseText(n.Text))
	if len(toks) == 0 {
		return part{sql: always} // only punctuation: no condition
	}
	if len(toks) > 1 {
		return c.phraseCondition(n.Field, toks, not)
	}
	mark, ok := fieldMark(n.Field)
	if !ok {
		return part{sql: nothing}
	}
	if n.Prefix {
		mark = "*" + mark
	}
	forms := []string{toks[0].Word}
	for _, l := range c.languages {
		if s := analysis.For(l).Stem(databaseText(n.Text)); !n.Prefix && !slices.Contains(forms, s) {
			forms = append(forms, s)
		}
	}
	lexemes := make([]string, len(forms))
	for i, f := range forms {
		lexemes[i] = quotedLexeme(f, mark)
	}
	return c.noteScored("("+strings.Join(lexemes, " | ")+")", not)
}

func (c *condition) phraseCondition(field string, toks []analysis.Token, not bool) part {
	if len(toks) == 0 {
		return part{sql: always}
	}
	mark, ok := fieldMark(field)
	if !ok {
		return part{sql: nothing}
	}
	words := make([]string, len(toks))
	for i, t := range toks {
		words[i] = quotedLexeme(t.Word, mark)
	}
	return c.noteScored("("+strings.Join(words, " <-> ")+")", not)
}

// noteScored notes a query of words for the score.
func (c *condition) noteScored(q string, not bool) part {
	if !not && !slices.Contains(c.terms, q) {
		c.terms = append(c.terms, q)
	}
	return part{words: q}
}

func quotedLexeme(word, mark string) string {
	var b strings.Builder
	quoteLexeme(&b, word)
	if mark != "" {
		b.WriteString(":" + mark)
	}
	return b.String()
}

func filterCondition(n query.Filter) part {
	field := n.Field
	switch field {
	case "host", "type", "lang", "kind":
	case "ext":
		field = "type"
	case "online": // what is in this engine can be fetched
		if n.Value == "false" || n.Value == "no" {
			return part{sql: nothing}
		}
		return part{sql: always}
	default:
		return part{sql: nothing}
	}
	return part{words: quotedLexeme(filterLexeme(field, databaseText(n.Value)), "")}
}

func (c *condition) rangeCondition(n query.Range) part {
	if n.Field != "date" && n.Field != "size" {
		return part{sql: nothing}
	}
	if math.IsNaN(n.Min) || math.IsNaN(n.Max) {
		return part{sql: nothing}
	}
	var both []string
	if !math.IsInf(n.Min, -1) {
		both = append(both, n.Field+" >= "+c.addArg(nearestInt64(math.Ceil(n.Min))))
	}
	if !math.IsInf(n.Max, 1) {
		both = append(both, n.Field+" <= "+c.addArg(nearestInt64(math.Floor(n.Max))))
	}
	if len(both) == 0 {
		return part{sql: always}
	}
	return part{sql: "(" + strings.Join(both, " and ") + ")"}
}

// nearestInt64 is the nearest integer that a column holds.
func nearestInt64(v float64) int64 {
	if v >= math.MaxInt64 {
		return math.MaxInt64
	}
	if v <= math.MinInt64 {
		return math.MinInt64
	}
	return int64(v)
}
