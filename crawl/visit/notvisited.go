package visit

import (
	"time"

	"github.com/freshet/freshet/crawl/politeness"
	"github.com/freshet/freshet/crawl/trap"
	"github.com/freshet/freshet/store"
)

// WaitsForRobots reports whether a page waits until its robots.txt can be read.
func WaitsForRobots(p *store.Page) bool { return p.Reason == store.ReasonRobotsUnavailable }

// notVisited returns the outcome of a page that was not asked for.
func notVisited(before *store.Page, reason store.Reason, text string) Outcome {
	o := Outcome{Kind: NotVisited, Page: *before, Skipped: reason}
	o.Page.Reason, o.Page.Error = reason, text
	return o
}

// Exclude takes a page out of the queue for good.
func (r *Rules) Exclude(before *store.Page, reason store.Reason, text string, now time.Time) Outcome {
	o := notVisited(before, reason, text)
	o.Page.State, o.Page.Slot, o.Changed = store.Excluded, store.Slot{}, before.Held()
	return r.complete(o, now)
}

// SetAside excludes a page that looks like a copy of another, for trap.MirrorAge.
func (r *Rules) SetAside(before *store.Page, reason store.Reason, text string, now time.Time) Outcome {
	o := notVisited(before, reason, text)
	o.Page.State, o.Page.Slot, o.Changed = store.Excluded, store.Slot{Due: now.Add(trap.MirrorAge)}, before.Held()
	return r.complete(o, now)
}

// RobotsForbid blocks a page that robots.txt forbids, which is asked again in a day.
func (r *Rules) RobotsForbid(before *store.Page, now time.Time) Outcome {
	o := notVisited(before, store.ReasonRobotsRefused, "robots.txt forbids it")
	o.Page.State, o.Page.Slot, o.Changed = store.Blocked, store.Slot{Due: now.Add(politeness.RobotsAge)}, before.Held()
	return r.complete(o, now)
}

// RobotsUnavailable puts a page off until robots.txt is asked for again. Its content stays.
func (r *Rules) RobotsUnavailable(before *store.Page, askedAgain, now time.Time) Outcome {
	o := notVisited(before, store.ReasonRobotsUnavailable, "robots.txt unavailable")
	p := &o.Page
	if p.State == store.Queued {
		p.State = store.Failed
	}
	p.Failures++
	p.Slot = store.Slot{Due: askedAgain}
	if more := p.Failures - politeness.MaxRetries; more > 0 {
		p.Slot.Due = askedAgain.Add(min(politeness.RobotsRetry<<min(more, 7), politeness.RobotsAge))
	}
	return r.complete(o, now)
}

// SourceRemoved leaves a page alone whose source was removed; with keep its content stays. The
// page stays in the queue, so that it is found there when the source is added again.
func (r *Rules) SourceRemoved(before *store.Page, keep bool, now time.Time) Outcome {
	o := Outcome{Kind: NotVisited, Page: *before, Skipped: store.ReasonSourceRemoved}
	p := &o.Page
	if !keep || !before.Held() {
		p.State, p.Reason, p.Error = store.Excluded, store.ReasonSourceRemoved, "source removed"
	}
	p.Slot, o.Changed = store.Slot{Due: now.Add(r.MaxRevisit)}, before.Held() && !keep
	return r.complete(o, now)
}
