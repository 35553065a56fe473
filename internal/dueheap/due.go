// Package dueheap keeps numbered things in the order of time in which they are due:
// a heap of four children a node, half as deep as a binary one, whose children
// lie in one cache line. Nothing is allocated but the heap itself.
package dueheap

// Entry is one thing and when it is due, in any unit. Mark is the caller's: it
// tells entries of one thing apart, in space that would lie idle.
type Entry struct {
	At   float64
	ID   uint32
	Mark uint32
}

// Heap has the earliest entry at index 0. The zero Heap is empty. Entries of
// equal times come in an order that depends on nothing but the calls.
type Heap []Entry

// Push adds an entry.
func (h *Heap) Push(x Entry) {
	*h = append(*h, x)
	e := *h
	i := len(e) - 1
	for i > 0 {
		up := (i - 1) / 4
		if e[up].At <= x.At {
			break
		}
		e[i] = e[up]
		i = up
	}
	e[i] = x
}

// Pop removes and returns the earliest entry of a heap that is not empty.
func (h *Heap) Pop() Entry {
	e := *h
	top, last := e[0], e[len(e)-1]
	if *h = e[:len(e)-1]; len(*h) > 0 {
		h.siftFrom(0, last)
	}
	return top
}

// Replace puts x in place of the earliest entry of a heap that is not empty.
func (h Heap) Replace(x Entry) { h.siftFrom(0, x) }

// Order makes a heap of entries that stand in any order.
func (h Heap) Order() {
	for i := (len(h) - 2) / 4; i >= 0 && len(h) > 1; i-- {
		h.siftFrom(i, h[i])
	}
}

// siftFrom puts x at i or below.
func (h Heap) siftFrom(i int, x Entry) {
	for {
		first := 4*i + 1
		if first >= len(h) {
			break
		}
		least := first
		for j := first + 1; j < min(first+4, len(h)); j++ {
			if h[j].At < h[least].At {
				least = j
			}
		}
		if h[least].At >= x.At {
			break
		}
		h[i] = h[least]
		i = least
	}
	h[i] = x
}
