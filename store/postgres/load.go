package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

var (
	_ store.Source = (*Store)(nil)
	_ store.Target = (*Store)(nil)
)

// ownSettings belong to a database and are not copied.
var ownSettings = []string{idName, checkedSetting, loadingSetting}

// ErrAlive is the error of an order that living nodes forbid.
var ErrAlive = errors.New("nodes work on this database: stop them first")

// Snapshot is the store as it was at one moment, for copies while nodes work.
type Snapshot struct {
	reader
	tx pgx.Tx
}

// Snapshot begins one; Close ends it. The longer it lasts, the more dead rows
// the database keeps meanwhile.
func (s *Store) Snapshot(ctx context.Context) (*Snapshot, error) {
	tx, err := s.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return nil, fmt.Errorf("store: snapshot: %w", err)
	}
	// The caller works between two slices, such as writing to a slow disk.
	if _, err := tx.Exec(ctx, "set local idle_in_transaction_session_timeout = '10min'"); err != nil {
		return nil, errors.Join(fmt.Errorf("store: snapshot: %w", err), tx.Rollback(ctx))
	}
	return &Snapshot{reader{q: tx}, tx}, nil
}

// Close ends the snapshot.
func (s *Snapshot) Close(ctx context.Context) error { return s.tx.Rollback(ctx) }

// Settings implements store.Source.
func (s reader) Settings(ctx context.Context, f func(string, []byte) error) error {
	var all []store.Setting
	err := s.retryReads(ctx, func() error {
		rows, err := s.q.Query(ctx, "select name, value from settings where not (name = any($1)) order by name", ownSettings)
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, pgx.RowToStructByPos[store.Setting])
		return err
	})
	if err != nil {
		return fmt.Errorf("store: settings: %w", err)
	}
	for _, v := range all {
		if err := f(v.Name, v.Value); err != nil {
			return err
		}
	}
	return nil
}

// Idle fails while nodes work on the database, or agents hold hosts.
func (s *Store) Idle(ctx context.Context, now int64) error {
	var nodes int
	if err := s.pool.QueryRow(ctx, "select count(*) from nodes where until >= $1", now).Scan(&nodes); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if nodes > 0 {
		return fmt.Errorf("%w (%d are alive)", ErrAlive, nodes)
	}
	return nil
}

const (
	loadHosts = "insert into hosts (host, name, record, next, fresh, ready) select host, name, record, next, false, $5 from unnest($1::bigint[], $2::text[], $3::bytea[], $4::bigint[]) as t (host, name, record, next)"
	loadPages = `
insert into pages (host, url, state, depth, ord, due, address, origin, record, version)
select host, url, state, depth, ord, due, address, origin, record, case when state = 0 then 0 else 1 end
from unnest($1::bigint[], $2::bigint[], $3::smallint[], $4::integer[], $5::bigint[], $6::bigint[], $7::text[], $8::text[], $9::bytea[])
	as t (host, url, state, depth, ord, due, address, origin, record)`
	loadLinks  = "insert into links (host, url, targets) select host, url, targets from unnest($1::bigint[], $2::bigint[], $3::bytea[]) as t (host, url, targets)"
	loadVisits = `
insert into visits (at, host, url, changed, status, bytes, took)
select at, host, url, changed, status, bytes, took
from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::boolean[], $5::integer[], $6::bigint[], $7::bigint[]) as t (at, host, url, changed, status, bytes, took)
on conflict (at, host, url) do nothing`
	// wakeHosts lets hosts of a range of keys be claimed when they have work.
	wakeHosts = `
update hosts h set fresh = q.fresh, ready = case when q.fresh then h.next when q.due is null then $3 else greatest(h.next, q.due) end
from (select h2.host, exists (select 1 from pages p where p.host = h2.host and p.ord > 0) as fresh,
	(select min(due) from pages p where p.host = h2.host and p.due > 0) as due from hosts h2 where h2.host = any($1) and h2.leased <= $2) q
where h.host = q.host`
)

// loadingSetting is there from the first part of a copy to its end.
const loadingSetting = "loading"

// checkWhole fails for a database into which a copy was begun and not finished.
func (s *Store) checkWhole(ctx context.Context) error {
	v, err := s.Get(ctx, loadingSetting)
	if err == nil && v != nil {
		err = fmt.Errorf("%w: make the database anew and restore or migrate again", store.ErrPartial)
	}
	return err
}

// Load implements store.Target.
func (s *Store) Load(ctx context.Context, p *store.Part) error {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var q pgx.Batch
		var sum tally
		if err := errors.Join(queueHosts(&q, p.Hosts), queuePages(&q, p.Pages, &sum), queueVisits(&q, p.Visits)); err != nil {
			return err
		}
		sum.hosts = int64(len(p.Hosts))
		q.Queue("insert into settings (name, value) values ($1, $2) on conflict (name) do nothing", loadingSetting, []byte("1"))
		if l := p.Links; len(l) > 0 {
			q.Queue(loadLinks, columnOf(l, func(l *store.PageLinks) int64 { return Half(l.From[:8]) }), columnOf(l, func(l *store.PageLinks) int64 { return Half(l.From[8:]) }),
				columnOf(l, func(l *store.PageLinks) []byte {
					to := make([]byte, 0, 16*len(l.To))
					for _, k := range l.To {
						to = append(to, k[:]...)
					}
					return to
				}))
		}
		for _, v := range p.Settings {
			if slices.Contains(ownSettings, v.Name) {
				continue
			}
			q.Queue("insert into settings (name, value) values ($1, $2) on conflict (name) do update set value = excluded.value", v.Name, append([]byte{}, v.Value...))
		}
		sum.queueTally(&q)
		return tx.SendBatch(ctx, &q).Close()
	})
	if isDuplicate(err) {
		return fmt.Errorf("store: %w", store.ErrNotEmpty)
	}
	if err != nil {
		return fmt.Errorf("store: load: %w", err)
	}
	return nil
}

func queueHosts(q *pgx.Batch, hosts []store.Host) error {
	if len(hosts) == 0 {
		return nil
	}
	records := make([][]byte, len(hosts))
	for i := range hosts {
		var err error
		if records[i], err = json.Marshal(&hosts[i]); err != nil {
			return fmt.Errorf("host %s: %w", hosts[i].Name, err)
		}
	}
	q.Queue(loadHosts, columnOf(hosts, func(h *store.Host) int64 { return hostKey(h.Name) }), columnOf(hosts, func(h *store.Host) string { return h.Name }), records,
		columnOf(hosts, func(h *store.Host) int64 { return orderedMillis(h.Next) }), int64(never))
	return nil
}

func queuePages(q *pgx.Batch, pages []store.Page, sum *tally) error {
	if len(pages) == 0 {
		return nil
	}
	rows := make([]row, len(pages))
	for i := range pages {
		var err error
		if rows[i], err = rowOf(pages[i]); err != nil {
			return fmt.Errorf("page %q: %w", pages[i].URL, err)
		}
		r := &rows[i]
		sum.urls++
		if r.ord > 0 {
			sum.fresh++
		}
		if r.state == 0 {
			r.record = nil // a page never visited is all in its columns
		} else {
			sum.states[r.state]++
		}
	}
	queueAliases(q, pages)
	q.Queue(loadPages, columnOf(rows, func(r *row) int64 { return r.host }), columnOf(rows, func(r *row) int64 { return r.url }), columnOf(rows, func(r *row) int16 { return r.state }),
		columnOf(rows, func(r *row) int32 { return r.depth }), columnOf(rows, func(r *row) int64 { return r.ord }), columnOf(rows, func(r *row) int64 { return r.due }),
		columnOf(rows, func(r *row) string { return r.address }), columnOf(rows, func(r *row) string { return r.origin }), columnOf(rows, func(r *row) []byte { return r.record }))
	return nil
}

// queueAliases notes which pages name others as canonical.
func queueAliases(q *pgx.Batch, pages []store.Page) {
	type alias struct{ target, page weburl.Key }
	var all []alias
	for i := range pages {
		if target, ok := pages[i].AliasOf(); ok {
			all = append(all, alias{target, pages[i].Key})
		}
	}
	if len(all) == 0 {
		return
	}
	q.Queue(insertAliases, columnOf(all, func(a *alias) int64 { return Half(a.target[:8]) }), columnOf(all, func(a *alias) int64 { return Half(a.target[8:]) }),
		columnOf(all, func(a *alias) int64 { return Half(a.page[:8]) }), columnOf(all, func(a *alias) int64 { return Half(a.page[8:]) }))
}

func queueVisits(q *pgx.Batch, visits []store.VisitLog) error {
	if len(visits) == 0 {
		return nil
	}
	hosts, urls := make([]int64, len(visits)), make([]int64, len(visits))
	for i := range visits {
		u, err := weburl.Parse(visits[i].URL)
		if err != nil {
			return fmt.Errorf("visit of %q: %w", visits[i].URL, err)
		}
		hosts[i], urls[i] = splitKey(u.Key())
	}
	q.Queue(loadVisits, columnOf(visits, func(v *store.VisitLog) int64 { return orderedMillis(v.Time) }), hosts, urls, columnOf(visits, func(v *store.VisitLog) bool { return v.Changed }),
		columnOf(visits, func(v *store.VisitLog) int32 { return int32(v.Status) }), columnOf(visits, func(v *store.VisitLog) int64 { return v.Bytes }),
		columnOf(visits, func(v *store.VisitLog) int64 { return int64(v.Took) }))
	return nil
}

// Loaded implements store.Target: hosts are woken a slice at a time.
func (s *Store) Loaded(ctx context.Context) error {
	if err := s.Put(ctx, idName, []byte(store.NewID())); err != nil {
		return err
	}
	if err := s.loadOrReadID(ctx); err != nil {
		return fmt.Errorf("store: loaded: %w", err)
	}
	after := int64(math.MinInt64)
	for {
		rows, err := s.pool.Query(ctx, "select host from hosts where host > $1 order by host limit $2", after, slice)
		if err != nil {
			return fmt.Errorf("store: loaded: %w", err)
		}
		hosts, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		if err != nil {
			return fmt.Errorf("store: loaded: %w", err)
		}
		if len(hosts) == 0 {
			if _, err := s.pool.Exec(ctx, "delete from settings where name = $1", loadingSetting); err != nil {
				return fmt.Errorf("store: loaded: %w", err)
			}
			return nil
		}
		if _, err := s.pool.Exec(ctx, wakeHosts, hosts, 0, int64(never)); err != nil {
			return fmt.Errorf("store: loaded: %w", err)
		}
		after = hosts[len(hosts)-1]
	}
}
