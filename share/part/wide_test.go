package part

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/freshet/freshet/share/source"
)

// wideFolder is a host whose root has n subfolders with one file each. Names are made
// when they are listed, in no order, so that it takes no memory itself.
type wideFolder struct {
	n, name  int // subfolders, bytes of their names
	listings int
	inner    func() // called with every listing of a subfolder
}

func (w *wideFolder) subfolder(i int) string {
	i = i * 7919 % w.n
	return fmt.Sprintf("%07d%s", i, strings.Repeat("x", max(0, w.name-7)))
}

func (w *wideFolder) List(_ context.Context, path string) ([]source.Entry, error) {
	if path == "" {
		return nil, errors.New("the root is listed in pieces only")
	}
	w.listings++
	if w.inner != nil {
		w.inner()
	}
	return []source.Entry{{Name: "only.mp3", Size: 1, Modified: 1}}, nil
}

func (w *wideFolder) ListEach(ctx context.Context, path string, f func([]source.Entry) error) error {
	if path != "" {
		list, err := w.List(ctx, path)
		if err != nil {
			return err
		}
		return f(list)
	}
	w.listings++
	for i := 0; i < w.n; {
		var piece []source.Entry
		for ; i < w.n && len(piece) < 1000; i++ {
			piece = append(piece, source.Entry{Name: w.subfolder(i), Dir: true})
		}
		if err := f(piece); err != nil {
			return err
		}
	}
	return nil
}

// A folder of a million subfolders is listed once, whatever the bound, with bounded
// memory, and its pieces hold every file.
func TestWideFolder(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		n, name int
		bound   int64
	}{
		{1_000_000, 7, 100 << 10},
		{200_000, 200, DefaultBytes},
		{30_000, 200, 1 << 10},
	} {
		t.Run(fmt.Sprintf("%d names of %d bytes, bound %d", tt.n, tt.name, tt.bound), func(t *testing.T) {
			t.Parallel()
			host := &wideFolder{n: tt.n, name: tt.name}
			last, files := "", 0
			w := &Walk{
				List: host, Bound: Bound{Bytes: tt.bound}, Now: still,
				File: func(folder *Folder, _ source.Entry) error {
					if folder.Key <= last {
						return fmt.Errorf("folder %q after %q", folder.Key, last)
					}
					last = folder.Key
					files++
					return nil
				},
			}
			if err := w.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if files != tt.n || w.Result.Sum.Files != int64(tt.n) || host.listings != tt.n+1 {
				t.Errorf("%d files, a sum of %d, %d listings; want %d files and %d listings", files, w.Result.Sum.Files, host.listings, tt.n, tt.n+1)
			}
			if w.Result.Peak > 3*tt.bound/2 || w.Result.Spilled != 1 {
				t.Errorf("%d bytes of names held, %d folders spilled; want at most %d, and 1", w.Result.Peak, w.Result.Spilled, 3*tt.bound/2)
			}
		})
	}
}

// What a walk of a wide folder keeps is bounded, not its number of names times their
// length (220 MB here).
func TestWideFolderMemory(t *testing.T) {
	host := &wideFolder{n: 1_000_000, name: 200}
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	most := uint64(0)
	host.inner = func() {
		if host.listings%100_000 == 2 {
			runtime.GC()
			runtime.ReadMemStats(&now)
			most = max(most, now.HeapAlloc)
		}
	}
	w := &Walk{List: host, Bound: Bound{Bytes: DefaultBytes}, Now: still}
	if err := w.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if held := int64(most) - int64(before.HeapAlloc); held > 40<<20 {
		t.Errorf("%d MB held, want at most 40", held>>20)
	}
	if host.listings != host.n+1 {
		t.Errorf("%d listings, want %d", host.listings, host.n+1)
	}
}

// A walk that is stopped, wherever it is, ends with a canceled error before it lists
// one more folder.
func TestStopWalk(t *testing.T) {
	t.Parallel()
	for _, at := range []int{2, 1_000, 49_999} {
		host := &wideFolder{n: 50_000, name: 30}
		ctx, cancel := context.WithCancel(t.Context())
		host.inner = func() {
			if host.listings == at {
				cancel()
			}
		}
		w := &Walk{List: host, Bound: Bound{Bytes: 100 << 10}, Now: still}
		if err := w.Run(ctx); source.ClassOf(err) != source.Canceled || host.listings != at {
			t.Errorf("stopped at listing %d: %v after %d listings", at, err, host.listings)
		}
		cancel()
	}
	// Among a million files, which need no listing more.
	tr := newTree()
	for i := range 100_000 {
		tr.folders[""] = append(tr.folders[""], source.Entry{Name: fmt.Sprintf("f%06d", i)})
	}
	for _, bound := range []int64{100 << 10, 1 << 30} {
		ctx, cancel := context.WithCancel(t.Context())
		files := 0
		w := &Walk{List: tr, Bound: Bound{Bytes: bound}, Now: still, File: func(*Folder, source.Entry) error {
			if files++; files == 5_000 {
				cancel()
			}
			return nil
		}}
		if err := w.Run(ctx); source.ClassOf(err) != source.Canceled || files > 7_000 {
			t.Errorf("bound %d: %v after %d files, want a stop soon after 5000", bound, err, files)
		}
		cancel()
	}
}

// BenchmarkWideFolder walks folders whose names are beyond the bound: the time a
// subfolder must not grow with their number.
func BenchmarkWideFolder(b *testing.B) {
	for _, bm := range []struct {
		n, name int
		bound   int64
	}{{2_500, 7, 40 << 10}, {5_000, 7, 80 << 10}, {10_000, 7, 160 << 10}, {30_000, 7, 600 << 10}, {52_000, 200, DefaultBytes}, {1_000_000, 7, DefaultBytes}, {1_000_000, 200, DefaultBytes}} {
		b.Run(fmt.Sprintf("n=%d/name=%d/bound=%dK", bm.n, bm.name, bm.bound>>10), func(b *testing.B) {
			for b.Loop() {
				w := &Walk{List: &wideFolder{n: bm.n, name: bm.name}, Bound: Bound{Bytes: bm.bound}, Now: still}
				if err := w.Run(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(bm.n), "us/folder")
		})
	}
}
