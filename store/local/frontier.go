package local

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// host is what is kept in memory of a host.
type host struct {
	key   hostKey
	next  time.Time // politeness
	fresh int64     // pages never visited
	due   uint64    // earliest revisit in milliseconds, 0 for none
	lease uint64    // token of the lease, 0 for none
	until time.Time
	taken map[weburl.Key]place // pages out under the lease
	wait  int64                // when it becomes ready, in milliseconds
	turn  uint64               // among hosts with the same wait, the first to come
	at    int                  // place in the heap, -1 for none
	pins  int                  // batches that need it in memory
	low   uint64               // no new page stands before this order
	adds  uint64               // batches that queued new pages, or moved them
	// writing says that a batch under the lease is being written: the lease holds
	// until that is done.
	writing bool
	listed  bool // among the idle
	orphan  bool // the lease before ran out
}

// place is where a page stood when it was taken.
type place struct {
	slot  store.Slot
	state store.State
}

// hostHeap orders hosts by the time at which they may be visited; among equals
// the one that joined first goes first, so that hosts without delay take turns.
type hostHeap []*host

func (h hostHeap) Len() int { return len(h) }

func (h hostHeap) Less(i, j int) bool {
	return h[i].wait < h[j].wait || h[i].wait == h[j].wait && h[i].turn < h[j].turn
}

func (h hostHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i]; h[i].at, h[j].at = i, j }

// Push implements heap.Interface.
func (h *hostHeap) Push(x any) { e := x.(*host); e.at = len(*h); *h = append(*h, e) }

// Pop implements heap.Interface.
func (h *hostHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	e.at = -1
	return e
}

// Claim implements store.Store.
func (s *Store) Claim(_ context.Context, node string, now time.Time, ttl time.Duration) (*store.Lease, time.Time, error) {
	back, err := s.detectClockStep(now)
	if back && err == nil {
		err = s.repairClockSkew(now)
	}
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("store: claim: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expireLeases(now)
	h, next, err := s.hosts.nextHost(now.UnixMilli())
	if err == nil && h == nil && next == 0 {
		return nil, time.Time{}, s.hosts.err
	}
	if err == nil && h == nil {
		return nil, time.UnixMilli(next), s.hosts.err
	}
	if err == nil {
		err = s.hosts.err
	}
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("store: claim: %w", err)
	}
	s.token++
	h.lease, h.until, h.taken = s.token, now.Add(ttl), map[weburl.Key]place{}
	s.leases[h] = struct{}{}
	s.hosts.updateHeap(h)
	s.hosts.spillSome()
	l := &store.Lease{Token: h.lease, Node: node, Until: h.until, New: h.fresh, Orphan: h.orphan}
	h.orphan = false
	v, err := s.getCopy(hostRecordKey(h.key))
	if err == nil && v == nil {
		err = store.ErrNotFound
	}
	if err == nil {
		err = decodeHost(v, &l.Host)
	}
	if err != nil {
		s.dropLease(h)
		return nil, time.Time{}, fmt.Errorf("store: claim host %x: %w", h.key, err)
	}
	l.Host.Next = h.next
	return l, time.Time{}, nil
}

// detectClockStep notices when the clock was set back: hosts that were asked while it was
// ahead would rest until it is there again.
func (s *Store) detectClockStep(now time.Time) (back bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now = now.Round(0) // what the clock shows, not the time that passed
	if back = now.Add(store.ClockAhead).Before(s.clock); !back {
		if now.After(s.clock) {
			s.clock = now
		}
		return false, nil
	}
	s.clock = now
	return true, s.hosts.shortenRests(now)
}

// boundRest bounds a host's rest; it reports whether that was needed.
func (h *host) boundRest(now time.Time) bool {
	if h.next.Before(now.Add(store.LongestRest)) {
		return false
	}
	h.next = now.Add(store.SetBackRest)
	return true
}

// expireLeases ends leases that ran out. The caller holds mu.
func (s *Store) expireLeases(now time.Time) {
	var over []*host
	for h := range s.leases {
		if now.After(h.until) && !h.writing {
			over = append(over, h)
		}
	}
	slices.SortFunc(over, func(a, b *host) int { return cmp.Compare(a.lease, b.lease) })
	for _, h := range over {
		h.orphan = true
		s.dropLease(h)
	}
}

// dropLease ends a host's lease. The caller holds mu.
func (s *Store) dropLease(h *host) {
	h.lease, h.taken = 0, nil // not cleared: a batch under the lease may still read the map
	delete(s.leases, h)
	s.hosts.updateHeap(h)
}

// leasedHost returns the host of a lease that still holds. The caller holds mu.
func (s *Store) leasedHost(l *store.Lease) (*host, error) {
	h := s.hosts.in[weburl.HostKey(l.Host.Name)]
	if h == nil || h.lease != l.Token {
		return nil, fmt.Errorf("%s: %w", l.Host.Name, store.ErrLease)
	}
	return h, nil
}

// Renew implements store.Store.
func (s *Store) Renew(_ context.Context, l *store.Lease, now time.Time, ttl time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, err := s.leasedHost(l)
	if err != nil {
		return err
	}
	if now.After(h.until) && !h.writing {
		h.orphan = true
		s.dropLease(h)
		return fmt.Errorf("%s: %w", l.Host.Name, store.ErrLease)
	}
	h.until = now.Add(ttl)
	l.Until = h.until
	return nil
}

// Release implements store.Store.
func (s *Store) Release(_ context.Context, l *store.Lease) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, err := s.leasedHost(l)
	if err != nil {
		return err
	}
	s.dropLease(h)
	return nil
}

// Postpone implements store.Postponer.
func (s *Store) Postpone(_ context.Context, l *store.Lease, next time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, err := s.leasedHost(l)
	if err != nil {
		return err
	}
	h.next = next
	s.dropLease(h)
	return nil
}

// Take implements store.Store. Of n pages at most half are revisits while new
// pages wait, so that neither starves.
func (s *Store) Take(_ context.Context, l *store.Lease, n int, now time.Time) ([]store.Page, error) {
	pages, ok, err := s.takePages(l, n, now)
	if err == nil && !ok { // a batch moved pages meanwhile: once more, alone
		s.committing.Lock()
		defer s.committing.Unlock()
		pages, _, err = s.takePages(l, n, now)
	}
	if err != nil && !errors.Is(err, store.ErrLease) {
		err = fmt.Errorf("store: take of %s: %w", l.Host.Name, err)
	}
	return pages, err
}

// takePages reads pages and marks them as out. It reports false, and marks none, if pages
// moved in their queues while it read.
func (s *Store) takePages(l *store.Lease, n int, now time.Time) (pages []store.Page, ok bool, err error) {
	s.mu.Lock()
	h, err := s.leasedHost(l)
	if err != nil {
		s.mu.Unlock()
		return nil, false, err
	}
	r := reading{h: h, n: n, now: millis(now), low: h.low, adds: h.adds, moves: s.moves}
	if r.moves%2 != 0 {
		s.mu.Unlock()
		return nil, false, nil
	}
	if h.due > 0 && h.due <= r.now {
		r.firstDue = h.due
	}
	r.out = make(map[weburl.Key]bool, len(h.taken))
	for k := range h.taken {
		r.out[k] = true
	}
	s.mu.Unlock()
	if err := r.readQueues(s); err != nil {
		return nil, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.leasedHost(l); err != nil {
		return nil, false, err
	}
	if s.moves != r.moves {
		return nil, false, nil
	}
	return r.markTaken(), true, nil
}

// reading is one call of Take.
type reading struct {
	h          *host
	n          int
	now        uint64
	low        uint64
	adds       uint64
	moves      uint64
	firstDue   uint64 // 0 for none that is due
	out        map[weburl.Key]bool
	due, fresh []weburl.Key
	first      uint64       // order of the first new page
	pages      []store.Page // those of due, then those of fresh
}

// readQueues reads queues and records.
func (r *reading) readQueues(s *Store) (err error) {
	if r.firstDue > 0 {
		if r.due, _, err = s.queueEntries(dueSpace, r.h.key, r.n, r.firstDue, r.now, r.out); err != nil {
			return err
		}
	}
	if r.fresh, r.first, err = s.queueEntries(newSpace, r.h.key, r.n, r.low, ^uint64(0), r.out); err != nil {
		return err
	}
	r.due = r.due[:min(len(r.due), max(r.n/2, r.n-len(r.fresh)))]
	r.fresh = r.fresh[:min(len(r.fresh), r.n-len(r.due))]
	r.pages, err = s.pageRecords(append(r.due, r.fresh...))
	return err
}

// markTaken takes the pages. The caller holds mu.
func (r *reading) markTaken() []store.Page {
	h := r.h
	for i, k := range append(r.due, r.fresh...) {
		h.taken[k] = place{r.pages[i].Slot, r.pages[i].State}
	}
	if h.adds == r.adds { // else pages may have been queued before it meanwhile
		h.low = r.first
	}
	return store.Mix(r.pages[:len(r.due)], r.pages[len(r.due):])
}

// pageRecords reads the records of pages.
func (s *Store) pageRecords(keys []weburl.Key) ([]store.Page, error) {
	pages := make([]store.Page, len(keys))
	for i, k := range keys {
		if err := s.readPageRecord(k, &pages[i]); err != nil {
			return nil, fmt.Errorf("page %x: %w", k, err)
		}
	}
	return pages, nil
}

// queueEntries lists up to n queue entries of a host that are not out, from one
// order or time up to another, and tells where the first of all stands.
// Starting there matters: what was taken from the front of the queue remains as
// tombstones until the next compaction, and an iterator steps over each.
func (s *Store) queueEntries(space byte, h hostKey, n int, from, last uint64, out map[weburl.Key]bool) (keys []weburl.Key, first uint64, err error) {
	prefix := append([]byte{space}, h[:]...)
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: binary.BigEndian.AppendUint64(prefix, from), UpperBound: prefixUpperBound(prefix)})
	if err != nil {
		return nil, 0, err
	}
	first = from
	for ok, head := it.First(), true; ok && len(keys) < n; ok, head = it.Next(), false {
		k, at := pageOf(it.Key())
		if at > last {
			break
		}
		if head {
			first = at
		}
		if !out[k] {
			keys = append(keys, k)
		}
	}
	return keys, first, it.Close()
}

// Add implements store.Store.
func (s *Store) Add(_ context.Context, found []store.Found) (int, error) {
	w := s.newWriter()
	defer w.closeBatch()
	err := w.queueFound(found)
	switch {
	case err != nil:
	case !w.b.Empty():
		err = w.commitWrites()
	case s.unsynced.Load() > 0: // what is known may not be durable yet
		err = s.db.LogData(nil, s.write)
	}
	if err = errors.Join(err, w.awaitDurable()); err != nil {
		return 0, fmt.Errorf("store: add %d URLs: %w", len(found), err)
	}
	return len(w.added), nil
}

// Commit implements store.Store.
func (s *Store) Commit(_ context.Context, l *store.Lease, batch *store.Batch) (int, error) {
	w := s.newWriter()
	defer w.closeBatch()
	w.lease, w.next = l, batch.Host.Next
	s.mu.Lock()
	h, err := s.leasedHost(l)
	if err == nil {
		w.taken = h.taken
	}
	s.mu.Unlock()
	if err != nil {
		return 0, err
	}
	if err = w.writeVisitRecords(h, batch.Visits); err == nil {
		if err = w.writeHostRecord(batch.Host); err != nil {
			err = &store.HostError{Host: batch.Host.Name, Err: err}
		}
	}
	if err == nil {
		err = w.queueFound(batch.Found)
	}
	if err == nil {
		err = w.commitWrites()
	}
	if err = errors.Join(err, w.awaitDurable()); err != nil {
		return 0, fmt.Errorf("store: commit %d pages of %s: %w", len(batch.Visits), l.Host.Name, err)
	}
	return len(w.added), nil
}
