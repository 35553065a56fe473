// Package engine is the text index for one machine: immutable segments in a
// folder of the data directory, written and read in the same process.
//
//	Apply -> invert.Buffer -> segment files -> merge.Run -> larger ones
//	                             |
//	Search <- search.Run <- snapshot (segments, deleted documents, popularity)
//
// Visible and durable are two things. What Apply was given is found by every
// search that starts after it returned. It survives a crash once a commit has
// synced the files and replaced the manifest, which names the feed's cursor in
// the same write: after a crash the feed goes on where the manifest is. A commit
// runs every CommitEvery and at Close.
//
// A segment is never changed. A replaced or deleted document is marked in the
// segment's state, which is replaced as a whole, and so is popularity; merges
// leave the dead out. Searches hold a snapshot and never wait for a merge or a
// commit.
//
// docs/design/index.md describes the files to the byte.
package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/freshet/freshet/index"
	"github.com/freshet/freshet/index/engine/bm25"
	"github.com/freshet/freshet/index/engine/invert"
	"github.com/freshet/freshet/index/engine/manifest"
	"github.com/freshet/freshet/index/engine/search"
	"github.com/freshet/freshet/index/engine/segment"
)

// Config are the engine's options. The zero value is usable.
type Config struct {
	// Languages are tried as the language of every query word; the first is that
	// of documents that name none. Default en, ru, lt.
	Languages []string
	// ReadText, if not nil, returns the body of a document by its ID: bodies are
	// not stored then, which makes the index half as large and snippets slower.
	ReadText func(ctx context.Context, id string) (string, error)
	// CommitEvery is how much time a crash may cost. Default 3 s.
	CommitEvery time.Duration
	// BufferWords is how many words are held in memory before they become a
	// segment, some 20 bytes each and their text. Default 2 million.
	BufferWords int
	// MergeBytes bounds what merges write in a second. Default 64 MiB.
	MergeBytes int
	// Log, if not nil, is told about merges that fail.
	Log *slog.Logger
}

func (c Config) withDefaults() Config {
	if len(c.Languages) == 0 {
		c.Languages = []string{"en", "ru", "lt"}
	}
	if c.CommitEvery <= 0 {
		c.CommitEvery = 3 * time.Second
	}
	if c.BufferWords <= 0 {
		c.BufferWords = 2 << 20
	}
	if c.MergeBytes <= 0 {
		c.MergeBytes = 64 << 20
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Errors of Open and of a running engine.
var (
	// ErrLocked means that another process has the index open.
	ErrLocked = errors.New("in use by another process")
	// ErrDamaged means that a file is not as it was written. The index is derived
	// data: Reset makes an empty one, which the feed fills.
	ErrDamaged = errors.New("the index is damaged")
	// ErrVersion means that another version of the program wrote the index.
	ErrVersion = errors.New("the index has another format")
	// ErrClosed means that the engine was closed.
	ErrClosed = errors.New("the index is closed")
)

// Engine is an index.Engine. It is safe for concurrent use.
type Engine struct {
	dir    string
	config Config
	lock   *os.File

	mu       sync.Mutex // of what follows
	buffer   *invert.Buffer
	pending  map[string]bool // identifiers that the next flush replaces in segments
	segments []*held
	obsolete []*held // merged away, perhaps still named by the manifest
	next     uint64  // number of the next file
	cursor   []byte  // of what was applied
	merging  bool

	commitLock sync.Mutex // one commit at a time; before mu
	durable    atomic.Pointer[manifest.Manifest]
	committed  []byte // encoding of the last manifest, to see whether anything changed

	snapshotLock sync.Mutex
	current      *snapshot

	hasPending  atomic.Bool  // documents that no snapshot shows
	lastSearch  atomic.Int64 // in nanoseconds since 1970
	damage      atomic.Pointer[error]
	mergeWanted chan struct{}
	mergeEnded  chan struct{}
	stop        context.CancelFunc
	background  sync.WaitGroup
	testHook    atomic.Pointer[func(stage string)] // called between the stages of merges and commits in tests
}

// held is a segment of the index.
type held struct {
	name      string
	segment   *segment.Segment
	part      *search.Part
	state     state
	isSynced  bool
	isRetired bool

	version      int // of state
	savedVersion int
	stateFile    string // that the manifest names
}

func (h *held) set(s state) {
	h.state = s
	h.version++
	h.part = search.NewPart(h.segment, s.dead, s.popularity)
}

const lockFile = "LOCK"

// Open opens the index in dir, or makes a new one. An index of Bleve, which
// earlier versions wrote, is removed: the feed fills the new one.
func Open(dir string, c Config) (_ *Engine, err error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("index: %w", err)
	}
	e := &Engine{dir: dir, config: c.withDefaults(), pending: map[string]bool{}, mergeWanted: make(chan struct{}, 1), mergeEnded: make(chan struct{}, 1)}
	e.buffer = invert.NewBuffer(e.config.Languages[0], c.ReadText != nil)
	if e.lock, err = lockDir(dir); err != nil {
		return nil, fmt.Errorf("index %s: %w", dir, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.closeFiles())
		}
	}()
	if err := removeBleve(dir); err != nil {
		return nil, err
	}
	if why, err := os.ReadFile(filepath.Join(dir, damageFile)); err == nil {
		return nil, fmt.Errorf("index %s: %w: it was found before: %s", dir, ErrDamaged, why)
	}
	total, err := e.openFiles()
	if err != nil {
		return nil, fmt.Errorf("index %s: %w", dir, explain(err))
	}
	ctx, cancel := context.WithCancel(context.Background())
	e.stop = cancel
	e.publish()
	e.background.Go(func() { e.commitLoop(ctx) })
	e.background.Go(func() { e.mergeLoop(ctx) })
	if total > verifyAtOnce {
		e.background.Go(func() { e.verifyAll(ctx) })
	}
	e.wantMerge()
	return e, nil
}

// explain turns errors of files into those of the engine.
func explain(err error) error {
	switch {
	case errors.Is(err, segment.ErrVersion), errors.Is(err, manifest.ErrVersion):
		return fmt.Errorf("%w: %w", ErrVersion, err)
	case errors.Is(err, segment.ErrDamaged), errors.Is(err, manifest.ErrDamaged), errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}

// lockDir keeps other processes out of a directory until the file is closed.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o640)
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(lockWait); ; time.Sleep(lockWait / 20) {
		if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
			return f, nil
		}
		if time.Now().After(deadline) {
			return nil, errors.Join(ErrLocked, f.Close())
		}
	}
}

// lockWait is for how long Open waits for a process that is about to end.
const lockWait = time.Second

// bleveMark is the file by which an index of Bleve is known.
const bleveMark = "index_meta.json"

// removeBleve removes an index that an earlier version wrote with Bleve; the
// file that marks it goes last, so a crash in between is seen.
func removeBleve(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, bleveMark)); err != nil {
		return nil //nolint:nilerr // not there
	}
	for _, name := range []string{"store", bleveMark} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("index %s: remove the index of an earlier version: %w", dir, err)
		}
	}
	return nil
}

// Reset removes the index in dir, so that Open makes an empty one.
func Reset(dir string) (err error) {
	lock, err := lockDir(dir)
	if err != nil {
		return fmt.Errorf("index %s: %w", dir, err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	for _, name := range []string{manifest.Name, damageFile} { // the mark last: without it the index would be whole
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("index: %w", err)
		}
	}
	return (&manifest.Manifest{}).RemoveOthers(dir)
}

// verifyAtOnce is the size of an index up to which Open reads all of it; of a
// larger one it reads trailers and columns, and the rest in the background.
const verifyAtOnce = 64 << 20

// openFiles opens what the manifest names and returns the size of it.
func (e *Engine) openFiles() (total int64, err error) {
	m, err := manifest.Read(e.dir)
	if errors.Is(err, fs.ErrNotExist) {
		left, _ := filepath.Glob(filepath.Join(e.dir, "*"+manifest.SegmentExt))
		if len(left) > 0 {
			return 0, fmt.Errorf("there is no %s: %w", manifest.Name, ErrDamaged)
		}
		m = &manifest.Manifest{Next: 1}
		err = manifest.Write(e.dir, m)
	}
	if err != nil {
		return 0, err
	}
	for _, s := range m.Segments {
		if err := e.openSegment(s); err != nil {
			return 0, err
		}
		total += s.Size
	}
	if total <= verifyAtOnce {
		for _, h := range e.segments {
			if err := h.segment.Verify(); err != nil {
				return 0, err
			}
		}
	}
	e.next, e.cursor = m.Next, m.Cursor
	e.durable.Store(m)
	return total, m.RemoveOthers(e.dir)
}

func (e *Engine) openSegment(m manifest.Segment) error {
	path := filepath.Join(e.dir, m.File)
	s, err := segment.Open(path)
	if err != nil {
		return err
	}
	h := &held{name: m.File, segment: s, isSynced: true, stateFile: m.State, state: state{popularity: s.Popularity()}}
	e.segments = append(e.segments, h)
	if s.Size() != m.Size {
		return fmt.Errorf("%s has %d bytes, not %d: %w", path, s.Size(), m.Size, ErrDamaged)
	}
	st := h.state
	if m.State != "" {
		if st, err = readState(filepath.Join(e.dir, m.State), s.Len()); err != nil {
			return err
		}
	}
	h.set(st)
	h.savedVersion = h.version
	return nil
}

// verifyAll reads all segments and stops the engine if one is damaged.
func (e *Engine) verifyAll(ctx context.Context) {
	s := e.acquire()
	if s == nil {
		return
	}
	defer s.release()
	err := guard(func() error {
		for _, p := range s.parts {
			if ctx.Err() != nil {
				return nil
			}
			if err := p.Segment.Verify(); err != nil {
				return explain(err)
			}
		}
		return nil
	})
	if err != nil {
		e.refuse(err)
	}
}

// damageFile marks an index in which damage was found while it was in use, so
// that the next Open refuses it without reading everything.
const damageFile = "DAMAGED"

// refuse lets all further calls fail with err, and the next Open.
func (e *Engine) refuse(err error) {
	err = fmt.Errorf("index %s: %w", e.dir, err)
	if !e.damage.CompareAndSwap(nil, &err) {
		return
	}
	if err := manifest.WriteFile(filepath.Join(e.dir, damageFile), []byte(err.Error())); err != nil {
		e.config.Log.Error("index", "err", err)
	}
	e.config.Log.Error("the index is damaged; it is built again at the next start", "err", err)
}

// usable returns what keeps the engine from working.
func (e *Engine) usable() error {
	if err := e.damage.Load(); err != nil {
		return *err
	}
	return nil
}

// Cursor implements index.Engine.
func (e *Engine) Cursor(context.Context) ([]byte, error) {
	if err := e.usable(); err != nil {
		return nil, err
	}
	return e.durable.Load().Cursor, nil
}

// Stats implements index.Engine.
func (e *Engine) Stats(ctx context.Context) (index.Stats, error) {
	if err := e.refresh(ctx); err != nil {
		return index.Stats{}, err
	}
	snap := e.acquire()
	if snap == nil {
		return index.Stats{}, ErrClosed
	}
	defer snap.release()
	var s index.Stats
	for _, p := range snap.parts {
		s.Documents += uint64(p.Live())
	}
	entries, err := os.ReadDir(e.dir)
	if err != nil {
		return s, fmt.Errorf("index: %w", err)
	}
	for _, d := range entries {
		if info, err := d.Info(); err == nil { // else merged away meanwhile
			s.DiskBytes += uint64(info.Size())
		}
	}
	return s, nil
}

// Close implements index.Engine: it commits what was applied.
func (e *Engine) Close() error {
	e.stop()
	e.background.Wait()
	var err error
	if e.usable() == nil {
		err = e.commit(context.Background())
	}
	e.setSnapshot(nil)
	return errors.Join(err, e.closeFiles())
}

// closeFiles closes segments and lock.
func (e *Engine) closeFiles() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, h := range append(e.segments, e.obsolete...) {
		_ = h.segment.Close()
	}
	e.segments, e.obsolete = nil, nil
	return e.lock.Close()
}

// reference returns the average lengths that the next segment keeps bounds for:
// those of the largest segment, so that a merge can copy them. e.mu is held.
func (e *Engine) reference() bm25.Averages {
	var largest *held
	for _, h := range e.segments {
		if largest == nil || h.segment.Len() > largest.segment.Len() {
			largest = h
		}
	}
	if largest == nil {
		return e.buffer.Averages()
	}
	return largest.segment.Reference()
}
