package postgres

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/freshet/freshet/store"
)

const (
	deadLanes = `
select lane from (select lane from feeds union select lane from inbox) l
where lane <> $1 and not exists (select 1 from nodes n where n.name = l.lane and n.until >= $2) order by lane`
	laneChanges = `
select c.host, c.url, p.state, p.depth, p.ord, p.due, p.address, p.origin, p.record, p.refetch, p.asked, p.version
from (select host, url from changes where lane = $1 union select host, url from inbox where lane = $1) c
join pages p on p.host = c.host and p.url = c.url where (p.host, p.url) > ($3, $4) order by p.host, p.url limit $2`
	dropChanges = "delete from changes c using unnest($2::bigint[], $3::bigint[]) as t (host, url) where c.lane = $1 and c.host = t.host and c.url = t.url"
	takeChanges = `
insert into inbox (host, url, lane, at, n)
select host, url, $1, $5, 0 from unnest($3::bigint[], $4::bigint[]) as t (host, url)
on conflict (host, url) do update set lane = excluded.lane where inbox.lane = $2`
)

// Adopt implements store.Adopter.
func (s *Store) Adopt(ctx context.Context, grace time.Duration, n int, mine func(*store.Page) bool) (adopted int, err error) {
	now := time.Now()
	rows, err := s.pool.Query(ctx, deadLanes, s.config.Node, now.Add(-grace).UnixMilli())
	if err != nil {
		return 0, fmt.Errorf("store: adopt: %w", err)
	}
	lanes, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return 0, fmt.Errorf("store: adopt: %w", err)
	}
	for _, lane := range lanes {
		m, err := s.adoptLane(ctx, lane, n-adopted, now, mine)
		if adopted += m; err != nil {
			return adopted, fmt.Errorf("store: adopt from %s: %w", lane, err)
		}
		if adopted >= n {
			break
		}
	}
	return adopted, nil
}

// adoptSlices is how many slices of a lane are looked through at once.
const adoptSlices = 10

// adoptLane looks through a lane from where the last call has got to, so that
// changes which cannot be read here keep nobody from those behind them.
func (s *Store) adoptLane(ctx context.Context, lane string, n int, now time.Time, mine func(*store.Page) bool) (adopted int, err error) {
	s.mu.Lock()
	at, known := s.adopting[lane]
	s.mu.Unlock()
	if !known {
		at = [2]int64{math.MinInt64, math.MinInt64}
	}
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.adopting[lane] = at
	}()
	for range adoptSlices {
		rows, err := s.pool.Query(ctx, laneChanges, lane, n-adopted, at[0], at[1])
		if err != nil {
			return adopted, err
		}
		pages, err := pagesOf(rows, nil)
		if err != nil {
			return adopted, err
		}
		var hosts, urls []int64
		for i := range pages {
			host, url := splitKey(pages[i].Key)
			if at = [2]int64{host, url}; mine(&pages[i]) {
				hosts, urls = append(hosts, host), append(urls, url)
			}
		}
		end := len(pages) < n-adopted
		if end { // the next call begins anew
			at = [2]int64{math.MinInt64, math.MinInt64}
		}
		if len(hosts) > 0 {
			err = s.inTransaction(ctx, func(tx pgx.Tx) error {
				var q pgx.Batch
				q.Queue(dropChanges, lane, hosts, urls)
				q.Queue(takeChanges, s.config.Node, lane, hosts, urls, now.UnixMilli())
				return tx.SendBatch(ctx, &q).Close()
			})
			if err != nil {
				return adopted, err
			}
		}
		if adopted += len(hosts); end || adopted >= n {
			break
		}
	}
	return adopted, nil
}
