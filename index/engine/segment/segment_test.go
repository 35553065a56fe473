package segment

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zeebo/xxh3"

	"github.com/freshet/freshet/index/engine/bm25"
	"github.com/freshet/freshet/index/engine/postings"
)

var reference = bm25.Averages{Title: 5, URL: 5, Body: 100}

// sample is what a test segment holds.
type sample struct {
	documents []Document
	texts     []Text
	lists     map[string][]uint32
}

func newSample(n int) *sample {
	r := rand.New(rand.NewPCG(uint64(n), 2))
	s := &sample{lists: map[string][]uint32{}}
	for i := range n {
		s.documents = append(s.documents, Document{
			ID: fmt.Sprintf("http://h/%d", i), Host: fmt.Sprintf("h%d", i%300), Type: "html", Lang: []string{"", "en"}[i%2], Kind: "web",
			Date: -int64(i), Size: int64(i) << 33, Popularity: uint8(i), Lengths: bm25.PackLengths(i%9, 3, i), TitleEnd: uint16(i), URLEnd: uint16(2 * i),
		})
		s.texts = append(s.texts, Text{Title: fmt.Sprint("title ", i), Same: fmt.Sprint(i % 3), Body: strings.Repeat(fmt.Sprint("word", r.IntN(1000), " "), r.IntN(2000))})
		for _, term := range []string{"all", fmt.Sprint("mod", i%7), fmt.Sprint("one", i)} {
			s.lists[term] = append(s.lists[term], uint32(i))
		}
	}
	return s
}

func (s *sample) write(t testing.TB, path string) *Segment {
	t.Helper()
	w, err := Create(path, reference, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range s.documents {
		if err := w.AddText(s.texts[i]); err != nil {
			t.Fatal(err)
		}
		w.AddDocument(d)
	}
	if err := w.BeginTerms(); err != nil {
		t.Fatal(err)
	}
	terms := make([]string, 0, len(s.lists))
	for term := range s.lists {
		terms = append(terms, term)
	}
	slices.Sort(terms)
	for _, term := range terms {
		l := w.BeginTerm(true)
		for _, doc := range s.lists[term] {
			l.Add(doc, postings.PackCode(2, 0, 0), []uint32{doc, doc + 3})
		}
		if err := w.EndTerm([]byte(term), true); err != nil {
			t.Fatal(err)
		}
	}
	seg, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return seg
}

// What is written is read back, after a reopening too.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 300, 1000} {
		want := newSample(n)
		path := filepath.Join(t.TempDir(), "s")
		if err := want.write(t, path).Close(); err != nil {
			t.Fatal(err)
		}
		s, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if err := s.Verify(); err != nil {
			t.Fatal(err)
		}
		if s.Len() != n || s.Reference() != reference || s.Terms().Len() != len(want.lists) {
			t.Fatalf("n %d: %d documents, reference %v, %d terms", n, s.Len(), s.Reference(), s.Terms().Len())
		}
		for i, d := range want.documents {
			if got := s.Document(uint32(i)); got != d {
				t.Fatalf("n %d: document %d is %+v, want %+v", n, i, got, d)
			}
			if got, err := s.Text(uint32(i)); err != nil || got != want.texts[i] {
				t.Fatalf("n %d: text of %d differs, %v", n, i, err)
			}
			if got, ok := s.Find(d.ID); !ok || got != uint32(i) {
				t.Fatalf("n %d: %s is document %d, %v", n, d.ID, got, ok)
			}
		}
		if _, ok := s.Find("http://h/none"); ok {
			t.Error("found what is not there")
		}
		for term, docs := range want.lists {
			l, err := s.Lookup([]byte(term))
			if err != nil {
				t.Fatal(err)
			}
			var c postings.Cursor
			var got []uint32
			for c.Open(&l); c.Doc() != postings.End; c.Next() {
				got = append(got, c.Doc())
				if p := c.Positions(); !slices.Equal(p, []uint32{c.Doc(), c.Doc() + 3}) {
					t.Fatalf("%s: positions %v in %d", term, p, c.Doc())
				}
			}
			if !slices.Equal(got, docs) {
				t.Fatalf("%s: %v, want %v", term, got, docs)
			}
		}
	}
}

// A file that another version wrote is told from a damaged one.
func TestVersion(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	s := newSample(3).write(t, path)
	b := slices.Clone(s.file)
	_ = s.Close()
	tail := len(b) - trailerSize
	b[tail] = Version + 1
	table := int(sectionsEnd-1) * entrySize
	b = appendSum(b[tail-table : len(b)-8])
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(whole[:tail-table], b...), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); !errors.Is(err, ErrVersion) {
		t.Errorf("other version: %v", err)
	}
}

// The file stays mapped and on disk until its last user has released it.
func TestRemoveAfterUse(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	s := newSample(5).write(t, path)
	s.Acquire()
	s.RemoveAfterUse()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if d := s.Document(4); d.ID != "http://h/4" {
		t.Errorf("document %+v after Close", d)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("removed too early: %v", err)
	}
	s.Release()
	if _, err := os.Stat(path); err == nil {
		t.Error("the file is still there")
	}
}

// FuzzSections changes bytes of a section and makes all checksums right again,
// so that every reader meets the damage: none may panic.
func FuzzSections(f *testing.F) {
	path := filepath.Join(f.TempDir(), "s")
	s := newSample(40).write(f, path)
	whole := slices.Clone(s.file)
	_ = s.Close()
	for k := Texts; k < sectionsEnd; k++ {
		f.Add(uint8(k), uint16(0), []byte{0xff})
		f.Add(uint8(k), uint16(9), []byte{0, 0, 0, 0x80})
	}
	f.Fuzz(func(t *testing.T, kind uint8, at uint16, change []byte) {
		b := slices.Clone(whole)
		_, table, err := readTrailer(b)
		if err != nil {
			t.Fatal(err)
		}
		tail := len(b) - trailerSize - len(table)*entrySize
		for i := range table {
			e := &table[i]
			if e.kind != Kind(kind) || e.length == 0 {
				continue
			}
			section := b[e.offset : e.offset+e.length]
			copy(section[int(at)%len(section):], change)
			e.sum = xxh3.Hash(section)
			copy(b[tail+i*entrySize:], e.appendSection(nil))
		}
		copy(b[len(b)-8:], appendSum(slices.Clone(b[tail : len(b)-8]))[len(b)-8-tail:])
		s := &Segment{File: &File{file: b}}
		if s.File.openFile(Pages) != nil || s.openSections() != nil {
			return
		}
		_ = s.Verify()
		for doc := range uint32(s.Len()) {
			_, _ = s.Text(doc)
			_ = s.Document(doc)
			_, _ = s.Find(s.ID(doc))
		}
		_ = s.ForEachText(func(uint32, Text) error { return nil })
		for it := s.Terms().Seek(nil); it.Valid(); it.Next() {
			l, err := s.List(it.Entry())
			if err != nil {
				continue
			}
			var c postings.Cursor
			steps := 0
			for c.Open(&l); c.Doc() != postings.End && steps < 10_000; c.Next() {
				steps += 1 + len(c.Positions())
			}
		}
	})
}

// FuzzOpen changes a file without repairing checksums: Open and Verify say so.
func FuzzOpen(f *testing.F) {
	s := newSample(9).write(f, filepath.Join(f.TempDir(), "s"))
	whole := slices.Clone(s.file)
	_ = s.Close()
	f.Add(uint32(0), byte(1))
	f.Add(uint32(len(whole)-1), byte(0x80))
	f.Fuzz(func(t *testing.T, at uint32, change byte) {
		b := slices.Clone(whole)
		b[int(at)%len(b)] ^= change
		s := &Segment{File: &File{file: b}}
		err := s.File.openFile(Pages)
		if err == nil {
			err = s.openSections()
		}
		if err == nil {
			err = s.Verify()
		}
		if (err == nil) != (change == 0) {
			t.Errorf("byte %d changed by %x: %v", at, change, err)
		}
	})
}
