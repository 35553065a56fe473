package run

import (
	"cmp"
	"errors"
	"slices"

	"github.com/freshet/freshet/lab/strategy/check"
	"github.com/freshet/freshet/lab/strategy/contain"
)

// object is what a variable of a container type holds.
type object interface {
	Len() int
	Clear() error
	Free() error
}

// nodeQueue is the container that matters most.
type nodeQueue = contain.Queue[uint32]

func isObject(t *check.Type) bool { return t.Kind >= check.Queue && t.Kind <= check.Map }

// newObject makes an empty container.
func (m *machine) newObject(t *check.Type) (object, error) {
	nodes := t.Elem != nil && t.Elem.Kind == check.Node
	switch t.Kind {
	case check.Queue:
		if nodes {
			return contain.NewQueue[uint32](m.env), nil
		}
		return contain.NewQueue[uint64](m.env), nil
	case check.Stack:
		if nodes {
			return contain.NewStack[uint32](m.env), nil
		}
		return contain.NewStack[uint64](m.env), nil
	case check.Sorted:
		return &sortedQueue{contain.NewSorted(m.env), m.sortKeyFunc(t)}, nil
	case check.File:
		if m.live != nil {
			return &file{}, nil // nothing is stored yet
		}
		return &file{n: m.n}, nil
	case check.AOQ:
		return contain.NewByServer(m.env, max(1, m.web.Sites()), func(u uint32) int { return m.serverOfPage(u) })
	case check.Array:
		return &array{m: m, fill: zeroWord(t.Elem)}, nil
	case check.Map:
		return &table{m: m, cells: map[int64]int64{}, fill: zeroWord(t.Elem), strings: t.Key.Kind == check.String}, nil
	}
	return nil, errors.New("no container of type " + t.String())
}

// zeroWord is the word of a variable that nothing was assigned to. That of a string
// is -1 in containers: no interned string.
func zeroWord(t *check.Type) int64 {
	if t.Kind == check.Node || t.Kind == check.String {
		return -1
	}
	return 0
}

// sortedQueue is queue(attribute) of node: the attribute is read at the push.
type sortedQueue struct {
	*contain.Sorted
	key func(v int64) uint64
}

// Push implements contain.Sequence.
func (s *sortedQueue) Push(v int64) error { return s.PushKey(s.key(v), v) }

// sortKeyFunc returns the function that gives elements their place in a sorted queue.
func (m *machine) sortKeyFunc(t *check.Type) func(int64) uint64 {
	if t.By == nil {
		if t.Elem.Kind == check.Real {
			return func(v int64) uint64 { return contain.RealKey(wordToReal(v)) }
		}
		return contain.IntKey
	}
	a := t.By
	switch a.Builtin {
	case check.Declared:
		col := m.cols[a.Column]
		switch a.Type.Kind {
		case check.Boolean:
			return func(v int64) uint64 { return uint64(col.bools[v]) }
		case check.Real:
			return func(v int64) uint64 { return contain.RealKey(col.reals[v]) }
		}
		return func(v int64) uint64 { return contain.IntKey(col.ints[v]) }
	case check.Server:
		return func(v int64) uint64 { return uint64(m.serverOfPage(uint32(v))) }
	case check.Depth:
		return func(v int64) uint64 { return contain.IntKey(m.depthOf(uint32(v))) }
	case check.Age:
		return func(v int64) uint64 { return contain.RealKey(m.fetchAge(v)) }
	}
	return func(v int64) uint64 { return uint64(m.opt.Pages.Size(uint32(v))) }
}

// fetchAge is the time since a page was fetched, or since the start.
func (m *machine) fetchAge(v int64) float64 {
	if m.live != nil {
		return m.live.Age(uint32(v))
	}
	return max(0, m.clock.nextFetchTime()-m.last[v])
}

// depthOf is the fewest links to a page from the first one of a chain of fetched
// pages; -1: not found yet.
func (m *machine) depthOf(u uint32) int64 {
	if m.live != nil {
		return int64(m.live.Depth(u))
	}
	return int64(m.depths[u])
}

// file walks all pages of the web in order.
type file struct{ n, at int }

// Len returns how many pages are left.
func (f *file) Len() int { return f.n - f.at }

// Push is never called: the type check forbids it.
func (f *file) Push(int64) error { return errors.New("a file is read-only") }

// Pop returns the next page and moves on.
func (f *file) Pop() (int64, error) {
	f.at++
	return int64(f.at - 1), nil
}

// Top returns the next page.
func (f *file) Top() (int64, error) { return int64(f.at), nil }

// Clear does nothing: a file is read-only.
func (f *file) Clear() error { return nil }

// Free does nothing.
func (f *file) Free() error { return nil }

// links is a fresh container of a page's links: a queue that pushes onto a copy.
type links struct {
	list  []uint32
	owned bool
}

// Len implements contain.Sequence.
func (l *links) Len() int { return len(l.list) }

// Push implements contain.Sequence.
func (l *links) Push(v int64) error {
	if !l.owned {
		l.list, l.owned = slices.Clone(l.list), true
	}
	l.list = append(l.list, uint32(v))
	return nil
}

// Pop implements contain.Sequence.
func (l *links) Pop() (int64, error) {
	v := l.list[0]
	l.list = l.list[1:]
	return int64(v), nil
}

// Top implements contain.Sequence.
func (l *links) Top() (int64, error) { return int64(l.list[0]), nil }

// Clear implements contain.Sequence.
func (l *links) Clear() error { l.list = nil; return nil }

// Free implements object.
func (l *links) Free() error { return nil }

// Each calls f with every link.
func (l *links) Each(f func(int64) error) error {
	for _, v := range l.list {
		if err := f(int64(v)); err != nil {
			return err
		}
	}
	return nil
}

// serverQueue is the i-th queue of an aoq.
type serverQueue struct {
	a *contain.ByServer
	i int
}

// Len implements contain.Sequence.
func (q serverQueue) Len() int { return q.a.Size(q.i) }

// Push files the node under its own server.
func (q serverQueue) Push(v int64) error { return q.a.Push(v) }

// Pop implements contain.Sequence.
func (q serverQueue) Pop() (int64, error) { return q.a.PopOf(q.i), nil }

// Top implements contain.Sequence.
func (q serverQueue) Top() (int64, error) { return q.a.TopOf(q.i), nil }

// Clear implements contain.Sequence.
func (q serverQueue) Clear() error { q.a.Drop(q.i); return nil }

// Free does nothing: the nodes belong to the aoq.
func (q serverQueue) Free() error { return nil }

// Each calls f with every node of the queue.
func (q serverQueue) Each(f func(int64) error) error { return q.a.EachOf(q.i, f) }

// array is an array of words that grows.
type array struct {
	m     *machine
	cells []int64
	fill  int64
}

// Len implements object.
func (a *array) Len() int { return len(a.cells) }

// Clear implements object.
func (a *array) Clear() error { a.cells = a.cells[:0]; return nil }

// Free implements object.
func (a *array) Free() error {
	err := a.m.env.Memory(-8 * int64(cap(a.cells)))
	a.cells = nil
	return err
}

// reserveCells makes room for n cells in all.
func (a *array) reserveCells(n int64) error {
	if n <= int64(cap(a.cells)) {
		return nil
	}
	n = max(n, min(2*int64(cap(a.cells)), int64(cap(a.cells))+1<<20), 16)
	if n > 1<<40 {
		return errors.New("an array has at most 2^40 elements")
	}
	if err := a.m.env.Memory(8 * (n - int64(cap(a.cells)))); err != nil {
		return err
	}
	bigger := make([]int64, len(a.cells), n)
	copy(bigger, a.cells)
	a.cells = bigger
	return nil
}

// Push implements contain.Sequence.
func (a *array) Push(v int64) error {
	if err := a.reserveCells(int64(len(a.cells)) + 1); err != nil {
		return err
	}
	a.cells = append(a.cells, v)
	return nil
}

// Pop removes the last element.
func (a *array) Pop() (int64, error) {
	v, _ := a.Top()
	a.cells = a.cells[:len(a.cells)-1]
	return v, nil
}

// Top returns the last element.
func (a *array) Top() (int64, error) { return a.cells[len(a.cells)-1], nil }

// resizeArray makes the array n long; new elements are zero.
func (a *array) resizeArray(n int64) error {
	if err := a.reserveCells(n); err != nil {
		return err
	}
	old := len(a.cells)
	a.cells = a.cells[:n]
	for i := old; i < int(n); i++ {
		a.cells[i] = a.fill
	}
	return nil
}

// table is a map from words to words.
type table struct {
	m       *machine
	cells   map[int64]int64
	fill    int64
	strings bool // keys are interned strings
}

// cellBytes is about what an entry of a map takes.
const cellBytes = 40

// Len implements object.
func (t *table) Len() int { return len(t.cells) }

// Clear implements object.
func (t *table) Clear() error {
	if len(t.cells) == 0 { // clearing takes the time of the greatest size that the map had
		return nil
	}
	err := t.m.env.Memory(-cellBytes * int64(len(t.cells)))
	t.cells = map[int64]int64{}
	return err
}

// Free implements object.
func (t *table) Free() error { return t.Clear() }

func (t *table) getCell(k int64) int64 {
	if v, ok := t.cells[k]; ok {
		return v
	}
	return t.fill
}

func (t *table) setCell(k, v int64) error {
	if _, ok := t.cells[k]; !ok {
		if err := t.m.env.Memory(cellBytes); err != nil {
			return err
		}
	}
	t.cells[k] = v
	return nil
}

func (t *table) removeCell(k int64) {
	if _, ok := t.cells[k]; ok {
		_ = t.m.env.Memory(-cellBytes)
		delete(t.cells, k)
	}
}

// sortedKeys returns the keys in ascending order.
func (t *table) sortedKeys() []int64 {
	ks := make([]int64, 0, len(t.cells))
	for k := range t.cells {
		ks = append(ks, k)
	}
	if t.strings {
		slices.SortFunc(ks, func(a, b int64) int { return cmp.Compare(t.m.internedString(a), t.m.internedString(b)) })
	} else {
		slices.Sort(ks)
	}
	return ks
}

// internedString returns an interned string.
func (m *machine) internedString(i int64) string {
	if i < 0 {
		return ""
	}
	return m.texts[i]
}

// copyInto makes dst hold what src holds, and counts the steps.
func (m *machine) copyInto(at place, dst, src object) {
	if dst == src {
		return
	}
	m.countSteps(at, int64(src.Len()))
	if s, ok := src.(*links); ok {
		if d, ok := dst.(*nodeQueue); ok {
			m.failOnError(at, d.Clear())
			m.failOnError(at, d.PushAll(s.list))
			return
		}
	}
	switch d := dst.(type) {
	case *array:
		d.cells = d.cells[:0]
		s := src.(*array)
		m.failOnError(at, d.reserveCells(int64(len(s.cells))))
		d.cells = append(d.cells, s.cells...)
		return
	case *table:
		m.failOnError(at, d.Clear())
		for k, v := range src.(*table).cells {
			m.failOnError(at, d.setCell(k, v))
		}
		return
	case *contain.ByServer:
		s := src.(*contain.ByServer)
		m.failOnError(at, d.Clear())
		for i := range s.Len() {
			m.failOnError(at, s.EachOf(i, d.Push))
		}
		return
	case *sortedQueue:
		if s, ok := src.(*sortedQueue); ok {
			m.failOnError(at, d.CopyFrom(s.Sorted))
			return
		}
	}
	m.failOnError(at, dst.Clear())
	m.failOnError(at, src.(interface {
		Each(f func(int64) error) error
	}).Each(dst.(contain.Sequence).Push))
}

// copyServerQueue copies a queue of an aoq.
func (m *machine) copyServerQueue(at place, v serverQueue) *links {
	l := &links{owned: true}
	m.failOnError(at, m.env.Memory(4*int64(v.Len())))
	m.failOnError(at, v.Each(l.Push))
	m.failOnError(at, m.env.Memory(-4*int64(v.Len())))
	return l
}
