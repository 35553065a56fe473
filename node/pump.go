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
	// held is after what time a page counts as visited that is not.
	held = 30 * time.Second
	// lookEvery is how often the store is asked which pages other processes have
	// visited, of which this one does not hear.
	lookEvery = 100 * time.Millisecond
	// again is how long the store is left in peace after it failed.
	again = time.Second
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

// run sends the robot the pages whose turn it is until ctx ends. What the store
// did not take is sent again, before others.
func (p *planner) run(ctx context.Context) error {
	t := time.NewTicker(pumpEvery)
	defer t.Stop()
	var keys []weburl.Key
	var looked, rest time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		case <-p.wake:
		}
		now := time.Now()
		if now.Before(rest) {
			continue
		}
		var err error
		if m := p.node.member; m != nil && now.Sub(looked) >= lookEvery {
			looked, err = now, p.look(ctx)
		}
		if keys = append(keys, p.turn(now)...); len(keys) > 0 && err == nil {
			keys, err = p.due(ctx, keys)
		}
		if err != nil && ctx.Err() == nil {
			p.node.log.Error("schedule", "err", err)
			rest = time.Now().Add(again)
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
	for id, s := range p.out {
		if now.Sub(s.at) > held {
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

// due makes pages due in the store, and returns those that could not be: the visit
// that the schedule has heard of is not written yet, so that the store takes them
// for pages under way.
func (p *planner) due(ctx context.Context, keys []weburl.Key) (left []weburl.Key, err error) {
	pages, err := p.node.parts.Store.Records(ctx, keys)
	if err != nil {
		return keys, err
	}
	found := make([]store.Found, 0, len(pages))
	now := time.UnixMilli(time.Now().UnixMilli()) // as the store keeps it
	p.mu.Lock()
	for i := range pages {
		u, err := weburl.Parse(pages[i].URL)
		if err != nil { // the store holds what was parsed before
			p.node.log.Error("schedule", "url", pages[i].URL, "err", err)
			continue
		}
		if id, ok := p.pages.of(u.Key()); ok {
			if s, out := p.out[id]; out {
				s.last, s.due = pages[i].History.Last, now
				p.out[id] = s
			}
		}
		found = append(found, store.Found{URL: u, Due: now})
	}
	p.mu.Unlock()
	if _, err := p.node.parts.Store.Add(ctx, found); err != nil {
		return keys, err
	}
	p.node.robot.Wake()
	if pages, err = p.node.parts.Store.Records(ctx, keys); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range pages {
		u, err := weburl.Parse(pages[i].URL)
		if slot := pages[i].Slot; err != nil || slot.Order == 0 && !slot.Due.After(now) {
			continue
		}
		k := u.Key()
		if id, ok := p.pages.of(k); ok {
			if _, out := p.out[id]; out { // and not visited since
				left = append(left, k)
			}
		}
	}
	return left, nil
}

// look asks the store which of the pages that are on their way have been
// visited: robots of other processes do not tell.
func (p *planner) look(ctx context.Context) error {
	p.mu.Lock()
	var keys []weburl.Key
	for id, s := range p.out {
		if !s.last.IsZero() {
			keys = append(keys, p.pages.keys[id])
		}
	}
	p.mu.Unlock()
	if len(keys) == 0 {
		return nil
	}
	pages, err := p.node.parts.Store.Records(ctx, keys)
	if err != nil {
		return err
	}
	for i := range pages {
		if u, err := weburl.Parse(pages[i].URL); err == nil {
			p.elsewhere(&pages[i], u)
		}
	}
	return nil
}

// elsewhere takes note of a page that another process may have visited.
func (p *planner) elsewhere(page *store.Page, u weburl.URL) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id, known := p.pages.of(u.Key())
	s, out := p.out[id]
	if !known || !out || s.last.IsZero() {
		return
	}
	last := page.History.Last
	switch visited := page.State == store.OK || page.State == store.Redirect; {
	case visited && last.After(s.last):
		mu, rate, _, _ := p.schedule.Known(id)
		if p.policy == nil && p.rule == stride {
			rate = 1 / revisit.Adaptive{}.Next(last.Sub(s.last).Seconds(), page.History.Changed.Equal(last))
		}
		_ = p.schedule.Visited(id, mu, rate, p.clock(last))
	case !visited && !s.due.IsZero() && page.Slot.Due.After(s.due): // the robot tries it again by itself
		_ = p.schedule.Set(id, 0, 0)
	default:
		return
	}
	p.done(id, p.schedule.Group(id))
}

// price finds what a visit costs under the policy and budget of the
// configuration, for a histogram of all pages, and how many pages a second the
// budget is for own, those that this process plans for.
func (p *planner) price(kinds, own map[kind]int) error {
	var items []revisit.Item
	var counts []float64
	total, pages := 0., 0.
	for k, count := range kinds {
		items, counts = append(items, k.item()), append(counts, float64(count))
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
	return p.open(visits * p.share(kinds, own))
}

// share is what part of the visits a plan gives to the pages that this process
// plans for: what each process sends ahead bears that proportion, so that a visit
// is worth the same in all.
func (p *planner) share(kinds, own map[kind]int) float64 {
	optimal := revisit.Policies()["fixed-optimal"]
	if p.policy != nil {
		optimal = *p.policy
	}
	var items []revisit.Item
	var counts []float64
	for k, count := range kinds {
		items, counts = append(items, k.item()), append(counts, float64(count))
	}
	each := func(kind) float64 { return 1 }
	if t, err := revisit.NewTariff(optimal, items, counts, p.budget); err == nil && p.rule != "sweep" {
		each = func(k kind) float64 {
			return t.Rate(k.item())
		}
	}
	sum := func(kinds map[kind]int) (s float64) {
		for k, count := range kinds {
			s += float64(count) * each(k)
		}
		return s
	}
	all := sum(kinds)
	if all <= 0 {
		return 1
	}
	return max(sum(own)/all, 1e-9) // the schedule wants some budget
}
