package share_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/freshet/freshet/index/files"
	"github.com/freshet/freshet/index/query"
	"github.com/freshet/freshet/internal/shareservers"
	"github.com/freshet/freshet/share"
	"github.com/freshet/freshet/share/part"
)

// Over every real server: a scan finds all files, reads a song's tag by a few
// blocks, and leaves links that the server follows; the next scan finds nothing
// changed; what is deleted is removed, what is sealed is kept; and "Madonna Music"
// finds song_01.mp3.
func TestScanOfServers(t *testing.T) {
	t.Parallel()
	song := song(t)
	for _, start := range shareservers.All() {
		t.Run("server", func(t *testing.T) {
			t.Parallel()
			root := shareservers.Reachable(t)
			b, err := os.ReadFile(song)
			if err != nil {
				t.Fatal(err)
			}
			shareservers.Write(t, filepath.Join(root, "in", "song_01.mp3"), string(b))
			shareservers.Write(t, filepath.Join(root, "Музыка", "žąsys", "песня & 100%.txt"), "labas")
			for _, n := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
				shareservers.Write(t, filepath.Join(root, "many", n, n+".txt"), n)
			}
			old := time.Now().Add(-400 * 24 * time.Hour)
			if err := os.Chtimes(filepath.Join(root, "many", "a", "a.txt"), old, old); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("..", filepath.Join(root, "many", "loop")); err != nil {
				t.Fatal(err)
			}
			s := start(t, root)
			index, err := files.Open(filepath.Join(t.TempDir(), "names"), files.Config{})
			if err != nil {
				t.Fatal(err)
			}
			defer index.Close()
			r, names := robot(t, open(t), index, share.Config{Media: true, Bound: part.Bound{Bytes: 1_000}, Source: s.Options}, s.URL)
			c := sweep(t, r, names)
			got := found(t, index, "")
			if !slices.Contains(got, "in/song_01.mp3") || !slices.Contains(got, "Музыка/žąsys/песня & 100%.txt") || len(got) < 10 || len(got) > 60 {
				t.Fatalf("%s: found %q, errors %v", s.Name, got, c.Errors)
			}
			if c.Bytes > 64<<10+int64(len(b)) || c.TagReads < 10 {
				t.Errorf("%s: %d bytes of %d files read", s.Name, c.Bytes, c.TagReads)
			}
			if got := found(t, index, "Madonna Music"); len(got) == 0 || !strings.HasSuffix(got[0], "in/song_01.mp3") {
				t.Errorf("%s: Madonna Music finds %q", s.Name, got)
			}
			again := sweep(t, r, names)
			if again.PartChanges != 0 || again.TagReads != 0 || again.Added+again.Changed+again.Removed != 0 {
				t.Errorf("%s: unchanged: %+v", s.Name, again)
			}
			if err := os.RemoveAll(filepath.Join(root, "many", "c")); err != nil {
				t.Fatal(err)
			}
			sweep(t, r, names)
			if got := found(t, index, "c.txt"); slices.ContainsFunc(got, func(p string) bool { return strings.HasSuffix(p, "many/c/c.txt") }) {
				t.Errorf("%s: deleted, and still found: %q", s.Name, got)
			}
			if s.Name == "file" || s.Name == "sftp" {
				return // as root: nothing is denied
			}
			if err := os.Chmod(filepath.Join(root, "in"), 0o700); err != nil {
				t.Fatal(err)
			}
			if c := sweep(t, r, names); s.Name != "http (Apache)" && (c.Errors["denied"] == 0 || len(found(t, index, "Madonna")) == 0) {
				t.Errorf("%s: a sealed folder: errors %v, found %q", s.Name, c.Errors, found(t, index, "Madonna"))
			}
		})
	}
}

// song makes a song of a second whose tag alone tells what it is.
func song(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("ffmpeg"); err != nil {
		if os.Getenv("CI") == "" {
			t.Skip("ffmpeg is not installed")
		}
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "song.mp3")
	out, err := exec.Command("ffmpeg", "-nostdin", "-loglevel", "error", "-f", "lavfi", "-i", "sine=duration=1", "-metadata", "title=Music", "-metadata", "artist=Madonna", path).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

func found(t *testing.T, x *files.Index, q string) []string {
	t.Helper()
	r, err := x.Search(t.Context(), query.Parse(q, time.Now()), files.Options{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, h := range r.Hits {
		for _, c := range h.Copies {
			out = append(out, c.Path)
		}
	}
	return out
}
