package revisit

import (
	"fmt"
	"math"

	"github.com/freshet/freshet/internal/dueheap"
)

// Signal says that an item has been signalled, by a source whose signal says so
// much (Noisy.Evidence; +Inf for one that is never false), and reports whether
// its moment has come.
func (s *Schedule) Signal(id uint32, evidence, now float64) (due bool, err error) {
	if int(id) >= len(s.items) {
		return false, fmt.Errorf("%w: %d of %d", ErrID, id, len(s.items))
	}
	it := &s.items[id]
	if s.rule.deaf || !(evidence > 0) {
		return false, nil
	}
	if it.last+s.least > now {
		now = it.last + s.least
	}
	it.evidence = packNats(unpackNats(it.evidence) + evidence)
	s.putAt(id, now)
	s.dropStale()
	return s.Due(id, now), nil
}

// Evidence is kept in steps of 1/2048: an item that is e^-31 likely to be fresh
// has changed.
const (
	perNat  = 2048
	certain = math.MaxUint16
)

func packNats(nats float64) uint16 { return uint16(min(math.Ceil(nats*perNat), certain)) }

func unpackNats(packed uint16) float64 {
	if packed == certain {
		return math.Inf(1)
	}
	return float64(packed) / perNat
}

// neverWorthVisit reports whether an item is never worth a visit.
func (s *Schedule) neverWorthVisit(it *scheduled) bool {
	return it.importance == 0 || it.rate == 0 && !s.rule.deaf
}

// effectiveAge is the time that an item would have gone unvisited without signals, to
// be fresh with the same probability. Rules other than the greedy one go by it.
func effectiveAge(n Noisy, d, tau, evidence float64) float64 {
	return (1-n.Recall)*tau + evidence/d
}

// currentValue is what a visit is worth now.
func (s *Schedule) currentValue(it *scheduled, g *group, now float64) float64 {
	mu, d, tau, evidence := float64(it.importance), float64(it.rate), now-it.last, unpackNats(it.evidence)
	switch {
	case s.rule.deaf || g.noisy.Recall == 0 && evidence == 0:
	case s.rule.noisy && !s.isUncertain(it):
		return g.noisy.At(mu, d, tau, evidence)
	default:
		tau = effectiveAge(g.noisy, d, tau, evidence)
	}
	if s.isUncertain(it) {
		return Uncertain(mu, d, it.kin.beliefShape(), tau)
	}
	return s.rule.value(mu, d, tau)
}

// vague is the shape below which it counts that a rate is not known for certain:
// beyond it the value differs by a per cent or two.
const vague = 32

// isUncertain reports whether an item goes by the belief of its rate.
func (s *Schedule) isUncertain(it *scheduled) bool {
	return s.rule.noisy && it.kin.beliefShape() < vague
}

// waitUntilWorth is after what time without signals a visit to an item is worth so much.
func (s *Schedule) waitUntilWorth(it *scheduled, value float64) float64 {
	mu, d := float64(it.importance), float64(it.rate)
	switch {
	case value >= s.maxValue(it):
		return math.Inf(1)
	case s.isUncertain(it):
		return waitUncertain(mu, d, it.kin.beliefShape(), value)
	}
	return s.rule.Wait(mu, d, value)
}

// maxValue is what a visit to an item can ever be worth.
func (s *Schedule) maxValue(it *scheduled) float64 {
	mu, d := float64(it.importance), float64(it.rate)
	if s.isUncertain(it) {
		return mostUncertain(mu, d, it.kin.beliefShape())
	}
	return s.rule.most(mu, d)
}

// dueMoment is when the item's value passes the threshold; for one whose value
// never does, up is true and at the negative of the value it can reach.
func (s *Schedule) dueMoment(it *scheduled) (at float64, up bool) {
	if s.neverWorthVisit(it) {
		return math.Inf(1), false
	}
	d, mu := float64(it.rate), float64(it.importance)
	g := &s.groups[it.kin.groupNumber()]
	most := s.maxValue(it)
	if s.threshold*g.raise >= giveUp*most {
		return -most / g.raise, true
	}
	threshold := min(s.threshold*g.raise, most*(1-1e-6))
	if threshold <= 0 {
		return it.last, false
	}
	if s.rule.deaf || g.noisy.Recall == 0 && it.evidence == 0 {
		return it.last + s.waitUntilWorth(it, threshold), false
	}
	a := (1 - g.noisy.Recall) * d
	var wait float64
	if s.isUncertain(it) {
		wait = waitUncertain(mu, d, it.kin.beliefShape(), threshold) / (1 - g.noisy.Recall)
	} else {
		wait = s.reachThreshold(g.noisy, mu, d, threshold)
	}
	wait -= unpackNats(it.evidence) / a
	return it.last + max(0, wait), false
}

// likeness is what items have in common whose waits are the same in units of the
// time between changes: the quality of signals and the threshold.
type likeness struct {
	recall       uint8 // in steps of 1/128
	noise, value int16 // logarithms (base 2) in steps of 1/8 and 1/16
}

// reachesKept bounds the memory of waits.
const reachesKept = 1 << 16

// reachThreshold is how long an item without signals waits for its value to pass the
// threshold. Under noisy signals that takes sums of gamma functions and a
// bisection; the outcome is kept, for parameters rounded to some per cent.
func (s *Schedule) reachThreshold(n Noisy, mu, d, threshold float64) float64 {
	switch {
	case !s.rule.noisy:
		return s.rule.wait(mu, d, threshold) / (1 - n.Recall)
	case n.Recall == 0:
		return s.rule.wait(mu, d, threshold)
	}
	const octaves = 60
	log := func(x, steps float64) int16 {
		return int16(math.Round(min(max(math.Log2(x), -octaves), octaves) * steps))
	}
	_, noise := n.boundedNoise(d)
	k := likeness{uint8(math.Round(n.Recall * 128)), log(noise/d, 8), log(-math.Log1p(-threshold*d/mu), 16)}
	if w, ok := s.reaches[k]; ok {
		return float64(w) / d
	}
	rounded := Noisy{Recall: min(float64(k.recall)/128, mostRecall), False: math.Exp2(float64(k.noise) / 8)}
	if noise == 0 {
		rounded.False = 0
	}
	w := rounded.Reach(1, 1, -math.Expm1(-math.Exp2(float64(k.value)/16)))
	if s.reaches == nil || len(s.reaches) >= reachesKept {
		s.reaches = map[likeness]float32{}
	}
	s.reaches[k] = float32(w)
	return w / d
}

// bringForward looks at the next items after the threshold has fallen, and brings those
// forward that are before the first.
func (s *Schedule) bringForward() {
	for range sweepLooks {
		if !s.sweeping || len(s.heap) == 0 {
			return
		}
		if int(s.cursor) >= len(s.items) {
			s.sweeping = false
			s.dropStale()
			return
		}
		id := s.cursor
		s.cursor++
		if id == s.heap[0].ID {
			continue
		}
		it := &s.items[id]
		if at, up := s.dueMoment(it); !up && max(at, it.last+s.least) < s.heap[0].At {
			s.scheduleItem(id)
		}
	}
}

// scheduleItem files an item where it belongs; what was filed of it before is stale.
func (s *Schedule) scheduleItem(id uint32) { s.putAt(id, math.Inf(-1)) }

// putAt is put for an item whose moment is not before a time.
func (s *Schedule) putAt(id uint32, first float64) {
	it := &s.items[id]
	it.mark++
	it.kin &^= probing
	at, up := s.dueMoment(it)
	e := dueheap.Entry{At: at, ID: id, Mark: uint32(it.mark)}
	if up {
		s.given.Push(e)
		return
	}
	e.At = max(at, first)
	s.heap.Push(e)
}

// pushEntry puts an item whose entry was taken out.
func (s *Schedule) pushEntry(id uint32) {
	it := &s.items[id]
	at, up := s.dueMoment(it)
	e := dueheap.Entry{At: at, ID: id, Mark: uint32(it.mark)}
	if up {
		s.given.Push(e)
	} else {
		s.heap.Push(e)
	}
}

// solveWait solves 1 - e^{-x}(1 + x) = y for 0 <= y < 1 by Newton's method; the
// derivative is x e^{-x}.
func solveWait(y float64) float64 {
	if y <= 0 {
		return 0
	}
	x := math.Sqrt(2*y) * (1 + y/2)
	if y > .9 {
		x = -math.Log1p(-y) * 1.3
	}
	for range 30 {
		e := math.Exp(-x)
		f := 1 - e*(1+x) - y
		if x < 1e-3 { // the terms cancel: series
			f = x*x*(.5-x/3) - y
		}
		step := f / (x * e)
		next := x - step
		if next <= 0 {
			next = x / 2
		}
		if math.Abs(next-x) <= 1e-9*x {
			return next
		}
		x = min(next, 700)
	}
	return x
}

// dropStale drops stale entries once they are as many as the items.
func (s *Schedule) dropStale() {
	if len(s.heap)+len(s.given)+len(s.resting) <= 64+2*len(s.items) {
		return
	}
	s.filterEntries(&s.heap)
	s.filterEntries(&s.given)
	s.filterEntries(&s.resting)
}

// filterEntries keeps the entries that count.
func (s *Schedule) filterEntries(h *dueheap.Heap) {
	kept := (*h)[:0]
	for _, e := range *h {
		if uint32(s.items[e.ID].mark) == e.Mark {
			kept = append(kept, e)
		}
	}
	*h = kept
	h.Order()
}
