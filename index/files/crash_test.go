package files

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/freshet/freshet/index/engine/segmentset"
	"github.com/freshet/freshet/index/query"
	"github.com/freshet/freshet/share"
	"github.com/freshet/freshet/share/state"
)

// crashDir is the environment variable that makes this test binary a writer.
const crashDir = "FRESHET_FILES_CRASH_DIR"

// openBoth opens a store with the index that follows it.
func openBoth(t *testing.T, dir string, c Config) (*state.Store, *Index) {
	t.Helper()
	s, err := state.Open(filepath.Join(dir, "shares"), state.Config{Journal: true})
	if err != nil {
		t.Fatal(err)
	}
	x, err := Open(filepath.Join(dir, "names"), c)
	if err != nil {
		t.Fatal(errors.Join(err, s.Close()))
	}
	if err := x.Follow(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	return s, x
}

// changeStore makes one random change of the store, and tells the index.
func changeStore(t *testing.T, r *rand.Rand, s *state.Store, x *Index) {
	t.Helper()
	ctx := t.Context()
	f := modelFile(r, 50)
	batch := share.Batch{Host: f.Host}
	var err error
	switch r.IntN(12) {
	case 0:
		err = errors.Join(s.DropHost(ctx, f.Host), x.Drop(ctx, f.Host))
	case 1: // a change of which the index is not told, as in a crash
		batch.Put = []share.File{f}
		err = errors.Join(s.PutHost(ctx, share.Host{Name: f.Host}), s.Commit(ctx, batch))
	default:
		for range r.IntN(30) {
			g := modelFile(r, 50)
			if g.Host = f.Host; r.IntN(3) == 0 {
				batch.Delete = append(batch.Delete, g.Path)
			} else {
				batch.Put = append(batch.Put, g)
			}
		}
		if err = errors.Join(s.PutHost(ctx, share.Host{Name: f.Host}), s.Commit(ctx, batch)); err == nil && len(batch.Put)+len(batch.Delete) > 0 {
			err = x.Update(ctx, f.Host, batch.Put, batch.Delete)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// checkInStep compares the files of index and store.
func checkInStep(t *testing.T, s *state.Store, x *Index) int {
	t.Helper()
	want := map[string]bool{}
	hosts, err := s.Hosts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range hosts {
		err := s.Files(t.Context(), host.Name, "", "", func(_ string, f *share.File) error {
			want[fmt.Sprint(host.Name, f.Path, f.Size)] = true
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	got := 0
	for offset := 0; ; offset += 1000 {
		r, err := x.Search(t.Context(), query.And(nil), Options{Limit: 1000, Offset: offset, Now: now})
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range r.Hits {
			for _, c := range h.Copies {
				if got++; !want[fmt.Sprint(c.Host, c.Path, c.Size)] {
					t.Fatalf("the index has %s of %s, %d bytes, the store has not", c.Path, c.Host, c.Size)
				}
			}
		}
		if len(r.Hits) == 0 {
			break
		}
	}
	if got != len(want) {
		t.Fatalf("%d files in the index, %d in the store", got, len(want))
	}
	if err := x.Verify(t.Context()); err != nil {
		t.Fatal(err)
	}
	return got
}

// TestCrashWriter is not a test: TestKilled runs it in a process of its own and
// kills it.
func TestCrashWriter(t *testing.T) {
	dir := os.Getenv(crashDir)
	if dir == "" {
		t.Skip("run by TestKilled")
	}
	s, x := openBoth(t, dir, Config{CommitEvery: 5 * time.Millisecond, BufferFiles: 60})
	r := rand.New(rand.NewPCG(uint64(os.Getpid()), 1))
	for n := 0; ; n++ {
		changeStore(t, r, s, x)
		if n%5 == 0 {
			_, err := x.set.MergeOnce(t.Context(), func(all []*segmentset.Held[*fileSegment, *view]) []*segmentset.Held[*fileSegment, *view] { return all })
			if err != nil {
				t.Fatal(err)
			}
		}
		fmt.Println(n)
	}
}

// A process that is killed while it writes, merges and commits leaves an index
// that the journal of the store brings in step, without reading all files again.
func TestKilled(t *testing.T) {
	t.Parallel()
	rounds := 8
	if testing.Short() {
		rounds = 3
	}
	r := rand.New(rand.NewPCG(2, 3))
	dir := t.TempDir()
	files := 0
	for range rounds {
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCrashWriter$", "-test.v")
		c.Env = append(os.Environ(), crashDir+"="+dir)
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n, end := 0, 20+r.IntN(120); n < end && lines.Scan(); n++ {
		}
		_ = c.Process.Kill()
		_ = c.Wait()
		s, x := openBoth(t, dir, Config{})
		files = max(files, checkInStep(t, s, x))
		if err := errors.Join(x.Close(), s.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if files == 0 {
		t.Error("the writer wrote nothing")
	}
}

// An index that is removed, damaged, older than the journal or of another store is
// filled from the store.
func TestFollow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(7, 7))
	s, x := openBoth(t, dir, Config{})
	work := func() {
		for range 30 {
			changeStore(t, r, s, x)
		}
	}
	work()
	reopen := func(change func()) {
		t.Helper()
		if err := errors.Join(x.Close(), s.Close()); err != nil {
			t.Fatal(err)
		}
		change()
		s, x = openBoth(t, dir, Config{})
		checkInStep(t, s, x)
	}
	names, old := filepath.Join(dir, "names"), filepath.Join(dir, "old")
	reopen(func() {})
	reopen(func() {
		if err := Reset(names); err != nil {
			t.Fatal(err)
		}
	})
	reopen(func() {
		if err := os.CopyFS(old, os.DirFS(names)); err != nil {
			t.Fatal(err)
		}
	})
	work()
	if err := x.Commit(t.Context()); err != nil { // trims the journal
		t.Fatal(err)
	}
	reopen(func() {
		if err := errors.Join(os.RemoveAll(names), os.Rename(old, names)); err != nil {
			t.Fatal(err)
		}
	})
	reopen(func() {
		if err := os.RemoveAll(filepath.Join(dir, "shares")); err != nil {
			t.Fatal(err)
		}
	})
	if err := errors.Join(x.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
}

// A changed byte or a cut of any file is found by Open, or by Verify, and after Reset the
// index is empty and usable.
func TestDamaged(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	whole := filepath.Join(t.TempDir(), "whole")
	x, err := Open(whole, Config{})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		for _, f := range []share.File{modelFile(r, 9), modelFile(r, 9), modelFile(r, 9)} {
			if err := errors.Join(x.Update(t.Context(), f.Host, []share.File{f}, []string{"none"}), x.refreshFiles()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(whole)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 300 {
		name := entries[n%len(entries)].Name()
		b, err := os.ReadFile(filepath.Join(whole, name))
		if err != nil {
			t.Fatal(err)
		}
		if name == segmentset.LockFile || len(b) == 0 {
			continue
		}
		dir := filepath.Join(t.TempDir(), fmt.Sprint(n))
		if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
			t.Fatal(err)
		}
		at := r.IntN(len(b))
		if n%7 == 0 {
			b = b[:at]
		} else {
			b[at] ^= byte(1 + r.IntN(255))
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
		if x, err := Open(dir, Config{}); err == nil {
			_ = x.Close()
			t.Errorf("%s: byte %d of %d: no error", name, at, len(b))
		} else if !errors.Is(err, segmentset.ErrDamaged) && !errors.Is(err, segmentset.ErrVersion) {
			t.Errorf("%s: byte %d of %d: %v", name, at, len(b), err)
		}
		if err := Reset(dir); err != nil {
			t.Fatal(err)
		}
		x, err := Open(dir, Config{})
		if err != nil {
			t.Fatal(err)
		}
		if st, err := x.Stats(); err != nil || st.Files != 0 {
			t.Errorf("%d files after Reset, %v", st.Files, err)
		}
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
