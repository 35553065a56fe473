package archive

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/freshet/freshet/internal/rng"
)

// program returns the path of a program; without it the test is skipped, but in
// CI it fails.
func program(t *testing.T, name string) string {
	t.Helper()
	p, err := exec.LookPath(name)
	if err == nil {
		return p
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("%s is not installed (libarchive-tools)", name)
	}
	t.Skipf("%s is not installed", name)
	return ""
}

// Other people's programs find the same in our files: gzip unpacks all members,
// and bsdtar (libarchive) finds every record and every byte of every body.
//
// libarchive 3.6 reads WARC up to version 1.0, so that its copy says so, and
// loses its place when a body lies across two of its buffers, so that the copy
// is less than one buffer.
func TestBsdtarReadsRecords(t *testing.T) {
	t.Parallel()
	bsdtar := program(t, "bsdtar")
	for _, how := range []Packing{Fast, Small, Plain} {
		t.Run(string(how), func(t *testing.T) {
			t.Parallel()
			dir, want := t.TempDir(), map[string][]byte{}
			w := open(t, dir, 0, how)
			r := rng.New(1, "bsdtar", 0)
			for i := range 150 {
				x := exchange(i)
				x.Rendered = i%10 == 9
				x.Body = make([]byte, r.IntN(20_000))
				for j := range x.Body {
					x.Body[j] = byte(r.IntN(1 + 255*(i%2)))
				}
				x.Body = append(x.Body, "\r\n\r\nWARC/1.0\r\nWARC-Type: response\r\nContent-Length: 5\r\n\r\n"...)
				if i == 0 {
					x.Body = nil
				}
				if _, err := w.Write(x); err != nil {
					t.Fatal(err)
				}
				want[fmt.Sprint(i)] = x.Body
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			got := extractWith(t, bsdtar, dir, how)
			if len(got) != len(want) {
				t.Errorf("bsdtar finds %d records of %d", len(got), len(want))
			}
			for name, block := range got {
				body := block
				if !bytes.Equal(body, want[name]) { // a response, with its head
					_, body, _ = bytes.Cut(block, []byte("\r\n\r\n"))
				}
				if !bytes.Equal(body, want[name]) {
					t.Errorf("record %s: bsdtar has a body of %d bytes, not the %d that were written", name, len(body), len(want[name]))
				}
			}
		})
	}
}

// extractWith unpacks the one WARC file in dir and returns its records by the
// path of their URL.
func extractWith(t *testing.T, bsdtar, dir string, how Packing) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.warc*"))
	if err != nil || len(names) != 1 {
		t.Fatalf("files %v, %v", names, err)
	}
	b, err := os.ReadFile(names[0])
	if how != Plain && err == nil {
		b, err = exec.Command(program(t, "gzip"), "-dc", names[0]).Output()
	}
	if err != nil {
		t.Fatal(err)
	}
	b = bytes.ReplaceAll(b, []byte("WARC/1.1\r\n"), []byte("WARC/1.0\r\n"))
	plain, out := filepath.Join(dir, "copy"), t.TempDir()
	if err := os.WriteFile(plain, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if msg, err := exec.Command(bsdtar, "-b", "8192", "-xf", plain, "-C", out).CombinedOutput(); err != nil {
		t.Fatalf("bsdtar: %v\n%s", err, msg)
	}
	got := map[string][]byte{}
	err = filepath.WalkDir(out, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, rerr := os.ReadFile(path)
		got[d.Name()] = b
		return errors.Join(err, rerr)
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}
