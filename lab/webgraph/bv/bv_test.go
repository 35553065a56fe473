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

// similar returns lists of which many resemble the one before, as on a site.
func similar(n int, seed uint64) [][]uint32 {
	r := rand.New(rand.NewPCG(seed, 1))
	out := make([][]uint32, n)
	for u := range out {
		set := map[uint32]bool{}
		if u > 0 && r.IntN(3) > 0 {
			for _, v := range out[u-1-r.IntN(min(u, 9))] {
				if r.IntN(5) > 0 {
					set[v] = true
				}
			}
		}
		for range r.IntN(6) {
			v := r.IntN(n)
			for range 1 + r.IntN(8)*r.IntN(2) {
				if v < n {
					set[uint32(v)] = true
				}
				v++
			}
		}
		for v := range set {
			out[u] = append(out[u], v)
		}
		slices.Sort(out[u])
	}
	return out
}

// coding encodes lists.
func coding(t testing.TB, p Properties, out [][]uint32) (graph, offsets, properties []byte) {
	t.Helper()
	var g, o, props bytes.Buffer
	e := NewEncoder(p, &g, &o)
	for _, list := range out {
		if err := e.Append(list); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := e.Finish(&props); err != nil {
		t.Fatal(err)
	}
	return g.Bytes(), o.Bytes(), props.Bytes()
}

func decoding(t testing.TB, properties, graph []byte) [][]uint32 {
	t.Helper()
	p, err := ReadProperties(bytes.NewReader(properties))
	if err != nil {
		t.Fatal(err)
	}
	var out [][]uint32
	for list, err := range Lists(p, graph) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, slices.Clone(list))
	}
	return out
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	out := similar(3000, 1)
	out = append(out, nil, nil)
	for _, p := range []Properties{
		Default(),
		{Window: 0, MinInterval: 4, ZetaK: 3},
		{Window: 1, MaxRef: 1, MinInterval: 0, ZetaK: 1},
		{Window: 30, MaxRef: 1000, MinInterval: 2, ZetaK: 5},
	} {
		graph, _, properties := coding(t, p, out)
		if got := decoding(t, properties, graph); !slices.EqualFunc(got, out, slices.Equal) {
			t.Errorf("window %d: other lists", p.Window)
		}
	}
}

func TestUnsorted(t *testing.T) {
	t.Parallel()
	e := NewEncoder(Default(), &bytes.Buffer{}, nil)
	if err := e.Append([]uint32{2, 1}); err == nil {
		t.Error("links that do not ascend are accepted")
	}
}

// A graph of the Laboratory for Web Algorithmics and its transpose, coded by
// their program: FRESHET_BV is the path of cnr-2000 without extension, beside
// cnr-2000-t. One is the other, turned round.
func TestCNR(t *testing.T) {
	t.Parallel()
	base := os.Getenv("FRESHET_BV")
	if base == "" {
		t.Skip("FRESHET_BV is not set")
	}
	load := func(base string) ([][]uint32, []byte) {
		properties, err := os.ReadFile(base + ".properties")
		if err != nil {
			t.Fatal(err)
		}
		graph, err := os.ReadFile(base + ".graph")
		if err != nil {
			t.Fatal(err)
		}
		return decoding(t, properties, graph), graph
	}
	out, graph := load(base)
	in, _ := load(base + "-t")
	back := make([][]uint32, len(out))
	links := 0
	for u, list := range out {
		for _, v := range list {
			back[v] = append(back[v], uint32(u))
		}
		links += len(list)
	}
	if !slices.EqualFunc(in, back, slices.Equal) {
		t.Error("the transpose is another graph")
	}
	mine, offsets, _ := coding(t, Default(), out)
	t.Logf("%s: %d pages, %d links, %d bytes by LAW, %d by us", filepath.Base(base), len(out), links, len(graph), len(mine))
	if theirs, err := os.ReadFile(base + ".offsets"); err == nil && bytes.Equal(mine, graph) != bytes.Equal(offsets, theirs) {
		t.Error("the same graph with other offsets")
	}
}

// No bits make the decoder panic or take memory without end.
func FuzzLists(f *testing.F) {
	graph, _, properties := coding(f, Default(), similar(40, 3))
	f.Add(properties, graph)
	f.Add([]byte("nodes=3\narcs=1\n"), []byte{0x5f, 0xff})
	f.Add([]byte("nodes=3\narcs=1\ncompressionflags=RESIDUALS_NIBBLE|OUTDEGREES_DELTA\nzetak=9"), []byte{1, 2, 3, 4, 5, 6, 7, 8, 9})
	f.Add([]byte("nodes=9999999\narcs=1\nwindowsize=0\nminintervallength=0"), []byte{0xff, 0xff})
	f.Fuzz(func(t *testing.T, properties, graph []byte) {
		p, err := ReadProperties(bytes.NewReader(properties))
		if err != nil {
			return
		}
		var out [][]uint32
		for list, err := range Lists(p, graph) {
			if err != nil {
				return
			}
			if len(out) < 1000 {
				out = append(out, slices.Clone(list))
			}
		}
		if int64(len(out)) != p.Nodes {
			return
		}
		p.Window, p.MaxRef = min(p.Window, 50), min(p.MaxRef, 50)
		again, _, props := coding(t, p, out)
		if got := decoding(t, props, again); !slices.EqualFunc(got, out, slices.Equal) {
			t.Fatal("coded again, it is another graph")
		}
	})
}

func TestBadProperties(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"nodes=3", "nodes=x\narcs=1", "nodes=3\narcs=1\ncompressionflags=RESIDUALS_GOLOMB", "nodes=3\narcs=1\nzetak=0",
		"nodes=3\narcs=1\nversion=7", "nodes=3\narcs=1\nendianness=little", "nodes=3\narcs=1\ngraphclass=EFGraph", "nodes=99999999999\narcs=1",
	} {
		if _, err := ReadProperties(bytes.NewReader([]byte(text))); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
	p := Default()
	p.Nodes, p.Links = 10, 5
	for _, err := range Lists(p, []byte{0}) {
		var f *FormatError
		if err != nil && !errors.As(err, &f) {
			t.Errorf("error %v", err)
		}
	}
}
