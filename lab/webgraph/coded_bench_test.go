package webgraph_test

import (
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/freshet/freshet/lab/webgraph"
	"github.com/freshet/freshet/lab/webgraph/gen"
)

// Reading coded lists of a host-local web of 10^6 pages: of pages in order and of
// pages drawn evenly, in processor time.
func BenchmarkCoded(b *testing.B) {
	dir := b.TempDir()
	p, err := gen.Spec{Model: "host-local", Nodes: 1_000_000, Seed: 1}.Plan()
	if err != nil {
		b.Fatal(err)
	}
	if err := p.Generate(b.Context(), filepath.Join(dir, "plain"), webgraph.Options{}); err != nil {
		b.Fatal(err)
	}
	plain, err := webgraph.Open(filepath.Join(dir, "plain"))
	if err != nil {
		b.Fatal(err)
	}
	defer plain.Close()
	began := cpu(b)
	if err := webgraph.Code(b.Context(), plain, filepath.Join(dir, "coded"), webgraph.Options{}); err != nil {
		b.Fatal(err)
	}
	coding := cpu(b) - began
	coded, err := webgraph.Open(filepath.Join(dir, "coded"))
	if err != nil {
		b.Fatal(err)
	}
	defer coded.Close()
	n := uint64(coded.Nodes())
	bits := int64(0)
	for _, f := range coded.Meta().Files {
		if f.Name == "out.bits" {
			bits = 8 * f.Bytes
		}
	}
	for _, of := range []struct {
		name string
		get  func(u uint32) []uint32
	}{{"plain", plain.Out}, {"coded", coded.View().Out}, {"coded-in", coded.View().In}, {"coded-shared", coded.Out}} {
		for _, drawn := range []bool{false, true} {
			name := of.name + "-in-order"
			if drawn {
				name = of.name + "-drawn"
			}
			b.Run(name, func(b *testing.B) {
				i, links := uint64(0), 0
				began := cpu(b)
				for b.Loop() {
					u := i % n
					if drawn {
						u = i * 0x9e3779b97f4a7c15 >> 32 * n >> 32
					}
					links += len(of.get(uint32(u)))
					i++
				}
				spent := (cpu(b) - began) * 1e9
				b.ReportMetric(spent/float64(b.N), "cpu-ns/list")
				b.ReportMetric(spent/float64(links), "cpu-ns/link")
				b.ReportMetric(float64(bits)/float64(coded.Links()), "bits/link")
				b.ReportMetric(coding*1e9/float64(2*coded.Links()), "coding-cpu-ns/link")
			})
		}
	}
}

// cpu returns the processor time of this process in seconds.
func cpu(b *testing.B) float64 {
	var ru unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &ru); err != nil {
		b.Fatal(err)
	}
	return float64(ru.Utime.Nano()+ru.Stime.Nano()) / 1e9
}
