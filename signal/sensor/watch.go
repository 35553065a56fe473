package sensor

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net/url"
	"os"
	pathpkg "path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/fsnotify/fsnotify"

	"github.com/freshet/freshet/signal"
)

// Watch follows the files of a document root: the kernel tells of changes at
// once, and a slow rescan finds what it did not tell (full queues, network file
// systems, too many folders). The first scan tells nothing: it learns.
type Watch struct {
	Root   string
	Base   string // address of Root
	Index  string // file that a folder's address serves; "" is index.html
	Rescan time.Duration
	To     func(signal.Event)
	Log    *slog.Logger // nil is silent

	files map[string]stamp // by path
	young map[string]bool  // written just now: looked at again once they rest
}

// stamp is what a file was like.
type stamp struct {
	size   int64
	time   time.Time
	digest uint64
}

// settle is how long a burst of writes to files is waited out.
const settle = 200 * time.Millisecond

// Run watches until the context ends.
func (w *Watch) Run(ctx context.Context) error {
	if w.Log == nil {
		w.Log = slog.New(slog.DiscardHandler)
	}
	if w.Rescan <= 0 {
		w.Rescan = 10 * time.Minute
	}
	kernel, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	defer kernel.Close()
	w.files, w.young = map[string]stamp{}, map[string]bool{}
	if err := w.scanTree(kernel, w.Root, false); err != nil {
		return err
	}
	rescan := time.NewTicker(w.Rescan)
	defer rescan.Stop()
	wait := time.NewTimer(time.Hour)
	defer wait.Stop()
	touched := map[string]bool{}
	for {
		if len(w.young) > 0 {
			maps.Copy(touched, w.young)
			clear(w.young)
			wait.Reset(settle)
		}
		select {
		case <-ctx.Done():
			return nil
		case e := <-kernel.Events:
			if len(touched) == 0 {
				wait.Reset(settle)
			}
			touched[e.Name] = true
		case err := <-kernel.Errors:
			w.Log.Warn("the kernel lost events: scanning", "err", err)
			rescan.Reset(w.Rescan)
			touched[w.Root] = true
			wait.Reset(settle)
		case <-wait.C:
			names := slices.Collect(maps.Keys(touched))
			clear(touched)
			for _, name := range names {
				if err := w.scanTree(kernel, name, true); err != nil {
					w.Log.Warn("not scanned", "name", name, "err", err)
				}
			}
		case <-rescan.C:
			if err := w.scanTree(kernel, w.Root, true); err != nil {
				w.Log.Warn("not scanned", "name", w.Root, "err", err)
			}
		}
	}
}

// scanTree compares what is at and below a name with what was, and tells.
func (w *Watch) scanTree(kernel *fsnotify.Watcher, name string, tell bool) error {
	there := map[string]bool{}
	whole := true // nothing was unreadable: what is missing is gone
	err := filepath.WalkDir(name, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			if path == w.Root {
				return err // an unmounted root is no site without pages
			}
			if !errors.Is(err, fs.ErrNotExist) {
				whole = false
			}
			return nil
		case path != w.Root && strings.HasPrefix(d.Name(), "."):
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		case d.IsDir():
			if err := kernel.Add(path); err != nil {
				w.Log.Warn("not watched, only rescanned", "folder", path, "err", err)
			}
			return nil
		case !d.Type().IsRegular():
			return nil
		}
		there[path] = true
		w.compareFile(path, tell)
		return nil
	})
	if err != nil || !whole {
		return err
	}
	below := name + string(filepath.Separator)
	for path, old := range w.files {
		if !there[path] && (path == name || strings.HasPrefix(path, below)) {
			delete(w.files, path)
			w.To(signal.Event{URL: w.servedAddress(path), Event: "deleted", Prev: digestText(old.digest), Seen: time.Now()})
		}
	}
	return nil
}

// compareFile reads a file if its size or time is new.
func (w *Watch) compareFile(path string, tell bool) {
	info, err := os.Stat(path)
	if err != nil {
		return // gone between: the next scan sees it
	}
	old, known := w.files[path]
	if known && old.size == info.Size() && old.time.Equal(info.ModTime()) {
		return
	}
	if age := time.Since(info.ModTime()); tell && age >= 0 && age < settle {
		w.young[path] = true // perhaps half written
		return
	}
	now := stamp{size: info.Size(), time: info.ModTime()}
	f, err := os.Open(path)
	if err != nil {
		return
	}
	defer f.Close()
	h := xxhash.New()
	if _, err := io.Copy(h, f); err != nil {
		return
	}
	now.digest = h.Sum64()
	w.files[path] = now
	if !tell || (known && now.digest == old.digest) {
		return
	}
	e := signal.Event{URL: w.servedAddress(path), Event: "updated", Digest: digestText(now.digest), Size: now.size, Seen: time.Now()}
	if known {
		e.Prev = digestText(old.digest)
	}
	w.To(e)
}

// servedAddress is where the server shows a file.
func (w *Watch) servedAddress(path string) string {
	rel, err := filepath.Rel(w.Root, path)
	if err != nil {
		rel = filepath.Base(path)
	}
	index := w.Index
	if index == "" {
		index = "index.html"
	}
	rel = filepath.ToSlash(rel)
	if dir, file := pathpkg.Split(rel); file == index {
		rel = dir // a folder's address ends in a slash
	}
	return strings.TrimSuffix(w.Base, "/") + (&url.URL{Path: "/" + rel}).EscapedPath()
}
