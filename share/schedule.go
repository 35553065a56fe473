package share

import (
	"encoding/json"
	"math"
	"time"

	"github.com/freshet/freshet/freshness/change"
	"github.com/freshet/freshet/freshness/revisit"
	"github.com/freshet/freshet/share/part"
)

// Policy names a rule for which part is scanned next.
type Policy string

// Policies. Rates of change are estimated from a part's own visits.
const (
	Freshness Policy = "freshness" // most freshness for a visit: the default
	Likely    Policy = "likely"    // most likely changed
	Loss      Policy = "loss"      // greatest expected loss, by the 2008 thesis
	Oldest    Policy = "sweep"     // visited longest ago
)

// Policies returns the names of all policies.
func Policies() []Policy { return []Policy{Freshness, Likely, Loss, Oldest} }

// item is a part in the schedule: its history of visits.
type item struct {
	history change.History
	rate    float64 // of history, changes per second
	force   bool    // to be scanned at once
}

// prior is what is believed of a part that was not visited often: a change in
// two days, within a decade or so.
var prior = change.Prior{Rate: 1.0 / (2 * 86400), Shape: 1}

// recordVisit notes a visit at now.
func (it *item) recordVisit(now int64, changed bool) {
	it.history.Observe(time.Unix(now, 0), changed, prior)
	it.rate = it.history.Rate(prior)
	it.force = false
}

func (it *item) lastVisit() int64 {
	if it.history.Last.IsZero() {
		return 0
	}
	return it.history.Last.Unix()
}

// rules are the policies' values, which live in package revisit.
var rules = map[Policy]revisit.Value{Freshness: revisit.Greedy, Likely: revisit.MostLikelyChanged, Loss: revisit.Values()["expected-loss"], Oldest: revisit.Sweep}

// visitValue is what a visit at now is worth.
func (it *item) visitValue(p Policy, now int64) float64 {
	last := it.lastVisit()
	if it.force || last == 0 {
		return math.Inf(1)
	}
	d := it.rate
	if d <= 0 { // not visited since it was cut off from another part
		d = prior.Rate
	}
	rule := rules[p]
	if rule == nil {
		rule = revisit.Greedy
	}
	return rule(1, d, float64(now-last))
}

func (it *item) restoreVisit(v Visit) error {
	if err := json.Unmarshal(v.History, &it.history); err != nil {
		return err
	}
	it.rate = it.history.Rate(prior)
	return nil
}

func (it *item) storedVisit(p part.Part) (Visit, bool) {
	if it.lastVisit() == 0 {
		return Visit{}, false
	}
	b, err := json.Marshal(it.history)
	if err != nil {
		return Visit{}, false // numbers that are none: the visits begin again
	}
	return Visit{Part: p.ID(), Last: it.lastVisit(), History: b}, true
}

// Schedule is the choice of the next part by itself: what a robot uses, for
// simulations of it. Times are seconds.
type Schedule struct {
	Policy Policy
	items  []item
}

// NewSchedule returns a schedule of n parts, none visited.
func NewSchedule(p Policy, n int) *Schedule { return &Schedule{p, make([]item, n)} }

// Next returns the part that is worth most at now.
func (s *Schedule) Next(now int64) int {
	best, most := 0, -1.0
	for i := range s.items {
		if v := s.items[i].visitValue(s.Policy, now); v > most {
			best, most = i, v
		}
	}
	return best
}

// Visited notes a visit to a part and whether it saw a change.
func (s *Schedule) Visited(i int, now int64, changed bool) { s.items[i].recordVisit(now, changed) }
