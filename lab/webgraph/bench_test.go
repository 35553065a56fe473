package webgraph

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

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
	for name, read := range map[string]func(u uint32){
		"out":    func(u uint32) { sum += uint64(g.Out(u)[0]) },
		"in":     func(u uint32) { sum += uint64(len(g.In(u))) },
		"column": func(u uint32) { sum += uint64(rank[u]) },
	} {
		b.Run(name, func(b *testing.B) {
			i, began := uint64(0), cpu(b)
			for b.Loop() {
				i += 1 + sum&1 // each waits for the one before, as a walk does
				read(page(i))
			}
			b.ReportMetric((cpu(b)-began)*1e9/float64(b.N), "cpu-ns/op")
		})
	}
}

// cpu returns the processor time of this process in seconds: what other processes
// of a busy machine take does not count.
func cpu(b *testing.B) float64 {
	var ru unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &ru); err != nil {
		b.Fatal(err)
	}
	return float64(ru.Utime.Nano()+ru.Stime.Nano()) / 1e9
}
