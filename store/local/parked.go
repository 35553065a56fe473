package local

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// parked keeps, on disk, the hosts that have work and no room in memory: in the
// order in which they will be claimed. It is a second Pebble, without a log, whose
// content is nothing but a swapped part of memory: what it says follows from the
// records and queues of the store, from which it is built anew when the store is
// opened. It exists only once there are too many hosts. All its methods are called
// with the store's mu held.
type parked struct {
	dir   string
	fs    vfs.FS
	cache *pebble.Cache
	db    *pebble.DB // nil: no host was ever parked

	n     int
	head  rank // no host stands before it
	stale bool // the host at head was taken out one by one: the first may stand later

	// What Stats tells of the hosts here: with new pages, held by politeness, and
	// with nothing but revisits whose time had come when passed was looked at last.
	fresh, held, due int64
	passed           uint64
}

// rank is a host's place among those that wait.
type rank struct {
	wait int64 // in milliseconds
	turn uint64
}

func (a rank) claimedBefore(b rank) bool {
	return a.wait < b.wait || a.wait == b.wait && a.turn < b.turn
}

func (h *host) claimRank() rank { return rank{h.wait, h.turn} }

// Key spaces of the parked hosts.
const (
	waitingSpace = 'w' // + wait, turn, host hash: state
	placeSpace   = 'q' // + host hash: wait, turn
)

func waitingKey(r rank, k hostKey) []byte {
	b := append(make([]byte, 0, 25), waitingSpace)
	b = binary.BigEndian.AppendUint64(b, uint64(r.wait))
	b = binary.BigEndian.AppendUint64(b, r.turn)
	return append(b, k[:]...)
}

func placeKey(k hostKey) []byte { return append([]byte{placeSpace}, k[:]...) }

// openSpill makes the second Pebble, empty.
func (p *parked) openSpill() error {
	if p.db != nil {
		return nil
	}
	opts := &pebble.Options{
		FS: p.fs, Cache: p.cache, FormatMajorVersion: pebble.FormatNewest, Logger: quiet{}, DisableWAL: true,
		MemTableSize: parkedTable, MemTableStopWritesThreshold: 2, MaxOpenFiles: 100,
	}
	for i := range opts.Levels {
		opts.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	err := errors.Join(p.fs.RemoveAll(p.dir), p.fs.MkdirAll(p.dir, 0o750))
	if err == nil {
		p.db, err = pebble.Open(p.dir, opts)
	}
	if err != nil {
		return fmt.Errorf("hosts parked in %s: %w", p.dir, err)
	}
	return nil
}

// parkedTable is how much is written at a time.
const parkedTable = 4 << 20

// closeSpill ends it and takes it off the disk.
func (p *parked) closeSpill() error {
	if p.db == nil {
		return p.fs.RemoveAll(p.dir) // of a process that was killed
	}
	err := p.db.Close()
	*p = parked{dir: p.dir, fs: p.fs, cache: p.cache}
	return errors.Join(err, p.fs.RemoveAll(p.dir))
}

// spillHosts parks hosts.
func (p *parked) spillHosts(hosts []*host) error {
	if err := p.openSpill(); err != nil {
		return err
	}
	b := p.db.NewBatch()
	defer b.Close()
	for _, h := range hosts {
		key := waitingKey(h.claimRank(), h.key)
		if err := errors.Join(b.Set(key, h.spilledState(), nil), b.Set(placeKey(h.key), key[1:17], nil)); err != nil {
			return err
		}
	}
	if err := b.Commit(pebble.NoSync); err != nil {
		return fmt.Errorf("park %d hosts: %w", len(hosts), err)
	}
	for _, h := range hosts {
		if r := h.claimRank(); p.n == 0 || r.claimedBefore(p.head) {
			p.head, p.stale = r, false
		}
		p.n++
		p.countSpilled(h, 1)
	}
	return nil
}

// countSpilled keeps what Stats tells.
func (p *parked) countSpilled(h *host, n int64) {
	switch {
	case h.fresh > 0:
		p.fresh += n
	case !h.next.IsZero() && uint64(h.next.UnixMilli()) > h.due:
		p.held += n
	case h.due <= p.passed:
		p.due += n
	}
}

// countDueSpilled counts the hosts with new pages or with a revisit due at a time, about.
func (p *parked) countDueSpilled(now uint64) (int64, error) {
	if p.n > 0 && now > p.passed {
		it, err := p.db.NewIter(&pebble.IterOptions{LowerBound: numberKey(waitingSpace, p.passed+1), UpperBound: numberKey(waitingSpace, now+1)})
		if err != nil {
			return 0, err
		}
		for ok := it.First(); ok; ok = it.Next() {
			h, err := parkedHost(it)
			if err != nil {
				return 0, errors.Join(err, it.Close())
			}
			if h.fresh == 0 && (h.next.IsZero() || uint64(h.next.UnixMilli()) <= h.due) {
				p.due++
			}
		}
		if err := it.Close(); err != nil {
			return 0, err
		}
	}
	p.passed = max(p.passed, now)
	return p.fresh + p.held + p.due, nil
}

// unspillHost takes one host out; nil if it is not here.
func (p *parked) unspillHost(k hostKey) (*host, error) {
	if p.n == 0 {
		return nil, nil
	}
	place, c, err := p.db.Get(placeKey(k))
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("parked host: %w", err)
	}
	key := append(append([]byte{waitingSpace}, place...), k[:]...)
	if err := c.Close(); err != nil {
		return nil, err
	}
	v, c, err := p.db.Get(key)
	if err != nil {
		return nil, fmt.Errorf("parked host %x: %w", key, err)
	}
	h, err := decodeSpilled(key, v)
	if err := errors.Join(err, c.Close()); err != nil {
		return nil, err
	}
	if err := p.deleteSpilled([]*host{h}); err != nil {
		return nil, err
	}
	p.stale = p.stale || h.claimRank() == p.head
	return h, nil
}

// deleteSpilled takes hosts off the disk.
func (p *parked) deleteSpilled(hosts []*host) error {
	b := p.db.NewBatch()
	defer b.Close()
	for _, h := range hosts {
		if err := errors.Join(b.Delete(waitingKey(h.claimRank(), h.key), nil), b.Delete(placeKey(h.key), nil)); err != nil {
			return err
		}
	}
	if err := b.Commit(pebble.NoSync); err != nil {
		return fmt.Errorf("take %d parked hosts: %w", len(hosts), err)
	}
	p.n -= len(hosts)
	for _, h := range hosts {
		p.countSpilled(h, -1)
	}
	return nil
}

// firstSpilled is the rank of the first host here.
func (p *parked) firstSpilled() (r rank, ok bool, err error) {
	if p.n == 0 {
		return rank{}, false, nil
	}
	if p.stale {
		_, err = p.unspillFirst(0)
	}
	return p.head, p.n > 0, err
}

// unspillFirst takes out up to n hosts, the first ones, and learns which is the first
// of those that stay. Starting at head matters: what was taken remains as
// tombstones until the next compaction.
func (p *parked) unspillFirst(n int) (hosts []*host, err error) {
	it, err := p.db.NewIter(&pebble.IterOptions{LowerBound: waitingKey(p.head, hostKey{}), UpperBound: []byte{waitingSpace + 1}})
	if err != nil {
		return nil, err
	}
	ok := it.First()
	for ; ok && len(hosts) < n; ok = it.Next() {
		h, err := parkedHost(it)
		if err != nil {
			return nil, errors.Join(err, it.Close())
		}
		hosts = append(hosts, h)
	}
	head := p.head
	if ok {
		head = rankOf(it.Key())
	}
	if err := it.Close(); err != nil {
		return nil, err
	}
	if len(hosts) > 0 {
		if err := p.deleteSpilled(hosts); err != nil {
			return nil, err
		}
	}
	p.head, p.stale = head, false
	return hosts, nil
}

// unspillWaiting takes out the hosts that wait until a time or longer, in parts of some
// thousand, and hands each part to f.
func (p *parked) unspillWaiting(wait int64, f func([]*host) error) error {
	for from := numberKey(waitingSpace, uint64(wait)); p.n > 0; {
		it, err := p.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: []byte{waitingSpace + 1}})
		if err != nil {
			return err
		}
		var hosts []*host
		for ok := it.First(); ok && len(hosts) < 4096; ok = it.Next() {
			h, err := parkedHost(it)
			if err != nil {
				return errors.Join(err, it.Close())
			}
			from = append(append(from[:0], it.Key()...), 0) // f may park them again where they were
			hosts = append(hosts, h)
		}
		if err := it.Close(); err != nil || len(hosts) == 0 {
			return err
		}
		p.stale = true
		if err := errors.Join(p.deleteSpilled(hosts), f(hosts)); err != nil {
			return err
		}
	}
	return nil
}

func rankOf(key []byte) rank {
	return rank{int64(binary.BigEndian.Uint64(key[1:])), binary.BigEndian.Uint64(key[9:])}
}

func parkedHost(it *pebble.Iterator) (*host, error) {
	v, err := it.ValueAndErr()
	if err != nil {
		return nil, err
	}
	return decodeSpilled(it.Key(), v)
}

// spilledState is what must be known of a host beside its key and rank.
func (h *host) spilledState() []byte {
	next := int64(0)
	if !h.next.IsZero() {
		next = h.next.UnixNano()
	}
	b := binary.AppendVarint(make([]byte, 0, 32), next)
	b = binary.AppendUvarint(b, h.due)
	b = binary.AppendUvarint(b, uint64(h.fresh))
	b = binary.AppendUvarint(b, h.low)
	orphan := uint64(0)
	if h.orphan {
		orphan = 1
	}
	return binary.AppendUvarint(b, orphan)
}

// decodeSpilled undoes waitingKey and state.
func decodeSpilled(key, v []byte) (*host, error) {
	h := &host{at: -1}
	copy(h.key[:], key[17:])
	r := rankOf(key)
	h.wait, h.turn = r.wait, r.turn
	next, n := binary.Varint(v)
	if next != 0 && n > 0 {
		h.next = time.Unix(0, next)
	}
	var fresh, orphan uint64
	for _, to := range []*uint64{&h.due, &fresh, &h.low, &orphan} {
		if n <= 0 || n > len(v) {
			return nil, fmt.Errorf("parked host %x: its state is cut short", key)
		}
		v = v[n:]
		*to, n = binary.Uvarint(v)
	}
	h.fresh, h.orphan = int64(fresh), orphan != 0
	if n <= 0 {
		return nil, fmt.Errorf("parked host %x: its state is cut short", key)
	}
	return h, nil
}
