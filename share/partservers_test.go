package share_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/freshet/freshet/internal/shareservers"
	"github.com/freshet/freshet/share"
	"github.com/freshet/freshet/share/part"
)

// Folders of real servers that are parts of their own are sealed, removed, become
// files, and change the case of their name: the rest of the host is scanned on, and
// the index ends with what is there and what cannot be read.
func TestFoldersOfPartsOnServers(t *testing.T) {
	t.Parallel()
	for _, start := range []shareservers.Start{shareservers.Samba, shareservers.VSFTPD, shareservers.SSHD} {
		root := shareservers.Reachable(t)
		for i := range 150 {
			shareservers.Write(t, filepath.Join(root, fmt.Sprintf("d%d/e%d/f%d.txt", i/30, i/3%10, i%3)), "x")
		}
		s := start(t, root)
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			sink := newHeard()
			r, names := robot(t, open(t), sink, share.Config{Bound: part.Bound{Bytes: 3_000, Time: time.Hour}, Source: s.Options}, s.URL)
			for range 2 {
				sweep(t, r, names)
			}
			if h := r.Status().Hosts[0]; len(sink.paths()) != 150 || h.Parts < 5 {
				t.Fatalf("%d files in %d parts, want 150 in at least 5", len(sink.paths()), h.Parts)
			}
			must(t, os.RemoveAll(filepath.Join(root, "d0")))
			must(t, os.RemoveAll(filepath.Join(root, "d1")))
			shareservers.Write(t, filepath.Join(root, "d1"), "a file now")
			must(t, os.Chmod(filepath.Join(root, "d2"), 0o700)) // root's
			must(t, os.Rename(filepath.Join(root, "d3"), filepath.Join(root, "D3")))
			shareservers.Write(t, filepath.Join(root, "d4", "new.txt"), "x")
			for range 3 {
				sweep(t, r, names)
			}
			got, h := sink.paths(), r.Status().Hosts[0]
			sealed := 30 // kept, or, read as root, there
			if !h.Online || count(got, "d0/") != 0 || count(got, "d1/") != 0 || !slices.Contains(got, "d1") || count(got, "d2/") != sealed ||
				count(got, "d3/") != 0 || count(got, "D3/") != 30 || count(got, "d4/") != 31 || len(got) != 92 {
				t.Errorf("host %+v: %d files: %s", h, len(got), strings.Join(got, " "))
			}
			if s.Name != "sftp" && h.Errors["denied"] == 0 { // sftp reads as root
				t.Errorf("errors %v, want denied counted", h.Errors)
			}
		})
	}
}
