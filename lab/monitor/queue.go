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

// Downloaded reports whether a download has ended.
func (e *Event) Downloaded() bool { return e.What == download }

// queue holds what is under way: one event a robot, or the alerts and downloads
// in progress. It is a binary heap by time, and by the order of push at equal
// times, of small entries that say where the events are. Most events are
// followed by one push, so pop leaves a hole at the top for it.
type queue struct {
	heap   []entry
	events []Event
	free   []uint32 // slots of events
	pushes uint32
	hole   bool // the top was popped
}

type entry struct {
	at   float64
	seq  uint32 // number of the push, modulo 2^32
	slot uint32
}

func (a *entry) isBefore(b *entry) bool {
	return a.at < b.at || (a.at == b.at && int32(a.seq-b.seq) < 0)
}

// firstTime returns the time of the next event, +Inf if there is none.
func (q *queue) firstTime() float64 {
	if q.hole {
		q.fillHole()
	}
	if len(q.heap) == 0 {
		return math.Inf(1)
	}
	return q.heap[0].at
}

// fillHole fills the hole with the last entry.
func (q *queue) fillHole() {
	q.hole = false
	last := len(q.heap) - 1
	x := q.heap[last]
	q.heap = q.heap[:last]
	if last > 0 {
		q.siftEntryDown(x)
	}
}

func (q *queue) pushEvent(e Event) {
	var slot uint32
	if n := len(q.free); n > 0 {
		slot = q.free[n-1]
		q.free = q.free[:n-1]
		q.events[slot] = e
	} else {
		slot = uint32(len(q.events))
		q.events = append(q.events, e)
	}
	x := entry{e.Time, q.pushes, slot}
	q.pushes++
	if q.hole {
		q.hole = false
		q.siftEntryDown(x)
		return
	}
	q.heap = append(q.heap, x)
	h, i := q.heap, len(q.heap)-1
	for i > 0 {
		up := (i - 1) / 2
		if h[up].isBefore(&x) {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = x
}

// popEvent takes the first event, which there is and of which first has told.
func (q *queue) popEvent() Event {
	slot := q.heap[0].slot
	q.hole = true
	q.free = append(q.free, slot)
	return q.events[slot]
}

// topEvent is the first event, which stays where it is.
func (q *queue) topEvent() *Event { return &q.events[q.heap[0].slot] }

// rescheduleTop is pop and push of the first event with another time and page.
func (q *queue) rescheduleTop(at float64, page uint32) {
	x := entry{at, q.pushes, q.heap[0].slot}
	e := &q.events[x.slot]
	e.Time, e.Page = at, page
	q.pushes++
	if len(q.heap) == 1 {
		q.heap[0] = x
		return
	}
	q.siftEntryDown(x)
}

// siftEntryDown puts an entry in at the top.
func (q *queue) siftEntryDown(x entry) {
	h, i := q.heap, 0
	for {
		c := 2*i + 1
		if c >= len(h) {
			break
		}
		if c+1 < len(h) && h[c+1].isBefore(&h[c]) {
			c++
		}
		if x.isBefore(&h[c]) {
			break
		}
		h[i] = h[c]
		i = c
	}
	h[i] = x
}
