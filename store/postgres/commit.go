package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// Add implements store.Store.
func (s *Store) Add(ctx context.Context, found []store.Found) (int, error) {
	var p part
	p.gatherFound(found, s.known)
	if p.isEmpty() {
		return 0, nil
	}
	err := s.writeTransaction(ctx, []*part{&p})
	if err != nil {
		return 0, fmt.Errorf("store: add %d URLs: %w", len(found), err)
	}
	s.known.cacheKeys(p.keys)
	return int(p.added), nil
}

// Commit implements store.Store.
func (s *Store) Commit(ctx context.Context, l *store.Lease, in *store.Batch) (int, error) {
	return s.commitBatch(ctx, l, in, false)
}

// Finish implements store.Finisher. Nobody waits for the host, so that a moment
// passes until what other agents finish is written along.
func (s *Store) Finish(ctx context.Context, l *store.Lease, in *store.Batch) (int, error) {
	return s.commitBatch(ctx, l, in, true)
}

func (s *Store) commitBatch(ctx context.Context, l *store.Lease, in *store.Batch, release bool) (int, error) {
	h, work, err := s.heldLease(l)
	if err != nil {
		return 0, err
	}
	fail := func(err error) (int, error) {
		err = s.forgetIfLost(h, fmt.Errorf("store: commit %d pages of %s: %w", len(in.Visits), l.Host.Name, err))
		if release && !store.IsInputError(err) { // best effort: the lease ends by itself
			_ = s.Release(ctx, l)
		}
		return 0, err
	}
	p := &part{own: &h, next: s.databaseMillis(in.Host.Next), release: release}
	p.gatherFound(in.Found, s.known)
	s.mu.Lock()
	err = p.gatherVisits(in.Visits, work.taken)
	p.number = work.batch + 1
	s.mu.Unlock()
	if err != nil {
		return fail(err)
	}
	if p.record, err = json.Marshal(&in.Host); err != nil {
		return fail(&store.HostError{Host: in.Host.Name, Err: err})
	}
	if err := s.commits.writeTogether(ctx, p, !release); err != nil {
		return fail(err)
	}
	if p.err != nil {
		return fail(p.err)
	}
	s.known.cacheKeys(p.keys)
	s.mu.Lock()
	defer s.mu.Unlock()
	work.batch = p.number
	for _, r := range p.visits {
		delete(work.taken, joinKey(r.host, r.url))
	}
	if release {
		delete(s.held, h)
	}
	return int(p.added), nil
}

// writeAll writes the parts of many callers in one transaction; where that
// cannot be done, each in its own, so that nobody fails by what another wants
// written.
func (s *Store) writeAll(ctx context.Context, parts []*part) error {
	err := s.writeTransaction(ctx, parts)
	if err == nil || len(parts) == 1 || isTransient(err) || ctx.Err() != nil {
		return err
	}
	for _, p := range parts {
		p.err = s.writeTransaction(ctx, []*part{p})
	}
	return nil
}

// writeTransaction is one transaction. Parts whose lease is lost have ErrLease in err; all
// others are written.
func (s *Store) writeTransaction(ctx context.Context, parts []*part) error {
	settled := s.takeSettled()
	var woken *toWake
	err := s.inTransaction(ctx, func(tx pgx.Tx) error {
		for _, p := range parts {
			p.done, p.err, p.added = false, nil, 0
		}
		w := writer{tx: tx, parts: parts, lane: s.config.Node, leased: map[int64]*part{}, b: mergeParts(parts), settled: settled}
		for _, p := range parts {
			if p.own != nil {
				w.leased[p.own.host] = p
			}
		}
		err := w.writeParts(ctx)
		woken = w.toWake
		return err
	})
	if err == nil {
		s.forgetSettled(settled)
		s.settleHosts(ctx, woken)
	}
	if err == nil && len(parts) == 1 {
		return parts[0].err
	}
	return err
}

// writer is one transaction.
type writer struct {
	tx     pgx.Tx
	lane   string
	parts  []*part
	leased map[int64]*part // parts with a lease by host
	b      *batch
	hosts  map[int64]*locked
	sum    tally

	touched map[int64]bool // hosts to be looked at afterwards
	settled []int64        // rows of wakes that are done with
	toWake  *toWake
}

func (w *writer) writeParts(ctx context.Context) error {
	if err := w.lockLeasedHosts(ctx); err != nil {
		return err
	}
	w.dropInvalid()
	if len(w.parts) == 0 {
		return nil
	}
	if err := w.insertAndMove(ctx); err != nil {
		return err
	}
	var q pgx.Batch
	w.markWoken(&q)
	w.queueVisitWrites(&q)
	w.queueLogWrites(&q)
	w.queueLeaseWrites(&q)
	w.sum.queueTally(&q)
	return w.tx.SendBatch(ctx, &q).Close()
}

// dropInvalid drops the parts that are not to be written: those that have been, and
// those whose lease is lost.
func (w *writer) dropInvalid() {
	kept := make([]*part, 0, len(w.parts))
	for _, p := range w.parts {
		if p.own != nil {
			l := w.hosts[p.own.host]
			switch {
			case l == nil || uint64(l.token) != p.own.token:
				p.err = store.ErrLease
			case l.batch == p.number:
				p.done, p.added = true, l.added
			case l.leased == 0:
				p.err = store.ErrLease
			}
		}
		if p.err == nil && !p.done {
			kept = append(kept, p)
		}
	}
	if len(kept) < len(w.parts) {
		w.parts, w.b = kept, mergeParts(kept)
	}
}

const (
	// updatePages keeps the due of a page that was asked for while it was out (hastenPages).
	updatePages = `
update pages p set state = t.state, ord = t.ord, record = t.record, version = p.version + 1, refetch = p.refetch and not t.changed,
	due = case when t.due > 0 and p.asked > t.asked then least(t.due, p.asked) else t.due end
from unnest($1::bigint[], $2::bigint[], $3::smallint[], $4::bigint[], $5::bigint[], $6::bytea[], $7::boolean[], $8::bigint[])
	as t (host, url, state, ord, due, record, changed, asked)
where p.host = t.host and p.url = t.url`
	insertLinks = `
insert into links (host, url, targets)
select host, url, targets from unnest($1::bigint[], $2::bigint[], $3::bytea[]) as t (host, url, targets)
on conflict (host, url) do update set targets = excluded.targets`
	insertVisits = `
insert into visits (at, host, url, changed, status, bytes, took)
select at, host, url, changed, status, bytes, took
from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::boolean[], $5::integer[], $6::bigint[], $7::bigint[]) as t (at, host, url, changed, status, bytes, took)
on conflict (at, host, url) do nothing`
	insertInbox = `
insert into inbox (host, url, lane, at, n)
select host, url, $3, at, n from unnest($1::bigint[], $2::bigint[], $4::bigint[], $5::integer[]) as t (host, url, at, n)
on conflict (host, url) do update set lane = excluded.lane, at = excluded.at, n = excluded.n`
	insertAliases = `
insert into aliases (target_host, target_url, host, url)
select target_host, target_url, host, url from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]) as t (target_host, target_url, host, url)
on conflict (target_host, target_url, host, url) do nothing`
	// feedAliases puts pages into the inbox that name one of some as canonical; those that
	// are in an inbox already are indexed by their present records.
	feedAliases = `
insert into inbox (host, url, lane, at, n)
select distinct a.host, a.url, $3::text, $4::bigint, 0 from aliases a join unnest($1::bigint[], $2::bigint[]) as t (host, url)
	on a.target_host = t.host and a.target_url = t.url
limit $5
on conflict (host, url) do nothing`
	insertTally = `
insert into tally (id, hosts, urls, fresh, ok, redirect, gone, blocked, failed, excluded)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`
	updateHosts = `
update hosts h set record = t.record, next = t.next, batch = t.number, added = t.added
from unnest($1::bigint[], $2::bytea[], $3::bigint[], $4::bigint[], $5::bigint[]) as t (host, record, next, number, added)
where h.host = t.host`
	// finishHosts is updateHosts and the end of the leases; the transaction sees
	// what it has queued itself, and holds the locks that keep others from queueing.
	finishHosts = `
update hosts h set record = q.record, next = q.next, batch = q.number, added = q.added, leased = 0, node = '', turn = $6, fresh = q.fresh,
	ready = case when q.fresh then q.next when q.due is null then $7 else greatest(q.next, q.due) end
from (select t.host, t.record, t.next, t.number, t.added, exists (select 1 from pages p where p.host = t.host and p.ord > 0) as fresh,
	(select min(p.due) from pages p where p.host = t.host and p.due > 0) as due
	from unnest($1::bigint[], $2::bytea[], $3::bigint[], $4::bigint[], $5::bigint[]) as t (host, record, next, number, added)) q
where h.host = q.host`
)

// queueVisitWrites writes the records of visited pages.
func (w *writer) queueVisitWrites(q *pgx.Batch) {
	var v []row
	for _, p := range w.parts {
		for i := range p.visits {
			w.sum.tallyVisit(&p.visits[i], p.was[i])
		}
		v = append(v, p.visits...)
	}
	if len(v) == 0 {
		return
	}
	q.Queue(
		updatePages, columnOf(v, func(r *row) int64 { return r.host }), columnOf(v, func(r *row) int64 { return r.url }), columnOf(v, func(r *row) int16 { return r.state }),
		columnOf(v, func(r *row) int64 { return r.ord }), columnOf(v, func(r *row) int64 { return r.due }), columnOf(v, func(r *row) []byte { return r.record }),
		columnOf(v, func(r *row) bool { return r.changed }), columnOf(v, func(r *row) int64 { return r.asked }),
	).Exec(expectRows(int64(len(v))))
}

// entry is a visit in the log.
type entry struct {
	host, url int64
	n         int
	visit     *store.Visit
}

// queueLogWrites writes links and feed of what changed, and the history of requests.
func (w *writer) queueLogWrites(q *pgx.Batch) {
	var changed, feed, logged, aliases, targets []entry
	for _, p := range w.parts {
		for _, i := range p.feed {
			e := entry{p.own.host, p.urls[i], i, &p.source[i]}
			if feed = append(feed, e); e.visit.Alias != (weburl.Key{}) {
				aliases = append(aliases, e)
			}
		}
		for i := range p.source {
			if p.source[i].Retarget {
				targets = append(targets, entry{p.own.host, p.urls[i], i, &p.source[i]})
			}
		}
		for _, i := range p.changed {
			changed = append(changed, entry{p.own.host, p.urls[i], i, &p.source[i]})
		}
		for _, i := range p.logged {
			logged = append(logged, entry{p.own.host, p.urls[i], i, &p.source[i]})
		}
	}
	host, url := func(e *entry) int64 { return e.host }, func(e *entry) int64 { return e.url }
	if c := changed; len(c) > 0 {
		q.Queue(insertLinks, columnOf(c, host), columnOf(c, url), columnOf(c, func(e *entry) []byte {
			targets := make([]byte, 0, 16*len(e.visit.Links))
			for _, k := range e.visit.Links {
				targets = append(targets, k[:]...)
			}
			return targets
		}))
	}
	if f := feed; len(f) > 0 {
		q.Queue(insertInbox, columnOf(f, host), columnOf(f, url), w.lane, columnOf(f, func(e *entry) int64 { return arrivalMillis(e.visit) }), columnOf(f, func(e *entry) int32 { return int32(e.n) }))
	}
	if a := aliases; len(a) > 0 {
		q.Queue(
			insertAliases, columnOf(a, func(e *entry) int64 { return Half(e.visit.Alias[:8]) }), columnOf(a, func(e *entry) int64 { return Half(e.visit.Alias[8:]) }), columnOf(a, host), columnOf(a, url),
		)
	}
	if t := targets; len(t) > 0 {
		q.Queue(feedAliases, columnOf(t, host), columnOf(t, url), w.lane, arrivalMillis(t[0].visit), store.MaxAliases)
	}
	if g := logged; len(g) > 0 {
		q.Queue(
			insertVisits, columnOf(g, func(e *entry) int64 { return orderedMillis(e.visit.Arrived) }), columnOf(g, host), columnOf(g, url), columnOf(g, func(e *entry) bool { return e.visit.Changed }),
			columnOf(g, func(e *entry) int32 { return int32(e.visit.Page.Status) }), columnOf(g, func(e *entry) int64 { return e.visit.Page.Bytes }),
			columnOf(g, func(e *entry) int64 { return int64(e.visit.Took) }),
		)
	}
}

// queueLeaseWrites writes the records of the leased hosts and gives back those that are
// done with.
func (w *writer) queueLeaseWrites(q *pgx.Batch) {
	var going, ending []*part
	for _, p := range w.parts {
		switch {
		case p.own == nil:
		case p.release:
			ending = append(ending, p)
		default:
			going = append(going, p)
		}
	}
	columns := func(parts []*part) []any {
		return []any{
			columnOf(parts, func(p **part) int64 { return (*p).own.host }), columnOf(parts, func(p **part) []byte { return (*p).record }), columnOf(parts, func(p **part) int64 { return (*p).next }),
			columnOf(parts, func(p **part) int64 { return (*p).number }), columnOf(parts, func(p **part) int64 { return (*p).added }),
		}
	}
	if len(going) > 0 {
		q.Queue(updateHosts, columns(going)...)
	}
	if len(ending) > 0 {
		q.Queue(finishHosts, append(columns(ending), turnNow(), int64(never))...)
	}
}

func (t *tally) queueTally(q *pgx.Batch) {
	if *t == (tally{}) {
		return
	}
	q.Queue(insertTally, randomKey(), t.hosts, t.urls, t.fresh, t.states[1], t.states[2], t.states[3], t.states[4], t.states[5], t.states[6])
}
