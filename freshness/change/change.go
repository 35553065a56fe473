// Package change estimates how often things change from visits that see only
// whether they did since the last visit.
//
// A page that changes as a Poisson process of rate D is seen changed after an
// interval I with probability 1 - e^{-D I}: two changes between visits look
// like one, so changes divided by time is biased low (Cho, Garcia-Molina,
// Estimating frequency of change, 2003). Regular, MLE and Dated correct that;
// History keeps in 40 bytes what a live robot believes of a rate (Belief), with
// old evidence fading by half in a month.
package change

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"
)

// Naive is changes divided by time, for comparison only. interval is the time
// between visits; the unit of the result is its reciprocal.
func Naive(visits, changed int, interval float64) float64 {
	return float64(changed) / (float64(visits) * interval)
}

// Regular is the bias-reduced estimator for visits at a regular interval:
// -ln((X + 0.5) / (n + 0.5)) / I with X visits of n that saw no change.
func Regular(visits, changed float64, interval float64) float64 {
	return -math.Log((visits-changed+.5)/(visits+.5)) / interval
}

// Visit is one visit: the time since the visit before, and what it saw.
type Visit struct {
	Interval float64 // > 0
	Changed  bool
}

// ErrNoVisits is the error of an estimate from nothing.
var ErrNoVisits = errors.New("no visit with an interval")

// MLE is the maximum-likelihood rate for irregular visits: the root of
//
//	sum over changed of tau/(e^{D tau} - 1) = sum over unchanged of tau,
//
// found by Newton's method inside a bracket. It is 0 where nothing changed and
// +Inf where everything did; MLE(0.5 added) is what Regular amounts to.
func MLE(visits []Visit) (float64, error) {
	var unchanged, shortest float64
	n, changed := 0, 0
	for _, v := range visits {
		if !(v.Interval > 0) || math.IsInf(v.Interval, 0) {
			continue
		}
		n++
		if !v.Changed {
			unchanged += v.Interval
			continue
		}
		if changed++; shortest == 0 || v.Interval < shortest {
			shortest = v.Interval
		}
	}
	switch {
	case n == 0:
		return 0, ErrNoVisits
	case changed == 0:
		return 0, nil
	case unchanged == 0:
		return math.Inf(1), nil
	}
	// The left side falls with D and is below changed/D, so the root is too.
	low, high := 0.0, float64(changed)/unchanged
	d := high / 2
	for range 200 {
		f, slope := -unchanged, 0.0
		for _, v := range visits {
			if v.Changed && v.Interval > 0 && !math.IsInf(v.Interval, 0) {
				e := math.Expm1(d * v.Interval)
				f += v.Interval / e
				slope -= v.Interval * v.Interval * (e + 1) / (e * e)
			}
		}
		if f > 0 {
			low = d
		} else {
			high = d
		}
		next := d - f/slope
		if !(next > low && next < high) {
			next = (low + high) / 2
		}
		if math.Abs(next-d) <= 1e-13*d {
			return next, nil
		}
		d = next
	}
	return d, nil
}

// Dated is the estimator for visits that also tell when the last change was
// (Last-Modified): n visits of which c saw a change, and the sum of the
// smaller of time since modification and interval:
// ((c-1) - c/(n ln(1 - c/n))) / sum.
func Dated(visits, changed int, sum float64) float64 {
	if changed == 0 || sum <= 0 {
		return 0
	}
	n, c := float64(visits), float64(changed)
	if changed >= visits {
		c = n - .5 // everything changed: the logarithm has no value
	}
	return ((c - 1) - c/(n*math.Log(1-c/n))) / sum
}

// HalfLife is the age at which evidence counts half.
const HalfLife = 30 * 24 * time.Hour

// History is what is remembered of an item's visits: what they add to the prior
// belief of its rate. The zero value is an item never visited. Times of visits
// that go backwards are ignored.
type History struct {
	Visits  float64   `json:"n,omitempty"` // faded count of visits after the first
	Changes float64   `json:"c,omitempty"` // faded number of changes that they are worth: the shape they add
	Time    float64   `json:"t,omitempty"` // seconds that they add
	Last    time.Time `json:"l,omitzero"`  // last visit
	Changed time.Time `json:"d,omitzero"`  // last visit that saw a change
}

// Observe adds a visit to an item of which p was believed before its first.
func (h *History) Observe(now time.Time, changed bool, p Prior) {
	h.ObserveHeard(now, changed, p, Heard{})
}

// ObserveHeard is Observe after signals.
func (h *History) ObserveHeard(now time.Time, changed bool, p Prior, heard Heard) {
	if h.Last.IsZero() {
		h.Last, h.Changed = now, now
		return
	}
	tau := now.Sub(h.Last).Seconds()
	if tau <= 0 {
		return
	}
	fade := math.Exp2(-tau / HalfLife.Seconds())
	h.Visits = h.Visits*fade + 1
	h.Time *= fade
	h.Changes *= fade
	before := h.Belief(p)
	after := heard.afterVisit(before, tau, changed)
	h.Changes = max(0, h.Changes+after.Shape-before.Shape)
	h.Time = max(0, h.Time+after.Time-before.Time)
	h.Last = now
	if changed {
		h.Changed = now
	}
}

// Belief is what is believed of the rate after the last visit.
//
// An item that changes far more often than the prior says would take as many
// visits to tell as the prior has times theirs: the scale of the prior is
// guessed, and gives way to the item's own with the first changes.
func (h *History) Belief(p Prior) Belief {
	b := p.asBelief()
	if own := b.Shape * max(h.Time, 1e-6*b.Time) / h.Changes; own < b.Time {
		b.Time *= math.Pow(own/b.Time, h.Changes/(1+h.Changes))
	}
	return Belief{b.Shape + h.Changes, b.Time + h.Time}
}

// Rate is its mean, in changes a second: never zero, never infinite.
func (h *History) Rate(p Prior) float64 { return h.Belief(p).Rate() }

// Own is what the item's own visits say of the rate, without the prior's changes:
// 0 where none was seen.
func (h *History) Own(p Prior) float64 { return h.Changes / h.Belief(p).Time }

// Size is how many bytes AppendBinary writes.
const Size = 40

// AppendBinary implements encoding.BinaryAppender: the five numbers, little
// endian, times in milliseconds since 1970 (0 for none).
func (h History) AppendBinary(b []byte) ([]byte, error) {
	for _, x := range [...]uint64{math.Float64bits(h.Visits), math.Float64bits(h.Changes), math.Float64bits(h.Time), millisOf(h.Last), millisOf(h.Changed)} {
		b = binary.LittleEndian.AppendUint64(b, x)
	}
	return b, nil
}

// UnmarshalBinary implements encoding.BinaryUnmarshaler.
func (h *History) UnmarshalBinary(b []byte) error {
	if len(b) != Size {
		return fmt.Errorf("a history takes %d bytes, not %d", Size, len(b))
	}
	at := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
	*h = History{math.Float64frombits(at(0)), math.Float64frombits(at(1)), math.Float64frombits(at(2)), timeOfMillis(at(3)), timeOfMillis(at(4))}
	for _, x := range []float64{h.Visits, h.Changes, h.Time} {
		if !(x >= 0) || math.IsInf(x, 0) {
			*h = History{}
			return fmt.Errorf("a history with the count %g", x)
		}
	}
	return nil
}

func millisOf(t time.Time) uint64 {
	if t.IsZero() {
		return 0
	}
	return uint64(t.UnixMilli())
}

func timeOfMillis(ms uint64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(ms)).UTC()
}

// Prior is what is believed of an item before its first visit: a mean rate in
// changes a second, and the shape of the belief, the changes that it is worth.
type Prior struct {
	Rate  float64
	Shape float64
}

// DefaultPrior is one change in ten days, and hardly sure of it: the rates of a
// site's pages lie over decades, and so many decades are what a Gamma
// distribution of this shape has.
var DefaultPrior = Prior{Rate: 1 / (10 * 86400.0), Shape: .25}

// asBelief is the prior as a distribution.
func (p Prior) asBelief() Belief {
	if !(p.Rate > 0) || math.IsInf(p.Rate, 0) {
		p.Rate = DefaultPrior.Rate
	}
	if !(p.Shape > 0) || math.IsInf(p.Shape, 0) {
		p.Shape = DefaultPrior.Shape
	}
	return Belief{p.Shape, p.Shape / p.Rate}
}
