package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/freshet/freshet/index"
	"github.com/freshet/freshet/index/engine/invert"
	"github.com/freshet/freshet/index/engine/search"
	"github.com/freshet/freshet/index/query"
)

// history is an engine and a naive index that live through the same changes.
type history struct {
	t      *testing.T
	random *rand.Rand
	dir    string
	engine *Engine
	naive  naive
	step   int
}

func (h *history) open() {
	h.t.Helper()
	e, err := Open(h.dir, Config{Languages: languages, BufferWords: 3000})
	if err != nil {
		h.t.Fatalf("step %d: %v", h.step, err)
	}
	h.engine = e
}

func (h *history) do(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatalf("step %d: %v", h.step, err)
	}
}

// ids is how many documents there are at most.
const ids = 400

// change makes one random change.
func (h *history) change() {
	ctx, r := context.Background(), h.random
	h.step++
	switch r.IntN(12) {
	case 0:
		h.do(h.engine.Close())
		h.open()
	case 1:
		h.do(h.engine.Commit(ctx))
	case 2:
		h.do(h.engine.Compact(ctx))
	case 3, 4:
		_, err := h.engine.set.MergeOnce(ctx, func(all []*held) []*held {
			n := r.IntN(len(all) + 1)
			return all[:n]
		})
		h.do(err)
	case 5:
		var pages []index.Popular
		for range r.IntN(50) {
			d := randomDocument(r, ids)
			pages = append(pages, index.Popular{ID: d.ID, Popularity: d.Popularity})
			if old := h.naive[d.ID]; old != nil {
				old.Popularity = d.Popularity
			}
		}
		h.do(h.engine.Rerank(ctx, pages, 0))
	default:
		h.apply(1 + r.IntN(60))
	}
}

func (h *history) apply(n int) {
	var b index.Batch
	for range h.random.IntN(n) {
		d := randomDocument(h.random, ids)
		b.Delete = append(b.Delete, d.ID)
		delete(h.naive, d.ID)
	}
	for range h.random.IntN(n) {
		d := randomDocument(h.random, ids)
		b.Put = append(b.Put, d)
		h.naive.put(d)
	}
	b.Cursor = fmt.Append(nil, h.step)
	h.do(h.engine.Apply(context.Background(), b))
}

// compare asks random queries of both.
func (h *history) compare(queries int) {
	h.t.Helper()
	for range queries {
		text := randomQuery(h.random, 3)
		q := query.Parse(text, now)
		h.compareQuery(text, q)
	}
	h.compareDocuments()
}

func (h *history) compareQuery(text string, q query.Node) {
	h.t.Helper()
	h.do(h.engine.refreshSnapshot(context.Background()))
	snap := h.engine.set.Acquire()
	defer snap.Release()
	r := index.Request{Query: q, Limit: index.MaxLimit, Offset: index.MaxOffset, Now: now, Facets: true}.Bounded()
	found, err := search.Run(context.Background(), snap.Parts, r, search.Options{Languages: languages})
	h.do(err)
	var got []string
	for _, hit := range found.Hits {
		got = append(got, hit.ID)
	}
	slices.Sort(got)
	want := h.naive.find(q)
	if !slices.Equal(got, want) || found.Total != len(want) {
		h.t.Fatalf("step %d: %s finds %d of %d documents (total %d): missing %v, wrong %v", h.step, text, len(got), len(want), found.Total, without(want, got), without(got, want))
	}
	kinds := 0
	for _, c := range found.Facets["type"] {
		kinds += c.Count
	}
	if kinds != len(want) {
		h.t.Fatalf("step %d: %s: facets count %d of %d", h.step, text, kinds, len(want))
	}
}

func without(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
}

// compareDocuments reads every document back.
func (h *history) compareDocuments() {
	h.t.Helper()
	ctx := context.Background()
	for id, want := range h.naive {
		got, err := h.engine.Document(ctx, id)
		h.do(err)
		want := want.Document
		if math.Abs(got.Popularity-want.Popularity) > 1./500 {
			h.t.Fatalf("step %d: %s has popularity %g, want %g", h.step, id, got.Popularity, want.Popularity)
		}
		want.Popularity = got.Popularity
		if *got != want {
			h.t.Fatalf("step %d: %s is %+v, want %+v", h.step, id, *got, want)
		}
	}
	if _, err := h.engine.Document(ctx, "http://never/was"); !errors.Is(err, index.ErrNotFound) {
		h.t.Fatalf("a document that never was: %v", err)
	}
	s, err := h.engine.Stats(ctx)
	h.do(err)
	if s.Documents != uint64(len(h.naive)) {
		h.t.Fatalf("step %d: %d documents, want %d", h.step, s.Documents, len(h.naive))
	}
}

// Through additions, updates, deletions, merges, commits and reopenings, every
// query finds what a scan of all documents finds.
func TestModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			h := &history{t: t, random: rand.New(rand.NewPCG(seed, 5)), dir: filepath.Join(t.TempDir(), "index"), naive: naive{}}
			h.open()
			for range 40 {
				h.change()
				h.compare(20)
			}
			h.do(h.engine.Close())
		})
	}
}

// The best results are those of scoring every match, for any weights, and with
// average lengths that differ from those the bounds were written for.
func TestPrunedIsPlain(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	r := rand.New(rand.NewPCG(3, 4))
	e, err := Open(filepath.Join(t.TempDir(), "index"), Config{Languages: languages})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	words := make([]string, 3000)
	for i := range words {
		words[i] = fmt.Sprintf("w%d", i)
	}
	z := rand.NewZipf(r, 1.1, 3, uint64(len(words)-1))
	text := func(n int) string {
		var b bytes.Buffer
		for range n {
			fmt.Fprintf(&b, "%s ", words[z.Uint64()])
		}
		return b.String()
	}
	for part := range 5 {
		var b index.Batch
		for i := range 3000 {
			b.Put = append(b.Put, index.Document{
				ID: fmt.Sprintf("http://h/%d", r.IntN(12_000)), Title: text(1 + r.IntN(5)), Body: text(1 + r.IntN(20<<part)),
				Popularity: math.Pow(r.Float64(), 4), Date: now.AddDate(0, 0, -r.IntN(900)), Lang: []string{"en", "de"}[i%2],
			})
		}
		if err := e.Apply(ctx, b); err != nil {
			t.Fatal(err)
		}
		if err := e.refreshSnapshot(ctx); err != nil {
			t.Fatal(err)
		}
		if part == 1 {
			if err := e.Compact(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	snap := e.set.Acquire()
	defer snap.Release()
	word := func() string { return words[int(math.Pow(float64(len(words)), r.Float64()))] }
	for i := range 1500 {
		a, b, c, d := word(), word(), word(), word()
		q := []string{
			a, a + " " + b, a + " OR " + b, a + " OR " + b + " OR " + c + " OR " + d, fmt.Sprintf(`"%s %s"`, words[r.IntN(9)], words[r.IntN(9)]),
			fmt.Sprintf("(%s OR %s) %s", a, b, c), a + " -" + b, "title:" + a + " OR " + b, fmt.Sprintf("w%d* OR %s", r.IntN(30), a), "", "size:..10 " + a,
		}[i%11]
		req := index.Request{Query: query.Parse(q, now), Limit: []int{1, 10, 100}[i%3], Now: now, Ranking: index.Ranking{PopularityWeight: 2 * r.Float64(), FreshnessWeight: r.Float64(), HalfLife: 1e15}, ByDate: i%50 == 49}.Bounded()
		var found [2]*search.Found
		for j := range found {
			if found[j], err = search.Run(ctx, snap.Parts, req, search.Options{Languages: languages, Plain: j == 1}); err != nil {
				t.Fatal(err)
			}
		}
		if len(found[0].Hits) != len(found[1].Hits) {
			t.Fatalf("%s: %d results, plain scoring finds %d", q, len(found[0].Hits), len(found[1].Hits))
		}
		if !found[0].Estimated && found[0].Total != found[1].Total {
			t.Fatalf("%s: total %d, plain %d", q, found[0].Total, found[1].Total)
		}
		for k, want := range found[1].Hits {
			if got := found[0].Hits[k]; got.ID != want.ID || math.Abs(got.Score-want.Score) > 1e-9*want.Score {
				t.Fatalf("%s: result %d is %s (%g), plain scoring has %s (%g)", q, k, got.ID, got.Score, want.ID, want.Score)
			}
		}
	}
}

// Popularity is kept in a byte: NaN and what lies outside of [0,1] are bent.
func TestPopularityByte(t *testing.T) {
	t.Parallel()
	for in, want := range map[float64]uint8{0: 0, 1: 255, 7: 255, -1: 0, math.Inf(1): 255, .5: 128} {
		if got := invert.PackPopularity(in); got != want {
			t.Errorf("%g is byte %d, want %d", in, got, want)
		}
	}
	if got := invert.PackPopularity(math.NaN()); got != 0 {
		t.Errorf("NaN is byte %d", got)
	}
}
