package webgraph

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// random returns a graph of n pages with links drawn evenly.
func random(n int, seed uint64) [][]uint32 {
	r := rand.New(rand.NewPCG(seed, 1))
	out := make([][]uint32, n)
	for u := range out {
		for range r.IntN(8) {
			out[u] = append(out[u], uint32(r.IntN(n)))
		}
	}
	return out
}

// store writes a graph and opens it.
func store(t *testing.T, out [][]uint32, sites []uint32, opt Options) *Graph {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "graph")
	w, err := Create(dir, opt)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	for _, list := range out {
		if err := w.Append(list); err != nil {
			t.Fatal(err)
		}
	}
	w.SetSites(sites)
	if err := w.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	g, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// check compares a graph with the lists that it was made of, in both directions.
func check(t *testing.T, g *Graph, out [][]uint32) {
	t.Helper()
	if g.Nodes() != len(out) {
		t.Fatalf("%d pages, want %d", g.Nodes(), len(out))
	}
	in := make([][]uint32, len(out))
	links := int64(0)
	for u, list := range out {
		if got := g.Out(uint32(u)); !slices.Equal(got, list) {
			t.Fatalf("page %d links to %v, want %v", u, got, list)
		}
		if got := g.OutDegree(uint32(u)); got != len(list) {
			t.Fatalf("page %d has %d links, want %d", u, got, len(list))
		}
		for _, v := range list {
			in[v] = append(in[v], uint32(u))
			links++
		}
	}
	if g.Links() != links {
		t.Fatalf("%d links, want %d", g.Links(), links)
	}
	for v, list := range in {
		if got := g.In(uint32(v)); !slices.Equal(got, list) || g.InDegree(uint32(v)) != len(list) {
			t.Fatalf("links to page %d are %v, want %v", v, got, list)
		}
	}
}

func TestStoreAndOpen(t *testing.T) {
	t.Parallel()
	for name, out := range map[string][][]uint32{
		"one page":        {{}},
		"itself, twice":   {{0, 0}},
		"no links":        make([][]uint32, 5),
		"random":          random(3000, 1),
		"more than a buf": random(50_000, 2),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := store(t, out, nil, Options{})
			check(t, g, out)
			mem, err := New(out, nil)
			if err != nil {
				t.Fatal(err)
			}
			check(t, mem, out)
			if mem.Meta().Sorted != g.Meta().Sorted {
				t.Errorf("sorted %v in memory, %v stored", mem.Meta().Sorted, g.Meta().Sorted)
			}
		})
	}
}

// Transposing in many passes gives what one pass does.
func TestTransposeInSlices(t *testing.T) {
	t.Parallel()
	out := random(5000, 3)
	mem, err := New(out, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, budget := range []uint64{1, 7, 1000, 1 << 40} {
		var links []uint32
		emit := func(v []uint32) error { links = append(links, v...); return nil }
		err := transposeInSlices(t.Context(), mem.out, mem.in.starts, budget, emit, func(int64) {})
		if err != nil || !slices.Equal(links, mem.in.links) {
			t.Errorf("budget %d: other links, err %v", budget, err)
		}
		if budget == 1 {
			out = out[:0] // the slowest is enough once
		}
	}
}

func TestSites(t *testing.T) {
	t.Parallel()
	out := random(100, 4)
	g := store(t, out, []uint32{0, 1, 50, 99}, Options{})
	if g.Sites() != 4 {
		t.Fatalf("%d sites", g.Sites())
	}
	for s := range g.Sites() {
		first, pages := g.SiteSpan(s)
		for u := first; u < first+pages; u++ {
			if g.Site(u) != s {
				t.Errorf("page %d is on site %d, want %d", u, g.Site(u), s)
			}
		}
	}
	for _, bad := range [][]uint32{{1}, {0, 0}, {0, 5, 3}, {0, 100}} {
		if _, err := New(out, bad); err == nil {
			t.Errorf("sites %v are accepted", bad)
		}
	}
}

// Whatever byte of whatever file is changed, and whatever file is cut or lost:
// Open names the file.
func TestDamage(t *testing.T) {
	t.Parallel()
	g := store(t, random(200, 5), []uint32{0, 100}, Options{Made: map[string]int{"seed": 5}})
	dir := g.Dir()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 6 {
		t.Fatalf("%d files, err %v", len(entries), err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		damages := map[string]func() error{
			"cut":  func() error { return os.WriteFile(path, whole[:len(whole)-1], 0o644) },
			"lost": func() error { return os.Remove(path) },
		}
		for range 8 {
			i, bit := r.IntN(len(whole)), byte(1)<<r.IntN(7)
			if e.Name() == metaFile && i == len(whole)-1 {
				continue // space after the end means nothing
			}
			damages["changed"] = func() error {
				b := slices.Clone(whole)
				b[i] ^= bit
				return os.WriteFile(path, b, 0o644)
			}
			for what, damage := range damages {
				if err := damage(); err != nil {
					t.Fatal(err)
				}
				bad, err := Open(dir)
				if err == nil {
					_ = bad.Close()
					if e.Name() == metaFile && what != "lost" {
						continue // white space of JSON, say
					}
					t.Fatalf("%s %s at %d: opened", e.Name(), what, i)
				}
				var d *DamagedError
				if e.Name() != metaFile && (!errors.As(err, &d) || d.File != path) {
					t.Fatalf("%s %s: %v", e.Name(), what, err)
				}
			}
			if err := os.WriteFile(path, whole, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if again, err := Open(dir); err != nil || again.Close() != nil {
		t.Fatalf("repaired: %v", err)
	}
}

func TestNothingHalf(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	dir := filepath.Join(parent, "deep", "graph")
	begin := func() *Writer {
		w, err := Create(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	left := func() []string {
		entries, err := os.ReadDir(filepath.Dir(dir))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	w := begin()
	if names := left(); len(names) != 1 || !strings.HasPrefix(names[0], "graph.partial-") {
		t.Errorf("while writing: %v", names)
	}
	w.Abort()
	if names := left(); len(names) != 0 {
		t.Errorf("after Abort: %v", names)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	w = begin()
	if err := errors.Join(w.Append([]uint32{0}), w.Finish(ctx)); !errors.Is(err, context.Canceled) || len(left()) != 0 {
		t.Errorf("ended context: %v, %v left", err, left())
	}
	w = begin()
	if err := errors.Join(w.Append([]uint32{7}), w.Finish(t.Context())); err == nil || !strings.Contains(err.Error(), "page 7 of 1") || len(left()) != 0 {
		t.Errorf("link to nowhere: %v, %v left", err, left())
	}
	w = begin()
	if err := errors.Join(w.Append([]uint32{0}), w.Finish(t.Context())); err != nil {
		t.Fatal(err)
	}
	w.Abort()
	if _, err := Open(dir); err != nil {
		t.Error(err)
	}
	if _, err := Create(dir, Options{}); !errors.Is(err, ErrExists) {
		t.Errorf("twice: %v", err)
	}
	if _, err := Create(filepath.Join(parent, "big"), Options{Nodes: 1e9, Links: 1e15}); err == nil || !strings.Contains(err.Error(), "needs 8000016.0 GB") {
		t.Errorf("disk space: %v", err)
	}
	if _, err := Open(parent); err == nil || !strings.Contains(err.Error(), "no stored graph") {
		t.Errorf("other folder: %v", err)
	}
}
