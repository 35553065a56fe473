package segmentset

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/freshet/freshet/index/engine/manifest"
)

// commitLoop makes durable what was applied, until ctx ends.
func (s *Set[S, P]) commitLoop(ctx context.Context) {
	t := time.NewTicker(s.config.CommitEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if s.Usable() != nil {
			return
		}
		if err := s.commitApplied(ctx); err != nil && ctx.Err() == nil {
			s.config.Log.Error("index: commit; tried again", "err", err)
		}
	}
}

// saved is what a commit writes of a segment.
type saved[S Segment, P Part] struct {
	held      *Held[S, P]
	version   int
	state     []byte // nil if the file of before is right
	stateFile string
	oldState  string // replaced
	mustSync  bool
}

// commitApplied makes durable what was applied. Searches and Apply go on during its
// syncs.
func (s *Set[S, P]) commitApplied(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.commitLock.Lock()
	defer s.commitLock.Unlock()
	m, all, obsolete, err := s.prepareCommit()
	if err != nil {
		return err
	}
	content, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("index: %w", err)
	}
	if bytes.Equal(content, s.committed) {
		return nil
	}
	s.reachStage("prepared")
	for i := range all {
		if err := s.saveSegment(&all[i]); err != nil {
			return err
		}
	}
	s.reachStage("synced")
	if err := errors.Join(manifest.SyncDir(s.dir), manifest.Write(s.dir, m)); err != nil {
		return err
	}
	s.reachStage("written")
	s.committed = content
	s.durable.Store(m)
	return s.endCommit(all, obsolete)
}

// reachStage tells tests how far a commit or a merge is.
func (s *Set[S, P]) reachStage(stage string) {
	if f := s.TestHook.Load(); f != nil {
		(*f)(stage)
	}
}

// prepareCommit flushes and returns what the manifest will be.
func (s *Set[S, P]) prepareCommit() (*manifest.Manifest, []saved[S, P], []*Held[S, P], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.schema.Flush(); err != nil {
		return nil, nil, nil, err
	}
	var all []saved[S, P]
	for _, h := range s.segments {
		one := saved[S, P]{held: h, version: h.version, stateFile: h.stateFile, mustSync: !h.isSynced}
		if h.version != h.savedVersion {
			one.state, one.oldState, one.stateFile = h.State.encodeState(), h.stateFile, s.fileName(manifest.StateExt)
		}
		all = append(all, one)
	}
	m := &manifest.Manifest{Cursor: s.cursor, Next: s.next}
	for _, one := range all {
		m.Segments = append(m.Segments, manifest.Segment{File: one.held.name, Size: one.held.Segment.Size(), State: one.stateFile})
	}
	return m, all, s.obsolete, nil
}

// saveSegment syncs a segment and writes its state.
func (s *Set[S, P]) saveSegment(one *saved[S, P]) error {
	if one.mustSync {
		if err := manifest.SyncFile(one.held.Segment.Path()); err != nil {
			return err
		}
	}
	if one.state == nil {
		return nil
	}
	return manifest.WriteFile(filepath.Join(s.dir, one.stateFile), one.state)
}

// endCommit removes the files that the manifest no longer names.
func (s *Set[S, P]) endCommit(all []saved[S, P], obsolete []*Held[S, P]) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	remove := func(name string) {
		if name == "" {
			return
		}
		if err := os.Remove(filepath.Join(s.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("index: %w", err))
		}
	}
	for _, one := range all {
		one.held.isSynced = true
		if one.state != nil {
			one.held.savedVersion, one.held.stateFile = one.version, one.stateFile
			remove(one.oldState)
		}
	}
	for _, h := range obsolete {
		h.Segment.RemoveAfterUse()
		_ = h.Segment.Close()
		remove(h.stateFile)
	}
	s.obsolete = s.obsolete[len(obsolete):]
	return errors.Join(errs...)
}

// Commit makes durable what was applied.
func (s *Set[S, P]) Commit(ctx context.Context) error {
	if err := s.Usable(); err != nil {
		return err
	}
	return s.commitApplied(ctx)
}

// LockCommits keeps commits from beginning until UnlockCommits: no file is removed
// meanwhile.
func (s *Set[S, P]) LockCommits() { s.commitLock.Lock() }

// UnlockCommits lets commits go on.
func (s *Set[S, P]) UnlockCommits() { s.commitLock.Unlock() }
