package embedded

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/freshet/freshet/index"
	"github.com/freshet/freshet/index/indextest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	indextest.Run(t, func(t *testing.T) indextest.Opener {
		dir := filepath.Join(t.TempDir(), "index")
		return func(t *testing.T) index.Engine {
			t.Helper()
			e, err := Open(dir, Config{})
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
	})
}

func TestOpenErrors(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "index")
	e, err := Open(dir, Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Config{}); !errors.Is(err, ErrLocked) {
		t.Errorf("second open: %v", err)
	}
	if err := e.bleve.SetInternal(versionKey, []byte{99}); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Config{}); err == nil || !strings.Contains(err.Error(), "format [99]") {
		t.Errorf("other version: %v", err)
	}
}

// What a crash leaves of an index that was being made is no index, and in
// nobody's way; a damaged one is told from a new one.
func TestHalfMade(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "index")
	for _, f := range []string{"index_meta.json", "store/root.bolt"} {
		path := filepath.Join(dir+".new", f)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e, err := Open(dir, Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir + ".new"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("left behind: %v", err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "store")); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Config{}); err == nil || !strings.Contains(err.Error(), "remove it: it is built again") {
		t.Errorf("damaged: %v", err)
	}
}

// Damage anywhere in the list of the index's parts is an error that says what to do,
// or does not matter, never a panic.
func TestDamaged(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "index")
	e, err := Open(dir, Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Apply(t.Context(), index.Batch{Put: []index.Document{{ID: "http://a/", Title: "A pelican"}}}); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	told := 0
	whole, err := os.ReadFile(filepath.Join(dir, "store", "root.bolt"))
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at < len(whole); at += os.Getpagesize() {
		damaged := filepath.Join(t.TempDir(), "index")
		if err := os.CopyFS(damaged, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		b := slices.Clone(whole)
		for i := at; i < min(at+64, len(b)); i++ {
			b[i] ^= 0x5a
		}
		if err := os.WriteFile(filepath.Join(damaged, "store", "root.bolt"), b, 0o600); err != nil {
			t.Fatal(err)
		}
		e, err := Open(damaged, Config{})
		if err == nil {
			err = e.Close()
		} else if !strings.Contains(err.Error(), "remove it: it is built again") {
			t.Errorf("byte %d: %v", at, err)
		} else {
			told++
			continue
		}
		if err != nil {
			t.Errorf("byte %d: close: %v", at, err)
		}
	}
	if told == 0 {
		t.Error("no damage was noticed")
	}
}
