package store

import "time"

// What engines go by when they see that the clock was set back: what was planned
// while it was ahead would come late by as much.
const (
	// ClockAhead is by how much a visit may lie in the future before the clock counts
	// as having been set back since.
	ClockAhead = time.Minute
	// LongestRetry is longer than any wait for a page that was not answered, or not
	// allowed by robots.txt, whose record does not tell when that was.
	LongestRetry = 48 * time.Hour
	// DefaultLease is after what time without a sign of life others take over the hosts
	// of a process.
	DefaultLease = 30 * time.Second
	// LongestRest is longer than any server may ask for. A host that would rest
	// longer rests for SetBackRest.
	LongestRest = 25 * time.Hour
	SetBackRest = time.Minute
)

// PlanAnew moves the next visit of a page that was planned while the clock was
// ahead, and reports whether there was something to mend: a page whose last visit
// lies in the future counts as visited now and is due after the same interval; one
// that only waits to be tried again is due within LongestRetry.
func PlanAnew(p *Page, now time.Time) bool {
	if p.Slot.Due.IsZero() {
		return false
	}
	last := p.History.Last
	if last.After(now.Add(ClockAhead)) {
		p.Slot.Due = now.Add(max(0, p.Slot.Due.Sub(last)))
		p.History.Last = now
		if p.History.Changed.After(now) {
			p.History.Changed = now
		}
		return true
	}
	if again := now.Add(LongestRetry); (p.State == Failed || p.State == Blocked) && p.Slot.Due.After(again) && p.Slot.Due.After(last.Add(LongestRetry)) {
		p.Slot.Due = again
		return true
	}
	return false
}
