package engine

import (
	"sync/atomic"

	"github.com/freshet/freshet/index/engine/search"
)

// snapshot is the index as one search sees it. Its segments stay mapped until
// the last user has released it.
type snapshot struct {
	parts []*search.Part
	users atomic.Int64
}

// newSnapshot returns a snapshot with one user.
func newSnapshot(parts []*search.Part) *snapshot {
	s := &snapshot{parts: parts}
	s.users.Store(1)
	for _, p := range parts {
		p.Segment.Acquire()
	}
	return s
}

func (s *snapshot) release() {
	if s.users.Add(-1) > 0 {
		return
	}
	for _, p := range s.parts {
		p.Segment.Release()
	}
}

// acquire returns the current snapshot; the caller releases it. It is nil after
// Close.
func (e *Engine) acquire() *snapshot {
	e.snapshotLock.Lock()
	defer e.snapshotLock.Unlock()
	if e.current != nil {
		e.current.users.Add(1)
	}
	return e.current
}

// publish makes the segments of the index visible as they are now. e.mu is held.
func (e *Engine) publish() {
	parts := make([]*search.Part, len(e.segments))
	for i, s := range e.segments {
		parts[i] = s.part
	}
	e.setSnapshot(newSnapshot(parts))
}

func (e *Engine) setSnapshot(s *snapshot) {
	e.snapshotLock.Lock()
	old := e.current
	e.current = s
	e.snapshotLock.Unlock()
	if old != nil {
		old.release()
	}
}
