package part

import (
	"slices"
	"strings"
)

// Table holds the parts of one host: a laminar family of key ranges. The zero
// value is empty. It is not safe for concurrent use.
type Table struct {
	spans []Span // by low, the wider first
}

// Span is a part with its range of keys.
type Span struct {
	Part      Part
	Low, High string
}

func spanOfPart(p Part) Span {
	low, high := p.Range()
	return Span{p, low, high}
}

// outerFirst puts an outer span before the spans inside it. Two parts with one range
// are one part but for (folder, "", "") inside borders around that folder alone;
// the shorter folder is then the outer one.
func outerFirst(a, b Span) int {
	if c := strings.Compare(a.Low, b.Low); c != 0 {
		return c
	}
	if c := strings.Compare(b.High, a.High); c != 0 {
		return c
	}
	return len(a.Part.Folder) - len(b.Part.Folder)
}

// Len returns the number of parts.
func (t *Table) Len() int { return len(t.spans) }

// Add puts a part in; one that is there already stays once.
func (t *Table) Add(p Part) {
	s := spanOfPart(p)
	i, found := slices.BinarySearchFunc(t.spans, s, outerFirst)
	if !found {
		t.spans = slices.Insert(t.spans, i, s)
	}
}

// Remove takes a part out: what it held now belongs to the part around it.
func (t *Table) Remove(p Part) {
	if i, found := slices.BinarySearchFunc(t.spans, spanOfPart(p), outerFirst); found {
		t.spans = slices.Delete(t.spans, i, i+1)
	}
}

// Has reports whether p is in the table.
func (t *Table) Has(p Part) bool {
	_, found := slices.BinarySearchFunc(t.spans, spanOfPart(p), outerFirst)
	return found
}

// Inside returns the outermost parts inside p, in the order of keys.
func (t *Table) Inside(p Part) []Span {
	s := spanOfPart(p)
	i, found := slices.BinarySearchFunc(t.spans, s, outerFirst)
	if found {
		i++
	}
	var out []Span
	end := ""
	for ; i < len(t.spans) && t.spans[i].Low < s.High; i++ {
		if t.spans[i].Low >= end {
			out = append(out, t.spans[i])
			end = t.spans[i].High
		}
	}
	return out
}

// Around returns the innermost part around p; ok is false for the root part.
func (t *Table) Around(p Part) (outer Part, ok bool) {
	s := spanOfPart(p)
	i, _ := slices.BinarySearchFunc(t.spans, s, outerFirst)
	for i--; i >= 0; i-- {
		if t.spans[i].High >= s.High && t.spans[i].Part != p {
			return t.spans[i].Part, true
		}
	}
	return Part{}, false
}

// Holder returns the part that holds key.
func (t *Table) Holder(key string) (Part, bool) {
	i, _ := slices.BinarySearchFunc(t.spans, key, func(s Span, key string) int {
		if s.Low <= key {
			return -1
		}
		return 1
	})
	for i--; i >= 0; i-- {
		if key < t.spans[i].High {
			return t.spans[i].Part, true
		}
	}
	return Part{}, false
}

// All returns the parts in the order of keys, outer before inner.
func (t *Table) All() []Part {
	out := make([]Part, len(t.spans))
	for i, s := range t.spans {
		out[i] = s.Part
	}
	return out
}
