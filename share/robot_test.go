package share_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/freshet/freshet/share"
	"github.com/freshet/freshet/share/part"
	"github.com/freshet/freshet/share/source"
	"github.com/freshet/freshet/share/state"
)

func open(t testing.TB) share.Store {
	t.Helper()
	s, err := state.Open(t.TempDir(), state.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// heard is a sink that keeps what it hears.
type heard struct {
	mu     sync.Mutex
	files  map[string]share.File
	online map[string]bool
}

func newHeard() *heard { return &heard{files: map[string]share.File{}, online: map[string]bool{}} }

func (h *heard) Update(_ context.Context, host string, put []share.File, removed []string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range put {
		h.files[host+"|"+f.Path] = f
	}
	for _, p := range removed {
		delete(h.files, host+"|"+p)
	}
	return nil
}

func (h *heard) Online(host string, online bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.online[host] = online
}

func (h *heard) Drop(_ context.Context, host string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.files, func(k string, _ share.File) bool { return strings.HasPrefix(k, host+"|") })
	return nil
}

func (h *heard) paths() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []string
	for _, f := range h.files {
		out = append(out, f.Path)
	}
	slices.Sort(out)
	return out
}

// server is a directory index in nginx's JSON whose mood can be changed.
type server struct {
	*httptest.Server
	mu       sync.Mutex
	tree     map[string]map[string]int64 // folder -> file -> size; subfolders are keys below it
	down     bool
	sealed   map[string]bool
	broken   map[string]bool // answered by 500
	reads    map[string]int  // GETs of files
	hangUp   map[string]bool // GETs of files that lose the connection
	after    int             // listings after which connections drop; 0 never
	listings atomic.Int64
	now      atomic.Int64 // requests under way
	most     atomic.Int64
}

func newServer(t testing.TB) *server {
	s := &server{tree: map[string]map[string]int64{"/": {}}, sealed: map[string]bool{}, broken: map[string]bool{}, reads: map[string]int{}, hangUp: map[string]bool{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *server) put(path string, size int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := strings.LastIndexByte(path, '/') + 1
	for f := path[:i]; ; f = f[:strings.LastIndexByte(strings.TrimSuffix(f, "/"), '/')+1] {
		if s.tree[f] == nil {
			s.tree[f] = map[string]int64{}
		}
		if f == "/" {
			break
		}
	}
	s.tree[path[:i]][path[i:]] = size
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.most.Store(max(s.most.Load(), s.now.Add(1)))
	defer s.now.Add(-1)
	time.Sleep(200 * time.Microsecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Method == http.MethodOptions {
		if s.down {
			panic(http.ErrAbortHandler)
		}
		return
	}
	if folder, name := r.URL.Path[:strings.LastIndexByte(r.URL.Path, '/')+1], path.Base(r.URL.Path); !strings.HasSuffix(r.URL.Path, "/") && s.tree[folder][name] > 0 {
		s.reads[r.URL.Path]++
		if s.hangUp[r.URL.Path] {
			panic(http.ErrAbortHandler)
		}
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(make([]byte, s.tree[folder][name])))
		return
	}
	if n := s.listings.Add(1); s.down || (s.after > 0 && n > int64(s.after)) {
		panic(http.ErrAbortHandler)
	}
	files, ok := s.tree[r.URL.Path]
	switch {
	case s.sealed[r.URL.Path]:
		w.WriteHeader(http.StatusForbidden)
		return
	case s.broken[r.URL.Path]:
		w.WriteHeader(http.StatusInternalServerError)
		return
	case !ok:
		w.WriteHeader(http.StatusNotFound)
		return
	}
	list := []map[string]any{}
	for name, size := range files {
		list = append(list, map[string]any{"name": name, "type": "file", "mtime": "Wed, 04 Mar 2026 05:06:00 GMT", "size": size})
	}
	for f := range s.tree {
		if rest, below := strings.CutPrefix(f, r.URL.Path); below && rest != "" && strings.Count(rest, "/") == 1 {
			list = append(list, map[string]any{"name": strings.TrimSuffix(rest, "/"), "type": "directory", "mtime": "Wed, 04 Mar 2026 05:06:00 GMT"})
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(list)
}

// set changes the server under its lock.
func (s *server) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func robot(t testing.TB, store share.Store, sink share.Sink, cfg share.Config, sources ...string) (*share.Robot, []string) {
	t.Helper()
	cfg.Source.Timeout = 5 * time.Minute
	r, err := share.New(t.Context(), store, sink, cfg)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range sources {
		n, err := r.AddSource(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, n...)
	}
	return r, names
}

func sweep(t testing.TB, r *share.Robot, names []string) share.Counts {
	t.Helper()
	c, err := r.Sweep(t.Context(), names)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// An unchanged tree costs one store read a part and one write for all visits; a change costs what
// it changes. A new robot on the same store goes on where the old one was.
func TestRescan(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for i := range 300 {
		s.put(fmt.Sprintf("/d%02d/f%03d.txt", i%20, i), 0)
	}
	store, sink := open(t), newHeard()
	cfg := share.Config{Bound: part.Bound{Bytes: 5_000}}
	r, names := robot(t, store, sink, cfg, s.URL)
	c := sweep(t, r, names)
	parts := int64(r.Status().Hosts[0].Parts)
	if c.Added != 300 || parts < 4 || len(sink.paths()) != 300 {
		t.Fatalf("%+v, %d parts", c, parts)
	}
	r, names = robot(t, store, sink, cfg, s.URL)
	if c = sweep(t, r, names); c.PartChanges != 0 || c.StoreReads != parts || c.StoreWrites != 1 || c.Added+c.Changed+c.Removed != 0 {
		t.Errorf("unchanged: %+v, %d parts", c, parts)
	}
	s.put("/d03/new.txt", 5)
	s.put("/d03/f003.txt", 9)
	s.set(func() { delete(s.tree["/d04/"], "f004.txt") })
	if c = sweep(t, r, names); c.Added != 1 || c.Changed != 1 || c.Removed != 1 || c.PartChanges > 2 || c.StoreWrites > 8 {
		t.Errorf("changed: %+v", c)
	}
	if got := sink.paths(); len(got) != 300 || !slices.Contains(got, "d03/new.txt") || slices.Contains(got, "d04/f004.txt") {
		t.Errorf("%d files", len(got))
	}
	s.set(func() {
		for f := range s.tree {
			if strings.HasPrefix(f, "/d1") {
				delete(s.tree, f)
			}
		}
	})
	sweep(t, r, names)
	if got := sink.paths(); len(got) != 150 {
		t.Errorf("%d files after half of the folders were removed, want 150", len(got))
	}
}

// A connection that drops in mid-scan, wherever, removes nothing; the host is
// offline, and the next good scan finds everything.
func TestCutOffScanRemovesNothing(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for i := range 120 {
		s.put(fmt.Sprintf("/d%02d/sub/f%03d.txt", i%12, i), 0)
	}
	store, sink := open(t), newHeard()
	r, names := robot(t, store, sink, share.Config{Bound: part.Bound{Bytes: 4_000}, RetryMin: time.Nanosecond, RetryMax: time.Nanosecond}, s.URL)
	sweep(t, r, names)
	for cut := 1; cut < 26; cut += 3 {
		s.set(func() { s.after = int(s.listings.Load()) + cut })
		s.put(fmt.Sprintf("/d%02d/sub/new%d.txt", cut%12, cut), 1)
		c := sweep(t, r, names)
		if c.Removed != 0 {
			t.Fatalf("cut after %d listings: %d files removed", cut, c.Removed)
		}
		if st := r.Status().Hosts[0]; st.Online || c.Errors[string(source.Offline)] != 1 {
			t.Errorf("cut after %d listings: %+v, errors %v", cut, st, c.Errors)
		}
		n := 0
		if err := store.Files(t.Context(), names[0], "", "\xff", func(string, *share.File) error { n++; return nil }); err != nil || n < 120 {
			t.Fatalf("cut after %d listings: %d files in the store, %v", cut, n, err)
		}
	}
	s.set(func() { s.after = 0 })
	sweep(t, r, names)
	if got := len(sink.paths()); got != 129 || !r.Status().Hosts[0].Online || r.Status().Hosts[0].Seen.IsZero() || !sink.online[names[0]] {
		t.Errorf("%d files, want 129", got)
	}
}

// A denied folder is asked once, keeps what is stored, is left in peace until the
// retry, and is emptied when it is denied again.
func TestDenied(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.put("/open/a.txt", 0)
	s.put("/sealed/b.txt", 0)
	var clock atomic.Int64
	clock.Store(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Unix())
	now := func() time.Time { return time.Unix(clock.Load(), 0) }
	sink := newHeard()
	r, names := robot(t, open(t), sink, share.Config{Now: now, DeniedRetry: time.Hour}, s.URL)
	sweep(t, r, names)
	s.set(func() { s.sealed["/sealed/"] = true })
	if c := sweep(t, r, names); c.Errors["denied"] != 1 || len(sink.paths()) != 2 {
		t.Errorf("denied: %+v, %v", c, sink.paths())
	}
	before := s.listings.Load()
	if c := sweep(t, r, names); c.Errors["denied"] != 0 || s.listings.Load()-before != 2 || len(sink.paths()) != 2 {
		t.Errorf("denied before: %+v, %d listings", c, s.listings.Load()-before)
	}
	clock.Add(3601)
	if c := sweep(t, r, names); c.Errors["denied"] != 1 || !slices.Equal(sink.paths(), []string{"open/a.txt"}) {
		t.Errorf("denied again: %+v, %v", c, sink.paths())
	}
	s.set(func() { s.sealed = map[string]bool{} })
	clock.Add(3601)
	if sweep(t, r, names); len(sink.paths()) != 2 || r.Status().Hosts[0].Denied != 0 {
		t.Errorf("open again: %v, %+v", sink.paths(), r.Status().Hosts[0])
	}
}

// A running robot finds changes, never reads one machine with two workers, is
// resized while it runs, and takes sources on.
func TestRun(t *testing.T) {
	t.Parallel()
	servers := []*server{newServer(t), newServer(t)}
	for _, s := range servers {
		for i := range 50 {
			s.put(fmt.Sprintf("/d%d/f%d.txt", i%5, i), 0)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "ąžuolas.txt"), []byte("labas"), 0o600); err != nil {
		t.Fatal(err)
	}
	sink := newHeard()
	r, _ := robot(t, open(t), sink, share.Config{Robots: 4, Media: true, Bound: part.Bound{Bytes: 2_000}, MinInterval: time.Second}, servers[0].URL)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	defer cancel()
	// Two servers on one machine: never both at once.
	for _, s := range []string{servers[1].URL, "file://" + dir} {
		if _, err := r.AddSource(ctx, s); err != nil {
			t.Fatal(err)
		}
	}
	wait(t, "the first scan", func() bool { return len(sink.paths()) == 101 })
	if servers[0].most.Load() > 1 || servers[1].most.Load() > 1 {
		t.Errorf("%d and %d requests at once", servers[0].most.Load(), servers[1].most.Load())
	}
	servers[1].put("/d2/fresh.txt", 1)
	wait(t, "a change", func() bool { return slices.Contains(sink.paths(), "d2/fresh.txt") })
	r.SetRobots(0)
	wait(t, "no worker", func() bool { return r.Status().Working == 0 })
	before := servers[0].listings.Load() + servers[1].listings.Load()
	time.Sleep(1500 * time.Millisecond)
	if after := servers[0].listings.Load() + servers[1].listings.Load(); after != before {
		t.Errorf("%d listings without a worker", after-before)
	}
	r.SetRobots(2)
	servers[0].put("/d1/later.txt", 1)
	wait(t, "a change after the resize", func() bool { return slices.Contains(sink.paths(), "d1/later.txt") })
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run: %v", err)
	}
}

// A host that stays away is offline, asked again with growing pauses, and its files
// are forgotten in the end. It is asked on, because a source names it, and found
// again when it is back.
func TestForget(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.put("/a/b.txt", 0)
	store, sink := open(t), newHeard()
	var gone atomic.Int64 // time that is made to pass
	now := func() time.Time { return time.Now().Add(time.Duration(gone.Load())) }
	r, _ := robot(t, store, sink, share.Config{Robots: 1, MinInterval: time.Second, RetryMin: time.Second, RetryMax: 2 * time.Second, ForgetAfter: time.Hour, Now: now}, s.URL)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	defer cancel()
	wait(t, "the first scan", func() bool { return len(sink.paths()) == 1 })
	s.set(func() { s.down = true })
	s.CloseClientConnections()
	wait(t, "offline", func() bool { h := r.Status().Hosts; return len(h) == 1 && !h[0].Online && h[0].Error == "offline" })
	if len(sink.paths()) != 1 {
		t.Error("an offline host lost its files")
	}
	gone.Store(int64(time.Hour))
	wait(t, "forgotten files", func() bool {
		h := r.Status().Hosts
		return len(h) == 1 && h[0].Files == 0 && h[0].Parts == 0 && !h[0].Online && len(sink.paths()) == 0
	})
	s.set(func() { s.down = false })
	wait(t, "the host's return", func() bool { return len(sink.paths()) == 1 && r.Status().Hosts[0].Online })
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func wait(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("waited in vain for %s", what)
}

// The state of a part is small.
func TestPartStateSize(t *testing.T) {
	t.Parallel()
	s := share.PartState{
		Part: part.Part{Folder: "Music/Albums/By artist", Left: "/Madonna", Right: "/Metallica"}, Changed: 1_800_000_000,
		Sum: part.Sum{Hash: part.Hash{High: 1 << 60, Low: 1 << 61}, Files: 20_000, Folders: 2_000, Media: 15_000, Bytes: 8 << 20, Time: 40 * time.Second},
	}
	if n := len(share.AppendPart(nil, &s)); n > 120 {
		t.Errorf("%d bytes", n)
	}
	back, err := share.ParsePart(share.AppendPart(nil, &s))
	if err != nil || back != s {
		t.Errorf("%+v, %v", back, err)
	}
}

func FuzzParseFile(f *testing.F) {
	f.Add(share.AppendFile(nil, &share.File{Size: 5, Modified: 7}))
	f.Fuzz(func(_ *testing.T, b []byte) {
		var file share.File
		_ = share.ParseFile(b, &file)
		_, _ = share.ParsePart(b)
		_, err := share.ParseHost(b)
		_ = errors.Unwrap(err)
	})
}

// A side file tells of its film, also when it comes or changes later.
func TestSideFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("Solaris.1972.avi", "no real film")
	sink := newHeard()
	r, names := robot(t, open(t), sink, share.Config{Media: true}, "file://"+dir)
	sweep(t, r, names)
	film := func() share.File { return sink.files[names[0]+"|Solaris.1972.avi"] }
	if film().Media.Genre != "" {
		t.Errorf("%+v", film())
	}
	seen := film().Seen
	write("Solaris.1972.nfo", "<movie><title>Solaris</title><genre>Drama</genre><actor><name>Donatas Banionis</name></actor></movie>")
	if c := sweep(t, r, names); film().Media.Genre != "Drama" || len(film().Media.Actors) != 1 || c.Added != 1 || film().Seen != seen {
		t.Errorf("%+v, %+v", film(), c)
	}
}
