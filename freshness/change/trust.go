package change

import (
	"math"
	"time"
)

// Trust is what is learned of a source of signals (a sitemap's dates, a feed, a
// sensor): how often it was right. The zero value knows nothing. Evidence counts
// half after HalfLife.
type Trust struct {
	True    float64   `json:"t,omitempty"` // signals that told of a change
	False   float64   `json:"f,omitempty"` // ... of none
	Missed  float64   `json:"m,omitempty"` // changes between visits without signal
	Silent  float64   `json:"s,omitempty"` // signals expected there, by what is believed of the items
	Watched float64   `json:"q,omitempty"` // seconds between visits, for the rate of false signals
	At      time.Time `json:"a,omitzero"`  // up to when old evidence has faded
}

// Visited adds what a visit found of an item of which the source had given so
// many signals since the last visit, so many seconds ago; rate is what earlier
// visits saw of the item's changes (History.Own).
//
// A change that was found may be one that signals told of or one that they
// missed: so many signals are taken for true, and so many changes for missed, as
// are expected, given that there was one (EM on line; Cappé, Moulines 2009).
// Visits come sooner after a signal, so that visits with and without one cannot be
// compared: what was missed is counted where there was no signal, beside the true
// signals that the items give in so much time.
func (t *Trust) Visited(signals float64, changed bool, seconds, rate float64, now time.Time) {
	t.addWatchTime(seconds, now)
	x := rate * seconds
	if !(x >= 0) || math.IsInf(x, 0) {
		x = 0
	}
	recall := t.Recall()
	missed := x * (1 - recall)
	switch {
	case signals <= 0:
		t.Silent += x * recall
		if changed {
			t.Missed += expectedChanges(missed)
		}
	case changed:
		p := t.Precision()
		right := min(signals, signals*p/-math.Expm1(signals*math.Log1p(-p)-missed))
		t.True, t.False = t.True+right, t.False+signals-right
	default:
		t.False += signals
	}
}

// expectedChanges is how many changes there were where there was any, x being the mean
// number: x/(1 - e^-x).
func expectedChanges(x float64) float64 {
	if x < 1e-6 {
		return 1 + x/2
	}
	return -x / math.Expm1(-x)
}

// addWatchTime adds time of an item under watch. Old evidence fades an hour's worth
// at a time.
func (t *Trust) addWatchTime(seconds float64, now time.Time) {
	if past := now.Sub(t.At); t.At.IsZero() || past < 0 {
		t.At = now
	} else if past >= time.Hour {
		f := math.Exp2(-past.Seconds() / HalfLife.Seconds())
		for _, x := range []*float64{&t.True, &t.False, &t.Missed, &t.Silent, &t.Watched} {
			*x *= f
		}
		t.At = now
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

// Recall is the probability that a change is signalled: one half before anything
// was seen.
func (t Trust) Recall() float64 {
	return (t.Silent + .5) / (t.Silent + t.Missed + 1)
}

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
// visits it is mostly base. The rates of its items are unlike: they are taken to
// be Gamma distributed with the base's shape a, so that after an interval I a
// share (T/(T+I))^a is unchanged, from which comes T and the mean a/T.
func (g *Group) Prior(base Prior) Prior {
	b := base.asBelief()
	base = Prior{Rate: b.Rate(), Shape: b.Shape}
	if g.Visits < 1 || g.Time <= 0 {
		return base
	}
	const worth = 10 // visits of the group that weigh as much as base
	share := (g.Visits - min(g.Changes, g.Visits) + .5) / (g.Visits + .5)
	rate := b.Shape * math.Expm1(-math.Log(share)/b.Shape) * g.Visits / g.Time
	return Prior{Rate: (rate*g.Visits + base.Rate*worth) / (g.Visits + worth), Shape: base.Shape}
}
