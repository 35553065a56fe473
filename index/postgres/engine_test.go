package postgres

import (
	"context"
	"os"
	"testing"

	"github.com/freshet/freshet/index"
	"github.com/freshet/freshet/index/indextest"
	"github.com/freshet/freshet/internal/pgtest"
)

var cluster pgtest.Lazy

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m, &cluster)) }

func open(t testing.TB, address string, c Config) *Engine {
	t.Helper()
	e, err := Open(context.Background(), address, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

func TestConformance(t *testing.T) {
	t.Parallel()
	indextest.Run(t, func(t *testing.T) indextest.Opener {
		address := cluster.Database(t)
		return func(t *testing.T) index.Engine {
			t.Helper()
			return open(t, address, Config{Lane: "n"})
		}
	})
}
