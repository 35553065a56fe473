package change

import (
	"math"
	"time"
)

// Trust is what is learned of a source of signals (a sitemap's dates, a feed, a
// sensor): how often it was right. The zero value knows nothing. Evidence counts
// half after HalfLife.
type Trust struct {
	True    float64   `json:"t,omitempty"` // visits after a signal that found a change
	False   float64   `json:"f,omitempty"` // ... that found none
	Missed  float64   `json:"m,omitempty"` // changes found without a signal
	Watched float64   `json:"q,omitempty"` // seconds between visits, for the rate of false signals
	At      time.Time `json:"a,omitzero"`  // up to when old evidence has faded
}

// Signalled adds what a visit found that was made after a signal, so many
// seconds after the one before.
func (t *Trust) Signalled(changed bool, seconds float64, now time.Time) {
	t.watched(seconds, now)
	if changed {
		t.True++
	} else {
		t.False++
	}
}

// Polled adds what a visit found of whose page there was no signal, so many
// seconds after the one before.
func (t *Trust) Polled(changed bool, seconds float64, now time.Time) {
	t.watched(seconds, now)
	if changed {
		t.Missed++
	}
}

// watched adds time of an item under watch. Old evidence fades an hour's worth
// at a time.
func (t *Trust) watched(seconds float64, now time.Time) {
	if past := now.Sub(t.At); t.At.IsZero() || past < 0 {
		t.At = now
	} else if past >= time.Hour {
		f := math.Exp2(-past.Seconds() / HalfLife.Seconds())
		t.True, t.False, t.Missed, t.Watched, t.At = t.True*f, t.False*f, t.Missed*f, t.Watched*f, now
	}
	if seconds > 0 && !math.IsInf(seconds, 0) {
		t.Watched += seconds
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

// FalseRate is how many signals a second come to an item without a change: what
// Precision leaves of all signals; 0 before the first.
func (t Trust) FalseRate() float64 {
	if t.Watched <= 0 {
		return 0
	}
	return (1 - t.Precision()) * (t.True + t.False) / t.Watched
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

// Add adds what another group gathered.
func (g *Group) Add(o Group) {
	g.Visits += o.Visits
	g.Changes += o.Changes
	g.Time += o.Time
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
