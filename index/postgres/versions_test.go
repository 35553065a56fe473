package postgres

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/freshet/freshet/archive"
	"github.com/freshet/freshet/freshness/change"
	"github.com/freshet/freshet/index"
	"github.com/freshet/freshet/index/feed"
	"github.com/freshet/freshet/index/query"
	"github.com/freshet/freshet/store"
	storepg "github.com/freshet/freshet/store/postgres"
	"github.com/freshet/freshet/weburl"
)

// indexNode is what of a node a page passes on its way into the index.
type indexNode struct {
	name     string
	dir      string
	store    *storepg.Store
	archive  *archive.Writer
	engine   *Engine
	indexer  *feed.Indexer
	prepared func() // if not nil, called once when a body was read
}

func newIndexNode(t *testing.T, address, name string) *indexNode {
	t.Helper()
	ctx := context.Background()
	n := &indexNode{name: name, dir: t.TempDir()}
	var err error
	if n.store, err = storepg.Open(ctx, address, storepg.Config{Node: name}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.store.Close() })
	if n.archive, err = archive.Open(archive.Config{Dir: filepath.Join(n.dir, "warc"), Prefix: name}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.archive.Close() })
	n.engine = open(t, address, Config{Lane: name, Join: make([]byte, 8)})
	read := func(at archive.Position) (*archive.Exchange, error) {
		x, err := archive.Read(filepath.Join(n.dir, "warc"), at)
		if err != nil {
			return nil, errors.Join(feed.ErrElsewhere, err)
		}
		if f := n.prepared; f != nil {
			n.prepared = nil
			f()
		}
		return x, nil
	}
	if n.indexer, err = feed.New(ctx, feed.Config{Store: n.store, Read: read, Flush: n.archive.Flush, Engine: n.engine, OneDatabase: true}); err != nil {
		t.Fatal(err)
	}
	return n
}

// visit fetches a page: with a body, or gone without one.
func (n *indexNode) visit(t *testing.T, address, body string) {
	t.Helper()
	ctx, now := context.Background(), time.Now()
	u, err := weburl.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.store.Add(ctx, []store.Found{{URL: u, Due: now}}); err != nil {
		t.Fatal(err)
	}
	l, _, err := n.store.Claim(ctx, n.name, now.Add(time.Second), time.Minute)
	if err != nil || l == nil {
		t.Fatalf("node %s claimed %v: %v", n.name, l, err)
	}
	pages, err := n.store.Take(ctx, l, 10, now.Add(time.Second))
	if err != nil || len(pages) != 1 {
		t.Fatalf("node %s took %d pages: %v", n.name, len(pages), err)
	}
	p := pages[0]
	p.State, p.Status, p.Slot = store.Gone, 410, store.Slot{Due: now.Add(time.Hour)}
	if body != "" {
		p.State, p.Status, p.Type = store.OK, 200, "text/html"
		p.History.Observe(now, true, change.DefaultPrior)
		copy(p.Digest[:], body)
		p.Body, err = n.archive.Write(&archive.Exchange{URL: p.URL, Time: now, Status: 200, Header: http.Header{"Content-Type": {"text/html"}}, Body: []byte(body)})
		if err = errors.Join(err, n.archive.Sync()); err != nil {
			t.Fatal(err)
		}
	}
	b := &store.Batch{Host: l.Host, Visits: []store.Visit{{Page: p, Changed: true, Arrived: now}}}
	if _, err := n.store.Commit(ctx, l, b); err != nil {
		t.Fatal(err)
	}
	if err := n.store.Release(ctx, l); err != nil {
		t.Fatal(err)
	}
}

func (n *indexNode) finish(t *testing.T) {
	t.Helper()
	if err := n.indexer.Finish(context.Background()); err != nil {
		t.Errorf("node %s: %v", n.name, err)
	}
}

// While one node makes the document of a page, another visits the page and writes or
// removes it: the later visit stays in the index, though it was written first.
func TestLaterVisitOfAnotherNode(t *testing.T) {
	t.Parallel()
	const page = "http://h.example/page"
	for _, tt := range []struct {
		name   string
		before string   // body of a visit that is in the index
		later  []string // bodies that the other node finds meanwhile, "" for none
		want   string   // word that is found, "" for no document
	}{
		{"gone, never in the index", "", []string{""}, ""},
		{"gone, in the index before", "<p>crane", []string{""}, ""},
		{"changed, never in the index", "", []string{"<p>egret"}, "egret"},
		{"changed, in the index before", "<p>crane", []string{"<p>egret"}, "egret"},
		{"gone and back", "<p>crane", []string{"", "<p>egret"}, "egret"},
		{"changed and gone", "", []string{"<p>egret", ""}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			address := cluster.Database(t)
			a, b := newIndexNode(t, address, "a"), newIndexNode(t, address, "b")
			if tt.before != "" {
				a.visit(t, page, tt.before)
				a.finish(t)
			}
			a.visit(t, page, "<p>heron")
			met := false
			a.prepared = func() {
				met = true
				for _, body := range tt.later {
					b.visit(t, page, body)
					b.finish(t)
				}
			}
			a.finish(t)
			b.finish(t)
			if !met {
				t.Fatal("node a read no body: the test tests nothing")
			}
			documents := 0
			if tt.want != "" {
				documents = 1
			}
			for _, word := range []string{"crane", "heron", "egret", "-nothing"} {
				want := 0
				if word == tt.want || word == "-nothing" {
					want = documents
				}
				res, err := b.engine.Search(context.Background(), index.Request{Query: query.Parse(word, time.Now()), Limit: 10, Now: time.Now()})
				if err != nil || res.Total != want || len(res.Hits) != want {
					t.Errorf("%s is found in %+v (%v), want %d documents", word, res, err, want)
				}
			}
			if s, err := a.engine.Stats(context.Background()); err != nil || s.Documents != uint64(documents) {
				t.Errorf("%d documents are counted (%v), want %d", s.Documents, err, documents)
			}
			// The page comes back, or changes, and is indexed by whoever visits it.
			b.visit(t, page, "<p>stork")
			b.finish(t)
			a.visit(t, page, "<p>ibis")
			a.finish(t)
			if d, err := a.engine.Document(context.Background(), page); err != nil || d.Body != "ibis" {
				t.Errorf("after two more visits the document is %+v (%v), want ibis", d, err)
			}
		})
	}
}

// Whatever the order in which versions of a document are written and removed, the
// latest stays, and documents are counted once. Without a version all is written.
func TestVersions(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	const id = "http://h.example/"
	type write struct {
		version int64
		text    string // "" removes
	}
	for _, tt := range []struct {
		name   string
		writes []write
		want   string // "" for no document
	}{
		{"in order", []write{{1, "one"}, {2, "two"}, {3, "three"}}, "three"},
		{"backwards", []write{{3, "three"}, {2, "two"}, {1, "one"}}, "three"},
		{"the same version again", []write{{2, "two"}, {2, "other"}}, "other"},
		{"removed, then older", []write{{3, ""}, {2, "two"}}, ""},
		{"removed, then the same version", []write{{3, ""}, {3, "three"}}, "three"},
		{"removed, then newer", []write{{3, ""}, {4, "four"}}, "four"},
		{"older removal", []write{{3, "three"}, {2, ""}}, "three"},
		{"older removal of a removed one", []write{{4, ""}, {2, ""}, {3, "three"}}, ""},
		{"removed three times", []write{{1, "one"}, {2, ""}, {3, ""}, {4, ""}}, ""},
		{"first visit found nothing", []write{{1, ""}, {2, "two"}}, "two"},
		{"without versions", []write{{0, "one"}, {0, ""}, {0, "two"}, {0, "three"}}, "three"},
		{"removed without versions", []write{{0, "one"}, {0, ""}, {0, ""}}, ""},
		{"a version after none", []write{{0, "zero"}, {1, "one"}}, "one"},
		{"none after a version", []write{{7, "seven"}, {0, "zero"}, {1, "one"}}, "one"},
		{"removed without a version after one", []write{{7, "seven"}, {0, ""}}, ""},
		{"removed with and without a version", []write{{7, "seven"}, {8, ""}, {0, ""}, {7, "seven"}}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := open(t, cluster.Database(t), Config{Lane: "n"})
			for _, w := range tt.writes {
				b := index.Batch{Versions: map[string]int64{id: w.version}}
				if w.text == "" {
					b.Delete = []string{id}
				} else {
					b.Put = []index.Document{{ID: id, Title: w.text, Date: now}}
				}
				if err := e.Apply(ctx, b); err != nil {
					t.Fatal(err)
				}
			}
			got, n := "", uint64(0)
			d, err := e.Document(ctx, id)
			if err == nil {
				got = d.Title
			} else if !errors.Is(err, index.ErrNotFound) {
				t.Fatal(err)
			}
			if tt.want != "" {
				n = 1
			}
			s, err := e.Stats(ctx)
			if err != nil || got != tt.want || s.Documents != n {
				t.Errorf("document %q and %d counted (%v), want %q and %d", got, s.Documents, err, tt.want, n)
			}
			ids := uint64(0)
			if err := e.IDs(ctx, func(string) error { ids++; return nil }); err != nil || ids != n {
				t.Errorf("%d documents are listed (%v), want %d", ids, err, n)
			}
		})
	}
}

// What is left of removed documents goes after a while, and nothing else does.
func TestForgetRemoved(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	e := open(t, cluster.Database(t), Config{Lane: "n"})
	b := index.Batch{Put: []index.Document{{ID: "http://h.example/kept", Date: now}}, Versions: map[string]int64{}}
	for i := range 2500 {
		id := "http://h.example/" + string(rune('a'+i%26)) + time.Duration(i).String()
		b.Delete = append(b.Delete, id)
		b.Versions[id] = 5
	}
	if err := e.Apply(ctx, b); err != nil {
		t.Fatal(err)
	}
	rows := func() (n int) {
		if err := e.pool.QueryRow(ctx, "select count(*) from documents").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := rows(); n != 2501 {
		t.Errorf("%d rows, want 2501", n)
	}
	if err := e.forgetRemoved(ctx, time.Now().Add(-time.Hour)); err != nil || rows() != 2501 {
		t.Errorf("%d rows after forgetting those of an hour ago (%v), want 2501", rows(), err)
	}
	if err := e.forgetRemoved(ctx, time.Now().Add(time.Hour)); err != nil || rows() != 1 {
		t.Errorf("%d rows after forgetting all (%v), want 1", rows(), err)
	}
}
