package revisit

// Adaptive is the rule of Nutch, StormCrawler and others: the interval between
// visits shrinks after a change and grows after none. It needs no model, and
// settles where Grow and Shrink balance, at nearly the same chance of a change
// for every item: proportional visits by another name. Kept for comparison.
type Adaptive struct {
	Shrink float64 // share by which the interval shrinks; default 0.2
	Grow   float64 // share by which it grows; default 0.4
	Min    float64 // bounds of the interval; 0 is none
	Max    float64
}

// Next returns the interval after a visit, given the one before it.
func (a Adaptive) Next(interval float64, changed bool) float64 {
	shrink, grow := a.Shrink, a.Grow
	if shrink <= 0 || shrink >= 1 {
		shrink = .2
	}
	if grow <= 0 {
		grow = .4
	}
	if changed {
		interval *= 1 - shrink
	} else {
		interval *= 1 + grow
	}
	if a.Max > 0 {
		interval = min(interval, a.Max)
	}
	return max(interval, a.Min)
}
