package part

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/freshet/freshet/share/source"
)

// tree is a host in memory: entries by folder path. Listings come in a random
// order, as hosts give them.
type tree struct {
	folders map[string][]source.Entry
	lists   int
	fail    func(path string) error
	r       *rand.Rand
}

func newTree() *tree {
	return &tree{folders: map[string][]source.Entry{"": nil}, r: rand.New(rand.NewPCG(1, 2))}
}

func (t *tree) List(_ context.Context, path string) ([]source.Entry, error) {
	t.lists++
	if t.fail != nil {
		if err := t.fail(path); err != nil {
			return nil, err
		}
	}
	list, ok := t.folders[path]
	if !ok {
		return nil, &source.Error{Op: "list", Path: path, Class: source.Gone, Err: errors.New("no such folder")}
	}
	list = slices.Clone(list)
	t.r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list, nil
}

func (t *tree) dir(path string) {
	if _, ok := t.folders[path]; ok {
		return
	}
	parent, name := SplitPath(path)
	t.dir(parent)
	t.folders[path] = nil
	t.folders[parent] = append(t.folders[parent], source.Entry{Name: name, Dir: true})
}

func (t *tree) file(path string, size int64) {
	folder, name := SplitPath(path)
	t.dir(folder)
	t.folders[folder] = append(t.folders[folder], source.Entry{Name: name, Size: size, Modified: 1})
}

func (t *tree) files() map[string]bool {
	out := map[string]bool{}
	for f, list := range t.folders {
		for _, e := range list {
			if !e.Dir && !e.Link {
				out[JoinPath(f, e.Name)] = true
			}
		}
	}
	return out
}

func (t *tree) remove(path string) {
	for f := range t.folders {
		if f == path || strings.HasPrefix(f, path+"/") {
			delete(t.folders, f)
		}
	}
	parent, name := SplitPath(path)
	t.folders[parent] = slices.DeleteFunc(t.folders[parent], func(e source.Entry) bool { return e.Name == name })
}

// still is a clock that stands: sizes are then of memory alone.
func still() time.Time { return time.Time{} }

// host keeps the parts of a tree as a robot does.
type host struct {
	tree  *tree
	bound Bound
	table Table
	sums  map[Part]Sum
	peak  int64
}

func newHost(t *tree, b Bound) *host {
	h := &host{tree: t, bound: b, sums: map[Part]Sum{}}
	h.table.Add(Part{})
	return h
}

// walk scans one part and returns the files that it holds.
func (h *host) walk(t testing.TB, p Part) (*Walk, []string) {
	var files []string
	last := ""
	w := &Walk{List: h.tree, Part: p, Inside: h.table.Inside(p), Bound: h.bound, Now: still}
	w.File = func(f *Folder, e source.Entry) error {
		key := FileKey(f.Key, e.Name)
		if key <= last {
			t.Errorf("%s: key %q comes after %q", p, key, last)
		}
		last = key
		files = append(files, JoinPath(f.Path, e.Name))
		return nil
	}
	if err := w.Run(context.Background()); err != nil {
		t.Fatalf("%s: %v", p, err)
	}
	h.peak = max(h.peak, w.Result.Peak)
	return w, files
}

// scan scans one part and cuts it anew; it returns parts to scan at once.
func (h *host) scan(t testing.TB, p Part) []Part {
	w, _ := h.walk(t, p)
	again := slices.Clone(w.Result.Orphans)
	outer, ok := h.table.Around(p)
	if w.Result.Missing {
		h.table.Remove(p)
		delete(h.sums, p)
		return again
	}
	re := h.bound.Recut(p, w.Result)
	h.sums[p] = re.Sum
	for _, n := range re.New {
		h.table.Add(n.Part)
		h.sums[n.Part] = n.Sum
	}
	if re.Merge && ok {
		h.table.Remove(p)
		h.sums[outer] = h.sums[outer].Plus(re.Sum)
		delete(h.sums, p)
		if h.bound.Load(h.sums[outer]) > 2 {
			again = append(again, outer)
		}
	}
	return again
}

// sweep scans all parts, as often as cuts and orphans ask for.
func (h *host) sweep(t testing.TB) {
	todo := h.table.All()
	for n := 0; len(todo) > 0; n++ {
		if n > 100_000 {
			t.Fatal("the cut does not come to rest")
		}
		p := todo[0]
		todo = todo[1:]
		if h.table.Has(p) {
			todo = append(h.scan(t, p), todo...)
		}
	}
}

// check verifies what must hold after a sweep: every file in exactly one part, by
// the walks and by the table; sums equal to fresh walks; sizes in [1/2, 2].
func (h *host) check(t testing.TB) {
	t.Helper()
	left := h.tree.files()
	for _, p := range h.table.All() {
		w, files := h.walk(t, p)
		if w.Result.Sum.Hash != h.sums[p].Hash || w.Result.Sum.Files != h.sums[p].Files {
			t.Errorf("%s: kept sum %+v, a walk gives %+v", p, h.sums[p], w.Result.Sum)
		}
		if load := h.bound.Load(w.Result.Sum); load > 2 || (load < 0.5 && !p.Root()) {
			t.Errorf("%s: size %.2f is not in [1/2, 2]", p, load)
		}
		for _, f := range files {
			if !left[f] {
				t.Errorf("%s: %s is in two parts or in none", p, f)
			}
			delete(left, f)
			if holder, _ := h.table.Holder(PathKey(f)); holder != p {
				t.Errorf("%s is walked in %s, held by %s", f, p, holder)
			}
		}
	}
	if len(left) > 0 {
		t.Errorf("%d files are in no part, such as %v", len(left), first(left))
	}
}

func first(m map[string]bool) string {
	for k := range m {
		return k
	}
	return ""
}

// The nasty trees: each is cut, held within the bounds, and unchanged the next time.
func TestNastyTrees(t *testing.T) {
	t.Parallel()
	small := Bound{Bytes: 20_000}
	tests := []struct {
		name  string
		bound Bound
		make  func(t *tree)
		least int // parts
	}{
		{"empty host", small, func(*tree) {}, 1},
		{"Natalie", Bound{Bytes: 1 << 20}, func(t *tree) {
			for i := range 30_000 {
				t.file(fmt.Sprintf("n%06d/only.mp3", i), 1)
			}
		}, 5},
		{"a folder of many files", small, func(t *tree) {
			for i := range 5_000 {
				t.file(fmt.Sprintf("big/f%06d.mp3", i), 1)
			}
		}, 20},
		{"right-leaning", small, func(t *tree) {
			path := ""
			for range 300 {
				for i := range 20 {
					t.file(JoinPath(path, fmt.Sprintf("A/m%03d.mp3", i)), 1)
				}
				path = JoinPath(path, "B")
				t.dir(path)
			}
		}, 20},
		{"deep path", Bound{Bytes: 1 << 20}, func(t *tree) {
			path := ""
			for range 2_000 {
				path = JoinPath(path, "d")
				t.dir(path)
			}
			t.file(path+"/bottom.txt", 1)
		}, 3},
		{"caterpillar", small, func(t *tree) {
			path := ""
			for d := range 40 {
				for i := range 100 {
					t.dir(JoinPath(path, fmt.Sprintf("side%03d", i)))
				}
				path = JoinPath(path, fmt.Sprintf("a%02d", d))
				t.dir(path)
			}
		}, 10},
		{"names that differ in case and normalisation", small, func(t *tree) {
			for _, n := range []string{"é", "e\u0301", "É", "a", "A", "ą", "a\u0328", "\xff\xfe", "x\x01y"} {
				t.file("d/"+n, 1)
				t.file(n+"/"+n, 1)
			}
		}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tr := newTree()
			tt.make(tr)
			h := newHost(tr, tt.bound)
			h.sweep(t)
			h.check(t)
			if h.table.Len() < tt.least {
				t.Errorf("%d parts, want at least %d", h.table.Len(), tt.least)
			}
			// A level that is entered may hold half a bound beside what waits.
			if limit := tt.bound.Memory() * 3 / 2; h.peak > limit {
				t.Errorf("%d bytes of names were held, want at most %d", h.peak, limit)
			}
		})
	}
}

// Names of waiting subfolders go to disk when they pass the memory: nothing is
// listed twice, and the result is the same.
func TestSpilledNames(t *testing.T) {
	t.Parallel()
	tr := newTree()
	path := ""
	for d := range 30 {
		for i := range 50 {
			tr.file(JoinPath(path, fmt.Sprintf("z%02d-%03d/x", d, i)), 1)
		}
		path = JoinPath(path, "a")
		tr.dir(path)
	}
	bound := Bound{Bytes: 1 << 30}
	large := &Walk{List: tr, Bound: bound, Now: still}
	tight := &Walk{List: tr, Bound: bound, Now: still, Memory: 2000}
	for _, w := range []*Walk{large, tight} {
		if err := w.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if tight.Result.Spilled == 0 || large.Result.Spilled != 0 || tight.Result.Listings != large.Result.Listings {
		t.Errorf("spilled %d and %d times, %d and %d listings", tight.Result.Spilled, large.Result.Spilled, tight.Result.Listings, large.Result.Listings)
	}
	if tight.Result.Sum != large.Result.Sum {
		t.Errorf("sums %+v and %+v", tight.Result.Sum, large.Result.Sum)
	}
	if tight.Result.Peak > 3000 {
		t.Errorf("%d bytes of names held, want at most 3000", tight.Result.Peak)
	}
}

// linked is a tree in which every "loop" is a link to its grandparent's root that
// the server follows, 40 times in one path.
type linked struct{ *tree }

func (l linked) List(ctx context.Context, path string) ([]source.Entry, error) {
	var realParts []string
	links := 0
	for name := range strings.SplitSeq(path, "/") {
		if strings.HasPrefix(name, "loop") {
			if links++; links > 40 {
				return nil, &source.Error{Op: "list", Path: path, Class: source.Gone, Err: errors.New("too many links")}
			}
			realParts = nil
			continue
		}
		realParts = append(realParts, name)
	}
	return l.tree.List(ctx, strings.Trim(strings.Join(realParts, "/"), "/"))
}

// Links back up that the server follows are left after two rounds.
func TestLoops(t *testing.T) {
	t.Parallel()
	tr := newTree()
	tr.file("file.txt", 1)
	tr.file("data/x.mp3", 1)
	tr.folders[""] = append(tr.folders[""], source.Entry{Name: "loop1", Dir: true}, source.Entry{Name: "loop2", Dir: true})
	tr.folders["data"] = append(tr.folders["data"], source.Entry{Name: "loop3", Dir: true}, source.Entry{Name: "link", Dir: true, Link: true})
	w := &Walk{List: linked{tr}, Now: still}
	if err := w.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if w.Result.Loops == 0 || w.Result.Listings > 1000 || w.Result.Links == 0 {
		t.Errorf("%d loops, %d links, %d listings, %d files", w.Result.Loops, w.Result.Links, w.Result.Listings, w.Result.Sum.Files)
	}
}

// A failure cuts the walk off, keeps a folder, or loses nothing, by its class.
func TestFailures(t *testing.T) {
	t.Parallel()
	newWalk := func(class source.Class) (*Walk, error) {
		tr := newTree()
		tr.file("a/x", 1)
		tr.file("b/x", 1)
		tr.file("c/x", 1)
		tr.fail = func(path string) error {
			if path == "b" {
				return &source.Error{Op: "list", Path: path, Class: class, Err: errors.New("test")}
			}
			return nil
		}
		w := &Walk{List: tr, Now: still}
		return w, w.Run(context.Background())
	}
	for _, c := range []source.Class{source.Offline, source.Refused, source.Timeout, source.Canceled} {
		if _, err := newWalk(c); source.ClassOf(err) != c {
			t.Errorf("%s: %v", c, err)
		}
	}
	for _, c := range []source.Class{source.Denied, source.Protocol} {
		if w, err := newWalk(c); err != nil || len(w.Result.Kept) != 1 || w.Result.Kept[0].Low != FolderKey("b") || w.Result.Sum.Files != 2 {
			t.Errorf("%s: %+v, %v", c, w.Result, err)
		}
	}
	// The parent lists it, so that its absence is not believed at once.
	if w, err := newWalk(source.Gone); err != nil || len(w.Result.Kept) != 1 || w.Result.Sum.Files != 2 || w.Result.Sum.Folders != 2 {
		t.Errorf("gone: %+v, %v", w.Result, err)
	}
}

// Random trees changed at random: after every round of scans each file is in
// exactly one part, sums are those of fresh walks, sizes are within the bounds; and
// a part whose hash did not change holds what it held.
func TestRandomTrees(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		tr := newTree()
		h := newHost(tr, Bound{Bytes: 4_000})
		names := rapid.SampledFrom([]string{"a", "b", "B", "Ж", "e\u0301", "é", "mm", "z z", "-", "/"[:0] + "0", "~"})
		for round := range rapid.IntRange(1, 4).Draw(rt, "rounds") {
			for range rapid.IntRange(0, 60).Draw(rt, "changes") {
				path := ""
				for range rapid.IntRange(0, 5).Draw(rt, "depth") {
					path = JoinPath(path, names.Draw(rt, "name"))
				}
				switch _, there := tr.folders[path]; {
				case rapid.IntRange(0, 9).Draw(rt, "what") == 0 && path != "" && there:
					tr.remove(path)
				default:
					for i := range rapid.IntRange(1, 8).Draw(rt, "files") {
						p := JoinPath(path, fmt.Sprintf("f%d.%d.txt", i, round))
						if !tr.files()[p] {
							tr.file(p, int64(i))
						}
					}
				}
			}
			h.sweep(t)
			h.check(t)
		}
	})
}

// The hash changes with every change of name, size or time, and with nothing else.
func TestHashTellsChanges(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		tr := newTree()
		for i := range rapid.IntRange(2, 30).Draw(rt, "files") {
			tr.file(fmt.Sprintf("d%d/f%d", rapid.IntRange(0, 5).Draw(rt, "folder"), i), int64(i))
		}
		hash := func() Hash {
			w := &Walk{List: tr, Now: still}
			if err := w.Run(context.Background()); err != nil {
				rt.Fatal(err)
			}
			return w.Result.Sum.Hash
		}
		before := hash()
		if again := hash(); again != before { // the listing order is another one
			rt.Fatal("the hash depends on the order of listings")
		}
		var folders []string
		for f, list := range tr.folders {
			if len(list) > 0 && f != "" {
				folders = append(folders, f)
			}
		}
		slices.Sort(folders)
		f := rapid.SampledFrom(folders).Draw(rt, "changed folder")
		e := &tr.folders[f][0]
		switch rapid.IntRange(0, 3).Draw(rt, "kind") {
		case 0:
			e.Size++
		case 1:
			e.Modified++
		case 2:
			e.Name += "x"
		case 3:
			tr.folders[f] = tr.folders[f][1:]
		}
		if hash() == before {
			rt.Fatal("a change left the hash as it was")
		}
	})
}

// Keys are in the order of a walk, and give their paths back.
func TestKeys(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.OneOf(rapid.StringMatching(`[^/\x00]{1,8}`), rapid.StringMatching(`[éa\x{301}\x01]{1,6}`))
		path := name.Draw(rt, "a") + "/" + name.Draw(rt, "b") + "/" + name.Draw(rt, "c")
		key := PathKey(path)
		if got := KeyPath([]byte(key)); got != path {
			rt.Fatalf("%q has key %q, which is %q", path, key, got)
		}
		if other := path[:len(path)-1] + name.Draw(rt, "other"); other != path && !strings.HasSuffix(other, "/") && PathKey(other) == key {
			rt.Fatalf("%q and %q have one key %q", path, other, key)
		}
		folder, _ := SplitPath(path)
		low, high := Part{Folder: folder}.Range()
		if key < low || key >= high {
			rt.Fatalf("%q is not in [%q, %q)", key, low, high)
		}
	})
}

func BenchmarkWalk(b *testing.B) {
	tr := newTree()
	for d := range 1000 {
		for f := range 20 {
			tr.file(fmt.Sprintf("dir%04d/file%02d.mp3", d, f), int64(f))
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		w := &Walk{List: tr}
		if err := w.Run(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(20_000*b.N)/b.Elapsed().Seconds(), "files/s")
}
