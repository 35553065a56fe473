package search

import (
	"bytes"
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	"github.com/freshet/freshet/index/engine/postings"
	"github.com/freshet/freshet/index/engine/segment"
)

// windowSize is the number of documents that are matched at once.
const windowSize = 4096

// window has a bit for each of windowSize documents.
type window [windowSize / 64]uint64

func (w *window) countBits() int {
	n := 0
	for _, v := range w {
		n += bits.OnesCount64(v)
	}
	return n
}

// matcher finds documents of one segment. Windows and documents ascend from
// call to call; for a window either fill or contains is called.
type matcher interface {
	// nextCandidate returns a number that no match from doc on falls below.
	nextCandidate(doc uint32) uint32
	// fillWindow sets the bits of all matches in an empty window.
	fillWindow(base uint32, w *window)
	containsDoc(doc uint32) bool
	// estimatedCost is about how many documents match.
	estimatedCost() int
}

// sparse is the number of candidates up to which they are looked up one by one.
const sparse = 96

// restrictTo clears the bits of what m does not match.
func restrictTo(m matcher, base uint32, w *window) {
	if w.countBits() <= sparse {
		forEachBit(base, w, func(doc uint32) {
			if !m.containsDoc(doc) {
				w[(doc-base)/64] &^= 1 << (doc % 64)
			}
		})
		return
	}
	var other window
	m.fillWindow(base, &other)
	for i := range w {
		w[i] &= other[i]
	}
}

func forEachBit(base uint32, w *window, f func(doc uint32)) {
	for i, v := range w {
		for ; v != 0; v &= v - 1 {
			f(base + uint32(i*64+bits.TrailingZeros64(v)))
		}
	}
}

// list matches the documents of a list.
type list struct {
	list   postings.List
	cursor *postings.Cursor
}

func (m *list) nextCandidate(doc uint32) uint32   { return m.cursor.Seek(doc) }
func (m *list) fillWindow(base uint32, w *window) { m.cursor.FillBits(base, w[:]) }
func (m *list) containsDoc(doc uint32) bool       { return m.cursor.Seek(doc) == doc }
func (m *list) estimatedCost() int                { return m.list.Count() }

// fieldList matches the documents of a list that have the term in a field.
type fieldList struct {
	list
	span span
}

func (m *fieldList) inField() bool {
	_, title, url := postings.UnpackCode(m.cursor.Code())
	return m.span == inTitle && title > 0 || m.span == inURL && url > 0
}

func (m *fieldList) fillWindow(base uint32, w *window) {
	for doc := m.cursor.Seek(base); doc < base+windowSize; doc = m.cursor.Next() {
		if m.inField() {
			w[(doc-base)/64] |= 1 << (doc % 64)
		}
	}
}

func (m *fieldList) containsDoc(doc uint32) bool { return m.cursor.Seek(doc) == doc && m.inField() }

// and matches what all of its matchers match, the rarest first.
type and []matcher

func (m and) nextCandidate(doc uint32) uint32 {
	for _, c := range m {
		if doc = c.nextCandidate(doc); doc == postings.End {
			break
		}
	}
	return doc
}

func (m and) fillWindow(base uint32, w *window) {
	m[0].fillWindow(base, w)
	for _, c := range m[1:] {
		if *w == (window{}) {
			return
		}
		restrictTo(c, base, w)
	}
}

func (m and) containsDoc(doc uint32) bool {
	for _, c := range m {
		if !c.containsDoc(doc) {
			return false
		}
	}
	return true
}

func (m and) estimatedCost() int { return m[0].estimatedCost() }

// or matches what one of its matchers matches.
type or []matcher

func (m or) nextCandidate(doc uint32) uint32 {
	first := uint32(postings.End)
	for _, c := range m {
		first = min(first, c.nextCandidate(doc))
	}
	return first
}

func (m or) fillWindow(base uint32, w *window) {
	for _, c := range m {
		if l, ok := c.(*list); ok { // sets bits beside those of others
			l.fillWindow(base, w)
			continue
		}
		var other window
		c.fillWindow(base, &other)
		for i := range w {
			w[i] |= other[i]
		}
	}
}

func (m or) containsDoc(doc uint32) bool {
	return slices.ContainsFunc(m, func(c matcher) bool { return c.containsDoc(doc) })
}

func (m or) estimatedCost() int {
	n := 0
	for _, c := range m {
		n += c.estimatedCost()
	}
	return n
}

// not matches what its matcher does not match.
type not struct {
	matcher
	docs int
}

func (m *not) nextCandidate(doc uint32) uint32 { return endOf(doc, m.docs) }

func (m *not) fillWindow(base uint32, w *window) {
	m.matcher.fillWindow(base, w)
	for i := range w {
		w[i] = ^w[i]
	}
	cutWindow(base, w, m.docs)
}

func (m *not) containsDoc(doc uint32) bool { return !m.matcher.containsDoc(doc) }
func (m *not) estimatedCost() int          { return max(m.docs-m.matcher.estimatedCost(), m.docs/2) }

// endOf is doc, or End if it is not one of docs documents.
func endOf(doc uint32, docs int) uint32 {
	if uint64(doc) >= uint64(docs) {
		return postings.End
	}
	return doc
}

// cutWindow clears the bits of documents that do not exist.
func cutWindow(base uint32, w *window, docs int) {
	for i := range w {
		switch n := docs - int(base) - i*64; {
		case n <= 0:
			w[i] = 0
		case n < 64:
			w[i] &= 1<<n - 1
		}
	}
}

// all matches every document.
type all struct{ docs int }

func (m all) nextCandidate(doc uint32) uint32 { return endOf(doc, m.docs) }
func (m all) containsDoc(uint32) bool         { return true }
func (m all) estimatedCost() int              { return m.docs }

func (m all) fillWindow(base uint32, w *window) {
	for i := range w {
		w[i] = ^uint64(0)
	}
	cutWindow(base, w, m.docs)
}

// none matches nothing.
type none struct{}

func (none) nextCandidate(uint32) uint32 { return postings.End }
func (none) fillWindow(uint32, *window)  {}
func (none) containsDoc(uint32) bool     { return false }
func (none) estimatedCost() int          { return 0 }

// inRange matches documents by a column. It costs little in a conjunction, which
// asks it only for documents that match everything else.
type inRange struct {
	all
	plan planRange
	part *Part
}

func (m *inRange) containsDoc(doc uint32) bool {
	v := m.plan.column(m.part, doc)
	return v >= m.plan.min && v <= m.plan.max
}

func (m *inRange) fillWindow(base uint32, w *window) {
	for doc := base; doc < min(base+windowSize, uint32(m.docs)); doc++ {
		if m.containsDoc(doc) {
			w[(doc-base)/64] |= 1 << (doc % 64)
		}
	}
}

// set matches the documents of a bitmap.
type set struct {
	bits  []uint64
	count int
}

func (m *set) nextCandidate(doc uint32) uint32 {
	for i := int(doc / 64); i < len(m.bits); i++ {
		v := m.bits[i]
		if i == int(doc/64) {
			v &= ^uint64(0) << (doc % 64)
		}
		if v != 0 {
			return uint32(i*64 + bits.TrailingZeros64(v))
		}
	}
	return postings.End
}

func (m *set) fillWindow(base uint32, w *window) {
	if at := int(base / 64); at < len(m.bits) {
		copy(w[:], m.bits[at:])
	}
}

func (m *set) containsDoc(doc uint32) bool { return m.bits[doc/64]>>(doc%64)&1 != 0 }
func (m *set) estimatedCost() int          { return m.count }

// builder makes the matchers of a plan for one segment.
type builder struct {
	part     *Part
	segment  *segment.Segment
	cursors  []*postings.Cursor
	prefixes map[*planPrefix]*set
	limited  bool // a prefix has more words than are looked at
	err      error
}

// openCursor returns a cursor over a list. The builder releases it.
func (b *builder) openCursor(l *postings.List) *postings.Cursor {
	c := cursors.Get().(*postings.Cursor)
	c.Open(l)
	b.cursors = append(b.cursors, c)
	return c
}

// releaseCursors gives the cursors back and returns what was wrong with one of them.
func (b *builder) releaseCursors() error {
	err := b.err
	for _, c := range b.cursors {
		if c.Err() != nil && err == nil {
			err = fmt.Errorf("segment %s: %w", b.segment.Path(), c.Err())
		}
		cursors.Put(c)
	}
	b.cursors = nil
	return err
}

func (b *builder) failBuild(err error) matcher {
	b.err = cmp.Or(b.err, err)
	return none{}
}

// lookupTerm returns the list of a term.
func (b *builder) lookupTerm(key []byte) postings.List {
	l, err := b.segment.Lookup(key)
	if err != nil {
		b.err = cmp.Or(b.err, err)
	}
	return l
}

func (b *builder) buildMatcher(n planNode) matcher {
	switch n := n.(type) {
	case planAnd:
		return b.buildAnd(n)
	case planOr:
		var out or
		for _, c := range n {
			if m := b.buildMatcher(c); m != (none{}) {
				out = append(out, m)
			}
		}
		return out.simplified()
	case planNot:
		return &not{b.buildMatcher(n.node), b.segment.Len()}
	case planNone:
		return none{}
	case *planWord:
		var out or
		for _, key := range n.keys {
			if m := b.termMatcher(key, n.span); m != (none{}) {
				out = append(out, m)
			}
		}
		return out.simplified()
	case *planPhrase:
		return b.phraseMatcher(n)
	case *planPrefix:
		return b.prefixMatcher(n)
	case planFilter:
		return b.termMatcher(n.key, anywhere)
	case planRange:
		return &inRange{all{b.segment.Len()}, n, b.part}
	}
	return all{b.segment.Len()}
}

func (m or) simplified() matcher {
	switch len(m) {
	case 0:
		return none{}
	case 1:
		return m[0]
	}
	return m
}

func (b *builder) buildAnd(nodes planAnd) matcher {
	var out and
	for _, c := range nodes {
		m := b.buildMatcher(c)
		switch m.(type) {
		case none:
			return none{}
		case all:
			continue
		}
		out = append(out, m)
	}
	switch len(out) {
	case 0:
		return all{b.segment.Len()}
	case 1:
		return out[0]
	}
	slices.SortStableFunc(out, func(x, y matcher) int { return cmp.Compare(x.estimatedCost(), y.estimatedCost()) })
	return out
}

// termMatcher returns the matcher of a term.
func (b *builder) termMatcher(key []byte, s span) matcher {
	l := b.lookupTerm(key)
	if l.Count() == 0 {
		return none{}
	}
	m := &list{list: l}
	m.cursor = b.openCursor(&m.list)
	if s != anywhere {
		return &fieldList{*m, s}
	}
	return m
}

// prefixMatcher collects the documents of all words that begin so.
func (b *builder) prefixMatcher(n *planPrefix) matcher {
	if m, ok := b.prefixes[n]; ok {
		return m
	}
	m := &set{bits: make([]uint64, (b.segment.Len()+63)/64)}
	words, found := 0, 0
	var c postings.Cursor
	it := b.segment.Terms().Seek(n.prefix)
	for ; it.Valid() && bytes.HasPrefix(it.Term(), n.prefix); it.Next() {
		if words++; words > maxExpansions || found > maxExpanded {
			b.limited = true
			break
		}
		l, err := b.segment.List(it.Entry())
		if err != nil {
			return b.failBuild(err)
		}
		found += l.Count()
		c.Open(&l)
		if n.span == anywhere {
			c.FillBits(0, m.bits)
		} else {
			for f := (&fieldList{list{l, &c}, n.span}); c.Doc() < uint32(b.segment.Len()); c.Next() {
				if f.inField() {
					m.bits[c.Doc()/64] |= 1 << (c.Doc() % 64)
				}
			}
		}
		if c.Err() != nil {
			return b.failBuild(c.Err())
		}
	}
	if it.Err() != nil {
		return b.failBuild(it.Err())
	}
	for _, v := range m.bits {
		m.count += bits.OnesCount64(v)
	}
	if b.prefixes == nil {
		b.prefixes = map[*planPrefix]*set{}
	}
	b.prefixes[n] = m
	return m
}
