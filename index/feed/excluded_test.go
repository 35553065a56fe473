package feed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/freshet/freshet/archive"
	"github.com/freshet/freshet/index"
	"github.com/freshet/freshet/index/engine"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// records are the pages of the feed, in the order of their bodies in the archive.
func (b *bench) records(t *testing.T) []*store.Page {
	t.Helper()
	changes, err := b.store.Changes(context.Background(), 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	pages := make([]*store.Page, len(changes))
	for i := range changes {
		pages[i] = changes[i].Page
	}
	slices.SortFunc(pages, func(a, b *store.Page) int { return int(a.Body.Offset - b.Body.Offset) })
	return pages
}

func rewrite(t *testing.T, path string, change func([]byte) []byte) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, change(data), 0o640); err != nil {
		t.Fatal(err)
	}
}

// damages are what may have happened to the archive file that holds the second of
// some records, and which kind of exclusion it is. alone says that other records are
// not touched.
var damages = []struct {
	name, kind string
	alone      bool
	do         func(t *testing.T, path string, from, to int64)
}{
	{"record overwritten with noise", "damaged", true, func(t *testing.T, path string, from, to int64) {
		rewrite(t, path, func(b []byte) []byte { copy(b[from:to], bytes.Repeat([]byte{0xa5, 3}, len(b))); return b })
	}},
	{"record overwritten with zeros", "damaged", true, func(t *testing.T, path string, from, to int64) {
		rewrite(t, path, func(b []byte) []byte { clear(b[from:to]); return b })
	}},
	{"one bit of the body", "damaged", true, func(t *testing.T, path string, from, to int64) {
		rewrite(t, path, func(b []byte) []byte {
			at := bytes.Index(b[from:to], []byte("heron")) // as it is where records are not packed
			if at < 0 {
				at = int(to-from) / 2
			}
			b[from+int64(at)] ^= 1
			return b
		})
	}},
	{"file cut within the record", "damaged", false, func(t *testing.T, path string, from, to int64) {
		if err := os.Truncate(path, (from+to)/2); err != nil {
			t.Fatal(err)
		}
	}},
	{"file cut before the record", "damaged", false, func(t *testing.T, path string, from, _ int64) {
		if err := os.Truncate(path, from); err != nil {
			t.Fatal(err)
		}
	}},
	{"file empty", "damaged", false, func(t *testing.T, path string, _, _ int64) {
		if err := os.Truncate(path, 0); err != nil {
			t.Fatal(err)
		}
	}},
	{"bytes inserted in front", "damaged", false, func(t *testing.T, path string, _, _ int64) {
		rewrite(t, path, func(b []byte) []byte { return append([]byte("seven.."), b...) })
	}},
	{"file of something else", "damaged", false, func(t *testing.T, path string, _, _ int64) {
		rewrite(t, path, func(b []byte) []byte { return bytes.Repeat([]byte("<html>no archive</html>\n"), len(b)) })
	}},
	{"file missing", "missing", false, func(t *testing.T, path string, _, _ int64) {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}},
	{"a folder in its place", "unreadable", false, func(t *testing.T, path string, _, _ int64) {
		if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o750)); err != nil {
			t.Fatal(err)
		}
	}},
	{"a named pipe in its place", "unreadable", false, func(t *testing.T, path string, _, _ int64) {
		if err := errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o640)); err != nil {
			t.Fatal(err)
		}
	}},
	{"a link to itself in its place", "unreadable", false, func(t *testing.T, path string, _, _ int64) {
		if err := errors.Join(os.Remove(path), os.Symlink(filepath.Base(path), path)); err != nil {
			t.Fatal(err)
		}
	}},
}

// damaged makes six pages of which some cannot be read back, and returns the one
// that cannot in any case.
func damaged(t *testing.T, dir string, packing archive.Packing, do func(t *testing.T, path string, from, to int64)) *bench {
	t.Helper()
	b := open(t, dir)
	var err error
	if err = b.archive.Close(); err == nil {
		b.archive, err = archive.Open(archive.Config{Dir: filepath.Join(dir, "warc"), Packing: packing})
	}
	if err != nil {
		t.Fatal(err)
	}
	b.visit(t, bodies(6, "heron"), func(p *store.Page) { p.ETag, p.LastModified = `"v1"`, "Mon, 01 Jun 2026 12:00:00 GMT" })
	if err := b.archive.Close(); err != nil {
		t.Fatal(err)
	}
	pages := b.records(t)
	do(t, filepath.Join(dir, "warc", pages[1].Body.File), pages[1].Body.Offset, pages[2].Body.Offset)
	return b
}

// excludedOnly checks that one page, or more, is out of the index and due to be
// fetched again, and that all others are in it.
func (b *bench) excludedOnly(t *testing.T, x *Indexer, kind string, alone bool) {
	t.Helper()
	ctx := context.Background()
	found, out := b.count(t, "heron"), int(x.Excluded()[kind])
	if out < 1 || alone && out != 1 || found != 6-out {
		t.Errorf("%d pages are found, want those of 6 that are not among the excluded %v (kind %s)", found, x.Excluded(), kind)
	}
	if lag, err := x.Lag(ctx); lag != 0 || err != nil {
		t.Errorf("lag %d, %v, want 0", lag, err)
	}
	forgotten := 0
	now := time.Now()
	err := b.store.Pages(ctx, func(p *store.Page) error {
		if p.Digest != [16]byte{} {
			if p.ETag == "" || !p.Slot.Due.After(now) {
				return fmt.Errorf("%s was not excluded and has the ETag %q and is due at %v", p.URL, p.ETag, p.Slot.Due)
			}
			return nil
		}
		forgotten++
		if p.ETag != "" || p.LastModified != "" || p.Slot.Due.After(now) {
			return fmt.Errorf("%s was excluded and has the ETag %q, Last-Modified %q and is due at %v", p.URL, p.ETag, p.LastModified, p.Slot.Due)
		}
		return nil
	})
	if err != nil || forgotten != out {
		t.Errorf("%d pages are to be fetched again, want %d; %v", forgotten, out, err)
	}
}

// A body that cannot be read back excludes its page, in the feed and when an index
// is filled anew, and the next visit brings the page back.
func TestDamagedBodies(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, packing := range []archive.Packing{archive.Fast, archive.Small, archive.Plain} {
		for _, d := range damages {
			t.Run(string(packing)+" "+d.name, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				b := open(t, dir)
				b.close(t) // the engine has no cursor yet
				b = damaged(t, dir, packing, d.do)
				x := b.indexer(t) // fills a new index
				b.excludedOnly(t, x, d.kind, d.alone)
				b.bringBack(t, x)
				b.closeButArchive(t)

				dir = t.TempDir()
				b = open(t, dir)
				b.indexer(t) // the cursor is at the beginning
				b.closeButArchive(t)
				b = damaged(t, dir, packing, d.do)
				x = b.indexer(t)
				for range 4 {
					if _, err := x.Step(ctx); err != nil {
						t.Fatalf("step: %v", err)
					}
				}
				b.excludedOnly(t, x, d.kind, d.alone)
				b.closeButArchive(t)
			})
		}
	}
}

// closeButArchive closes what damaged has left open.
func (b *bench) closeButArchive(t *testing.T) {
	t.Helper()
	if err := errors.Join(b.store.Close(), b.engine.Close()); err != nil {
		t.Error(err)
	}
}

// bringBack visits what is due, as a robot does that is not answered "not modified".
func (b *bench) bringBack(t *testing.T, x *Indexer) {
	t.Helper()
	var err error
	if b.archive, err = archive.Open(archive.Config{Dir: filepath.Join(b.dir, "warc"), Prefix: "later"}); err != nil {
		t.Fatal(err)
	}
	due := map[string]string{}
	err = b.store.Pages(context.Background(), func(p *store.Page) error {
		if p.Digest == [16]byte{} {
			path := strings.TrimPrefix(p.URL, "http://h.example")
			due[path] = bodies(6, "heron")[path]
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	b.visit(t, due, nil)
	if err := x.Finish(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got := b.count(t, "heron"); got != 6 {
		t.Errorf("after another visit %d of 6 pages are found", got)
	}
	if err := b.archive.Close(); err != nil {
		t.Error(err)
	}
}

// A record of another page is not shown as this one; the document that the index
// has stays.
func TestRecordOfAnotherPage(t *testing.T) {
	t.Parallel()
	b := open(t, t.TempDir())
	defer b.close(t)
	ctx := context.Background()
	x := b.indexer(t)
	b.visit(t, bodies(1, "heron"), nil)
	if err := x.Finish(ctx); err != nil {
		t.Fatal(err)
	}
	other, err := b.archive.Write(&archive.Exchange{URL: "http://other.example/", Time: time.Now(), Status: 200, Header: http.Header{"Content-Type": {"text/html"}}, Body: []byte("<p>stork")})
	if err != nil {
		t.Fatal(err)
	}
	b.visit(t, bodies(1, "egret"), func(p *store.Page) { p.Body = other })
	if err := x.Finish(ctx); err != nil {
		t.Fatal(err)
	}
	if h, s := b.count(t, "heron"), b.count(t, "stork"); h != 1 || s != 0 || x.Excluded()[otherPage] != 1 {
		t.Errorf("heron %d, stork %d, excluded %v, want the old document", h, s, x.Excluded())
	}
}

// What passes, and what is wrong with this machine, ends a step and loses nothing;
// what is wrong with a file excludes it.
func TestReadErrors(t *testing.T) {
	t.Parallel()
	path := func(errno syscall.Errno) error { return &fs.PathError{Op: "read", Path: "x", Err: errno} }
	for _, tt := range []struct {
		err  error
		kind string // "" passes
	}{
		{path(syscall.EIO), "unreadable"},
		{path(syscall.EACCES), "unreadable"},
		{path(syscall.ENOTDIR), "unreadable"},
		{path(syscall.ENAMETOOLONG), "unreadable"},
		{fs.ErrNotExist, "missing"},
		{errors.New("gzip: invalid checksum"), "damaged"},
		{fmt.Errorf("x: %w", archive.ErrDamaged), "damaged"},
		{path(syscall.EMFILE), ""},
		{path(syscall.ENOMEM), ""},
		{path(syscall.ESTALE), ""},
		{context.DeadlineExceeded, ""},
	} {
		t.Run(tt.err.Error(), func(t *testing.T) {
			t.Parallel()
			b := open(t, t.TempDir())
			defer b.close(t)
			x := b.indexer(t)
			good := x.config.Read
			b.visit(t, bodies(2, "heron"), nil)
			bad := b.records(t)[1].Body
			x.config.Read = func(p archive.Position) (*archive.Exchange, error) {
				if p == bad {
					return nil, tt.err
				}
				return good(p)
			}
			_, err := x.Step(context.Background())
			if tt.kind == "" {
				if err == nil || b.count(t, "heron") != 0 {
					t.Errorf("step: %v with %d documents, want an error and none", err, b.count(t, "heron"))
				}
				x.config.Read = good
				if _, err := x.Step(context.Background()); err != nil || b.count(t, "heron") != 2 {
					t.Errorf("afterwards: %v with %d documents, want 2", err, b.count(t, "heron"))
				}
				return
			}
			if err != nil || b.count(t, "heron") != 1 || x.Excluded()[tt.kind] != 1 {
				t.Errorf("step: %v with %d documents, excluded %v, want 1 and kind %s", err, b.count(t, "heron"), x.Excluded(), tt.kind)
			}
		})
	}
}

// A change whose body another node keeps is left to it where the index shows that
// content; otherwise the body is fetched again, since nobody else may have it.
func TestBodyElsewhere(t *testing.T) {
	t.Parallel()
	b := open(t, t.TempDir())
	defer b.close(t)
	ctx := context.Background()
	x := b.indexer(t)
	b.visit(t, bodies(2, "heron"), nil)
	if err := x.Finish(ctx); err != nil {
		t.Fatal(err)
	}
	x.config.Read = func(archive.Position) (*archive.Exchange, error) { return nil, ErrElsewhere }
	b.visit(t, bodies(2, "heron"), nil) // the same content as the index has
	if err := x.Finish(ctx); err != nil || len(x.Excluded()) != 0 {
		t.Errorf("%v, excluded %v, want none", err, x.Excluded())
	}
	b.visit(t, map[string]string{"/0": "<p>stork"}, nil)
	if err := x.Finish(ctx); err != nil || x.Excluded()[notHere] != 1 || b.count(t, "heron") != 2 {
		t.Errorf("%v, excluded %v, %d documents, want one excluded and both kept", err, x.Excluded(), b.count(t, "heron"))
	}
	u, err := weburl.Parse("http://h.example/0")
	if err != nil {
		t.Fatal(err)
	}
	if p, err := b.store.Page(ctx, u); err != nil || p.Digest != [16]byte{} || p.Slot.Due.After(time.Now()) {
		t.Errorf("%+v, %v, want it due with its body forgotten", p, err)
	}
}

// Where most pages are hidden, filling an index holds no list of them all.
func TestReplayIsBounded(t *testing.T) {
	t.Parallel()
	b := open(t, t.TempDir())
	defer b.close(t)
	b.visit(t, bodies(90, "heron"), func(p *store.Page) { p.Body = archive.Position{File: "thinned-out.warc.gz"} })
	most := 0
	e := &watched{Engine: b.engine, most: &most}
	if _, err := New(context.Background(), Config{Store: b.store, Read: func(p archive.Position) (*archive.Exchange, error) {
		return archive.Read(filepath.Join(b.dir, "warc"), p)
	}, Engine: e, Batch: 2}); err != nil {
		t.Fatal(err)
	}
	if most == 0 || most > 20 {
		t.Errorf("a batch of 2 documents had %d removals, want 1 to 20", most)
	}
}

// watched notes the largest list of removals.
type watched struct {
	*engine.Engine
	most *int
}

// Apply implements index.Engine.
func (w *watched) Apply(ctx context.Context, b index.Batch) error {
	*w.most = max(*w.most, len(b.Delete))
	return w.Engine.Apply(ctx, b)
}
