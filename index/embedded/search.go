package embedded

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/search"
	bquery "github.com/blevesearch/bleve/v2/search/query"

	"github.com/freshet/freshet/index"
	"github.com/freshet/freshet/index/analysis"
	"github.com/freshet/freshet/index/query"
)

// Search implements index.Engine.
func (e *Engine) Search(ctx context.Context, r index.Request) (*index.Results, error) {
	start := time.Now()
	r = r.Bounded()
	q := translator{languages: e.languages}.node(r.Query)
	depth := index.Spare(r.Offset + r.Limit)
	if !r.ByDate {
		depth = max(depth, index.RerankDepth)
	}
	one, _ := q.(*phraseQuery)
	if one != nil && !r.ByDate {
		one.best, one.after = depth, index.MaxFaceted
	}
	req := bleve.NewSearchRequestOptions(q, depth, 0, false)
	if r.ByDate {
		req.Score = "none"
		req.SortBy([]string{"-date", "_id"})
	}
	res, err := e.bleve.SearchInContext(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("search %q: %w", r.Query, err)
	}
	if !r.ByDate {
		e.rerank(res.Hits, r)
	}
	out := &index.Results{Total: int(res.Total)}
	if one != nil {
		out.Total += one.found.more()
	}
	if r.Facets && res.Total <= index.MaxFaceted {
		if out.Facets, err = e.facets(ctx, q); err != nil {
			return nil, fmt.Errorf("search %q: facets: %w", r.Query, err)
		}
	}
	found := make([]index.Scored, len(res.Hits))
	for i, m := range res.Hits {
		found[i] = index.Scored{ID: m.ID, Score: m.Score}
	}
	out.Hits = index.Fold(found, r, e.languages, func(m index.Scored) (*index.Document, error) { return e.Document(ctx, m.ID) })
	out.Elapsed = time.Since(start)
	return out, nil
}

// rerank multiplies popularity and freshness into the scores and sorts again.
func (e *Engine) rerank(found search.DocumentMatchCollection, r index.Request) {
	now := float64(r.Now.Unix())
	for _, m := range found {
		// A document deleted meanwhile keeps its score: hits leaves it out.
		_ = e.stored(m.ID, func(b []byte) error {
			date, popularity, err := headOf(b)
			m.Score *= r.Ranking.Boost(popularity, now-date)
			return err
		})
	}
	slices.SortStableFunc(found, func(a, b *search.DocumentMatch) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID))
	})
}

// facets counts the values of all matches, without scores.
func (e *Engine) facets(ctx context.Context, q bquery.Query) (map[string][]index.Count, error) {
	req := bleve.NewSearchRequestOptions(q, 0, 0, false)
	req.Score = "none"
	for name, field := range map[string]string{"host": "hostname", "type": "type", "lang": "lang", "kind": "kind"} {
		req.AddFacet(name, bleve.NewFacetRequest(field, index.FacetSize))
	}
	res, err := e.bleve.SearchInContext(ctx, req)
	if err != nil {
		return nil, err
	}
	out := map[string][]index.Count{}
	for name, f := range res.Facets {
		if f.Terms == nil {
			continue
		}
		for _, t := range f.Terms.Terms() {
			out[name] = append(out[name], index.Count{Value: t.Term, Count: t.Count})
		}
	}
	return out, nil
}

// translator makes Bleve's queries of ours.
type translator struct {
	languages []string
}

func (t translator) node(n query.Node) bquery.Query {
	switch n := n.(type) {
	case query.And:
		return t.and(n)
	case query.Or:
		out := make([]bquery.Query, len(n))
		for i, c := range n {
			out[i] = t.node(c)
		}
		return bquery.NewDisjunctionQuery(out)
	case query.Not:
		return bquery.NewBooleanQuery([]bquery.Query{bquery.NewMatchAllQuery()}, nil, []bquery.Query{t.node(n.Node)})
	case query.Term:
		return t.term(n)
	case query.Phrase:
		return phrase(n.Field, analysis.Analyzer{}.Tokens(nil, n.Text))
	case query.Filter:
		return filter(n)
	case query.Range:
		return numeric(n)
	}
	return bquery.NewMatchAllQuery()
}

// and splits the nodes into those that must and those that must not match.
func (t translator) and(nodes query.And) bquery.Query {
	var must, not []bquery.Query
	for _, c := range nodes {
		if n, ok := c.(query.Not); ok {
			not = append(not, t.node(n.Node))
			continue
		}
		must = append(must, t.node(c))
	}
	if len(must) == 0 {
		must = append(must, bquery.NewMatchAllQuery())
	}
	if len(not) == 0 {
		if len(must) == 1 {
			return must[0]
		}
		return bquery.NewConjunctionQuery(must)
	}
	return bquery.NewBooleanQuery(must, nil, not)
}

// fieldOf returns the field of the index that a field of the query means, or
// "" for one that web pages do not have.
func fieldOf(field string) string {
	switch field {
	case "":
		return "text"
	case "title":
		return "title"
	case "url", "name", "folder":
		return "name"
	}
	return ""
}

// term looks for a word as itself and as its stem in each language. A text that is several words (foo-bar, 東京) is a phrase.
func (t translator) term(n query.Term) bquery.Query {
	toks := analysis.Analyzer{}.Tokens(nil, n.Text)
	if len(toks) == 0 {
		return bquery.NewMatchAllQuery() // only punctuation: no condition
	}
	if len(toks) > 1 {
		return phrase(n.Field, toks)
	}
	field := fieldOf(n.Field)
	if field == "" {
		return bquery.NewMatchNoneQuery()
	}
	if n.Prefix {
		q := bquery.NewPrefixQuery(toks[0].Word)
		q.SetField(field)
		return q
	}
	var any []bquery.Query
	for form, weight := range t.forms(n.Text, toks[0].Word) {
		q := bquery.NewTermQuery(form)
		q.SetField(field)
		q.SetBoost(weight)
		any = append(any, q)
	}
	if len(any) == 1 {
		return any[0]
	}
	return bquery.NewDisjunctionQuery(any)
}

// forms are the folded word and its stems, with what a match of each is worth.
func (t translator) forms(text, word string) map[string]float64 {
	out := map[string]float64{}
	for _, l := range t.languages {
		out[analysis.For(l).Stem(text)] = .7
	}
	out[word] = 1
	return out
}

func phrase(field string, toks []analysis.Token) bquery.Query {
	if len(toks) == 0 {
		return bquery.NewMatchAllQuery()
	}
	words := make([]string, len(toks))
	for i, tok := range toks {
		words[i] = tok.Word
	}
	f := fieldOf(field)
	if f == "" {
		return bquery.NewMatchNoneQuery()
	}
	return &phraseQuery{words: words, field: f}
}

func filter(n query.Filter) bquery.Query {
	field := n.Field
	switch field {
	case "host", "type", "lang", "kind":
	case "ext":
		field = "type"
	case "online": // what is in this engine can be fetched
		if n.Value == "false" || n.Value == "no" {
			return bquery.NewMatchNoneQuery()
		}
		return bquery.NewMatchAllQuery()
	default:
		return bquery.NewMatchNoneQuery()
	}
	q := bquery.NewTermQuery(n.Value)
	q.SetField(field)
	q.SetBoost(0)
	return q
}

func numeric(n query.Range) bquery.Query {
	if n.Field != "date" && n.Field != "size" {
		return bquery.NewMatchNoneQuery()
	}
	low, high := &n.Min, &n.Max
	if math.IsInf(n.Min, -1) {
		low = nil
	}
	if math.IsInf(n.Max, 1) {
		high = nil
	}
	yes := true
	q := bquery.NewNumericRangeInclusiveQuery(low, high, &yes, &yes)
	q.SetField(n.Field)
	q.SetBoost(0)
	return q
}
