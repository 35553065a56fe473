package webgraph

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// ascending returns a random graph whose lists ascend, each link once.
func ascending(n int, seed uint64) [][]uint32 {
	out := random(n, seed)
	for u, list := range out {
		slices.Sort(list)
		out[u] = slices.Compact(list)
	}
	return out
}

// encode stores a graph with coded links and opens it.
func encode(t *testing.T, out [][]uint32, sites []uint32) *Graph {
	t.Helper()
	plain := store(t, out, sites, Options{Made: map[string]int{"seed": 1}})
	dir := filepath.Join(t.TempDir(), "coded")
	if err := Code(t.Context(), plain, dir, Options{}); err != nil {
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

// A coded graph is the graph that it was made of, in both directions, for those
// who share it and for those who take a view, with sites, columns and names.
func TestCoded(t *testing.T) {
	t.Parallel()
	out := ascending(3000, 11)
	for _, sites := range [][]uint32{nil, {0, 10, 500, 501, 2999}} {
		g := encode(t, out, sites)
		if !g.Coded() || g.Sites() != len(sites) || string(g.Meta().Made) == "" {
			t.Errorf("coded %v, %d sites, made %s", g.Coded(), g.Sites(), g.Meta().Made)
		}
		check(t, g, out)
		v := g.View()
		for _, u := range rand.New(rand.NewPCG(1, 2)).Perm(len(out)) {
			if !slices.Equal(v.Out(uint32(u)), g.Out(uint32(u))) || !slices.Equal(v.In(uint32(u)), g.In(uint32(u))) {
				t.Fatalf("page %d: other links in a view", u)
			}
		}
	}
	if err := Code(t.Context(), store(t, [][]uint32{{0, 0}}, nil, Options{}), filepath.Join(t.TempDir(), "x"), Options{}); !errors.Is(err, ErrUnsorted) {
		t.Errorf("repeated links: %v", err)
	}
}

// Columns and names are those of the graph that was coded.
func TestCodedColumns(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "plain")
	w, err := Create(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	w.SetNames([]string{"a", "", "ccc"})
	if err := errors.Join(w.Append([]uint32{1, 2}), w.Append(nil), w.Append([]uint32{0}), w.Finish(t.Context()), SetColumn(dir, "age", []float32{1, 2, 3})); err != nil {
		t.Fatal(err)
	}
	plain, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	to := filepath.Join(t.TempDir(), "coded")
	if err := Code(t.Context(), plain, to, Options{}); err != nil {
		t.Fatal(err)
	}
	g, err := Open(to)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	age, err := Column[float32](g, "age")
	if err != nil || !slices.Equal(age, []float32{1, 2, 3}) || g.Name(2) != "ccc" {
		t.Errorf("ages %v, name %q, err %v", age, g.Name(2), err)
	}
	again := filepath.Join(t.TempDir(), "again")
	if err := Code(t.Context(), g, again, Options{}); err != nil {
		t.Fatal(err)
	}
	a, err := os.ReadFile(filepath.Join(to, "out.bits"))
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(again, "out.bits")); err != nil || !bytes.Equal(a, b) {
		t.Errorf("a coded graph coded again is another, err %v", err)
	}
}

// Damage of any file of a coded graph is told; if a forger has mended the
// checksums, opening ends with an error or a graph whose links stay inside.
func TestCodedDamage(t *testing.T) {
	t.Parallel()
	g := encode(t, ascending(2000, 12), []uint32{0, 100, 1500})
	dir := g.Dir()
	r := rand.New(rand.NewPCG(3, 4))
	for _, f := range g.Meta().Files {
		path := filepath.Join(dir, f.Name)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			if len(whole) == 0 {
				break
			}
			bad := slices.Clone(whole)
			bad[r.IntN(len(bad))] ^= byte(1 + r.IntN(255))
			if err := os.WriteFile(path, bad, 0o644); err != nil {
				t.Fatal(err)
			}
			var d *DamagedError
			if _, err := Open(dir); !errors.As(err, &d) {
				t.Fatalf("%s changed: %v", f.Name, err)
			}
			forge(t, dir, f.Name, bad)
			if g, err := Open(dir); err == nil {
				for u := range uint32(g.Nodes()) {
					for _, v := range g.Out(u) {
						if int(v) >= g.Nodes() {
							t.Fatalf("%s forged: page %d links to page %d", f.Name, u, v)
						}
					}
				}
				_ = g.Close()
			}
		}
		if err := os.WriteFile(path, whole, 0o644); err != nil {
			t.Fatal(err)
		}
		forge(t, dir, f.Name, whole)
	}
	if again, err := Open(dir); err != nil || again.Close() != nil {
		t.Fatalf("repaired: %v", err)
	}
}

// forge makes graph.json tell that a file holds b.
func forge(t *testing.T, dir, name string, b []byte) {
	t.Helper()
	m, err := readMeta(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := newSums()
	_, _ = s.Write(b)
	*m.fileNamed(name) = s.sumsInfo(name)
	if err := m.writeMeta(dir); err != nil {
		t.Fatal(err)
	}
}

// Whatever is changed in a folder, with its checksums mended or not, plain or
// coded: it is refused, or its links stay inside the web.
func FuzzFolder(f *testing.F) {
	out := ascending(300, 13)
	dir := f.TempDir()
	w, err := Create(filepath.Join(dir, "plain"), Options{})
	if err != nil {
		f.Fatal(err)
	}
	for _, list := range out {
		if err := w.Append(list); err != nil {
			f.Fatal(err)
		}
	}
	w.SetSites([]uint32{0, 7, 200})
	names := make([]string, len(out))
	names[5] = "http://a.example/"
	w.SetNames(names)
	if err := errors.Join(w.Finish(f.Context()), SetColumn(filepath.Join(dir, "plain"), "age", make([]uint8, len(out)))); err != nil {
		f.Fatal(err)
	}
	plain, err := Open(filepath.Join(dir, "plain"))
	if err != nil {
		f.Fatal(err)
	}
	if err := errors.Join(Code(f.Context(), plain, filepath.Join(dir, "coded"), Options{}), plain.Close()); err != nil {
		f.Fatal(err)
	}
	for file := range uint8(16) {
		f.Add(file, uint32(8*file), uint8(1), true)
		f.Add(file, uint32(100), uint8(255), false)
	}
	f.Fuzz(func(t *testing.T, file uint8, at uint32, xor uint8, forged bool) {
		of := filepath.Join(dir, []string{"plain", "coded"}[file&1])
		m, err := readMeta(of)
		if err != nil {
			t.Fatal(err)
		}
		to := t.TempDir()
		names := []string{metaFile}
		for _, f := range m.Files {
			names = append(names, f.Name)
		}
		changed := names[int(file>>1)%len(names)]
		for _, name := range names {
			b, err := os.ReadFile(filepath.Join(of, name))
			if err != nil {
				t.Fatal(err)
			}
			if name == changed && len(b) > 0 {
				if int(at) >= len(b) {
					b = b[:int(at)%len(b)]
				} else {
					b[at] ^= xor
				}
			}
			if err := os.WriteFile(filepath.Join(to, name), b, 0o644); err != nil {
				t.Fatal(err)
			}
			if name == changed && forged && name != metaFile {
				forge(t, to, name, b)
			}
		}
		g, err := Open(to)
		if err != nil {
			return
		}
		defer g.Close()
		for u := range uint32(g.Nodes()) {
			_ = g.Name(u)
			for _, list := range [][]uint32{g.Out(u), g.In(u)} {
				for _, v := range list {
					if int(v) >= g.Nodes() {
						t.Fatalf("page %d and page %d of %d", u, v, g.Nodes())
					}
				}
			}
			if g.Sites() > 0 && g.Site(u) >= g.Sites() {
				t.Fatalf("page %d is on site %d of %d", u, g.Site(u), g.Sites())
			}
		}
	})
}
