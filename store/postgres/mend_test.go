package postgres

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/store/storetest"
	"github.com/freshet/freshet/weburl"
)

// What was planned while the clock was ahead is planned anew once it is set back, by
// the process itself and by the next one: visits, rests, and leases of who died.
func TestPlansOfClockAhead(t *testing.T) {
	t.Parallel()
	const year = storetest.Year
	for _, again := range []string{"same process", "next process"} {
		t.Run(again, func(t *testing.T) {
			t.Parallel()
			address, ctx, now := cluster.Database(t), context.Background(), time.Now()
			s := open(t, address, Config{Node: "n"})
			page := func(i int) weburl.URL {
				u, err := weburl.Parse(fmt.Sprintf("http://h%d/", i))
				if err != nil {
					t.Fatal(err)
				}
				return u
			}
			claim := func(at time.Time) *store.Lease {
				t.Helper()
				l, next, err := s.Claim(ctx, "n", at, time.Minute)
				if err != nil || l == nil {
					t.Fatal(l, next, err)
				}
				return l
			}
			done := func(l *store.Lease) {
				t.Helper()
				pages, err := s.Take(ctx, l, 1, time.Now())
				if err != nil || len(pages) != 1 {
					t.Fatal(pages, err)
				}
				v := store.Visit{Page: pages[0]}
				v.Page.State, v.Page.Slot = store.Excluded, store.Slot{}
				if _, err = s.Finish(ctx, l, &store.Batch{Host: l.Host, Visits: []store.Visit{v}}); err != nil {
					t.Fatal(err)
				}
			}
			mended := storetest.PlanAhead(t, s, now)
			// One host rests, one is leased by an agent that is gone, as are its slot, its
			// place at an address and the time it took from a budget.
			for i := range 2 {
				if _, err := s.Add(ctx, []store.Found{{URL: page(10 + i)}}); err != nil {
					t.Fatal(err)
				}
				l := claim(now.Add(year))
				if i == 0 {
					l.Host.Next = now.Add(year + time.Second)
					_, err := s.Commit(ctx, l, &store.Batch{Host: l.Host})
					if err := errors.Join(err, s.Release(ctx, l)); err != nil {
						t.Fatal(err)
					}
				}
			}
			until := now.Add(year).UnixMilli()
			for _, sql := range []string{"insert into slots (n, node, until) values (1, 'dead', $1)", "insert into places (address, n, node, until) values ('::1', 1, 'dead', $1)", "insert into budgets (name, next) values ('all', $1::bigint * 1000)"} {
				if _, err := s.pool.Exec(ctx, sql, until); err != nil {
					t.Fatal(err)
				}
			}
			if again == "next process" {
				s.pool.Close() // it dies
				s = open(t, address, Config{Node: "m"})
			}
			l := claim(time.Now())
			if l.Host.Name != "h11" || !l.Orphan {
				t.Errorf("claimed %+v", l)
			}
			done(l)
			mended(s, time.Now(), 10*time.Second)
			var ahead int
			if err := s.pool.QueryRow(ctx, "select (select count(*) from slots where until > $1) + (select count(*) from places where until > $1) + (select count(*) from budgets where next > $1 * 1000)", time.Now().Add(time.Minute).UnixMilli()).Scan(&ahead); err != nil || ahead != 0 {
				t.Errorf("%d rows of slots, places and budgets are still ahead, %v; want 0", ahead, err)
			}
			var found bool
			if err := s.pool.QueryRow(ctx, plannedAhead, now.Add(store.ClockAhead).UnixMilli(), now.Add(store.LongestRest).UnixMilli(), now.Add(longestLease).UnixMilli(), int64(never)).Scan(&found); err != nil || found {
				t.Errorf("it would be done again: %v, %v", found, err)
			}
			// The order of the hosts follows: the one that rests, then those with pages due.
			rested := time.Now().Add(store.SetBackRest)
			if l, next, err := s.Claim(ctx, "n", time.Now(), time.Minute); l != nil || err != nil || next.After(rested) {
				t.Errorf("claimed %+v, next %v, %v", l, next, err)
			}
			l = claim(rested)
			if l.Host.Name != "h10" || l.Host.Next.After(rested) {
				t.Errorf("claimed %+v", l.Host)
			}
			done(l)
			if l, next, err := s.Claim(ctx, "n", rested, time.Minute); l != nil || err != nil || next.Sub(now).Round(10*time.Second) != time.Hour {
				t.Errorf("claimed %+v, next %v, %v", l, next, err)
			}
		})
	}
}
