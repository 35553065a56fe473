package segmentset

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/freshet/freshet/index/engine/manifest"
)

// Lock takes the lock under which segments change. A commit holds it while it
// flushes, not while it syncs; a merge holds it while it is installed.
func (s *Set[S, P]) Lock() { s.mu.Lock() }

// Unlock releases the lock.
func (s *Set[S, P]) Unlock() { s.mu.Unlock() }

// IsClosed reports whether Close was called.
func (s *Set[S, P]) IsClosed() bool {
	s.snapshotLock.Lock()
	defer s.snapshotLock.Unlock()
	return s.current == nil
}

// Dir is the directory of the set.
func (s *Set[S, P]) Dir() string { return s.dir }

// Segments returns the segments, the oldest first. The lock is held.
func (s *Set[S, P]) Segments() []*Held[S, P] { return s.segments }

// SetCursor names what was applied; the next commit makes it durable together with
// what Flush writes. The lock is held.
func (s *Set[S, P]) SetCursor(cursor []byte) { s.cursor = slices.Clone(cursor) }

// NewPath returns the path of a new segment. The lock is held.
func (s *Set[S, P]) NewPath() string { return filepath.Join(s.dir, s.fileName(manifest.SegmentExt)) }

// fileName returns the next name. The lock is held.
func (s *Set[S, P]) fileName(ext string) string {
	n := s.next
	s.next++
	return fmt.Sprintf("%08d%s", n, ext)
}

// Add appends a segment that was written at NewPath. The lock is held; Publish makes
// it visible.
func (s *Set[S, P]) Add(fresh S) {
	h := &Held[S, P]{name: filepath.Base(fresh.Path()), Segment: fresh}
	s.SetState(h, State{Docs: fresh.Len(), Bytes: s.schema.Changeable(fresh)})
	h.savedVersion = h.version
	s.segments = append(s.segments, h)
}

// Publish makes segments and states visible as they are now and takes out segments
// in which all documents are deleted. The lock is held.
func (s *Set[S, P]) Publish() {
	s.dropEmpty()
	s.publishSegments()
	s.WantMerge()
}

// dropEmpty takes out segments in which all documents are deleted. The lock is held.
func (s *Set[S, P]) dropEmpty() {
	s.segments = slices.DeleteFunc(s.segments, func(h *Held[S, P]) bool {
		if h.Part.Live() > 0 {
			return false
		}
		s.retireSegment(h)
		return true
	})
}

// retireSegment lets the next commit remove the files of a segment. One that lost all
// its documents during a merge is retired twice. The lock is held.
func (s *Set[S, P]) retireSegment(h *Held[S, P]) {
	if !h.isRetired {
		h.isRetired = true
		s.obsolete = append(s.obsolete, h)
	}
}
