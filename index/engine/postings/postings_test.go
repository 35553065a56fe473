package postings

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// posting is one document of a naive list.
type posting struct {
	doc, code uint32
	positions []uint32
}

func randomPostings(r *rand.Rand, n int) []posting {
	out := make([]posting, n)
	doc := uint32(r.IntN(1000))
	spread := 1 + r.IntN(1<<r.IntN(16))
	for i := range out {
		total := 1 + r.IntN(3)
		if r.IntN(20) == 0 {
			total = 1 + r.IntN(500)
		}
		title := min(total, r.IntN(5)*r.IntN(2))
		url := min(total-title, r.IntN(2))
		out[i] = posting{doc: doc, code: PackCode(uint32(total), uint32(title), uint32(url))}
		at := uint32(0)
		for range total {
			at += 1 + uint32(r.IntN(1<<r.IntN(12)))
			out[i].positions = append(out[i].positions, at)
		}
		doc += 1 + uint32(r.IntN(spread))
	}
	return out
}

func impactOf(doc, code uint32) uint16 { return uint16((doc*7 + code) % 50_000) }

func write(all []posting, hasPositions bool) List {
	w := Writer{ImpactOf: impactOf}
	w.Begin(hasPositions)
	for _, p := range all {
		w.Add(p.doc, p.code, p.positions)
	}
	data, form := w.Finish(nil)
	return NewList(data, len(all), form, hasPositions)
}

func read(t *testing.T, l *List) []posting {
	t.Helper()
	var c Cursor
	var out []posting
	for c.Open(l); c.Doc() != End; c.Next() {
		out = append(out, posting{c.Doc(), c.Code(), slices.Clone(c.Positions())})
	}
	if c.Err() != nil {
		t.Fatal(c.Err())
	}
	return out
}

func same(a, b posting, positions bool) bool {
	return a.doc == b.doc && a.code == b.code && (!positions || slices.Equal(a.positions, b.positions))
}

var lengths = []int{1, 2, 15, 16, 17, 127, 128, 129, 255, 256, 257, 1000, 5000}

// What is written is read back, from the beginning, by seeking and as bits.
func TestListRoundTrip(t *testing.T) {
	t.Parallel()
	for _, n := range lengths {
		for seed := range uint64(8) {
			r := rand.New(rand.NewPCG(seed, uint64(n)))
			all := randomPostings(r, n)
			l := write(all, seed%2 == 0)
			if got := read(t, &l); !slices.EqualFunc(got, all, func(a, b posting) bool { return same(a, b, l.hasPositions) }) {
				t.Fatalf("n %d seed %d: read differs from written", n, seed)
			}
			checkSeek(t, r, &l, all)
			checkBits(t, r, &l, all)
		}
	}
}

func checkSeek(t *testing.T, r *rand.Rand, l *List, all []posting) {
	t.Helper()
	var c Cursor
	c.Open(l)
	target := uint32(0)
	for i := 0; i < len(all); {
		target = max(target, all[i].doc-min(all[i].doc, uint32(r.IntN(100))))
		impact, end := c.Bound(target)
		for _, p := range all {
			if p.doc >= target && p.doc <= end && impact < impactOf(p.doc, p.code) && c.list.form != inlineForm {
				t.Fatalf("impact of %d is %d, above the bound %d of [%d,%d]", p.doc, impactOf(p.doc, p.code), impact, target, end)
			}
		}
		i, _ = slices.BinarySearchFunc(all, target, func(p posting, d uint32) int { return int(int64(p.doc) - int64(d)) })
		got := c.Seek(target)
		if got != all[i].doc || c.Code() != all[i].code {
			t.Fatalf("seek %d gives %d, want %d", target, got, all[i].doc)
		}
		if l.hasPositions && !slices.Equal(c.Positions(), all[i].positions) {
			t.Fatalf("positions of %d are %v, want %v", got, c.Positions(), all[i].positions)
		}
		i += 1 + r.IntN(1<<r.IntN(10))
	}
	if got := c.Seek(all[len(all)-1].doc + 1); got != End {
		t.Fatalf("seek behind the end gives %d", got)
	}
}

func checkBits(t *testing.T, r *rand.Rand, l *List, all []posting) {
	t.Helper()
	var c Cursor
	c.Open(l)
	i := 0
	for base := uint32(0); base <= all[len(all)-1].doc; base += 4096 * uint32(1+r.IntN(3)) {
		bits := make([]uint64, 64)
		c.FillBits(base, bits)
		for ; i < len(all) && all[i].doc < base; i++ {
		}
		want := make([]uint64, 64)
		for ; i < len(all) && all[i].doc < base+4096; i++ {
			want[(all[i].doc-base)>>6] |= 1 << ((all[i].doc - base) & 63)
		}
		if !slices.Equal(bits, want) {
			t.Fatalf("bits of the window at %d differ", base)
		}
	}
}

// Lists appended to each other are the list of all documents, shifted.
func TestAddList(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		w := Writer{ImpactOf: impactOf}
		w.Begin(true)
		var want []posting
		shift := uint32(0)
		for range 1 + r.IntN(5) {
			all := randomPostings(r, lengths[r.IntN(len(lengths))])
			l := write(all, true)
			if r.IntN(3) == 0 { // a merged list is merged again
				again := Writer{ImpactOf: impactOf}
				again.Begin(true)
				again.AddList(&l, 0)
				data, form := again.Finish(nil)
				l = NewList(data, len(all), form, true)
			}
			if !w.AddList(&l, shift) {
				t.Fatal("a list was taken for damaged")
			}
			for _, p := range all {
				p.doc += shift
				want = append(want, p)
			}
			shift = want[len(want)-1].doc + 1
		}
		data, form := w.Finish(nil)
		l := NewList(data, w.Count(), form, true)
		if w.Count() != len(want) {
			t.Fatalf("seed %d: %d documents, want %d", seed, w.Count(), len(want))
		}
		if got := read(t, &l); !slices.EqualFunc(got, want, func(a, b posting) bool { return same(a, b, true) }) {
			t.Fatalf("seed %d: merged list differs", seed)
		}
	}
}

func TestCodes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ total, title, url, wantTitle, wantURL uint32 }{
		{1, 0, 0, 0, 0}, {100_000, 0, 0, 0, 0}, {1, 1, 0, 1, 0}, {7, 5, 2, 3, 2}, {9, 0, 9, 0, 3},
	} {
		total, title, url := UnpackCode(PackCode(tt.total, tt.title, tt.url))
		if total != tt.total || title != tt.wantTitle || url != tt.wantURL {
			t.Errorf("%+v: got %d, %d, %d", tt, total, title, url)
		}
	}
	if got, want := AddCodes(PackCode(2, 1, 0), PackCode(5, 0, 0)), PackCode(7, 1, 0); got != want {
		t.Errorf("sum %d, want %d", got, want)
	}
}

// Blocks of every width and length are read back, at the very end of the data too.
func FuzzBlock(f *testing.F) {
	f.Add([]byte{1, 2, 3}, uint8(3), uint8(7))
	f.Add(make([]byte, 600), uint8(128), uint8(31))
	f.Fuzz(func(t *testing.T, raw []byte, n, width uint8) {
		count := min(int(n), BlockSize)
		values := make([]uint32, count)
		r := rand.New(rand.NewPCG(uint64(len(raw)), uint64(width)))
		for i := range values {
			values[i] = r.Uint32() >> (width % 32)
			if len(raw) > 0 && raw[i%len(raw)]&1 == 0 {
				values[i] &= 15
			}
		}
		data := AppendBlock(nil, values)
		var got [BlockSize]uint32
		if size := DecodeBlock(data, &got, count); size != len(data) || !slices.Equal(got[:count], values) {
			t.Fatalf("size %d of %d, %v, want %v", size, len(data), got[:count], values)
		}
		if size := blockLength(data, count); size != len(data) {
			t.Fatalf("length %d, want %d", size, len(data))
		}
		DecodeBlock(raw, &got, count) // must not panic
	})
}

// Whatever the bytes are, a cursor ends.
func FuzzCursor(f *testing.F) {
	for i, n := range []int{1, 20, 300} {
		l := write(randomPostings(rand.New(rand.NewPCG(1, uint64(i))), n), true)
		f.Add(l.data, n, uint8(l.form), uint32(50))
	}
	f.Fuzz(func(t *testing.T, data []byte, count int, form uint8, target uint32) {
		l := NewList(data, count, Form(form%3), true)
		var c Cursor
		steps := 0
		for c.Open(&l); c.Doc() != End && steps < 100; c.Next() {
			c.Code()
			c.Positions()
			steps++
		}
		c.Open(&l)
		c.Bound(target)
		c.Seek(target)
		c.Open(&l)
		c.FillBits(target, make([]uint64, 4))
		w := Writer{ImpactOf: impactOf}
		w.Begin(true)
		if steps < 100 {
			w.AddList(&l, 1)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	for _, width := range []int{3, 7, 12, 20} {
		b.Run(fmt.Sprint(width), func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 1))
			values := make([]uint32, BlockSize)
			for i := range values {
				values[i] = r.Uint32() >> (32 - width)
			}
			data := append(AppendBlock(nil, values), make([]byte, 8)...)
			var out [BlockSize]uint32
			for range b.N {
				DecodeBlock(data, &out, BlockSize)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/BlockSize, "ns/value")
		})
	}
}

// The width is the one with the shortest code.
func TestChooseWidth(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 3))
	for range 500 {
		values := make([]uint32, varintLimit+r.IntN(BlockSize-varintLimit+1))
		for i := range values {
			values[i] = r.Uint32() >> min(31, r.IntN(40))
		}
		best := -1
		for w := range 33 {
			size := (len(values) + groupSize - 1) / groupSize * w
			for _, v := range values {
				if high := uint64(v) >> w; high != 0 {
					size += 1 + len(binary.AppendUvarint(nil, high))
				}
			}
			if best < 0 || size < best {
				best = size
			}
		}
		if got := len(AppendBlock(nil, values)) - 2; got != best {
			t.Fatalf("%d bytes for %v, the shortest code has %d", got, values, best)
		}
	}
}
