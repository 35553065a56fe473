package crawl

import (
	"math"
	"time"

	"github.com/freshet/freshet/change"
	"github.com/freshet/freshet/revisit"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// Planner says when pages are visited again. Its methods are called from many
// goroutines.
type Planner interface {
	// Visited is called for each visit that found a page or a redirect. It returns
	// after what time the page is visited again at the latest.
	Visited(v *Visited) time.Duration
	// Signalled is called for each signal of a known page, and returns when the
	// page is due: zero for no sooner than it is anyway.
	Signalled(s *Signalled) time.Time
	// Unplanned is called for each visit that found neither: when the page is tried
	// again is up to the robot.
	Unplanned(u weburl.URL)
}

// Visited is what a Planner is told of a visit.
type Visited struct {
	Page    *store.Page // its record after the visit
	URL     weburl.URL
	Since   time.Duration // since the visit before; 0 for the first
	Changed bool          // it is not what it was then
	Prior   change.Prior  // what the host's other pages say of one not known well
	Signals revisit.Noisy // what is known of signals of the host's changes
	Delay   time.Duration // between visits of the host
}

// Belief is what is believed of the page's change rate, in changes a second.
func (v *Visited) Belief() change.Belief { return v.Page.History.Belief(v.Prior) }

// Signalled is what a Planner is told of a signal.
type Signalled struct {
	Page     *store.Page
	URL      weburl.URL
	Belief   change.Belief // of its change rate, after this signal
	Evidence float64       // what this signal says (revisit.Noisy)
	Total    float64       // what all signals since the last visit say
	Signals  revisit.Noisy // what is known of signals of the host's changes
}

// HalfChange visits a page again when it has changed with probability one half,
// by its history and by signals. One of a source that is right more often than
// not is enough by itself.
type HalfChange struct{}

// Visited implements Planner.
func (HalfChange) Visited(v *Visited) time.Duration {
	return Seconds(v.Signals.FreshFor(v.Belief().Rate(), .5, 0))
}

// Signalled implements Planner.
func (HalfChange) Signalled(s *Signalled) time.Time {
	return s.Page.History.Last.Add(Seconds(s.Signals.FreshFor(s.Belief.Rate(), .5, s.Total)))
}

// Unplanned implements Planner.
func (HalfChange) Unplanned(weburl.URL) {}

// Adaptive shrinks the interval after a change and lets it grow after none.
type Adaptive struct{ HalfChange }

// Visited implements Planner.
func (Adaptive) Visited(v *Visited) time.Duration {
	if v.Since <= 0 {
		return HalfChange{}.Visited(v)
	}
	return Seconds(revisit.Adaptive{}.Next(v.Since.Seconds(), v.Changed))
}

// Seconds converts a number of seconds to a duration, the longest there is for
// more.
func Seconds(s float64) time.Duration {
	if s >= math.MaxInt64/float64(time.Second) {
		return math.MaxInt64
	}
	return time.Duration(s * float64(time.Second))
}
