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
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/freshet/freshet/index"
	"github.com/freshet/freshet/index/engine/bm25"
	"github.com/freshet/freshet/index/engine/invert"
	"github.com/freshet/freshet/index/engine/merge"
	"github.com/freshet/freshet/index/engine/search"
	"github.com/freshet/freshet/index/engine/segment"
	"github.com/freshet/freshet/index/engine/segmentset"
)

// Config are the engine's options. The zero value is usable.
type Config struct {
	// Languages are tried as the language of every query word; the first is that
	// of documents that name none. Default en, ru, lt.
	Languages []string
	// CommitEvery is how much time a crash may cost. Default 3 s.
	CommitEvery time.Duration
	// BufferWords is how many words are held in memory before they become a
	// segment, some 20 bytes each and their text. Default 2 million.
	BufferWords int
	// MergeBytes bounds what merges write in a second. Default 64 MiB.
	MergeBytes int
	// Log, if not nil, receives errors of failed merges.
	Log *slog.Logger
}

func (c Config) withEngineDefaults() Config {
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
	ErrLocked = segmentset.ErrLocked
	// ErrDamaged means that a file is not as it was written. The index is derived
	// data: Reset makes an empty one, which the feed fills.
	ErrDamaged = segmentset.ErrDamaged
	// ErrVersion means that another version of the program wrote the index.
	ErrVersion = segmentset.ErrVersion
	// ErrClosed means that the engine was closed.
	ErrClosed = segmentset.ErrClosed
)

// Engine is an index.Engine. It is safe for concurrent use.
type Engine struct {
	dir    string
	config Config
	set    *segmentset.Set[*segment.Segment, *search.Part]

	// Under the lock of set.
	buffer  *invert.Buffer
	pending map[string]bool // identifiers that the next flush replaces in segments

	hasPending atomic.Bool  // documents that no snapshot shows
	lastSearch atomic.Int64 // in nanoseconds since 1970
}

// held is a segment of the index.
type held = segmentset.Held[*segment.Segment, *search.Part]

// pages is the schema of the set.
type pages struct{ engine *Engine }

// Open implements segmentset.Schema.
func (pages) Open(path string) (*segment.Segment, error) { return segment.Open(path) }

// NewPart implements segmentset.Schema.
func (pages) NewPart(s *segment.Segment, st segmentset.State) *search.Part {
	return search.NewPart(s, st.Dead, st.Bytes)
}

// Changeable implements segmentset.Schema: popularity is changed in place.
func (pages) Changeable(s *segment.Segment) []byte { return s.Popularity() }

// Flush implements segmentset.Schema.
func (p pages) Flush() error { return p.engine.flushBuffer() }

// Merge implements segmentset.Schema.
func (pages) Merge(ctx context.Context, path string, parts []*search.Part, limit func(int)) (*segment.Segment, []segmentset.Mapping, error) {
	reference := merge.Reference(parts)
	w, err := segment.Create(path, reference, limit)
	if err != nil {
		return nil, nil, err
	}
	out := make([]segmentset.Mapping, len(parts))
	err = segmentset.Guard(func() error {
		mappings, err := merge.Run(ctx, w, parts, reference)
		for i, m := range mappings {
			out[i] = m
		}
		return err
	})
	if err != nil {
		return nil, nil, errors.Join(err, w.Abort())
	}
	s, err := w.Finish()
	return s, out, err
}

// Open opens the index in dir, or makes a new one. An index of Bleve, which
// earlier versions wrote, is removed: the feed fills the new one.
func Open(dir string, c Config) (*Engine, error) {
	e := &Engine{dir: dir, config: c.withEngineDefaults(), pending: map[string]bool{}}
	e.buffer = invert.NewBuffer(e.config.Languages[0])
	var err error
	e.set, err = segmentset.Open[*segment.Segment, *search.Part](dir, pages{e}, segmentset.Config{
		CommitEvery: e.config.CommitEvery, MergeBytes: e.config.MergeBytes, Log: e.config.Log, Prepare: removeBleve,
	})
	if err != nil {
		return nil, err
	}
	e.set.Start()
	return e, nil
}

// Reset removes the index in dir, so that Open makes an empty one.
func Reset(dir string) error { return segmentset.Reset(dir) }

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

// Cursor implements index.Engine.
func (e *Engine) Cursor(context.Context) ([]byte, error) { return e.set.Cursor() }

// Stats implements index.Engine.
func (e *Engine) Stats(ctx context.Context) (index.Stats, error) {
	var s index.Stats
	err := e.withSnapshot(ctx, func(parts []*search.Part) error {
		for _, p := range parts {
			s.Documents += uint64(p.Live())
		}
		return nil
	})
	if err != nil {
		return index.Stats{}, err
	}
	s.DiskBytes, err = e.set.DiskBytes()
	return s, err
}

// Commit makes durable what was applied.
func (e *Engine) Commit(ctx context.Context) error { return e.set.Commit(ctx) }

// Compact merges all segments into one.
func (e *Engine) Compact(ctx context.Context) error {
	if err := e.refreshSnapshot(ctx); err != nil {
		return err
	}
	return e.set.Compact(ctx)
}

// Close implements index.Engine: it commits what was applied.
func (e *Engine) Close() error { return e.set.Close() }

// referenceLengths returns the average lengths that the next segment keeps bounds for:
// those of the largest segment, so that a merge can copy them. The lock is held.
func (e *Engine) referenceLengths() bm25.Averages {
	var largest *held
	for _, h := range e.set.Segments() {
		if largest == nil || h.Segment.Len() > largest.Segment.Len() {
			largest = h
		}
	}
	if largest == nil {
		return e.buffer.Averages()
	}
	return largest.Segment.Reference()
}
