package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/freshet/freshet/index/engine/search"
)

// SegmentInfo describes a segment.
type SegmentInfo struct {
	File      string `json:"file"`
	Bytes     int64  `json:"bytes"`
	Documents int    `json:"documents"`
	Deleted   int    `json:"deleted"` // documents that the next merge leaves out
	Terms     int    `json:"terms"`
}

// Segments describes the segments that a search reads.
func (e *Engine) Segments(ctx context.Context) ([]SegmentInfo, error) {
	var out []SegmentInfo
	err := e.withSnapshot(ctx, func(parts []*search.Part) error {
		for _, p := range parts {
			out = append(out, SegmentInfo{
				File: filepath.Base(p.Segment.Path()), Bytes: p.Segment.Size(), Documents: p.Live(), Deleted: p.DeadCount, Terms: p.Segment.Terms().Len(),
			})
		}
		return nil
	})
	return out, err
}

// Verify reads the whole index: all checksums, every document, and every list of
// postings.
func (e *Engine) Verify(ctx context.Context) error {
	return e.withSnapshot(ctx, func(parts []*search.Part) error {
		for _, p := range parts {
			if err := errors.Join(ctx.Err(), p.Segment.Verify()); err != nil {
				return err
			}
			if err := p.Segment.VerifyLists(ctx); err != nil {
				return fmt.Errorf("segment %s: %w", p.Segment.Path(), err)
			}
			for doc := range uint32(p.Segment.Len()) {
				if _, err := p.Segment.Text(doc); err != nil {
					return err
				}
				if found, ok := p.Segment.Find(p.Segment.ID(doc)); !ok || !p.IsDead(doc) && found != doc {
					return fmt.Errorf("segment %s: document %d is not found by its identifier: %w", p.Segment.Path(), doc, ErrDamaged)
				}
			}
		}
		return nil
	})
}
