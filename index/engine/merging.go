package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/freshet/freshet/index/engine/manifest"
	"github.com/freshet/freshet/index/engine/merge"
	"github.com/freshet/freshet/index/engine/search"
	"github.com/freshet/freshet/index/engine/segment"
)

// Segments of about the same size are merged when there are mergeFactor of
// them, so a document is written again once for every factor of eight that the
// index grows.
const (
	mergeFactor = 8
	smallest    = 4 << 20 // smaller segments are of one size
	// maxDead is the share of deleted documents from which a segment is written again.
	maxDead = .3
	// retryMerge is when a merge that failed is tried again.
	retryMerge = time.Minute
)

// wantMerge lets the merge loop look whether there is anything to do.
func (e *Engine) wantMerge() {
	select {
	case e.mergeWanted <- struct{}{}:
	default:
	}
}

// mergeLoop merges segments until ctx ends.
func (e *Engine) mergeLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.mergeWanted:
		}
		for {
			merged, err := e.mergeOnce(ctx, pickMerge)
			if err == nil && merged {
				continue
			}
			if err != nil && ctx.Err() == nil {
				e.config.Log.Error("index: merge; tried again later", "err", err)
				timer := time.AfterFunc(retryMerge, e.wantMerge)
				defer timer.Stop()
			}
			break
		}
	}
}

// tier is the size class of a segment.
func tier(h *held) int {
	t := 0
	for size := h.segment.Size(); size > smallest; size /= mergeFactor {
		t++
	}
	return t
}

// pickMerge returns the segments to merge next, nil for none.
func pickMerge(all []*held) []*held {
	tiers := map[int][]*held{}
	for _, h := range all {
		tiers[tier(h)] = append(tiers[tier(h)], h)
	}
	for t := 0; t <= 16; t++ { // the small ones first
		if same := tiers[t]; len(same) >= mergeFactor {
			return same[:min(len(same), 2*mergeFactor)]
		}
	}
	for _, h := range all {
		if float64(h.part.DeadCount) > maxDead*float64(h.segment.Len()) {
			return []*held{h}
		}
	}
	return nil
}

// mergeOnce merges what pick chooses and reports whether it chose anything.
func (e *Engine) mergeOnce(ctx context.Context, pick func([]*held) []*held) (bool, error) {
	e.mu.Lock()
	if e.merging {
		e.mu.Unlock()
		return false, nil
	}
	sources := slices.Clone(pick(e.segments))
	if len(sources) == 0 {
		e.mu.Unlock()
		return false, nil
	}
	e.merging = true
	name := e.fileName(manifest.SegmentExt)
	parts := make([]*search.Part, len(sources))
	for i, h := range sources {
		h.segment.Acquire()
		parts[i] = h.part
	}
	e.mu.Unlock()
	defer func() {
		for _, h := range sources {
			h.segment.Release()
		}
		e.mu.Lock()
		e.merging = false
		e.mu.Unlock()
		select {
		case e.mergeEnded <- struct{}{}:
		default:
		}
	}()
	fresh, mappings, err := e.runMerge(ctx, name, parts)
	if err != nil {
		return true, fmt.Errorf("index %s: merge: %w", e.dir, err)
	}
	e.reach("merged")
	e.installMerge(name, fresh, sources, parts, mappings)
	return true, nil
}

// runMerge writes the merged segment.
func (e *Engine) runMerge(ctx context.Context, name string, parts []*search.Part) (*segment.Segment, []merge.Mapping, error) {
	limiter := rate.NewLimiter(rate.Limit(e.config.MergeBytes), e.config.MergeBytes)
	limit := func(n int) {
		for ; n > 0; n -= e.config.MergeBytes {
			_ = limiter.WaitN(ctx, min(n, e.config.MergeBytes)) // a cancelled merge ends elsewhere
		}
	}
	reference := merge.Reference(parts)
	w, err := segment.Create(filepath.Join(e.dir, name), reference, limit)
	if err != nil {
		return nil, nil, err
	}
	var mappings []merge.Mapping
	err = guard(func() (err error) {
		mappings, err = merge.Run(ctx, w, parts, reference)
		return err
	})
	if err != nil {
		if errors.Is(err, ErrDamaged) {
			e.refuse(err)
		}
		return nil, nil, errors.Join(err, w.Abort())
	}
	s, err := w.Finish()
	return s, mappings, err
}

// installMerge puts the merged segment in the place of its sources, with what
// was deleted and reranked since the merge began.
func (e *Engine) installMerge(name string, fresh *segment.Segment, sources []*held, parts []*search.Part, mappings []merge.Mapping) {
	e.mu.Lock()
	defer e.mu.Unlock()
	merged := &held{name: name, segment: fresh}
	st := state{popularity: slices.Clone(fresh.Popularity())}
	isChanged := false
	var dead []uint32
	for i, h := range sources {
		for doc := range uint32(h.segment.Len()) {
			number, ok := mappings[i].New(doc)
			if !ok {
				continue
			}
			if h.part.IsDead(doc) {
				dead = append(dead, number)
			}
			if p := h.state.popularity[doc]; p != parts[i].Popularity[doc] {
				st.popularity[number] = p
				isChanged = true
			}
		}
	}
	if len(dead) > 0 {
		st = st.withDead(dead)
	}
	merged.set(st)
	if len(dead) == 0 && !isChanged {
		merged.savedVersion = merged.version
	}
	at := slices.Index(e.segments, sources[0])
	e.segments = slices.DeleteFunc(e.segments, func(h *held) bool { return slices.Contains(sources, h) })
	e.segments = slices.Insert(e.segments, min(max(at, 0), len(e.segments)), merged)
	for _, h := range sources {
		e.retire(h)
	}
	e.dropEmpty()
	e.publish()
}

// Compact merges all segments into one.
func (e *Engine) Compact(ctx context.Context) error {
	if err := e.refresh(ctx); err != nil {
		return err
	}
	for {
		merged, err := e.mergeOnce(ctx, func(all []*held) []*held {
			if len(all) < 2 && (len(all) == 0 || all[0].part.DeadCount == 0) {
				return nil
			}
			return slices.SortedStableFunc(slices.Values(all), func(a, b *held) int { return cmp.Compare(b.segment.Len(), a.segment.Len()) })
		})
		if err != nil {
			return err
		}
		if merged {
			continue
		}
		e.mu.Lock()
		busy := e.merging
		e.mu.Unlock()
		if !busy {
			return e.commit(ctx)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}
