package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/freshet/freshet/index"
	"github.com/freshet/freshet/index/engine"
	"github.com/freshet/freshet/index/query"
)

var now = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)

// pieces are what random texts and queries are made of: words that have stems,
// and all that means something to a query, a tsquery or a string of SQL.
var pieces = strings.Fields(`run running runs lake lakes žąsys zasis ёлка елка лисы don't d'or l’eau foo-bar C++ 東京 naïve a'b a\b \' '' "x $1 % _ :A :* & | ! <-> it's q=z host=h0 1e9`)

// exactWords are words for phrases: none is the stem of another, which
// PostgreSQL takes for the word itself, since stems share its positions.
var exactWords = strings.Fields(`running runs lakes zasis don't foo-bar 東京 naïve it's q=z 1e9`)

func randomText(r *rand.Rand, n int) string {
	words := make([]string, n)
	for i := range words {
		words[i] = pieces[r.IntN(len(pieces))]
	}
	return strings.Join(words, " ")
}

func randomQuery(r *rand.Rand, depth int) string {
	word := func() string { return pieces[r.IntN(len(pieces))] }
	switch r.IntN(12) {
	case 0:
		return `"` + exactWords[r.IntN(len(exactWords))] + " " + exactWords[r.IntN(len(exactWords))] + `"`
	case 1:
		return "-" + word()
	case 2:
		return []string{"ru", "la", "žą", "лис", "ёл", "нет", "na", "東"}[r.IntN(8)] + "*"
	case 3:
		return []string{"title:", "url:", "artist:"}[r.IntN(3)] + word()
	case 4:
		return fmt.Sprintf("host:h%d.example", r.IntN(3))
	case 5:
		return []string{"lang:en", "type:html", "kind:web", "size:>500", "date:..2026-03-01", "size:100..700", "online:no"}[r.IntN(7)]
	case 6, 7:
		if depth > 0 {
			return "(" + randomQuery(r, depth-1) + " OR " + randomQuery(r, depth-1) + ")"
		}
	case 8:
		if depth > 0 {
			return "-(" + randomQuery(r, depth-1) + " " + randomQuery(r, depth-1) + ")"
		}
	case 9, 10:
		if depth > 0 {
			return randomQuery(r, depth-1) + " " + randomQuery(r, depth-1)
		}
	}
	return word()
}

// Whatever is asked, both engines find the same documents.
func TestBothEnginesAgree(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	r := rand.New(rand.NewPCG(11, 12))
	ours := open(t, cluster.Database(t), Config{Lane: "n"})
	other, err := engine.Open(filepath.Join(t.TempDir(), "index"), engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	var b index.Batch
	for i := range 60 {
		b.Put = append(b.Put, index.Document{
			ID: fmt.Sprintf("http://h%d.example/%s/%d", i%3, []string{"lake", "run", "x"}[r.IntN(3)], i), Host: fmt.Sprintf("h%d.example", i%3), Kind: "web", Type: []string{"html", "pdf"}[r.IntN(2)],
			Lang: []string{"en", "lt", "ru", ""}[r.IntN(4)], Title: randomText(r, 2), Body: randomText(r, 1+r.IntN(20)), Date: now.AddDate(0, 0, -r.IntN(300)), Size: int64(r.IntN(1000)), Popularity: r.Float64(),
		})
	}
	for _, e := range []index.Engine{ours, other} {
		if err := e.Apply(ctx, b); err != nil {
			t.Fatal(err)
		}
	}
	find := func(e index.Engine, q string) []string {
		res, err := e.Search(ctx, index.Request{Query: query.Parse(q, now), Limit: 100, Now: now})
		if err != nil {
			t.Fatalf("%q: %v", q, err)
		}
		var ids []string
		for _, h := range res.Hits {
			ids = append(ids, h.ID)
		}
		if res.Total != len(ids) {
			t.Errorf("%q: total %d of %d", q, res.Total, len(ids))
		}
		slices.Sort(ids)
		return ids
	}
	found := 0
	for range 300 {
		q := randomQuery(r, 3)
		a, b := find(ours, q), find(other, q)
		if !slices.Equal(a, b) {
			t.Errorf("%q (%s): PostgreSQL finds %d, index/engine %d:\n%v\n%v", q, query.Parse(q, now), len(a), len(b), a, b)
		}
		found += len(a)
	}
	if found < 500 {
		t.Errorf("only %d documents found by all queries together: the test tests nothing", found)
	}
}

// Texts that a database does not take, or that are larger than a vector may be,
// are indexed as far as they can be.
func TestOddTexts(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	e := open(t, cluster.Database(t), Config{Lane: "n"})
	var long strings.Builder
	for i := range 60_000 {
		fmt.Fprintf(&long, "word%d ", i)
	}
	err := e.Apply(ctx, index.Batch{Put: []index.Document{
		{ID: "http://a/zero", Title: "zero\x00byte", Body: "bad \xff\xfe utf", Date: now},
		{ID: "http://a/long", Title: "long", Body: long.String() + strings.Repeat(" same", 1000), Date: now},
		{ID: "not a URL", Title: "urn", Body: "thing", Date: now},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for q, want := range map[string]int{"zero": 1, "byte": 1, "utf": 1, "word7": 1, "word20000": 1, "thing": 1, `"word7 word8"`: 1, "": 3} {
		res, err := e.Search(ctx, index.Request{Query: query.Parse(q, now), Limit: 10, Now: now})
		if err != nil || res.Total != want {
			t.Errorf("%q: %d documents, want %d; %v", q, res.Total, want, err)
		}
	}
	if d, err := e.Document(ctx, "not a URL"); err != nil || d.Title != "urn" {
		t.Errorf("%+v, %v", d, err)
	}
}

// Nodes keep a cursor each; one that is new to an index in use begins at its
// own beginning.
func TestLanes(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	address := cluster.Database(t)
	a, b := open(t, address, Config{Lane: "a", Join: []byte("start")}), open(t, address, Config{Lane: "b", Join: []byte("start")})
	if c, err := b.Cursor(ctx); err != nil || c != nil {
		t.Errorf("empty index: cursor %q, %v", c, err)
	}
	if err := a.Apply(ctx, index.Batch{Put: []index.Document{{ID: "http://a/", Title: "one", Date: now}}, Cursor: []byte("7")}); err != nil {
		t.Fatal(err)
	}
	for e, want := range map[*Engine]string{a: "7", b: "start"} {
		if c, err := e.Cursor(ctx); err != nil || string(c) != want {
			t.Errorf("cursor %q, want %s; %v", c, want, err)
		}
	}
	if res, err := b.Search(ctx, index.Request{Query: query.Parse("one", now), Limit: 5, Now: now}); err != nil || res.Total != 1 {
		t.Errorf("what the other node indexed: %+v, %v", res, err)
	}
}
