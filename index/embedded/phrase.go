package embedded

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/blevesearch/bleve/v2/mapping"
	"github.com/blevesearch/bleve/v2/search"
	bquery "github.com/blevesearch/bleve/v2/search/query"
	"github.com/blevesearch/bleve/v2/search/searcher"
	bindex "github.com/blevesearch/bleve_index_api"

	"github.com/freshet/freshet/index"
)

// phraseQuery finds words in a row. Bleve's own phrase search makes maps and
// sorted lists of the places of all words of each document that has them all;
// this one looks at bare positions, of the rarest word first, and leaves a
// document as soon as no beginning of the phrase is left.
//
// A phrase that many documents have need not be looked for in all of them: what
// a document would score is known before its positions are read. From
// index.MaxFaceted matches on those are passed over that would not come among the
// best; how many of them have the phrase is told by a sample. And what
// one search has found, another over the same state of the index (for facets)
// takes as it is.
type phraseQuery struct {
	words []string
	field string

	best  int // so many are wanted; 0: all, in other orders or inside of other queries
	after int // so many matches are looked for among all documents
	found phraseFound
}

// phraseFound is what a search for a phrase has found.
type phraseFound struct {
	in      bindex.IndexReader
	ids     []uint64 // in ascending order, of the first index.MaxFaceted
	matches int
	passed  int  // over so many documents without a look
	sampled int  // at so many that would have been passed over
	have    int  // the phrase, of these
	whole   bool // to the end, without leaps
}

// more estimates how many documents have the phrase of those passed over.
func (f *phraseFound) more() int {
	if f.sampled == 0 {
		return 0
	}
	return int(float64(f.passed) * float64(f.have) / float64(f.sampled))
}

var _ bquery.Query = (*phraseQuery)(nil)

// Searcher implements Bleve's query.
func (q *phraseQuery) Searcher(ctx context.Context, r bindex.IndexReader, _ mapping.IndexMapping, o search.SearcherOptions) (_ search.Searcher, err error) {
	s := &phraseSearcher{query: q}
	if q.found.whole && q.found.in == r && q.found.matches == len(q.found.ids) {
		s.known, s.knows = q.found.ids, true
	} else {
		q.found = phraseFound{in: r}
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("phrase: %w", err), s.Close())
		}
	}()
	o.IncludeTermVectors = false
	var with []search.Searcher
	for i, w := range q.words {
		if at := slices.Index(q.words, w); at < i { // said again
			for k := range s.words {
				if s.words[k].word == w {
					s.words[k].offsets = append(s.words[k].offsets, uint64(i))
				}
			}
			continue
		}
		places, err := r.TermFieldReader(ctx, []byte(w), q.field, true, false, true)
		if err != nil {
			return nil, err
		}
		s.words = append(s.words, phraseWord{word: w, offsets: []uint64{uint64(i)}, places: places, count: places.Count()})
		t, err := searcher.NewTermSearcher(ctx, r, w, q.field, 1, o)
		if err != nil {
			return nil, err
		}
		with = append(with, t)
	}
	slices.SortStableFunc(s.words, func(a, b phraseWord) int { return cmp.Compare(a.count, b.count) })
	s.Searcher, err = searcher.NewConjunctionSearcher(ctx, r, with, o)
	return s, err
}

// phraseWord is a word of a phrase, with where it stands in it.
type phraseWord struct {
	word    string
	offsets []uint64
	places  bindex.TermFieldReader
	count   uint64
	at      bindex.TermFieldDoc
}

// phraseSearcher passes those documents of a conjunction in which the words
// stand in a row.
type phraseSearcher struct {
	search.Searcher // of the documents that have all words

	query  *phraseQuery
	words  []phraseWord
	begins []uint64  // where the phrase may begin
	scores scoreHeap // the best, if a number of them is wanted
	known  []uint64  // the matches that are left, if s knows them
	knows  bool
	leapt  bool
}

// scoreHeap has the least of the best scores on top.
type scoreHeap []float64

func (h scoreHeap) Len() int           { return len(h) }
func (h scoreHeap) Less(i, j int) bool { return h[i] < h[j] }
func (h scoreHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *scoreHeap) Push(x any)        { *h = append(*h, x.(float64)) }
func (h *scoreHeap) Pop() any          { panic("scores are replaced, not taken") }

// Next implements search.Searcher.
func (s *phraseSearcher) Next(ctx *search.SearchContext) (*search.DocumentMatch, error) {
	if s.knows {
		if len(s.known) == 0 {
			return nil, nil
		}
		id := s.known[0]
		s.known = s.known[1:]
		return s.Searcher.Advance(ctx, bindex.NewIndexInternalID(nil, id))
	}
	m, err := s.Searcher.Next(ctx)
	return s.from(ctx, m, err)
}

// Advance implements search.Searcher.
func (s *phraseSearcher) Advance(ctx *search.SearchContext, id bindex.IndexInternalID) (*search.DocumentMatch, error) {
	s.knows, s.leapt = false, true
	m, err := s.Searcher.Advance(ctx, id)
	return s.from(ctx, m, err)
}

// from returns the first match from m on that has the phrase.
func (s *phraseSearcher) from(ctx *search.SearchContext, m *search.DocumentMatch, err error) (*search.DocumentMatch, error) {
	f := &s.query.found
	for err == nil && m != nil {
		hopeless := s.hopeless(m.Score)
		if hopeless && f.passed < sampleEvery*(f.sampled+1) {
			f.passed++
		} else {
			var ok bool
			if ok, err = s.has(m.IndexInternalID); err != nil {
				return nil, err
			}
			if hopeless {
				f.sampled++
			}
			if ok && hopeless {
				f.have++
			}
			if ok {
				s.note(m)
				return m, nil
			}
		}
		ctx.DocumentMatchPool.Put(m)
		m, err = s.Searcher.Next(ctx)
	}
	f.whole = err == nil && !s.leapt
	return nil, err
}

// sampleEvery so many documents that are passed over one is looked at.
const sampleEvery = 12

// hopeless tells whether a document of that score need not be looked at.
func (s *phraseSearcher) hopeless(score float64) bool {
	n := s.query.best
	return n > 0 && s.query.found.matches >= max(n, s.query.after) && score < s.scores[0]
}

// note remembers a match.
func (s *phraseSearcher) note(m *search.DocumentMatch) {
	f := &s.query.found
	if f.matches++; f.matches <= index.MaxFaceted {
		f.ids = append(f.ids, m.IndexInternalID.Value())
	}
	switch n := s.query.best; {
	case n == 0:
	case len(s.scores) < n:
		heap.Push(&s.scores, m.Score)
	case m.Score > s.scores[0]:
		s.scores[0] = m.Score
		heap.Fix(&s.scores, 0)
	}
}

// has tells whether the words stand in a row in a document that has them all.
func (s *phraseSearcher) has(id bindex.IndexInternalID) (bool, error) {
	for i := range s.words {
		w := &s.words[i]
		at, err := w.places.Advance(id, &w.at)
		if err != nil || at == nil || !at.ID.Equals(id) {
			return false, err
		}
		for j, offset := range w.offsets {
			if i+j == 0 {
				s.begins = s.begins[:0]
				for _, v := range at.Vectors {
					if p := place(v); p&positions >= offset {
						s.begins = append(s.begins, p-offset)
					}
				}
			} else {
				s.keep(at.Vectors, offset)
			}
			if len(s.begins) == 0 {
				return false, nil
			}
		}
	}
	return true, nil
}

// keep keeps the beginnings that have a place so much further on. Both lists are
// in ascending order, as documents are indexed.
func (s *phraseSearcher) keep(places []*bindex.TermFieldVector, offset uint64) {
	kept, i := s.begins[:0], 0
	for _, b := range s.begins {
		for i < len(places) && place(places[i]) < b+offset {
			i++
		}
		if i == len(places) {
			break
		}
		if place(places[i]) == b+offset {
			kept = append(kept, b)
		}
	}
	s.begins = kept
}

// positions are the bits of a place that hold the position in one value of the
// field; those above hold which value it is: a phrase does not reach from one
// into the next.
const positions = 1<<32 - 1

func place(v *bindex.TermFieldVector) uint64 {
	p := v.Pos & positions
	if len(v.ArrayPositions) > 0 {
		p |= v.ArrayPositions[0] << 32
	}
	return p
}

// Close implements search.Searcher.
func (s *phraseSearcher) Close() error {
	var err error
	if s.Searcher != nil {
		err = s.Searcher.Close()
	}
	for _, w := range s.words {
		err = errors.Join(err, w.places.Close())
	}
	return err
}
