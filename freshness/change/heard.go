package change

import "math"

// Heard is what was heard of an item since its last visit by a source of
// signals, and what is known of that source.
type Heard struct {
	Signals   float64 // how many
	Recall    float64 // share of changes that it tells of
	Precision float64 // share of its signals that tell of a change
}

// Belief is what is believed of the rate tau after the visit of which b was
// believed: signals count changes without any visit, and their silence counts as
// well as a visit's that saw no change.
func (h Heard) Belief(b Belief, tau float64) Belief {
	if !(h.Recall > 0) {
		return b
	}
	return b.Counted(h.Signals*h.Precision, max(0, tau)*h.Recall)
}

// afterVisit adds a visit tau after the last. Where nothing changed, all signals
// were false. A change that was seen is one of those signalled, or one of the
// (1 - Recall) D tau that were not: the signals count for as many as are
// expected of them, given that there was one.
func (h Heard) afterVisit(b Belief, tau float64, changed bool) Belief {
	switch {
	case !changed:
		return b.Counted(0, tau)
	case !(h.Recall > 0):
		return b.Changed(tau)
	case !(h.Signals > 0):
		b = b.Counted(0, tau*h.Recall)
		return b.Changed(tau * (1 - h.Recall))
	}
	all := h.Signals * h.Precision
	silent := b.Counted(all, tau*h.Recall)
	none := math.Pow(1-h.Precision, h.Signals) * silent.Fresh(tau*(1-h.Recall))
	return b.Counted(all/max(1-none, 1e-9), tau*h.Recall)
}
