package search

import (
	"context"
	"math"

	"github.com/freshet/freshet/index/analysis"
	"github.com/freshet/freshet/index/engine/bm25"
	"github.com/freshet/freshet/index/engine/term"
	"github.com/freshet/freshet/index/query"
)

// Costs and weights of words. How many a query has is bounded by query.CheckBounds.
const (
	maxExpansions    = 10_000    // words of a prefix in one segment
	maxExpanded      = 4_000_000 // postings of all words of a prefix in one segment
	exactWeight      = .3        // of the word as it is written
	formWeight       = .7        // of any of its forms
	prefixSaturation = .4        // what a match of a prefix is worth, see bm25.Norms.Saturation
)

// span restricts matches to a field.
type span uint8

const (
	anywhere span = iota
	inTitle
	inURL
	nowhere // a field that pages do not have
)

func spanOf(field string) span {
	switch field {
	case "":
		return anywhere
	case "title":
		return inTitle
	case "url", "name", "folder":
		return inURL
	}
	return nowhere
}

// The nodes of a plan.
type (
	planNode any
	planAnd  []planNode
	planOr   []planNode
	planNot  struct{ node planNode }
	planAll  struct{}
	planNone struct{}

	// planWord is a word and its forms; one of the lists must have a document.
	planWord struct {
		keys [][]byte // the first is the word itself
		span span
		idf  float64
	}
	planPhrase struct {
		words []string
		span  span
	}
	planPrefix struct {
		prefix []byte
		span   span
		idf    float64
	}
	planFilter struct{ key []byte }
	planRange  struct {
		column   func(p *Part, doc uint32) int64
		min, max int64
	}
)

// plan is a query as all segments take it.
type plan struct {
	root     planNode
	words    []*planWord   // that score
	prefixes []*planPrefix // that score
}

// planner makes a plan.
type planner struct {
	languages []string
	plan      plan
}

// newPlan translates a query. Every word is stemmed in each of languages, since
// nobody knows which one a query is in.
func newPlan(q query.Node, languages []string) *plan {
	p := planner{languages: languages}
	p.plan.root = p.planQuery(q, true)
	return &p.plan
}

// planQuery translates a node; scores reports whether its words count, which those of
// an excluded part do not.
func (p *planner) planQuery(n query.Node, scores bool) planNode {
	switch n := n.(type) {
	case query.And:
		out := make(planAnd, len(n))
		for i, c := range n {
			out[i] = p.planQuery(c, scores)
		}
		return out
	case query.Or:
		out := make(planOr, len(n))
		for i, c := range n {
			out[i] = p.planQuery(c, scores)
		}
		return out
	case query.Not:
		return planNot{p.planQuery(n.Node, false)}
	case query.Term:
		return p.planTerm(n, scores)
	case query.Phrase:
		return p.planPhraseOf(spanOf(n.Field), analysis.Analyzer{}.Tokens(nil, n.Text), scores)
	case query.Filter:
		return planFilterOf(n)
	case query.Range:
		return planRangeOf(n)
	}
	return planAll{}
}

// planTerm plans a word. A text that is several words (foo-bar, 東京) is a phrase;
// punctuation alone is no condition.
func (p *planner) planTerm(n query.Term, scores bool) planNode {
	tokens := analysis.Analyzer{}.Tokens(nil, n.Text)
	s := spanOf(n.Field)
	switch {
	case len(tokens) == 0:
		return planAll{}
	case len(tokens) > 1:
		return p.planPhraseOf(s, tokens, scores)
	case s == nowhere:
		return planNone{}
	case n.Prefix:
		w := &planPrefix{prefix: term.Key(term.Word, tokens[0].Word), span: s}
		if scores {
			p.plan.prefixes = append(p.plan.prefixes, w)
		}
		return w
	}
	w := &planWord{keys: [][]byte{term.Key(term.Word, tokens[0].Word)}, span: s}
	seen := map[string]bool{}
	for _, form := range p.wordForms(n.Text, tokens[0].Word) {
		if seen[form] || form == "" {
			continue
		}
		seen[form] = true
		if form != tokens[0].Word {
			w.keys = append(w.keys, term.Key(term.Word, form))
		}
		w.keys = append(w.keys, term.Key(term.Stem, form))
	}
	return p.noteWord(w, scores)
}

// wordForms are the word and its stem in each language.
func (p *planner) wordForms(text, word string) []string {
	out := []string{word}
	for _, l := range p.languages {
		out = append(out, analysis.For(l).Stem(text))
	}
	return out
}

func (p *planner) noteWord(w *planWord, scores bool) planNode {
	if scores {
		p.plan.words = append(p.plan.words, w)
	}
	return w
}

func (p *planner) planPhraseOf(s span, tokens []analysis.Token, scores bool) planNode {
	switch {
	case len(tokens) == 0:
		return planAll{}
	case s == nowhere:
		return planNone{}
	}
	out := &planPhrase{span: s}
	seen := map[string]bool{}
	for _, t := range tokens {
		out.words = append(out.words, t.Word)
		if !seen[t.Word] {
			seen[t.Word] = true
			p.noteWord(&planWord{keys: [][]byte{term.Key(term.Word, t.Word)}}, scores)
		}
	}
	return out
}

func planFilterOf(n query.Filter) planNode {
	fields := map[string]term.Field{"host": term.Host, "type": term.Type, "ext": term.Type, "lang": term.Lang, "kind": term.Kind}
	if f, ok := fields[n.Field]; ok {
		return planFilter{term.Key(f, n.Value)}
	}
	if n.Field == "online" && n.Value != "false" && n.Value != "no" {
		return planAll{} // what is in the index can be fetched
	}
	return planNone{}
}

func planRangeOf(n query.Range) planNode {
	r := planRange{min: wholeNumber(n.Min, math.Ceil), max: wholeNumber(n.Max, math.Floor)}
	switch n.Field {
	case "date":
		r.column = func(p *Part, doc uint32) int64 { return p.Segment.Date(doc) }
	case "size":
		r.column = func(p *Part, doc uint32) int64 { return p.Segment.SizeOf(doc) }
	default:
		return planNone{}
	}
	return r
}

// wholeNumber is v as a whole number, within what int64 can hold.
func wholeNumber(v float64, round func(float64) float64) int64 {
	switch v = round(v); {
	case v >= math.MaxInt64:
		return math.MaxInt64
	case v <= math.MinInt64:
		return math.MinInt64
	case math.IsNaN(v):
		return 0
	}
	return int64(v)
}

// weighWords looks up how many documents have each word that scores.
func (p *plan) weighWords(ctx context.Context, parts []*Part, documents int) error {
	for _, w := range p.words {
		most := 0
		for _, key := range w.keys {
			if err := ctx.Err(); err != nil {
				return err
			}
			count := 0
			for _, part := range parts {
				l, err := part.Segment.Lookup(key)
				if err != nil {
					return err
				}
				count += l.Count()
			}
			most = max(most, count)
		}
		w.idf = bm25.IDF(most, documents)
	}
	return nil
}
