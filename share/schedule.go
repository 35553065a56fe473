package share

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/freshet/freshet/share/part"
)

// item is a part in the schedule: its history of visits.
type item struct {
	last  int64   // last visit, seconds; 0 never
	n, x  float64 // visits and visits without change, fading
	span  float64 // seconds that the visits cover, fading
	force bool    // to be scanned at once
}

// halfLife is the age in seconds at which evidence of change counts half.
const halfLife = 30 * 86400

// rate returns the estimated changes per second: Cho and Garcia-Molina's
// -ln((X+0.5)/(n+0.5))/I over the mean interval, with a prior of one visit a day.
func (it *item) rate() float64 {
	n, x, span := it.n+1, it.x+0.5, it.span+86400
	return -math.Log((x+0.5)/(n+0.5)) / (span / n)
}

// visited notes a visit at now.
func (it *item) visited(now int64, changed bool) {
	if it.last > 0 && now > it.last {
		gap := float64(now - it.last)
		fade := math.Exp2(-gap / halfLife)
		it.n = it.n*fade + 1
		it.x *= fade
		it.span = it.span*fade + gap
		if !changed {
			it.x++
		}
	}
	it.last = now
	it.force = false
}

// value is what a visit at now is worth: Busa-Fekete et al.'s (2025) greedy value
// for freshness, (1 - e^{-Dt}(1 + Dt))/D.
func (it *item) value(now int64) float64 {
	if it.force || it.last == 0 {
		return math.Inf(1)
	}
	d := it.rate()
	t := float64(now - it.last)
	return (1 - math.Exp(-d*t)*(1+d*t)) / d
}

func (it *item) restore(v Visit) error {
	if len(v.History) != 24 {
		return fmt.Errorf("%d bytes, want 24", len(v.History))
	}
	it.last = v.Last
	it.n = math.Float64frombits(binary.LittleEndian.Uint64(v.History))
	it.x = math.Float64frombits(binary.LittleEndian.Uint64(v.History[8:]))
	it.span = math.Float64frombits(binary.LittleEndian.Uint64(v.History[16:]))
	return nil
}

func (it *item) visit(p part.Part) (Visit, bool) {
	if it.last == 0 {
		return Visit{}, false
	}
	b := binary.LittleEndian.AppendUint64(nil, math.Float64bits(it.n))
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(it.x))
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(it.span))
	return Visit{Part: p.ID(), Last: it.last, History: b}, true
}
