package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// Add implements store.Store.
func (s *Store) Add(ctx context.Context, found []store.Found) (int, error) {
	var b batch
	b.found(found, s.known)
	if len(b.fresh)+len(b.moves) == 0 {
		return 0, nil
	}
	var w writer
	err := s.tx(ctx, func(tx pgx.Tx) error {
		w = writer{tx: tx, b: &b}
		return w.write(ctx)
	})
	if err != nil {
		return 0, fmt.Errorf("store: add %d URLs: %w", len(found), err)
	}
	s.known.add(b.keys)
	return int(w.sum.urls), nil
}

// Commit implements store.Store.
func (s *Store) Commit(ctx context.Context, l *store.Lease, in *store.Batch) (int, error) {
	h, work, err := s.lease(l)
	if err != nil {
		return 0, err
	}
	fail := func(err error) (int, error) {
		return 0, s.lost(h, fmt.Errorf("store: commit %d pages of %s: %w", len(in.Visits), l.Host.Name, err))
	}
	var b batch
	b.found(in.Found, s.known)
	s.mu.Lock()
	err = b.visited(in.Visits, h, work.taken)
	number := work.batch + 1
	s.mu.Unlock()
	if err != nil {
		return fail(err)
	}
	record, err := json.Marshal(&in.Host)
	if err != nil {
		return fail(err)
	}
	var w writer
	err = s.tx(ctx, func(tx pgx.Tx) error {
		w = writer{tx: tx, b: &b, own: &h, number: number, record: record, next: millis(in.Host.Next), lane: s.config.Node}
		return w.write(ctx)
	})
	if err != nil {
		return fail(err)
	}
	s.known.add(b.keys)
	s.mu.Lock()
	defer s.mu.Unlock()
	work.batch = number
	for _, r := range b.visits {
		delete(work.taken, join(r.host, r.url))
	}
	return int(w.sum.urls), nil
}

// writer is one transaction.
type writer struct {
	tx pgx.Tx
	b  *batch

	own    *held // nil for Add
	number int64
	record []byte
	next   int64
	lane   string

	done  bool // the batch was committed before, by an attempt whose answer was lost
	hosts map[int64]*locked
	sum   tally
}

// locked is a host's row under a lock.
type locked struct {
	fresh  bool
	leased int64
	ready  int64
	next   int64
}

func (w *writer) write(ctx context.Context) error {
	if err := w.lock(ctx); err != nil || w.done {
		return err
	}
	wake, err := w.queue(ctx)
	if err != nil {
		return err
	}
	var q pgx.Batch
	w.wake(&q, wake)
	if w.own != nil {
		w.visits(&q)
		w.log(&q)
		q.Queue("update hosts set record = $2, next = $3, batch = $4, added = $5 where host = $1", w.own.host, w.record, w.next, w.number, w.sum.urls)
	}
	w.count(&q)
	return w.tx.SendBatch(ctx, &q).Close()
}

const (
	lockOwn    = "select token, leased, batch, added from hosts where host = $1 for update"
	lockShared = "select host, fresh, leased, ready, next from hosts where host = any($1) order by host for share"
	lockWrite  = "select host, fresh, leased, ready, next from hosts where host = any($1) order by host for update"
)

// lock locks the rows of all hosts of the batch in the order of their keys: the
// leased one and those that may have to be woken against everybody, the others
// only against their own agent, who must not take them for exhausted while
// pages are being queued.
func (w *writer) lock(ctx context.Context) error {
	var own int64
	if w.own != nil {
		own = w.own.host
	}
	foreign := w.b.hosts(own)
	before := map[int64]bool{} // host -> fresh, as it was a moment ago
	if len(foreign) > 0 {
		rows, err := w.tx.Query(ctx, "select host, fresh from hosts where host = any($1)", foreign)
		if err != nil {
			return err
		}
		var host int64
		var fresh bool
		if _, err := pgx.ForEachRow(rows, []any{&host, &fresh}, func() error { before[host] = fresh; return nil }); err != nil {
			return err
		}
	}
	w.hosts = map[int64]*locked{}
	var q pgx.Batch
	queue := func(strong bool, run []int64) {
		if len(run) == 0 {
			return
		}
		statement := lockShared
		if strong {
			statement = lockWrite
		}
		q.Queue(statement, run).Query(w.locked(strong))
	}
	var run []int64
	var strong bool
	for _, h := range foreign {
		fresh, known := before[h]
		if !known {
			continue
		}
		if w.own != nil && h > own {
			queue(strong, run)
			run = nil
			w.lockOwn(&q)
			own = never // once
		}
		if want := !fresh || w.b.moved[h]; want != strong {
			queue(strong, run)
			run, strong = nil, want
		}
		run = append(run, h)
	}
	queue(strong, run)
	if w.own != nil && own != never {
		w.lockOwn(&q)
	}
	return w.tx.SendBatch(ctx, &q).Close()
}

// lockOwn checks the fencing token under the lock that keeps it as it is.
func (w *writer) lockOwn(q *pgx.Batch) {
	q.Queue(lockOwn, w.own.host).QueryRow(func(r pgx.Row) error {
		var token, leased, batch, added int64
		if err := r.Scan(&token, &leased, &batch, &added); errors.Is(err, pgx.ErrNoRows) {
			return store.ErrLease
		} else if err != nil {
			return err
		}
		if uint64(token) != w.own.token || leased == 0 {
			return store.ErrLease
		}
		if batch == w.number {
			w.done, w.sum.urls = true, added
		}
		return nil
	})
}

// locked reads rows of hosts; a host that fell idle before a shared lock was
// had needs the other kind.
func (w *writer) locked(strong bool) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var host int64
		var l locked
		_, err := pgx.ForEachRow(rows, []any{&host, &l.fresh, &l.leased, &l.ready, &l.next}, func() error {
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
with new as (
	insert into pages (host, url, depth, ord, address, origin)
	select host, url, depth, ord, address, origin
	from unnest($1::bigint[], $2::bigint[], $3::integer[], $4::bigint[], $5::text[], $6::text[]) as t (host, url, depth, ord, address, origin)
	on conflict (host, url) do nothing
	returning host
)
select host, count(*) from new group by host`
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
	var hosts []int64
	var names []string
	own := int64(never)
	if w.own != nil {
		own = w.own.host
	}
	for _, h := range w.b.hosts(own) {
		// A host with nothing but moves has nothing to move if it is not known.
		if w.hosts[h] == nil && w.queues(h) {
			hosts, names = append(hosts, h), append(names, w.b.names[h])
		}
	}
	inserted := int64(0)
	if len(hosts) > 0 {
		w.sum.hosts = int64(len(hosts))
		q.Queue(insertHosts, hosts, names, time.Now().UnixMicro())
	}
	if f := w.b.fresh; len(f) > 0 {
		q.Queue(
			insertPages, column(f, func(r *row) int64 { return r.host }), column(f, func(r *row) int64 { return r.url }), column(f, func(r *row) int32 { return r.depth }),
			column(f, func(r *row) int64 { return r.ord }), column(f, func(r *row) string { return r.address }), column(f, func(r *row) string { return r.origin }),
		)
	}
	if m := w.b.moves; len(m) > 0 {
		h, u := column(m, func(m *move) int64 { return m.host }), column(m, func(m *move) int64 { return m.url })
		q.Queue(hastenPages, h, u, column(m, func(m *move) int64 { return m.due }))
		q.Queue(promotePages, h, u, column(m, func(m *move) int64 { return m.ord }))
	}
	if q.Len() == 0 {
		return wake, nil
	}
	res := w.tx.SendBatch(ctx, &q)
	defer func() { err = errors.Join(err, res.Close()) }()
	if len(hosts) > 0 {
		tag, err := res.Exec()
		if err != nil {
			return nil, err
		}
		if inserted = tag.RowsAffected(); inserted < int64(len(hosts)) {
			return nil, errAgain // another queued pages of the same new host first
		}
	}
	var host, n int64
	if len(w.b.fresh) > 0 {
		rows, err := res.Query()
		if err != nil {
			return nil, err
		}
		if _, err := pgx.ForEachRow(rows, []any{&host, &n}, func() error { w.sum.urls += n; wake[host] = 0; return nil }); err != nil {
			return nil, err
		}
		w.sum.fresh += w.sum.urls
	}
	if len(w.b.moves) > 0 {
		rows, err := res.Query()
		if err != nil {
			return nil, err
		}
		_, err = pgx.ForEachRow(rows, []any{&host, &n}, func() error {
			if due, ok := wake[host]; !ok || n < due {
				wake[host] = n
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return wake, nil
}

// queues reports whether pages of a host are to be inserted.
func (w *writer) queues(host int64) bool {
	_, found := slices.BinarySearchFunc(w.b.fresh, host, func(r row, h int64) int {
		switch {
		case r.host < h:
			return -1
		case r.host > h:
			return 1
		}
		return 0
	})
	return found
}

// wake lets idle hosts be claimed.
func (w *writer) wake(q *pgx.Batch, wake map[int64]int64) {
	for host, due := range wake {
		l := w.hosts[host]
		if l == nil || l.fresh && l.leased == 0 { // leased by this batch, inserted by it, or awake
			continue
		}
		fresh, ready := l.fresh || due == 0, l.ready
		if l.leased == 0 {
			ready = min(ready, max(l.next, due))
		}
		if fresh != l.fresh || ready != l.ready {
			q.Queue("update hosts set fresh = $2, ready = $3 where host = $1", host, fresh, ready)
		}
	}
}

const (
	updatePages = `
update pages p set state = t.state, ord = t.ord, due = t.due, record = t.record
from unnest($2::bigint[], $3::smallint[], $4::bigint[], $5::bigint[], $6::bytea[]) as t (url, state, ord, due, record)
where p.host = $1 and p.url = t.url`
	insertLinks = `
insert into links (host, url, targets)
select $1, url, targets from unnest($2::bigint[], $3::bytea[]) as t (url, targets)
on conflict (host, url) do update set targets = excluded.targets`
	insertVisits = `
insert into visits (at, host, url, changed, status, bytes, took)
select at, $1, url, changed, status, bytes, took
from unnest($2::bigint[], $3::bigint[], $4::boolean[], $5::integer[], $6::bigint[], $7::bigint[]) as t (at, url, changed, status, bytes, took)
on conflict (at, host, url) do nothing`
	insertInbox = `
insert into inbox (host, url, lane, at, n)
select $1, url, $4, at, n from unnest($2::bigint[], $3::bigint[], $5::integer[]) as t (url, at, n)
on conflict (host, url) do update set lane = excluded.lane, at = excluded.at, n = excluded.n`
	insertTally = `
insert into tally (id, hosts, urls, fresh, ok, redirect, gone, blocked, failed, excluded)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`
)

// visits writes the records of visited pages.
func (w *writer) visits(q *pgx.Batch) {
	v := w.b.visits
	if len(v) == 0 {
		return
	}
	for i := range v {
		w.sum.visit(&v[i], w.b.was[i])
	}
	q.Queue(
		updatePages, w.own.host, column(v, func(r *row) int64 { return r.url }), column(v, func(r *row) int16 { return r.state }),
		column(v, func(r *row) int64 { return r.ord }), column(v, func(r *row) int64 { return r.due }), column(v, func(r *row) []byte { return r.record }),
	).Exec(expect(int64(len(v))))
}

// log writes links and feed of what changed, and the history of requests.
func (w *writer) log(q *pgx.Batch) {
	visit := func(i *int) *store.Visit { return &w.b.source[*i] }
	url := func(i *int) int64 {
		u, err := weburl.Parse(visit(i).Page.URL)
		if err != nil {
			return 0 // rowOf has parsed it before
		}
		_, key := split(u.Key())
		return key
	}
	if c := w.b.changed; len(c) > 0 {
		urls := column(c, url)
		q.Queue(insertLinks, w.own.host, urls, column(c, func(i *int) []byte {
			targets := make([]byte, 0, 16*len(visit(i).Links))
			for _, k := range visit(i).Links {
				targets = append(targets, k[:]...)
			}
			return targets
		}))
		q.Queue(insertInbox, w.own.host, urls, column(c, func(i *int) int64 { return arrived(visit(i)) }), w.lane, column(c, func(i *int) int32 { return int32(*i) }))
	}
	if g := w.b.logged; len(g) > 0 {
		q.Queue(
			insertVisits, w.own.host, column(g, func(i *int) int64 { return millis(visit(i).Arrived) }), column(g, url), column(g, func(i *int) bool { return visit(i).Changed }),
			column(g, func(i *int) int32 { return int32(visit(i).Page.Status) }), column(g, func(i *int) int64 { return visit(i).Page.Bytes }),
			column(g, func(i *int) int64 { return int64(visit(i).Took) }),
		)
	}
}

func (w *writer) count(q *pgx.Batch) {
	t := &w.sum
	if *t == (tally{}) {
		return
	}
	q.Queue(insertTally, random(), t.hosts, t.urls, t.fresh, t.states[1], t.states[2], t.states[3], t.states[4], t.states[5], t.states[6])
}
