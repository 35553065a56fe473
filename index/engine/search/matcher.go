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

func (w *window) count() int {
	n := 0
	for _, v := range w {
		n += bits.OnesCount64(v)
	}
	return n
}

// matcher finds documents of one segment. Windows and documents ascend from
// call to call; for a window either fill or contains is called.
type matcher interface {
	// next returns a number that no match from doc on falls below.
	next(doc uint32) uint32
	// fill sets the bits of all matches in an empty window.
	fill(base uint32, w *window)
	contains(doc uint32) bool
	// cost is about how many documents match.
	cost() int
}

// sparse is the number of candidates up to which they are looked up one by one.
const sparse = 96

// restrict clears the bits of what m does not match.
func restrict(m matcher, base uint32, w *window) {
	if w.count() <= sparse {
		forEachBit(base, w, func(doc uint32) {
			if !m.contains(doc) {
				w[(doc-base)/64] &^= 1 << (doc % 64)
			}
		})
		return
	}
	var other window
	m.fill(base, &other)
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

func (m *list) next(doc uint32) uint32      { return m.cursor.Seek(doc) }
func (m *list) fill(base uint32, w *window) { m.cursor.FillBits(base, w[:]) }
func (m *list) contains(doc uint32) bool    { return m.cursor.Seek(doc) == doc }
func (m *list) cost() int                   { return m.list.Count() }

// fieldList matches the documents of a list that have the term in a field.
type fieldList struct {
	list
	span span
}

func (m *fieldList) inField() bool {
	_, title, url := postings.UnpackCode(m.cursor.Code())
	return m.span == inTitle && title > 0 || m.span == inURL && url > 0
}

func (m *fieldList) fill(base uint32, w *window) {
	for doc := m.cursor.Seek(base); doc < base+windowSize; doc = m.cursor.Next() {
		if m.inField() {
			w[(doc-base)/64] |= 1 << (doc % 64)
		}
	}
}

func (m *fieldList) contains(doc uint32) bool { return m.cursor.Seek(doc) == doc && m.inField() }

// and matches what all of its matchers match, the rarest first.
type and []matcher

func (m and) next(doc uint32) uint32 {
	for _, c := range m {
		if doc = c.next(doc); doc == postings.End {
			break
		}
	}
	return doc
}

func (m and) fill(base uint32, w *window) {
	m[0].fill(base, w)
	for _, c := range m[1:] {
		if *w == (window{}) {
			return
		}
		restrict(c, base, w)
	}
}

func (m and) contains(doc uint32) bool {
	for _, c := range m {
		if !c.contains(doc) {
			return false
		}
	}
	return true
}

func (m and) cost() int { return m[0].cost() }

// or matches what one of its matchers matches.
type or []matcher

func (m or) next(doc uint32) uint32 {
	first := uint32(postings.End)
	for _, c := range m {
		first = min(first, c.next(doc))
	}
	return first
}

func (m or) fill(base uint32, w *window) {
	for _, c := range m {
		if l, ok := c.(*list); ok { // sets bits beside those of others
			l.fill(base, w)
			continue
		}
		var other window
		c.fill(base, &other)
		for i := range w {
			w[i] |= other[i]
		}
	}
}

func (m or) contains(doc uint32) bool {
	return slices.ContainsFunc(m, func(c matcher) bool { return c.contains(doc) })
}

func (m or) cost() int {
	n := 0
	for _, c := range m {
		n += c.cost()
	}
	return n
}

// not matches what its matcher does not match.
type not struct {
	matcher
	docs int
}

func (m *not) next(doc uint32) uint32 { return endOf(doc, m.docs) }

func (m *not) fill(base uint32, w *window) {
	m.matcher.fill(base, w)
	for i := range w {
		w[i] = ^w[i]
	}
	cutWindow(base, w, m.docs)
}

func (m *not) contains(doc uint32) bool { return !m.matcher.contains(doc) }
func (m *not) cost() int                { return max(m.docs-m.matcher.cost(), m.docs/2) }

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

func (m all) next(doc uint32) uint32 { return endOf(doc, m.docs) }
func (m all) contains(uint32) bool   { return true }
func (m all) cost() int              { return m.docs }

func (m all) fill(base uint32, w *window) {
	for i := range w {
		w[i] = ^uint64(0)
	}
	cutWindow(base, w, m.docs)
}

// none matches nothing.
type none struct{}

func (none) next(uint32) uint32   { return postings.End }
func (none) fill(uint32, *window) {}
func (none) contains(uint32) bool { return false }
func (none) cost() int            { return 0 }

// inRange matches documents by a column. It costs little in a conjunction, which
// asks it only for documents that match everything else.
type inRange struct {
	all
	plan planRange
	part *Part
}

func (m *inRange) contains(doc uint32) bool {
	v := m.plan.column(m.part, doc)
	return v >= m.plan.min && v <= m.plan.max
}

func (m *inRange) fill(base uint32, w *window) {
	for doc := base; doc < min(base+windowSize, uint32(m.docs)); doc++ {
		if m.contains(doc) {
			w[(doc-base)/64] |= 1 << (doc % 64)
		}
	}
}

// set matches the documents of a bitmap.
type set struct {
	bits  []uint64
	count int
}

func (m *set) next(doc uint32) uint32 {
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

func (m *set) fill(base uint32, w *window) {
	if at := int(base / 64); at < len(m.bits) {
		copy(w[:], m.bits[at:])
	}
}

func (m *set) contains(doc uint32) bool { return m.bits[doc/64]>>(doc%64)&1 != 0 }
func (m *set) cost() int                { return m.count }

// builder makes the matchers of a plan for one segment.
type builder struct {
	part     *Part
	segment  *segment.Segment
	cursors  []*postings.Cursor
	prefixes map[*planPrefix]*set
	limited  bool // a prefix has more words than are looked at
	err      error
}

// cursor returns a cursor over a list. The builder releases it.
func (b *builder) cursor(l *postings.List) *postings.Cursor {
	c := cursors.Get().(*postings.Cursor)
	c.Open(l)
	b.cursors = append(b.cursors, c)
	return c
}

// release gives the cursors back and returns what was wrong with one of them.
func (b *builder) release() error {
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

func (b *builder) fail(err error) matcher {
	b.err = cmp.Or(b.err, err)
	return none{}
}

// lookup returns the list of a term.
func (b *builder) lookup(key []byte) postings.List {
	l, err := b.segment.Lookup(key)
	if err != nil {
		b.err = cmp.Or(b.err, err)
	}
	return l
}

func (b *builder) matcher(n planNode) matcher {
	switch n := n.(type) {
	case planAnd:
		return b.and(n)
	case planOr:
		var out or
		for _, c := range n {
			if m := b.matcher(c); m != (none{}) {
				out = append(out, m)
			}
		}
		return out.simple()
	case planNot:
		return &not{b.matcher(n.node), b.segment.Len()}
	case planNone:
		return none{}
	case *planWord:
		var out or
		for _, key := range n.keys {
			if m := b.list(key, n.span); m != (none{}) {
				out = append(out, m)
			}
		}
		return out.simple()
	case *planPhrase:
		return b.phrase(n)
	case *planPrefix:
		return b.prefix(n)
	case planFilter:
		return b.list(n.key, anywhere)
	case planRange:
		return &inRange{all{b.segment.Len()}, n, b.part}
	}
	return all{b.segment.Len()}
}

func (m or) simple() matcher {
	switch len(m) {
	case 0:
		return none{}
	case 1:
		return m[0]
	}
	return m
}

func (b *builder) and(nodes planAnd) matcher {
	var out and
	for _, c := range nodes {
		m := b.matcher(c)
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
	slices.SortStableFunc(out, func(x, y matcher) int { return cmp.Compare(x.cost(), y.cost()) })
	return out
}

// list returns the matcher of a term.
func (b *builder) list(key []byte, s span) matcher {
	l := b.lookup(key)
	if l.Count() == 0 {
		return none{}
	}
	m := &list{list: l}
	m.cursor = b.cursor(&m.list)
	if s != anywhere {
		return &fieldList{*m, s}
	}
	return m
}

// prefix collects the documents of all words that begin so.
func (b *builder) prefix(n *planPrefix) matcher {
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
			return b.fail(err)
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
			return b.fail(c.Err())
		}
	}
	if it.Err() != nil {
		return b.fail(it.Err())
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
