package node

import (
	"context"
	"math"
	"time"

	"github.com/freshet/freshet/revisit"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

const (
	// leastAhead is how many pages are on their way to the robot at least;
	// secondsAhead is for what part of a second of the budget they last.
	leastAhead   = 2
	mostAhead    = 4096
	secondsAhead = .5
	// pumpEvery is how often pages are sent that nobody asked for meanwhile.
	pumpEvery = 20 * time.Millisecond
	// held is after what time a page counts as visited that is not; heldByOthers
	// where another process may have visited it, of which this one does not hear.
	held         = 30 * time.Second
	heldByOthers = 400 * time.Millisecond
)

// open begins to send pages, once all of the store are in the schedule.
func (p *planner) open(visits float64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ahead = int(min(max(math.Ceil(visits*secondsAhead), leastAhead), mostAhead))
	if p.ready {
		return nil
	}
	p.ready = true
	if p.schedule.Len() == 0 {
		return nil
	}
	return p.schedule.Start(visits)
}

// run sends the robot the pages whose turn it is until ctx ends.
func (p *planner) run(ctx context.Context) error {
	t := time.NewTicker(pumpEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		case <-p.wake:
		}
		keys := p.turn(time.Now())
		if len(keys) == 0 {
			continue
		}
		if err := p.due(ctx, keys); err != nil && ctx.Err() == nil {
			p.node.log.Error("schedule", "err", err)
		}
	}
}

// turn takes as many pages from the schedule as the robot has room for.
func (p *planner) turn(now time.Time) (keys []weburl.Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ready {
		return nil
	}
	hold := held
	if m := p.node.member; m != nil && len(m.Others()) > 0 {
		hold = heldByOthers
	}
	for id, since := range p.out {
		if now.Sub(since) > hold {
			p.done(id, p.schedule.Group(id))
		}
	}
	for len(p.out) < p.ahead {
		id, ok := p.schedule.Next(p.clock(now))
		if !ok {
			break
		}
		if _, out := p.out[id]; out { // a signal was quicker
			continue
		}
		p.send(id, p.schedule.Group(id), now)
		keys = append(keys, p.pages.keys[id])
	}
	return keys
}

// due makes pages due in the store.
func (p *planner) due(ctx context.Context, keys []weburl.Key) error {
	found := make([]store.Found, 0, len(keys))
	now := time.Now()
	for _, k := range keys {
		address, err := p.node.parts.Store.URL(ctx, k)
		if err != nil {
			return err
		}
		u, err := weburl.Parse(address)
		if err != nil {
			return err
		}
		found = append(found, store.Found{URL: u, Due: now})
	}
	if _, err := p.node.parts.Store.Add(ctx, found); err != nil {
		return err
	}
	p.node.robot.Wake()
	return nil
}

// price finds what a visit costs under the policy and budget of the
// configuration, for a histogram of the pages, and how many pages a second the
// budget is.
func (p *planner) price(kinds map[kind]int) error {
	var items []revisit.Item
	var counts []float64
	total, pages := 0., 0.
	for k, count := range kinds {
		it := revisit.Item{Importance: k.importance, Rate: k.rate, Shape: k.shape, Cost: k.cost, Signals: k.signals}
		items, counts = append(items, it), append(counts, float64(count))
		if !k.signals {
			total, pages = total+float64(count)*max(k.cost, 1), pages+float64(count)
		}
	}
	visits := p.budget
	if p.node.config.Crawl.BudgetBytes > 0 && total > 0 {
		visits *= pages / total
	}
	if p.policy != nil && len(items) > 0 {
		t, err := revisit.NewTariff(*p.policy, items, counts, p.budget)
		if err != nil {
			return err
		}
		p.tariff.Store(&t)
	}
	return p.open(visits)
}
