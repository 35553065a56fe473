package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/freshet/freshet/store"
)

// renewal asks for a lease to last longer.
type renewal struct {
	held
	until, now int64
	done       bool
}

const renewLeases = `
update hosts h set leased = t.until, ready = t.until from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]) as t (host, token, until, now)
where h.host = t.host and h.token = t.token and h.leased >= t.now
returning h.host, h.token`

// Renew implements store.Store.
func (s *Store) Renew(ctx context.Context, l *store.Lease, now time.Time, ttl time.Duration) error {
	h, _, err := s.lease(l)
	if err != nil {
		return err
	}
	until := now.Add(ttl)
	r := &renewal{held: h, until: s.databaseMillis(until), now: s.databaseMillis(now)}
	if err = s.renewals.do(ctx, r, false); err == nil && !r.done {
		err = store.ErrLease
	}
	if err != nil {
		return s.lost(h, fmt.Errorf("store: renew %s: %w", l.Host.Name, err))
	}
	l.Until = until
	return nil
}

// renewAll renews leases in one statement. Rows are locked in the order of their
// keys, as by all others.
func (s *Store) renewAll(ctx context.Context, all []*renewal) error {
	sorted := slices.Clone(all)
	slices.SortFunc(sorted, func(a, b *renewal) int {
		return cmp.Or(cmp.Compare(a.host, b.host), cmp.Compare(a.token, b.token), cmp.Compare(b.until, a.until))
	})
	// Who asks again before the first answer has come counts once, by the later end.
	sorted = slices.CompactFunc(sorted, func(a, b *renewal) bool { return a.held == b.held })
	hosts := column(sorted, func(r **renewal) int64 { return (*r).host })
	var renewed map[held]bool // by the last attempt: the commit of one before may have failed
	err := s.tx(ctx, func(tx pgx.Tx) error {
		renewed = make(map[held]bool, len(sorted))
		var b pgx.Batch
		b.Queue(lockHosts, hosts)
		b.Queue(
			renewLeases, hosts, column(sorted, func(r **renewal) int64 { return int64((*r).token) }),
			column(sorted, func(r **renewal) int64 { return (*r).until }), column(sorted, func(r **renewal) int64 { return (*r).now }),
		).Query(func(rows pgx.Rows) error {
			var host, token int64
			_, err := pgx.ForEachRow(rows, []any{&host, &token}, func() error {
				renewed[held{host, uint64(token)}] = true
				return nil
			})
			return err
		})
		return tx.SendBatch(ctx, &b).Close()
	})
	for _, r := range all {
		r.done = err == nil && renewed[r.held]
	}
	return err
}

// Two statements: rows are locked in the order of their keys.
const (
	lockHosts    = "select host from hosts where host = any($1) order by host for update"
	releaseHosts = `
update hosts h set leased = 0, node = '', turn = $3, fresh = q.fresh,
	ready = case when q.fresh then h.next when q.due is null then $4 else greatest(h.next, q.due) end
from (select t.host, t.token, exists (select 1 from pages p where p.host = t.host and p.ord > 0) as fresh,
	(select min(p.due) from pages p where p.host = t.host and p.due > 0) as due
	from unnest($1::bigint[], $2::bigint[]) as t (host, token)) q
where h.host = q.host and h.token = q.token and h.leased > 0`
)

// Release implements store.Store.
func (s *Store) Release(ctx context.Context, l *store.Lease) error {
	h, _, err := s.lease(l)
	if err != nil {
		return err
	}
	err = s.releaseAll(ctx, []held{h})
	s.mu.Lock()
	delete(s.held, h)
	s.mu.Unlock()
	if err != nil {
		return fmt.Errorf("store: release %s: %w", l.Host.Name, err)
	}
	return nil
}

// releaseAll gives hosts back. The error is ErrLease when one was lost.
func (s *Store) releaseAll(ctx context.Context, all []held) error {
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b held) int { return cmp.Compare(a.host, b.host) })
	hosts := column(all, func(h *held) int64 { return h.host })
	tokens := column(all, func(h *held) int64 { return int64(h.token) })
	released := int64(0)
	woken := &toWake{random(), hosts}
	err := s.tx(ctx, func(tx pgx.Tx) error {
		var b pgx.Batch
		b.Queue(lockHosts, hosts)
		b.Queue(insertWake, woken.id, time.Now().UnixMilli(), hosts)
		b.Queue(releaseHosts, hosts, tokens, turn(), int64(never)).Exec(func(tag pgconn.CommandTag) error {
			released = tag.RowsAffected()
			return nil
		})
		return tx.SendBatch(ctx, &b).Close()
	})
	if err == nil {
		s.settle(ctx, woken)
	}
	if err == nil && released < int64(len(all)) {
		err = store.ErrLease
	}
	return err
}
