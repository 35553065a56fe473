package engine

import (
	"path/filepath"
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
