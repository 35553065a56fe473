package segmentset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/time/rate"
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

// WantMerge lets the merge loop look whether there is anything to do.
func (s *Set[S, P]) WantMerge() {
	select {
	case s.mergeWanted <- struct{}{}:
	default:
	}
}

// mergeLoop merges segments until ctx ends.
func (s *Set[S, P]) mergeLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.mergeWanted:
		}
		for {
			merged, err := s.MergeOnce(ctx, s.pickMerge)
			if err == nil && merged {
				continue
			}
			if err != nil && ctx.Err() == nil {
				s.config.Log.Error("index: merge; tried again later", "err", err)
				timer := time.AfterFunc(retryMerge, s.WantMerge)
				defer timer.Stop()
			}
			break
		}
	}
}

// sizeTier is the size class of a segment.
func sizeTier[S Segment, P Part](h *Held[S, P]) int {
	t := 0
	for size := h.Segment.Size(); size > smallest; size /= mergeFactor {
		t++
	}
	return t
}

// pickMerge returns the segments to merge next, nil for none.
func (s *Set[S, P]) pickMerge(all []*Held[S, P]) []*Held[S, P] {
	tiers := map[int][]*Held[S, P]{}
	for _, h := range all {
		tiers[sizeTier(h)] = append(tiers[sizeTier(h)], h)
	}
	for t := 0; t <= 16; t++ { // the small ones first
		if same := tiers[t]; len(same) >= mergeFactor {
			if same = s.withinMax(same[:min(len(same), 2*mergeFactor)]); len(same) > 1 {
				return same
			}
		}
	}
	for _, h := range all {
		if dead := h.Segment.Len() - h.Part.Live(); float64(dead) > maxDead*float64(h.Segment.Len()) {
			return []*Held[S, P]{h}
		}
	}
	return nil
}

// withinMax returns the first of some segments that together are at most MaxMerged.
func (s *Set[S, P]) withinMax(all []*Held[S, P]) []*Held[S, P] {
	total := int64(0)
	for i, h := range all {
		if total += h.Segment.Size(); s.config.MaxMerged > 0 && total > s.config.MaxMerged {
			return all[:i]
		}
	}
	return all
}

// MergeOnce merges what pick chooses and reports whether it chose anything.
func (s *Set[S, P]) MergeOnce(ctx context.Context, pick func([]*Held[S, P]) []*Held[S, P]) (bool, error) {
	s.mu.Lock()
	if s.merging {
		s.mu.Unlock()
		return false, nil
	}
	sources := slices.Clone(pick(s.segments))
	if len(sources) == 0 {
		s.mu.Unlock()
		return false, nil
	}
	s.merging = true
	path := s.NewPath()
	parts := make([]P, len(sources))
	states := make([]State, len(sources))
	versions := make([]int, len(sources))
	for i, h := range sources {
		h.Segment.Acquire()
		parts[i], states[i], versions[i] = h.Part, h.State, h.version
	}
	s.mu.Unlock()
	defer s.endMerge(sources)
	fresh, mappings, err := s.schema.Merge(ctx, path, parts, s.writeLimiter(ctx))
	if err != nil {
		if errors.Is(err, ErrDamaged) {
			s.Refuse(err)
		}
		return true, fmt.Errorf("index %s: merge: %w", s.dir, err)
	}
	s.reachStage("merged")
	s.installMerge(fresh, sources, func(i int, merged *State) (dead []uint32, isChanged bool) {
		if h := sources[i]; h.version != versions[i] {
			return h.State.changesSince(states[i], mappings[i], merged)
		}
		return nil, false
	})
	return true, nil
}

// endMerge gives back the sources and lets Apply and Compact go on.
func (s *Set[S, P]) endMerge(sources []*Held[S, P]) {
	for _, h := range sources {
		h.Segment.Release()
	}
	s.mu.Lock()
	s.merging = false
	s.mu.Unlock()
	select {
	case s.mergeEnded <- struct{}{}:
	default:
	}
}

// writeLimiter returns a function that waits until a merge may write so many bytes.
func (s *Set[S, P]) writeLimiter(ctx context.Context) func(bytes int) {
	limiter := rate.NewLimiter(rate.Limit(s.config.MergeBytes), s.config.MergeBytes)
	return func(n int) {
		for ; n > 0; n -= s.config.MergeBytes {
			_ = limiter.WaitN(ctx, min(n, s.config.MergeBytes)) // a cancelled merge ends elsewhere
		}
	}
}

// installMerge puts the merged segment in the place of its sources, with what
// changed in each of them since the merge began.
func (s *Set[S, P]) installMerge(fresh S, sources []*Held[S, P], changes func(source int, merged *State) (dead []uint32, isChanged bool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	merged := &Held[S, P]{name: filepath.Base(fresh.Path()), Segment: fresh}
	st := State{Docs: fresh.Len(), Bytes: slices.Clone(s.schema.Changeable(fresh))}
	hasChanged := false
	var dead []uint32
	for i := range sources {
		more, isChanged := changes(i, &st)
		dead = append(dead, more...)
		hasChanged = hasChanged || isChanged || len(more) > 0
	}
	if len(dead) > 0 {
		st = st.WithDead(dead)
	}
	s.SetState(merged, st)
	if !hasChanged {
		merged.savedVersion = merged.version
	}
	at := slices.Index(s.segments, sources[0])
	s.segments = slices.DeleteFunc(s.segments, func(h *Held[S, P]) bool { return slices.Contains(sources, h) })
	s.segments = slices.Insert(s.segments, min(max(at, 0), len(s.segments)), merged)
	for _, h := range sources {
		s.retireSegment(h)
	}
	s.dropEmpty()
	s.publishSegments()
}

// changesSince returns which documents of a merged segment were deleted since the
// merge began with the state old, and copies bytes that changed.
func (st State) changesSince(old State, m Mapping, merged *State) (dead []uint32, isChanged bool) {
	for doc := range uint32(st.Docs) {
		number, ok := m.New(doc)
		if !ok {
			continue
		}
		if st.isDead(doc) {
			dead = append(dead, number)
		}
		if st.Bytes != nil && st.Bytes[doc] != old.Bytes[doc] {
			merged.Bytes[number] = st.Bytes[doc]
			isChanged = true
		}
	}
	return dead, isChanged
}

func (st State) isDead(doc uint32) bool { return st.Dead != nil && st.Dead[doc/64]>>(doc%64)&1 != 0 }

// WaitForMerges waits while there are more segments than maxMerges and a merge is
// running.
func (s *Set[S, P]) WaitForMerges(ctx context.Context, maxMerges int) error {
	for {
		s.mu.Lock()
		n, merging := len(s.segments), s.merging
		s.mu.Unlock()
		if n < maxMerges || !merging {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.mergeEnded:
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Compact merges all segments into one. What was applied must have been flushed.
func (s *Set[S, P]) Compact(ctx context.Context) error {
	for {
		merged, err := s.MergeOnce(ctx, func(all []*Held[S, P]) []*Held[S, P] {
			if len(all) < 2 && (len(all) == 0 || all[0].Part.Live() == all[0].Segment.Len()) {
				return nil
			}
			return slices.SortedStableFunc(slices.Values(all), func(a, b *Held[S, P]) int { return cmp.Compare(b.Segment.Len(), a.Segment.Len()) })
		})
		if err != nil {
			return err
		}
		if merged {
			continue
		}
		s.mu.Lock()
		busy := s.merging
		s.mu.Unlock()
		if !busy {
			return s.commitApplied(ctx)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}
