package single

import (
	"testing"

	"github.com/freshet/freshet/cluster"
	"github.com/freshet/freshet/cluster/clustertest"
	"github.com/freshet/freshet/store/local"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	clustertest.Run(t, clustertest.Implementation{MaxNodes: 1, New: func(t *testing.T) func(*testing.T, string) cluster.Cluster {
		s, err := local.Open(t.TempDir(), local.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		var c *Cluster // of the only process
		return func(_ *testing.T, name string) cluster.Cluster {
			if c == nil {
				c = New(name, s)
			}
			return c
		}
	}})
}
