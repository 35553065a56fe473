package feed

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/freshet/freshet/archive"
	"github.com/freshet/freshet/index"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/store/local"
)

// saveFolder copies a folder of the closed bench aside and returns how to put it
// back.
func (b *bench) saveFolder(t *testing.T, name string) (putBack func()) {
	t.Helper()
	from, to := filepath.Join(b.dir, name), t.TempDir()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := os.RemoveAll(from); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(from, os.DirFS(to)); err != nil {
			t.Fatal(err)
		}
	}
}

// An index follows the store that it finds: of another store, of an earlier state
// of this one, or of a later state than its own after the feed was trimmed, it has
// all pages and no others, and its lag is not negative.
func TestIndexOfAnotherHistory(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	visits := func(t *testing.T, dir string, n int, word string, indexed bool) {
		t.Helper()
		b := open(t, dir)
		defer b.close(t)
		b.visit(t, bodies(n, word), nil)
		if indexed {
			if err := b.indexer(t).Finish(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	closed := func(t *testing.T, dir, folder string) func() {
		t.Helper()
		b := &bench{dir: dir}
		return b.saveFolder(t, folder)
	}
	for _, tt := range []struct {
		name                string
		prepare             func(t *testing.T, dir string)
		heron, stork, egret int // documents with these words afterwards
	}{
		{"the store was removed", func(t *testing.T, dir string) {
			visits(t, dir, 6, "heron", true)
			if err := os.RemoveAll(filepath.Join(dir, "store")); err != nil {
				t.Fatal(err)
			}
			visits(t, dir, 4, "stork", false)
		}, 0, 4, 0},
		{"the store was removed and has as many changes again", func(t *testing.T, dir string) {
			visits(t, dir, 6, "heron", true)
			if err := os.RemoveAll(filepath.Join(dir, "store")); err != nil {
				t.Fatal(err)
			}
			visits(t, dir, 6, "stork", false)
		}, 0, 6, 0},
		{"the store was removed and is empty", func(t *testing.T, dir string) {
			visits(t, dir, 6, "heron", true)
			if err := os.RemoveAll(filepath.Join(dir, "store")); err != nil {
				t.Fatal(err)
			}
		}, 0, 0, 0},
		{"an older store", func(t *testing.T, dir string) {
			visits(t, dir, 2, "heron", true)
			back := closed(t, dir, "store")
			visits(t, dir, 5, "stork", true)
			back()
		}, 2, 0, 0},
		{"an older store that has gone on further", func(t *testing.T, dir string) {
			visits(t, dir, 6, "heron", true)
			back := closed(t, dir, "store")
			visits(t, dir, 3, "stork", true)
			back()
			visits(t, dir, 5, "egret", false)
		}, 1, 0, 5},
		{"an older index, the feed trimmed", func(t *testing.T, dir string) {
			visits(t, dir, 2, "heron", true)
			back := closed(t, dir, "index")
			visits(t, dir, 3, "stork", true)
			b := open(t, dir)
			st, err := b.store.Stats(ctx)
			if err == nil {
				err = b.store.Trim(ctx, st.Feed, time.Time{})
			}
			if err != nil {
				t.Fatal(err)
			}
			b.close(t)
			back()
		}, 0, 3, 0},
		{"a cursor of before stores had names", func(t *testing.T, dir string) {
			visits(t, dir, 3, "heron", true)
			b := open(t, dir)
			defer b.close(t)
			if err := b.engine.Apply(ctx, index.Batch{Put: []index.Document{{ID: "http://elsewhere.example/", Kind: "web", Body: "stork"}}, Cursor: []byte{0, 0, 0, 0, 0, 0, 0, 3}}); err != nil {
				t.Fatal(err)
			}
		}, 3, 0, 0},
		{"the copy of a store", func(t *testing.T, dir string) {
			visits(t, dir, 6, "heron", true)
			b := open(t, dir)
			u := b.records(t)[0].URL
			b.close(t)
			if err := os.RemoveAll(filepath.Join(dir, "store")); err != nil {
				t.Fatal(err)
			}
			s, err := local.Open(filepath.Join(dir, "store"), local.Config{})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			page := store.Page{URL: u, State: store.Gone}
			if err := s.Load(ctx, &store.Part{Hosts: []store.Host{{Name: "h.example"}}, Pages: []store.Page{page}}); err != nil {
				t.Fatal(err)
			}
			if err := s.Loaded(ctx); err != nil {
				t.Fatal(err)
			}
		}, 0, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			tt.prepare(t, dir)
			checkFollowed(t, dir, [3]int{tt.heron, tt.stork, tt.egret})
			b := open(t, dir)
			defer b.close(t)
			x := &Indexer{config: Config{Store: b.store, Engine: b.engine}}
			if why, err := x.resumeCursor(ctx); why != "" || err != nil {
				t.Errorf("at the end the index is to be filled again: %s, %v", why, err)
			}
		})
	}
}

// checkFollowed starts twice - the second start begins where the first ended - and
// checks that the index has want documents with heron, stork and egret, and no others.
func checkFollowed(t *testing.T, dir string, want [3]int) {
	t.Helper()
	for _, when := range []string{"first", "second"} {
		b := open(t, dir)
		x := b.indexer(t)
		if lag, err := x.Lag(t.Context()); lag < 0 || err != nil {
			t.Errorf("%s start: lag: got %d, %v, want 0 or more", when, lag, err)
		}
		if err := x.Finish(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := [3]int{b.count(t, "heron"), b.count(t, "stork"), b.count(t, "egret")}
		if all := b.count(t, ""); got != want || all != got[0]+got[1]+got[2] {
			t.Errorf("%s start: heron, stork, egret: got %v of %d, want %v and no others", when, got, all, want)
		}
		b.close(t)
	}
}

// A process that dies while an index is filled, or between a batch and the next,
// leaves an index that the next start completes.
func TestDiesWhileFilling(t *testing.T) {
	t.Parallel()
	for after := range 6 {
		dir := t.TempDir()
		b := open(t, dir)
		b.visit(t, bodies(4, "heron"), nil)
		if err := b.indexer(t).Finish(context.Background()); err != nil {
			t.Fatal(err)
		}
		b.close(t)
		if err := os.RemoveAll(filepath.Join(dir, "store")); err != nil {
			t.Fatal(err)
		}
		b = open(t, dir)
		b.visit(t, bodies(5, "stork"), nil)
		dying, die := context.WithCancel(context.Background())
		reads := 0
		_, err := New(dying, Config{Store: b.store, Engine: b.engine, Batch: 1, Read: func(p archive.Position) (*archive.Exchange, error) {
			if reads++; reads > after {
				die()
				return nil, dying.Err()
			}
			return archive.Read(filepath.Join(dir, "warc"), p)
		}})
		die()
		if (err == nil) != (after >= 5) {
			t.Errorf("died after %d documents with %v", after, err)
		}
		b.close(t)
		b = open(t, dir)
		x := b.indexer(t)
		if err := x.Finish(context.Background()); err != nil {
			t.Fatal(err)
		}
		if h, s := b.count(t, "heron"), b.count(t, "stork"); h != 0 || s != 5 {
			t.Errorf("died after %d documents: then heron %d, stork %d, want 0 and 5", after, h, s)
		}
		b.close(t)
	}
}
