package monitor

import "github.com/freshet/freshet/due"

// turns says which page is next, in a time that only orders turns.
type turns struct {
	heap due.Heap
	now  float64 // of the turn taken last
}

func (t *turns) any() bool { return len(t.heap) > 0 }

func (t *turns) push(at float64, page uint32) { t.heap.Push(due.Entry{At: at, ID: page}) }

func (t *turns) pop() (page uint32) {
	top := t.heap.Pop()
	t.now = top.At
	return top.ID
}
