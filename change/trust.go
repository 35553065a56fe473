package change

import "math"

// Trust is what is learned of a source of signals (a sitemap's dates, a feed, a
// sensor): how often it was right. The zero value knows nothing. Evidence fades
// as that of a History, by the caller's Fade.
type Trust struct {
	True   float64 `json:"t,omitempty"` // signals after which a visit found a change
	False  float64 `json:"f,omitempty"` // signals after which it found none
	Missed float64 `json:"m,omitempty"` // changes found without a signal
	Quiet  float64 `json:"q,omitempty"` // seconds watched, for the rate of false signals
}

// Signalled adds what a visit found that was made for a signal.
func (t *Trust) Signalled(changed bool) {
	if changed {
		t.True++
	} else {
		t.False++
	}
}

// Polled adds what a visit found that no signal asked for, so many seconds after
// the one before.
func (t *Trust) Polled(changed bool, seconds float64) {
	if changed {
		t.Missed++
	}
	if seconds > 0 {
		t.Quiet += seconds
	}
}

// believed is how many signals a source is believed to have given before the
// first, all but one right.
const believed = 4

// Precision is the probability that a signal means a change: what was seen,
// beside four signals of which three were right.
func (t Trust) Precision() float64 {
	return (t.True + believed - 1) / (t.True + t.False + believed)
}

// Recall is the probability that a change is signalled.
func (t Trust) Recall() float64 { return (t.True + 1) / (t.True + t.Missed + 2) }

// FalseRate is how many signals a second come without a change, over items
// watched for so long in all.
func (t Trust) FalseRate() float64 {
	if t.Quiet <= 0 {
		return 0
	}
	return t.False / t.Quiet
}

// Believe returns how much of the time until a planned visit a signal leaves:
// 0 for a source that is right, 1 for one that is wrong nearly always.
func (t Trust) Believe() float64 {
	p := t.Precision()
	switch {
	case p >= .5:
		return 0
	case p <= .05:
		return 1
	}
	return 1 - p/.5
}

// Fade lets evidence of so many seconds ago count less: half in HalfLife.
func (t *Trust) Fade(seconds float64) {
	if seconds <= 0 {
		return
	}
	f := math.Exp2(-seconds / HalfLife.Seconds())
	t.True *= f
	t.False *= f
	t.Missed *= f
	t.Quiet *= f
}

// Group gathers the visits of many items (of a host, of a class of pages) into
// the prior of those that are new: their mean rate, which is worth the more
// visits the more alike they are.
type Group struct {
	Visits  float64 `json:"n,omitempty"`
	Changes float64 `json:"c,omitempty"`
	Time    float64 `json:"t,omitempty"` // seconds
}

// Observe adds a visit of one of the items.
func (g *Group) Observe(seconds float64, changed bool) {
	if !(seconds > 0) || math.IsInf(seconds, 0) {
		return
	}
	// The last thousand visits or so tell.
	const window = 1000
	if g.Visits >= window {
		keep := 1 - 1/float64(window)
		g.Visits *= keep
		g.Changes *= keep
		g.Time *= keep
	}
	g.Visits++
	g.Time += seconds
	if changed {
		g.Changes++
	}
}

// Prior is what the group says of an item that was never visited; with few
// visits it is mostly base.
func (g *Group) Prior(base Prior) Prior {
	if base.Rate <= 0 {
		base = DefaultPrior
	}
	if g.Visits < 1 || g.Time <= 0 {
		return base
	}
	const worth = 10 // visits of the group that weigh as much as base
	est := Regular(g.Visits, min(g.Changes, g.Visits), g.Time/g.Visits)
	return Prior{Rate: (est*g.Visits + base.Rate*worth) / (g.Visits + worth), Weight: base.Weight}
}
