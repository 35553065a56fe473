// Package files finds files of shares: by the words of their names, folders and
// tags, by a piece of a name, by filters; copies of one song, episode or film
// come as one result with all its places, those that are online first.
//
// It is the second schema of segmentset, beside the pages of index/engine: the
// same manifest, commits, merges, snapshots, postings and dictionary. A segment holds
// files in the order of host, folder and name, so that a folder is a run of files and
// names are front-coded; one column for each property; lists of files for words, lists
// of folders for words of paths, and lists of blocks of names for every three bytes, by
// which pieces of names are found (package nametable).
//
// Index is a share.Sink. What it loses in a crash it reads again from the store's
// journal of changes (Follow): the manifest names how far it came with every host.
//
// docs/design/index.md describes the files to the byte.
package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/freshet/freshet/index/engine/segmentset"
	"github.com/freshet/freshet/share"
)

// Config are the options of Open. The zero value is usable.
type Config struct {
	// CommitEvery is how much time a crash may cost. Default 3 s.
	CommitEvery time.Duration
	// BufferFiles is how many files are held in memory before they become a segment,
	// some 500 bytes each. Default 128 Ki.
	BufferFiles int
	// MergeBytes bounds what merges write in a second. Default 64 MiB.
	MergeBytes int
	// Log, if not nil, is told about merges that fail and about filling.
	Log *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.CommitEvery <= 0 {
		c.CommitEvery = 3 * time.Second
	}
	if c.BufferFiles <= 0 {
		c.BufferFiles = 128 << 10
	}
	if c.MergeBytes <= 0 {
		c.MergeBytes = 64 << 20
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Bounds of segments.
const (
	// maxMerged bounds what becomes one segment, some 8 million files: a merge holds
	// some 40 bytes of memory for each.
	maxMerged = 512 << 20
	// maxSegments is how many segments there may be before Update waits for merges.
	maxSegments = 64
	// searchedLately is for how long after a search Update makes its files visible
	// itself, so that the next search need not.
	searchedLately = 10 * time.Second
)

// Index finds files. Its methods may be called from any goroutine; one Update of a
// host runs at a time.
type Index struct {
	set    *segmentset.Set[*fileSegment, *view]
	config Config
	store  Store // nil if the index follows none

	// Under the lock of set.
	pending      map[string]map[string]*share.File // by host and path; nil for a removed file
	pendingCount int
	cursor       cursor
	isMoved      bool // cursor

	hasPending atomic.Bool
	lastSearch atomic.Int64 // in nanoseconds since 1970

	mu        sync.Mutex
	offline   map[string]bool
	trimmed   map[string]uint64 // up to which change the store forgot the changes of a host
	trimmedAt string            // the cursor of then
}

// cursor is how far the index came.
type cursor struct {
	Store string            `json:"store,omitempty"` // share.Journal.ID
	Hosts map[string]uint64 `json:"hosts,omitempty"` // number of the last change of each host
}

var _ share.Sink = (*Index)(nil)

// schema says what the segments of the set are.
type schema struct{ index *Index }

// Open implements segmentset.Schema.
func (schema) Open(path string) (*fileSegment, error) { return openSegment(path) }

// NewPart implements segmentset.Schema.
func (schema) NewPart(s *fileSegment, st segmentset.State) *view { return newView(s, st) }

// Changeable implements segmentset.Schema: nothing changes in place.
func (schema) Changeable(*fileSegment) []byte { return nil }

// Flush implements segmentset.Schema.
func (s schema) Flush() error { return s.index.flushFiles() }

// Merge implements segmentset.Schema.
func (schema) Merge(ctx context.Context, path string, parts []*view, limit func(int)) (*fileSegment, []segmentset.Mapping, error) {
	return mergeFiles(ctx, path, parts, limit)
}

// Open opens the index in dir, or makes an empty one. It fails with
// segmentset.ErrLocked, ErrDamaged or ErrVersion; Reset mends the last two.
func Open(dir string, c Config) (*Index, error) {
	x := &Index{config: c.withDefaults(), pending: map[string]map[string]*share.File{}, offline: map[string]bool{}, trimmed: map[string]uint64{}}
	var err error
	x.set, err = segmentset.Open[*fileSegment, *view](dir, schema{x}, segmentset.Config{
		CommitEvery: x.config.CommitEvery, MergeBytes: x.config.MergeBytes, MaxMerged: maxMerged, Log: x.config.Log,
	})
	if err != nil {
		return nil, err
	}
	b, err := x.set.Cursor()
	if err == nil && len(b) > 0 {
		err = json.Unmarshal(b, &x.cursor)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("index %s: cursor: %w: %w", dir, segmentset.ErrDamaged, err), x.set.Close())
	}
	if x.cursor.Hosts == nil {
		x.cursor.Hosts = map[string]uint64{}
	}
	x.set.Start()
	return x, nil
}

// Reset removes the index in dir, so that Open makes an empty one.
func Reset(dir string) error { return segmentset.Reset(dir) }

// Close commits what was applied and closes the index; searches under way finish
// first.
func (x *Index) Close() error { return errors.Join(x.set.Close(), x.trimChanges(context.Background())) }

// Commit makes durable what was applied.
func (x *Index) Commit(ctx context.Context) error {
	return errors.Join(x.set.Commit(ctx), x.trimChanges(ctx))
}

// Compact merges all segments into one.
func (x *Index) Compact(ctx context.Context) error {
	if err := x.refreshFiles(); err != nil {
		return err
	}
	return x.set.Compact(ctx)
}

// Update implements share.Sink: searches that start after it returns see it.
func (x *Index) Update(ctx context.Context, host string, put []share.File, removed []string) error {
	if x.store == nil {
		return x.applyChanges(ctx, host, put, removed, func() {})
	}
	last, err := x.store.LastChange(ctx, host)
	if err != nil {
		return err
	}
	x.set.Lock()
	done, isKnown := x.cursor.Hosts[host]
	x.set.Unlock()
	if isKnown && done+1 < last || !isKnown && last != 1 { // an update was missed
		return x.catchUp(ctx, host)
	}
	err = x.applyChanges(ctx, host, put, removed, func() { x.moveTo(host, last) })
	return errors.Join(err, x.trimChanges(ctx))
}

// moveTo notes that the changes of a host were applied up to a number. The lock is held.
func (x *Index) moveTo(host string, change uint64) {
	x.cursor.Hosts[host] = change
	x.isMoved = true
}

// applyChanges buffers changes and calls move, under one lock.
func (x *Index) applyChanges(ctx context.Context, host string, put []share.File, removed []string, move func()) error {
	if err := errors.Join(ctx.Err(), x.set.Usable()); err != nil {
		return err
	}
	if err := x.set.WaitForMerges(ctx, maxSegments); err != nil {
		return err
	}
	x.set.Lock()
	defer x.set.Unlock()
	if x.set.IsClosed() {
		return segmentset.ErrClosed
	}
	files := x.pending[host]
	if files == nil {
		files = map[string]*share.File{}
		x.pending[host] = files
	}
	before := len(files)
	for i := range put {
		f := put[i]
		f.Host = host
		files[f.Path] = &f
	}
	for _, p := range removed {
		files[p] = nil
	}
	x.pendingCount += len(files) - before
	x.hasPending.Store(true)
	move()
	if x.pendingCount >= x.config.BufferFiles || time.Since(time.Unix(0, x.lastSearch.Load())) < searchedLately {
		return x.flushFiles()
	}
	return nil
}

// refreshFiles makes visible what was applied.
func (x *Index) refreshFiles() error {
	if err := x.set.Usable(); err != nil || !x.hasPending.Load() {
		return err
	}
	x.set.Lock()
	defer x.set.Unlock()
	return x.flushFiles()
}

// flushFiles writes the buffer as a segment, marks what it replaces and removes in the
// others, and publishes both at once. The lock is held.
func (x *Index) flushFiles() error {
	if x.isMoved {
		b, err := json.Marshal(x.cursor)
		if err != nil {
			return fmt.Errorf("index %s: %w", x.set.Dir(), err)
		}
		x.set.SetCursor(b)
		x.isMoved = false
	}
	if !x.hasPending.Load() {
		return nil
	}
	var changed, put []*share.File
	for host, files := range x.pending {
		for path, f := range files {
			if f == nil {
				f = &share.File{Host: host, Path: path}
			} else {
				put = append(put, f)
			}
			changed = append(changed, f)
		}
	}
	if err := segmentset.Guard(func() error { return x.markDead(sortFiles(changed)) }); err != nil {
		return fmt.Errorf("index %s: %w", x.set.Dir(), err)
	}
	if len(put) > 0 {
		fresh, err := buildSegment(x.set.NewPath(), sortFiles(put))
		if err != nil {
			return fmt.Errorf("index %s: %w", x.set.Dir(), err)
		}
		x.set.Add(fresh)
	}
	clear(x.pending)
	x.pendingCount = 0
	x.hasPending.Store(false)
	x.set.Publish()
	return nil
}

// markDead marks files as deleted in all segments. The lock is held.
func (x *Index) markDead(files []sortedFile) error {
	for _, h := range x.set.Segments() {
		var dead []uint32
		var l *locator
		host := ""
		for i, f := range files {
			if i == 0 || f.host != host {
				l, host = newLocator(h.Segment, f.host), f.host
			}
			doc, ok, err := l.findFile(f.folder, f.name)
			if err != nil {
				return err
			}
			if ok && !h.Part.IsDead(doc) {
				dead = append(dead, doc)
			}
		}
		if len(dead) > 0 {
			x.set.SetState(h, h.State.WithDead(dead))
		}
	}
	return nil
}

// Online implements share.Sink.
func (x *Index) Online(host string, online bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if online {
		delete(x.offline, host)
	} else {
		x.offline[host] = true
	}
}

// Drop implements share.Sink.
func (x *Index) Drop(ctx context.Context, host string) error {
	last := uint64(0)
	if x.store != nil {
		var err error
		if last, err = x.store.LastChange(ctx, host); err != nil {
			return err
		}
	}
	return x.dropHost(host, func() { x.moveTo(host, last) })
}

// dropHost removes all files of a host and calls move, under one lock.
func (x *Index) dropHost(host string, move func()) error {
	if err := x.set.Usable(); err != nil {
		return err
	}
	x.set.Lock()
	defer x.set.Unlock()
	if x.set.IsClosed() {
		return segmentset.ErrClosed
	}
	x.pendingCount -= len(x.pending[host])
	delete(x.pending, host)
	for _, h := range x.set.Segments() {
		n, ok := slices.BinarySearch(h.Segment.hosts, host)
		if !ok {
			continue
		}
		from, to := h.Segment.hostRange(n)
		var dead []uint32
		for doc := from; doc < to; doc++ {
			dead = append(dead, doc)
		}
		x.set.SetState(h, h.State.WithDead(dead))
	}
	move()
	x.set.Publish()
	return nil
}

// Stats tells what the index holds.
type Stats struct {
	Files    int64
	Terms    int64 // of all dictionaries
	Segments []SegmentInfo
	Bytes    int64 // on disk
}

// SegmentInfo describes a segment.
type SegmentInfo struct {
	File    string `json:"file"`
	Bytes   int64  `json:"bytes"`
	Files   int    `json:"files"`
	Deleted int    `json:"deleted"` // files that the next merge leaves out
	Terms   int    `json:"terms"`
}

// Stats returns the present counts.
func (x *Index) Stats() (Stats, error) {
	var st Stats
	if err := x.refreshFiles(); err != nil {
		return st, err
	}
	err := x.set.Read(func(parts []*view) error {
		for _, v := range parts {
			st.Files += int64(v.Live())
			st.Terms += int64(v.Terms().Len())
			st.Segments = append(st.Segments, SegmentInfo{File: filepath.Base(v.Path()), Bytes: v.Size(), Files: v.Live(), Deleted: v.Len() - v.Live(), Terms: v.Terms().Len()})
		}
		return nil
	})
	if err != nil {
		return st, err
	}
	n, err := x.set.DiskBytes()
	st.Bytes = int64(n)
	return st, err
}
