package postgres

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/freshet/freshet/index"
	"github.com/freshet/freshet/index/indextest"
	"github.com/freshet/freshet/index/query"
)

// Documents whose popularity differs enough get the new one, others and those
// that are not there are left alone.
func TestRerank(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	e := open(t, cluster.Database(t), Config{Lane: "n"})
	corpus := indextest.NewCorpus()
	var b index.Batch
	for i := range 20 {
		d := corpus.Document(i)
		d.Popularity = .5
		b.Put = append(b.Put, d)
	}
	if err := e.Apply(ctx, b); err != nil {
		t.Fatal(err)
	}
	pages := []index.Popular{{ID: "http://nowhere.example/", Popularity: 1}}
	for i, d := range b.Put {
		pages = append(pages, index.Popular{ID: d.ID, Popularity: []float64{.9, .55, 7}[i%3]})
	}
	if err := e.Rerank(ctx, pages, .1); err != nil {
		t.Fatal(err)
	}
	for i, d := range b.Put {
		got, err := e.Document(ctx, d.ID)
		if err != nil {
			t.Fatal(err)
		}
		if want := []float64{.9, .5, 1}[i%3]; got.Popularity != want || got.Body != d.Body {
			t.Errorf("%s has the popularity %g, want %g; body kept: %v", d.ID, got.Popularity, want, got.Body == d.Body)
		}
	}
	if s, err := e.Stats(ctx); err != nil || s.Documents != 20 {
		t.Errorf("%d documents, %v", s.Documents, err)
	}
}

// Several nodes that write and delete the same documents in every order leave
// what one of them wrote, and the right count.
func TestApplyTogether(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	address := cluster.Database(t)
	corpus := indextest.NewCorpus()
	var wg sync.WaitGroup
	for n := range 3 {
		e := open(t, address, Config{Lane: fmt.Sprint("node", n)})
		wg.Go(func() {
			for round := range 3 {
				b := index.Batch{Cursor: []byte{byte(round)}}
				for i := range 60 {
					d := corpus.Document((i*7 + n*13) % 60)
					if (i+n+round)%5 == 0 {
						b.Delete = append(b.Delete, d.ID)
						continue
					}
					d.Title = fmt.Sprintf("together node%d round%d", n, round)
					b.Put = append(b.Put, d)
				}
				if err := e.Apply(ctx, b); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	e := open(t, address, Config{Lane: "last"})
	s, err := e.Stats(ctx)
	if err != nil {
		t.Fatal(err)
	}
	res, err := e.Search(ctx, index.Request{Query: query.Parse("together", time.Now()), Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	if res.Total != int(s.Documents) || res.Total == 0 {
		t.Errorf("%d documents are found, %d are counted", res.Total, s.Documents)
	}
	var ids []string
	for _, h := range res.Hits {
		ids = append(ids, h.ID)
	}
	slices.Sort(ids)
	if len(slices.Compact(ids)) != len(res.Hits) {
		t.Error("a document is found twice")
	}
}
