package embedded

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/blevesearch/bleve/v2"
	bquery "github.com/blevesearch/bleve/v2/search/query"

	"github.com/freshet/freshet/index"
	"github.com/freshet/freshet/index/query"
)

// few makes documents of a few words in all orders, some of them deleted and
// written anew, in several segments.
func few(t *testing.T, n int) (*Engine, map[string]index.Document) {
	t.Helper()
	e, err := Open(filepath.Join(t.TempDir(), "index"), Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	r := rand.New(rand.NewPCG(4, 2))
	words := []string{"ana", "banana", "žąsis", "дом", "x1"}
	text := func(n int) string {
		out := make([]string, n)
		for i := range out {
			out[i] = words[min(r.IntN(len(words)), r.IntN(len(words)))]
		}
		return strings.Join(out, " ")
	}
	docs := map[string]index.Document{}
	for i := 0; i < n; i += n / 4 {
		var b index.Batch
		for j := range n / 4 {
			d := index.Document{ID: fmt.Sprintf("http://h.example/%d", i+j), Host: "h.example", Kind: "web", Type: "html", Title: text(1 + r.IntN(3)), Body: text(1 + r.IntN(30)), Date: time.Unix(1e9, 0)}
			b.Put = append(b.Put, d)
			docs[d.ID] = d
		}
		for k := range i / 8 {
			id := fmt.Sprintf("http://h.example/%d", 7*k%(i+1))
			if _, ok := docs[id]; ok && k%2 == 0 {
				b.Delete = append(b.Delete, id)
				delete(docs, id)
			}
		}
		if err := e.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	return e, docs
}

// Phrases are found where a look at the text finds them, where Bleve finds
// them, and by a second look over what the first one found.
func TestPhrase(t *testing.T) {
	t.Parallel()
	e, docs := few(t, 400)
	for _, p := range []string{"ana banana", "ana ana", "ana ana ana", "banana ana banana", "x1 x1", "дом žąsis", "ana x1 ana ana", "žąsis", "nowhere ana", "ana nowhere"} {
		var want []string
		for id, d := range docs {
			for _, part := range []string{d.Title, d.Body} {
				if strings.Contains(" "+part+" ", " "+p+" ") {
					want = append(want, id)
					break
				}
			}
		}
		slices.Sort(want)
		words := strings.Fields(strings.ReplaceAll(p, "žąsis", "zasis"))
		q := &phraseQuery{words: words, field: "text"}
		ask := func(q bquery.Query) []string {
			res, err := e.bleve.SearchInContext(context.Background(), bleve.NewSearchRequestOptions(q, 1000, 0, false))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, h := range res.Hits {
				got = append(got, h.ID)
			}
			slices.Sort(got)
			return got
		}
		first, known, bleves := ask(q), q.found.whole, ask(bquery.NewPhraseQuery(words, "text"))
		if !slices.Equal(first, want) || !slices.Equal(bleves, want) {
			t.Errorf("%q: found %d, Bleve %d, the text has %d", p, len(first), len(bleves), len(want))
		}
		if again := ask(q); !known || !slices.Equal(again, want) {
			t.Errorf("%q: known %t, again %d of %d", p, known, len(again), len(want))
		}
		both := ask(bquery.NewConjunctionQuery([]bquery.Query{&phraseQuery{words: words, field: "text"}, bquery.NewMatchAllQuery()}))
		if !slices.Equal(both, want) {
			t.Errorf("%q: with another query %d of %d", p, len(both), len(want))
		}
	}
}

// A search that passes over what is not among the best finds the same best ones,
// and knows how many there are but for a few.
func TestPhraseOfMany(t *testing.T) {
	t.Parallel()
	e, _ := few(t, 4000)
	find := func(q *phraseQuery) ([]string, int) {
		res, err := e.bleve.SearchInContext(context.Background(), bleve.NewSearchRequestOptions(q, 20, 0, false))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, h := range res.Hits {
			got = append(got, h.ID)
		}
		return got, int(res.Total)
	}
	words := []string{"ana", "banana"}
	all, total := find(&phraseQuery{words: words, field: "text"})
	q := &phraseQuery{words: words, field: "text", best: 20, after: 200}
	some, looked := find(q)
	if !slices.Equal(some, all) {
		t.Errorf("the best are %q, want %q", some, all)
	}
	if q.found.passed < total/2 || looked > total/2 {
		t.Errorf("%d of %d were counted, %d passed over", looked, total, q.found.passed)
	}
	if got := looked + q.found.more(); got < total*9/10 || got > total*11/10 {
		t.Errorf("estimated %d of %d", got, total)
	}
	res, err := e.Search(t.Context(), index.Request{Query: query.Parse(`"ana banana"`, time.Now()), Limit: 10, Facets: true})
	if err != nil || res.Total != total || res.Facets["type"][0].Count != total {
		t.Errorf("%v, %+v, want %d", err, res, total)
	}
}
