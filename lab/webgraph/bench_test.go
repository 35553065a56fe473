package webgraph

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// burst is the number of accesses that are timed together.
const burst = 2000

// Reading the list of links of a page drawn evenly, and an attribute of it, from
// files that are in memory. With FRESHET_LONG the graph has 2 GB.
func BenchmarkAccess(b *testing.B) {
	nodes := 1_000_000
	if os.Getenv("FRESHET_LONG") != "" {
		nodes = 20_000_000
	}
	dir := filepath.Join(b.TempDir(), "graph")
	w, err := Create(dir, Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer w.Abort()
	r := rand.New(rand.NewPCG(1, 2))
	list := make([]uint32, 8)
	for range nodes {
		for i := range list {
			list[i] = uint32(r.IntN(nodes))
		}
		if err := w.Append(list); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Finish(b.Context()); err != nil {
		b.Fatal(err)
	}
	if err := SetColumn(dir, "rank", make([]float64, nodes)); err != nil {
		b.Fatal(err)
	}
	g, err := Open(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer g.Close()
	rank, err := Column[float64](g, "rank")
	if err != nil {
		b.Fatal(err)
	}
	page := func(i uint64) uint32 { return uint32(i * 0x9e3779b97f4a7c15 >> 32 * uint64(nodes) >> 32) }
	sum := uint64(0)
	for u := range uint32(nodes) { // now all is in memory and mapped
		sum += uint64(rank[u])
		for _, list := range [][]uint32{g.Out(u), g.In(u)} {
			for _, v := range list {
				sum += uint64(v)
			}
		}
	}
	// The same arrays in memory of the program: what the machine can do.
	heap := rows{slices.Clone(g.out.starts), slices.Clone(g.out.links)}
	for _, bench := range []struct {
		name string
		read func(u uint32) uint64
	}{
		{"out", func(u uint32) uint64 { return uint64(g.Out(u)[0]) }},
		{"out-heap", func(u uint32) uint64 { return uint64(heap.linksOf(u)[0]) }},
		{"in", func(u uint32) uint64 { return uint64(len(g.In(u))) }},
		{"column", func(u uint32) uint64 { return uint64(rank[u]) }},
	} {
		for _, walk := range []uint64{0, 1} { // 1: each waits for the one before
			b.Run(bench.name+[]string{"", "-walk"}[walk], func(b *testing.B) {
				i, best := uint64(0), time.Hour
				for b.Loop() { // bursts: the best one had the processor for itself
					began := time.Now()
					for range burst {
						i += 1 + sum&walk
						sum += bench.read(page(i))
					}
					best = min(best, time.Since(began))
				}
				b.ReportMetric(float64(best.Nanoseconds())/burst, "best-ns/access")
			})
		}
	}
}
