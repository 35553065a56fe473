package segmentset

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"

	"github.com/freshet/freshet/index/engine/dictionary"
	"github.com/freshet/freshet/index/engine/postings"
	"github.com/freshet/freshet/index/engine/segment"
)

// Snapshot is the index as one search sees it. Its segments stay mapped until
// the last user has released it.
type Snapshot[S Segment, P Part] struct {
	Parts    []P
	segments []S
	users    atomic.Int64
}

// Release gives the snapshot back.
func (s *Snapshot[S, P]) Release() {
	if s.users.Add(-1) > 0 {
		return
	}
	for _, segment := range s.segments {
		segment.Release()
	}
}

// Acquire returns the current snapshot; the caller releases it. It is nil after
// Close.
func (s *Set[S, P]) Acquire() *Snapshot[S, P] {
	s.snapshotLock.Lock()
	defer s.snapshotLock.Unlock()
	if s.current != nil {
		s.current.users.Add(1)
	}
	return s.current
}

// publishSegments makes the segments of the index visible as they are now. The lock is held.
func (s *Set[S, P]) publishSegments() {
	snap := &Snapshot[S, P]{}
	snap.users.Store(1)
	for _, h := range s.segments {
		h.Segment.Acquire()
		snap.Parts, snap.segments = append(snap.Parts, h.Part), append(snap.segments, h.Segment)
	}
	s.setSnapshot(snap)
}

func (s *Set[S, P]) setSnapshot(fresh *Snapshot[S, P]) {
	s.snapshotLock.Lock()
	old := s.current
	s.current = fresh
	s.snapshotLock.Unlock()
	if old != nil {
		old.Release()
	}
}

// Read calls f with the current snapshot. Damage that f meets stops the set.
func (s *Set[S, P]) Read(f func(parts []P) error) error {
	if err := s.Usable(); err != nil {
		return err
	}
	snap := s.Acquire()
	if snap == nil {
		return ErrClosed
	}
	defer snap.Release()
	err := Guard(func() error { return f(snap.Parts) })
	if errors.Is(err, ErrDamaged) {
		s.Refuse(err)
	}
	return err
}

// Guard runs f, which reads mapped files. A page that cannot be read, since the
// file was cut short or its disk fails, is ErrDamaged instead of the end of the
// process, and so is damage that a decoder meets. A panic of the code itself is
// an error of this call alone.
func Guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		fault, ok := r.(runtime.Error)
		if !ok {
			panic(r)
		}
		err = fmt.Errorf("index: %w", fault)
		if _, isFault := r.(interface{ Addr() uintptr }); isFault {
			err = fmt.Errorf("%w: %w", ErrDamaged, fault)
		}
	}()
	err = f()
	if errors.Is(err, segment.ErrDamaged) || errors.Is(err, postings.ErrDamaged) || errors.Is(err, dictionary.ErrDamaged) {
		err = fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}
