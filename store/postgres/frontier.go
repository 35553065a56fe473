package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// nextReady is when a host can be claimed.
func (s *Store) nextReady(ctx context.Context, now time.Time) (time.Time, error) {
	var ready *int64
	if err := s.pool.QueryRow(ctx, "select min(ready) from hosts").Scan(&ready); err != nil {
		return time.Time{}, err
	}
	if ready == nil || *ready == never {
		return time.Time{}, nil
	}
	// Hosts come free all the time where many nodes work: nobody asks for each.
	soon := now.Add(max(10*time.Millisecond, s.config.Gather))
	if t := timeOf(max(1, *ready-s.offset.Load())); t.After(soon) {
		return t, nil
	}
	return soon, nil
}

// heldLease returns what is remembered of a lease of this process.
func (s *Store) heldLease(l *store.Lease) (held, *work, error) {
	h := held{hostKey(l.Host.Name), l.Token}
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.held[h]
	if w == nil {
		return h, nil, fmt.Errorf("%s: %w", l.Host.Name, store.ErrLease)
	}
	return h, w, nil
}

// forgetIfLost forgets a lease if that is what the error says.
func (s *Store) forgetIfLost(h held, err error) error {
	if errors.Is(err, store.ErrLease) {
		s.mu.Lock()
		delete(s.held, h)
		s.mu.Unlock()
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
	h, w, err := s.heldLease(l)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	out := make([]int64, 0, len(w.taken))
	for k := range w.taken {
		_, url := splitKey(k)
		out = append(out, url)
	}
	s.mu.Unlock()
	fresh, due, ok := w.ready.upTo(n, now, len(out))
	asked := map[weburl.Key]int64{}
	if ok {
		asked = w.ready.asked
	} else {
		fresh, due, err = s.waitingPages(ctx, h, n, out, now, asked)
	}
	w.ready = nil
	if err != nil {
		return nil, s.forgetIfLost(h, fmt.Errorf("store: take of %s: %w", l.Host.Name, err))
	}
	due = due[:min(len(due), max(n/2, n-len(fresh)))]
	fresh = fresh[:min(len(fresh), n-len(due))]
	pages := store.Mix(due, fresh)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range pages {
		w.taken[pages[i].Key] = place{pages[i].Slot, pages[i].State, asked[pages[i].Key]}
	}
	return pages, nil
}

// waitingPages reads up to n of each kind of page of a leased host that are not out, and
// notes what they were asked for.
func (s *Store) waitingPages(ctx context.Context, h held, n int, out []int64, now time.Time, asked map[weburl.Key]int64) (fresh, due []store.Page, err error) {
	err = s.retryStore(ctx, func() (err error) {
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
		if fresh, err = takenOf(asked, res); err != nil {
			return err
		}
		due, err = takenOf(asked, res)
		return err
	})
	return fresh, due, err
}

// takenOf reads pages and their columns asked.
func takenOf(asked map[weburl.Key]int64, res pgx.BatchResults) ([]store.Page, error) {
	rows, err := rowsOf(res.Query())
	if err != nil {
		return nil, err
	}
	pages := make([]store.Page, len(rows))
	for i := range rows {
		if pages[i], err = rows[i].pageOfRow(); err != nil {
			return nil, err
		}
		asked[pages[i].Key] = rows[i].asked
	}
	return pages, nil
}

func pagesOf(rows pgx.Rows, err error) ([]store.Page, error) {
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(r pgx.CollectableRow) (store.Page, error) {
		var in row
		if err := r.Scan(in.scanFields()...); err != nil {
			return store.Page{}, err
		}
		return in.pageOfRow()
	})
}
