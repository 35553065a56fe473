package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/freshet/freshet/store"
)

// longestLease is longer than any lease of a host, a slot or a place is given.
const longestLease = time.Hour

// plannedAhead reports whether the database holds times that a clock which was
// ahead has left there. Each part is answered from an index.
const plannedAhead = `
select exists (select 1 from visits where at > $1) or exists (select 1 from hosts where ready > $2 and ready < $4 and next > $2)
	or exists (select 1 from hosts where leased > $3)`

// isClockSetBack notices when this process's clock was set back.
func (s *Store) isClockSetBack(now time.Time) bool {
	now = now.Round(0) // what the clock shows, not the time that passed
	s.mu.Lock()
	defer s.mu.Unlock()
	back := now.Add(store.ClockAhead).Before(s.clock)
	if back || now.After(s.clock) {
		s.clock = now
	}
	return back
}

// mendAhead mends what a process left that died while its clock was ahead.
func (s *Store) mendAhead(ctx context.Context, now time.Time) error {
	var found bool
	err := s.retryStore(ctx, func() error {
		return s.pool.QueryRow(ctx, plannedAhead, now.Add(store.ClockAhead).UnixMilli(), now.Add(store.LongestRest).UnixMilli(), now.Add(longestLease).UnixMilli(), int64(never)).Scan(&found)
	})
	if err != nil || !found {
		return err
	}
	return s.repairSkew(ctx, now)
}

// repairSkew plans anew what was planned while a clock was ahead: pages (store.PlanAnew),
// hosts that would rest too long, leases that would never end, visits in the log. It
// reads all pages that are due later, which happens only after a clock was set
// back. Any number of processes may do it at once, beside those at work.
func (s *Store) repairSkew(ctx context.Context, now time.Time) error {
	err := s.mendLeases(ctx, now)
	if err == nil {
		err = s.replanPagesInSlices(ctx, now)
	}
	if err == nil {
		err = s.mendHosts(ctx, now)
	}
	if err == nil { // last: what is in the log makes a process begin anew that died meanwhile
		err = s.execRetrying(ctx, mendVisits, now.Add(store.ClockAhead).UnixMilli(), now.UnixMilli())
	}
	if err != nil {
		return fmt.Errorf("plan anew after the clock was set back: %w", err)
	}
	return nil
}

func (s *Store) execRetrying(ctx context.Context, sql string, args ...any) error {
	return s.retryStore(ctx, func() error { _, err := s.pool.Exec(ctx, sql, args...); return err })
}

// Budgets are kept by the database's clock, the others by that of the nodes.
const (
	mendNodes   = "delete from nodes where until > $1"
	mendSlots   = "update slots set node = '', until = 0 where until > $1"
	mendPlaces  = "delete from places where until > $1"
	mendBudgets = "update budgets set next = (extract(epoch from now()) * 1000000)::bigint where next > (extract(epoch from now()) * 1000000)::bigint + $1"
	endLeases   = "update hosts set leased = $2, ready = $2 where leased > $1"
	mendVisits  = `
with gone as (delete from visits where at > $1 returning at, host, url, changed, status, bytes, took)
insert into visits (at, host, url, changed, status, bytes, took)
select $2::bigint, host, url, changed, status, bytes, took from gone
on conflict (at, host, url) do nothing`
)

// mendLeases ends leases that were given by a clock that was ahead: their holders
// are fenced off, if they still live.
func (s *Store) mendLeases(ctx context.Context, now time.Time) error {
	most := now.Add(longestLease).UnixMilli()
	return errors.Join(
		s.execRetrying(ctx, endLeases, most, now.UnixMilli()), s.execRetrying(ctx, mendNodes, most), s.execRetrying(ctx, mendSlots, most), s.execRetrying(ctx, mendPlaces, most),
		s.execRetrying(ctx, mendBudgets, longestLease.Microseconds()),
	)
}

const (
	lateRows    = "select " + rowColumns + " from pages where (host, url) > ($1, $2) and due > $3 order by host, url limit $4"
	thesePages  = "select p.host, p.url, p.state, p.depth, p.ord, p.due, p.address, p.origin, p.record, p.refetch, p.asked, p.version from pages p join unnest($1::bigint[], $2::bigint[]) as t (host, url) on p.host = t.host and p.url = t.url where p.due > 0"
	wakeEarlier = `
update hosts h set ready = greatest(h.next, t.due)
from (select host, min(due) as due from unnest($1::bigint[], $2::bigint[]) as u (host, due) group by host) t
where h.host = t.host and h.leased = 0 and h.ready > greatest(h.next, t.due)`
)

// replanPagesInSlices plans pages anew, slice by slice.
func (s *Store) replanPagesInSlices(ctx context.Context, now time.Time) error {
	host, url := int64(math.MinInt64), int64(math.MinInt64)
	for {
		var rows, late []row
		err := s.retryStore(ctx, func() (err error) {
			rows, err = rowsOf(s.pool.Query(ctx, lateRows, host, url, now.Add(store.ClockAhead).UnixMilli(), slice))
			return err
		})
		if err != nil || len(rows) == 0 {
			return err
		}
		host, url = rows[len(rows)-1].host, rows[len(rows)-1].url
		if late, err = planAnew(rows, now); err == nil && len(late) > 0 {
			err = s.inTransaction(ctx, func(tx pgx.Tx) error { return mendRows(ctx, tx, late, now) })
		}
		if err != nil {
			return err
		}
	}
}

func rowsOf(rows pgx.Rows, err error) ([]row, error) {
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(c pgx.CollectableRow) (r row, err error) { return r, c.Scan(r.scanFields()...) })
}

// planAnew returns the rows that are to be changed, as they are to be.
func planAnew(rows []row, now time.Time) ([]row, error) {
	var out []row
	for i := range rows {
		p, err := rows[i].pageOfRow()
		if err != nil {
			return nil, err
		}
		if !store.PlanAnew(&p, now) {
			continue
		}
		host, url := rows[i].host, rows[i].url
		r, err := rowOf(p)
		if err != nil {
			return nil, err
		}
		r.host, r.url, r.asked = host, url, rows[i].asked
		out = append(out, r)
	}
	return out, nil
}

// mendRows changes pages as they are once nobody else can visit them: since they
// were read some may have been.
func mendRows(ctx context.Context, tx pgx.Tx, late []row, now time.Time) error {
	hosts, urls := columnOf(late, func(r *row) int64 { return r.host }), columnOf(late, func(r *row) int64 { return r.url })
	if _, err := tx.Exec(ctx, lockHosts, slices.Compact(slices.Clone(hosts))); err != nil { // sorted by host
		return err
	}
	rows, err := rowsOf(tx.Query(ctx, thesePages, hosts, urls))
	if err == nil {
		late, err = planAnew(rows, now)
	}
	if err != nil || len(late) == 0 {
		return err
	}
	hosts = columnOf(late, func(r *row) int64 { return r.host })
	dues := columnOf(late, func(r *row) int64 { return r.due })
	var q pgx.Batch
	q.Queue(
		updatePages, hosts, columnOf(late, func(r *row) int64 { return r.url }), columnOf(late, func(r *row) int16 { return r.state }),
		columnOf(late, func(r *row) int64 { return r.ord }), dues, columnOf(late, func(r *row) []byte { return r.record }),
		columnOf(late, func(*row) bool { return false }), columnOf(late, func(r *row) int64 { return r.asked }),
	)
	q.Queue(wakeEarlier, hosts, dues)
	return tx.SendBatch(ctx, &q).Close()
}

const (
	restingHosts = "select host from hosts where next > $1 and next < $2 order by host for update"
	restLess     = `
update hosts h set next = $2, ready = case when h.leased > 0 then h.ready when q.fresh then $2 when q.due is null then $3 else greatest($2, q.due) end
from (select t.host, exists (select 1 from pages p where p.host = t.host and p.ord > 0) as fresh,
	(select min(p.due) from pages p where p.host = t.host and p.due > 0) as due
	from unnest($1::bigint[]) as t (host)) q
where h.host = q.host`
)

// mendHosts shortens the rests of hosts that were asked while the clock was ahead.
func (s *Store) mendHosts(ctx context.Context, now time.Time) error {
	return s.inTransaction(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, restingHosts, now.Add(store.LongestRest).UnixMilli(), int64(never))
		if err != nil {
			return err
		}
		hosts, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		if err != nil || len(hosts) == 0 {
			return err
		}
		_, err = tx.Exec(ctx, restLess, hosts, now.Add(store.SetBackRest).UnixMilli(), int64(never))
		return err
	})
}
