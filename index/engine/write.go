package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/freshet/freshet/index"
	"github.com/freshet/freshet/index/engine/invert"
	"github.com/freshet/freshet/index/engine/segment"
	"github.com/freshet/freshet/index/engine/segmentset"
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
	if err := errors.Join(ctx.Err(), e.set.Usable()); err != nil {
		return err
	}
	for i := range b.Put {
		if b.Put[i].ID == "" {
			return errors.New("index: a document needs an ID")
		}
	}
	if err := e.set.WaitForMerges(ctx, maxSegments); err != nil {
		return err
	}
	e.set.Lock()
	defer e.set.Unlock()
	if e.set.IsClosed() {
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
		if err := e.flushBuffer(); err != nil {
			return err
		}
	}
	if len(b.Cursor) > 0 {
		e.set.SetCursor(b.Cursor)
	}
	return nil
}

// refreshSnapshot makes visible what was applied.
func (e *Engine) refreshSnapshot(ctx context.Context) error {
	if err := errors.Join(ctx.Err(), e.set.Usable()); err != nil {
		return err
	}
	if !e.hasPending.Load() {
		return nil
	}
	e.set.Lock()
	defer e.set.Unlock()
	return e.flushBuffer()
}

// flushBuffer writes the buffer as a segment, marks what it replaces and deletes in
// the others, and publishes both at once. The lock is held.
func (e *Engine) flushBuffer() error {
	if !e.hasPending.Load() {
		return nil
	}
	fresh, err := e.writeBuffer()
	if err != nil {
		return err
	}
	for _, h := range e.set.Segments() {
		var dead []uint32
		for id := range e.pending {
			if doc, ok := h.Segment.Find(id); ok && !h.Part.IsDead(doc) {
				dead = append(dead, doc)
			}
		}
		if len(dead) > 0 {
			e.set.SetState(h, h.State.WithDead(dead))
		}
	}
	if fresh != nil {
		e.set.Add(fresh)
	}
	e.buffer.Reset()
	clear(e.pending)
	e.hasPending.Store(false)
	e.set.Publish()
	return nil
}

// writeBuffer writes the buffered documents; nil if there are none.
func (e *Engine) writeBuffer() (*segment.Segment, error) {
	if e.buffer.Live() == 0 {
		return nil, nil
	}
	w, err := segment.Create(e.set.NewPath(), e.referenceLengths(), nil)
	if err != nil {
		return nil, fmt.Errorf("index %s: %w", e.dir, err)
	}
	if err := e.buffer.Flush(w); err != nil {
		return nil, errors.Join(fmt.Errorf("index %s: %w", e.dir, err), w.Abort())
	}
	s, err := w.Finish()
	if err != nil {
		return nil, fmt.Errorf("index %s: %w", e.dir, err)
	}
	return s, nil
}

// Rerank changes the popularity of those of the pages that the index has and
// whose popularity differs by least or more. No document is written again.
func (e *Engine) Rerank(ctx context.Context, pages []index.Popular, least float64) error {
	if err := errors.Join(ctx.Err(), e.set.Usable()); err != nil {
		return err
	}
	e.set.Lock()
	defer e.set.Unlock()
	changed := map[*held][]byte{}
	for _, p := range pages {
		if d, ok := e.buffer.Document(p.ID); ok {
			if math.Abs(d.Popularity-p.Popularity) >= least {
				e.buffer.SetPopularity(p.ID, p.Popularity)
			}
			continue
		}
		for _, h := range e.set.Segments() {
			doc, ok := h.Segment.Find(p.ID)
			if !ok || h.Part.IsDead(doc) || math.Abs(invert.UnpackPopularity(h.State.Bytes[doc])-p.Popularity) < least {
				continue
			}
			if changed[h] == nil {
				changed[h] = bytes.Clone(h.State.Bytes)
			}
			changed[h][doc] = invert.PackPopularity(p.Popularity)
		}
	}
	for h, popularity := range changed {
		e.set.SetState(h, segmentset.State{Docs: h.State.Docs, Dead: h.State.Dead, Bytes: popularity})
	}
	if len(changed) > 0 {
		e.set.Publish()
	}
	return nil
}
