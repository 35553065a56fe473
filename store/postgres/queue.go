package postgres

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// locked is a host's row under a lock.
type locked struct {
	fresh        bool
	leased       int64
	ready, next  int64
	token        int64
	batch, added int64
}

const (
	hostColumns = "host, fresh, leased, ready, next, token, batch, added"
	lockShared  = "select " + hostColumns + " from hosts where host = any($1) order by host for share"
	lockWrite   = "select " + hostColumns + " from hosts where host = any($1) order by host for update"
	isFresh     = "select host, fresh from hosts where host = any($1)"
)

// lock locks the rows of all hosts of the batch in the order of their keys: the
// leased ones and those that may have to be woken against everybody, the others
// only against their own agent, who must not take them for exhausted while
// pages are being queued.
func (w *writer) lock(ctx context.Context) error {
	hosts := w.b.hosts()
	before := map[int64]bool{} // host -> fresh, as it was a moment ago
	if foreign := slices.DeleteFunc(slices.Clone(hosts), func(h int64) bool { return w.leased[h] != nil }); len(foreign) > 0 {
		rows, err := w.tx.Query(ctx, isFresh, foreign)
		if err != nil {
			return err
		}
		var host int64
		var fresh bool
		if _, err := pgx.ForEachRow(rows, []any{&host, &fresh}, func() error { before[host] = fresh; return nil }); err != nil {
			return err
		}
	}
	for h := range w.leased {
		if _, also := w.b.names[h]; !also {
			hosts = append(hosts, h)
		}
	}
	slices.Sort(hosts)
	w.hosts = map[int64]*locked{}
	var q pgx.Batch
	var run []int64
	var strong bool
	flush := func() {
		if len(run) == 0 {
			return
		}
		statement := lockShared
		if strong {
			statement = lockWrite
		}
		q.Queue(statement, run).Query(w.locked(strong))
		run = nil
	}
	for _, h := range hosts {
		fresh, known := before[h]
		own := w.leased[h] != nil
		if !known && !own {
			continue
		}
		if want := own || !fresh || w.b.moved[h]; want != strong {
			flush()
			strong = want
		}
		run = append(run, h)
	}
	flush()
	if q.Len() == 0 {
		return nil
	}
	return w.tx.SendBatch(ctx, &q).Close()
}

// locked reads rows of hosts; a host that fell idle before a shared lock was
// had needs the other kind.
func (w *writer) locked(strong bool) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var host int64
		var l locked
		_, err := pgx.ForEachRow(rows, []any{&host, &l.fresh, &l.leased, &l.ready, &l.next, &l.token, &l.batch, &l.added}, func() error {
			if !strong && !l.fresh {
				return errAgain
			}
			row := l
			w.hosts[host] = &row
			return nil
		})
		return err
	}
}

const (
	insertHosts = `
insert into hosts (host, name, fresh, ready, turn)
select host, name, true, 0, $3 from unnest($1::bigint[], $2::text[]) as t (host, name)
on conflict (host) do nothing`
	insertPages = `
insert into pages (host, url, depth, ord, address, origin)
select host, url, depth, ord, address, origin
from unnest($1::bigint[], $2::bigint[], $3::integer[], $4::bigint[], $5::text[], $6::text[]) as t (host, url, depth, ord, address, origin)
on conflict (host, url) do nothing
returning host, url`
	hastenPages = `
update pages p set due = t.due from unnest($1::bigint[], $2::bigint[], $3::bigint[]) as t (host, url, due)
where p.host = t.host and p.url = t.url and t.due > 0 and p.due > t.due and p.ord = 0
returning p.host, p.due`
	promotePages = `
update pages p set ord = t.ord from unnest($1::bigint[], $2::bigint[], $3::bigint[]) as t (host, url, ord)
where p.host = t.host and p.url = t.url and t.ord > 0 and p.ord > t.ord`
)

// queue inserts what is new and moves what is known, and tells from when on
// idle hosts have something to visit: 0 for new pages.
func (w *writer) queue(ctx context.Context) (wake map[int64]int64, err error) {
	wake = map[int64]int64{}
	var q pgx.Batch
	w.insertHosts(&q)
	w.insertPages(&q, wake)
	if m := w.b.moves; len(m) > 0 {
		h, u := column(m, func(m *move) int64 { return m.host }), column(m, func(m *move) int64 { return m.url })
		q.Queue(hastenPages, h, u, column(m, func(m *move) int64 { return m.due })).Query(func(rows pgx.Rows) error {
			var host, due int64
			_, err := pgx.ForEachRow(rows, []any{&host, &due}, func() error {
				if before, ok := wake[host]; !ok || due < before {
					wake[host] = due
				}
				return nil
			})
			return err
		})
		q.Queue(promotePages, h, u, column(m, func(m *move) int64 { return m.ord }))
	}
	if q.Len() == 0 {
		return wake, nil
	}
	return wake, w.tx.SendBatch(ctx, &q).Close()
}

// insertHosts queues the hosts that are new.
func (w *writer) insertHosts(q *pgx.Batch) {
	var hosts []int64
	var names []string
	for _, h := range w.b.hosts() {
		// A host with nothing but moves has nothing to move if it is not known.
		if w.hosts[h] == nil && w.b.queues(h) {
			hosts, names = append(hosts, h), append(names, w.b.names[h])
		}
	}
	if len(hosts) == 0 {
		return
	}
	w.sum.hosts = int64(len(hosts))
	q.Queue(insertHosts, hosts, names, turn()).Exec(func(tag pgconn.CommandTag) error {
		if tag.RowsAffected() < int64(len(hosts)) {
			return errAgain // another queued pages of the same new host first
		}
		return nil
	})
}

// insertPages queues the pages that may be new and counts those that are, for
// who found them.
func (w *writer) insertPages(q *pgx.Batch, wake map[int64]int64) {
	f := w.b.fresh
	if len(f) == 0 {
		return
	}
	q.Queue(
		insertPages, column(f, func(r *row) int64 { return r.host }), column(f, func(r *row) int64 { return r.url }), column(f, func(r *row) int32 { return r.depth }),
		column(f, func(r *row) int64 { return r.ord }), column(f, func(r *row) string { return r.address }), column(f, func(r *row) string { return r.origin }),
	).Query(func(rows pgx.Rows) error {
		var host, url int64
		_, err := pgx.ForEachRow(rows, []any{&host, &url}, func() error {
			p := w.b.finder(host, url)
			if p == nil {
				return errors.New("a page was inserted that was not asked for")
			}
			p.added++
			w.sum.urls++
			w.sum.fresh++
			wake[host] = 0
			return nil
		})
		return err
	})
}

const wakeHost = "update hosts set fresh = $2, ready = $3 where host = $1"

// wake lets idle hosts be claimed.
func (w *writer) wake(q *pgx.Batch, wake map[int64]int64) {
	hosts := make([]int64, 0, len(wake))
	for host := range wake {
		hosts = append(hosts, host)
	}
	slices.Sort(hosts)
	for _, host := range hosts {
		due, l := wake[host], w.hosts[host]
		if p := w.leased[host]; p != nil && p.err == nil { // its own record follows
			continue
		}
		if l == nil || l.fresh && l.leased == 0 { // inserted by this batch, or awake
			continue
		}
		fresh, ready := l.fresh || due == 0, l.ready
		if l.leased == 0 {
			ready = min(ready, max(l.next, due))
		}
		if fresh != l.fresh || ready != l.ready {
			q.Queue(wakeHost, host, fresh, ready)
		}
	}
}

// turn is a host's place among equals from now on.
func turn() int64 { return time.Now().UnixMicro() }
