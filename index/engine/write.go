package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"time"

	"github.com/freshet/freshet/index"
	"github.com/freshet/freshet/index/engine/invert"
	"github.com/freshet/freshet/index/engine/manifest"
	"github.com/freshet/freshet/index/engine/segment"
)

// Bounds of writing.
const (
	// maxBufferText is how many bytes of text are held in memory.
	maxBufferText = 32 << 20
	// maxSegments is how many segments there may be before Apply waits for merges.
	maxSegments = 64
	// searchedLately is for how long after a search Apply makes its documents
	// visible itself, so that the next search need not.
	searchedLately = 10 * time.Second
)

// Apply implements index.Engine.
func (e *Engine) Apply(ctx context.Context, b index.Batch) error {
	if err := errors.Join(ctx.Err(), e.usable()); err != nil {
		return err
	}
	for i := range b.Put {
		if b.Put[i].ID == "" {
			return errors.New("index: a document needs an ID")
		}
	}
	if err := e.waitForMerges(ctx); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.current == nil {
		return ErrClosed
	}
	for _, id := range b.Delete {
		e.buffer.Delete(id)
		e.pending[id] = true
	}
	for i := range b.Put {
		e.buffer.Put(&b.Put[i])
		e.pending[b.Put[i].ID] = true
	}
	if len(b.Put)+len(b.Delete) > 0 {
		e.hasPending.Store(true)
	}
	isFull := e.buffer.WordCount() >= e.config.BufferWords || e.buffer.TextBytes() >= maxBufferText
	if isFull || time.Since(time.Unix(0, e.lastSearch.Load())) < searchedLately {
		if err := e.flush(); err != nil {
			return err
		}
	}
	if len(b.Cursor) > 0 {
		e.cursor = slices.Clone(b.Cursor)
	}
	return nil
}

// waitForMerges waits while there are too many segments.
func (e *Engine) waitForMerges(ctx context.Context) error {
	for {
		e.mu.Lock()
		n, merging := len(e.segments), e.merging
		e.mu.Unlock()
		if n < maxSegments || !merging {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-e.mergeEnded:
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// refresh makes visible what was applied.
func (e *Engine) refresh(ctx context.Context) error {
	if err := errors.Join(ctx.Err(), e.usable()); err != nil {
		return err
	}
	if !e.hasPending.Load() {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.flush()
}

// flush writes the buffer as a segment, marks what it replaces and deletes in
// the others, and publishes both at once. e.mu is held.
func (e *Engine) flush() error {
	if !e.hasPending.Load() {
		return nil
	}
	fresh, err := e.writeBuffer()
	if err != nil {
		return err
	}
	for _, h := range e.segments {
		var dead []uint32
		for id := range e.pending {
			if doc, ok := h.segment.Find(id); ok && !h.part.IsDead(doc) {
				dead = append(dead, doc)
			}
		}
		if len(dead) > 0 {
			h.set(h.state.withDead(dead))
		}
	}
	if fresh != nil {
		e.segments = append(e.segments, fresh)
	}
	e.dropEmpty()
	e.buffer.Reset()
	clear(e.pending)
	e.hasPending.Store(false)
	e.publish()
	e.wantMerge()
	return nil
}

// writeBuffer writes the buffered documents; nil if there are none.
func (e *Engine) writeBuffer() (*held, error) {
	if e.buffer.Live() == 0 {
		return nil, nil
	}
	w, h, err := e.create(nil)
	if err != nil {
		return nil, err
	}
	if err := e.buffer.Flush(w); err != nil {
		return nil, errors.Join(fmt.Errorf("index %s: %w", e.dir, err), w.Abort())
	}
	s, err := w.Finish()
	if err != nil {
		return nil, fmt.Errorf("index %s: %w", e.dir, err)
	}
	h.segment = s
	h.set(state{popularity: s.Popularity()})
	h.savedVersion = h.version
	return h, nil
}

// create makes the file of a new segment. e.mu is held.
func (e *Engine) create(limit func(int)) (*segment.Writer, *held, error) {
	h := &held{name: e.fileName(manifest.SegmentExt)}
	w, err := segment.Create(filepath.Join(e.dir, h.name), e.reference(), limit)
	if err != nil {
		return nil, nil, fmt.Errorf("index %s: %w", e.dir, err)
	}
	return w, h, nil
}

// fileName returns the next name. e.mu is held.
func (e *Engine) fileName(ext string) string {
	n := e.next
	e.next++
	return fmt.Sprintf("%08d%s", n, ext)
}

// dropEmpty takes out segments in which all documents are deleted. e.mu is held.
func (e *Engine) dropEmpty() {
	e.segments = slices.DeleteFunc(e.segments, func(h *held) bool {
		if h.part.Live() > 0 {
			return false
		}
		e.retire(h)
		return true
	})
}

// retire lets the next commit remove the files of a segment. One that lost all
// its documents during a merge is retired twice. e.mu is held.
func (e *Engine) retire(h *held) {
	if !h.isRetired {
		h.isRetired = true
		e.obsolete = append(e.obsolete, h)
	}
}

// Rerank changes the popularity of those of the pages that the index has and
// whose popularity differs by least or more. No document is written again.
func (e *Engine) Rerank(ctx context.Context, pages []index.Popular, least float64) error {
	if err := errors.Join(ctx.Err(), e.usable()); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	changed := map[*held][]byte{}
	for _, p := range pages {
		if d, ok := e.buffer.Document(p.ID); ok {
			if math.Abs(d.Popularity-p.Popularity) >= least {
				e.buffer.SetPopularity(p.ID, p.Popularity)
			}
			continue
		}
		for _, h := range e.segments {
			doc, ok := h.segment.Find(p.ID)
			if !ok || h.part.IsDead(doc) || math.Abs(invert.UnpackPopularity(h.state.popularity[doc])-p.Popularity) < least {
				continue
			}
			if changed[h] == nil {
				changed[h] = bytes.Clone(h.state.popularity)
			}
			changed[h][doc] = invert.PackPopularity(p.Popularity)
		}
	}
	for h, popularity := range changed {
		h.set(state{h.state.dead, popularity})
	}
	if len(changed) > 0 {
		e.publish()
	}
	return nil
}
