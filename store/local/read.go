package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// Page implements store.Store.
func (s *Store) Page(_ context.Context, u weburl.URL) (*store.Page, error) {
	p := new(store.Page)
	if err := s.readPageRecord(u.Key(), p); err != nil {
		return nil, fmt.Errorf("store: %s: %w", u, err)
	}
	return p, nil
}

// Host implements store.HostReader.
func (s *Store) Host(_ context.Context, name string) (*store.Host, error) {
	v, err := s.getCopy(hostRecordKey(weburl.HostKey(name)))
	if err == nil && v == nil {
		err = store.ErrNotFound
	}
	h := new(store.Host)
	if err == nil {
		err = json.Unmarshal(v, h)
	}
	if err != nil {
		return nil, fmt.Errorf("store: host %s: %w", name, err)
	}
	h.AddReason()
	return h, nil
}

// readPageRecord reads the record of a page into p.
func (s *Store) readPageRecord(k weburl.Key, p *store.Page) error {
	v, c, err := s.db.Get(pageKey(k))
	if errors.Is(err, pebble.ErrNotFound) {
		return store.ErrNotFound
	}
	if err != nil {
		return err
	}
	err = errors.Join(decodePage(v, p), c.Close())
	p.Key = k
	return err
}

// Records implements store.Store.
func (s *Store) Records(_ context.Context, keys []weburl.Key) ([]store.Page, error) {
	var out []store.Page
	seen := make(map[weburl.Key]bool, len(keys))
	for _, k := range keys {
		if seen[k] {
			continue
		}
		seen[k] = true
		var p store.Page
		err := s.readPageRecord(k, &p)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("store: key %x: %w", k, err)
		}
		out = append(out, p)
	}
	return out, nil
}

// decodeEach decodes every record of a key space.
func decodeEach[T any](ctx context.Context, s *Store, what string, prefix []byte, decode func(k, v []byte, rec *T) error, f func(*T) error) error {
	return s.scanPrefix(prefix, func(k, v []byte) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		rec := new(T)
		if err := decode(k[spaceLength:], v, rec); err != nil {
			return fmt.Errorf("store: %s %x: %w", what, k, err)
		}
		return f(rec)
	})
}

// Pages implements store.Store.
func (s *Store) Pages(ctx context.Context, f func(*store.Page) error) error {
	return decodeEach(ctx, s, "page", []byte{pageSpace}, func(k, v []byte, p *store.Page) error {
		err := decodePage(v, p)
		p.Key = weburl.Key(k)
		return err
	}, f)
}

// Hosts implements store.Store.
func (s *Store) Hosts(ctx context.Context, f func(*store.Host) error) error {
	return decodeEach(ctx, s, "host", []byte{hostSpace}, func(_, v []byte, h *store.Host) error { return decodeHost(v, h) }, f)
}

// Links implements store.Store.
func (s *Store) Links(ctx context.Context, f func(weburl.Key, []weburl.Key) error) error {
	var to []weburl.Key
	return s.scanPrefix([]byte{linkSpace}, func(k, v []byte) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		var err error
		if to, err = decodeLinks(to[:0], v); err != nil {
			return fmt.Errorf("store: links of %x: %w", k, err)
		}
		return f(weburl.Key(k[spaceLength:]), to)
	})
}

// Changes implements store.Store.
func (s *Store) Changes(_ context.Context, after uint64, n int) ([]store.Change, error) {
	s.mu.Lock()
	told := s.told
	s.mu.Unlock()
	if after >= told {
		return nil, nil
	}
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: numberKey(feedSpace, after+1), UpperBound: numberKey(feedSpace, told+1)})
	if err != nil {
		return nil, fmt.Errorf("store: changes: %w", err)
	}
	var out []store.Change
	var keys []weburl.Key
	for ok := it.First(); ok && len(out) < n; ok = it.Next() {
		c := store.Change{Seq: beUint(it.Key()[spaceLength:])}
		var k weburl.Key
		v, err := it.ValueAndErr()
		if err == nil {
			k, err = decodeChange(v, &c)
		}
		if err != nil {
			_ = it.Close()
			return nil, fmt.Errorf("store: change %x: %w", it.Key(), err)
		}
		out, keys = append(out, c), append(keys, k)
	}
	if err := it.Close(); err != nil {
		return nil, fmt.Errorf("store: changes: %w", err)
	}
	for i := range out {
		p := new(store.Page)
		if err := s.readPageRecord(keys[i], p); err != nil {
			return nil, fmt.Errorf("store: change %d: %w", out[i].Seq, err)
		}
		out[i].Page, out[i].URL = p, p.URL
	}
	return out, nil
}

// Trim implements store.Store.
func (s *Store) Trim(ctx context.Context, seq uint64, visits time.Time) error {
	if err := s.Put(ctx, "seq", numberKey(0, seq)[1:]); err != nil {
		return err
	}
	if err := s.db.DeleteRange([]byte{feedSpace}, numberKey(feedSpace, seq+1), s.write); err != nil {
		return fmt.Errorf("store: trim changes: %w", err)
	}
	if err := s.db.DeleteRange([]byte{visitSpace}, numberKey(visitSpace, millis(visits)), s.write); err != nil {
		return fmt.Errorf("store: trim visits: %w", err)
	}
	return nil
}

// Visits implements store.Store.
func (s *Store) Visits(ctx context.Context, since time.Time, f func(*store.VisitLog) error) error {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: numberKey(visitSpace, millis(since)), UpperBound: []byte{visitSpace + 1}})
	if err != nil {
		return fmt.Errorf("store: visits: %w", err)
	}
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		var l store.VisitLog
		var v []byte
		if v, err = it.ValueAndErr(); err == nil {
			err = decodeVisit(v, &l)
		}
		if err == nil {
			err = f(&l)
		}
		if err == nil {
			err = ctx.Err()
		}
	}
	if cerr := it.Close(); err == nil {
		err = cerr
	}
	return err
}
