package embedded

import (
	"errors"
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
