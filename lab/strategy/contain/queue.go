package contain

import (
	"fmt"
	"os"
	"unsafe"
)

// Word is how an element is stored: nodes take 32 bits, everything else 64.
type Word interface{ ~uint32 | ~uint64 }

// Sequence is a container with one end to push to and one to pop from.
type Sequence interface {
	Len() int
	Push(v int64) error
	// Pop and Top want an element to be there.
	Pop() (int64, error)
	Top() (int64, error)
	Clear() error
}

// bytesOf shows words as the bytes they are in memory.
func bytesOf[T Word](v []T) []byte {
	var t T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(t)))
}

// block is a file with words.
type block struct {
	path string
	n    int
}

// blocks reads and writes blocks of words.
type blocks[T Word] struct {
	env  *Env
	size int // words a block
}

func newBlocks[T Word](env *Env) blocks[T] {
	var t T
	return blocks[T]{env, max(1, env.blockBytes/int(unsafe.Sizeof(t)))}
}

// writeBlock puts words into a new file.
func (b blocks[T]) writeBlock(v []T) (block, error) {
	p := bytesOf(v)
	if err := b.env.Disk(int64(len(p))); err != nil {
		return block{}, err
	}
	path := b.env.newFileName("block")
	if err := os.WriteFile(path, p, 0o600); err != nil {
		return block{}, fmt.Errorf("spill a container: %w", err)
	}
	return block{path, len(v)}, nil
}

// readBlock reads a block into v and removes the file.
func (b blocks[T]) readBlock(bl block, v []T) ([]T, error) {
	v = v[:bl.n]
	f, err := os.Open(bl.path)
	if err != nil {
		return nil, err
	}
	_, err = f.ReadAt(bytesOf(v), 0)
	_ = f.Close()
	if err != nil {
		return nil, fmt.Errorf("read a spilled container: %w", err)
	}
	return v, b.dropBlock(bl)
}

func (b blocks[T]) dropBlock(bl block) error {
	var t T
	return b.env.removeTempFile(bl.path, int64(bl.n)*int64(unsafe.Sizeof(t)))
}

// growBuffer makes room in v: doubled, a block at most.
func (b blocks[T]) growBuffer(v []T, most int) ([]T, error) {
	var t T
	n := min(max(16, 2*cap(v)), most)
	if err := b.env.Memory(int64(n-cap(v)) * int64(unsafe.Sizeof(t))); err != nil {
		return nil, err
	}
	bigger := make([]T, len(v), n)
	copy(bigger, v)
	return bigger, nil
}

// releaseBuffer gives the memory of v back.
func (b blocks[T]) releaseBuffer(v []T) {
	var t T
	_ = b.env.Memory(-int64(cap(v)) * int64(unsafe.Sizeof(t)))
}

// Queue is first in, first out. Two blocks are in memory, the one that is
// popped from and the one that is pushed to; those between are files.
type Queue[T Word] struct {
	blocks[T]
	head, tail []T
	at         int // of head, the next to be popped
	files      []block
	n          int
}

// NewQueue returns an empty queue.
func NewQueue[T Word](env *Env) *Queue[T] { return &Queue[T]{blocks: newBlocks[T](env)} }

// Len implements Sequence.
func (q *Queue[T]) Len() int { return q.n }

// Push implements Sequence.
func (q *Queue[T]) Push(v int64) error {
	if len(q.tail) == cap(q.tail) {
		if err := q.ensureTailRoom(); err != nil {
			return err
		}
	}
	q.tail = append(q.tail, T(v))
	q.n++
	return nil
}

// ensureTailRoom makes room in the tail.
func (q *Queue[T]) ensureTailRoom() (err error) {
	switch {
	case cap(q.tail) < q.size:
		q.tail, err = q.growBuffer(q.tail, q.size)
	case q.at == len(q.head) && len(q.files) == 0:
		q.head, q.tail, q.at = q.tail, q.head[:0], 0
		if cap(q.tail) == 0 {
			q.tail, err = q.growBuffer(q.tail, q.size)
		}
	default:
		var b block
		if b, err = q.writeBlock(q.tail); err == nil {
			q.files, q.tail = append(q.files, b), q.tail[:0]
		}
	}
	return err
}

// refillHead makes the head hold the next element.
func (q *Queue[T]) refillHead() (err error) {
	if len(q.files) == 0 {
		q.head, q.tail, q.at = q.tail, q.head[:0], 0
		return nil
	}
	for cap(q.head) < q.files[0].n {
		if q.head, err = q.growBuffer(q.head[:0], q.size); err != nil {
			return err
		}
	}
	if q.head, err = q.readBlock(q.files[0], q.head); err != nil {
		return err
	}
	q.files, q.at = q.files[1:], 0
	return nil
}

// Pop implements Sequence.
func (q *Queue[T]) Pop() (int64, error) {
	if q.at == len(q.head) {
		if err := q.refillHead(); err != nil {
			return 0, err
		}
	}
	v := q.head[q.at]
	q.at++
	q.n--
	return int64(v), nil
}

// Top implements Sequence.
func (q *Queue[T]) Top() (int64, error) {
	if q.at == len(q.head) {
		if err := q.refillHead(); err != nil {
			return 0, err
		}
	}
	return int64(q.head[q.at]), nil
}

// Clear implements Sequence. Small buffers are kept.
func (q *Queue[T]) Clear() error {
	for _, b := range q.files {
		if err := q.dropBlock(b); err != nil {
			return err
		}
	}
	q.files, q.head, q.tail, q.at, q.n = nil, q.head[:0], q.tail[:0], 0, 0
	return nil
}

// Free gives back what the queue holds; it is empty then.
func (q *Queue[T]) Free() error {
	err := q.Clear()
	q.releaseBuffer(q.head)
	q.releaseBuffer(q.tail)
	q.head, q.tail = nil, nil
	return err
}

// PushAll pushes several words.
func (q *Queue[T]) PushAll(v []T) error {
	for len(v) > 0 {
		if len(q.tail) == cap(q.tail) {
			if err := q.ensureTailRoom(); err != nil {
				return err
			}
		}
		n := min(len(v), cap(q.tail)-len(q.tail))
		q.tail = append(q.tail, v[:n]...)
		q.n += n
		v = v[n:]
	}
	return nil
}

// Each calls f with every element in order, without removing any.
func (q *Queue[T]) Each(f func(int64) error) error {
	for _, v := range q.head[q.at:] {
		if err := f(int64(v)); err != nil {
			return err
		}
	}
	for _, b := range q.files {
		if err := q.forEachWord(b, f); err != nil {
			return err
		}
	}
	for _, v := range q.tail {
		if err := f(int64(v)); err != nil {
			return err
		}
	}
	return nil
}

// forEachWord calls f with the words of a block, which stays.
func (b blocks[T]) forEachWord(bl block, f func(int64) error) error {
	p, err := os.ReadFile(bl.path)
	if err != nil {
		return err
	}
	for _, v := range unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(p))), bl.n) {
		if err := f(int64(v)); err != nil {
			return err
		}
	}
	return nil
}
