package bv

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// lists is a graph in memory.
type lists [][]uint32

func (l lists) Nodes() int            { return len(l) }
func (l lists) Out(u uint32) []uint32 { return l[u] }

func written(t testing.TB, p Properties, out [][]uint32) string {
	t.Helper()
	base := filepath.Join(t.TempDir(), "g")
	var b [3]bytes.Buffer
	if _, err := Write(&b[0], &b[1], &b[2], p, lists(out), func(int64) error { return nil }); err != nil {
		t.Fatal(err)
	}
	for i, ext := range []string{".graph", ".offsets", ".properties"} {
		if err := os.WriteFile(base+ext, b[i].Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return base
}

func TestIndex(t *testing.T) {
	t.Parallel()
	out := append(similar(5000, 2), nil)
	for _, depth := range []int{0, 3, 1000} {
		p := Default()
		p.MaxRef = depth
		x, err := OpenIndex(written(t, p, out))
		if err != nil {
			t.Fatal(err)
		}
		r := x.NewReader()
		for _, u := range rand.New(rand.NewPCG(1, 2)).Perm(len(out)) {
			if got, err := r.Out(uint32(u)); err != nil || !slices.Equal(got, out[u]) {
				t.Fatalf("page %d links to %v, err %v, want %v", u, got, err, out[u])
			}
		}
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	}
}

// The index of LAW's own files gives the lists that reading in order gives.
func TestIndexCNR(t *testing.T) {
	t.Parallel()
	base := os.Getenv("FRESHET_BV")
	if base == "" {
		t.Skip("FRESHET_BV is not set")
	}
	x, err := OpenIndex(base)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	r, u := x.NewReader(), uint32(0)
	for list, err := range x.f.Lists() {
		if err != nil {
			t.Fatal(err)
		}
		if got, err := r.Out(u); err != nil || !slices.Equal(got, list) {
			t.Fatalf("page %d: err %v", u, err)
		}
		u++
	}
	text, places := x.Bytes()
	t.Logf("%.2f bits a link and %.2f for places", float64(text)*8/float64(x.f.Links), float64(places)*8/float64(x.f.Links))
}

func TestDamagedOffsets(t *testing.T) {
	t.Parallel()
	base := written(t, Default(), similar(100, 1))
	if err := os.WriteFile(base+".offsets", []byte{1, 2, 3}, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenIndex(base); err == nil {
		t.Error("opened")
	}
}

func BenchmarkIndex(b *testing.B) {
	out := similar(200_000, 2)
	p := Default()
	p.MaxRef = 10
	x, err := OpenIndex(written(b, p, out))
	if err != nil {
		b.Fatal(err)
	}
	defer x.Close()
	r := x.NewReader()
	u := uint64(0)
	for b.Loop() {
		u = u*6364136223846793005 + 1442695040888963407
		if _, err := r.Out(uint32(u >> 32 * uint64(len(out)) >> 32)); err != nil {
			b.Fatal(err)
		}
	}
}

// However lists and their places are damaged, an index is refused or its lists are
// refused or stay inside the graph.
func FuzzIndex(f *testing.F) {
	base := written(f, Default(), similar(200, 3))
	var files [2][]byte
	for i, ext := range []string{".graph", ".offsets"} {
		b, err := os.ReadFile(base + ext)
		if err != nil {
			f.Fatal(err)
		}
		files[i] = b
	}
	whole, err := Open(base)
	if err != nil {
		f.Fatal(err)
	}
	p := whole.Properties
	if err := whole.Close(); err != nil {
		f.Fatal(err)
	}
	f.Add(files[0], files[1])
	f.Add(files[0][:len(files[0])/2], files[1])
	f.Add(files[1], files[0])
	f.Add([]byte{0x80}, []byte{0})
	f.Fuzz(func(t *testing.T, graph, offsets []byte) {
		x := &Index{f: &File{Properties: p, graph: graph}}
		if x.readOffsets(offsets) != nil {
			return
		}
		r := x.NewReader()
		for u := range uint32(p.Nodes) {
			list, err := r.Out(u)
			var format *FormatError
			if err != nil && !errors.As(err, &format) {
				t.Fatal(err)
			}
			for _, v := range list {
				if int64(v) >= p.Nodes {
					t.Fatalf("page %d links to page %d of %d", u, v, p.Nodes)
				}
			}
		}
	})
}
