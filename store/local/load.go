package local

import (
	"context"
	"errors"
	"fmt"

	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

var (
	_ store.Source = (*Store)(nil)
	_ store.Target = (*Store)(nil)
)

// own are the settings that belong to this store alone.
var own = map[string]bool{"version": true, "seq": true, idName: true, loadingSetting: true}

// loadingSetting is there from the first part of a copy to its end.
const loadingSetting = "loading"

// Settings implements store.Source.
func (s *Store) Settings(ctx context.Context, f func(string, []byte) error) error {
	return s.scanPrefix([]byte{metaSpace}, func(k, v []byte) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if name := string(k[spaceLength:]); !own[name] {
			return f(name, v)
		}
		return nil
	})
}

// Load implements store.Target.
func (s *Store) Load(_ context.Context, p *store.Part) error {
	s.mu.Lock()
	full := s.stats.URLs > 0 || s.stats.Hosts > 0
	s.mu.Unlock()
	if full {
		return fmt.Errorf("store: %w", store.ErrNotEmpty)
	}
	w := s.newWriter()
	defer w.closeBatch()
	if err := errors.Join(w.b.Set(metaKey(loadingSetting), []byte("1"), nil), w.loadRecords(p)); err != nil {
		return fmt.Errorf("store: load: %w", err)
	}
	if err := w.b.Commit(s.write); err != nil {
		return fmt.Errorf("store: load: %w", err)
	}
	return nil
}

// loadRecords writes records without looking at what is there.
func (w *writer) loadRecords(p *store.Part) error {
	for i := range p.Hosts {
		if err := w.writeHostRecord(p.Hosts[i]); err != nil {
			return err
		}
	}
	for i := range p.Pages {
		k := p.Pages[i].Key
		if err := w.writePageRecord(k, &p.Pages[i]); err != nil {
			return err
		}
		if target, ok := p.Pages[i].AliasOf(); ok {
			if err := w.b.Set(aliasKey(target, k), nil, nil); err != nil {
				return err
			}
		}
		if slot := slotKey(k, p.Pages[i].Slot); slot != nil {
			if err := w.b.Set(slot, nil, nil); err != nil {
				return err
			}
		}
	}
	for i := range p.Links {
		if err := w.setEncoded(linkKey(p.Links[i].From), appendLinks(w.room[:0], p.Links[i].To), nil); err != nil {
			return err
		}
	}
	for i := range p.Visits {
		u, err := weburl.Parse(p.Visits[i].URL)
		if err != nil {
			return fmt.Errorf("visit of %q: %w", p.Visits[i].URL, err)
		}
		if err := w.writeVisitLog(u.Key(), &p.Visits[i]); err != nil {
			return err
		}
	}
	var errs []error
	for _, v := range p.Settings {
		if !own[v.Name] {
			errs = append(errs, w.b.Set(metaKey(v.Name), v.Value, nil))
		}
	}
	return errors.Join(errs...)
}

// Loaded implements store.Target: it builds anew what is kept in memory.
func (s *Store) Loaded(ctx context.Context) error {
	s.committing.Lock()
	defer s.committing.Unlock()
	s.mu.Lock()
	err := s.hosts.parked.closeSpill()
	s.hosts = hosts{most: s.hosts.most, parked: s.hosts.parked}
	s.leases = map[*host]struct{}{}
	s.stats = store.Stats{States: map[store.State]int64{}}
	old := s.seen
	s.seen = newSeen(old.limits)
	old.releaseMemory()
	s.mu.Unlock()
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if err := s.Put(ctx, idName, []byte(store.NewID())); err != nil {
		return err
	}
	if err := s.loadMemory(); err != nil {
		return err
	}
	if err := s.db.Delete(metaKey(loadingSetting), s.write); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}
