package files

import (
	"bytes"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/freshet/freshet/index/engine/segment"
	"github.com/freshet/freshet/index/engine/segmentset"
	"github.com/freshet/freshet/index/query"
	"github.com/freshet/freshet/share"
)

// sampleFiles are files for a small segment.
func sampleFiles(n int) []*share.File {
	r := rand.New(rand.NewPCG(1, 8))
	byPath := map[string]*share.File{}
	for range n {
		f := modelFile(r, 30)
		byPath[f.Host+f.Path] = &f
	}
	var out []*share.File
	for _, f := range byPath {
		out = append(out, f)
	}
	return out
}

// stateOf is the state of a segment of which nothing is deleted.
func stateOf(s *fileSegment) segmentset.State { return segmentset.State{Docs: s.Len()} }

// rewrite copies a segment, with one section changed, to a file with right checksums.
func rewrite(t *testing.T, s *fileSegment, path string, kind segment.Kind, change func([]byte) []byte) *segment.File {
	t.Helper()
	w, err := segment.CreateFile(path, segment.Names, nil)
	if err != nil {
		t.Fatal(err)
	}
	for k := hostSection; k <= tagRecords; k++ {
		b := bytes.Clone(s.Section(k))
		if k == kind {
			b = change(b)
		}
		if err := w.WriteSection(k, b); err != nil {
			t.Fatal(err)
		}
	}
	w.BeginTerms()
	for it := s.Terms().Seek(nil); it.Valid(); it.Next() {
		list, err := s.List(it.Entry())
		if err != nil {
			t.Fatal(err)
		}
		if !w.BeginTerm(false).AddList(&list, 0) {
			t.Fatal("list")
		}
		if err := w.EndTerm(it.Term(), false); err != nil {
			t.Fatal(err)
		}
	}
	f, err := w.FinishFile(s.Len())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Whatever bytes a section has, a segment is refused, or searches and merges of it
// end with or without an error, and without a panic.
func FuzzSections(f *testing.F) {
	s, err := buildSegment(filepath.Join(f.TempDir(), "s"), sortFiles(sampleFiles(200)))
	if err != nil {
		f.Fatal(err)
	}
	defer s.Close()
	for k := hostSection; k <= tagRecords; k++ {
		f.Add(uint8(k-hostSection), uint16(3), []byte{0xff}, uint8(0))
		f.Add(uint8(k-hostSection), uint16(40), []byte{0, 0xff, 0x7f}, uint8(9))
	}
	f.Fuzz(func(t *testing.T, k uint8, at uint16, change []byte, cut uint8) {
		kind := hostSection + segment.Kind(k)%(tagRecords-hostSection+1)
		file := rewrite(t, s, filepath.Join(t.TempDir(), "s"), kind, func(b []byte) []byte {
			if len(b) > 0 {
				copy(b[int(at)%len(b):], change)
			}
			return b[:len(b)-min(int(cut), len(b))]
		})
		damaged, err := newSegment(file)
		if err != nil {
			return
		}
		defer damaged.Close()
		v := newView(damaged, stateOf(damaged))
		for _, q := range []string{"", "ab1", "b12 zz", "title:c3po -x", "folder:ab1", `"ab1 b12"`, "year:1990..", "host:h1"} {
			e := evaluation{ctx: t.Context(), scale: 1, readers: []*reader{newReader(v)}, options: Options{Limit: 100, Facets: true, Now: now}}
			_ = e.runQuery(query.Parse(q, now), &Results{})
		}
		_ = newReader(v).verifyFiles(t.Context())
		l := newLocator(damaged, "smb://h1/s")
		_, _, _ = l.findFile("ab1", "x")
		m := &merger{ctx: t.Context()}
		if m.writer, err = segment.CreateFile(filepath.Join(t.TempDir(), "m"), segment.Names, nil); err != nil {
			t.Fatal(err)
		}
		_ = m.runMerge([]*view{v, newView(s, stateOf(s))})
		_ = m.writer.Abort()
	})
}
