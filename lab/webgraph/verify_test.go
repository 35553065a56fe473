package webgraph

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A great graph is verified once, and again when a file of it was touched; damage
// is told with its place.
func TestVerifiedOnce(t *testing.T) {
	t.Parallel()
	g := store(t, random(1_600_000, 6), nil, Options{})
	checked := func() (told bool, err error) {
		again, err := openVerified(t.Context(), g.Dir(), 1, func(int64, int64) { told = true })
		if err == nil {
			err = again.Close()
		}
		return told, err
	}
	for i, want := range []bool{true, false, false} {
		if told, err := checked(); told != want || err != nil {
			t.Fatalf("opened time %d: verified %v, err %v", i, told, err)
		}
	}
	links := filepath.Join(g.Dir(), outLinksFile)
	f, err := os.OpenFile(links, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b [1]byte
	const at = 20 << 20
	if _, err := f.ReadAt(b[:], at); err != nil {
		t.Fatal(err)
	}
	whole := b[0]
	b[0] ^= 4
	if _, err := f.WriteAt(b[:], at); err != nil {
		t.Fatal(err)
	}
	var d *DamagedError
	if _, err := checked(); !errors.As(err, &d) || d.File != links || !strings.Contains(d.Why, "bytes 16777216 to ") {
		t.Errorf("a byte changed: %v", err)
	}
	b[0] = whole
	if _, err := f.WriteAt(b[:], at); err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{true, false} {
		if told, err := checked(); told != want || err != nil {
			t.Errorf("repaired, opened time %d: verified %v, err %v", i, told, err)
		}
	}
}

// A program that is killed while it writes leaves nothing under the name of the
// graph, and what it leaves is removed by the next that writes it.
func TestKilled(t *testing.T) {
	if dir := os.Getenv("FRESHET_TEST_KILLED"); dir != "" { // the program that is killed
		w, err := Create(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; ; i++ {
			if err := w.Append([]uint32{0}); err != nil {
				t.Fatal(err)
			}
			if i == 100_000 {
				os.Stdout.WriteString("writing\n")
				time.Sleep(time.Minute)
			}
		}
	}
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a[b") // and it takes names as they are
	child := exec.Command(os.Args[0], "-test.run", "^TestKilled$")
	child.Env = append(os.Environ(), "FRESHET_TEST_KILLED="+dir)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "writing\n" {
		t.Fatalf("%q, err %v", line, err)
	}
	other, err := Create(dir, Options{}) // while it runs its folder stays
	if err != nil {
		t.Fatal(err)
	}
	partials := func() int {
		entries, err := os.ReadDir(filepath.Dir(dir))
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	if n := partials(); n != 2 {
		t.Errorf("%d folders while two programs write", n)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after the kill: %v", err)
	}
	other.Abort()
	w, err := Create(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if n := partials(); n != 1 {
		t.Errorf("%d folders after the next began", n)
	}
	if err := errors.Join(w.Append(nil), w.Finish(t.Context())); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 5 {
		t.Errorf("the graph has %v, err %v", entries, err)
	}
}
