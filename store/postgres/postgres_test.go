package postgres

import (
	"context"
	"os"
	"testing"

	"github.com/freshet/freshet/internal/pgtest"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/store/storetest"
)

var cluster pgtest.Lazy

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m, &cluster)) }

func open(t *testing.T, address string, c Config) *Store {
	t.Helper()
	s, err := Open(context.Background(), address, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestConformance(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]Config{"default": {Node: "n", Connections: 8}, "forgetful": {Node: "n", Known: 1, Connections: 8}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, func(t *testing.T) storetest.Opener {
				address := cluster.Database(t)
				return func(t *testing.T) store.Store {
					t.Helper()
					return open(t, address, c)
				}
			})
		})
	}
}
