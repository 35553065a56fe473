package share_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/freshet/freshet/extract/pdftext"
	"github.com/freshet/freshet/extract/pdftext/pdftest"
	"github.com/freshet/freshet/share"
	"github.com/freshet/freshet/share/part"
)

// fakeClock is a clock that is moved by hand.
type fakeClock struct{ seconds atomic.Int64 }

func newFakeClock() *fakeClock {
	c := new(fakeClock)
	c.seconds.Store(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Unix())
	return c
}

func (c *fakeClock) now() time.Time           { return time.Unix(c.seconds.Load(), 0) }
func (c *fakeClock) advance(by time.Duration) { c.seconds.Add(int64(by / time.Second)) }

// writeTree writes six folders of ten folders of three files each: parts of 12 kB.
func writeTree(t *testing.T, root string) {
	t.Helper()
	for i := range 180 {
		writeFile(t, filepath.Join(root, fmt.Sprintf("d%d/e%d/f%d.txt", i/30, i/3%10, i%3)), "x")
	}
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func count(paths []string, prefix string) int {
	n := 0
	for _, p := range paths {
		if strings.HasPrefix(p, prefix) {
			n++
		}
	}
	return n
}

// Whatever becomes of a folder that is a part, the other parts are scanned, the host
// stays online, and what is stored of the folder goes only if the folder is gone.
func TestFolderOfPartFails(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		fail func(t *testing.T, s *server, root string)
		want int    // files of d2 afterwards, of 30
		err  string // counted
	}{
		{"removed", func(t *testing.T, s *server, root string) { must(t, os.RemoveAll(filepath.Join(root, "d2"))) }, 0, ""},
		{"becomes a link to where it went", func(t *testing.T, s *server, root string) {
			must(t, os.Rename(filepath.Join(root, "d2"), filepath.Join(root, "..", "elsewhere")))
			must(t, os.Symlink("../elsewhere", filepath.Join(root, "d2")))
		}, 0, ""},
		{"becomes a link to itself", func(t *testing.T, s *server, root string) {
			must(t, os.RemoveAll(filepath.Join(root, "d2")))
			must(t, os.Symlink("d2", filepath.Join(root, "d2")))
		}, 0, ""},
		{"becomes a file", func(t *testing.T, s *server, root string) {
			must(t, os.RemoveAll(filepath.Join(root, "d2")))
			must(t, os.WriteFile(filepath.Join(root, "d2"), []byte("x"), 0o644))
		}, 1, ""},
		{"denied", func(t *testing.T, s *server, _ string) { s.set(func() { s.sealed["/d2/"] = true }) }, 30, "denied"},
		{"denied with all below", func(t *testing.T, s *server, _ string) {
			s.set(func() {
				s.sealed["/d2/"] = true
				for i := range 10 {
					s.sealed[fmt.Sprintf("/d2/e%d/", i)] = true
				}
			})
		}, 30, "denied"},
		{"server fails", func(t *testing.T, s *server, _ string) {
			s.set(func() {
				s.broken["/d2/"] = true
				for i := range 10 {
					s.broken[fmt.Sprintf("/d2/e%d/", i)] = true
				}
			})
		}, 30, "protocol"},
		{"listed, and gone", func(t *testing.T, s *server, _ string) {
			s.set(func() {
				for i := range 10 {
					delete(s.tree, fmt.Sprintf("/d2/e%d/", i))
				}
			})
		}, 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			root := filepath.Join(t.TempDir(), "root")
			s, source := newServer(t), "file://"+root
			if tt.err != "" || tt.name == "listed, and gone" {
				source = s.URL
				for i := range 180 {
					s.put(fmt.Sprintf("/d%d/e%d/f%d.txt", i/30, i/3%10, i%3), 1)
				}
			} else {
				writeTree(t, root)
			}
			sink := newHeard()
			r, names := robot(t, open(t), sink, share.Config{Bound: part.Bound{Bytes: 3_000, Time: time.Hour}}, source)
			sweep(t, r, names)
			sweep(t, r, names)
			if parts := r.Status().Hosts[0].Parts; parts < 6 || len(sink.paths()) != 180 {
				t.Fatalf("%d parts of %d files, want at least 6 of 180", parts, len(sink.paths()))
			}
			tt.fail(t, s, root)
			for _, i := range []int{0, 1, 3, 4, 5} {
				if source == s.URL {
					s.put(fmt.Sprintf("/d%d/e0/new.txt", i), 1)
				} else {
					writeFile(t, filepath.Join(root, fmt.Sprintf("d%d/e0/new.txt", i)), "new")
				}
			}
			for range 3 {
				sweep(t, r, names)
			}
			checkFailedFolder(t, r.Status().Hosts[0], sink.paths(), tt.want, tt.err)
		})
	}
}

// checkFailedFolder checks that only folder d2 is affected: the host is online, the
// error is counted, and d2 has want files.
func checkFailedFolder(t *testing.T, st share.HostStatus, paths []string, want int, wantErr string) {
	t.Helper()
	if !st.Online || st.Error != "" {
		t.Errorf("host: got %+v, want online", st)
	}
	if wantErr != "" && st.Errors[wantErr] == 0 {
		t.Errorf("errors: got %v, want %q counted", st.Errors, wantErr)
	}
	if got := count(paths, "d2"); got != want {
		t.Errorf("files of d2: got %d, want %d", got, want)
	}
	if got := len(paths) - count(paths, "d2"); got != 155 {
		t.Errorf("files of the other folders: got %d, want 155", got)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A root that goes away, before or in the middle of a scan, removes nothing; one
// that is really emptied loses its files.
func TestRootGoesAway(t *testing.T) {
	t.Parallel()
	replace := func(t *testing.T, root string) {
		must(t, os.Rename(root, root+".away"))
		must(t, os.Mkdir(root, 0o755))
	}
	for _, tt := range []struct {
		name string
		at   int64 // readings of the clock before it happens; 0: before the scan
		do   func(t *testing.T, root string)
		want int
	}{
		{"renamed before a scan", 0, func(t *testing.T, root string) { must(t, os.Rename(root, root+".away")) }, 180},
		{"renamed in mid-scan", 25, func(t *testing.T, root string) { must(t, os.Rename(root, root+".away")) }, 180},
		{"renamed late", 90, func(t *testing.T, root string) { must(t, os.Rename(root, root+".away")) }, 180},
		{"not mounted", 0, replace, 180},
		{"not mounted any more in mid-scan", 25, replace, 180},
		{"not mounted, but a stray file", 0, func(t *testing.T, root string) {
			replace(t, root)
			writeFile(t, filepath.Join(root, "stray"), "")
		}, 180},
		{"mounted anew with other numbers", 0, func(t *testing.T, root string) {
			replace(t, root)
			writeFile(t, filepath.Join(root, "d3", "e1", "f1.txt"), "x")
		}, 1},
		{"emptied", 0, func(t *testing.T, root string) {
			for i := range 6 {
				must(t, os.RemoveAll(filepath.Join(root, fmt.Sprintf("d%d", i))))
			}
		}, 0},
	} {
		for _, bound := range []int64{3_000, 1 << 20} {
			t.Run(fmt.Sprintf("%s, bound %d", tt.name, bound), func(t *testing.T) {
				t.Parallel()
				root := filepath.Join(t.TempDir(), "root")
				writeTree(t, root)
				clock := newFakeClock()
				var readings, limit atomic.Int64
				now := func() time.Time {
					if n := readings.Add(1); limit.Load() > 0 && n == limit.Load() {
						tt.do(t, root)
					}
					return clock.now()
				}
				sink := newHeard()
				r, names := robot(t, open(t), sink, share.Config{Robots: 1, Now: now, Bound: part.Bound{Bytes: bound, Time: time.Hour}}, "file://"+root)
				sweep(t, r, names)
				sweep(t, r, names)
				if n := len(sink.paths()); n != 180 {
					t.Fatalf("%d files, want 180", n)
				}
				readings.Store(0)
				if tt.at > 0 {
					limit.Store(tt.at)
				} else {
					tt.do(t, root)
				}
				for range 3 {
					sweep(t, r, names)
				}
				if got := len(sink.paths()); got != tt.want {
					t.Errorf("%d files, want %d; %+v", got, tt.want, r.Status().Hosts)
				}
				if away := tt.want == 180; r.Status().Hosts[0].Online == away {
					t.Errorf("host %+v, want online %v", r.Status().Hosts[0], !away)
				}
				if _, err := os.Stat(root + ".away"); err != nil || tt.want != 180 {
					return
				}
				must(t, os.RemoveAll(root))
				must(t, os.Rename(root+".away", root))
				if sweep(t, r, names); len(sink.paths()) != 180 || !r.Status().Hosts[0].Online {
					t.Errorf("back again: %d files, want 180; %+v", len(sink.paths()), r.Status().Hosts[0])
				}
			})
		}
	}
}

// An empty root of a network host is believed after a day.
func TestEmptyRootOfServer(t *testing.T) {
	t.Parallel()
	s, clock, sink := newServer(t), newFakeClock(), newHeard()
	s.put("/a/b.txt", 1)
	s.put("/c.txt", 1)
	r, names := robot(t, open(t), sink, share.Config{Now: clock.now}, s.URL)
	sweep(t, r, names)
	full := s.tree
	s.set(func() { s.tree = map[string]map[string]int64{"/": {}} })
	for range 2 {
		sweep(t, r, names)
		if st := r.Status().Hosts[0]; len(sink.paths()) != 2 || st.Online || st.Error != "offline" {
			t.Errorf("empty at first: %v, %+v, want 2 files of an offline host", sink.paths(), st)
		}
		clock.advance(6 * time.Hour)
	}
	s.set(func() { s.tree = full })
	sweep(t, r, names)
	clock.advance(30 * time.Hour)
	s.set(func() { s.tree = map[string]map[string]int64{"/": {}} })
	if sweep(t, r, names); len(sink.paths()) != 2 {
		t.Errorf("empty for the second time: %v, want 2 files", sink.paths())
	}
	clock.advance(25 * time.Hour)
	if sweep(t, r, names); len(sink.paths()) != 0 || !r.Status().Hosts[0].Online {
		t.Errorf("empty for a day: %v, %+v, want no file of an online host", sink.paths(), r.Status().Hosts[0])
	}
}

// A file whose tags take too long is kept without them, and not opened again until
// it changes. The robot goes on.
func TestSlowTags(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	writeFile(t, filepath.Join(root, "song.mp3"), strings.Repeat("\x00", 200<<10))
	writeFile(t, filepath.Join(root, "z.txt"), "x")
	store, sink := open(t), newHeard()
	r, names := robot(t, store, sink, share.Config{Media: true, TagTimeout: time.Nanosecond, Robots: 1, MinInterval: time.Second}, "file://"+root)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	wait(t, "the first scan", func() bool { return len(sink.paths()) == 2 })
	writeFile(t, filepath.Join(root, "later.txt"), "")
	wait(t, "a change", func() bool { return slices.Contains(sink.paths(), "later.txt") })
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run: %v", err)
	}
	st := r.Status()
	if st.Counts.TagReads != 2 || st.Counts.Errors["timeout"] != 2 || !st.Hosts[0].Online {
		t.Errorf("counts %+v, host %+v, want 2 reads of tags that timed out", st.Counts, st.Hosts[0])
	}
	must(t, store.Files(t.Context(), names[0], "", "", func(_ string, f *share.File) error {
		if want := map[string]string{"song.mp3": "timeout", "z.txt": "timeout"}[f.Path]; f.TagError != want {
			t.Errorf("%s: TagError %q, want %q", f.Path, f.TagError, want)
		}
		return nil
	}))
}

// A document that exceeds a limit is read again only under other limits.
func TestRefusedDocument(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	writeFile(t, filepath.Join(root, "bomb.pdf"), string(pdftest.Bomb(1<<20)))
	store := open(t)
	for _, tt := range []struct {
		name   string
		memory int64
		reads  int64
		hasTag bool
	}{{"first", 48 << 20, 1, false}, {"again", 48 << 20, 0, false}, {"more memory", 256 << 20, 1, true}, {"the same", 256 << 20, 0, true}} {
		pool := pdftest.NewPool(t, pdftext.Config{Memory: tt.memory})
		sink := newHeard()
		r, names := robot(t, store, sink, share.Config{Media: true, PDF: pool}, "file://"+root)
		if got := sweep(t, r, names).TagReads; got != tt.reads {
			t.Errorf("%s: %d reads of tags, want %d", tt.name, got, tt.reads)
		}
		must(t, store.Files(t.Context(), names[0], "", "", func(_ string, f *share.File) error {
			if got := f.Media.Text != ""; got != tt.hasTag || got != (f.TagError == "") {
				t.Errorf("%s: TagError %q, text: %v, want text: %v", tt.name, f.TagError, got, tt.hasTag)
			}
			return nil
		}))
	}
}

// A file that loses the connection each time is blamed at the second time: all
// other files are found.
func TestTagsThatLoseTheConnection(t *testing.T) {
	t.Parallel()
	s, sink := newServer(t), newHeard()
	for i := range 10 {
		s.put(fmt.Sprintf("/f%d.mp3", i), 100)
	}
	s.hangUp["/f3.mp3"], s.hangUp["/f7.mp3"] = true, true
	r, names := robot(t, open(t), sink, share.Config{Media: true}, s.URL)
	for range 3 {
		sweep(t, r, names)
	}
	if got := len(sink.paths()); got != 10 || !r.Status().Hosts[0].Online {
		t.Errorf("%d files, want 10; %+v", got, r.Status().Hosts[0])
	}
	s.set(func() { clear(s.reads) })
	if sweep(t, r, names); len(s.reads) != 0 {
		t.Errorf("unchanged, and read again: %v", s.reads)
	}
}

// A source that is added again while workers connect to its host is no data race.
func TestAddSourceWhileScanning(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.down = true
	r, _ := robot(t, open(t), newHeard(), share.Config{Robots: 2, RetryMin: time.Nanosecond, RetryMax: time.Nanosecond, MinInterval: time.Second}, s.URL)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = r.Run(ctx) })
	for range 200 {
		if _, err := r.AddSource(ctx, s.URL); err != nil {
			t.Error(err)
		}
	}
	wait(t, "an attempt", func() bool { return len(r.Status().Counts.Errors) > 0 })
	cancel()
	wg.Wait()
}

// failingSink is an index whose disk is full.
type failingSink struct{ *heard }

func (failingSink) Update(context.Context, string, []share.File, []string) error { return errDisk }

var errDisk = errors.New("disk is full")

// An error of our own store or index ends the robot, and is told.
func TestOwnErrorEndsRun(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	writeFile(t, filepath.Join(root, "a.txt"), "")
	r, _ := robot(t, open(t), failingSink{newHeard()}, share.Config{Robots: 1}, "file://"+root)
	if err := r.Run(t.Context()); !errors.Is(err, errDisk) {
		t.Errorf("Run = %v, want %v", err, errDisk)
	}
}
