package feed

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/freshet/freshet/archive"
	"github.com/freshet/freshet/crawl"
	"github.com/freshet/freshet/extract"
	"github.com/freshet/freshet/extract/pdftext"
	"github.com/freshet/freshet/extract/pdftext/pdftest"
	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/index"
	"github.com/freshet/freshet/index/engine"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// handoverSite has a document of each kind by path: its content type and bytes.
func handoverSite(t *testing.T) map[string][2]string {
	t.Helper()
	long := strings.Repeat("a text of many words ", 30_000)
	site := map[string][2]string{
		"/plain":       {"text/html", `<title>Plain</title><p>words &amp; more`},
		"/description": {"text/html", `<meta name=description content="What it is"><title>D</title><p>about`},
		"/only-title":  {"text/html", `<title>Only a title</title><meta name=description content="and this">`},
		"/no-title":    {"text/html", `<meta name=description content="hidden"><script>x()</script>`},
		"/aside":       {"text/html", `<title>Aside</title><nav>` + long + `</nav><p>little`},
		"/long":        {"text/html; charset=utf-8", `<title>Long</title><p>` + long + `<p>the end`},
		"/longer":      {"text/html", `<title>Longer</title><p>` + strings.Repeat(long, 3)},
		"/one-word":    {"text/html", `<title>Word</title><p>` + strings.Repeat("\u00fc", 200_000)},
		"/latin":       {"text/html; charset=windows-1252", "<title>Caf\xe9</title><p>na\xefve \x93quoted\x94"},
		"/declared":    {"text/html", "<meta charset=shift_jis><title>\x93\xfa\x96{</title><p>\x8c\xea"},
		"/untyped":     {"", "<html><title>Untyped</title><p>sniffed"},
		"/text":        {"text/plain", "A first line\n\n" + strings.Repeat("spaced     out\n", 40_000)},
		"/feed":        {"application/rss+xml", `<rss><channel><item><link>/plain</link></item></channel></rss>`},
		"/image":       {"image/png", "\x89PNG"},
		"/empty":       {"text/html", ""},
		"/hidden":      {"text/html", `<meta name=robots content=noindex><title>Hidden</title><p>secret`},
	}
	site["/links.pdf"] = [2]string{"application/pdf", string(pdftest.Links(3))}
	return site
}

// crawlSite lets a robot visit all documents of a site, and gives what it extracted to h.
func (b *bench) crawlSite(t *testing.T, site map[string][2]string, pdf *pdftext.Pool, h *Handover) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d, ok := site[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header()["Content-Type"] = nil
		if d[0] != "" {
			w.Header().Set("Content-Type", d[0])
		}
		_, _ = w.Write([]byte(d[1]))
	}))
	defer s.Close()
	ctx := context.Background()
	client, err := fetch.New(fetch.Config{UserAgent: "freshet-test", AllowPrivate: true, MaxBody: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	c := crawl.Config{Store: b.store, Archive: b.archive, Fetch: client, Once: true, DelayGiven: true, Canon: weburl.DefaultCanon, PDF: pdf, OnBody: h.Offer}
	var found []store.Found
	for path := range site {
		u, err := weburl.Parse(s.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		scope, err := crawl.NewScope(u, "host", 0, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		c.Scopes.Add(scope)
		found = append(found, store.Found{URL: u, Due: time.Now()})
	}
	if _, err := b.store.Add(ctx, found); err != nil {
		t.Fatal(err)
	}
	if err := crawl.New(c).Run(ctx); err != nil {
		t.Fatal(err)
	}
}

// A document that the robot hands over is the one that is made of the archive.
func TestHandedOverIsExtracted(t *testing.T) {
	t.Parallel()
	b := open(t, t.TempDir())
	defer b.close(t)
	ctx := context.Background()
	pdf := pdftest.NewPool(t, pdftext.Config{})
	site := handoverSite(t)
	h := &Handover{}
	b.crawlSite(t, site, pdf, h)
	if h.bytes == 0 {
		t.Fatal("nothing was handed over")
	}
	documents := func(c Config) map[string]index.Document {
		e, err := engine.Open(t.TempDir(), engine.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		c.Store, c.Flush, c.Engine, c.PDF, c.Batch = b.store, b.archive.Flush, e, pdf, 5
		x, err := New(ctx, c)
		if err != nil {
			t.Fatal(err)
		}
		if err := x.Finish(ctx); err != nil {
			t.Fatal(err)
		}
		out := map[string]index.Document{}
		err = e.IDs(ctx, func(id string) error {
			d, err := e.Document(ctx, id)
			if err == nil {
				out[id] = *d
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	reads := 0
	read := func(at archive.Position) (*archive.Exchange, error) {
		reads++
		return archive.Read(filepath.Join(b.dir, "warc"), at)
	}
	want := documents(Config{Read: read})
	if reads == 0 {
		t.Fatal("the archive was not read")
	}
	reads = 0
	got := documents(Config{Read: read, Handover: h})
	if reads > 0 {
		t.Errorf("%d bodies were read back though all were handed over", reads)
	}
	if len(h.byAt) > 1 || h.bytes > 1000 { // the hidden page is never asked for
		t.Errorf("%d documents of %d bytes remain in the handover", len(h.byAt), h.bytes)
	}
	if len(want) != 12 || len(got) != len(want) { // the feed, the image, the empty, the hidden page and the one that is all script have none
		t.Errorf("%d documents were handed over, %d made of the archive; want 12", len(got), len(want))
	}
	for id, w := range want {
		if g := got[id]; g != w {
			t.Errorf("%s: handed over %.100q, %d bytes of %.100q; made of the archive %.100q, %d bytes of %.100q", id, g.Title, len(g.Body), g.Body, w.Title, len(w.Body), w.Body)
		}
	}
}

// A full handover takes nothing more, waits if it may, and forgets nothing that it took.
func TestHandoverIsBounded(t *testing.T) {
	t.Parallel()
	at := func(i int) archive.Position { return archive.Position{File: "f", Offset: int64(i)} }
	page := &extract.Page{Text: strings.Repeat("x", maxText)}
	h := &Handover{}
	const offered = 2 * handoverBytes / maxText
	for i := range offered {
		h.Offer(at(i), "u", page)
	}
	if h.bytes > handoverBytes || len(h.byAt) == offered {
		t.Fatalf("it has %d documents, %d bytes, and may have %d", len(h.byAt), h.bytes, handoverBytes)
	}
	if _, ok := h.takeContent(at(0), "another"); ok {
		t.Error("a document of another page was taken")
	}
	h.Wait = time.Minute
	held := len(h.byAt)
	done := make(chan bool)
	go func() {
		h.Offer(at(offered), "u", page)
		done <- true
	}()
	for i := range held {
		if c, ok := h.takeContent(at(i), "u"); !ok || c.text != page.Text {
			t.Fatalf("document %d is not there", i)
		}
	}
	<-done
	if _, ok := h.takeContent(at(offered), "u"); !ok || h.bytes != 0 {
		t.Errorf("the document that waited was not taken, or %d bytes remain", h.bytes)
	}
	h.expireHanded(time.Now())
	if len(h.queue) != 0 {
		t.Errorf("%d places remain in the queue", len(h.queue))
	}
}

// An archive that cannot write ends the step: no page is excluded for it.
func TestFlushErrorExcludesNothing(t *testing.T) {
	t.Parallel()
	b := open(t, t.TempDir())
	defer b.close(t)
	b.visit(t, bodies(2, "trout"), nil)
	x := b.indexer(t)
	full := errors.New("disk full")
	x.config.Flush = func() error { return full }
	b.visit(t, bodies(1, "salmon"), nil)
	if _, err := x.Step(context.Background()); !errors.Is(err, full) || len(x.Excluded()) > 0 {
		t.Errorf("the step ended with %v, excluded %v; want %v and none", err, x.Excluded(), full)
	}
}
