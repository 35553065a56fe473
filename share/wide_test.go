package share_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/freshet/freshet/share"
	"github.com/freshet/freshet/share/part"
	"github.com/freshet/freshet/share/source"
)

// batchSizes is a store that keeps the greatest batch.
type batchSizes struct {
	share.Store
	deletes, commits int
}

func (b *batchSizes) Commit(ctx context.Context, batch share.Batch) error {
	b.deletes = max(b.deletes, len(batch.Delete))
	b.commits++
	return b.Store.Commit(ctx, batch)
}

// A part that loses very many files at once removes them in batches.
func TestManyRemovals(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	writeFile(t, filepath.Join(root, "stays.txt"), "")
	store, sink := &batchSizes{Store: open(t)}, newHeard()
	r, names := robot(t, store, sink, share.Config{Bound: part.Bound{Bytes: 1 << 20}, TempDir: t.TempDir()}, "file://"+root)
	sweep(t, r, names)
	batch := share.Batch{Host: names[0]}
	for i := range 45_000 {
		batch.Put = append(batch.Put, share.File{Host: names[0], Path: fmt.Sprintf("folder/%s%06d", strings.Repeat("long", 20), i)})
	}
	must(t, store.Commit(t.Context(), batch))
	must(t, sink.Update(t.Context(), names[0], batch.Put, nil))
	writeFile(t, filepath.Join(root, "new.txt"), "") // so that the part is compared
	c := sweep(t, r, names)
	if got := sink.paths(); len(got) != 2 || c.Removed != 45_000 {
		t.Errorf("%d files left, %d removed, want 2 and 45000", len(got), c.Removed)
	}
	if store.deletes > 10_000 {
		t.Errorf("a batch removes %d files, want at most 10000", store.deletes)
	}
	left := 0
	must(t, store.Files(t.Context(), names[0], "", "", func(string, *share.File) error { left++; return nil }))
	if left != 2 {
		t.Errorf("%d files stored, want 2", left)
	}
}

// A stop ends a scan in the middle of a wide folder at once, and the next scan goes on.
func TestStopInWideFolder(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for i := range 3_000 {
		must(t, os.Mkdir(filepath.Join(root, fmt.Sprintf("d%04d", i)), 0o755))
		must(t, os.WriteFile(filepath.Join(root, fmt.Sprintf("d%04d/f.txt", i)), []byte("x"), 0o644))
	}
	sink := newHeard()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stop := stopAfter{newHeard(), 1, cancel}
	stop.heard = sink
	r, names := robot(t, open(t), &stop, share.Config{Media: true, Robots: 1, Bound: part.Bound{Bytes: 20_000}, TempDir: t.TempDir()}, "file://"+root)
	if _, err := r.Sweep(ctx, names); !errors.Is(err, context.Canceled) {
		t.Errorf("Sweep = %v, want canceled", err)
	}
	if n := len(sink.paths()); n == 0 || n > 1_000 {
		t.Errorf("%d files after the stop, want those of the first commit", n)
	}
	if st := r.Status().Hosts[0]; !st.Online || st.Error != "" {
		t.Errorf("stopped by us, and the host is %+v", st)
	}
	for range 2 {
		sweep(t, r, names)
	}
	if n := len(sink.paths()); n != 3_000 {
		t.Errorf("%d files after the next sweeps, want 3000", n)
	}
}

// stopAfter stops the robot at an update of the index.
type stopAfter struct {
	*heard
	updates int
	stop    func()
}

func (s *stopAfter) Update(ctx context.Context, host string, put []share.File, removed []string) error {
	if s.updates--; s.updates == 0 {
		s.stop()
	}
	return s.heard.Update(ctx, host, put, removed)
}

// Servers that accept and say nothing, at the beginning or in the middle of a tag,
// hold no stop up.
func TestStopAtSilentServer(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { silent.Close() })
	release := make(chan struct{})
	song := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `[{"name":"a.mp3","type":"file","size":100000}]`)
		case r.Method == http.MethodHead:
			w.Header().Set("Content-Length", "100000")
		case r.Method == http.MethodGet:
			<-release
		}
	}))
	t.Cleanup(func() { close(release); song.Close() })
	specs := []string{song.URL}
	for _, scheme := range source.Names() {
		if scheme != "file" {
			specs = append(specs, scheme+"://"+silent.Addr().String()+"/x")
		}
	}
	for _, spec := range specs {
		u, err := url.Parse(spec)
		must(t, err)
		t.Run(u.Scheme, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			r, _ := robot(t, open(t), newHeard(), share.Config{Media: true, Robots: 1, TagTimeout: time.Hour}, spec) // requests may take 5 min
			done := make(chan error, 1)
			go func() { done <- r.Run(ctx) }()
			wait(t, "the scan", func() bool { return r.Status().Working > 0 })
			time.Sleep(100 * time.Millisecond)
			cancel()
			select {
			case err := <-done:
				if err != nil {
					t.Errorf("Run = %v", err)
				}
			case <-time.After(30 * time.Second):
				t.Errorf("Run goes on 30 s after the stop")
			}
		})
	}
}
