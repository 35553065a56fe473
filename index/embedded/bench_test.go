package embedded

import (
	"path/filepath"
	"testing"

	"github.com/freshet/freshet/index/indextest"
)

func BenchmarkEngine(b *testing.B) {
	e, err := Open(filepath.Join(b.TempDir(), "index"), Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	indextest.Bench(b, e)
}
