package feed

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/freshet/freshet/archive"
	pagechange "github.com/freshet/freshet/freshness/change"
	"github.com/freshet/freshet/index"
	"github.com/freshet/freshet/index/engine"
	"github.com/freshet/freshet/index/query"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/store/local"
	"github.com/freshet/freshet/weburl"
)

// bench is a store, an archive and an index without a robot: the test writes
// what a robot would.
type bench struct {
	dir     string
	store   *local.Store
	archive *archive.Writer
	engine  *engine.Engine
}

func open(t *testing.T, dir string) *bench {
	t.Helper()
	b := &bench{dir: dir}
	var err error
	if b.store, err = local.Open(filepath.Join(dir, "store"), local.Config{}); err != nil {
		t.Fatal(err)
	}
	if b.archive, err = archive.Open(archive.Config{Dir: filepath.Join(dir, "warc")}); err != nil {
		t.Fatal(err)
	}
	if b.engine, err = engine.Open(filepath.Join(dir, "index"), engine.Config{}); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) close(t *testing.T) {
	t.Helper()
	for _, c := range []interface{ Close() error }{b.archive, b.store, b.engine} {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

func (b *bench) indexer(t *testing.T) *Indexer {
	t.Helper()
	x, err := New(context.Background(), Config{Store: b.store, Read: func(p archive.Position) (*archive.Exchange, error) {
		return archive.Read(filepath.Join(b.dir, "warc"), p)
	}, Flush: b.archive.Flush, Engine: b.engine, Batch: 3})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// visit writes pages as a robot does; change may alter the record.
func (b *bench) visit(t *testing.T, bodies map[string]string, change func(*store.Page)) {
	t.Helper()
	ctx := context.Background()
	var found []store.Found
	now := time.Now()
	for path := range bodies {
		u, err := weburl.Parse("http://h.example" + path)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, store.Found{URL: u, Due: now})
	}
	if _, err := b.store.Add(ctx, found); err != nil {
		t.Fatal(err)
	}
	l, _, err := b.store.Claim(ctx, "n", now.Add(time.Second), time.Minute)
	if err != nil || l == nil {
		t.Fatalf("claim: %v, %v", l, err)
	}
	pages, err := b.store.Take(ctx, l, 100, now.Add(time.Second))
	if err != nil || len(pages) != len(bodies) {
		t.Fatalf("took %d of %d pages, %v", len(pages), len(bodies), err)
	}
	batch := store.Batch{Host: l.Host}
	for _, p := range pages {
		u, err := weburl.Parse(p.URL)
		if err != nil {
			t.Fatal(err)
		}
		p.State, p.Status, p.Type, p.Slot = store.OK, 200, "text/html", store.Slot{Due: now.Add(time.Hour)}
		p.NoIndex, p.Canonical = false, ""
		p.History.Observe(now, true, pagechange.DefaultPrior)
		p.Body, err = b.archive.Write(&archive.Exchange{URL: p.URL, Time: now, Status: 200, Header: http.Header{"Content-Type": {"text/html"}}, Body: []byte(bodies[u.Path()])})
		if err != nil {
			t.Fatal(err)
		}
		if change != nil {
			change(&p)
		}
		copy(p.Digest[:], u.Path()+bodies[u.Path()])
		v := store.Visit{Page: p, Changed: true, Retarget: true, Arrived: now}
		v.Alias, _ = p.AliasOf()
		batch.Visits = append(batch.Visits, v)
	}
	if err := b.archive.Sync(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.store.Commit(ctx, l, &batch); err != nil {
		t.Fatal(err)
	}
	if err := b.store.Release(ctx, l); err != nil {
		t.Fatal(err)
	}
}

func (b *bench) count(t *testing.T, q string) int {
	t.Helper()
	res, err := b.engine.Search(context.Background(), index.Request{Query: query.Parse(q, time.Now()), Limit: 10, Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	return res.Total
}

func bodies(n int, word string) map[string]string {
	out := map[string]string{}
	for i := range n {
		out[fmt.Sprintf("/%d", i)] = fmt.Sprintf("<title>Page %d</title><p>about %s %s%d", i, word, word, i)
	}
	return out
}

// What the store says changed is in the index; what is gone, hidden or a copy
// of another page is not; a restart goes on at the cursor.
func TestFollowsTheStore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := open(t, dir)
	ctx := context.Background()
	b.visit(t, bodies(7, "heron"), nil)
	x := b.indexer(t)
	if lag, err := x.Lag(ctx); err != nil || lag != 7 {
		// A new index is filled from the store at once, so nothing lags.
		if lag != 0 {
			t.Errorf("lag %d, %v", lag, err)
		}
	}
	if err := x.Finish(ctx); err != nil {
		t.Fatal(err)
	}
	if got := b.count(t, "heron"); got != 7 {
		t.Fatalf("%d of 7 pages found", got)
	}
	b.visit(t, bodies(3, "stork"), nil) // three of them change
	if lag, _ := x.Lag(ctx); lag != 3 {
		t.Errorf("lag %d, want 3", lag)
	}
	b.close(t) // as if killed before they were indexed

	b = open(t, dir)
	defer func() { b.close(t) }()
	x = b.indexer(t)
	if err := x.Finish(ctx); err != nil {
		t.Fatal(err)
	}
	if h, s := b.count(t, "heron"), b.count(t, "stork"); h != 4 || s != 3 {
		t.Errorf("heron %d, stork %d", h, s)
	}
	b.visit(t, bodies(1, "egret"), func(p *store.Page) { p.State, p.Status, p.Error = store.Failed, 503, "status 503" }) // since the change
	if err := x.Finish(ctx); err != nil {
		t.Fatal(err)
	}
	if got := b.count(t, "egret0"); got != 1 {
		t.Errorf("a page that changed and then failed is there %d times", got)
	}
	for _, change := range []func(*store.Page){
		func(p *store.Page) { p.State = store.Gone },
		func(p *store.Page) { p.State = store.OK; p.NoIndex = true },
		func(p *store.Page) { p.Body = archive.Position{File: "thinned-out.warc.gz"} },
	} {
		b.visit(t, bodies(1, "stork"), nil)
		if err := x.Finish(ctx); err != nil {
			t.Fatal(err)
		}
		if got := b.count(t, "stork0"); got != 1 {
			t.Fatalf("the page is not there: %d", got)
		}
		b.visit(t, bodies(1, "stork"), change)
		if err := x.Finish(ctx); err != nil {
			t.Fatal(err)
		}
		if got := b.count(t, "stork0"); got != 0 {
			t.Errorf("the page is still there: %d", got)
		}
	}
}

// A page that names another as canonical is hidden while that one stands for it, and found
// again when it does not.
func TestCanonicalPages(t *testing.T) {
	t.Parallel()
	b := open(t, t.TempDir())
	defer b.close(t)
	x := b.indexer(t)
	ctx := t.Context()
	target, err := weburl.Parse("http://h.example/target")
	if err != nil {
		t.Fatal(err)
	}
	copied := map[string]string{"/copy": "<title>t</title><p>heron"}
	kept := map[string]string{"/target": "<title>t</title><p>stork"}
	for _, tt := range []struct {
		name   string
		bodies map[string]string
		change func(*store.Page)
		found  int
	}{
		{"the target is not known", copied, func(p *store.Page) { p.Canonical = target.String() }, 1},
		{"the target is kept", kept, nil, 0},
		{"the target is not to be indexed", kept, func(p *store.Page) { p.NoIndex = true }, 1},
		{"the target is kept again", kept, nil, 0},
		{"the target names the copy", kept, func(p *store.Page) { p.Canonical = "http://h.example/copy" }, 1},
		{"the target is kept again", kept, nil, 0},
		{"the target failed a moment ago", kept, func(p *store.Page) { p.State, p.Failures = store.Failed, 1 }, 0},
		{"the target fails for long", kept, func(p *store.Page) { p.State, p.Failures = store.Failed, 9 }, 1},
		{"the target is gone", kept, func(p *store.Page) { p.State = store.Gone }, 1},
		{"the copy is not canonical of anything", copied, nil, 1},
		{"the target is kept, and the copy names it no more", kept, nil, 1},
	} {
		b.visit(t, tt.bodies, tt.change)
		if err := x.Finish(ctx); err != nil {
			t.Fatal(err)
		}
		if got := b.count(t, "heron"); got != tt.found {
			t.Errorf("%s: the copy is found %d times, want %d", tt.name, got, tt.found)
		}
	}
}

// Who ends the context while what is left is indexed does not wait for all of it.
func TestFinishEnds(t *testing.T) {
	t.Parallel()
	b := open(t, t.TempDir())
	defer b.close(t)
	x := b.indexer(t)
	b.visit(t, bodies(12, "heron"), nil) // four batches
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := x.Finish(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
	if lag, err := x.Lag(context.Background()); lag == 0 || err != nil {
		t.Errorf("lag %d, %v", lag, err)
	}
}

// A lost index is built again from store and archive, although the feed that
// led to it is gone.
func TestRebuild(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := open(t, dir)
	b.visit(t, bodies(5, "heron"), nil)
	if err := b.indexer(t).Finish(context.Background()); err != nil {
		t.Fatal(err)
	}
	st, err := b.store.Stats(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.store.Trim(context.Background(), st.Feed, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := b.engine.Close(); err != nil {
		t.Fatal(err)
	}
	if b.engine, err = engine.Open(filepath.Join(dir, "index2"), engine.Config{}); err != nil {
		t.Fatal(err)
	}
	defer b.close(t)
	x := b.indexer(t)
	if got := b.count(t, "heron"); got != 5 {
		t.Errorf("%d of 5 pages found", got)
	}
	if lag, err := x.Lag(context.Background()); lag != 0 || err != nil {
		t.Errorf("lag %d, %v", lag, err)
	}
}

// Pages that many link to rank above their equals once links are counted.
func TestPopularity(t *testing.T) {
	t.Parallel()
	b := open(t, t.TempDir())
	defer func() { b.close(t) }()
	x := b.indexer(t)
	b.visit(t, map[string]string{"/a": "<p>pelican report", "/b": "<p>pelican report"}, nil)
	target, err := weburl.Parse("http://h.example/b")
	if err != nil {
		t.Fatal(err)
	}
	x.links.count, x.links.most = map[weburl.Key]uint32{target.Key(): 9}, 9
	if got := x.links.popularityOf(target.Key(), 5); got != 1 {
		t.Errorf("the most linked page has popularity %g", got)
	}
	if got := x.links.popularityOf(weburl.Key{}, 0); got != 0 {
		t.Errorf("a page without links has popularity %g", got)
	}
	if _, err := x.Step(context.Background()); err != nil {
		t.Fatal(err)
	}
	res, err := b.engine.Search(context.Background(), index.Request{Query: query.Parse("pelican", time.Now()), Limit: 2, Now: time.Now()})
	if err != nil || len(res.Hits) != 2 || res.Hits[0].ID != "http://h.example/b" {
		t.Errorf("%+v, %v", res, err)
	}
}

// A page whose content could not be read within the limits is not in the index,
// and is not read for it.
func TestUnreadableContent(t *testing.T) {
	t.Parallel()
	b := open(t, t.TempDir())
	defer func() { b.close(t) }()
	b.visit(t, bodies(2, "heron"), nil)
	x := b.indexer(t)
	if err := x.Finish(context.Background()); err != nil {
		t.Fatal(err)
	}
	b.visit(t, bodies(2, "stork"), func(p *store.Page) {
		if p.URL == "http://h.example/1" {
			p.Reason = store.ReasonPDFMemory
		}
	})
	if err := x.Finish(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got, old := b.count(t, "stork"), b.count(t, "heron"); got != 1 || old != 0 {
		t.Errorf("%d pages and %d old ones found, want 1 and 0", got, old)
	}
}
