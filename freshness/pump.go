package freshness

import (
	"context"
	"math"
	"time"

	"github.com/freshet/freshet/freshness/revisit"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

const (
	// minSent is how many pages are on their way to the robot at least;
	// sentSeconds is for what part of a second of the budget they last.
	minSent     = 2
	maxSent     = 4096
	sentSeconds = .5
	// pumpInterval is how often pages are sent that nobody asked for meanwhile.
	pumpInterval = 20 * time.Millisecond
	// sentTimeout is after what time a page counts as visited that is not.
	sentTimeout = 30 * time.Second
	// lookInterval is how often the store is asked which pages other processes have
	// visited, of which this one does not hear.
	lookInterval = 100 * time.Millisecond
	// again is how long the store is left in peace after it failed.
	storeRetryDelay = time.Second
)

// startSending begins to send pages, once all of the store are in the schedule.
func (p *Scheduler) startSending(visits float64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sendLimit = int(min(max(math.Ceil(visits*sentSeconds), minSent), maxSent))
	if p.ready {
		return nil
	}
	p.ready = true
	if p.schedule.Len() == 0 {
		return nil
	}
	return p.schedule.Start(visits)
}

// Run makes the pages due whose time has come until ctx ends, and wakes the robot
// each time. Pages that the store did not take are sent again, before others.
func (p *Scheduler) Run(ctx context.Context, wakeRobot func()) error {
	t := time.NewTicker(pumpInterval)
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
		if p.config.Shared && now.Sub(looked) >= lookInterval {
			looked, err = now, p.findOtherVisits(ctx)
		}
		if keys = append(keys, p.nextKeys(now)...); len(keys) > 0 && err == nil {
			keys, err = p.makeDue(ctx, keys, wakeRobot)
		}
		if err != nil && ctx.Err() == nil {
			p.config.Log.Error("schedule", "err", err)
			rest = time.Now().Add(storeRetryDelay)
		}
	}
}

// nextKeys takes as many pages from the schedule as the robot has room for.
func (p *Scheduler) nextKeys(now time.Time) (keys []weburl.Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ready {
		return nil
	}
	for id, s := range p.sent {
		if now.Sub(s.at) > sentTimeout {
			p.markReturned(id, p.schedule.Group(id))
		}
	}
	for len(p.sent) < p.sendLimit {
		id, ok := p.schedule.Next(p.secondsSinceStart(now))
		if !ok {
			break
		}
		if _, out := p.sent[id]; out { // a signal was quicker
			continue
		}
		p.markSent(id, p.schedule.Group(id), now)
		keys = append(keys, p.pages.keys[id])
	}
	return keys
}

// makeDue makes pages due in the store, and returns those that could not be: the visit
// that the schedule has heard of is not written yet, so that the store takes them
// for pages under way.
func (p *Scheduler) makeDue(ctx context.Context, keys []weburl.Key, wakeRobot func()) (left []weburl.Key, err error) {
	pages, err := p.config.Store.Records(ctx, keys)
	if err != nil {
		return keys, err
	}
	found := make([]store.Found, 0, len(pages))
	now := time.UnixMilli(time.Now().UnixMilli()) // as the store keeps it
	p.mu.Lock()
	for i := range pages {
		u, err := weburl.Parse(pages[i].URL)
		if err != nil { // the store holds what was parsed before
			p.config.Log.Error("schedule", "url", pages[i].URL, "err", err)
			continue
		}
		if id, ok := p.pages.indexOf(pages[i].Key); ok {
			if s, out := p.sent[id]; out {
				s.last, s.due = pages[i].History.Last, now
				p.sent[id] = s
			}
		}
		found = append(found, store.Found{URL: u, Due: now})
	}
	p.mu.Unlock()
	if _, err := p.config.Store.Add(ctx, found); err != nil {
		return keys, err
	}
	wakeRobot()
	if pages, err = p.config.Store.Records(ctx, keys); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range pages {
		if slot := pages[i].Slot; slot.Order == 0 && !slot.Due.After(now) {
			continue
		}
		k := pages[i].Key
		if id, ok := p.pages.indexOf(k); ok {
			if _, out := p.sent[id]; out { // and not visited since
				left = append(left, k)
			}
		}
	}
	return left, nil
}

// findOtherVisits asks the store which of the pages that are on their way have been
// visited: robots of other processes do not tell.
func (p *Scheduler) findOtherVisits(ctx context.Context) error {
	p.mu.Lock()
	var keys []weburl.Key
	for id, s := range p.sent {
		if !s.last.IsZero() {
			keys = append(keys, p.pages.keys[id])
		}
	}
	p.mu.Unlock()
	if len(keys) == 0 {
		return nil
	}
	pages, err := p.config.Store.Records(ctx, keys)
	if err != nil {
		return err
	}
	for i := range pages {
		p.noteOtherVisit(&pages[i])
	}
	return nil
}

// noteOtherVisit takes note of a page that another process may have visited.
func (p *Scheduler) noteOtherVisit(page *store.Page) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id, known := p.pages.indexOf(page.Key)
	s, out := p.sent[id]
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
		_ = p.schedule.Visited(id, mu, rate, p.secondsSinceStart(last))
	case !visited && !s.due.IsZero() && page.Slot.Due.After(s.due): // the robot tries it again by itself
		_ = p.schedule.Set(id, 0, 0)
	default:
		return
	}
	p.markReturned(id, p.schedule.Group(id))
}
