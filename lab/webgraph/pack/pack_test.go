package pack

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

// source returns a graph in memory as it is coded.
func source(lists [][]uint32, starts []uint32) Source {
	links := int64(0)
	for _, l := range lists {
		links += int64(len(l))
	}
	return Source{
		Nodes: int64(len(lists)), Links: links, Sites: starts,
		View: func() func(uint32) []uint32 { return func(u uint32) []uint32 { return lists[u] } },
	}
}

// coded returns the lists, coded and opened.
func coded(t testing.TB, src Source, workers int) (*Lists, Parts) {
	t.Helper()
	var b bytes.Buffer
	p, err := Write(t.Context(), src, Options{Workers: workers}, &b)
	if err != nil {
		t.Fatal(err)
	}
	p.Bits = b.Bytes()
	l, err := Open(p, src.Nodes, src.Links, src.Sites)
	if err != nil {
		t.Fatal(err)
	}
	return l, p
}

// web draws lists of n pages: some like those before, some at random, few very long.
func web(n int, seed uint64) (lists [][]uint32, starts []uint32) {
	r := rand.New(rand.NewPCG(seed, 1))
	for at := 0; at < n; at += 1 + r.IntN(300) {
		starts = append(starts, uint32(at))
	}
	starts = append(starts, uint32(n))
	site := 0
	for u := range n {
		for int(starts[site+1]) <= u {
			site++
		}
		lo, pages := starts[site], starts[site+1]-starts[site]
		var l []uint32
		switch k := r.IntN(40); {
		case k == 0 && n > 3000:
			for range 2000 {
				l = append(l, r.Uint32N(uint32(n)))
			}
		case k < 25 && u > 0:
			for _, v := range lists[u-1-r.IntN(min(u, 5))] {
				if r.IntN(10) > 0 {
					l = append(l, v)
				}
			}
			l = l[:min(len(l), 1500)]
		}
		for range r.IntN(6) {
			l = append(l, lo+r.Uint32N(pages))
		}
		for range r.IntN(3) {
			l = append(l, uint32(float64(n)*r.Float64()*r.Float64()*r.Float64()))
		}
		for k := range uint32(r.IntN(5)) {
			l = append(l, min(uint32(u)+k, lo+pages-1))
		}
		slices.Sort(l)
		lists = append(lists, slices.Compact(l))
	}
	return lists, starts
}

// What is coded is read, in any order, with sites and without, and is the same
// whatever the number of workers.
func TestLists(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 15, 16, 17, 100, 6000} {
		lists, starts := web(n, uint64(n))
		for _, s := range [][]uint32{nil, starts} {
			l, parts := coded(t, source(lists, s), 1)
			r := l.NewReader()
			for _, order := range [][]int{nil, rand.New(rand.NewPCG(1, 2)).Perm(n)} {
				for i := range n {
					u := i
					if order != nil {
						u = order[i]
					}
					got, err := r.List(uint32(u))
					if err != nil || !slices.Equal(got, lists[u]) {
						t.Fatalf("%d pages: page %d links to %v, err %v, want %v", n, u, got, err, lists[u])
					}
				}
			}
			if _, again := coded(t, source(lists, s), 4); !bytes.Equal(again.Bits, parts.Bits) || !slices.Equal(again.Places, parts.Places) {
				t.Errorf("%d pages: other bits with more workers", n)
			}
		}
	}
}

// Lists of millions of links: of a home page to which all pages of a great site
// link, and all pages but some; and such a list after others of its group.
func TestLongLists(t *testing.T) {
	t.Parallel()
	const n = 1 << 19
	r := rand.New(rand.NewPCG(8, 9))
	lists := make([][]uint32, n)
	for v := range uint32(n) {
		lists[0] = append(lists[0], v)
		if r.IntN(1000) > 0 {
			lists[20] = append(lists[20], v)
		}
		if r.IntN(3) == 0 {
			lists[21] = append(lists[21], v)
		}
	}
	lists[22] = []uint32{7, 1 << 18}
	for _, starts := range [][]uint32{nil, {0, n}, {0, 5, n}} {
		l, _ := coded(t, source(lists, starts), 2)
		read := l.NewReader()
		for _, u := range []uint32{22, 0, 20, 21, 22, 1, n - 1} {
			if got, err := read.List(u); err != nil || !slices.Equal(got, lists[u]) {
				t.Fatalf("sites %v: list of page %d has %d links, err %v, want %d", starts, u, len(got), err, len(lists[u]))
			}
		}
	}
}

// A web without links inside sites whose targets have a law costs about the
// entropy of the targets, and less than numbers of pages do.
func TestRanks(t *testing.T) {
	t.Parallel()
	const n = 1 << 16
	r := rand.New(rand.NewPCG(5, 6))
	lists := make([][]uint32, n)
	for u := range lists {
		for range 4 {
			k := uint32(1)
			for k < n/2 && r.IntN(2) == 0 {
				k *= 2
			}
			lists[u] = append(lists[u], (k+r.Uint32N(k))*40503%n)
		}
		slices.Sort(lists[u])
		lists[u] = slices.Compact(lists[u])
	}
	src := source(lists, nil)
	_, p := coded(t, src, 2)
	// A target is one of 2^k with probability 2^-(k+1): k+1 bits for the class and k
	// inside it, 3 in the mean, less log2(4!)/4 = 1.15 because lists are sets.
	bits := float64(8*len(p.Bits)) / float64(src.Links)
	if p.Codes[2] == 0 || bits < 1.5 || bits > 4.5 {
		t.Errorf("%.2f bits a link, ranks used: %d; want about 3", bits, p.Codes[2])
	}
}

// However the parts are damaged, opening and reading end with an error or with
// lists of pages of the web.
func FuzzOpen(f *testing.F) {
	lists, starts := web(400, 7)
	src := source(lists, starts)
	_, p := coded(f, src, 1)
	f.Add(uint32(0), uint8(1), uint8(0))
	f.Add(uint32(100), uint8(255), uint8(1))
	f.Add(uint32(3), uint8(7), uint8(2))
	f.Add(uint32(40), uint8(64), uint8(3))
	f.Add(uint32(1000), uint8(128), uint8(3))
	f.Fuzz(func(t *testing.T, at uint32, xor, part uint8) {
		q := Parts{Codes: slices.Clone(p.Codes), Places: slices.Clone(p.Places), Ranks: slices.Clone(p.Ranks), Bits: slices.Clone(p.Bits)}
		word := func(w []uint64) {
			if len(w) > 0 {
				w[int(at/8)%len(w)] ^= uint64(xor) << (at % 8 * 8)
			}
		}
		switch part % 5 {
		case 0:
			q.Codes[int(at)%len(q.Codes)] ^= xor
		case 1:
			word(q.Places)
		case 2:
			word(q.Ranks)
		case 3:
			q.Bits[int(at)%len(q.Bits)] ^= xor
		default:
			q.Bits = q.Bits[:int(at)%len(q.Bits)]
		}
		l, err := Open(q, src.Nodes, src.Links, starts)
		if err != nil {
			return
		}
		r := l.NewReader()
		for u := range uint32(src.Nodes) {
			list, err := r.List(u)
			var format *FormatError
			if err != nil && !errors.As(err, &format) {
				t.Fatal(err)
			}
			for _, v := range list {
				if int64(v) >= src.Nodes {
					t.Fatalf("page %d links to page %d of %d", u, v, src.Nodes)
				}
			}
		}
	})
}
