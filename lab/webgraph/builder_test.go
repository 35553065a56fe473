package webgraph

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Links in any order, in one run or many: the lists keep the order of coming.
func TestBuilder(t *testing.T) {
	t.Parallel()
	for name, n := range map[string]int{"in memory": 1000, "in runs": 150_000} {
		for _, simple := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				r := rand.New(rand.NewPCG(1, uint64(n)))
				dir := filepath.Join(t.TempDir(), "graph")
				b, err := NewBuilder(dir, BuilderOptions{Options: Options{Memory: 1 << 20}, Simple: simple, MinNodes: 70_000})
				if err != nil {
					t.Fatal(err)
				}
				defer b.Abort()
				want := make([][]uint32, 70_000)
				for range n {
					u, v := uint32(r.IntN(60_000)), uint32(r.IntN(60_000))
					if r.IntN(10) == 0 {
						v = u
					}
					want[u] = append(want[u], v)
					if r.IntN(10) == 0 {
						want[u] = append(want[u], v)
						if err := b.Add(u, v); err != nil {
							t.Fatal(err)
						}
					}
					if err := b.Add(u, v); err != nil {
						t.Fatal(err)
					}
				}
				if simple {
					for u, list := range want {
						slices.Sort(list)
						want[u] = slices.DeleteFunc(slices.Compact(list), func(v uint32) bool { return v == uint32(u) })
					}
				}
				if err := b.Finish(t.Context()); err != nil {
					t.Fatal(err)
				}
				g, err := Open(dir)
				if err != nil {
					t.Fatal(err)
				}
				defer g.Close()
				check(t, g, want)
				if g.Meta().Sorted != simple {
					t.Errorf("sorted: %v", g.Meta().Sorted)
				}
				if left, err := os.ReadDir(dir); err != nil || len(left) != 5 {
					t.Errorf("%d files in the folder, err %v", len(left), err)
				}
			})
		}
	}
}

func TestSortByPage(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(9, 9))
	for _, bits := range []int{0, 1, 10, 11, 12, 22, 23, 32} {
		a := make([]uint64, 5000)
		for i := range a {
			a[i] = packLink(uint32(r.Uint64N(1<<bits)), uint32(i)) // the second number is the order of coming
		}
		want := slices.Clone(a)
		slices.Sort(want)
		if got, _ := sortByPage(a, make([]uint64, len(a))); !slices.Equal(got, want) {
			t.Errorf("%d bits: not sorted stably", bits)
		}
	}
}
