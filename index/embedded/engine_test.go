package embedded

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
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
