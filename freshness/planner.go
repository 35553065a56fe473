// Package freshness decides when a page is visited next.
//
// A page changes as a Poisson process whose rate is estimated from its own
// visits, from the other pages of its host, and from signals of changes
// (package freshness/change). A policy turns rates, importance and the budget
// into visits (package freshness/revisit, which the simulator of the lab runs as
// well). This package connects them with a running robot:
//
//   - Planner is what the robot asks: after each visit, when the page is due
//     again; for each signal, whether that moves its time.
//   - HalfChange and Adaptive answer by the page alone. Scheduler divides a
//     budget among all pages: it keeps them in a revisit.Schedule and makes those
//     due in the store whose time has come, a few ahead of the robot.
//   - Signals remembers which source reported which page until its visit, and
//     what sources were worth.
//   - Estimator goes through all pages now and then: how fresh they are, what the
//     prices of a plan must be, what more freshness would cost.
//   - Importance weighs pages: by source, by links, by opened results.
package freshness

import (
	"math"
	"time"

	"github.com/freshet/freshet/freshness/change"
	"github.com/freshet/freshet/freshness/revisit"
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

// Visited describes a visit to a Planner.
type Visited struct {
	Page    *store.Page // its record after the visit
	URL     weburl.URL
	Since   time.Duration // since the visit before; 0 for the first
	Changed bool          // the page differs from the visit before
	Prior   change.Prior  // from the host's other pages, for a page that is not known well
	Signals revisit.Noisy // how good the signals of the host's changes are
	Delay   time.Duration // between visits of the host
}

// Belief returns the posterior of the page's change rate, in changes a second.
func (v *Visited) Belief() change.Belief { return v.Page.History.Belief(v.Prior) }

// Signalled describes a signal to a Planner.
type Signalled struct {
	Page     *store.Page
	URL      weburl.URL
	Belief   change.Belief // of the change rate, after this signal
	Evidence float64       // of this signal (revisit.Noisy)
	Total    float64       // of all signals since the last visit
	Signals  revisit.Noisy // how good the signals of the host's changes are
}

// HalfChange visits a page again when it has changed with probability one half,
// by its history and by signals. One signal of a source that is right more often
// than not is enough by itself.
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

// ByHost lets the pages of some hosts be planned by other planners.
type ByHost struct {
	Planner                           // of all other hosts
	Of      func(host string) Planner // nil is Planner
}

func (b ByHost) plannerOf(u weburl.URL) Planner {
	if p := b.Of(u.Host()); p != nil {
		return p
	}
	return b.Planner
}

// Visited implements Planner.
func (b ByHost) Visited(v *Visited) time.Duration { return b.plannerOf(v.URL).Visited(v) }

// Signalled implements Planner.
func (b ByHost) Signalled(s *Signalled) time.Time { return b.plannerOf(s.URL).Signalled(s) }

// Unplanned implements Planner.
func (b ByHost) Unplanned(u weburl.URL) { b.plannerOf(u).Unplanned(u) }

// Seconds converts a number of seconds to a duration, the longest there is for
// more.
func Seconds(s float64) time.Duration {
	if s >= math.MaxInt64/float64(time.Second) {
		return math.MaxInt64
	}
	return time.Duration(s * float64(time.Second))
}
