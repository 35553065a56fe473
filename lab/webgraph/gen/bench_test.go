package gen

import (
	"context"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// nowhere takes links and forgets them.
type nowhere struct{ links int }

func (n *nowhere) Append(links []uint32) error { n.links += len(links); return nil }
func (n *nowhere) Add(_, _ uint32) error       { n.links++; return nil }

// benchNodes is 10^7 with FRESHET_LONG, as the figures of the documentation have it.
func benchNodes() int64 {
	if os.Getenv("FRESHET_LONG") != "" {
		return 10_000_000
	}
	return 300_000
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

// Links a second of each model, on one core with -cpu 1, without the disk.
func BenchmarkModels(b *testing.B) {
	for _, name := range Models() {
		b.Run(name, func(b *testing.B) {
			p, err := Spec{Model: name, Nodes: benchNodes(), Seed: 1}.Plan()
			if err != nil {
				b.Fatal(err)
			}
			var sink nowhere
			none := func(int64) {}
			began := cpu(b)
			for b.Loop() {
				if err := p.drawLinks(context.Background(), &sink, &sink, none); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(sink.links)/(cpu(b)-began)/1e6, "Mlinks/cpu-s")
		})
	}
}
