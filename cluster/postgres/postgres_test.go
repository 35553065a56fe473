package postgres

import (
	"context"
	"os"
	"testing"

	"github.com/freshet/freshet/cluster"
	"github.com/freshet/freshet/cluster/clustertest"
	"github.com/freshet/freshet/internal/pgtest"
	"github.com/freshet/freshet/store"
	storepg "github.com/freshet/freshet/store/postgres"
)

var server pgtest.Lazy

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m, &server)) }

// open returns the cluster on a database as a process sees it.
func open(t *testing.T, address, name string, c Config) *Cluster {
	t.Helper()
	s, err := storepg.Open(context.Background(), address, storepg.Config{Node: name, Connections: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return New(s, c)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	clustertest.Run(t, clustertest.Implementation{MaxNodes: 3, New: func(t *testing.T) func(*testing.T, string) cluster.Cluster {
		address := server.Database(t)
		return func(t *testing.T, name string) cluster.Cluster {
			t.Helper()
			return open(t, address, name, Config{Run: store.NewID()})
		}
	}})
}
