package revisit

import (
	"errors"
	"fmt"
	"math"

	"github.com/freshet/freshet/internal/dueheap"
)

// Schedule says which of many items a rule visits next, without looking at all
// of them. The value of a visit rises with time, so each item has a moment at
// which it passes a threshold; the items lie in a heap by that moment. The
// threshold follows the values of the visits made: a larger budget lowers it, a
// change of rates moves it, and nothing is rebuilt. An item's moment is that of
// the threshold of its last look; it is computed again when the moment comes.
// Items that are not worth any visit at this threshold, since they change too
// fast, lie in a heap of their own, by the threshold at which they would be.
//
// A signal of a change brings an item's moment forward by as much time as it
// counts for (Noisy), to now for one that is never false. Items belong to groups
// (hosts): what is known of signals is a group's, and a group that cannot take
// more visits (SetBusy) has its own, higher threshold, so that its visits go to
// the best of its items and the rest of the budget to others (the re-solving
// inside of violated caps of Kolobov et al. 2019, on line).
//
// An item takes 40 bytes. The zero Schedule is empty and follows the greedy
// rule; it is not safe for concurrent use. Times are numbers in any unit, the
// same for rates.
type Schedule struct {
	rule      Rule
	items     []scheduled
	groups    []group
	heap      dueheap.Heap
	given     dueheap.Heap // given up, by the negative of the threshold that brings them back
	resting   dueheap.Heap // visited a moment ago, by the end of their rest
	least     float64      // rest after a visit
	threshold float64
	high      float64 // greatest threshold by which items are filed
	sweeping  bool    // the threshold has fallen: items are looked at again
	cursor    uint32  // of those, the next one
	began     bool
	last      float64 // visit
	gap       float64 // between visits, smoothed
	reaches   map[likeness]float32
	looks     int // at items, for the test of what a visit costs
}

type scheduled struct {
	last       float64
	importance float32
	rate       float32
	kin        kin
	mark       uint16 // of the entry that counts; others of the item in the heaps are stale
	evidence   uint16 // of signals since the last visit
}

// kin packs what else is known of an item: its group in the lower 24 bits, how
// sure its rate is in the next seven, and whether its next visit is a probe.
type kin uint32

// Steps of shapes: an eighth of an octave, from 1/16; the last step is a rate
// that is known.
const (
	groupBits   = 24
	probing     = kin(1) << 31
	sure        = 1<<7 - 1
	shapeSteps  = 8
	shapeLowest = 1. / 16
)

func (k kin) groupNumber() uint32 { return uint32(k) & (1<<groupBits - 1) }

// beliefShape of the belief of the rate; +Inf where it is known.
func (k kin) beliefShape() float64 {
	step := k >> groupBits & sure
	if step == sure {
		return math.Inf(1)
	}
	return shapeLowest * math.Exp2(float64(step)/shapeSteps)
}

// withShape returns k with another shape.
func (k kin) withShape(shape float64) kin {
	step := kin(sure)
	if s := math.Round(math.Log2(shape/shapeLowest) * shapeSteps); s < sure {
		step = kin(max(s, 0))
	}
	return k&^(sure<<groupBits) | step<<groupBits
}

// group is what items have in common.
type group struct {
	noisy Noisy
	raise float64 // its threshold in thresholds of all; 1 and up
	busy  bool
}

const (
	// slack is by what share of its wait an item may be visited early because it
	// was put by a lower threshold. Without it each small rise of the threshold
	// would have all items of equal rates looked at again; the loss is of second
	// order.
	slack = 1. / 16
	// follow is how fast the threshold follows the values of visits.
	follow = 1. / 64
	// giveUp is by how much the threshold must exceed what an item can ever be
	// worth before it is given up; it is taken back below that worth. Between them
	// it is visited late: else items at the threshold would come and go with each
	// of its movements, where all are equal all at once.
	giveUp = 1.05
	// backlog is how many visits late a signalled item may be before the threshold
	// rises as fast as it can: the value of such an item jumps over the threshold,
	// so that only its waiting shows whether there are too many.
	backlog = 64
	// refused is by what share a busy group's threshold rises when an item of it
	// comes up, and eased by what it falls with a visit.
	refused = 1. / 64
	eased   = 1. / 16
	// fallen is the share of its height to which the threshold may fall before items
	// filed by it are looked at again, and sweepLooks how many with each visit: they
	// would lie behind those that were visited since, filed by the lower one, and
	// the same few would be visited again and again.
	fallen     = .8
	sweepLooks = 4
	// refusals bounds the items of busy groups that one call of Next passes over.
	refusals = 64
)

// Errors of a Schedule.
var (
	ErrID    = errors.New("no such item")
	ErrGroup = errors.New("no such group")
)

// NewSchedule returns an empty schedule that follows a rule.
func NewSchedule(r Rule) *Schedule { return &Schedule{rule: r} }

// Len is the number of items.
func (s *Schedule) Len() int { return len(s.items) }

// Threshold is the value of a visit at which the budget is used up, now.
func (s *Schedule) Threshold() float64 { return s.threshold }

// AddGroup returns the number of a new group. Group 0 is there from the
// beginning.
func (s *Schedule) AddGroup() uint32 {
	s.ensureReady()
	if len(s.groups) == 1<<groupBits { // the last ones share what is learned of signals
		return uint32(len(s.groups) - 1)
	}
	s.groups = append(s.groups, group{raise: 1})
	return uint32(len(s.groups) - 1)
}

// ensureReady makes the zero value useful.
func (s *Schedule) ensureReady() {
	if len(s.groups) == 0 {
		s.groups = append(s.groups, group{raise: 1})
	}
	if s.rule.value == nil {
		s.rule = Rules()["greedy"]
	}
}

// SetSignals says what is known of the signals of a group's items: how many of
// all changes are signalled by any source, how many false ones there are. It
// counts from each item's next look on.
func (s *Schedule) SetSignals(group uint32, n Noisy) error {
	s.ensureReady()
	if int(group) >= len(s.groups) {
		return fmt.Errorf("%w: %d of %d", ErrGroup, group, len(s.groups))
	}
	n.Recall = min(max(n.Recall, 0), mostRecall)
	s.groups[group].noisy = n
	return nil
}

// mostRecall is how sure of its signals a group can be: it is polled all the
// same.
const mostRecall = .99

// SetRest says how long an item is left in peace after a visit, whatever it is
// worth and however much of the budget is left.
func (s *Schedule) SetRest(least float64) { s.least = max(0, least) }

// SetBusy reports whether a group can take no more visits for now.
func (s *Schedule) SetBusy(group uint32, busy bool) {
	if int(group) < len(s.groups) {
		s.groups[group].busy = busy
	}
}

// Add takes an item of group 0 that was visited at last and returns its number.
func (s *Schedule) Add(importance, rate, last float64) (id uint32, err error) {
	return s.AddTo(0, importance, rate, last)
}

// AddTo is Add to a group.
func (s *Schedule) AddTo(group uint32, importance, rate, last float64) (id uint32, err error) {
	s.ensureReady()
	if err := checkSensible(importance, rate); err != nil {
		return 0, err
	}
	if int(group) >= len(s.groups) {
		return 0, fmt.Errorf("%w: %d of %d", ErrGroup, group, len(s.groups))
	}
	id = uint32(len(s.items))
	s.items = append(s.items, scheduled{last: last, importance: float32(importance), rate: float32(rate), kin: kin(group).withShape(math.Inf(1))})
	s.scheduleItem(id)
	return id, nil
}

func checkSensible(importance, rate float64) error {
	if !(importance >= 0) || math.IsInf(importance, 0) || !(rate >= 0) || math.IsInf(rate, 0) {
		return fmt.Errorf("importance %g, rate %g: both are finite and not negative", importance, rate)
	}
	return nil
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
	s.ensureReady()
	step := max(1, len(s.items)/sample)
	total := func(price float64) float64 {
		sum := 0.0
		for i := 0; i < len(s.items); i += step {
			if it := &s.items[i]; !s.neverWorthVisit(it) {
				sum += 1 / s.waitUntilWorth(it, price)
			}
		}
		return sum * float64(step)
	}
	if !(total(math.Exp2(-900)) > 0) {
		return nil // nothing changes
	}
	_, high := bracketPrice(total, budget)
	s.threshold, s.began, s.gap = math.Exp2(high), true, 1/budget
	s.high, s.sweeping = s.threshold, false
	s.heap, s.given, s.resting = s.heap[:0], s.given[:0], s.resting[:0]
	for i := range s.items {
		at, up := s.dueMoment(&s.items[i])
		e := dueheap.Entry{At: at, ID: uint32(i), Mark: uint32(s.items[i].mark)}
		if up {
			s.given = append(s.given, e)
		} else {
			s.heap = append(s.heap, e)
		}
	}
	s.heap.Order()
	s.given.Order()
	return nil
}

// Set changes what is known of an item.
func (s *Schedule) Set(id uint32, importance, rate float64) error {
	if int(id) >= len(s.items) {
		return fmt.Errorf("%w: %d of %d", ErrID, id, len(s.items))
	}
	if err := checkSensible(importance, rate); err != nil {
		return err
	}
	it := &s.items[id]
	it.importance, it.rate = float32(importance), float32(rate)
	s.scheduleItem(id)
	s.dropStale()
	return nil
}

// Believe says how sure the rate of an item is, that its next Set or Visited
// tells: the shape of a Gamma distribution; +Inf, as at first, where it is known.
func (s *Schedule) Believe(id uint32, shape float64) error {
	if int(id) >= len(s.items) {
		return fmt.Errorf("%w: %d of %d", ErrID, id, len(s.items))
	}
	if !(shape > 0) {
		return fmt.Errorf("shape %g is not a positive number", shape)
	}
	s.items[id].kin = s.items[id].kin.withShape(shape)
	return nil
}

// Probe has an item visited at a time, for what the visit tells of its rate,
// unless it is before.
func (s *Schedule) Probe(id uint32, at float64) error {
	if int(id) >= len(s.items) {
		return fmt.Errorf("%w: %d of %d", ErrID, id, len(s.items))
	}
	it := &s.items[id]
	if moment, up := s.dueMoment(it); !up && moment <= at || s.neverWorthVisit(it) {
		return nil
	}
	it.mark++
	it.kin |= probing
	s.heap.Push(dueheap.Entry{At: at, ID: id, Mark: uint32(it.mark)})
	s.dropStale()
	return nil
}

// Visited says that an item was visited, by whomever, and what is known of it
// since.
func (s *Schedule) Visited(id uint32, importance, rate, at float64) error {
	if int(id) < len(s.items) {
		s.items[id].last, s.items[id].evidence = at, 0
		s.items[id].kin &^= probing
	}
	return s.Set(id, importance, rate)
}

// Known returns what the schedule knows of an item.
func (s *Schedule) Known(id uint32) (importance, rate, last, evidence float64) {
	it := &s.items[id]
	return float64(it.importance), float64(it.rate), it.last, unpackNats(it.evidence)
}

// Group is the group of an item.
func (s *Schedule) Group(id uint32) uint32 { return s.items[id].kin.groupNumber() }

// Next visits the item whose time has come, or comes first, and returns it. It
// reports false where there is none, or none that changes, or where those that
// come first are all of busy groups. Amortised O(log n).
func (s *Schedule) Next(now float64) (id uint32, ok bool) {
	s.ensureReady()
	s.reviveItems(now)
	s.bringForward()
	for tries := 0; len(s.heap) > 0; {
		top := s.heap[0]
		it := &s.items[top.ID]
		if top.Mark != uint32(it.mark) { // stale: the item was set meanwhile
			s.heap.Pop()
			continue
		}
		at, up := s.dueMoment(it)
		if it.kin&probing != 0 {
			at, up = top.At, false
		}
		s.looks++
		if s.began && (up || at > now && at-top.At > slack*(at-it.last)) { // the threshold rose since it was put here
			if up {
				s.heap.Pop()
				s.given.Push(dueheap.Entry{At: at, ID: top.ID, Mark: top.Mark})
				continue
			}
			if s.heap.Replace(dueheap.Entry{At: at, ID: top.ID, Mark: top.Mark}); s.heap[0].ID != top.ID {
				continue
			}
		}
		if math.IsInf(at, 1) {
			break // the first of all never changes, or is worth nothing
		}
		if rest := it.last + s.least; rest > now {
			s.heap.Pop()
			s.resting.Push(dueheap.Entry{At: rest, ID: top.ID, Mark: top.Mark})
			continue
		}
		if g := &s.groups[it.kin.groupNumber()]; g.busy {
			if tries++; tries > refusals {
				return 0, false
			}
			s.postpone(top, g, now)
			continue
		}
		s.recordItemVisit(it, now, top.At)
		if at, up = s.dueMoment(it); up {
			s.heap.Pop()
			s.given.Push(dueheap.Entry{At: at, ID: top.ID, Mark: top.Mark})
		} else {
			s.heap.Replace(dueheap.Entry{At: at, ID: top.ID, Mark: top.Mark})
		}
		return top.ID, true
	}
	return s.bestGivenUp(now)
}

// bestGivenUp visits, where nothing is worth its visit, the best of what was given up.
func (s *Schedule) bestGivenUp(now float64) (id uint32, ok bool) {
	for len(s.given) > 0 {
		top := s.given[0]
		it := &s.items[top.ID]
		if top.Mark == uint32(it.mark) && s.groups[it.kin.groupNumber()].busy {
			return 0, false
		}
		s.given.Pop()
		if top.Mark != uint32(it.mark) {
			continue
		}
		if rest := it.last + s.least; rest > now {
			s.resting.Push(dueheap.Entry{At: rest, ID: top.ID, Mark: top.Mark})
			continue
		}
		s.recordItemVisit(it, now, now)
		s.pushEntry(top.ID)
		return top.ID, true
	}
	return 0, false
}

// Due reports whether an item's moment has come.
func (s *Schedule) Due(id uint32, now float64) bool {
	if int(id) >= len(s.items) || !s.began {
		return int(id) < len(s.items)
	}
	at, up := s.dueMoment(&s.items[id])
	return !up && at <= now
}

// postpone puts off the first item, of a busy group.
func (s *Schedule) postpone(top dueheap.Entry, g *group, now float64) {
	it := &s.items[top.ID]
	g.raise *= 1 + refused
	it.kin &^= probing
	at, up := s.dueMoment(it)
	if up {
		s.heap.Pop()
		s.given.Push(dueheap.Entry{At: at, ID: top.ID, Mark: top.Mark})
		return
	}
	later := max(now, top.At)
	s.heap.Replace(dueheap.Entry{At: max(at, later+(later-it.last)/32), ID: top.ID, Mark: top.Mark})
}

// recordItemVisit notes a visit to an item that was to come at a moment, and lets the
// threshold follow.
func (s *Schedule) recordItemVisit(it *scheduled, now, moment float64) {
	g := &s.groups[it.kin.groupNumber()]
	value := s.currentValue(it, g, now) / g.raise
	if gap := now - s.last; gap >= 0 && s.began {
		s.gap += follow * (gap - s.gap)
	}
	switch {
	case it.kin&probing != 0: // its value is no measure
	case !s.began:
		s.threshold, s.began = value, true
	case it.evidence > 0 && value > s.threshold:
		if late := now - moment; late > 0 && s.gap > 0 {
			s.threshold *= 1 + follow*min(1, late/s.gap/backlog)
		}
	case !math.IsInf(value, 0):
		s.threshold += follow * (value - s.threshold)
	}
	s.high = max(s.high, s.threshold)
	if !s.sweeping && s.threshold < fallen*s.high {
		s.sweeping, s.cursor, s.high = true, 0, s.threshold
	}
	g.raise = max(1, g.raise*(1-eased))
	it.last, it.evidence, s.last = now, 0, now
	it.kin &^= probing
}

// reviveItems takes back what is worth visits at the present threshold, and what has
// rested.
func (s *Schedule) reviveItems(now float64) {
	for len(s.resting) > 0 && s.resting[0].At <= now {
		if top := s.resting.Pop(); s.items[top.ID].mark == uint16(top.Mark) {
			s.pushEntry(top.ID)
		}
	}
	for len(s.given) > 0 && s.given[0].At < -s.threshold {
		top := s.given.Pop()
		s.looks++
		if s.items[top.ID].mark == uint16(top.Mark) {
			s.pushEntry(top.ID)
		}
	}
}
