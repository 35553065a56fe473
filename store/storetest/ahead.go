package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/freshet/freshet/freshness/change"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// Year is by how much the clock of PlanAhead is ahead.
const Year = 365 * 24 * time.Hour

// plan is a visit to a page of a host of its own.
type plan struct {
	at    time.Time // of the visit
	state store.State
	wait  time.Duration // until the next visit, as planned
	want  time.Duration // from now on, once the clock is set back
}

// PlanAhead visits pages, an hour before now and with a clock that is a year ahead.
// mended checks, when the clock was set back and the store has noticed, that what
// was planned then is planned anew: a page that was visited is due after the same
// interval, one that failed or was refused within days, no record and no line of the
// log is of the future after present, and what was planned before is as it was. Times
// are compared as rounded. How a clock is set back is up to the engine.
func PlanAhead(t *testing.T, s store.Store, now time.Time) (mended func(s store.Store, present time.Time, rounded time.Duration)) {
	t.Helper()
	ctx := context.Background()
	plans := []plan{
		{now.Add(-time.Hour), store.OK, 3 * time.Hour, 2 * time.Hour},
		{now.Add(-time.Hour), store.Failed, 3 * time.Hour, 2 * time.Hour},
		{now.Add(Year), store.OK, 5 * 24 * time.Hour, 5 * 24 * time.Hour},
		{now.Add(Year), store.Gone, time.Hour, time.Hour},
		{now.Add(Year), store.Failed, time.Hour, store.LongestRetry},
		{now.Add(Year), store.Blocked, 24 * time.Hour, store.LongestRetry},
	}
	page := func(i int) weburl.URL { return mustParseURL(t, fmt.Sprintf("http://h%d/", i)) }
	for i, p := range plans {
		if _, err := s.Add(ctx, []store.Found{{URL: page(i)}}); err != nil {
			t.Fatal(err)
		}
		l, next, err := s.Claim(ctx, "n", p.at, time.Minute)
		if err != nil || l == nil {
			t.Fatal(l, next, err)
		}
		pages, err := s.Take(ctx, l, 1, p.at)
		if err != nil || len(pages) != 1 {
			t.Fatal(pages, err)
		}
		v := store.Visit{Page: pages[0], Arrived: p.at}
		v.Page.State, v.Page.Slot = p.state, store.Slot{Due: p.at.Add(p.wait)}
		if p.state != store.Failed && p.state != store.Blocked {
			v.Page.History.Observe(p.at, true, change.Prior{})
		}
		_, err = s.Commit(ctx, l, &store.Batch{Host: l.Host, Visits: []store.Visit{v}})
		if err := errors.Join(err, s.Release(ctx, l)); err != nil {
			t.Fatal(err)
		}
	}
	return func(s store.Store, present time.Time, rounded time.Duration) {
		t.Helper()
		for i, plan := range plans {
			p, err := s.Page(ctx, page(i))
			if err != nil {
				t.Fatal(err)
			}
			if got := p.Slot.Due.Sub(now).Round(rounded); got != plan.want || p.History.Last.After(present) || p.History.Changed.After(present) {
				t.Errorf("%d: due in %v, want %v; history %+v", i, got, plan.want, p.History)
			}
		}
		if err := s.Visits(ctx, now.Add(store.ClockAhead), func(v *store.VisitLog) error { return fmt.Errorf("visit of the future: %+v", v) }); err != nil {
			t.Error(err)
		}
	}
}
