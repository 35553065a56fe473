package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// A host that is given back is asleep if it has no new pages and nothing is due; who
// queues pages there wakes it. Neither locks the host's row for it, since many find
// URLs on one host all the time. Instead both look at it after their transaction has
// ended. Of a transaction that queues and one that gives back, whichever ends last
// looks when the other's rows can be seen.
//
// In case the process dies between its transaction and its look, the transaction
// leaves a row in wakes.

const (
	insertWake = "insert into wakes (id, at, hosts) values ($1, $2, $3)"
	deleteWake = "delete from wakes where id = any($1)"
	oldWakes   = "select id, hosts from wakes where at <= $1 order by at limit $2"
	wakeAsleep = `
with asleep as (select host, next, ready from hosts where host = any($1) and leased = 0 and not fresh order by host for update)
update hosts h set fresh = q.fresh, ready = case when q.fresh then q.next else greatest(q.next, q.due) end
from (select a.host, a.next, a.ready, exists (select 1 from pages p where p.host = a.host and p.ord > 0) as fresh,
	(select min(p.due) from pages p where p.host = a.host and p.due > 0) as due from asleep a) q
where h.host = q.host and (q.fresh or q.due is not null and greatest(q.next, q.due) < q.ready)`
)

// markWoken leaves word of the hosts that are to be looked at, and clears that of
// transactions whose hosts were.
func (w *writer) markWoken(q *pgx.Batch) {
	if w.settled != nil {
		q.Queue(deleteWake, w.settled)
	}
	if len(w.touched) > 0 {
		hosts := make([]int64, 0, len(w.touched))
		for h := range w.touched {
			hosts = append(hosts, h)
		}
		slices.Sort(hosts)
		w.toWake = &toWake{randomKey(), hosts}
		q.Queue(insertWake, w.toWake.id, time.Now().UnixMilli(), hosts)
	}
}

// toWake are the hosts of a transaction, by the row that names them.
type toWake struct {
	id    int64
	hosts []int64
}

// settleHosts looks at the hosts of a transaction that has ended. If that fails the row
// in wakes stays for others: the transaction itself is durable.
func (s *Store) settleHosts(ctx context.Context, t *toWake) {
	if t == nil {
		return
	}
	err := s.retryStore(ctx, func() error {
		_, err := s.pool.Exec(ctx, wakeAsleep, t.hosts)
		return err
	})
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settled = append(s.settled, t.id)
}

// takeSettled returns the rows of wakes that are done with; forgetSettled clears
// them once they are removed.
func (s *Store) takeSettled() []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.settled)
}

func (s *Store) forgetSettled(ids []int64) {
	if len(ids) == 0 {
		return
	}
	done := make(map[int64]bool, len(ids))
	for _, id := range ids {
		done[id] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settled = slices.DeleteFunc(s.settled, func(id int64) bool { return done[id] })
}

// wakesAfter is after what time a row of wakes is done by somebody else.
const wakesAfter = 30 * time.Second

// wakesAtOnce is how many rows of wakes are done at once.
const wakesAtOnce = 500

// settleOld looks at the hosts of transactions that ended before a time, whose
// processes may have died.
func (s *Store) settleOld(ctx context.Context, before time.Time) error {
	for {
		var ids []int64
		var hosts []int64
		err := s.retryStore(ctx, func() error {
			rows, err := s.pool.Query(ctx, oldWakes, before.UnixMilli(), wakesAtOnce)
			if err != nil {
				return err
			}
			ids, hosts = ids[:0], hosts[:0]
			var id int64
			var of []int64
			_, err = pgx.ForEachRow(rows, []any{&id, &of}, func() error { ids, hosts = append(ids, id), append(hosts, of...); return nil })
			return err
		})
		if err != nil {
			return fmt.Errorf("wake hosts: %w", err)
		}
		if len(ids) == 0 {
			return nil
		}
		slices.Sort(hosts)
		err = s.execRetrying(ctx, wakeAsleep, slices.Compact(hosts))
		if err == nil {
			err = s.execRetrying(ctx, deleteWake, ids)
		}
		if err != nil {
			return fmt.Errorf("wake hosts: %w", err)
		}
	}
}
