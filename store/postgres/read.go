package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// Page implements store.Store.
func (s *Store) Page(ctx context.Context, u weburl.URL) (*store.Page, error) {
	host, url := splitKey(u.Key())
	var r row
	err := s.retryStore(ctx, func() error {
		err := s.pool.QueryRow(ctx, "select "+rowColumns+" from pages where host = $1 and url = $2", host, url).Scan(r.scanFields()...)
		if errors.Is(err, pgx.ErrNoRows) {
			return store.ErrNotFound
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("store: %s: %w", u, err)
	}
	p, err := r.pageOfRow()
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	return &p, nil
}

// Host implements store.HostReader.
func (s *Store) Host(ctx context.Context, name string) (*store.Host, error) {
	h := &store.Host{Name: name}
	err := s.retryStore(ctx, func() error {
		var record []byte
		err := s.pool.QueryRow(ctx, "select record from hosts where host = $1", hostKey(name)).Scan(&record)
		if errors.Is(err, pgx.ErrNoRows) {
			return store.ErrNotFound
		}
		if err == nil && record != nil {
			err = json.Unmarshal(record, h)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("store: host %s: %w", name, err)
	}
	h.AddReason()
	return h, nil
}

const readRecords = "select p.host, p.url, p.state, p.depth, p.ord, p.due, p.address, p.origin, p.record, p.refetch, p.asked, p.version from pages p join (select distinct host, url from unnest($1::bigint[], $2::bigint[]) as u (host, url)) t on p.host = t.host and p.url = t.url"

// Records implements store.Store.
func (s *Store) Records(ctx context.Context, keys []weburl.Key) (out []store.Page, err error) {
	hosts, urls := make([]int64, len(keys)), make([]int64, len(keys))
	for i, k := range keys {
		hosts[i], urls[i] = splitKey(k)
	}
	err = s.retryStore(ctx, func() (err error) {
		out, err = pagesOf(s.pool.Query(ctx, readRecords, hosts, urls))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("store: records of %d keys: %w", len(keys), err)
	}
	return out, nil
}

// reader reads all of a store, from the pool slice by slice, or within one
// transaction.
type reader struct {
	q        querier
	patience time.Duration
}

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

func (s *Store) plainReader() reader { return reader{s.pool, s.config.Patience} }

func (s reader) retryReads(ctx context.Context, f func() error) error {
	if s.patience == 0 {
		return f()
	}
	return Retry(ctx, s.patience, f)
}

// Pages implements store.Store.
func (s *Store) Pages(ctx context.Context, f func(*store.Page) error) error {
	return s.plainReader().Pages(ctx, f)
}

// Hosts implements store.Store.
func (s *Store) Hosts(ctx context.Context, f func(*store.Host) error) error {
	return s.plainReader().Hosts(ctx, f)
}

// Links implements store.Store.
func (s *Store) Links(ctx context.Context, f func(weburl.Key, []weburl.Key) error) error {
	return s.plainReader().Links(ctx, f)
}

// Visits implements store.Store.
func (s *Store) Visits(ctx context.Context, since time.Time, f func(*store.VisitLog) error) error {
	return s.plainReader().Visits(ctx, since, f)
}

// Settings implements store.Source.
func (s *Store) Settings(ctx context.Context, f func(string, []byte) error) error {
	return s.plainReader().Settings(ctx, f)
}

// slice is how many rows are read at once. Long reads go slice by slice, each a
// query of its own: none holds a snapshot for hours, none holds a connection
// while the caller works.
const slice = 2000

// Pages implements store.Source.
func (s reader) Pages(ctx context.Context, f func(*store.Page) error) error {
	host, url := int64(math.MinInt64), int64(math.MinInt64)
	for first := true; ; first = false {
		var pages []store.Page
		var last row
		err := s.retryReads(ctx, func() error {
			rows, err := s.q.Query(ctx, "select "+rowColumns+" from pages where (host, url) >= ($1, $2) order by host, url limit $3", host, url, slice+1)
			if err != nil {
				return err
			}
			pages, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (store.Page, error) {
				last = row{}
				if err := r.Scan(last.scanFields()...); err != nil {
					return store.Page{}, err
				}
				return last.pageOfRow()
			})
			return err
		})
		if err != nil {
			return fmt.Errorf("store: pages: %w", err)
		}
		if !first && len(pages) > 0 {
			pages = pages[1:] // the last of the slice before
		}
		if len(pages) == 0 {
			return nil
		}
		for i := range pages {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := f(&pages[i]); err != nil {
				return err
			}
		}
		host, url = last.host, last.url
	}
}

// Hosts implements store.Source.
func (s reader) Hosts(ctx context.Context, f func(*store.Host) error) error {
	after := int64(math.MinInt64) // no host has this key, or one in 2^64
	for {
		var hosts []store.Host
		err := s.retryReads(ctx, func() error {
			rows, err := s.q.Query(ctx, "select host, name, record from hosts where host > $1 order by host limit $2", after, slice)
			if err != nil {
				return err
			}
			hosts = hosts[:0]
			var key int64
			var name string
			var record []byte
			_, err = pgx.ForEachRow(rows, []any{&key, &name, &record}, func() error {
				var h store.Host
				if record != nil {
					if err := json.Unmarshal(record, &h); err != nil {
						return fmt.Errorf("host %s: %w: %w", name, errInput, err)
					}
				}
				h.AddReason()
				h.Name = name
				hosts = append(hosts, h)
				return nil
			})
			return err
		})
		if err != nil {
			return fmt.Errorf("store: hosts: %w", err)
		}
		if len(hosts) == 0 {
			return nil
		}
		for i := range hosts {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := f(&hosts[i]); err != nil {
				return err
			}
		}
		after = hostKey(hosts[len(hosts)-1].Name)
	}
}

// Links implements store.Source.
func (s reader) Links(ctx context.Context, f func(weburl.Key, []weburl.Key) error) error {
	type line struct {
		host, url int64
		targets   []byte
	}
	host, url := int64(math.MinInt64), int64(math.MinInt64)
	var to []weburl.Key
	for first := true; ; first = false {
		var lines []line
		err := s.retryReads(ctx, func() error {
			rows, err := s.q.Query(ctx, "select host, url, targets from links where (host, url) >= ($1, $2) order by host, url limit $3", host, url, slice+1)
			if err != nil {
				return err
			}
			lines, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (l line, err error) {
				return l, r.Scan(&l.host, &l.url, &l.targets)
			})
			return err
		})
		if err != nil {
			return fmt.Errorf("store: links: %w", err)
		}
		if !first && len(lines) > 0 {
			lines = lines[1:]
		}
		if len(lines) == 0 {
			return nil
		}
		for _, l := range lines {
			if err := ctx.Err(); err != nil {
				return err
			}
			to = to[:0]
			for t := l.targets; len(t) >= 16; t = t[16:] {
				to = append(to, weburl.Key(t[:16]))
			}
			if err := f(joinKey(l.host, l.url), to); err != nil {
				return err
			}
		}
		host, url = lines[len(lines)-1].host, lines[len(lines)-1].url
	}
}

const readVisits = `
select v.at, v.host, v.url, v.changed, v.status, v.bytes, v.took, p.address
from visits v join pages p on p.host = v.host and p.url = v.url
where (v.at, v.host, v.url) > ($1, $2, $3) order by v.at, v.host, v.url limit $4`

// Visits implements store.Source.
func (s reader) Visits(ctx context.Context, since time.Time, f func(*store.VisitLog) error) error {
	at, host, url := orderedMillis(since)-1, int64(math.MaxInt64), int64(math.MaxInt64)
	for {
		var logs []store.VisitLog
		a, h, u := at, host, url
		err := s.retryReads(ctx, func() error {
			rows, err := s.q.Query(ctx, readVisits, at, host, url, slice)
			if err != nil {
				return err
			}
			logs = logs[:0]
			var l store.VisitLog
			var took int64
			_, err = pgx.ForEachRow(rows, []any{&a, &h, &u, &l.Changed, &l.Status, &l.Bytes, &took, &l.URL}, func() error {
				l.Time, l.Took = timeOf(a), time.Duration(took)
				logs = append(logs, l)
				return nil
			})
			return err
		})
		if err != nil {
			return fmt.Errorf("store: visits: %w", err)
		}
		if len(logs) == 0 {
			return nil
		}
		at, host, url = a, h, u
		for i := range logs {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := f(&logs[i]); err != nil {
				return err
			}
		}
	}
}

// Get implements store.Store.
func (s *Store) Get(ctx context.Context, name string) (value []byte, err error) {
	err = s.retryStore(ctx, func() error {
		err := s.pool.QueryRow(ctx, "select value from settings where name = $1", name).Scan(&value)
		if errors.Is(err, pgx.ErrNoRows) {
			value, err = nil, nil
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("store: get %s: %w", name, err)
	}
	return value, nil
}

// Put implements store.Store.
func (s *Store) Put(ctx context.Context, name string, value []byte) error {
	err := s.retryStore(ctx, func() error {
		if len(value) == 0 {
			_, err := s.pool.Exec(ctx, "delete from settings where name = $1", name)
			return err
		}
		_, err := s.pool.Exec(ctx, "insert into settings (name, value) values ($1, $2) on conflict (name) do update set value = excluded.value", name, value)
		return err
	})
	if err != nil {
		return fmt.Errorf("store: put %s: %w", name, err)
	}
	return nil
}
