package postgres

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/freshet/freshet/store"
)

// checkedSetting tells that the pages of the database were checked once by checkPages.
const checkedSetting = "pages-checked"

const (
	allPages    = "select " + rowColumns + " from pages where (host, url) > ($1, $2) order by host, url limit $3"
	deletePages = `
delete from pages p using unnest($1::bigint[], $2::bigint[]) as t (host, url)
where p.host = t.host and p.url = t.url and p.state = 0
returning p.ord > 0`
)

// checkPages brings what an earlier program has written to the present form. It takes out
// pages whose URL is not parsed as the URL that their key names: no visit of them could ever
// be committed, so that all of them are still in the queue. It notes which pages name others
// as canonical and puts those into the feed: earlier programs took all of them out of the
// index. It reads each page once for each database, in slices; any number of processes may
// do it at once.
func (s *Store) checkPages(ctx context.Context) error {
	done, err := s.Get(ctx, checkedSetting)
	if err != nil || done != nil {
		return err
	}
	host, url := int64(math.MinInt64), int64(math.MinInt64)
	for {
		var rows []row
		err := s.retryStore(ctx, func() (err error) {
			rows, err = rowsOf(s.pool.Query(ctx, allPages, host, url, slice))
			return err
		})
		if err != nil {
			return fmt.Errorf("check pages: %w", err)
		}
		if len(rows) == 0 {
			return s.Put(ctx, checkedSetting, []byte("1"))
		}
		if err := s.checkRows(ctx, rows); err != nil {
			return fmt.Errorf("check pages: %w", err)
		}
		host, url = rows[len(rows)-1].host, rows[len(rows)-1].url
	}
}

func (s *Store) checkRows(ctx context.Context, rows []row) error {
	var bad []row
	var aliases []store.Page
	for i := range rows {
		r := &rows[i]
		switch {
		case r.state == 0:
			if p := (store.Page{Key: joinKey(r.host, r.url), URL: r.address}); !p.IsNamed() {
				bad = append(bad, *r)
			}
		case bytes.Contains(r.record, canonicalMark):
			p, err := r.pageOfRow()
			if err != nil {
				return err
			}
			aliases = append(aliases, p)
		}
	}
	if len(bad)+len(aliases) == 0 {
		return nil
	}
	return s.inTransaction(ctx, func(tx pgx.Tx) error {
		if len(bad) > 0 {
			if err := dropRows(ctx, tx, bad); err != nil {
				return err
			}
		}
		var q pgx.Batch
		queueAliases(&q, aliases)
		now := make([]int64, len(aliases))
		for i := range now {
			now[i] = time.Now().UnixMilli()
		}
		q.Queue(insertInbox, columnOf(aliases, func(p *store.Page) int64 { return Half(p.Key[:8]) }), columnOf(aliases, func(p *store.Page) int64 { return Half(p.Key[8:]) }),
			s.config.Node, now, make([]int32, len(aliases)))
		return tx.SendBatch(ctx, &q).Close()
	})
}

var canonicalMark = []byte(`"ca":`)

// dropRows deletes pages of the queue and counts them off.
func dropRows(ctx context.Context, tx pgx.Tx, bad []row) error {
	rows, err := tx.Query(ctx, deletePages, columnOf(bad, func(r *row) int64 { return r.host }), columnOf(bad, func(r *row) int64 { return r.url }))
	if err != nil {
		return err
	}
	var sum tally
	var fresh bool
	if _, err := pgx.ForEachRow(rows, []any{&fresh}, func() error {
		sum.urls--
		if fresh {
			sum.fresh--
		}
		return nil
	}); err != nil {
		return err
	}
	var q pgx.Batch
	sum.queueTally(&q)
	if q.Len() == 0 {
		return nil
	}
	return tx.SendBatch(ctx, &q).Close()
}
