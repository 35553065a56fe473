package revisit

import (
	"errors"
	"fmt"
	"math"

	"github.com/freshet/freshet/due"
)

// Schedule says which of many items the greedy rule visits next, without
// looking at all of them. The value of a visit rises with time, so each item
// has a moment at which it passes a threshold; the items lie in a heap by that
// moment. The threshold follows the values of the visits made: a larger budget
// lowers it, a change of rates moves it, and nothing is rebuilt. An item's
// moment is that of the threshold of its last look; it is computed anew when
// the moment comes. Items that change too fast to be worth any visit at this
// threshold lie in a heap of their own, by the threshold at which they would be.
//
// An item takes 40 bytes. The zero Schedule is empty and ready; it is not safe
// for concurrent use. Times are numbers in any unit, the same for rates.
type Schedule struct {
	items     []scheduled
	heap      due.Heap
	given     due.Heap // given up, by the negative of the threshold that brings them back
	threshold float64
	began     bool
	looks     int // at items, for the test of what a visit costs
}

type scheduled struct {
	last       float64
	at         float64 // the moment that counts; others of the item in the heap are stale
	importance float32
	rate       float32
}

// slack is by what share of its wait an item may be visited early because it
// was put by a lower threshold. Without it each small rise of the threshold
// would have all items of equal rates looked at again; the loss is of second
// order.
const slack = 1. / 16

// follow is how fast the threshold follows the values of visits.
const follow = 1. / 64

// giveUp is by how much the threshold must exceed what an item can ever be worth
// before it is given up; it is taken back below that worth. Between them it is
// visited late: else items at the threshold would come and go with each of its
// movements, where all are equal all at once.
const giveUp = 1.05

// ErrID is the error of an item that is not in the schedule.
var ErrID = errors.New("no such item")

// Len is the number of items.
func (s *Schedule) Len() int { return len(s.items) }

// Threshold is the value of a visit at which the budget is used up, now.
func (s *Schedule) Threshold() float64 { return s.threshold }

// Add takes an item that was visited at last and returns its number.
func (s *Schedule) Add(importance, rate, last float64) (id uint32, err error) {
	if err := sensible(importance, rate); err != nil {
		return 0, err
	}
	id = uint32(len(s.items))
	s.items = append(s.items, scheduled{last: last, importance: float32(importance), rate: float32(rate)})
	s.put(id)
	return id, nil
}

// sample is how many items Start looks at to find the threshold.
const sample = 20_000

// Start sets the threshold to where visits will use the budget, by a sample of
// the items, and files all of them by it in one pass. Without it the threshold
// is found too, while items filed by others are looked at once more.
func (s *Schedule) Start(budget float64) error {
	if !(budget > 0) || math.IsInf(budget, 0) {
		return fmt.Errorf("%w: %g", ErrBudget, budget)
	}
	step := max(1, len(s.items)/sample)
	total := func(price float64) float64 {
		sum := 0.0
		for i := 0; i < len(s.items); i += step {
			if it := &s.items[i]; it.rate > 0 && it.importance > 0 {
				sum += fixedOptimal(&Item{Importance: float64(it.importance), Rate: float64(it.rate)}, price)
			}
		}
		return sum * float64(step)
	}
	if total(math.Exp2(-900)) == 0 {
		return nil // nothing changes
	}
	_, high := bracket(total, budget)
	s.threshold, s.began = math.Exp2(high), true
	s.heap, s.given = s.heap[:0], s.given[:0]
	for i := range s.items {
		it := &s.items[i]
		at, up := s.moment(it)
		if it.at = at; up {
			s.given = append(s.given, due.Entry{At: at, ID: uint32(i)})
		} else {
			s.heap = append(s.heap, due.Entry{At: at, ID: uint32(i)})
		}
	}
	s.heap.Order()
	s.given.Order()
	return nil
}

// put files an item where it belongs.
func (s *Schedule) put(id uint32) {
	it := &s.items[id]
	at, up := s.moment(it)
	it.at = at
	if up {
		s.given.Push(due.Entry{At: at, ID: id})
	} else {
		s.heap.Push(due.Entry{At: at, ID: id})
	}
}

func sensible(importance, rate float64) error {
	if !(importance >= 0) || math.IsInf(importance, 0) || !(rate >= 0) || math.IsInf(rate, 0) {
		return fmt.Errorf("importance %g, rate %g: both are finite and not negative", importance, rate)
	}
	return nil
}

// Set changes what is known of an item.
func (s *Schedule) Set(id uint32, importance, rate float64) error {
	if int(id) >= len(s.items) {
		return fmt.Errorf("%w: %d of %d", ErrID, id, len(s.items))
	}
	if err := sensible(importance, rate); err != nil {
		return err
	}
	it := &s.items[id]
	it.importance, it.rate = float32(importance), float32(rate)
	s.put(id)
	if len(s.heap)+len(s.given) > 64+2*len(s.items) {
		s.sweep()
	}
	return nil
}

// Next visits the item whose time has come, or comes first, and returns it. It
// reports false where there is none, or none that changes. Amortised O(log n).
func (s *Schedule) Next(now float64) (id uint32, ok bool) {
	s.revive()
	for len(s.heap) > 0 {
		top := s.heap[0]
		it := &s.items[top.ID]
		if top.At != it.at { // stale: the item was set meanwhile
			s.heap.Pop()
			continue
		}
		at, up := s.moment(it)
		s.looks++
		if s.began && (up || at > now && at-top.At > slack*(at-it.last)) { // the threshold rose since it was put here
			it.at = at
			if up {
				s.heap.Pop()
				s.given.Push(due.Entry{At: at, ID: top.ID})
				continue
			}
			if s.heap.Replace(due.Entry{At: at, ID: top.ID}); s.heap[0].ID != top.ID {
				continue
			}
		}
		if math.IsInf(at, 1) {
			break // the first of all never changes, or is worth nothing
		}
		s.visit(it, now)
		if it.at, up = s.moment(it); up {
			s.heap.Pop()
			s.given.Push(due.Entry{At: it.at, ID: top.ID})
		} else {
			s.heap.Replace(due.Entry{At: it.at, ID: top.ID})
		}
		return top.ID, true
	}
	// Nothing is worth its visit: the best of what was given up.
	for len(s.given) > 0 {
		top := s.given.Pop()
		it := &s.items[top.ID]
		if top.At != it.at {
			continue
		}
		s.visit(it, now)
		s.put(top.ID)
		return top.ID, true
	}
	return 0, false
}

func (s *Schedule) visit(it *scheduled, now float64) {
	value := Greedy(float64(it.importance), float64(it.rate), now-it.last)
	if !s.began {
		s.threshold, s.began = value, true
	}
	s.threshold += follow * (value - s.threshold)
	it.last = now
}

// revive takes back what is worth visits at the present threshold.
func (s *Schedule) revive() {
	for len(s.given) > 0 && s.given[0].At < -s.threshold {
		top := s.given.Pop()
		s.looks++
		if s.items[top.ID].at == top.At {
			s.put(top.ID)
		}
	}
}

// moment is when the item's value passes the threshold; for one whose value
// never does, up is true and at the negative of the value it can reach.
func (s *Schedule) moment(it *scheduled) (at float64, up bool) {
	d, mu := float64(it.rate), float64(it.importance)
	if d == 0 || mu == 0 {
		return math.Inf(1), false
	}
	y := s.threshold * d / mu
	if y < giveUp {
		return it.last + wait(min(y, 1-1e-6))/d, false
	}
	return -mu / d, true
}

// wait solves 1 - e^{-x}(1 + x) = y for 0 <= y < 1 by Newton's method; the
// derivative is x e^{-x}.
func wait(y float64) float64 {
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

// sweep drops stale moments.
func (s *Schedule) sweep() {
	seen := make([]bool, len(s.items)) // of equal moments one remains
	filter(&s.heap, s.items, seen)
	filter(&s.given, s.items, seen)
}

// filter keeps the moments that count and are not seen yet.
func filter(h *due.Heap, items []scheduled, seen []bool) {
	kept := (*h)[:0]
	for _, m := range *h {
		if items[m.ID].at == m.At && !seen[m.ID] {
			seen[m.ID] = true
			kept = append(kept, m)
		}
	}
	*h = kept
	h.Order()
}
