package engine

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
func (e *Engine) commitLoop(ctx context.Context) {
	t := time.NewTicker(e.config.CommitEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if e.usable() != nil {
			return
		}
		if err := e.commit(ctx); err != nil && ctx.Err() == nil {
			e.config.Log.Error("index: commit; tried again", "err", err)
		}
	}
}

// saved is what a commit writes of a segment.
type saved struct {
	held      *held
	version   int
	state     []byte // nil if the file of before is right
	stateFile string
	oldState  string // replaced
	mustSync  bool
}

// commit makes durable what was applied. Searches and Apply go on during its
// syncs.
func (e *Engine) commit(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	e.commitLock.Lock()
	defer e.commitLock.Unlock()
	m, all, obsolete, err := e.prepareCommit()
	if err != nil {
		return err
	}
	content, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("index: %w", err)
	}
	if bytes.Equal(content, e.committed) {
		return nil
	}
	e.reach("prepared")
	for i := range all {
		if err := e.saveSegment(&all[i]); err != nil {
			return err
		}
	}
	e.reach("synced")
	if err := errors.Join(manifest.SyncDir(e.dir), manifest.Write(e.dir, m)); err != nil {
		return err
	}
	e.reach("written")
	e.committed = content
	e.durable.Store(m)
	return e.endCommit(all, obsolete)
}

// reach tells tests how far a commit or a merge is.
func (e *Engine) reach(stage string) {
	if f := e.testHook.Load(); f != nil {
		(*f)(stage)
	}
}

// prepareCommit flushes and returns what the manifest will be.
func (e *Engine) prepareCommit() (*manifest.Manifest, []saved, []*held, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.flush(); err != nil {
		return nil, nil, nil, err
	}
	var all []saved
	for _, h := range e.segments {
		s := saved{held: h, version: h.version, stateFile: h.stateFile, mustSync: !h.isSynced}
		if h.version != h.savedVersion {
			s.state, s.oldState, s.stateFile = h.state.encode(), h.stateFile, e.fileName(manifest.StateExt)
		}
		all = append(all, s)
	}
	m := &manifest.Manifest{Cursor: e.cursor, Next: e.next}
	for _, s := range all {
		m.Segments = append(m.Segments, manifest.Segment{File: s.held.name, Size: s.held.segment.Size(), State: s.stateFile})
	}
	return m, all, e.obsolete, nil
}

// saveSegment syncs a segment and writes its state.
func (e *Engine) saveSegment(s *saved) error {
	if s.mustSync {
		if err := manifest.SyncFile(s.held.segment.Path()); err != nil {
			return err
		}
	}
	if s.state == nil {
		return nil
	}
	return manifest.WriteFile(filepath.Join(e.dir, s.stateFile), s.state)
}

// endCommit removes the files that the manifest no longer names.
func (e *Engine) endCommit(all []saved, obsolete []*held) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	var errs []error
	remove := func(name string) {
		if name == "" {
			return
		}
		if err := os.Remove(filepath.Join(e.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("index: %w", err))
		}
	}
	for _, s := range all {
		s.held.isSynced = true
		if s.state != nil {
			s.held.savedVersion, s.held.stateFile = s.version, s.stateFile
			remove(s.oldState)
		}
	}
	for _, h := range obsolete {
		h.segment.RemoveAfterUse()
		_ = h.segment.Close()
		remove(h.stateFile)
	}
	e.obsolete = e.obsolete[len(obsolete):]
	return errors.Join(errs...)
}

// Commit makes durable what was applied.
func (e *Engine) Commit(ctx context.Context) error {
	if err := e.usable(); err != nil {
		return err
	}
	return e.commit(ctx)
}
