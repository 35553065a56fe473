package dictionary

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

type term struct {
	text  string
	entry Entry
}

func randomTerms(r *rand.Rand, n int) []term {
	seen := map[string]bool{}
	var texts []string
	for len(texts) < n {
		b := make([]byte, r.IntN(6))
		for i := range b {
			b[i] = "abc\x00\xff"[r.IntN(5)]
		}
		if s := string(b) + fmt.Sprint(r.IntN(n)); !seen[s] {
			seen[s] = true
			texts = append(texts, s)
		}
	}
	slices.Sort(texts)
	out := make([]term, n)
	offset := uint64(0)
	for i, s := range texts {
		e := Entry{Count: 1 + r.IntN(3), HasPositions: r.IntN(2) == 0, Offset: offset}
		if e.Count == 1 {
			e.Inline = []byte(s)
			e.Length = len(s)
		} else {
			e.Length = r.IntN(1000)
			offset += uint64(e.Length)
		}
		out[i] = term{s, e}
	}
	return out
}

func build(terms []term) (blocks, index []byte) {
	var w Writer
	for _, t := range terms {
		w.Add([]byte(t.text), t.entry.Count, t.entry.HasPositions, t.entry.Offset, t.entry.Length, t.entry.Inline)
	}
	return w.Blocks(), w.Index()
}

func equal(a, b Entry) bool {
	return a.Count == b.Count && a.HasPositions == b.HasPositions && a.Offset == b.Offset && a.Length == b.Length && bytes.Equal(a.Inline, b.Inline)
}

// Every term is found with its entry, others are not, and an iterator from any
// text on gives the terms in order.
func TestDictionary(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 15, 16, 17, 400} {
		r := rand.New(rand.NewPCG(uint64(n), 1))
		terms := randomTerms(r, n)
		d, err := New(build(terms))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range terms {
			if got, ok, err := d.Get([]byte(want.text)); !ok || err != nil || !equal(got, want.entry) {
				t.Fatalf("n %d: %q gives %+v, %v, %v, want %+v", n, want.text, got, ok, err, want.entry)
			}
			if _, ok, _ := d.Get([]byte(want.text + "\x00!")); ok {
				t.Fatalf("n %d: found %q, which is not there", n, want.text+"\x00!")
			}
		}
		for range 100 {
			from := make([]byte, r.IntN(4))
			for i := range from {
				from[i] = "abc\x00\xff059"[r.IntN(8)]
			}
			i, _ := slices.BinarySearchFunc(terms, string(from), func(a term, b string) int { return bytes.Compare([]byte(a.text), []byte(b)) })
			it := d.Seek(from)
			for ; i < len(terms); i++ {
				if !it.Valid() || string(it.Term()) != terms[i].text || !equal(it.Entry(), terms[i].entry) {
					t.Fatalf("n %d from %q: term %d is %q, want %q", n, from, i, it.Term(), terms[i].text)
				}
				it.Next()
			}
			if it.Valid() || it.Err() != nil {
				t.Fatalf("n %d from %q: more terms than written, or %v", n, from, it.Err())
			}
		}
	}
}

// Whatever the bytes are, lookups and iteration end without a panic.
func FuzzDictionary(f *testing.F) {
	blocks, index := build(randomTerms(rand.New(rand.NewPCG(1, 1)), 40))
	f.Add(blocks, index, []byte("a"))
	f.Fuzz(func(_ *testing.T, blocks, index, key []byte) {
		d, err := New(blocks, index)
		if err != nil {
			return
		}
		_, _, _ = d.Get(key)
		for it := d.Seek(key); it.Valid(); it.Next() {
			_ = it.Entry()
		}
	})
}
