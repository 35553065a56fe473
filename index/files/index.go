// Package files finds files of shares: by the words of their names, folders and
// tags, by a piece of a name, by filters; copies of one song, episode or film
// come as one result with all its places, those that are online first.
//
// The index lives in memory and is filled from the store of shares when a process
// starts. It is a list of immutable segments: each update makes a small one, and
// segments of like size are merged, so every file is rewritten a few times
// altogether. A segment has one column for each property, a sorted dictionary of
// words, postings of documents for words of names and tags, postings of folders
// for words of paths (a folder stands for the run of its files), and trigrams over
// the dictionary, which is far smaller than the names it was made of.
//
// Index is a share.Sink.
package files

import (
	"context"
	"math/bits"
	"slices"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/freshet/freshet/share"
	"github.com/freshet/freshet/share/part"
)

// Index finds files. Make one with New. Its methods may be called from any
// goroutine.
type Index struct {
	writing sync.Mutex // held by updates and merges

	mu      sync.RWMutex
	segs    []*segment // the older, larger ones first
	hosts   []string   // by number
	number  map[string]uint32
	offline map[uint32]bool
}

var _ share.Sink = (*Index)(nil)

// New returns an empty index.
func New() *Index {
	return &Index{number: map[string]uint32{}, offline: map[uint32]bool{}}
}

// Load fills the index with everything that the store holds.
func (x *Index) Load(ctx context.Context, store share.Store) error {
	hosts, err := store.Hosts(ctx)
	if err != nil {
		return err
	}
	for _, h := range hosts {
		x.Online(h.Name, h.Offline == 0)
		var batch []share.File
		err := store.Files(ctx, h.Name, "", "\xff", func(_ string, f *share.File) error {
			if batch = append(batch, *f); len(batch) == loadBatch {
				x.add(h.Name, batch)
				batch = batch[:0]
			}
			return nil
		})
		if err != nil {
			return err
		}
		x.add(h.Name, batch)
	}
	return nil
}

const loadBatch = 200_000

// add indexes files that are not in the index.
func (x *Index) add(host string, batch []share.File) {
	if len(batch) == 0 {
		return
	}
	x.writing.Lock()
	defer x.writing.Unlock()
	s := build(x.hostNumber(host), batch)
	x.mu.Lock()
	x.segs = append(x.segs, s)
	x.mu.Unlock()
	x.compact()
}

func (x *Index) hostNumber(host string) uint32 {
	x.mu.Lock()
	defer x.mu.Unlock()
	n, ok := x.number[host]
	if !ok {
		n = uint32(len(x.hosts))
		x.number[host] = n
		x.hosts = append(x.hosts, host)
	}
	return n
}

// Update implements share.Sink: searches that start after it returns see it.
func (x *Index) Update(_ context.Context, host string, put []share.File, removed []string) error {
	n := x.hostNumber(host)
	x.writing.Lock()
	defer x.writing.Unlock()
	paths := make([]string, 0, len(put)+len(removed))
	for i := range put {
		paths = append(paths, put[i].Path)
	}
	paths = append(paths, removed...)
	x.mu.RLock()
	segs := slices.Clone(x.segs)
	x.mu.RUnlock()
	for i, s := range segs {
		var dead *roaring.Bitmap
		for _, p := range paths {
			folder, name := part.SplitPath(p)
			if d, ok := s.locate(n, folder, name); ok && !s.deleted.Contains(d) {
				if dead == nil {
					dead = s.deleted.Clone()
				}
				dead.Add(d)
			}
		}
		if dead != nil {
			segs[i] = s.without(dead)
		}
	}
	if len(put) > 0 {
		segs = append(segs, build(n, put))
	}
	x.mu.Lock()
	x.segs = segs
	x.mu.Unlock()
	x.compact()
	return nil
}

// without returns the segment with another set of deleted documents.
func (s *segment) without(deleted *roaring.Bitmap) *segment {
	c := *s
	c.deleted = deleted
	return &c
}

// Online implements share.Sink.
func (x *Index) Online(host string, online bool) {
	n := x.hostNumber(host)
	x.mu.Lock()
	defer x.mu.Unlock()
	if online {
		delete(x.offline, n)
	} else {
		x.offline[n] = true
	}
}

// Drop implements share.Sink.
func (x *Index) Drop(_ context.Context, host string) error {
	n := x.hostNumber(host)
	x.writing.Lock()
	defer x.writing.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	for i, s := range x.segs {
		dead := s.deleted.Clone()
		s.hostRanges(func(h, from, to uint32) {
			if h == n {
				dead.AddRange(uint64(from), uint64(to))
			}
		})
		x.segs[i] = s.without(dead)
	}
	return nil
}

// Merging: segments of one level, within a factor of eight in size, are merged
// when there are eight of them, up to maxSegment documents.
const (
	fanout     = 8
	maxSegment = 4_000_000
)

func levelOf(docs int) int { return (bits.Len(uint(docs)) + 2) / 3 }

// compact merges segments until every level has fewer than fanout, and drops the
// empty ones. The caller holds writing.
func (x *Index) compact() {
	for {
		x.mu.RLock()
		segs := slices.Clone(x.segs)
		x.mu.RUnlock()
		levels := map[int][]*segment{}
		for _, s := range segs {
			live := s.docs() - int(s.deleted.GetCardinality())
			if live < maxSegment/2 || live < s.docs()/2 {
				levels[levelOf(live)] = append(levels[levelOf(live)], s)
			}
		}
		var pick []*segment
		for l, group := range levels {
			if len(group) >= fanout || (l == 0 && len(group) > 0) {
				pick = group
				break
			}
		}
		if pick == nil {
			return
		}
		total := 0
		for i, s := range pick {
			if total += s.docs(); total > maxSegment && i > 1 {
				pick = pick[:i]
				break
			}
		}
		merged := merge(pick)
		segs = slices.DeleteFunc(segs, func(s *segment) bool { return slices.Contains(pick, s) })
		if merged.docs() > 0 {
			segs = append(segs, merged)
		}
		slices.SortStableFunc(segs, func(a, b *segment) int { return b.docs() - a.docs() })
		x.mu.Lock()
		x.segs = segs
		x.mu.Unlock()
	}
}

// Stats tells what the index holds.
type Stats struct {
	Files    int64
	Terms    int64 // of all dictionaries
	Segments int
	Bytes    int64 // about, in memory
}

// Stats returns the present counts.
func (x *Index) Stats() Stats {
	x.mu.RLock()
	defer x.mu.RUnlock()
	st := Stats{Segments: len(x.segs)}
	for _, s := range x.segs {
		st.Files += int64(s.docs()) - int64(s.deleted.GetCardinality())
		st.Terms += int64(s.termCount())
		st.Bytes += s.bytes()
	}
	return st
}
