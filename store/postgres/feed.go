package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/freshet/freshet/store"
)

// numbered is how many changes get their numbers in one transaction.
const numbered = 5000

// The lane's row is locked from its update to the end of the transaction:
// numbers are given in the order in which transactions end, so that a reader
// never passes one by.
const numberChanges = `
with gone as (
	delete from inbox where (host, url) in (select host, url from inbox where lane = $1 order by at, n limit $2 for update skip locked)
	returning host, url, at, n
), last as (
	update feeds set seq = seq + (select count(*) from gone) where lane = $1 returning seq
)
insert into changes (lane, seq, host, url, at)
select $1, last.seq - (select count(*) from gone) + row_number() over (order by gone.at, gone.n), gone.host, gone.url, gone.at from gone, last`

// numberChanges gives the changes in this node's inbox their numbers and returns the
// last number.
func (s *Store) numberChanges(ctx context.Context) (last uint64, err error) {
	lane := s.config.Node
	for {
		var seq *int64
		var waiting bool
		err := s.pool.QueryRow(ctx, "select (select seq from feeds where lane = $1), exists (select 1 from inbox where lane = $1)", lane).Scan(&seq, &waiting)
		if err != nil {
			return 0, err
		}
		if !waiting {
			if seq == nil {
				return 0, nil
			}
			return uint64(*seq), nil
		}
		if seq == nil {
			if _, err := s.pool.Exec(ctx, "insert into feeds (lane, seq) values ($1, 0) on conflict (lane) do nothing", lane); err != nil {
				return 0, err
			}
		}
		if _, err := s.pool.Exec(ctx, numberChanges, lane, numbered); err != nil {
			return 0, err
		}
	}
}

const readChanges = `
select c.seq, c.at, p.host, p.url, p.state, p.depth, p.ord, p.due, p.address, p.origin, p.record, p.refetch, p.asked, p.version from changes c join pages p on p.host = c.host and p.url = c.url
where c.lane = $1 and c.seq > $2 order by c.seq limit $3`

// Changes implements store.Store. The feed is that of this node: a node indexes
// what it fetched itself, since it has the bodies.
func (s *Store) Changes(ctx context.Context, after uint64, n int) (out []store.Change, err error) {
	err = s.retryStore(ctx, func() error {
		if _, err := s.numberChanges(ctx); err != nil {
			return err
		}
		rows, err := s.pool.Query(ctx, readChanges, s.config.Node, int64(after), n)
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (c store.Change, err error) {
			var seq, at int64
			var in row
			if err := r.Scan(append([]any{&seq, &at}, in.scanFields()...)...); err != nil {
				return c, err
			}
			p, err := in.pageOfRow()
			return store.Change{Seq: uint64(seq), URL: p.URL, Time: timeOf(at), Page: &p}, err
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("store: changes: %w", err)
	}
	return out, nil
}

// Trim implements store.Store.
func (s *Store) Trim(ctx context.Context, seq uint64, visits time.Time) error {
	err := s.retryStore(ctx, func() error {
		var b pgx.Batch
		b.Queue("delete from changes where lane = $1 and seq <= $2", s.config.Node, int64(seq))
		b.Queue("delete from visits where at < $1", orderedMillis(visits))
		return s.pool.SendBatch(ctx, &b).Close()
	})
	if err == nil {
		err = s.settleOld(ctx, time.Now().Add(-wakesAfter))
	}
	if err != nil {
		return fmt.Errorf("store: trim: %w", err)
	}
	return nil
}

// foldRows is from how many rows on the counters are folded together.
const foldRows = 500

const (
	sums     = "select count(*), " + sumParts + " from tally"
	sumParts = `coalesce(sum(hosts), 0)::bigint, coalesce(sum(urls), 0)::bigint, coalesce(sum(fresh), 0)::bigint, coalesce(sum(ok), 0)::bigint,
	coalesce(sum(redirect), 0)::bigint, coalesce(sum(gone), 0)::bigint, coalesce(sum(blocked), 0)::bigint, coalesce(sum(failed), 0)::bigint, coalesce(sum(excluded), 0)::bigint`
	foldTally = `
with old as (
	delete from tally where id in (select id from tally limit 10000 for update skip locked)
	returning hosts, urls, fresh, ok, redirect, gone, blocked, failed, excluded
)
insert into tally (id, hosts, urls, fresh, ok, redirect, gone, blocked, failed, excluded)
select $1, ` + sumParts + ` from old`
)

// Stats implements store.Store. Feed is that of this node.
func (s *Store) Stats(ctx context.Context) (out store.Stats, err error) {
	err = s.retryStore(ctx, func() error {
		last, err := s.numberChanges(ctx)
		if err != nil {
			return err
		}
		out = store.Stats{States: map[store.State]int64{}, Feed: last}
		var rows int64
		var by [len(states)]int64
		var b pgx.Batch
		b.Queue(sums).QueryRow(func(r pgx.Row) error {
			return r.Scan(&rows, &out.Hosts, &out.URLs, &out.New, &by[1], &by[2], &by[3], &by[4], &by[5], &by[6])
		})
		b.Queue("select count(*) from hosts where ready <= $1", time.Now().UnixMilli()).QueryRow(func(r pgx.Row) error { return r.Scan(&out.Due) })
		b.Queue("select count(*) from hosts where leased > 0").QueryRow(func(r pgx.Row) error { return r.Scan(&out.Leases) })
		if err := s.pool.SendBatch(ctx, &b).Close(); err != nil {
			return err
		}
		for i, n := range by {
			if n != 0 {
				out.States[states[i]] = n
			}
		}
		if rows > foldRows {
			_, err = s.pool.Exec(ctx, foldTally, randomKey())
		}
		return err
	})
	if err != nil {
		return store.Stats{}, fmt.Errorf("store: count: %w", err)
	}
	return out, nil
}

// errRows is the error of a statement that touched other rows than it must.
var errRows = errors.New("rows are missing")
