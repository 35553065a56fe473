package monitor

// turn is when a page is next, in a time that only orders turns.
type turn struct {
	at   float64
	page uint32
}

// turns is a heap of four children a node, first turn on top.
type turns struct {
	heap []turn
	now  float64 // of the turn taken last
}

func (t *turns) any() bool { return len(t.heap) > 0 }

func (t *turns) push(x turn) {
	t.heap = append(t.heap, x)
	h := t.heap
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / 4
		if h[up].at <= x.at {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = x
}

func (t *turns) pop() turn {
	h := t.heap
	top, x := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	t.heap, t.now = h, top.at
	i := 0
	for {
		first := 4*i + 1
		if first >= len(h) {
			break
		}
		best := first
		for j := first + 1; j < min(first+4, len(h)); j++ {
			if h[j].at < h[best].at {
				best = j
			}
		}
		if h[best].at >= x.at {
			break
		}
		h[i] = h[best]
		i = best
	}
	if len(h) > 0 {
		h[i] = x
	}
	return top
}
