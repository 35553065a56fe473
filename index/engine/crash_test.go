package engine

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/freshet/freshet/index"
	"github.com/freshet/freshet/index/engine/manifest"
	"github.com/freshet/freshet/index/engine/segmentset"
	"github.com/freshet/freshet/index/query"
)

// versioned returns the documents of step n of a deterministic feed: each step
// writes some documents again and deletes one.
func versioned(n uint64) index.Batch {
	r := rand.New(rand.NewPCG(n, 17))
	b := index.Batch{Cursor: binary.BigEndian.AppendUint64(nil, n)}
	for range 20 {
		b.Put = append(b.Put, index.Document{ID: fmt.Sprintf("http://h/%d", r.IntN(300)), Title: fmt.Sprintf("version%d", n), Body: randomText(r, 30), Date: now})
	}
	b.Delete = []string{fmt.Sprintf("http://h/%d", r.IntN(300))}
	return b
}

// replayTo returns what an index holds after steps 1 to n.
func replayTo(n uint64) map[string]index.Document {
	out := map[string]index.Document{}
	for i := uint64(1); i <= n; i++ {
		b := versioned(i)
		for _, id := range b.Delete {
			delete(out, id)
		}
		for _, d := range b.Put {
			out[d.ID] = d
		}
	}
	return out
}

// checkCrashed opens the index in dir and compares it with the feed up to its
// cursor, which it returns.
func checkCrashed(t *testing.T, dir string) uint64 {
	t.Helper()
	e, err := Open(dir, Config{})
	if err != nil {
		t.Fatalf("open after a crash: %v", err)
	}
	defer e.Close()
	ctx := context.Background()
	cursor, err := e.Cursor(ctx)
	if err != nil {
		t.Fatal(err)
	}
	n := uint64(0)
	if len(cursor) == 8 {
		n = binary.BigEndian.Uint64(cursor)
	}
	want := replayTo(n)
	if s, err := e.Stats(ctx); err != nil || s.Documents != uint64(len(want)) {
		t.Fatalf("cursor %d: %d documents, want %d, %v", n, s.Documents, len(want), err)
	}
	for id, d := range want {
		got, err := e.Document(ctx, id)
		if err != nil || got.Title != d.Title || got.Body != d.Body {
			t.Fatalf("cursor %d: %s is %+v, %v, want %+v", n, id, got, err, d)
		}
	}
	for i := range n {
		title := fmt.Sprintf("version%d", i+1)
		count := 0
		for _, d := range want {
			if d.Title == title {
				count++
			}
		}
		res, err := e.Search(ctx, index.Request{Query: query.Parse("title:"+title, now), Limit: 1, Now: now})
		if err != nil || res.Total != count {
			t.Fatalf("cursor %d: %d documents of %s, want %d, %v", n, res.Total, title, count, err)
		}
	}
	return n
}

// A disk that loses everything that was not synced loses no commit: at every
// stage of commits and merges the directory is copied with files that were not
// synced cut short, emptied or missing.
func TestLostWrites(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 9))
	dir := filepath.Join(t.TempDir(), "index")
	e, err := Open(dir, Config{BufferWords: 1000, CommitEvery: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex // stages of merges and commits may meet
	crashes, reached := 0, map[string]int{}
	crash := func(stage string) {
		if stage == "merged" { // no commit may remove files while they are copied
			e.set.LockCommits()
			defer e.set.UnlockCommits()
		}
		mu.Lock()
		defer mu.Unlock()
		if reached[stage]++; reached[stage] > 12 {
			return
		}
		crashes++
		copied := filepath.Join(t.TempDir(), fmt.Sprint("crash", crashes))
		copyUnsynced(t, r, e, dir, copied)
		checkCrashed(t, copied)
	}
	e.set.TestHook.Store(&crash)
	ctx := context.Background()
	for n := uint64(1); n <= 120; n++ {
		if err := e.Apply(ctx, versioned(n)); err != nil {
			t.Fatal(err)
		}
		switch {
		case n%10 == 0:
			err = e.Commit(ctx)
		case n%7 == 0:
			_, err = e.set.MergeOnce(ctx, func(all []*held) []*held { return all })
		case n%3 == 0:
			err = e.refreshSnapshot(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if n := checkCrashed(t, dir); n != 120 {
		t.Errorf("cursor %d after Close, want 120", n)
	}
	for _, stage := range []string{"prepared", "synced", "written", "merged"} {
		if reached[stage] == 0 {
			t.Errorf("no crash at stage %q", stage)
		}
	}
}

// copyUnsynced copies an index as a crash of the machine may leave it: what the
// manifest on disk names is whole, all other files are as luck has it.
func copyUnsynced(t *testing.T, r *rand.Rand, e *Engine, from, to string) {
	t.Helper()
	if err := os.MkdirAll(to, 0o750); err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Read(from)
	if err != nil {
		t.Fatal(err)
	}
	whole := map[string]bool{manifest.Name: true}
	for _, s := range m.Segments {
		whole[s.File], whole[s.State] = true, true
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range entries {
		b, err := os.ReadFile(filepath.Join(from, d.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if !whole[d.Name()] {
			switch r.IntN(4) {
			case 0:
				continue
			case 1:
				b = b[:r.IntN(len(b)+1)]
			case 2:
				clear(b[r.IntN(len(b)+1):])
			}
		}
		if err := os.WriteFile(filepath.Join(to, d.Name()), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// What is deleted, replaced and reranked while a merge runs stays so.
func TestChangesDuringMerge(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "index")
	e, err := Open(dir, Config{CommitEvery: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	for n := uint64(1); n <= 6; n++ {
		if err := errors.Join(e.Apply(ctx, versioned(n)), e.refreshSnapshot(ctx)); err != nil {
			t.Fatal(err)
		}
	}
	popular := ""
	for id := range replayTo(12) {
		popular = max(popular, id)
	}
	var once sync.Once
	changed := make(chan struct{})
	hook := func(stage string) { // perhaps of a merge in the background
		if stage != "merged" {
			return
		}
		once.Do(func() {
			defer close(changed)
			for n := uint64(7); n <= 12; n++ {
				if err := errors.Join(e.Apply(ctx, versioned(n)), e.refreshSnapshot(ctx)); err != nil {
					t.Error(err)
				}
			}
			if err := errors.Join(e.Rerank(ctx, []index.Popular{{ID: popular, Popularity: 1}}, .1), e.Commit(ctx)); err != nil {
				t.Error(err)
			}
		})
	}
	e.set.TestHook.Store(&hook)
	for isDone := false; !isDone; {
		if _, err := e.set.MergeOnce(ctx, func(all []*held) []*held { return all }); err != nil {
			t.Fatal(err)
		}
		select {
		case <-changed:
			isDone = true
		case <-time.After(time.Millisecond):
		}
	}
	if d, err := e.Document(ctx, popular); err != nil || d.Popularity != 1 {
		t.Errorf("popularity of %s is %v, %v", popular, d, err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if n := checkCrashed(t, dir); n != 12 {
		t.Errorf("cursor %d, want 12", n)
	}
}

// crashDir is the environment variable that makes this test binary a writer.
const crashDir = "FRESHET_ENGINE_CRASH_DIR"

// TestCrashWriter is not a test: TestKilled runs it in a process of its own and
// kills it.
func TestCrashWriter(t *testing.T) {
	dir := os.Getenv(crashDir)
	if dir == "" {
		t.Skip("run by TestKilled")
	}
	ctx := context.Background()
	e, err := Open(dir, Config{BufferWords: 2000, CommitEvery: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	cursor, err := e.Cursor(ctx)
	if err != nil {
		t.Fatal(err)
	}
	n := uint64(0)
	if len(cursor) == 8 {
		n = binary.BigEndian.Uint64(cursor)
	}
	for n++; ; n++ {
		if err := errors.Join(e.Apply(ctx, versioned(n)), e.refreshSnapshot(ctx)); err != nil {
			t.Fatal(err)
		}
		if _, err := e.set.MergeOnce(ctx, func(all []*held) []*held { return all[:min(len(all), 3)] }); err != nil {
			t.Fatal(err)
		}
		fmt.Println(n)
	}
}

// A process that is killed in the middle of writing, merging and committing
// leaves an index that agrees with its cursor, and loses no commit.
func TestKilled(t *testing.T) {
	t.Parallel()
	rounds := 12
	if testing.Short() {
		rounds = 3
	}
	r := rand.New(rand.NewPCG(2, 3))
	dir := filepath.Join(t.TempDir(), "index")
	last := uint64(0)
	for round := range rounds {
		cmd := exec.Command(os.Args[0], "-test.run=^TestCrashWriter$")
		cmd.Env = append(os.Environ(), crashDir+"="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for range 5 + r.IntN(60) {
			if !lines.Scan() {
				t.Fatalf("round %d: the writer ended by itself", round)
			}
			if _, err := strconv.Atoi(lines.Text()); err != nil {
				t.Fatalf("round %d: the writer says %q", round, lines.Text())
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		n := checkCrashed(t, dir)
		if n < last {
			t.Fatalf("round %d: cursor %d after it was %d", round, n, last)
		}
		last = n
	}
	if last == 0 {
		t.Error("nothing was ever committed")
	}
}

// smallIndex makes an index with all kinds of files.
func smallIndex(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "index")
	e, err := Open(dir, Config{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	for n := range uint64(3) {
		if err := errors.Join(e.Apply(ctx, versioned(n+1)), e.Commit(ctx)); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A change of any byte of any file is found by Open, which says what is wrong,
// and an index that was reset is empty and usable.
func TestDamaged(t *testing.T) {
	t.Parallel()
	dir := smallIndex(t)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for _, d := range entries {
		if d.Name() == segmentset.LockFile {
			continue
		}
		kinds[filepath.Ext(d.Name())] = true
		path := filepath.Join(dir, d.Name())
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for at := range whole {
			if filepath.Ext(path) == manifest.SegmentExt && at%5 != 0 && at < len(whole)-700 { // all of the trailer
				continue
			}
			b := slices.Clone(whole)
			b[at] ^= 1 << (at % 8)
			checkRefused(t, dir, path, fmt.Sprintf("byte %d of %d changed", at, len(whole)), b)
		}
		for _, size := range []int{0, 1, len(whole) / 2, len(whole) - 1} {
			checkRefused(t, dir, path, fmt.Sprintf("cut at %d", size), whole[:size])
		}
		checkRefused(t, dir, path, "one byte longer", append(slices.Clone(whole), 0))
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if len(kinds) != 3 {
		t.Errorf("files of kinds %v", kinds)
	}
	if n := checkCrashed(t, dir); n != 3 {
		t.Errorf("the index is not whole any more: cursor %d", n)
	}
}

func checkRefused(t *testing.T, dir, path, how string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	e, err := Open(dir, Config{})
	if err == nil {
		_ = e.Close()
		t.Fatalf("%s: %s: not noticed", filepath.Base(path), how)
	}
	if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrVersion) {
		t.Fatalf("%s: %s: %v", filepath.Base(path), how, err)
	}
}

func TestReset(t *testing.T) {
	t.Parallel()
	dir := smallIndex(t)
	if err := os.Remove(filepath.Join(dir, manifest.Name)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Config{}); !errors.Is(err, ErrDamaged) {
		t.Errorf("segments without a manifest: %v", err)
	}
	if err := Reset(dir); err != nil {
		t.Fatal(err)
	}
	if n := checkCrashed(t, dir); n != 0 {
		t.Errorf("cursor %d of an index that was reset", n)
	}
}

// A second process is kept out, by Open and by Reset.
func TestLocked(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "index")
	e, err := Open(dir, Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Config{}); !errors.Is(err, ErrLocked) {
		t.Errorf("second open: %v", err)
	}
	if err := Reset(dir); !errors.Is(err, ErrLocked) {
		t.Errorf("reset: %v", err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Search(context.Background(), index.Request{Query: query.And{}, Now: now}); !errors.Is(err, ErrClosed) {
		t.Errorf("search after Close: %v", err)
	}
	if err := e.Apply(context.Background(), versioned(1)); !errors.Is(err, ErrClosed) {
		t.Errorf("apply after Close: %v", err)
	}
}

// An index of Bleve gives way to an empty one, also when its removal was
// interrupted; other files stay.
func TestBleveIsReplaced(t *testing.T) {
	t.Parallel()
	for _, files := range []string{"index_meta.json store/root.bolt store/000000000001.zap", "index_meta.json"} {
		dir := filepath.Join(t.TempDir(), "index")
		for _, name := range append(strings.Fields(files), "note.txt") {
			path := filepath.Join(dir, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o750), os.WriteFile(path, []byte("x"), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		if n := checkCrashed(t, dir); n != 0 {
			t.Errorf("cursor %d", n)
		}
		for name, want := range map[string]bool{"index_meta.json": false, "store": false, "note.txt": true} {
			if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != want {
				t.Errorf("%s is there: %v, want %v", name, err == nil, want)
			}
		}
	}
}

// A segment whose pages cannot be read any more ends a search with an error, not
// the process.
func TestTruncatedWhileOpen(t *testing.T) {
	t.Parallel()
	dir := smallIndex(t)
	e, err := Open(dir, Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	files, err := filepath.Glob(filepath.Join(dir, "*"+manifest.SegmentExt))
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, f := range files {
		if err := os.Truncate(f, 0); err != nil {
			t.Fatal(err)
		}
	}
	ctx := context.Background()
	if _, err := e.Search(ctx, index.Request{Query: query.Parse("run", now), Limit: 10, Now: now}); !errors.Is(err, ErrDamaged) {
		t.Errorf("search: %v", err)
	}
	if err := e.Apply(ctx, versioned(9)); !errors.Is(err, ErrDamaged) {
		t.Errorf("apply after damage was found: %v", err)
	}
}

// Searches, changes, commits and merges at the same time.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	dir := filepath.Join(t.TempDir(), "index")
	e, err := Open(dir, Config{BufferWords: 1000, CommitEvery: 5 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	var readers sync.WaitGroup
	for i := range 3 {
		readers.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 1))
			for ctx.Err() == nil {
				_, err := e.Search(ctx, index.Request{Query: query.Parse(randomQuery(r, 2), now), Limit: 10, Now: now, Facets: true})
				var bounds *query.BoundsError
				if err != nil && !errors.As(err, &bounds) && ctx.Err() == nil {
					t.Error(err)
					return
				}
			}
		})
	}
	const steps = 150
	for n := uint64(1); n <= steps; n++ {
		if err := e.Apply(ctx, versioned(n)); err != nil {
			t.Fatal(err)
		}
		if n%10 == 0 {
			if err := e.Rerank(ctx, []index.Popular{{ID: "http://h/7", Popularity: float64(n) / steps}}, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	cancel()
	readers.Wait()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if n := checkCrashed(t, dir); n != steps {
		t.Errorf("cursor %d, want %d", n, steps)
	}
}

// Verify reads an index that is whole, and Segments describes it.
func TestVerify(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	e, err := Open(smallIndex(t), Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if err := e.Verify(ctx); err != nil {
		t.Error(err)
	}
	all, err := e.Segments(ctx)
	if err != nil {
		t.Fatal(err)
	}
	documents := 0
	for _, s := range all {
		documents += s.Documents
		if s.Terms == 0 || s.Bytes == 0 {
			t.Errorf("%+v", s)
		}
	}
	if want := len(replayTo(3)); documents != want {
		t.Errorf("%d documents, want %d", documents, want)
	}
}

// Damage that shows only while an index is in use, as in one that is too large to
// be read whole by Open, is refused from then on, by the next Open too, until the
// index is reset.
func TestDamageFoundLater(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := smallIndex(t)
	e, err := Open(dir, Config{})
	if err != nil {
		t.Fatal(err)
	}
	e.set.VerifyAll(ctx)
	if err := e.set.Usable(); err != nil {
		t.Fatalf("a whole index: %v", err)
	}
	all, err := e.Segments(ctx)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, all[0].File)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	at := int64(40) // in the stored texts
	if _, err := f.WriteAt([]byte{whole[at] ^ 1}, at); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	e.set.VerifyAll(ctx)
	for name, err := range map[string]error{
		"usable": e.set.Usable(), "apply": e.Apply(ctx, versioned(4)), "commit": e.Commit(ctx),
	} {
		if !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, whole, 0o600); err != nil { // whoever mends it: what was written since is not known
		t.Fatal(err)
	}
	if _, err := Open(dir, Config{}); !errors.Is(err, ErrDamaged) {
		t.Errorf("open: %v", err)
	}
	if err := Reset(dir); err != nil {
		t.Fatal(err)
	}
	if n := checkCrashed(t, dir); n != 0 {
		t.Errorf("cursor %d of an index that was reset", n)
	}
}
