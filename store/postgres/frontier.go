package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// counted bounds how many waiting pages a claim counts.
const counted = 1000

// A lease is the host's row: token, end and node. While it lasts, ready is its
// end, so that one index finds both hosts whose time has come and those whose
// agent has died.
const claimHost = `
with free as (
	select host, leased > 0 as orphan from hosts where ready <= $1 order by ready, turn limit 1 for update skip locked
)
update hosts h set token = h.token + 1, leased = $2, ready = $2, node = $3, batch = 0, added = 0
from free where h.host = free.host
returning h.host, h.name, h.record, h.token, free.orphan,
	(select count(*) from (select 1 from pages p where p.host = h.host and p.ord > 0 limit $4) waiting)`

// Claim implements store.Store.
func (s *Store) Claim(ctx context.Context, node string, now time.Time, ttl time.Duration) (*store.Lease, time.Time, error) {
	if node == "" {
		node = s.config.Node
	}
	until := now.Add(ttl)
	var l *store.Lease
	var next time.Time
	err := s.retry(ctx, func() error {
		l, next = nil, time.Time{}
		var host, token int64
		var record []byte
		var rec store.Lease
		err := s.pool.QueryRow(ctx, claimHost, now.UnixMilli(), until.UnixMilli(), node, counted).Scan(&host, &rec.Host.Name, &record, &token, &rec.Orphan, &rec.New)
		if errors.Is(err, pgx.ErrNoRows) {
			next, err = s.next(ctx, now)
			return err
		}
		if err != nil {
			return err
		}
		name := rec.Host.Name
		if record != nil {
			if err := json.Unmarshal(record, &rec.Host); err != nil {
				return fmt.Errorf("host %s: %w: %w", name, errInput, err)
			}
		}
		rec.Host.Name, rec.Token, rec.Node, rec.Until = name, uint64(token), node, until
		s.mu.Lock()
		s.held[held{host, rec.Token}] = &work{taken: map[weburl.Key]place{}}
		s.mu.Unlock()
		l = &rec
		return nil
	})
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("store: claim: %w", err)
	}
	return l, next, nil
}

// next is when a host can be claimed.
func (s *Store) next(ctx context.Context, now time.Time) (time.Time, error) {
	var ready *int64
	if err := s.pool.QueryRow(ctx, "select min(ready) from hosts").Scan(&ready); err != nil {
		return time.Time{}, err
	}
	if ready == nil || *ready == never {
		return time.Time{}, nil
	}
	if t := timeOf(max(1, *ready)); t.After(now) {
		return t, nil
	}
	return now.Add(10 * time.Millisecond), nil // others are claiming it at this moment
}

// lease returns what is remembered of a lease of this process.
func (s *Store) lease(l *store.Lease) (held, *work, error) {
	h := held{hostKey(l.Host.Name), l.Token}
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.held[h]
	if w == nil {
		return h, nil, fmt.Errorf("%s: %w", l.Host.Name, store.ErrLease)
	}
	return h, w, nil
}

// lost forgets a lease if that is what the error says.
func (s *Store) lost(h held, err error) error {
	if errors.Is(err, store.ErrLease) {
		s.mu.Lock()
		delete(s.held, h)
		s.mu.Unlock()
	}
	return err
}

// Renew implements store.Store.
func (s *Store) Renew(ctx context.Context, l *store.Lease, now time.Time, ttl time.Duration) error {
	h, _, err := s.lease(l)
	if err != nil {
		return err
	}
	until := now.Add(ttl)
	err = s.retry(ctx, func() error {
		tag, err := s.pool.Exec(ctx, "update hosts set leased = $3, ready = $3 where host = $1 and token = $2 and leased >= $4", h.host, int64(h.token), until.UnixMilli(), now.UnixMilli())
		if err == nil && tag.RowsAffected() == 0 {
			err = store.ErrLease
		}
		return err
	})
	if err != nil {
		return s.lost(h, fmt.Errorf("store: renew %s: %w", l.Host.Name, err))
	}
	l.Until = until
	return nil
}

// Release implements store.Store.
func (s *Store) Release(ctx context.Context, l *store.Lease) error {
	h, _, err := s.lease(l)
	if err != nil {
		return err
	}
	err = s.retry(ctx, func() error { return s.release(ctx, h) })
	s.mu.Lock()
	delete(s.held, h)
	s.mu.Unlock()
	if err != nil {
		return fmt.Errorf("store: release %s: %w", l.Host.Name, err)
	}
	return nil
}

// Two statements, so that the second sees what was queued by those who held a
// shared lock of the row while the first waited for it.
const (
	lockHost    = "select 1 from hosts where host = $1 and token = $2 and leased > 0 for update"
	releaseHost = `
update hosts h set leased = 0, node = '', turn = $3, fresh = q.fresh,
	ready = case when q.fresh then h.next when q.due is null then $4 else greatest(h.next, q.due) end
from (select exists (select 1 from pages where host = $1 and ord > 0) as fresh,
	(select min(due) from pages where host = $1 and due > 0) as due) q
where h.host = $1 and h.token = $2 and h.leased > 0`
)

func (s *Store) release(ctx context.Context, h held) error {
	var b pgx.Batch
	b.Queue(lockHost, h.host, int64(h.token))
	b.Queue(releaseHost, h.host, int64(h.token), time.Now().UnixMicro(), int64(never))
	res := s.pool.SendBatch(ctx, &b) // one transaction, since it has no begin
	_, err := res.Exec()
	released := int64(0)
	if err == nil {
		tag, e := res.Exec()
		released, err = tag.RowsAffected(), e
	}
	err = errors.Join(err, res.Close())
	if err == nil && released == 0 {
		err = store.ErrLease
	}
	return err
}

const (
	takeNew = "select " + rowColumns + " from pages where host = $1 and ord > 0 and not (url = any($3)) order by ord limit $2"
	takeDue = "select " + rowColumns + " from pages where host = $1 and due > 0 and due <= $4 and not (url = any($3)) order by due limit $2"
	holds   = "select leased from hosts where host = $1 and token = $2 and leased > 0"
)

// Take implements store.Store. Of n pages at most half are revisits while new
// pages wait, so that neither starves.
func (s *Store) Take(ctx context.Context, l *store.Lease, n int, now time.Time) ([]store.Page, error) {
	h, w, err := s.lease(l)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	out := make([]int64, 0, len(w.taken))
	for k := range w.taken {
		_, url := split(k)
		out = append(out, url)
	}
	s.mu.Unlock()
	var fresh, due []store.Page
	err = s.retry(ctx, func() (err error) {
		var b pgx.Batch
		b.Queue(holds, h.host, int64(h.token))
		b.Queue(takeNew, h.host, n, out)
		b.Queue(takeDue, h.host, n, out, now.UnixMilli())
		res := s.pool.SendBatch(ctx, &b)
		defer func() { err = errors.Join(err, res.Close()) }()
		var until int64
		if err := res.QueryRow().Scan(&until); errors.Is(err, pgx.ErrNoRows) {
			return store.ErrLease
		} else if err != nil {
			return err
		}
		if fresh, err = pagesOf(res.Query()); err != nil {
			return err
		}
		due, err = pagesOf(res.Query())
		return err
	})
	if err != nil {
		return nil, s.lost(h, fmt.Errorf("store: take of %s: %w", l.Host.Name, err))
	}
	due = due[:min(len(due), max(n/2, n-len(fresh)))]
	fresh = fresh[:min(len(fresh), n-len(due))]
	pages := store.Mix(due, fresh)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range pages {
		u, err := weburl.Parse(pages[i].URL)
		if err != nil {
			return nil, fmt.Errorf("store: take of %s: %w", l.Host.Name, err)
		}
		w.taken[u.Key()] = place{pages[i].Slot, pages[i].State}
	}
	return pages, nil
}

func pagesOf(rows pgx.Rows, err error) ([]store.Page, error) {
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(r pgx.CollectableRow) (store.Page, error) {
		var in row
		if err := r.Scan(in.fields()...); err != nil {
			return store.Page{}, err
		}
		return in.page()
	})
}
