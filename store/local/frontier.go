package local

import (
	"container/heap"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// host is what is kept in memory of a host.
type host struct {
	key   hostKey
	name  string
	next  time.Time // politeness
	fresh int64     // pages never visited
	due   uint64    // earliest revisit in milliseconds, 0 for none
	lease uint64    // token of the lease, 0 for none
	until time.Time
	taken map[weburl.Key]place // pages out under the lease
	wait  int64                // when it becomes ready, in milliseconds
	turn  uint64               // among hosts with the same wait, the first to come
	at    int                  // place in the heap, -1 for none
	low   uint64               // no new page stands before this order
	adds  uint64               // batches that queued new pages
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

// reheap puts a host where it belongs: into the heap if it has work and is not
// leased. The caller holds mu.
func (s *Store) reheap(h *host) {
	if h.lease != 0 || (h.fresh == 0 && h.due == 0) {
		if h.at >= 0 {
			heap.Remove(&s.ready, h.at)
		}
		return
	}
	h.wait = 0
	if !h.next.IsZero() {
		h.wait = h.next.UnixMilli()
	}
	if h.fresh == 0 {
		h.wait = max(h.wait, int64(h.due))
	}
	if h.at < 0 {
		s.turns++
		h.turn = s.turns
		heap.Push(&s.ready, h)
	} else {
		heap.Fix(&s.ready, h.at)
	}
}

// Claim implements store.Store.
func (s *Store) Claim(_ context.Context, node string, now time.Time, ttl time.Duration) (*store.Lease, time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire(now)
	if len(s.ready) == 0 {
		return nil, time.Time{}, nil
	}
	h := s.ready[0]
	if h.wait > now.UnixMilli() {
		return nil, time.UnixMilli(h.wait), nil
	}
	s.token++
	h.lease, h.until, h.taken = s.token, now.Add(ttl), map[weburl.Key]place{}
	s.leases[h] = struct{}{}
	s.reheap(h)
	l := &store.Lease{Token: h.lease, Node: node, Until: h.until, New: h.fresh}
	v, err := s.get(hostRecord(h.key))
	if err == nil && v != nil {
		err = json.Unmarshal(v, &l.Host)
	}
	if err != nil {
		s.drop(h)
		return nil, time.Time{}, fmt.Errorf("store: claim %s: %w", h.name, err)
	}
	l.Host.Name = h.name
	return l, time.Time{}, nil
}

// expire ends leases that ran out. The caller holds mu.
func (s *Store) expire(now time.Time) {
	for h := range s.leases {
		if now.After(h.until) {
			s.drop(h)
		}
	}
}

// drop ends a host's lease. The caller holds mu.
func (s *Store) drop(h *host) {
	h.lease, h.taken = 0, nil
	delete(s.leases, h)
	s.reheap(h)
}

// leased returns the host of a lease that still holds. The caller holds mu.
func (s *Store) leased(l *store.Lease) (*host, error) {
	h := s.hosts[weburl.HostKey(l.Host.Name)]
	if h == nil || h.lease != l.Token {
		return nil, fmt.Errorf("%s: %w", l.Host.Name, store.ErrLease)
	}
	return h, nil
}

// Renew implements store.Store.
func (s *Store) Renew(_ context.Context, l *store.Lease, now time.Time, ttl time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, err := s.leased(l)
	if err != nil {
		return err
	}
	if now.After(h.until) {
		s.drop(h)
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
	h, err := s.leased(l)
	if err != nil {
		return err
	}
	s.drop(h)
	return nil
}

// Take implements store.Store. Of n pages at most half are revisits while new
// pages wait, so that neither starves.
func (s *Store) Take(_ context.Context, l *store.Lease, n int, now time.Time) ([]store.Page, error) {
	s.mu.Lock()
	h, err := s.leased(l)
	if err != nil {
		s.mu.Unlock()
		return nil, err
	}
	out := make(map[weburl.Key]bool, len(h.taken))
	for k := range h.taken {
		out[k] = true
	}
	low, adds, firstDue := h.low, h.adds, h.due
	s.mu.Unlock()

	due, _, err := s.entries(dueSpace, h.key, n, firstDue, millis(now), out)
	if err != nil {
		return nil, fmt.Errorf("store: take of %s: %w", l.Host.Name, err)
	}
	fresh, first, err := s.entries(newSpace, h.key, n, low, ^uint64(0), out)
	if err != nil {
		return nil, fmt.Errorf("store: take of %s: %w", l.Host.Name, err)
	}
	due = due[:min(len(due), max(n/2, n-len(fresh)))]
	fresh = fresh[:min(len(fresh), n-len(due))]
	keys := mix(due, fresh)
	pages := make([]store.Page, 0, len(keys))
	for _, k := range keys {
		v, err := s.get(pageKey(k))
		if err == nil && v == nil {
			err = store.ErrNotFound
		}
		var p store.Page
		if err == nil {
			err = json.Unmarshal(v, &p)
		}
		if err != nil {
			return nil, fmt.Errorf("store: page %x of %s: %w", k, l.Host.Name, err)
		}
		pages = append(pages, p)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.leased(l); err != nil {
		return nil, err
	}
	for i, k := range keys {
		h.taken[k] = place{pages[i].Slot, pages[i].State}
	}
	if h.adds == adds { // else pages may have been queued before it meanwhile
		h.low = first
	}
	return pages, nil
}

// mix takes from both in turn, so that pages that fail again and again do not
// stand together before those that were never tried.
func mix(a, b []weburl.Key) []weburl.Key {
	out := make([]weburl.Key, 0, len(a)+len(b))
	for i := range max(len(a), len(b)) {
		if i < len(b) {
			out = append(out, b[i])
		}
		if i < len(a) {
			out = append(out, a[i])
		}
	}
	return out
}

// entries lists up to n queue entries of a host that are not out, from one
// order or time up to another, and tells where the first of all stands.
// Starting there matters: what was taken from the front of the queue remains as
// tombstones until the next compaction, and an iterator steps over each.
func (s *Store) entries(space byte, h hostKey, n int, from, last uint64, out map[weburl.Key]bool) (keys []weburl.Key, first uint64, err error) {
	prefix := append([]byte{space}, h[:]...)
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: binary.BigEndian.AppendUint64(prefix, from), UpperBound: prefixEnd(prefix)})
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
	b := s.db.NewBatch()
	defer b.Close()
	w := writer{s: s, b: b}
	defer w.unlock()
	err := w.found(found)
	if err == nil {
		err = w.commit()
	}
	if err != nil {
		w.undo()
		return 0, fmt.Errorf("store: add %d URLs: %w", len(found), err)
	}
	return len(w.added), nil
}

// Commit implements store.Store.
func (s *Store) Commit(_ context.Context, l *store.Lease, batch *store.Batch) (int, error) {
	b := s.db.NewBatch()
	defer b.Close()
	w := writer{s: s, b: b}
	defer w.unlock()
	s.mu.Lock()
	h, err := s.leased(l)
	if err == nil {
		w.taken = h.taken
	}
	s.mu.Unlock()
	if err != nil {
		return 0, err
	}
	for i := range batch.Visits {
		if err = w.visit(h, &batch.Visits[i]); err != nil {
			break
		}
	}
	if err == nil {
		err = w.host(batch.Host)
	}
	if err == nil {
		err = w.found(batch.Found)
	}
	if err == nil {
		err = w.commit()
	}
	if err != nil {
		w.undo()
		return 0, fmt.Errorf("store: commit %d pages of %s: %w", len(batch.Visits), l.Host.Name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h.next = batch.Host.Next
	for i := range w.visited {
		delete(h.taken, w.visited[i])
	}
	if err := s.firstDue(h, &w); err != nil {
		return len(w.added), fmt.Errorf("store: queue of %s: %w", l.Host.Name, err)
	}
	s.reheap(h)
	return len(w.added), nil
}

// firstDue brings the earliest revisit of a host up to date after a batch of
// its visits. It looks at the queue only if the earliest may have left it. The
// caller holds mu.
func (s *Store) firstDue(h *host, w *writer) error {
	from := h.due
	if from == 0 || w.nextDue > 0 && w.nextDue < from {
		from = w.nextDue
	}
	if !w.wasDue || from == 0 {
		h.due = from
		return nil
	}
	prefix := append([]byte{dueSpace}, h.key[:]...)
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: binary.BigEndian.AppendUint64(prefix, from), UpperBound: prefixEnd(prefix)})
	if err != nil {
		return err
	}
	h.due = 0
	if it.First() {
		_, h.due = pageOf(it.Key())
	}
	return it.Close()
}

// writer gathers one batch, and what must happen in memory when it is
// committed, or be undone when it is not.
type writer struct {
	s       *Store
	b       *pebble.Batch
	taken   map[weburl.Key]place
	changed []*store.Visit // in order, for the feed
	added   []weburl.Key
	hosts   map[hostKey]string // hosts of added URLs
	fresh   map[hostKey]int64  // change of the count of new pages
	states  map[store.State]int64
	visited []weburl.Key
	sooner  map[hostKey]uint64  // revisits moved forward by signals
	lowest  map[hostKey]uint64  // lowest order of the new pages
	nextDue uint64              // earliest revisit among the visits, 0 for none
	wasDue  bool                // a visit left the queue of revisits
	locked  bool                // holds committing
	looked  map[weburl.Key]bool // URLs of this batch that the table had no room for
	moved   map[weburl.Key]bool // pages moved forward in this batch, once each
}

// lock makes this the only batch under way.
func (w *writer) lock() {
	if !w.locked {
		w.s.committing.Lock()
		w.locked = true
	}
}

func (w *writer) unlock() {
	if w.locked {
		w.locked = false
		w.s.committing.Unlock()
	}
}

func (w *writer) put(key []byte, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return w.b.Set(key, b, nil)
}

func (w *writer) host(h store.Host) error {
	return w.put(hostRecord(weburl.HostKey(h.Name)), h)
}

// visit writes a page's new record, moves it in the queue, and logs the visit.
func (w *writer) visit(h *host, v *store.Visit) error {
	u, err := weburl.Parse(v.Page.URL)
	if err != nil {
		return err
	}
	k := u.Key()
	if hostKey(k[:8]) != h.key {
		return fmt.Errorf("%s is not on the leased host", v.Page.URL)
	}
	from, out := w.taken[k]
	if !out {
		return fmt.Errorf("%s was not taken", v.Page.URL)
	}
	if old := slotKey(k, from.slot); old != nil {
		if err := w.b.Delete(old, nil); err != nil {
			return err
		}
	}
	if from.slot.Order > 0 {
		w.count(h.key, -1)
	}
	switch next := v.Page.Slot; {
	case next.Order > 0:
		w.count(h.key, 1)
		if w.lowest == nil {
			w.lowest = map[hostKey]uint64{}
		}
		if low, ok := w.lowest[h.key]; !ok || next.Order < low {
			w.lowest[h.key] = next.Order
		}
	case !next.Due.IsZero():
		if at := max(1, millis(next.Due)); w.nextDue == 0 || at < w.nextDue {
			w.nextDue = at
		}
	}
	w.wasDue = w.wasDue || from.slot.Order == 0
	if next := slotKey(k, v.Page.Slot); next != nil {
		if err := w.b.Set(next, nil, nil); err != nil {
			return err
		}
	}
	if w.states == nil {
		w.states = map[store.State]int64{}
	}
	w.states[v.Page.State]++
	if from.state != store.Queued {
		w.states[from.state]--
	}
	w.visited = append(w.visited, k)
	if err := w.put(pageKey(k), &v.Page); err != nil {
		return err
	}
	return w.log(k, v)
}

// log writes the visit's line, and for a change the links; the feed's entry
// gets its number when the batch is committed.
func (w *writer) log(k weburl.Key, v *store.Visit) error {
	if !v.Arrived.IsZero() {
		key := append(number(visitSpace, millis(v.Arrived)), k[:]...)
		line := store.VisitLog{URL: v.Page.URL, Time: v.Arrived, Changed: v.Changed, Status: v.Page.Status, Bytes: v.Page.Bytes, Took: v.Took}
		if err := w.put(key, line); err != nil {
			return err
		}
	}
	if !v.Changed {
		return nil
	}
	w.changed = append(w.changed, v)
	links := make([]byte, 0, 16*len(v.Links))
	for _, l := range v.Links {
		links = append(links, l[:]...)
	}
	return w.b.Set(linkKey(k), links, nil)
}

func (w *writer) count(h hostKey, n int64) {
	if w.fresh == nil {
		w.fresh = map[hostKey]int64{}
	}
	w.fresh[h] += n
}

// found queues the URLs that are new.
func (w *writer) found(found []store.Found) error {
	for i := range found {
		f := &found[i]
		k := f.URL.Key()
		fresh, maybe := w.s.seen.add(k)
		if maybe {
			var err error
			if fresh, err = w.look(k); err != nil {
				return err
			}
		}
		if fresh {
			if err := w.queue(k, f); err != nil {
				return err
			}
		} else if !f.Due.IsZero() || f.Promote {
			if err := w.move(k, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// look asks the disk whether a URL is new. From then on no other batch may
// commit, or both could find it new.
func (w *writer) look(k weburl.Key) (fresh bool, err error) {
	w.lock()
	if w.looked[k] {
		return false, nil
	}
	_, c, err := w.s.db.Get(pageKey(k))
	if errors.Is(err, pebble.ErrNotFound) {
		if w.looked == nil {
			w.looked = map[weburl.Key]bool{}
		}
		w.looked[k] = true
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return false, c.Close()
}

// lower notes the least order among a host's queued pages of this batch.
func (w *writer) lower(h hostKey, order uint64) {
	if low, ok := w.lowest[h]; !ok || order < low {
		if w.lowest == nil {
			w.lowest = map[hostKey]uint64{}
		}
		w.lowest[h] = order
	}
}

func (w *writer) queue(k weburl.Key, f *store.Found) error {
	w.added = append(w.added, k)
	h := hostKey(k[:8])
	w.lower(h, f.Order)
	if w.hosts == nil {
		w.hosts = map[hostKey]string{}
	}
	w.hosts[h] = f.URL.Host()
	w.count(h, 1)
	p := store.Page{URL: f.URL.String(), State: store.Queued, Depth: f.Depth, From: f.From, Slot: store.Slot{Order: max(1, f.Order)}}
	if err := w.put(pageKey(k), &p); err != nil {
		return err
	}
	return w.b.Set(slotKey(k, p.Slot), nil, nil)
}

// move brings a known page forward in its queue: a revisit to f.Due, a page
// never visited to f.Order. A page that is out under a lease is being visited:
// nothing to do.
func (w *writer) move(k weburl.Key, f *store.Found) error {
	v, err := w.s.get(pageKey(k))
	if err != nil || v == nil {
		return err
	}
	var p store.Page
	if err := json.Unmarshal(v, &p); err != nil {
		return err
	}
	to := p.Slot
	switch {
	case p.Slot.Order > 0:
		if !f.Promote || max(1, f.Order) >= p.Slot.Order {
			return nil
		}
		to.Order = max(1, f.Order)
	case p.Slot.Due.IsZero() || f.Due.IsZero() || !f.Due.Before(p.Slot.Due):
		return nil
	default:
		to.Due = f.Due
	}
	h := hostKey(k[:8])
	w.s.mu.Lock()
	rec := w.s.hosts[h]
	out := false
	if rec != nil {
		_, out = rec.taken[k]
	}
	w.s.mu.Unlock()
	if out || w.moved[k] {
		return nil
	}
	if w.moved == nil {
		w.moved = map[weburl.Key]bool{}
	}
	w.moved[k] = true
	old := slotKey(k, p.Slot)
	p.Slot = to
	if err := errors.Join(w.b.Delete(old, nil), w.put(pageKey(k), &p), w.b.Set(slotKey(k, to), nil, nil)); err != nil {
		return err
	}
	if to.Order > 0 {
		w.lower(h, to.Order)
		return nil
	}
	if w.sooner == nil {
		w.sooner = map[hostKey]uint64{}
	}
	if at, ok := w.sooner[h]; !ok || millis(to.Due) < at {
		w.sooner[h] = max(1, millis(to.Due))
	}
	return nil
}

// commit writes the batch and brings memory up to date. One batch at a time:
// entries of the feed must appear in the order of their numbers, or a reader
// could pass one by.
func (w *writer) commit() error {
	s := w.s
	w.lock()
	defer w.unlock()
	seq := s.seq // only written here
	for _, v := range w.changed {
		seq++
		if err := w.put(number(feedSpace, seq), store.Change{Seq: seq, URL: v.Page.URL, Time: v.Arrived}); err != nil {
			return err
		}
	}
	s.mu.Lock()
	var unknown []store.Host
	for k, name := range w.hosts {
		if s.hosts[k] == nil {
			unknown = append(unknown, store.Host{Name: name})
		}
	}
	s.mu.Unlock()
	for _, h := range unknown {
		if err := w.host(h); err != nil {
			return err
		}
	}
	if err := w.b.Commit(s.write); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seq = seq
	for _, rec := range unknown {
		k := weburl.HostKey(rec.Name)
		if s.hosts[k] == nil {
			s.hosts[k] = &host{key: k, name: rec.Name, at: -1}
			s.stats.Hosts++
		}
	}
	s.stats.URLs += int64(len(w.added))
	for k, n := range w.fresh {
		h := s.hosts[k]
		h.fresh += n
		h.adds++
		if low, ok := w.lowest[k]; ok {
			h.low = min(h.low, low)
		}
		s.stats.New += n
		s.reheap(h)
	}
	for k, at := range w.sooner {
		if h := s.hosts[k]; h.due == 0 || at < h.due {
			h.due = at
			s.reheap(h)
		}
	}
	for st, n := range w.states {
		s.stats.States[st] += n
	}
	return nil
}

// undo forgets the URLs that a failed batch would have added.
func (w *writer) undo() {
	for _, k := range w.added {
		w.s.seen.remove(k)
	}
}

func beUint(b []byte) uint64 { return binary.BigEndian.Uint64(b) }
