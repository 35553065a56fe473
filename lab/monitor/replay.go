package monitor

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/freshet/freshet/lab/field"
)

// Fetch is a visit that a robot outside the simulator made in a field that was
// served to it. Times are in units.
type Fetch struct {
	Begin float64
	Known float64 // when the state that it learned was the present one
	End   float64 // when the robot had it
	Page  uint32
	Agent uint32
	Bytes int64

	Asked bool // it was a probe, or the answer to an alert
	Got   bool // it brought the page
	Gone  bool // or an error instead
}

// Replay returns the way of watching that was seen: a run of it measures what a
// real robot did by the very meter of the simulator. With robots > 0 cycles are
// those of so many robots with shares as Shares says.
func Replay(robots int, fetches []Fetch) Variant {
	return Variant{text: "replay", make: func(f field.Field) (Strategy, error) {
		r := &replay{fetches: slices.Clone(fetches), shares: Shares(f.Pages(), robots)}
		slices.SortStableFunc(r.fetches, func(a, b Fetch) int { return cmp.Compare(a.Begin, b.Begin) })
		for i, v := range r.fetches {
			if int(v.Page) >= f.Pages() || !(v.Begin >= 0 && v.Begin <= v.Known && v.Known <= v.End) {
				return nil, fmt.Errorf("fetch %d of page %d at %g, %g, %g", i, v.Page, v.Begin, v.Known, v.End)
			}
		}
		return r, nil
	}}
}

// Shares returns the first resource of each of k robots' shares, and the end.
func Shares(pages, k int) []uint32 {
	out := make([]uint32, k+1)
	for i := range out {
		out[i] = uint32(i * pages / max(1, k))
	}
	return out
}

// replay repeats fetches.
type replay struct {
	fetches []Fetch
	next    int
	shares  []uint32
	visits  []int64
}

// What a replay has under way; the agent of an event is the number of the fetch.
const (
	began = Own + iota
	learned
	ended
)

// Start begins with the first fetch.
func (r *replay) Start(s *Sim) {
	r.visits = make([]int64, len(r.shares)-1)
	r.scheduleNextFetch(s)
}

func (r *replay) scheduleNextFetch(s *Sim) {
	if r.next < len(r.fetches) {
		v := &r.fetches[r.next]
		s.After(v.Begin-s.now, began, uint32(r.next), v.Page)
		r.next++
	}
}

// Done goes on with a fetch.
func (r *replay) Done(s *Sim, e Event) {
	v := &r.fetches[e.Agent]
	switch e.What {
	case began:
		if v.Asked {
			s.meter.probes++
		}
		if v.Got {
			s.meter.beginDownload()
		}
		s.After(v.Known-s.now, learned, e.Agent, e.Page)
		r.scheduleNextFetch(s)
	case learned:
		since := float64(nothing)
		switch stale := s.Stale(e.Page); {
		case v.Gone && (stale || !v.Asked):
			s.meter.downloads++
			fallthrough
		case v.Got:
			if stale {
				since = s.clearStale(e.Page)
			}
		}
		s.queue.pushEvent(Event{Time: max(s.now, v.End), What: ended, Agent: e.Agent, Page: e.Page, Since: since})
	case ended:
		if v.Got {
			s.meter.endDownload(v.Bytes)
		}
		s.recordDetection(e.Page, e.Since)
		if int(v.Agent) < len(r.visits) {
			r.visits[v.Agent]++
		}
	}
}

// Cycles returns how often each robot went through its share.
func (r *replay) Cycles() []float64 {
	out := make([]float64, len(r.visits))
	for i, n := range r.visits {
		out[i] = float64(n) / float64(r.shares[i+1]-r.shares[i])
	}
	return out
}
