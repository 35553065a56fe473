package monitor

import "math"

// What says what has ended. Strategies number theirs from Own.
type What uint8

const (
	download What = iota
	// Own is the first number that a strategy may use.
	Own
)

// Event is something that a strategy has under way and when it ends.
type Event struct {
	Time  float64
	Since float64 // download by DownloadKnown: of the change that it makes known
	Page  uint32
	Agent uint32
	Size  uint32 // download: bytes
	What  What
}

// Downloaded tells whether a download has ended.
func (e *Event) Downloaded() bool { return e.What == download }

// queue is a binary heap of events by time. It holds one event a robot, or
// those of the alerts and downloads in progress: few.
type queue struct{ heap []Event }

// first returns the time of the next event, +Inf if there is none.
func (q *queue) first() float64 {
	if len(q.heap) == 0 {
		return math.Inf(1)
	}
	return q.heap[0].Time
}

func (q *queue) push(e Event) {
	q.heap = append(q.heap, e)
	h := q.heap
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / 2
		if h[up].Time <= e.Time {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = e
}

func (q *queue) pop() Event {
	h := q.heap
	top, x := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	q.heap = h
	i := 0
	for {
		c := 2*i + 1
		if c >= len(h) {
			break
		}
		if c+1 < len(h) && h[c+1].Time < h[c].Time {
			c++
		}
		if h[c].Time >= x.Time {
			break
		}
		h[i] = h[c]
		i = c
	}
	if len(h) > 0 {
		h[i] = x
	}
	return top
}
