// Package segmentset keeps the segments of an index in a directory: which files
// there are, what is deleted in them, commits, merges and snapshots. It knows
// nothing of what a segment holds; the pages of index/engine and the files of
// index/files are two kinds of sets.
//
// A segment is never changed. A replaced or deleted document is marked in the
// segment's state, which is replaced as a whole; merges leave the dead out.
// Searches hold a snapshot and never wait for a merge or a commit. A commit
// syncs the new files and replaces the manifest, which names the cursor in the
// same write.
package segmentset

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

	"github.com/freshet/freshet/index/engine/manifest"
	"github.com/freshet/freshet/index/engine/segment"
)

// Segment is an immutable file of the index.
type Segment interface {
	Path() string
	Size() int64
	Len() int
	Verify() error
	Acquire()
	Release()
	RemoveAfterUse()
	Close() error
}

// Part is a segment with its state as one search sees it. It is immutable.
type Part interface {
	IsDead(doc uint32) bool
	Live() int
}

// Mapping maps the documents of a source to documents of the merged segment.
type Mapping interface {
	// New returns the new number of a document; false if it was left out.
	New(doc uint32) (uint32, bool)
}

// Schema says what the segments of a set are and how they are made.
type Schema[S Segment, P Part] interface {
	// Open opens the file of a segment.
	Open(path string) (S, error)
	// NewPart returns a segment as searches see it.
	NewPart(s S, st State) P
	// Changeable returns the bytes by document that change after s was written,
	// such as popularity; nil if there are none.
	Changeable(s S) []byte
	// Merge writes the documents of parts that are not deleted to a new file at path
	// and returns where each part's documents are. limit waits until so many bytes may
	// be written.
	Merge(ctx context.Context, path string, parts []P, limit func(bytes int)) (S, []Mapping, error)
	// Flush writes what was applied and is not in a segment, with Set.Add. The lock
	// of the set is held.
	Flush() error
}

// Config are the options of a set.
type Config struct {
	// CommitEvery is how much time a crash may cost.
	CommitEvery time.Duration
	// MergeBytes bounds what merges write in a second.
	MergeBytes int
	// MaxMerged, if not 0, bounds the bytes of the segments that are merged into one.
	MaxMerged int64
	// Log receives errors of failed merges and commits.
	Log *slog.Logger
	// Prepare, if not nil, is called with the directory once it is locked.
	Prepare func(dir string) error
}

// Errors of Open and of a set in use.
var (
	// ErrLocked means that another process has the index open.
	ErrLocked = errors.New("in use by another process")
	// ErrDamaged means that a file is not as it was written. The index is derived
	// data: Reset makes an empty one, which is filled again.
	ErrDamaged = errors.New("the index is damaged")
	// ErrVersion means that another version of the program wrote the index.
	ErrVersion = errors.New("the index has another format")
	// ErrClosed means that the index was closed.
	ErrClosed = errors.New("the index is closed")
)

// Set is the segments of an index. It is safe for concurrent use; methods whose
// comment says so need the lock.
type Set[S Segment, P Part] struct {
	dir    string
	schema Schema[S, P]
	config Config
	lock   *os.File

	mu       sync.Mutex // of what follows
	segments []*Held[S, P]
	obsolete []*Held[S, P] // merged away, perhaps still named by the manifest
	next     uint64        // number of the next file
	cursor   []byte        // of what was applied
	merging  bool

	commitLock sync.Mutex // one commit at a time; before mu
	durable    atomic.Pointer[manifest.Manifest]
	committed  []byte // encoding of the last manifest, to see whether anything changed

	snapshotLock sync.Mutex
	current      *Snapshot[S, P]

	damage      atomic.Pointer[error]
	mergeWanted chan struct{}
	mergeEnded  chan struct{}
	stop        context.CancelFunc
	background  sync.WaitGroup

	// TestHook is called between the stages of merges and commits in tests.
	TestHook atomic.Pointer[func(stage string)]
}

// Held is a segment of the set.
type Held[S Segment, P Part] struct {
	Segment S
	Part    P
	State   State

	name         string
	isSynced     bool
	isRetired    bool
	version      int // of State
	savedVersion int
	stateFile    string // that the manifest names
}

// SetState replaces the state of a segment; Publish makes it visible. The lock is held.
func (s *Set[S, P]) SetState(h *Held[S, P], st State) {
	h.State = st
	h.version++
	h.Part = s.schema.NewPart(h.Segment, st)
}

// LockFile is the file that keeps other processes out of a directory.
const LockFile = "LOCK"

// Open opens the set in dir, or makes an empty one. Commits and merges run once
// Start is called.
func Open[S Segment, P Part](dir string, schema Schema[S, P], c Config) (_ *Set[S, P], err error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("index: %w", err)
	}
	s := &Set[S, P]{dir: dir, schema: schema, config: c, mergeWanted: make(chan struct{}, 1), mergeEnded: make(chan struct{}, 1), stop: func() {}}
	if s.lock, err = lockDir(dir); err != nil {
		return nil, fmt.Errorf("index %s: %w", dir, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.closeFiles())
		}
	}()
	if c.Prepare != nil {
		if err := c.Prepare(dir); err != nil {
			return nil, err
		}
	}
	if why, err := os.ReadFile(filepath.Join(dir, damageFile)); err == nil {
		return nil, fmt.Errorf("index %s: %w: it was found before: %s", dir, ErrDamaged, why)
	}
	if err := s.openFiles(); err != nil {
		return nil, fmt.Errorf("index %s: %w", dir, explainFileError(err))
	}
	s.publishSegments()
	return s, nil
}

// Start runs commits, merges and, of a large index, the verification of all its
// files in the background until Close.
func (s *Set[S, P]) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	total := int64(0)
	for _, h := range s.segments {
		total += h.Segment.Size()
	}
	s.background.Go(func() { s.commitLoop(ctx) })
	s.background.Go(func() { s.mergeLoop(ctx) })
	if total > verifyAtOnce {
		s.background.Go(func() { s.VerifyAll(ctx) })
	}
	s.WantMerge()
}

// explainFileError turns errors of files into errors of the set.
func explainFileError(err error) error {
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
	f, err := os.OpenFile(filepath.Join(dir, LockFile), os.O_CREATE|os.O_RDWR, 0o640)
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
// larger one it reads trailers and small sections, and the rest in the background.
const verifyAtOnce = 64 << 20

// openFiles opens what the manifest names.
func (s *Set[S, P]) openFiles() error {
	m, err := manifest.Read(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		left, _ := filepath.Glob(filepath.Join(s.dir, "*"+manifest.SegmentExt))
		if len(left) > 0 {
			return fmt.Errorf("there is no %s: %w", manifest.Name, ErrDamaged)
		}
		m = &manifest.Manifest{Next: 1}
		err = manifest.Write(s.dir, m)
	}
	if err != nil {
		return err
	}
	total := int64(0)
	for _, named := range m.Segments {
		if err := s.openManifestSegment(named); err != nil {
			return err
		}
		total += named.Size
	}
	if total <= verifyAtOnce {
		for _, h := range s.segments {
			if err := h.Segment.Verify(); err != nil {
				return err
			}
		}
	}
	s.next, s.cursor = m.Next, m.Cursor
	s.durable.Store(m)
	return m.RemoveOthers(s.dir)
}

func (s *Set[S, P]) openManifestSegment(m manifest.Segment) error {
	path := filepath.Join(s.dir, m.File)
	opened, err := s.schema.Open(path)
	if err != nil {
		return err
	}
	h := &Held[S, P]{name: m.File, Segment: opened, isSynced: true, stateFile: m.State}
	s.segments = append(s.segments, h)
	if opened.Size() != m.Size {
		return fmt.Errorf("%s has %d bytes, not %d: %w", path, opened.Size(), m.Size, ErrDamaged)
	}
	st := State{Docs: opened.Len(), Bytes: s.schema.Changeable(opened)}
	if m.State != "" {
		if st, err = readState(filepath.Join(s.dir, m.State), st.Docs, st.Bytes != nil); err != nil {
			return err
		}
	}
	s.SetState(h, st)
	h.savedVersion = h.version
	return nil
}

// VerifyAll reads all segments and stops the set if one is damaged.
func (s *Set[S, P]) VerifyAll(ctx context.Context) {
	snap := s.Acquire()
	if snap == nil {
		return
	}
	defer snap.Release()
	err := Guard(func() error {
		for _, segment := range snap.segments {
			if ctx.Err() != nil {
				return nil
			}
			if err := segment.Verify(); err != nil {
				return explainFileError(err)
			}
		}
		return nil
	})
	if err != nil {
		s.Refuse(err)
	}
}

// damageFile marks an index in which damage was found while it was in use, so
// that the next Open refuses it without reading everything.
const damageFile = "DAMAGED"

// Refuse lets all further calls fail with err, and the next Open.
func (s *Set[S, P]) Refuse(err error) {
	err = fmt.Errorf("index %s: %w", s.dir, err)
	if !s.damage.CompareAndSwap(nil, &err) {
		return
	}
	if err := manifest.WriteFile(filepath.Join(s.dir, damageFile), []byte(err.Error())); err != nil {
		s.config.Log.Error("index", "err", err)
	}
	s.config.Log.Error("the index is damaged; it is built again at the next start", "err", err)
}

// Usable returns what keeps the set from working.
func (s *Set[S, P]) Usable() error {
	if err := s.damage.Load(); err != nil {
		return *err
	}
	return nil
}

// Cursor returns the cursor that is durable.
func (s *Set[S, P]) Cursor() ([]byte, error) {
	if err := s.Usable(); err != nil {
		return nil, err
	}
	return s.durable.Load().Cursor, nil
}

// DiskBytes is the size of all files of the directory.
func (s *Set[S, P]) DiskBytes() (uint64, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return 0, fmt.Errorf("index: %w", err)
	}
	total := uint64(0)
	for _, d := range entries {
		if info, err := d.Info(); err == nil { // else merged away meanwhile
			total += uint64(info.Size())
		}
	}
	return total, nil
}

// Close commits what was applied and closes all files.
func (s *Set[S, P]) Close() error {
	s.stop()
	s.background.Wait()
	var err error
	if s.Usable() == nil {
		err = s.commitApplied(context.Background())
	}
	s.setSnapshot(nil)
	return errors.Join(err, s.closeFiles())
}

// closeFiles closes segments and lock.
func (s *Set[S, P]) closeFiles() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range append(s.segments, s.obsolete...) {
		_ = h.Segment.Close()
	}
	s.segments, s.obsolete = nil, nil
	return s.lock.Close()
}
