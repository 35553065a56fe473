package files

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/freshet/freshet/index/engine/segmentset"
	"github.com/freshet/freshet/index/query"
	"github.com/freshet/freshet/share"
	"github.com/freshet/freshet/share/media"
	"github.com/freshet/freshet/share/part"
)

// naive finds files by looking at all of them.
type naive map[string]share.File // by host and path

// texts returns the words of a file in the fields of a query.
func (n naive) texts(f *share.File, field string) (words []string) {
	folder, name := part.SplitPath(f.Path)
	in := &f.Media
	title := media.TitleOf(name, f.Size, in)
	fields := map[string]string{"name": name, "artist": in.Artist, "album": in.Album, "folder": folder, "title": in.Title + " " + in.Show + " " + name}
	if in.Show == "" {
		fields["title"] += " " + title.Show
	}
	if field != "" {
		return wordsOf(fields[field])
	}
	for _, text := range fields {
		words = append(words, wordsOf(text)...)
	}
	return append(words, wordsOf(in.Genre+" "+strings.Join(in.Actors, " "))...)
}

// word returns the files that have a word, or, if these are few, a piece.
func (n naive) word(field, word string, isPrefix bool) map[string]bool {
	exact, pieces := map[string]bool{}, map[string]bool{}
	for key, f := range n {
		for _, w := range n.texts(&f, field) {
			switch {
			case w == word, isPrefix && strings.HasPrefix(w, word):
				exact[key] = true
			case len(word) >= minPiece && strings.Contains(w, word):
				pieces[key] = true
			}
		}
	}
	if len(exact) < fewFiles {
		for key := range pieces {
			exact[key] = true
		}
	}
	return exact
}

// find returns the files that match.
func (n naive) find(q query.Node) map[string]bool {
	out := map[string]bool{}
	switch q := q.(type) {
	case query.And:
		for key := range n {
			out[key] = true
		}
		for _, c := range q {
			found := n.find(c)
			for key := range out {
				if !found[key] {
					delete(out, key)
				}
			}
		}
	case query.Or:
		for _, c := range q {
			for key := range n.find(c) {
				out[key] = true
			}
		}
	case query.Not:
		found := n.find(q.Node)
		for key := range n {
			if !found[key] {
				out[key] = true
			}
		}
	case query.Term:
		all := query.And{}
		words := wordsOf(q.Text)
		if len(words) == 1 {
			return n.word(q.Field, words[0], q.Prefix)
		}
		for i, w := range words {
			all = append(all, query.Term{Field: q.Field, Text: w, Prefix: q.Prefix && i == len(words)-1})
		}
		return n.find(all)
	default:
		for key, f := range n {
			if matchesValue(&f, q) {
				out[key] = true
			}
		}
	}
	return out
}

func matchesValue(f *share.File, q query.Node) bool {
	switch q := q.(type) {
	case query.Filter:
		switch q.Field {
		case "ext":
			return media.Ext(f.Name()) == q.Value
		case "kind":
			return string(f.Kind()) == q.Value
		case "host":
			return isHost(f.Host, q.Value)
		}
	case query.Range:
		v := float64(f.Size)
		if q.Field == "year" {
			v = float64(f.Media.Year)
		}
		return v >= q.Min && v <= q.Max && v > 0
	}
	return false
}

// modelWords have digits, so they have no other forms and no other keyboard layout.
var modelWords = strings.Fields("ab1 xab1y ab12 b12 c3po c3 zz9 zz99 qq8a aqq8 Ąž1u мир2 МИР23 1995 7z7")

func modelWord(r *rand.Rand) string { return modelWords[r.IntN(len(modelWords))] }

func modelFile(r *rand.Rand, spread int) share.File {
	f := share.File{
		Host: fmt.Sprintf("smb://h%d/s", r.IntN(3)), Size: 1 + r.Int64N(1000), Modified: now.Unix() - r.Int64N(1e7), Seen: now.Unix(),
		Path: fmt.Sprintf("%s/%s %s-%d.%s", modelWord(r), modelWord(r), modelWord(r), r.IntN(spread), []string{"mp3", "bin", "txt"}[r.IntN(3)]),
	}
	if r.IntN(3) == 0 {
		f.Path = modelWord(r) + "/" + f.Path
	}
	if r.IntN(3) == 0 {
		f.Media = media.Info{Title: modelWord(r) + " " + modelWord(r), Artist: modelWord(r), Year: 1990 + r.IntN(9)}
	}
	return f
}

func modelQuery(r *rand.Rand, depth int) string {
	word := func() string {
		w := modelWord(r)
		if runes := []rune(w); r.IntN(2) == 0 {
			w = string(runes[:1+r.IntN(len(runes))])
		}
		return w
	}
	sub := func() string { return modelQuery(r, depth-1) }
	n := 7
	if depth > 0 {
		n = 11
	}
	switch r.IntN(n) {
	case 0:
		return word() + "*"
	case 1:
		return []string{"title:", "artist:", "folder:", "name:"}[r.IntN(4)] + word()
	case 2:
		return []string{"ext:mp3", "kind:audio", "host:h1", "ext:bin", "size:>500", "year:1992..1995"}[r.IntN(6)]
	case 3:
		return word() + "." + word()
	case 7, 8:
		return sub() + " " + sub()
	case 9:
		return "(" + sub() + " OR " + sub() + ")"
	case 10:
		return sub() + " -(" + sub() + ")"
	}
	return word()
}

// modelHistory is a random history of an index and the files that it should have.
type modelHistory struct {
	t     *testing.T
	r     *rand.Rand
	dir   string
	x     *Index
	naive naive
}

func (h *modelHistory) do(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *modelHistory) open() {
	h.t.Helper()
	x, err := Open(h.dir, Config{CommitEvery: time.Hour, BufferFiles: 100})
	h.do(err)
	h.x = x
}

// change makes one random change.
func (h *modelHistory) change(spread int) {
	ctx := h.t.Context()
	switch h.r.IntN(12) {
	case 0:
		h.do(h.x.Close())
		h.open()
	case 1:
		h.do(h.x.Commit(ctx))
	case 2:
		h.do(h.x.Compact(ctx))
	case 3, 4:
		h.do(h.x.refreshFiles())
		_, err := h.x.set.MergeOnce(ctx, func(all []*segmentset.Held[*fileSegment, *view]) []*segmentset.Held[*fileSegment, *view] {
			return all[:h.r.IntN(len(all)+1)]
		})
		h.do(err)
	case 5:
		if h.r.IntN(6) == 0 {
			host := fmt.Sprintf("smb://h%d/s", h.r.IntN(3))
			h.do(h.x.Drop(ctx, host))
			for key, f := range h.naive {
				if f.Host == host {
					delete(h.naive, key)
				}
			}
		}
	default:
		h.update(spread)
	}
}

// update puts, renames and removes files of one host.
func (h *modelHistory) update(spread int) {
	var put []share.File
	var removed []string
	host := fmt.Sprintf("smb://h%d/s", h.r.IntN(3))
	seen := map[string]bool{}
	for range h.r.IntN(60) {
		f := modelFile(h.r, spread)
		f.Host = host
		if seen[f.Path] {
			continue
		}
		seen[f.Path] = true
		if h.r.IntN(4) == 0 {
			removed = append(removed, f.Path)
			delete(h.naive, host+f.Path)
			continue
		}
		put = append(put, f)
		h.naive[host+f.Path] = f
	}
	h.do(h.x.Update(h.t.Context(), host, put, removed))
}

// compare asks random queries of both.
func (h *modelHistory) compare(queries int) {
	h.t.Helper()
	for range queries {
		text := modelQuery(h.r, 2)
		q := query.Parse(text, now)
		want := h.naive.find(q)
		got := h.find(q)
		for key := range want {
			if !got[key] {
				h.t.Fatalf("%s: %s is not among %d files of %d", text, key, len(got), len(h.naive))
			}
		}
		for key := range got {
			if !want[key] {
				h.t.Fatalf("%s: %s is found and does not match; %d files do", text, key, len(want))
			}
		}
	}
}

// find returns all files that match, past the limits of a page of results.
func (h *modelHistory) find(q query.Node) map[string]bool {
	h.do(h.x.refreshFiles())
	out := map[string]bool{}
	h.do(h.x.set.Read(func(parts []*view) error {
		e := evaluation{ctx: h.t.Context(), scale: 1, options: Options{Now: now}}
		for _, v := range parts {
			e.readers = append(e.readers, newReader(v))
		}
		for i, found := range e.matchQuery(q) {
			r := e.readers[i]
			for _, doc := range found.ToArray() {
				folder := r.folderOf(doc)
				out[r.hostOf(folder)+part.JoinPath(r.pathOfFolder(folder), string(r.nameOfFile(doc)))] = true
			}
			if r.err != nil {
				return r.err
			}
		}
		return nil
	}))
	return out
}

// Whatever history an index has, it finds what a look at every file finds.
func TestAgreesWithScan(t *testing.T) {
	t.Parallel()
	for seed, spread := range []int{3, 1, 300} { // 300: words that more than fewFiles have
		t.Run(fmt.Sprint(spread), func(t *testing.T) {
			t.Parallel()
			h := &modelHistory{t: t, r: rand.New(rand.NewPCG(uint64(seed), 19)), dir: filepath.Join(t.TempDir(), "names"), naive: naive{}}
			h.open()
			for step := range 120 {
				h.change(spread)
				if step%6 == 5 {
					h.compare(12)
				}
			}
			h.do(h.x.Verify(t.Context()))
			h.do(h.x.Close())
		})
	}
}

// A page of results has the values of the files as they were written.
func TestColumns(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(4, 4))
	x := newIndex(t)
	want := map[string]share.File{}
	for range 4 {
		byHost := map[string][]share.File{}
		for range 150 {
			f := modelFile(r, 40)
			if _, ok := want[f.Host+f.Path]; !ok {
				want[f.Host+f.Path] = f
				byHost[f.Host] = append(byHost[f.Host], f)
			}
		}
		for host, list := range byHost {
			if err := x.Update(t.Context(), host, list, nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := x.refreshFiles(); err != nil {
			t.Fatal(err)
		}
	}
	for _, compact := range []bool{false, true} {
		if compact {
			if err := x.Compact(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		seen := 0
		for offset := 0; ; offset += 100 {
			res := search(t, x, "", Options{Limit: 100, Offset: offset})
			if len(res.Hits) == 0 {
				break
			}
			for _, h := range res.Hits {
				for _, c := range h.Copies {
					f, ok := want[c.Host+c.Path]
					if !ok || c.Size != f.Size || c.Modified.Unix() != f.Modified || c.Seen.Unix() != f.Seen || h.Kind != f.Kind() {
						t.Fatalf("%+v, want %+v", c, f)
					}
					seen++
				}
				best := want[h.Copies[0].Host+h.Copies[0].Path]
				if h.Media.Title != best.Media.Title || h.Media.Artist != best.Media.Artist || best.Media.Year != 0 && h.Media.Year != best.Media.Year || !slices.Equal(h.Media.Actors, best.Media.Actors) {
					t.Fatalf("tags %+v, want %+v", h.Media, best.Media)
				}
			}
		}
		if seen != len(want) {
			t.Errorf("compacted %v: %d files, want %d", compact, seen, len(want))
		}
	}
}
