// Package merge makes one segment of several: documents that were deleted are
// left out, the others keep their order and get new numbers.
//
// A segment without deleted documents is copied: packed texts as they are, full
// blocks of postings as they are, since a block holds no absolute numbers. The
// rest is decoded and coded again.
package merge

import (
	"bytes"
	"context"
	"fmt"

	"github.com/freshet/freshet/index/engine/bm25"
	"github.com/freshet/freshet/index/engine/dictionary"
	"github.com/freshet/freshet/index/engine/postings"
	"github.com/freshet/freshet/index/engine/search"
	"github.com/freshet/freshet/index/engine/segment"
)

// gone is the new number of a document that was deleted.
const gone = postings.End

// Mapping maps the documents of a source to documents of the merged segment.
type Mapping struct {
	shift   uint32
	numbers []uint32 // nil if none is deleted
}

// New returns the new number of a document; false if it was left out.
func (m Mapping) New(doc uint32) (uint32, bool) {
	if m.numbers == nil {
		return doc + m.shift, true
	}
	n := m.numbers[doc]
	return n, n != gone
}

// source is a segment that is merged.
type source struct {
	part    *search.Part
	mapping Mapping
	terms   *dictionary.Iterator
	isCopy  bool // blocks are copied: nothing is deleted, and bounds hold as they are
}

// merger merges sources into a writer.
type merger struct {
	ctx     context.Context
	writer  *segment.Writer
	sources []*source
	cursor  postings.Cursor
}

// Reference returns the average lengths for a merged segment: those of the
// largest source while they are still near the average, so that bounds can be
// copied.
func Reference(parts []*search.Part) bm25.Averages {
	var t segment.Totals
	docs, largest := 0, parts[0]
	for _, p := range parts {
		s := p.Segment.Totals()
		t.Title, t.URL, t.Body = t.Title+s.Title, t.URL+s.URL, t.Body+s.Body
		docs += p.Segment.Len()
		if p.Segment.Len() > largest.Segment.Len() {
			largest = p
		}
	}
	n := float64(max(docs, 1))
	now := bm25.Averages{Title: float64(t.Title) / n, URL: float64(t.URL) / n, Body: float64(t.Body) / n}
	if old := largest.Segment.Reference(); isNear(old.Body, now.Body) && isNear(old.Title, now.Title) && isNear(old.URL, now.URL) {
		return old
	}
	return now
}

// drift is by which factor averages may differ from those that bounds were
// written for.
const drift = 1.3

func isNear(a, b float64) bool { return a < b*drift && b < a*drift || a == b }

// Run writes the documents of parts that are not deleted to w, which is empty
// and was made with Reference, and returns where each part's documents are now.
func Run(ctx context.Context, w *segment.Writer, parts []*search.Part, reference bm25.Averages) ([]Mapping, error) {
	m := merger{ctx: ctx, writer: w}
	next := uint32(0)
	for _, p := range parts {
		src := &source{part: p, mapping: newMapping(p, next)}
		src.isCopy = src.mapping.numbers == nil && p.Segment.Reference() == reference
		next += uint32(p.Live())
		m.sources = append(m.sources, src)
	}
	if err := m.mergeDocuments(); err != nil {
		return nil, err
	}
	if err := w.BeginTerms(); err != nil {
		return nil, err
	}
	if err := m.mergeTerms(); err != nil {
		return nil, err
	}
	mappings := make([]Mapping, len(parts))
	for i, s := range m.sources {
		mappings[i] = s.mapping
	}
	return mappings, nil
}

func newMapping(p *search.Part, first uint32) Mapping {
	if p.DeadCount == 0 {
		return Mapping{shift: first}
	}
	numbers := make([]uint32, p.Segment.Len())
	for doc := range numbers {
		if p.IsDead(uint32(doc)) {
			numbers[doc] = gone
			continue
		}
		numbers[doc] = first
		first++
	}
	return Mapping{numbers: numbers}
}

// checkEvery is after how many documents or terms the context is looked at.
const checkEvery = 1024

// mergeDocuments writes texts and columns.
func (m *merger) mergeDocuments() error {
	for _, s := range m.sources {
		if err := m.ctx.Err(); err != nil {
			return err
		}
		seg := s.part.Segment
		if s.mapping.numbers == nil {
			if err := m.writer.CopyTexts(seg); err != nil {
				return err
			}
		} else {
			err := seg.ForEachText(func(doc uint32, t segment.Text) error {
				if s.part.IsDead(doc) {
					return nil
				}
				return m.writer.AddText(t)
			})
			if err != nil {
				return err
			}
		}
		for doc := range uint32(seg.Len()) {
			if doc%checkEvery == 0 && m.ctx.Err() != nil {
				return m.ctx.Err()
			}
			if !s.part.IsDead(doc) {
				d := seg.Document(doc)
				d.Popularity = s.part.Popularity[doc]
				m.writer.AddDocument(d)
			}
		}
	}
	return nil
}

// mergeTerms merges the dictionaries.
func (m *merger) mergeTerms() error {
	for _, s := range m.sources {
		s.terms = s.part.Segment.Terms().Seek(nil)
	}
	var key []byte
	for n := 0; ; n++ {
		if n%checkEvery == 0 && m.ctx.Err() != nil {
			return m.ctx.Err()
		}
		var first *source
		for _, s := range m.sources {
			if s.terms.Valid() && (first == nil || bytes.Compare(s.terms.Term(), first.terms.Term()) < 0) {
				first = s
			}
		}
		if first == nil {
			break
		}
		key = append(key[:0], first.terms.Term()...)
		if err := m.mergeTerm(key, first.terms.Entry().HasPositions); err != nil {
			return err
		}
	}
	for _, s := range m.sources {
		if s.terms.Err() != nil {
			return fmt.Errorf("segment %s: %w", s.part.Segment.Path(), s.terms.Err())
		}
	}
	return nil
}

// mergeTerm writes the list of one term and moves all sources that have it.
func (m *merger) mergeTerm(key []byte, hasPositions bool) error {
	list := m.writer.BeginTerm(hasPositions)
	for _, s := range m.sources {
		if !s.terms.Valid() || !bytes.Equal(s.terms.Term(), key) {
			continue
		}
		l, err := s.part.Segment.List(s.terms.Entry())
		if err != nil {
			return err
		}
		if s.isCopy {
			if !list.AddList(&l, s.mapping.shift) {
				err = postings.ErrDamaged
			}
		} else {
			err = m.addLive(list, s, &l)
		}
		if err != nil {
			return fmt.Errorf("segment %s: %w", s.part.Segment.Path(), err)
		}
		s.terms.Next()
	}
	return m.writer.EndTerm(key, hasPositions)
}

// addLive adds the documents of a list that are not deleted one by one.
func (m *merger) addLive(list *postings.Writer, s *source, l *postings.List) error {
	c := &m.cursor
	for c.Open(l); c.Doc() < uint32(s.part.Segment.Len()); c.Next() {
		if doc, ok := s.mapping.New(c.Doc()); ok {
			list.Add(doc, c.Code(), c.Positions())
		}
	}
	return c.Err()
}
