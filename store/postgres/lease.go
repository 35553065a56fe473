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

const renewLease = "update hosts set leased = $3, ready = $3 where host = $1 and token = $2 and leased >= $4"

// Renew implements store.Store.
func (s *Store) Renew(ctx context.Context, l *store.Lease, now time.Time, ttl time.Duration) error {
	h, _, err := s.heldLease(l)
	if err != nil {
		return err
	}
	until := now.Add(ttl)
	err = s.retryStore(ctx, func() error {
		tag, err := s.pool.Exec(ctx, renewLease, h.host, int64(h.token), s.databaseMillis(until), s.databaseMillis(now))
		if err == nil && tag.RowsAffected() == 0 {
			err = store.ErrLease
		}
		return err
	})
	if err != nil {
		return s.forgetIfLost(h, fmt.Errorf("store: renew %s: %w", l.Host.Name, err))
	}
	l.Until = until
	return nil
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
	h, _, err := s.heldLease(l)
	if err != nil {
		return err
	}
	err = s.releaseLeases(ctx, []held{h})
	s.mu.Lock()
	delete(s.held, h)
	s.mu.Unlock()
	if err != nil {
		return fmt.Errorf("store: release %s: %w", l.Host.Name, err)
	}
	return nil
}

// releaseLeases gives hosts back. The error is ErrLease when one was lost.
func (s *Store) releaseLeases(ctx context.Context, all []held) error {
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b held) int { return cmp.Compare(a.host, b.host) })
	hosts := columnOf(all, func(h *held) int64 { return h.host })
	tokens := columnOf(all, func(h *held) int64 { return int64(h.token) })
	released := int64(0)
	woken := &toWake{randomKey(), hosts}
	err := s.inTransaction(ctx, func(tx pgx.Tx) error {
		var b pgx.Batch
		b.Queue(lockHosts, hosts)
		b.Queue(insertWake, woken.id, time.Now().UnixMilli(), hosts)
		b.Queue(releaseHosts, hosts, tokens, turnNow(), int64(never)).Exec(func(tag pgconn.CommandTag) error {
			released = tag.RowsAffected()
			return nil
		})
		return tx.SendBatch(ctx, &b).Close()
	})
	if err == nil {
		s.settleHosts(ctx, woken)
	}
	if err == nil && released < int64(len(all)) {
		err = store.ErrLease
	}
	return err
}
