package crawl

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/freshet/freshet/extract"
	"github.com/freshet/freshet/extract/pdftext"
	"github.com/freshet/freshet/extract/pdftext/pdftest"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// Hostile PDF documents do not end a crawl. One that exceeds a limit is marked in
// its record and read again only when its bytes or the limits change.
func TestHostilePDF(t *testing.T) {
	t.Parallel()
	var body atomic.Pointer[[]byte]
	var honours atomic.Bool // conditions
	set := func(b []byte) { body.Store(&b) }
	set(pdftest.Bomb(1 << 20))
	special := map[string]http.HandlerFunc{"/bomb.pdf": func(w http.ResponseWriter, q *http.Request) {
		tag := fmt.Sprintf(`"%d"`, len(*body.Load()))
		if honours.Load() && q.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("Etag", tag)
		w.Header().Set("Content-Type", "application/pdf")
		_, _ = w.Write(*body.Load())
	}}
	pages := map[string]string{"/": "", "/after": link()}
	targets := []string{"/bomb.pdf", "/after"}
	for _, f := range pdftest.Hostile() {
		if len(f.Body) > 1<<20 {
			continue
		}
		path := "/" + strings.Map(func(r rune) rune {
			if r == ' ' || r == ',' {
				return '-'
			}
			return r
		}, f.Name) + ".pdf"
		targets = append(targets, path)
		special[path] = func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/pdf")
			_, _ = w.Write(f.Body)
		}
	}
	pages["/"] = link(targets...)
	s := newSite(t, pages, special)
	r := newRig(t)
	limits := pdftext.Config{Memory: 48 << 20, Time: time.Minute}
	r.config.PDF = pdftest.NewPool(t, limits)
	r.crawl(t, s.URL+"/")
	bomb := s.URL + "/bomb.pdf"
	first := *r.page(t, bomb)
	if first.State != store.OK || first.Reason != store.ReasonPDFMemory || first.Digest == [16]byte{} || first.Body.IsZero() {
		t.Fatalf("state %s, reason %q, digest %x, body %v; want ok, %q, a digest and a body", first.State, first.Reason, first.Digest, first.Body, store.ReasonPDFMemory)
	}
	for _, path := range targets {
		if p := r.page(t, s.URL+path); p.State != store.OK || p.Status != http.StatusOK {
			t.Errorf("%s: state %s, status %d, %s", path, p.State, p.Status, p.Error)
		}
	}

	visitAgain := func(pool *pdftext.Pool) store.Page {
		t.Helper()
		r.config.PDF = pool
		u, err := weburl.Parse(bomb)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.store.Add(context.Background(), []store.Found{{URL: u, Due: time.Now()}}); err != nil {
			t.Fatal(err)
		}
		asked := s.count("/bomb.pdf")
		r.crawl(t, s.URL+"/")
		if s.count("/bomb.pdf") != asked+1 {
			t.Fatalf("the server was asked %d times, want %d", s.count("/bomb.pdf"), asked+1)
		}
		return *r.page(t, bomb)
	}
	closed := pdftext.NewPool(limits) // whoever reads with it gets no page
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	same := visitAgain(closed)
	if same.Reason != first.Reason || same.Digest != first.Digest || same.Body != first.Body || !same.History.Last.After(first.History.Last) {
		t.Errorf("the same document: reason %q, visited %v after %v, body %v was %v", same.Reason, same.History.Last, first.History.Last, same.Body, first.Body)
	}
	honours.Store(true)
	if p := visitAgain(pdftest.NewPool(t, pdftext.Config{Memory: 256 << 20, Time: time.Minute})); p.Reason != "" || p.Digest == first.Digest {
		t.Errorf("the same document with more memory: reason %q, digest %x; want a text", p.Reason, p.Digest)
	}
	set(pdftest.Links(3))
	if p := visitAgain(pdftest.NewPool(t, limits)); p.State != store.OK || p.Reason != "" || p.Error != "" || p.Digest == first.Digest {
		t.Errorf("a good document in its place: state %s, reason %q, error %q", p.State, p.Reason, p.Error)
	}
}

// Every problem of a document has a text for the interface.
func TestProblemTexts(t *testing.T) {
	t.Parallel()
	for _, p := range []extract.Problem{
		extract.ParserFailed, extract.UnreadPDF, extract.Problem(pdftext.TimeLimit), extract.Problem(pdftext.MemoryLimit), extract.Problem(pdftext.Crash),
		extract.Problem(pdftext.Damaged), extract.Problem(pdftext.Encrypted),
	} {
		if r := store.Reason(p); r.Text() == string(r) {
			t.Errorf("reason %q has no text", r)
		}
	}
}
