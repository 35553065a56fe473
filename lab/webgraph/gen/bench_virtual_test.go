package gen

import "testing"

// rows is a layout of sites of 64 pages each, of any size.
type rows uint64

func (r rows) Hosts() uint64               { return (uint64(r) + 63) / 64 }
func (r rows) Host(u uint64) uint64        { return u / 64 }
func (r rows) Span(s uint64) (_, _ uint64) { return s * 64, min(64, uint64(r)-s*64) }

// The links of a page of a web of 2^42 pages, computed.
func BenchmarkComputed(b *testing.B) {
	const nodes = 1 << 42
	h, err := NewHostLocal(HostLocalOptions{Nodes: nodes, Seed: 1}, rows(nodes))
	if err != nil {
		b.Fatal(err)
	}
	var buf []uint64
	links, u, began := 0, uint64(0), cpu(b)
	for b.Loop() {
		u = u*6364136223846793005 + 1442695040888963407
		buf = h.Successors(scaleBelow(u, nodes), buf[:0])
		links += len(buf)
	}
	b.ReportMetric((cpu(b)-began)*1e9/float64(b.N), "cpu-ns/page")
	b.ReportMetric(float64(links)/float64(b.N), "links/page")
}

// The links from and to a page of a web of 2^42 pages, computed both ways.
func BenchmarkMatched(b *testing.B) {
	const nodes = 1 << 42
	m, err := NewMatched(MatchedOptions{Nodes: nodes, Seed: 1}, rows(nodes))
	if err != nil {
		b.Fatal(err)
	}
	for name, f := range map[string]func(uint64, []uint64) []uint64{"from": m.Successors, "to": m.Predecessors} {
		b.Run(name, func(b *testing.B) {
			var buf []uint64
			links, u, began := 0, uint64(0), cpu(b)
			for b.Loop() {
				u = u*6364136223846793005 + 1442695040888963407
				buf = f(scaleBelow(u, nodes), buf[:0])
				links += len(buf)
			}
			b.ReportMetric((cpu(b)-began)*1e9/float64(b.N), "cpu-ns/page")
			b.ReportMetric(float64(links)/float64(b.N), "links/page")
		})
	}
}
