package search

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
)

// result is a document that is among the best.
type result struct {
	part  int
	doc   uint32
	score float64 // or the date
	id    string
}

// compareResults orders by score, then by identifier, which no merge changes.
func compareResults(a, b result) int {
	return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.id, b.id))
}

// topK keeps the k best results, the worst of them first.
type topK struct {
	k     int
	items []result
}

func (t *topK) Len() int           { return len(t.items) }
func (t *topK) Less(i, j int) bool { return compareResults(t.items[i], t.items[j]) > 0 }
func (t *topK) Swap(i, j int)      { t.items[i], t.items[j] = t.items[j], t.items[i] }
func (t *topK) Push(x any)         { t.items = append(t.items, x.(result)) }
func (t *topK) Pop() any           { panic("results are replaced, not taken") }

// worstScore is the score that a document must reach, minus infinity while there is
// room.
func (t *topK) worstScore() float64 {
	if len(t.items) < t.k || t.k == 0 {
		return math.Inf(-1)
	}
	return t.items[0].score
}

// offerDocument offers a document whose score reaches worst.
func (t *topK) offerDocument(part int, doc uint32, score float64, id func(uint32) string) {
	switch {
	case t.k == 0 || score < t.worstScore():
	case len(t.items) < t.k:
		heap.Push(t, result{part, doc, score, id(doc)})
	default:
		r := result{part, doc, score, id(doc)}
		if compareResults(r, t.items[0]) < 0 {
			t.items[0] = r
			heap.Fix(t, 0)
		}
	}
}

// sortedResults returns the results, the best first.
func (t *topK) sortedResults() []result {
	slices.SortFunc(t.items, compareResults)
	return t.items
}
