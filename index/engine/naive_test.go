package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/freshet/freshet/index"
	"github.com/freshet/freshet/index/analysis"
	"github.com/freshet/freshet/index/query"
)

// now is the time of every search.
var now = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)

var languages = []string{"en", "ru", "lt"}

// pieces are what random texts and queries are made of: words that have stems,
// accents, other scripts, and signs that mean something to a query.
var pieces = strings.Fields(`run running runs lake lakes lakės žąsys zasis zasies ёлка елка Ёлки лисы лис don't l’eau foo-bar C++ 東京 naïve naive Naïve it's q=z host=h0 1e9 ` +
	`averyveryverylongwordthatdoesnotfitsixteenbytes Straße strasse the The THE of and a b c d é`)

func randomText(r *rand.Rand, n int) string {
	words := make([]string, n)
	for i := range words {
		words[i] = pieces[min(r.IntN(len(pieces)), r.IntN(len(pieces)))]
	}
	return strings.Join(words, " ")
}

func randomDocument(r *rand.Rand, ids int) index.Document {
	i := r.IntN(ids)
	body := randomText(r, 1+r.IntN(40))
	if r.IntN(30) == 0 {
		body = strings.Repeat(body+" ", 60)
	}
	return index.Document{
		ID: fmt.Sprintf("http://h%d.example/%s/%d", i%3, []string{"lake", "running", "x"}[i%3], i), Host: fmt.Sprintf("h%d.example", i%3), Kind: "web", Type: []string{"html", "pdf"}[r.IntN(2)],
		Lang: []string{"en", "lt", "ru", "", "ja"}[r.IntN(5)], Title: randomText(r, r.IntN(4)), Body: body, Same: fmt.Sprint(r.Uint64()),
		Date: now.AddDate(0, 0, -r.IntN(300)), Size: int64(r.IntN(1000)), Popularity: float64(r.IntN(256)) / 255,
	}
}

func randomQuery(r *rand.Rand, depth int) string {
	word := func() string { return pieces[r.IntN(len(pieces))] }
	switch r.IntN(13) {
	case 0:
		return `"` + word() + " " + word() + `"`
	case 1:
		return "-" + word()
	case 2:
		return string([]rune(word())[:1]) + "*"
	case 3:
		return []string{"title:", "url:", "artist:"}[r.IntN(3)] + word()
	case 4:
		return fmt.Sprintf("host:h%d.example", r.IntN(4))
	case 5:
		return []string{"lang:en", "type:html", "kind:web", "size:>500", "date:..2026-03-01", "size:100..700", "online:no", "host:example"}[r.IntN(8)]
	case 6:
		return []string{"title:", "url:"}[r.IntN(2)] + []string{`"` + word() + " " + word() + `"`, word()[:1] + "*"}[r.IntN(2)]
	case 7, 8:
		if depth > 0 {
			return "(" + randomQuery(r, depth-1) + " OR " + randomQuery(r, depth-1) + ")"
		}
	case 9:
		if depth > 0 {
			return "-(" + randomQuery(r, depth-1) + " " + randomQuery(r, depth-1) + ")"
		}
	case 10, 11:
		if depth > 0 {
			return randomQuery(r, depth-1) + " " + randomQuery(r, depth-1)
		}
	}
	return word()
}

// naive is an index that looks at every word of every document.
type naive map[string]*naiveDocument

type naiveDocument struct {
	index.Document
	fields [3][]analysis.Token // title, URL, body
}

func (n naive) put(d index.Document) {
	lang := d.Lang
	if lang == "" {
		lang = languages[0]
	}
	a := analysis.For(lang)
	n[d.ID] = &naiveDocument{d, [3][]analysis.Token{
		a.Tokens(nil, d.Title), analysis.Analyzer{}.Tokens(nil, index.NameOf(d.ID)), a.Tokens(nil, d.Body),
	}}
}

// find returns the identifiers of all documents that match, sorted.
func (n naive) find(q query.Node) []string {
	var out []string
	for id, d := range n {
		if d.matches(q) {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

func (d *naiveDocument) matches(q query.Node) bool {
	switch q := q.(type) {
	case query.And:
		return !slices.ContainsFunc(q, func(c query.Node) bool { return !d.matches(c) })
	case query.Or:
		return slices.ContainsFunc(q, d.matches)
	case query.Not:
		return !d.matches(q.Node)
	case query.Term:
		return d.matchesTerm(q)
	case query.Phrase:
		return d.matchesPhrase(q.Field, analysis.Analyzer{}.Tokens(nil, q.Text))
	case query.Filter:
		return d.matchesFilter(q)
	case query.Range:
		v := map[string]float64{"date": float64(d.Date.Unix()), "size": float64(d.Size)}
		x, ok := v[q.Field]
		return ok && x >= q.Min && x <= q.Max
	}
	return true
}

// inFields are the fields that the field of a query means.
func (d *naiveDocument) inFields(field string) [][]analysis.Token {
	switch field {
	case "":
		return d.fields[:]
	case "title":
		return d.fields[:1]
	case "url", "name", "folder":
		return d.fields[1:2]
	}
	return nil
}

func (d *naiveDocument) matchesTerm(q query.Term) bool {
	tokens := analysis.Analyzer{}.Tokens(nil, q.Text)
	if len(tokens) == 0 {
		return true
	}
	if len(tokens) > 1 {
		return d.matchesPhrase(q.Field, tokens)
	}
	forms := []string{tokens[0].Word}
	for _, l := range languages {
		forms = append(forms, analysis.For(l).Stem(q.Text))
	}
	for _, field := range d.inFields(q.Field) {
		for _, t := range field {
			if q.Prefix && strings.HasPrefix(t.Word, tokens[0].Word) || !q.Prefix && (slices.Contains(forms, t.Word) || t.Stem != "" && slices.Contains(forms, t.Stem)) {
				return true
			}
		}
	}
	return false
}

func (d *naiveDocument) matchesPhrase(field string, words []analysis.Token) bool {
	for _, tokens := range d.inFields(field) {
		for i := range tokens {
			j := 0
			for j < len(words) && i+j < len(tokens) && tokens[i+j].Word == words[j].Word && tokens[i+j].Pos == tokens[i].Pos+j {
				j++
			}
			if j == len(words) {
				return true
			}
		}
	}
	return len(words) == 0
}

func (d *naiveDocument) matchesFilter(q query.Filter) bool {
	switch q.Field {
	case "host":
		return slices.Contains(index.Domains(d.Host), q.Value)
	case "type", "ext":
		return d.Type == q.Value
	case "lang":
		return d.Lang == q.Value
	case "kind":
		return d.Kind == q.Value
	case "online":
		return q.Value != "false" && q.Value != "no"
	}
	return false
}
