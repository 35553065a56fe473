// Package indextest is the suite that every index.Engine must pass: what a
// query finds, in which order, and that batches are atomic and durable.
package indextest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/freshet/freshet/index"
	"github.com/freshet/freshet/index/query"
)

// Opener opens an engine; called again after Close it must find what was
// written. Each call of New gives an engine of its own.
type Opener func(t *testing.T) index.Engine

// now is the time of every search.
var now = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)

// Run runs the suite. New returns an opener of a fresh, empty index.
func Run(t *testing.T, newIndex func(t *testing.T) Opener) {
	tests := map[string]func(t *testing.T, open Opener){
		"Find": testFind, "Rank": testRank, "Copies": testCopies, "Facets": testFacets,
		"Replace": testReplace, "Cursor": testCursor, "IDs": testIDs, "Pages": testPages, "Bounds": testBounds,
		"FiltersAlone": testFiltersAlone, "HostileQueries": testHostileQueries, "ManyExpansions": testManyExpansions,
	}
	for name, f := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, newIndex(t))
		})
	}
}

// sampleLibrary is a small collection in three languages.
func sampleLibrary() []index.Document {
	day := func(n int) time.Time { return now.AddDate(0, 0, -n) }
	return []index.Document{
		{ID: "http://a.example/runs", Host: "a.example", Kind: "web", Type: "html", Lang: "en", Title: "Running in the rain", Body: "She runs every day through the old town.", Date: day(1), Size: 1000},
		{ID: "http://a.example/walk", Host: "a.example", Kind: "web", Type: "html", Lang: "en", Title: "Walking", Body: "To be or not to be: a walk and a run.", Date: day(400), Size: 5000},
		{ID: "http://www.b.example/лиса", Host: "www.b.example", Kind: "web", Type: "html", Lang: "ru", Title: "Быстрая лиса", Body: "Ёлки и быстрые лисы в лесу.", Date: day(30), Size: 800},
		{ID: "http://www.b.example/zasis.pdf", Host: "www.b.example", Kind: "web", Type: "pdf", Lang: "lt", Title: "Žąsys ant ežero", Body: "Didelės žąsys plaukia ežere prie namų.", Date: day(3), Size: 90000},
		{ID: "http://b.example:8080/about", Host: "b.example:8080", Kind: "web", Type: "html", Lang: "en", Title: "About the lake", Body: "A lake house with geese. C++ and foo-bar.", Date: day(10), Size: 2000},
	}
}

func testFind(t *testing.T, open Opener) {
	e := open(t)
	defer closeEngine(t, e)
	mustApply(t, e, index.Batch{Put: sampleLibrary()})
	tests := []struct{ q, want string }{
		{"run", "runs walk"},
		{"RUNNING", "runs walk"},
		{"лис", "лиса"},
		{"елка", "лиса"},
		{"ёлка", "лиса"},
		{"žąsies", "zasis.pdf"},
		{"zasis", "zasis.pdf"},
		{"ežeras", "zasis.pdf"},
		{"namas", "zasis.pdf"},
		{`"to be or not"`, "walk"},
		{`"not to or be"`, ""},
		{"run -walk", "runs"},
		{"-run", "about zasis.pdf лиса"},
		{"gees*", "about"},
		{"быст*", "лиса"},
		{"lake OR лиса", "about лиса"},
		{"title:running", "runs"},
		{"title:town", ""},
		{"host:b.example", "zasis.pdf лиса"},
		{"host:www.b.example lake", ""},
		{"host:b.example:8080", "about"},
		{"type:pdf", "zasis.pdf"},
		{"lang:lt", "zasis.pdf"},
		{"date:7d", "runs zasis.pdf"},
		{"date:..2025-12-31", "walk"},
		{"size:>50kb", "zasis.pdf"},
		{"foo-bar", "about"},
		{"about", "about"},
		{"url:about", "about"},
		{"nowhere", ""},
		{"artist:run", ""},
		{"", "about runs walk zasis.pdf лиса"},
		{"!!!", "about runs walk zasis.pdf лиса"},
		{"run (lake OR town)", "runs"},
		{"-(run OR lake)", "zasis.pdf лиса"},
	}
	for _, tt := range tests {
		res := mustSearch(t, e, tt.q)
		var got []string
		for _, h := range res.Hits {
			got = append(got, h.ID[strings.LastIndexByte(h.ID, '/')+1:])
			if h.Body != "" {
				t.Errorf("%q: hit %s carries its body", tt.q, h.ID)
			}
		}
		slices.Sort(got)
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("%q finds %q, want %q", tt.q, s, tt.want)
		}
		if res.Total != len(got) {
			t.Errorf("%q: total %d of %d", tt.q, res.Total, len(got))
		}
	}
	hit := mustSearch(t, e, "žąsies").Hits[0]
	if got := hit.Snippet.String(); got != "Didelės **žąsys** plaukia ežere prie namų." {
		t.Errorf("snippet %q", got)
	}
}

// A word in the title beats the same word in the body, a popular page an
// unknown one, a fresh page an old one; newest first when asked for.
func testRank(t *testing.T, open Opener) {
	e := open(t)
	defer closeEngine(t, e)
	doc := func(id, title, body string, pop float64, age int) index.Document {
		return index.Document{ID: id, Host: "h", Kind: "web", Lang: "en", Title: title, Body: body, Popularity: pop, Date: now.AddDate(0, 0, -age)}
	}
	mustApply(t, e, index.Batch{Put: []index.Document{
		doc("http://h/body", "something else", "whale song", 0, 1),
		doc("http://h/title", "whale words", "a song", 0, 1),
		doc("http://h/known", "other", "harbour lights", .9, 1),
		doc("http://h/unknown", "other", "harbour lights", 0, 1),
		doc("http://h/old", "other", "winter storm", 0, 900),
		doc("http://h/fresh", "other", "winter storm", 0, 1),
	}})
	for q, want := range map[string]string{"whale": "title", "harbour": "known", "winter": "fresh"} {
		res := mustSearch(t, e, q)
		if len(res.Hits) != 2 || res.Hits[0].ID != "http://h/"+want {
			t.Errorf("%q: %v", q, hitIDs(res))
			continue
		}
		if res.Hits[0].Score <= res.Hits[1].Score {
			t.Errorf("%q: scores %g, %g", q, res.Hits[0].Score, res.Hits[1].Score)
		}
	}
	r := newRequest("winter")
	r.ByDate = true
	r.Query = query.Parse("", now)
	res, err := e.Search(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	if last := res.Hits[len(res.Hits)-1].ID; last != "http://h/old" {
		t.Errorf("by date, the last is %s", last)
	}
}

// Documents of equal content are one result with copies, on whichever page.
func testCopies(t *testing.T, open Opener) {
	e := open(t)
	defer closeEngine(t, e)
	var docs []index.Document
	for _, id := range []string{"http://m1/x", "http://m2/x", "http://m3/x"} {
		docs = append(docs, index.Document{ID: id, Host: id[7:9], Kind: "web", Title: "mirror", Body: "the same text", Same: "d1", Date: now})
	}
	docs = append(docs, index.Document{ID: "http://o/y", Host: "o", Kind: "web", Title: "another mirror", Body: "different", Date: now.AddDate(-2, 0, 0)})
	mustApply(t, e, index.Batch{Put: docs})
	res := mustSearch(t, e, "mirror")
	if len(res.Hits) != 2 {
		t.Fatalf("hits %v", hitIDs(res))
	}
	for _, h := range res.Hits {
		if want := map[string]int{"d1": 2, "": 0}[h.Same]; len(h.Copies) != want {
			t.Errorf("%s has copies %v", h.ID, h.Copies)
		}
	}
}

func testFacets(t *testing.T, open Opener) {
	e := open(t)
	defer closeEngine(t, e)
	mustApply(t, e, index.Batch{Put: sampleLibrary()})
	r := newRequest("")
	r.Facets = true
	res, err := e.Search(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	for field, want := range map[string]index.Count{"type": {Value: "html", Count: 4}, "lang": {Value: "en", Count: 3}, "kind": {Value: "web", Count: 5}} {
		if got := res.Facets[field]; len(got) == 0 || got[0] != want {
			t.Errorf("facet %s: %v, first should be %v", field, got, want)
		}
	}
	if got := len(res.Facets["host"]); got != 3 {
		t.Errorf("hosts %v", res.Facets["host"])
	}
}

// A put replaces, a delete removes, and both survive a restart.
func testReplace(t *testing.T, open Opener) {
	e := open(t)
	docs := sampleLibrary()
	mustApply(t, e, index.Batch{Put: docs})
	docs[0].Body, docs[0].Title = "now about sailing", "Sailing"
	mustApply(t, e, index.Batch{Put: docs[:1], Delete: []string{docs[1].ID, "http://never/was"}})
	check := func(when string) {
		for q, want := range map[string]int{"sailing": 1, "rain": 0, "walk": 0, "": 4} {
			if got := mustSearch(t, e, q).Total; got != want {
				t.Errorf("%s: %q finds %d, want %d", when, q, got, want)
			}
		}
		d, err := e.Document(context.Background(), docs[0].ID)
		if err != nil || d.Body != "now about sailing" || !d.Date.Equal(docs[0].Date) {
			t.Errorf("%s: document %+v, %v", when, d, err)
		}
		if _, err := e.Document(context.Background(), docs[1].ID); !errors.Is(err, index.ErrNotFound) {
			t.Errorf("%s: deleted document: %v", when, err)
		}
	}
	check("at once")
	closeEngine(t, e)
	e = open(t)
	defer closeEngine(t, e)
	check("after a restart")
	if s, err := e.Stats(context.Background()); err != nil || s.Documents != 4 || s.DiskBytes == 0 {
		t.Errorf("stats %+v, %v", s, err)
	}
}

// The cursor is stored with the batch, and a batch without one keeps it.
func testCursor(t *testing.T, open Opener) {
	ctx := context.Background()
	e := open(t)
	if c, err := e.Cursor(ctx); err != nil || len(c) != 0 {
		t.Errorf("new index: cursor %q, %v", c, err)
	}
	mustApply(t, e, index.Batch{Put: sampleLibrary()[:1], Cursor: []byte("17")})
	mustApply(t, e, index.Batch{Put: sampleLibrary()[1:2]})
	closeEngine(t, e)
	e = open(t)
	defer closeEngine(t, e)
	if c, err := e.Cursor(ctx); err != nil || string(c) != "17" {
		t.Errorf("after a restart: cursor %q, %v", c, err)
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if err := e.Apply(cancelled, index.Batch{Put: sampleLibrary()[3:], Cursor: []byte("18")}); err == nil {
		t.Error("a cancelled batch was taken")
	}
	if err := e.Apply(ctx, index.Batch{Put: []index.Document{sampleLibrary()[3], {Title: "no ID"}}, Cursor: []byte("19")}); err == nil {
		t.Error("a document without ID was taken")
	}
	if c, _ := e.Cursor(ctx); string(c) != "17" || mustSearch(t, e, "").Total != 2 {
		t.Errorf("a failed batch left cursor %q and %d documents", c, mustSearch(t, e, "").Total)
	}
}

// IDs lists every document once and those that were removed not at all; its
// function may write, and ends the list by an error.
func testIDs(t *testing.T, open Opener) {
	ctx := context.Background()
	e := open(t)
	list := func() (got []string) {
		t.Helper()
		if err := e.IDs(ctx, func(id string) error { got = append(got, id); return nil }); err != nil {
			t.Fatal(err)
		}
		slices.Sort(got)
		return got
	}
	if got := list(); len(got) != 0 {
		t.Errorf("a new index lists %v", got)
	}
	docs := sampleLibrary()
	mustApply(t, e, index.Batch{Put: docs})
	mustApply(t, e, index.Batch{Put: docs[:1], Delete: []string{docs[1].ID}}) // one is written again
	want := []string{docs[0].ID, docs[2].ID, docs[3].ID, docs[4].ID}
	slices.Sort(want)
	if got := list(); !slices.Equal(got, want) {
		t.Errorf("lists %v, want %v", got, want)
	}
	closeEngine(t, e)
	e = open(t)
	defer closeEngine(t, e)
	if got := list(); !slices.Equal(got, want) {
		t.Errorf("after a restart it lists %v, want %v", got, want)
	}
	stop := errors.New("enough")
	n := 0
	if err := e.IDs(ctx, func(string) error { n++; return stop }); !errors.Is(err, stop) || n != 1 {
		t.Errorf("ended with %v after %d, want %v after 1", err, n, stop)
	}
	if err := e.IDs(ctx, func(id string) error { return e.Apply(ctx, index.Batch{Delete: []string{id}}) }); err != nil {
		t.Errorf("removing what is listed: %v", err)
	}
	if got := list(); len(got) != 0 {
		t.Errorf("after all were removed it lists %v", got)
	}
}

// Pages of results do not overlap and miss nothing.
func testPages(t *testing.T, open Opener) {
	e := open(t)
	defer closeEngine(t, e)
	mustApply(t, e, index.Batch{Put: sampleLibrary()})
	seen := map[string]bool{}
	for offset := 0; offset < 6; offset += 2 {
		r := newRequest("")
		r.Offset, r.Limit = offset, 2
		res, err := e.Search(context.Background(), r)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range res.Hits {
			if seen[h.ID] {
				t.Errorf("%s is on two pages", h.ID)
			}
			seen[h.ID] = true
		}
	}
	if len(seen) != 5 {
		t.Errorf("pages show %d of 5", len(seen))
	}
}

// Limits that make no sense are bent to the nearest that does.
func testBounds(t *testing.T, open Opener) {
	e := open(t)
	defer closeEngine(t, e)
	mustApply(t, e, index.Batch{Put: sampleLibrary()})
	for _, r := range []index.Request{
		{Limit: -1, Offset: -5}, {Limit: 1 << 30}, {Offset: 1 << 30, Limit: 1}, {Limit: 0},
	} {
		r.Query, r.Now = query.Parse("run", now), now
		if _, err := e.Search(context.Background(), r); err != nil {
			t.Errorf("limit %d offset %d: %v", r.Limit, r.Offset, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := e.Search(ctx, newRequest("run")); err == nil {
		t.Error("a cancelled search answered")
	}
}

// Queries without a word that can be scored have finite scores: JSON has no NaN.
func testFiltersAlone(t *testing.T, open Opener) {
	e := open(t)
	defer closeEngine(t, e)
	mustApply(t, e, index.Batch{Put: sampleLibrary()})
	for q, want := range map[string]int{
		"size:>1kb": 3, "date:7d": 2, "date:..2025-12-31": 1, "type:pdf host:b.example": 1, "lang:ru": 1, "type:pdf OR type:html": 5, "kind:web": 5,
		"size:>1kb date:7d -type:html": 1, "-type:pdf": 4, "-run size:>1": 3, "size:..900 OR lang:lt": 2, "artist:x OR type:pdf": 1, "title:nowhere OR size:>50kb": 1,
		"online:true": 5, "(type:pdf OR lang:en) size:>1": 4, "!!! size:>1kb": 3, "size:>1tb": 0,
	} {
		res := mustSearch(t, e, q)
		if res.Total != want || len(res.Hits) != want {
			t.Errorf("%q finds %d, shows %d, want %d", q, res.Total, len(res.Hits), want)
		}
		for _, h := range res.Hits {
			if math.IsNaN(h.Score) || math.IsInf(h.Score, 0) || h.Score < 0 {
				t.Errorf("%q: %s has the score %g", q, h.ID, h.Score)
			}
		}
	}
	r := newRequest("type:html")
	r.Kind = "web"
	if res, err := e.Search(context.Background(), r); err != nil || len(res.Hits) != 4 || math.IsNaN(res.Hits[0].Score) {
		t.Errorf("with a kind: %+v, %v", res, err)
	}
}

// An engine refuses what exceeds the bounds of package query, whoever asks.
func testHostileQueries(t *testing.T, open Opener) {
	e := open(t)
	defer closeEngine(t, e)
	mustApply(t, e, index.Batch{Put: sampleLibrary()})
	for _, q := range []string{
		strings.Repeat("a OR b", 1) + " OR a* OR b* OR c* OR d* OR e* OR f* OR g* OR h* OR i*",
		strings.TrimSuffix(strings.Repeat("x-", 2000), "-"),
		func() string {
			var b strings.Builder
			for i := range 1000 {
				fmt.Fprintf(&b, "w%d ", i)
			}
			return b.String()
		}(),
	} {
		var bounds *query.BoundsError
		if _, err := e.Search(context.Background(), newRequest(q)); !errors.As(err, &bounds) {
			t.Errorf("%.40q: error %v, want a BoundsError", q, err)
		}
	}
}

// A prefix of more words than an engine expands finds the frequent ones.
func testManyExpansions(t *testing.T, open Opener) {
	e := open(t)
	defer closeEngine(t, e)
	var docs []index.Document
	for i := range 30 {
		var b strings.Builder
		for j := range 100 {
			fmt.Fprintf(&b, "zz%dx%d ", i, j)
		}
		docs = append(docs, index.Document{ID: fmt.Sprintf("http://h/%d", i), Host: "h", Kind: "web", Title: "page", Body: b.String() + "zzcommon", Date: now})
	}
	mustApply(t, e, index.Batch{Put: docs})
	if res := mustSearch(t, e, "zz*"); res.Total != 30 {
		t.Errorf("zz* finds %d, want 30", res.Total)
	}
	if res := mustSearch(t, e, "zz7x9* -zz3*"); res.Total != 1 {
		t.Errorf("zz7x9* -zz3* finds %d, want 1", res.Total)
	}
}

func newRequest(q string) index.Request {
	return index.Request{Query: query.Parse(q, now), Limit: 20, Now: now}
}

func mustSearch(t *testing.T, e index.Engine, q string) *index.Results {
	t.Helper()
	res, err := e.Search(context.Background(), newRequest(q))
	if err != nil {
		t.Fatalf("search %q: %v", q, err)
	}
	return res
}

func mustApply(t *testing.T, e index.Engine, b index.Batch) {
	t.Helper()
	if err := e.Apply(context.Background(), b); err != nil {
		t.Fatal(err)
	}
}

func closeEngine(t *testing.T, e index.Engine) {
	t.Helper()
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

func hitIDs(r *index.Results) []string {
	var out []string
	for _, h := range r.Hits {
		out = append(out, h.ID)
	}
	return out
}
