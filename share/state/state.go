// Package state keeps the parts and files of shares in one Pebble database:
// the embedded store behind a share robot.
//
// Keys are a letter, the host's name, a zero byte and the thing's own key: 'h'
// hosts, 'p' parts, 'f' files, 'c' changes (journal.go), 'n' the number of the last one. Files of a host lie in the order of a walk
// (part.FolderKey), so the files of a part are a few ranges read in sequence.
package state

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/freshet/freshet/share"
	"github.com/freshet/freshet/share/part"
)

// Store is a share.Store on Pebble.
type Store struct {
	db      *pebble.DB
	journal bool
	id      string
}

var _ share.Store = (*Store)(nil)

// Config of Open. The zero value is useful.
type Config struct {
	CacheBytes int64  // of blocks; 0 means 64 MB
	FS         vfs.FS // nil means the disk
	// Journal keeps which files change until TrimChanges: a search index follows.
	Journal bool
}

// Open opens the database in dir, usually DATA/shares, and makes it if there is
// none.
func Open(dir string, c Config) (*Store, error) {
	if c.CacheBytes <= 0 {
		c.CacheBytes = 64 << 20
	}
	cache := pebble.NewCache(c.CacheBytes)
	defer cache.Unref()
	o := &pebble.Options{
		Cache: cache, FS: c.FS, MemTableSize: 32 << 20, MaxOpenFiles: 500, Logger: quiet{},
		FormatMajorVersion: pebble.FormatNewest,
	}
	for i := range o.Levels {
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	db, err := pebble.Open(filepath.Clean(dir), o)
	if err != nil {
		return nil, fmt.Errorf("open the store of shares in %s: %w", dir, err)
	}
	s := &Store{db: db, journal: c.Journal}
	if err := s.openJournal(); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return s, nil
}

type quiet struct{}

func (quiet) Infof(string, ...any)      {}
func (quiet) Errorf(string, ...any)     {}
func (quiet) Fatalf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }

// Close closes the database.
func (s *Store) Close() error { return s.db.Close() }

func keyPrefix(kind byte, host string) []byte {
	b := make([]byte, 0, len(host)+2)
	b = append(b, kind)
	b = append(b, host...)
	return append(b, 0)
}

// prefixEnd returns the first key behind all that begin with p, which ends in 0.
func prefixEnd(p []byte) []byte {
	e := append([]byte(nil), p...)
	e[len(e)-1] = 1
	return e
}

func partKey(host string, p part.Part) []byte {
	return binary.BigEndian.AppendUint64(keyPrefix('p', host), p.ID())
}

// Hosts implements share.Store.
func (s *Store) Hosts(ctx context.Context) ([]share.Host, error) {
	var out []share.Host
	err := s.scanPairs(ctx, []byte("h"), []byte("i"), func(_, v []byte) error {
		h, err := share.ParseHost(v)
		if err == nil {
			out = append(out, h)
		}
		return err
	})
	return out, err
}

// PutHost implements share.Store.
func (s *Store) PutHost(_ context.Context, h share.Host) error {
	v, err := share.AppendHost(nil, h)
	if err != nil {
		return err
	}
	if err := s.db.Set(keyPrefix('h', h.Name), v, pebble.Sync); err != nil {
		return fmt.Errorf("store host %s: %w", h.Name, err)
	}
	return nil
}

// DropHost implements share.Store.
func (s *Store) DropHost(_ context.Context, host string) error {
	b := s.db.NewBatch()
	defer b.Close()
	for _, kind := range []byte("hpf") {
		p := keyPrefix(kind, host)
		if err := b.DeleteRange(p, prefixEnd(p), nil); err != nil {
			return err
		}
	}
	if err := s.noteChange(b, host, droppedMark); err != nil {
		return err
	}
	if err := b.Commit(pebble.Sync); err != nil {
		return fmt.Errorf("drop host %s: %w", host, err)
	}
	return nil
}

// Parts implements share.Store.
func (s *Store) Parts(ctx context.Context, host string) ([]share.PartState, error) {
	var out []share.PartState
	p := keyPrefix('p', host)
	err := s.scanPairs(ctx, p, prefixEnd(p), func(_, v []byte) error {
		st, err := share.ParsePart(v)
		if err == nil {
			out = append(out, st)
		}
		return err
	})
	return out, err
}

// Part implements share.Store.
func (s *Store) Part(_ context.Context, host string, p part.Part) (share.PartState, bool, error) {
	v, closer, err := s.db.Get(partKey(host, p))
	if errors.Is(err, pebble.ErrNotFound) {
		return share.PartState{}, false, nil
	}
	if err != nil {
		return share.PartState{}, false, fmt.Errorf("read part %s of %s: %w", p, host, err)
	}
	defer closer.Close()
	st, err := share.ParsePart(v)
	return st, err == nil, err
}

// Files implements share.Store.
func (s *Store) Files(ctx context.Context, host, low, high string, f func(string, *share.File) error) error {
	p := keyPrefix('f', host)
	n := len(p)
	from, to := append(p[:n:n], low...), append(p[:n:n], high...)
	if high == "" {
		to = prefixEnd(p)
	}
	return s.scanPairs(ctx, from, to, func(k, v []byte) error {
		file := share.File{Host: host, Path: part.KeyPath(k[n:])}
		if err := share.ParseFile(v, &file); err != nil {
			return fmt.Errorf("%s%s: %w", host, file.Path, err)
		}
		return f(string(k[n:]), &file)
	})
}

// Commit implements share.Store.
func (s *Store) Commit(_ context.Context, batch share.Batch) error {
	b := s.db.NewBatch()
	defer b.Close()
	p := keyPrefix('f', batch.Host)
	n := len(p)
	var buf []byte
	for i := range batch.Put {
		f := &batch.Put[i]
		buf = share.AppendFile(buf[:0], f)
		if err := b.Set(append(p[:n:n], f.Key()...), buf, nil); err != nil {
			return err
		}
	}
	for _, path := range batch.Delete {
		if err := b.Delete(append(p[:n:n], part.PathKey(path)...), nil); err != nil {
			return err
		}
	}
	for i := range batch.Parts {
		buf = share.AppendPart(buf[:0], &batch.Parts[i])
		if err := b.Set(partKey(batch.Host, batch.Parts[i].Part), buf, nil); err != nil {
			return err
		}
	}
	for _, gone := range batch.Gone {
		if err := b.Delete(partKey(batch.Host, gone), nil); err != nil {
			return err
		}
	}
	if err := s.noteChange(b, batch.Host, appendPaths(nil, &batch)); err != nil {
		return err
	}
	if err := b.Commit(pebble.Sync); err != nil {
		return fmt.Errorf("store a scan of %s: %w", batch.Host, err)
	}
	return nil
}

// scanPairs calls f for the pairs in [low, high).
func (s *Store) scanPairs(ctx context.Context, low, high []byte, f func(k, v []byte) error) (err error) {
	it, err := s.db.NewIterWithContext(ctx, &pebble.IterOptions{LowerBound: low, UpperBound: high})
	if err != nil {
		return fmt.Errorf("read the store of shares: %w", err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for n, ok := 0, it.First(); ok; n, ok = n+1, it.Next() {
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		v, err := it.ValueAndErr()
		if err != nil {
			return fmt.Errorf("read the store of shares: %w", err)
		}
		if err := f(it.Key(), v); err != nil {
			return err
		}
	}
	return it.Error()
}
