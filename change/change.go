// Package change estimates how often things change from visits that see only
// whether they did since the last visit.
//
// A page that changes as a Poisson process of rate D is seen changed after an
// interval I with probability 1 - e^{-D I}: two changes between visits look
// like one, so changes divided by time is biased low (Cho, Garcia-Molina,
// Estimating frequency of change, 2003). Regular, MLE and Dated correct that;
// History keeps in 40 bytes what the on-line estimate of a live robot needs,
// with old evidence fading by half in a month.
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

// History is what is remembered of an item's visits. The zero value is an item
// never visited. Times of visits that go backwards are ignored.
type History struct {
	Visits  float64   `json:"n,omitempty"` // faded count of visits after the first
	Changes float64   `json:"c,omitempty"` // faded number of changes that those are expected to have hidden
	Time    float64   `json:"t,omitempty"` // faded sum of the intervals, seconds
	Last    time.Time `json:"l,omitzero"`  // last visit
	Changed time.Time `json:"d,omitzero"`  // last visit that saw a change
}

// Observe adds a visit.
func (h *History) Observe(now time.Time, changed bool) {
	if h.Last.IsZero() {
		h.Last, h.Changed = now, now
		return
	}
	tau := now.Sub(h.Last).Seconds()
	if tau <= 0 {
		return
	}
	fade := math.Exp2(-tau / HalfLife.Seconds())
	hidden := 0.0
	if changed {
		hidden = Hidden(h.own() * tau)
		h.Changed = now
	}
	h.Visits = h.Visits*fade + 1
	h.Time = h.Time*fade + tau
	h.Changes = h.Changes*fade + hidden
	h.Last = now
}

// unseen is how many changes are believed to have come beside those that were
// seen: an item that was not seen to change for a time may yet do so, and is
// looked at after some such times more. The prior of Jeffreys for a Poisson rate
// has .5; with .25 robots that learn fared better.
const unseen = .25

// own is the rate by the item's own visits.
func (h *History) own() float64 {
	if h.Time <= 0 {
		return 0
	}
	return h.Changes / h.Time
}

// Hidden is how many changes a visit that saw one is expected to have found,
// x being the rate times the interval: x/(1 - e^{-x}).
func Hidden(x float64) float64 {
	if x < 1e-6 {
		return 1 + x/2
	}
	return -x / math.Expm1(-x)
}

// Size is how many bytes AppendBinary writes.
const Size = 40

// AppendBinary implements encoding.BinaryAppender: the five numbers, little
// endian, times in milliseconds since 1970 (0 for none).
func (h History) AppendBinary(b []byte) ([]byte, error) {
	for _, x := range [...]uint64{math.Float64bits(h.Visits), math.Float64bits(h.Changes), math.Float64bits(h.Time), since1970(h.Last), since1970(h.Changed)} {
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
	*h = History{math.Float64frombits(at(0)), math.Float64frombits(at(1)), math.Float64frombits(at(2)), from1970(at(3)), from1970(at(4))}
	for _, x := range []float64{h.Visits, h.Changes, h.Time} {
		if !(x >= 0) || math.IsInf(x, 0) {
			*h = History{}
			return fmt.Errorf("a history with the count %g", x)
		}
	}
	return nil
}

func since1970(t time.Time) uint64 {
	if t.IsZero() {
		return 0
	}
	return uint64(t.UnixMilli())
}

func from1970(ms uint64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(ms)).UTC()
}

// Prior is what is believed of an item before it was visited often: a rate in
// changes a second, worth so many visits.
type Prior struct {
	Rate   float64
	Weight float64
}

// DefaultPrior is one change in ten days, worth half a visit.
var DefaultPrior = Prior{Rate: 1 / (10 * 86400.0), Weight: .5}

// Rate returns the estimated rate in changes a second: expected changes by time,
// mixed with the prior; never zero, never infinite. A change that was seen counts
// for as many as it is expected to hide by the estimate of its time (EM on line;
// Cappé, Moulines 2009), so that the estimate comes to the maximum of likelihood
// however unequal the intervals are, which visits by value are.
func (h *History) Rate(p Prior) float64 {
	if p.Rate <= 0 {
		p = DefaultPrior
	}
	if h.Visits < .01 || h.Time <= 0 {
		return p.Rate
	}
	return ((h.Changes+unseen)/h.Time*h.Visits + p.Rate*p.Weight) / (h.Visits + p.Weight)
}
