package stats

import (
	"context"
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/freshet/freshet/internal/rng"
)

func components(t interface{ Fatal(...any) }, g Graph) (strong, weak *Components) {
	strong, err := Strong(context.Background(), g, nil)
	if err != nil {
		t.Fatal(err)
	}
	if weak, err = Weak(context.Background(), g, nil); err != nil {
		t.Fatal(err)
	}
	return strong, weak
}

func TestComponentsClosedForms(t *testing.T) {
	t.Parallel()
	const n = 9
	for _, c := range []struct {
		name                         string
		links                        []link
		strong, weak, largest, joint int
		bow                          BowTie
	}{
		{"no links", nil, n, n, 1, 1, BowTie{Core: 1, Disconnected: n - 1}},
		{"ring", ring(n), 1, 1, n, n, BowTie{Core: n}},
		{"path", path(n), n, 1, 1, n, BowTie{Core: 1, In: n - 1}},
		{"star", star(n), n, 1, 1, n, BowTie{Core: 1, In: n - 1}},
		{"complete", complete(n), 1, 1, n, n, BowTie{Core: n}},
		// 0 -> core 1 2 -> 3, tube 0 -> 4 -> 3, tendrils 0 -> 5 and 6 -> 3 and
		// 7 -> 5, 8 alone.
		{
			"bow-tie",
			[]link{{0, 1}, {1, 2}, {2, 1}, {2, 3}, {0, 4}, {4, 3}, {0, 5}, {6, 3}, {7, 5}},
			8, 2, 2, 8,
			BowTie{Core: 2, In: 1, Out: 1, Tubes: 1, Tendrils: 3, Disconnected: 1},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := graph(n, c.links)
			strong, weak := components(t, g)
			if len(strong.Sizes) != c.strong || int(strong.Sizes[strong.Largest]) != c.largest {
				t.Errorf("%d strong components, largest %d; want %d, %d", len(strong.Sizes), strong.Sizes[strong.Largest], c.strong, c.largest)
			}
			if len(weak.Sizes) != c.weak || int(weak.Sizes[weak.Largest]) != c.joint {
				t.Errorf("%d weak components, largest %d; want %d, %d", len(weak.Sizes), weak.Sizes[weak.Largest], c.weak, c.joint)
			}
			b, err := FindBowTie(context.Background(), g, strong, weak)
			if err != nil {
				t.Fatal(err)
			}
			if c.name == "path" { // the core is one of nine single pages
				b.In, b.Out = b.In+b.Out, 0
			}
			if c.name == "star" {
				b.In, b.Out, b.Tendrils = b.In+b.Out+b.Tendrils, 0, 0
			}
			if b != c.bow {
				t.Errorf("bow-tie %+v, want %+v", b, c.bow)
			}
		})
	}
}

// By Warshall's closure: same component if each reaches the other, and the parts
// of the bow-tie are what their definitions say.
func TestComponentsByClosure(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t, 25)
		strong, weak := components(t, g)
		reach := g.closure()
		both := &lists{out: make([][]uint32, g.Nodes())}
		for u := range g.out {
			both.out[u] = append(append(both.out[u], g.out[u]...), g.in[u]...)
		}
		joined := both.closure()
		for u := range reach {
			for v := range reach {
				if got := strong.Of[u] == strong.Of[v]; got != (reach[u][v] && reach[v][u]) {
					t.Fatalf("pages %d and %d in one strong component: %v", u, v, got)
				}
				if got := weak.Of[u] == weak.Of[v]; got != joined[u][v] {
					t.Fatalf("pages %d and %d in one weak component: %v", u, v, got)
				}
			}
		}
		var want BowTie
		var core int
		for u, c := range strong.Of {
			if c == strong.Largest {
				core = u
			}
		}
		for u := range reach {
			fromIn, toOut := false, false
			for v := range reach {
				fromIn = fromIn || reach[v][u] && reach[v][core] && !reach[core][v]
				toOut = toOut || reach[u][v] && reach[core][v] && !reach[v][core]
			}
			switch {
			case reach[core][u] && reach[u][core]:
				want.Core++
			case reach[u][core]:
				want.In++
			case reach[core][u]:
				want.Out++
			case fromIn && toOut:
				want.Tubes++
			case joined[u][core]:
				want.Tendrils++
			default:
				want.Disconnected++
			}
		}
		got, err := FindBowTie(context.Background(), g, strong, weak)
		if err != nil || got != want {
			t.Fatalf("bow-tie %+v, want %+v (%v)", got, want, err)
		}
	})
}

// A path of 300,000 pages and back: recursion would need a hundred megabytes of
// stack.
func TestStrongIsDeep(t *testing.T) {
	t.Parallel()
	const n = 300_000
	strong, _ := components(t, graph(n, ring(n)))
	if len(strong.Sizes) != 1 {
		t.Errorf("%d components of a ring", len(strong.Sizes))
	}
	strong, weak := components(t, graph(n, path(n)))
	if len(strong.Sizes) != n || len(weak.Sizes) != 1 {
		t.Errorf("%d strong, %d weak components of a path", len(strong.Sizes), len(weak.Sizes))
	}
	sizes, counts := strong.Histogram()
	if len(sizes) != 1 || sizes[0] != 1 || counts[0] != n {
		t.Errorf("sizes %v, counts %v", sizes, counts)
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	g := graph(20_000, ring(20_000))
	strong, weak := components(t, g)
	cancel()
	for name, do := range map[string]func() error{
		"Strong":       func() error { _, err := Strong(ctx, g, nil); return err },
		"Weak":         func() error { _, err := Weak(ctx, g, nil); return err },
		"CountDegrees": func() error { _, err := CountDegrees(ctx, g, nil); return err },
		"FindBowTie": func() error {
			strong.Largest = strong.Of[0]
			core := newPageSet(20_000)
			core.addPage(0)
			return core.spreadAlong(ctx, 20_000, g.Out, nil)
		},
	} {
		if err := do(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_ = weak
}

// Degrees, answered links and links inside hosts by their definitions.
func TestDegrees(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t, 25)
		d, err := CountDegrees(context.Background(), g, nil)
		if err != nil {
			t.Fatal(err)
		}
		host := func(u uint32) (h int) {
			for i, first := range g.hosts {
				if first <= u {
					h = i
				}
			}
			return h
		}
		m := g.matrix()
		var loops, answered, inside, sumIn, sumOut int64
		for u, out := range g.out {
			for _, v := range out {
				if int(v) == u {
					loops++
				} else if m[v][u] {
					answered++
				}
				if host(uint32(u)) == host(v) {
					inside++
				}
			}
		}
		for v, c := range d.In.All() {
			sumIn += v * c
		}
		for v, c := range d.Out.All() {
			sumOut += v * c
		}
		if d.Loops != loops || d.Reciprocal != answered || d.Inside != inside {
			t.Fatalf("loops %d, answered %d, inside %d; want %d, %d, %d", d.Loops, d.Reciprocal, d.Inside, loops, answered, inside)
		}
		if sumIn != g.Links() || sumOut != g.Links() || d.In.Total()+d.NoIn != int64(g.Nodes()) || d.Out.Total()+d.NoOut != int64(g.Nodes()) {
			t.Fatalf("degrees sum to %d and %d of %d links", sumIn, sumOut, g.Links())
		}
		if d.MaxIn != int64(len(g.in[d.MaxInPage])) || d.MaxIn != d.In.Max() || d.MaxOut != d.Out.Max() {
			t.Fatalf("greatest degrees %d, %d", d.MaxIn, d.MaxOut)
		}
	})
	for _, c := range []struct {
		name        string
		links       []link
		reciprocity float64
	}{{"ring", ring(7), 0}, {"complete", complete(7), 1}, {"path and a link back", append(path(3), link{1, 0}), 2. / 3}, {"loop", []link{{0, 0}}, 0}} {
		d, err := CountDegrees(context.Background(), graph(7, c.links), nil)
		if err != nil || d.Reciprocity() != c.reciprocity {
			t.Errorf("%s: reciprocity %g, want %g (%v)", c.name, d.Reciprocity(), c.reciprocity, err)
		}
	}
	// A hub with far more links to it than from it takes the way by searching.
	d, err := CountDegrees(context.Background(), graph(200, append(star(200), link{0, 7}, link{0, 0})), nil)
	if err != nil || d.Reciprocal != 2 || d.MaxInPage != 0 || d.Loops != 1 {
		t.Errorf("hub: %+v, %v", d, err)
	}
	if _, known := d.IntraHost(); known {
		t.Error("hosts are known of a graph without")
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	var last int64
	if _, err := Weak(context.Background(), graph(40_000, nil), func(done, total int64) {
		if done < last || total != 80_000 {
			t.Errorf("%d after %d of %d", done, last, total)
		}
		last = done
	}); err != nil || last != 4*every {
		t.Errorf("last told %d, %v", last, err)
	}
}

func BenchmarkComponents(b *testing.B) {
	g := sparse(1_000_000, 8_000_000, rng.New(1, "bench"))
	for name, do := range map[string]func(context.Context, Graph, Progress) (*Components, error){"strong": Strong, "weak": Weak} {
		b.Run(name, func(b *testing.B) {
			start := time.Now()
			for b.Loop() {
				if _, err := do(context.Background(), g, nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(8*float64(b.N)/time.Since(start).Seconds(), "Mlinks/s")
		})
	}
}
