package postgres

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// locked is a leased host's row under a lock.
type locked struct {
	leased, token, batch, added int64
}

const lockLeased = "select host, leased, token, batch, added from hosts where host = any($1) order by host for update"

// lockLeasedHosts locks the rows of the leased hosts in the order of their keys. Rows of other
// hosts are not locked: who queues pages there has the hosts looked at afterwards
// (settleHosts), so that no host's agent waits for those who find URLs on it.
func (w *writer) lockLeasedHosts(ctx context.Context) error {
	w.hosts = map[int64]*locked{}
	if len(w.leased) == 0 {
		return nil
	}
	hosts := make([]int64, 0, len(w.leased))
	for h := range w.leased {
		hosts = append(hosts, h)
	}
	slices.Sort(hosts)
	rows, err := w.tx.Query(ctx, lockLeased, hosts)
	if err != nil {
		return err
	}
	var host int64
	var l locked
	_, err = pgx.ForEachRow(rows, []any{&host, &l.leased, &l.token, &l.batch, &l.added}, func() error {
		row := l
		w.hosts[host] = &row
		return nil
	})
	return err
}

const (
	insertHosts = `
insert into hosts (host, name, fresh, ready, turn)
select host, name, true, 0, $3 from unnest($1::bigint[], $2::text[]) as t (host, name)
on conflict (host) do nothing
returning host`
	insertPages = `
insert into pages (host, url, depth, ord, address, origin)
select host, url, depth, ord, address, origin
from unnest($1::bigint[], $2::bigint[], $3::integer[], $4::bigint[], $5::text[], $6::text[]) as t (host, url, depth, ord, address, origin)
on conflict (host, url) do nothing
returning host, url`
	lockPages = `
select from pages p join unnest($1::bigint[], $2::bigint[]) as t (host, url) on p.host = t.host and p.url = t.url
order by p.host, p.url for update of p`
	// hastenPages moves revisits forward. Pages of a leased host may be out: the commit
	// of their visit sees by asked that they were asked for after they were taken.
	hastenPages = `
update pages p set refetch = p.refetch or t.refetch and p.ord = 0, asked = case when t.mark then greatest(t.due, p.asked + 1) else p.asked end,
	due = case when p.ord = 0 and (p.due = 0 or p.due > t.due) then t.due else p.due end
from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::boolean[], $5::boolean[]) as t (host, url, due, refetch, mark)
where p.host = t.host and p.url = t.url and t.due > 0 and (p.ord = 0 and (p.due > t.due or t.refetch)
	or t.mark and (p.ord > 0 or p.due > 0) and exists (select 1 from hosts h where h.host = t.host and h.leased > 0))`
	promotePages = `
update pages p set ord = t.ord from unnest($1::bigint[], $2::bigint[], $3::bigint[]) as t (host, url, ord)
where p.host = t.host and p.url = t.url and t.ord > 0 and p.ord > t.ord`
)

// insertAndMove inserts what is new and moves what is known, and notes the hosts that are to
// be looked at when the transaction has ended.
func (w *writer) insertAndMove(ctx context.Context) error {
	w.touched = map[int64]bool{}
	var q pgx.Batch
	made := w.insertHosts(&q)
	w.insertPages(&q)
	if m := w.b.moves; len(m) > 0 {
		w.lockPages(&q)
		h, u := columnOf(m, func(m *move) int64 { return m.host }), columnOf(m, func(m *move) int64 { return m.url })
		q.Queue(hastenPages, h, u, columnOf(m, func(m *move) int64 { return m.due }), columnOf(m, func(m *move) bool { return m.refetch }), columnOf(m, func(m *move) bool { return m.mark }))
		q.Queue(promotePages, h, u, columnOf(m, func(m *move) int64 { return m.ord }))
		for _, host := range h {
			w.touched[host] = true
		}
	}
	if q.Len() > 0 {
		if err := w.tx.SendBatch(ctx, &q).Close(); err != nil {
			return err
		}
	}
	for host := range made { // it can be claimed with all its pages
		delete(w.touched, host)
	}
	for host, p := range w.leased {
		if p.err != nil || p.done {
			continue
		}
		if delete(w.touched, host); p.release {
			w.touched[host] = true
		}
	}
	return nil
}

// lockPages locks the pages that are moved or were visited in the order of their
// keys, in which other transactions lock them, too.
func (w *writer) lockPages(q *pgx.Batch) {
	type key struct{ host, url int64 }
	var keys []key
	for _, m := range w.b.moves {
		keys = append(keys, key{m.host, m.url})
	}
	for _, p := range w.parts {
		for i := range p.visits {
			keys = append(keys, key{p.visits[i].host, p.visits[i].url})
		}
	}
	slices.SortFunc(keys, func(a, b key) int { return cmp.Or(cmp.Compare(a.host, b.host), cmp.Compare(a.url, b.url)) })
	q.Queue(lockPages, columnOf(keys, func(k *key) int64 { return k.host }), columnOf(keys, func(k *key) int64 { return k.url }))
}

// insertHosts queues the hosts that may be new; made holds those that are, once the
// batch was sent.
func (w *writer) insertHosts(q *pgx.Batch) (made map[int64]bool) {
	made = map[int64]bool{}
	var hosts []int64
	var names []string
	for _, h := range w.b.sortedHosts() {
		// A host with nothing but moves has nothing to move if it is not known.
		if w.leased[h] == nil && w.b.insertsInto(h) {
			hosts, names = append(hosts, h), append(names, w.b.names[h])
		}
	}
	if len(hosts) == 0 {
		return made
	}
	q.Queue(insertHosts, hosts, names, turnNow()).Query(func(rows pgx.Rows) error {
		var host int64
		_, err := pgx.ForEachRow(rows, []any{&host}, func() error {
			made[host] = true
			w.sum.hosts++
			return nil
		})
		return err
	})
	return made
}

// insertPages queues the pages that may be new and counts those that are, for
// who found them.
func (w *writer) insertPages(q *pgx.Batch) {
	f := w.b.fresh
	if len(f) == 0 {
		return
	}
	q.Queue(
		insertPages, columnOf(f, func(r *row) int64 { return r.host }), columnOf(f, func(r *row) int64 { return r.url }), columnOf(f, func(r *row) int32 { return r.depth }),
		columnOf(f, func(r *row) int64 { return r.ord }), columnOf(f, func(r *row) string { return r.address }), columnOf(f, func(r *row) string { return r.origin }),
	).Query(func(rows pgx.Rows) error {
		var host, url int64
		_, err := pgx.ForEachRow(rows, []any{&host, &url}, func() error {
			p := w.b.finderOf(host, url)
			if p == nil {
				return errors.New("a page was inserted that was not asked for")
			}
			p.added++
			w.sum.urls++
			w.sum.fresh++
			w.touched[host] = true
			return nil
		})
		return err
	})
}

// turnNow is a host's place among equals from now on.
func turnNow() int64 { return time.Now().UnixMicro() }
