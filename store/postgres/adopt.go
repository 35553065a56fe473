package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/freshet/freshet/store"
)

const (
	deadLanes = `
select lane from (select lane from feeds union select lane from inbox) l
where lane <> $1 and not exists (select 1 from nodes n where n.name = l.lane and n.until >= $2) order by lane`
	laneChanges = `
select c.host, c.url, p.state, p.depth, p.ord, p.due, p.address, p.origin, p.record
from (select host, url from changes where lane = $1 union select host, url from inbox where lane = $1) c
join pages p on p.host = c.host and p.url = c.url limit $2`
	dropChanges = "delete from changes c using unnest($2::bigint[], $3::bigint[]) as t (host, url) where c.lane = $1 and c.host = t.host and c.url = t.url"
	takeChanges = `
insert into inbox (host, url, lane, at, n)
select host, url, $1, $5, 0 from unnest($3::bigint[], $4::bigint[]) as t (host, url)
on conflict (host, url) do update set lane = excluded.lane where inbox.lane = $2`
)

// Adopt takes up to n changes of nodes that have been dead for the grace over
// into this node's feed, those for which mine says that the page can be read
// here, and returns how many. A node that comes back finds the others.
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
		rows, err := s.pool.Query(ctx, laneChanges, lane, n-adopted)
		if err != nil {
			return adopted, fmt.Errorf("store: adopt: %w", err)
		}
		pages, err := pagesOf(rows, nil)
		if err != nil {
			return adopted, fmt.Errorf("store: adopt: %w", err)
		}
		var hosts, urls []int64
		for i := range pages {
			if mine(&pages[i]) {
				r, err := rowOf(pages[i])
				if err != nil {
					return adopted, fmt.Errorf("store: adopt: %w", err)
				}
				hosts, urls = append(hosts, r.host), append(urls, r.url)
			}
		}
		if len(hosts) == 0 {
			continue
		}
		err = s.tx(ctx, func(tx pgx.Tx) error {
			var q pgx.Batch
			q.Queue(dropChanges, lane, hosts, urls)
			q.Queue(takeChanges, s.config.Node, lane, hosts, urls, now.UnixMilli())
			return tx.SendBatch(ctx, &q).Close()
		})
		if err != nil {
			return adopted, fmt.Errorf("store: adopt from %s: %w", lane, err)
		}
		if adopted += len(hosts); adopted >= n {
			break
		}
	}
	return adopted, nil
}
