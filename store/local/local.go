// Package local is the store of one process: Pebble, a log-structured
// key-value store, in a folder of the data directory.
//
// Pages, queue entries and links lie under keys that begin with the host's
// hash. All writes of a batch are blind puts in one Pebble batch that is synced
// once; whether a URL is known is answered from memory (seen). Hosts that have
// work stand in a heap by the time at which they may be visited; leases live in
// memory, since they end with the process.
package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// formatVersion is written into the store. Formats 1 (all records in JSON) and 2 (records
// without reasons) are read, too: opening such a store brings it to the present format
// (upgrade). Other formats are refused.
const formatVersion = "3"

var formatsBefore = []string{"1", "2"}

// Config are the options of a store. The zero value is usable.
type Config struct {
	// Known is how many URLs the table in memory holds, 10 to 15 bytes each; beyond
	// it those met lately. Default 8 million.
	Known int
	// Filter is how many bytes the filters may take that know of all URLs once
	// the table is full, 12 to 24 bits each; with less than 12 the disk is asked
	// more often. Default 128 MiB.
	Filter int
	// Hosts is how many hosts are kept in memory, 250 bytes each; what is known of
	// others is on disk. Hosts under a lease are always in memory. Default 65,536.
	Hosts int
	// Cache is the block cache in bytes, of which the tables of fresh writes take
	// up to three times their size. Default 40 MiB.
	Cache int64
	// FS replaces the file system (tests of crashes).
	FS vfs.FS
	// NoSync leaves durability to the operating system: a crash of the machine
	// may lose the last seconds, a crash of the process nothing.
	NoSync bool
	// Fatal is told why the store cannot go on (a failing disk) and must not
	// return; nil panics.
	Fatal func(message string)

	memory uint64           // of the table of fresh writes; default 16 MiB
	now    func() time.Time // default time.Now
}

// Store implements store.Store.
type Store struct {
	db    *pebble.DB
	write *pebble.WriteOptions
	log   quiet
	seen  *seen
	cache *pebble.Cache
	now   func() time.Time
	// unsynced counts batches that others see already and that are not durable yet.
	unsynced atomic.Int64
	looks    atomic.Int64 // questions of known URLs that memory could not answer

	writers    sync.Pool  // of *writer, for their room
	committing sync.Mutex // held while a batch is written; before mu

	mu      sync.Mutex // guards what follows
	hosts   hosts
	leases  map[*host]struct{}
	token   uint64
	seq     uint64    // of the feed
	told    uint64    // up to where it is durable: readers see no further
	clock   time.Time // the latest that Claim was told
	moves   uint64    // odd while a batch moves pages in their queues
	stats   store.Stats
	id      string
	refetch map[weburl.Key]time.Time // pages out whose bodies were asked for again meanwhile, and by when
	closing bool
}

var _ store.Store = (*Store)(nil)

// Open opens the store in dir, or makes a new one. The error is ErrLocked or
// ErrVersion where those are the reason.
func Open(dir string, c Config) (*Store, error) {
	if c.Known <= 0 {
		c.Known = 8 << 20
	}
	if c.Filter <= 0 {
		c.Filter = 128 << 20
	}
	if c.Hosts <= 0 {
		c.Hosts = 1 << 16
	}
	if c.Cache <= 0 {
		c.Cache = 40 << 20
	}
	if c.FS == nil {
		c.FS = vfs.Default
		if err := os.MkdirAll(filepath.Dir(dir), 0o750); err != nil {
			return nil, fmt.Errorf("store: %w", err)
		}
	}
	if c.now == nil {
		c.now = time.Now
	}
	if c.memory == 0 {
		c.memory = 16 << 20
	}
	cache := pebble.NewCache(c.Cache)
	opts := &pebble.Options{
		FS: c.FS, Cache: cache, FormatMajorVersion: pebble.FormatNewest, Logger: quiet{c.Fatal},
		MemTableSize: c.memory, MemTableStopWritesThreshold: 3, MaxOpenFiles: 500,
		L0CompactionThreshold: 4, L0StopWritesThreshold: 24,
	}
	for i := range len(opts.Levels) - 1 { // Get does not ask the filters of the last level
		opts.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	// What is flushed is merged into the next level soon: compressing it costs more
	// than it saves.
	opts.Levels[0].Compression = func() *sstable.CompressionProfile { return sstable.NoCompression }
	for i := range opts.Levels[1:] {
		opts.Levels[1+i].Compression = func() *sstable.CompressionProfile { return sstable.SnappyCompression }
	}
	db, err := pebble.Open(dir, opts)
	if err != nil {
		cache.Unref()
		if errors.Is(err, fs.ErrPermission) {
			return nil, fmt.Errorf("store %s: %w", dir, err)
		}
		if strings.Contains(err.Error(), "lock") || strings.Contains(err.Error(), "temporarily unavailable") {
			return nil, fmt.Errorf("store %s: %w", dir, store.ErrLocked)
		}
		if strings.Contains(err.Error(), "format major version") {
			return nil, fmt.Errorf("store %s: %w: %s", dir, store.ErrVersion, strings.TrimPrefix(err.Error(), "pebble: "))
		}
		if pebble.IsCorruptionError(err) || strings.Contains(err.Error(), "manifest") {
			return nil, fmt.Errorf("store %s is damaged: %w; take a copy of the data directory, or remove the folder of the store: then all is fetched again", dir, err)
		}
		return nil, fmt.Errorf("store %s: %w", dir, err)
	}
	s := &Store{db: db, cache: cache, write: pebble.Sync, log: quiet{c.Fatal}, seen: newSeen(limits{c.Known, c.Filter}), leases: map[*host]struct{}{}, refetch: map[weburl.Key]time.Time{}}
	if c.NoSync {
		s.write = pebble.NoSync
	}
	s.now = c.now
	s.hosts = hosts{most: c.Hosts, parked: parked{dir: filepath.Join(dir, "parked"), fs: c.FS, cache: cache}}
	s.stats.States = map[store.State]int64{}
	err = s.checkComplete()
	if err == nil {
		err = s.loadMemory()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("store %s: %w", dir, err), s.hosts.parked.closeSpill(), db.Close())
	}
	return s, nil
}

// quiet drops Pebble's messages; its errors come back from calls, but for those
// from which it cannot go on.
type quiet struct{ fatal func(string) }

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
func (q quiet) Fatalf(format string, args ...any) {
	if q.fatal != nil {
		q.fatal(fmt.Sprintf(format, args...))
	}
	panic(fmt.Sprintf("pebble: "+format, args...))
}

// checkComplete fails for a store into which a copy was begun and not finished.
func (s *Store) checkComplete() error {
	v, err := s.Get(context.Background(), loadingSetting)
	if err == nil && v != nil {
		err = fmt.Errorf("%w: remove the folder of the store and restore or migrate again", store.ErrPartial)
	}
	return err
}

// loadMemory checks the version and rebuilds what is kept in memory.
func (s *Store) loadMemory() error {
	ctx := context.Background()
	v, err := s.Get(ctx, "version")
	if err != nil {
		return err
	}
	if err := s.loadSeq(); err != nil {
		return err
	}
	if v == nil || slices.Contains(formatsBefore, string(v)) {
		if v != nil {
			if err := s.upgradeFormat(); err != nil {
				return fmt.Errorf("bring the store from format %s to %s: %w", v, formatVersion, err)
			}
		}
		if err := s.Put(ctx, "version", []byte(formatVersion)); err != nil {
			return err
		}
		// The log that Pebble begins a new store with does not tell what was synced, so
		// that damage in its middle would pass for its end. The next one does.
		if err := s.db.Flush(); err != nil {
			return err
		}
	} else if string(v) != formatVersion {
		return fmt.Errorf("%w: its format is %s, this program reads %s and %s", store.ErrVersion, v, strings.Join(formatsBefore, ", "), formatVersion)
	}
	if err := s.loadStoreID(); err != nil {
		return err
	}
	if err := s.loadPages(); err != nil {
		return err
	}
	if err := s.dropEmptySettings(); err != nil {
		return err
	}
	if err := s.loadHosts(); err != nil {
		return err
	}
	if back, err := s.visitedAhead(s.now()); err != nil || !back {
		return err
	}
	return s.repairClockSkew(s.now())
}

// idName is the setting with the store's ID.
const idName = "store-id"

// loadStoreID reads the store's ID; one that has none gets one.
func (s *Store) loadStoreID() error {
	b, err := s.Get(context.Background(), idName)
	if err != nil {
		return err
	}
	if len(b) == 0 {
		b = []byte(store.NewID())
		if err := s.Put(context.Background(), idName, b); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.id = string(b)
	return nil
}

// dropEmptySettings deletes rows of the queue of renders that earlier programs emptied
// instead of deleting them.
func (s *Store) dropEmptySettings() error {
	w := s.db.NewBatch()
	defer w.Close()
	err := s.scanPrefix(metaKey("render-wait/"), func(k, v []byte) error {
		if len(v) > 0 {
			return nil
		}
		return w.Delete(k, nil)
	})
	if err != nil || w.Empty() {
		return err
	}
	return w.Commit(s.write)
}

func (s *Store) loadSeq() error {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{feedSpace}, UpperBound: []byte{feedSpace + 1}})
	if err != nil {
		return err
	}
	if it.Last() {
		s.seq = beUint(it.Key()[1:])
	}
	if err := it.Close(); err != nil {
		return err
	}
	b, err := s.Get(context.Background(), "seq") // kept by Trim
	if err == nil && len(b) == 8 {
		s.seq = max(s.seq, beUint(b))
	}
	s.told = s.seq
	return err
}

// scanPrefix calls f for every key with a prefix; key and value are only valid
// inside f.
func (s *Store) scanPrefix(prefix []byte, f func(k, v []byte) error) error {
	return s.scanRange(prefix, prefixUpperBound(prefix), f)
}

func (s *Store) scanRange(from, to []byte, f func(k, v []byte) error) error {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return err
	}
	for ok := it.First(); ok; ok = it.Next() {
		v, err := it.ValueAndErr()
		if err == nil {
			err = f(it.Key(), v)
		}
		if err != nil {
			return errors.Join(err, it.Close())
		}
	}
	return it.Close()
}

// scanSome calls f for up to n keys with a prefix.
func (s *Store) scanSome(prefix []byte, n int, f func(k []byte)) error {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: prefixUpperBound(prefix)})
	if err != nil {
		return err
	}
	for ok := it.First(); ok && n > 0; ok, n = it.Next(), n-1 {
		f(it.Key())
	}
	return errors.Join(it.Error(), it.Close())
}

// getCopy returns a copy of a value, nil if there is none.
func (s *Store) getCopy(key []byte) ([]byte, error) {
	v, c, err := s.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	out := append([]byte{}, v...)
	return out, c.Close()
}

// Get implements store.Store.
func (s *Store) Get(_ context.Context, name string) ([]byte, error) {
	v, err := s.getCopy(metaKey(name))
	if err != nil {
		return nil, fmt.Errorf("store: get %s: %w", name, err)
	}
	return v, nil
}

// Put implements store.Store.
func (s *Store) Put(_ context.Context, name string, value []byte) error {
	var err error
	if len(value) == 0 {
		err = s.db.Delete(metaKey(name), s.write)
	} else {
		err = s.db.Set(metaKey(name), value, s.write)
	}
	if err != nil {
		return fmt.Errorf("store: put %s: %w", name, err)
	}
	return nil
}

// Close implements store.Store.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		return nil
	}
	s.closing = true
	s.mu.Unlock()
	s.mu.Lock()
	err := s.hosts.parked.closeSpill()
	s.mu.Unlock()
	err = errors.Join(err, s.db.Close())
	s.cache.Unref()
	s.seen.releaseMemory()
	if err != nil {
		return fmt.Errorf("store: close: %w", err)
	}
	return nil
}

// Memory tells what the front of the known URLs costs.
type Memory struct {
	Bytes int64 `json:"bytes"` // of its tables
	Looks int64 `json:"looks"` // at the disk, since the store was opened
}

// Memory returns what the front of the known URLs costs.
func (s *Store) Memory() Memory { return Memory{Bytes: s.seen.heldBytes(), Looks: s.looks.Load()} }

// ID implements store.Store.
func (s *Store) ID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id
}

// Stats implements store.Store.
func (s *Store) Stats(context.Context) (store.Stats, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.stats
	out.States = map[store.State]int64{}
	for k, v := range s.stats.States {
		out.States[k] = v
	}
	out.Feed = s.told
	out.Leases = len(s.leases)
	var err error
	if out.Due, err = s.hosts.countDue(millis(s.now())); err != nil {
		return out, fmt.Errorf("store: stats: %w", err)
	}
	return out, nil
}
