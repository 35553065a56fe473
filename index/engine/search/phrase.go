package search

import (
	"cmp"
	"slices"
	"sync"

	"github.com/freshet/freshet/index/engine/postings"
	"github.com/freshet/freshet/index/engine/segment"
	"github.com/freshet/freshet/index/engine/term"
)

var cursors = sync.Pool{New: func() any { return new(postings.Cursor) }}

// phraseWord is a word of a phrase, with its places in it.
type phraseWord struct {
	list    postings.List
	cursor  *postings.Cursor // finds candidates
	places  *postings.Cursor // reads positions, perhaps later
	offsets []uint32
}

// phrase matches documents that have its words in a row. It reads positions of
// the rarest word first and leaves a document as soon as no beginning is left.
type phrase struct {
	words   []*phraseWord // the rarest first
	span    span
	segment *segment.Segment
	begins  []uint32
}

func (b *builder) phraseMatcher(n *planPhrase) matcher {
	m := &phrase{span: n.span, segment: b.segment}
	places := map[string]*phraseWord{}
	for i, word := range n.words {
		w, ok := places[word]
		if !ok {
			w = &phraseWord{list: b.lookupTerm(term.Key(term.Word, word))}
			if w.list.Count() == 0 {
				return none{}
			}
			w.cursor, w.places = b.openCursor(&w.list), b.openCursor(&w.list)
			places[word] = w
			m.words = append(m.words, w)
		}
		w.offsets = append(w.offsets, uint32(i))
	}
	slices.SortStableFunc(m.words, func(x, y *phraseWord) int { return cmp.Compare(x.list.Count(), y.list.Count()) })
	return m
}

func (m *phrase) estimatedCost() int { return m.words[0].list.Count() / 2 }

func (m *phrase) nextCandidate(doc uint32) uint32 {
	for _, w := range m.words {
		if doc = w.cursor.Seek(doc); doc == postings.End {
			break
		}
	}
	return doc
}

func (m *phrase) fillWindow(base uint32, w *window) {
	m.fillCandidates(base, w)
	forEachBit(base, w, func(doc uint32) {
		if !m.verifyPhrase(doc) {
			w[(doc-base)/64] &^= 1 << (doc % 64)
		}
	})
}

// fillCandidates sets the bits of documents that have all words.
func (m *phrase) fillCandidates(base uint32, w *window) {
	lead := m.words[0].cursor
	for doc := lead.Seek(base); doc < base+windowSize; doc = lead.Seek(doc + 1) {
		if m.hasAll(doc) {
			w[(doc-base)/64] |= 1 << (doc % 64)
		}
	}
}

func (m *phrase) hasAll(doc uint32) bool {
	for _, w := range m.words {
		if w.cursor.Seek(doc) != doc {
			return false
		}
	}
	return true
}

func (m *phrase) containsDoc(doc uint32) bool { return m.hasAll(doc) && m.verifyPhrase(doc) }

// verifyPhrase reports whether the words stand in a row in a document that has them
// all. Documents ascend from call to call.
func (m *phrase) verifyPhrase(doc uint32) bool {
	for i, w := range m.words {
		if w.places.Seek(doc) != doc {
			return false
		}
		positions := w.places.Positions()
		for j, offset := range w.offsets {
			if i+j == 0 {
				m.begins = m.begins[:0]
				for _, p := range positions {
					if p >= offset {
						m.begins = append(m.begins, p-offset)
					}
				}
			} else {
				m.begins = keepBegins(m.begins, positions, offset)
			}
		}
		if len(m.begins) == 0 {
			return false
		}
	}
	return m.inSpan(doc)
}

// keepBegins keeps the beginnings that have a position offset further on.
func keepBegins(begins, positions []uint32, offset uint32) []uint32 {
	kept, i := begins[:0], 0
	for _, b := range begins {
		for i < len(positions) && positions[i] < b+offset {
			i++
		}
		if i == len(positions) {
			break
		}
		if positions[i] == b+offset {
			kept = append(kept, b)
		}
	}
	return kept
}

// inSpan reports whether a beginning is in the field that is asked for.
func (m *phrase) inSpan(doc uint32) bool {
	if m.span == anywhere {
		return true
	}
	low, high := uint32(0), uint32(0)
	title, url := m.segment.Ends(doc)
	if m.span == inTitle {
		high = title
	} else {
		low, high = title, url
	}
	return slices.ContainsFunc(m.begins, func(b uint32) bool { return b >= low && b < high })
}
