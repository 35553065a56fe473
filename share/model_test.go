package share_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/freshet/freshet/share"
	"github.com/freshet/freshet/share/part"
)

// oddNames are names that differ in case, in normalisation, or in a byte that keys
// use (\x01), and names that URLs would change.
var oddNames = []string{"a", "A", "b", "zz", "é", "e\u0301", "é\x01e\u0301", "\xff\xfe", "Ω", "\u2126", "a b", "#?%", "-", "0", "~", "ж", "end ", "\x01"}

// pathsBelow returns the folders and files below root, links left out.
func pathsBelow(t *rapid.T, root string) (folders, files []string) {
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		switch {
		case d.IsDir():
			folders = append(folders, rel)
		case d.Type().IsRegular():
			files = append(files, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(files)
	return folders, files
}

// A local tree is changed at random: odd names, renames, links, folders that become
// files or links and back, a root that is away for a while. While the root is there,
// two sweeps later each file is in the index exactly once; while it is away, nothing
// is removed.
func TestLocalTreeModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		base, err := os.MkdirTemp(t.TempDir(), "model")
		if err != nil {
			rt.Fatal(err)
		}
		root := filepath.Join(base, "root")
		if err := os.Mkdir(root, 0o755); err != nil {
			rt.Fatal(err)
		}
		store, sink := open(t), newHeard()
		r, names := robot(t, store, sink, share.Config{Robots: 1, Bound: part.Bound{Bytes: rapid.Int64Range(600, 6000).Draw(rt, "bound"), Time: time.Hour}}, "file://"+root)
		for range rapid.IntRange(1, 4).Draw(rt, "rounds") {
			for range rapid.IntRange(1, 40).Draw(rt, "changes") {
				changeLocalTree(rt, root)
			}
			if rapid.IntRange(0, 5).Draw(rt, "away") == 0 {
				before := sink.paths()
				if err := os.Rename(root, root+".away"); err != nil {
					rt.Fatal(err)
				}
				if rapid.Bool().Draw(rt, "mount point") {
					_ = os.Mkdir(root, 0o755)
				}
				sweep(t, r, names)
				if got := sink.paths(); !slices.Equal(got, before) {
					rt.Fatalf("root away: %q, want %q", got, before)
				}
				_ = os.Remove(root)
				if err := os.Rename(root+".away", root); err != nil {
					rt.Fatal(err)
				}
			}
			for range 3 {
				sweep(t, r, names)
			}
			if _, want := pathsBelow(rt, root); !slices.Equal(sink.paths(), want) {
				rt.Fatalf("in the index %q, want %q", sink.paths(), want)
			}
		}
		_ = os.RemoveAll(base)
	})
}

// changeLocalTree makes one change somewhere below root.
func changeLocalTree(rt *rapid.T, root string) {
	folders, files := pathsBelow(rt, root)
	pick := func(of []string, label string) string {
		return filepath.Join(root, of[rapid.IntRange(0, len(of)-1).Draw(rt, label)])
	}
	name := rapid.SampledFrom(oddNames).Draw(rt, "name")
	if rapid.Bool().Draw(rt, "numbered") {
		name += fmt.Sprint(rapid.IntRange(0, 9).Draw(rt, "number"))
	}
	at := filepath.Join(pick(folders, "folder"), name)
	// Errors are changes that are not possible; what counts is the tree that results.
	switch rapid.IntRange(0, 9).Draw(rt, "change") {
	case 0, 1:
		_ = os.Mkdir(at, 0o755)
	case 2, 3, 4:
		_ = os.WriteFile(at, make([]byte, rapid.IntRange(0, 4).Draw(rt, "size")), 0o644)
	case 5:
		if len(files) > 0 {
			_ = os.Remove(pick(files, "file"))
		}
	case 6:
		if from := pick(folders, "from"); from != root {
			_ = os.Rename(from, at)
		}
	case 7:
		_ = os.Symlink("..", at)
	default: // a folder becomes a file, a link to what it was, or empty
		if from := pick(folders, "from"); from != root {
			aside := filepath.Join(filepath.Dir(root), "aside")
			_ = os.RemoveAll(aside)
			_ = os.Rename(from, aside)
			switch rapid.IntRange(0, 2).Draw(rt, "becomes") {
			case 0:
				_ = os.WriteFile(from, nil, 0o644)
			case 1:
				_ = os.Symlink(aside, from)
			case 2:
				_ = os.Mkdir(from, 0o755)
			}
		}
	}
}

// Folders of a server are denied and fail at random. What can be read is in the
// index; what is in the index is there, or below a folder that cannot be read.
func TestDeniedFoldersModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		s, clock, sink := newServer(t), newFakeClock(), newHeard()
		defer s.Close()
		cfg := share.Config{Robots: 1, Now: clock.now, Bound: part.Bound{Bytes: rapid.Int64Range(600, 6000).Draw(rt, "bound"), Time: time.Hour}}
		r, names := robot(t, open(t), sink, cfg, s.URL)
		s.put("/always/here", 0)
		for range rapid.IntRange(1, 4).Draw(rt, "rounds") {
			for range rapid.IntRange(1, 30).Draw(rt, "changes") {
				folder := "/"
				for range rapid.IntRange(0, 3).Draw(rt, "depth") {
					folder += fmt.Sprintf("d%d/", rapid.IntRange(0, 3).Draw(rt, "folder"))
				}
				switch rapid.IntRange(0, 7).Draw(rt, "change") {
				case 0:
					s.set(func() { s.sealed[folder] = folder != "/" })
				case 1:
					s.set(func() { s.broken[folder] = folder != "/" })
				case 2:
					s.set(func() { delete(s.sealed, folder); delete(s.broken, folder) })
				case 3:
					if folder != "/" {
						s.set(func() {
							for f := range s.tree {
								if strings.HasPrefix(f, folder) {
									delete(s.tree, f)
								}
							}
						})
					}
				default:
					s.put(folder+fmt.Sprintf("f%d", rapid.IntRange(0, 9).Draw(rt, "file")), 0)
				}
			}
			clock.advance(25 * time.Hour) // what was denied is asked again
			for range 3 {
				sweep(t, r, names)
			}
			if st := r.Status().Hosts[0]; !st.Online {
				rt.Fatalf("the host is offline: %+v", st)
			}
			closed := func(path string) bool {
				for f := range s.tree {
					if (s.sealed[f] || s.broken[f]) && strings.HasPrefix("/"+path, f) {
						return true
					}
				}
				return false
			}
			got := sink.paths()
			for f, list := range s.tree {
				for name := range list {
					if p := strings.TrimPrefix(f+name, "/"); !closed(p) && !slices.Contains(got, p) {
						rt.Fatalf("missing: %q", p)
					}
				}
			}
			for _, p := range got {
				i := strings.LastIndexByte("/"+p, '/') + 1
				if _, there := s.tree[("/" + p)[:i]][("/" + p)[i:]]; !there && !closed(p) {
					rt.Fatalf("too many: %q", p)
				}
			}
		}
	})
}
