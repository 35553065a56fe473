package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/freshet/freshet/share"
)

// Store is a store of shares whose changes an index can follow.
type Store interface {
	share.Store
	share.Journal
}

// Follow brings the index in step with a store, and lets Update keep it so: it reads the
// changes that it does not have, and the files of hosts that it does not know. It is
// called once, before the first Update.
func (x *Index) Follow(ctx context.Context, store Store) error {
	x.store = store
	hosts, err := store.Hosts(ctx)
	if err != nil {
		return err
	}
	changed, err := store.ChangedHosts(ctx)
	if err != nil {
		return err
	}
	x.set.Lock()
	known := x.cursor.Hosts
	if x.cursor.Store != store.ID() {
		x.cursor = cursor{Store: store.ID(), Hosts: map[string]uint64{}}
		x.isMoved = true
	}
	x.set.Unlock()
	exists := map[string]bool{}
	for _, h := range hosts {
		exists[h.Name] = true
		x.Online(h.Name, h.Offline == 0)
		if err := x.catchUp(ctx, h.Name); err != nil {
			return err
		}
	}
	for host := range known { // what the store no longer has, or another store had
		changed = append(changed, host)
	}
	for _, host := range changed {
		if !exists[host] {
			if err := x.Drop(ctx, host); err != nil {
				return err
			}
		}
	}
	return nil
}

// catchUp applies the changes of a host that the index does not have: by the journal, or,
// where that does not reach back far enough, by reading all files of the host.
func (x *Index) catchUp(ctx context.Context, host string) error {
	last, err := x.store.LastChange(ctx, host)
	if err != nil {
		return err
	}
	x.set.Lock()
	done, isKnown := x.cursor.Hosts[host]
	x.set.Unlock()
	if isKnown && done == last {
		return nil
	}
	if isKnown && done < last {
		err := x.replayHost(ctx, host, done)
		if !errors.Is(err, share.ErrNoChanges) {
			return err
		}
	}
	return x.reloadHost(ctx, host, last)
}

// replayHost applies the changes of a host after a number.
func (x *Index) replayHost(ctx context.Context, host string, after uint64) error {
	return x.store.Changes(ctx, host, after, func(c share.Change) error {
		if c.IsDropped {
			return x.dropHost(host, func() { x.moveTo(host, c.Number) })
		}
		var put []share.File
		var removed []string
		for _, p := range c.Paths {
			f, ok, err := x.store.File(ctx, host, p)
			switch {
			case err != nil:
				return err
			case ok:
				put = append(put, f)
			default:
				removed = append(removed, p)
			}
		}
		return x.applyChanges(ctx, host, put, removed, func() { x.moveTo(host, c.Number) })
	})
}

// reloadHost replaces the files of a host by those of the store, which have the change
// number last.
func (x *Index) reloadHost(ctx context.Context, host string, last uint64) error {
	x.config.Log.Info("reading the files of a host into the index", "host", host)
	if err := x.dropHost(host, func() { delete(x.cursor.Hosts, host) }); err != nil {
		return err
	}
	var batch []share.File
	n := 0
	add := func() error {
		n += len(batch)
		err := x.applyChanges(ctx, host, batch, nil, func() {})
		batch = batch[:0]
		return err
	}
	err := x.store.Files(ctx, host, "", "", func(_ string, f *share.File) error {
		if batch = append(batch, *f); len(batch) == loadBatch {
			return add()
		}
		return nil
	})
	if err == nil {
		err = add()
	}
	if err != nil {
		return fmt.Errorf("read the files of %s into the index: %w", host, err)
	}
	x.set.Lock()
	defer x.set.Unlock()
	x.moveTo(host, last)
	x.config.Log.Info("read the files of a host into the index", "host", host, "files", n)
	return nil
}

const loadBatch = 10_000

// trimChanges lets the store forget the changes that are durable in the index.
func (x *Index) trimChanges(ctx context.Context) error {
	if x.store == nil {
		return nil
	}
	b, err := x.set.Cursor()
	if err != nil || len(b) == 0 {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if string(b) == x.trimmedAt {
		return nil
	}
	var durable cursor
	if err := json.Unmarshal(b, &durable); err != nil {
		return fmt.Errorf("index %s: cursor: %w", x.set.Dir(), err)
	}
	for host, n := range durable.Hosts {
		if x.trimmed[host] == n {
			continue
		}
		if err := x.store.TrimChanges(ctx, host, n); err != nil {
			return err
		}
		x.trimmed[host] = n
	}
	x.trimmedAt = string(b)
	return nil
}
