package local

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// writer gathers one batch, and what must happen in memory when it is
// committed. Which URLs are new, and which pages move forward, is decided while
// no other batch can commit: a URL counts as known once its record is in the log,
// behind which no later batch can be durable, and not before, or a batch that
// fails could take with it a URL that another batch dropped as known. The disk is
// waited for when others may commit again, so that they share a sync.
type writer struct {
	s       *Store
	b       *pebble.Batch
	room    []byte       // for a record
	lease   *store.Lease // nil for none: it must hold when the batch is written
	h       *host        // of the lease
	next    time.Time    // of the host
	taken   map[weburl.Key]place
	changed []*store.Visit // in order, for the feed
	added   map[weburl.Key]struct{}
	hosts   map[hostKey]string // hosts of added URLs
	fresh   map[hostKey]int64  // change of the count of new pages
	touched []hostKey          // hosts of fresh and sooner, each once, in the order in which they were met
	states  map[store.State]int64
	visited []weburl.Key
	sooner  map[hostKey]uint64  // revisits moved forward by signals
	lowest  map[hostKey]uint64  // lowest order of the new pages
	nextDue uint64              // earliest revisit among the visits, 0 for none
	wasDue  bool                // a visit left the queue of revisits
	locked  bool                // holds committing
	seq     uint64              // of the feed after the batch
	syncing bool                // the batch was written and is not known to be durable yet
	moved   map[weburl.Key]bool // pages moved forward in this batch, once each
	brought map[hostKey]*host   // hosts of the batch, in memory until it ends
}

// lock makes this the only batch under way.
func (w *writer) lock() {
	if !w.locked {
		w.s.committing.Lock()
		w.locked = true
	}
}

// durable lets other batches go on and waits until this one is on the disk.
func (w *writer) durable() error {
	w.end()
	if !w.syncing {
		return nil
	}
	w.syncing = false
	err := w.b.SyncWait()
	w.s.unsynced.Add(-1)
	if err != nil { // as Pebble does where it waits itself: memory is ahead of the disk
		w.s.log.Fatalf("pebble: fatal commit error: %v", err)
	}
	w.s.mu.Lock()
	w.s.told = max(w.s.told, w.seq)
	w.s.mu.Unlock()
	return err
}

// end lets other batches go on, whether this one was written or not.
func (w *writer) end() {
	if !w.locked {
		return
	}
	w.s.mu.Lock()
	if w.h != nil {
		w.h.writing = false
	}
	if w.moved != nil {
		w.s.moves++
	}
	for _, h := range w.brought {
		w.s.letGo(h)
	}
	w.s.hosts.shrink()
	w.s.mu.Unlock()
	w.locked = false
	w.s.committing.Unlock()
}

func (w *writer) put(key []byte, v any) (err error) {
	if w.room, err = appendRecord(w.room[:0], v); err != nil {
		return err
	}
	return w.b.Set(key, w.room, nil)
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
		w.lower(h.key, next.Order)
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
		line := &store.VisitLog{URL: v.Page.URL, Time: v.Arrived, Changed: v.Changed, Status: v.Page.Status, Bytes: v.Page.Bytes, Took: v.Took}
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
	w.touch(h)
	w.fresh[h] += n
}

// touch lists a host whose place in the order of hosts may change, once.
func (w *writer) touch(h hostKey) {
	_, counted := w.fresh[h]
	if _, hastened := w.sooner[h]; !counted && !hastened {
		w.touched = append(w.touched, h)
	}
}

// found queues the URLs that are new and moves known ones forward where they
// ask for it. First, beside other batches, it sorts out what is known; what
// remains is asked for again once no other batch can commit.
func (w *writer) found(found []store.Found) error {
	open := make([]*store.Found, 0, len(found))
	l := lookup{s: w.s}
	for i := range found {
		f := &found[i]
		is, err := l.known(f.URL.Key())
		if err != nil {
			return errors.Join(err, l.close())
		}
		if !is || !f.Due.IsZero() || f.Promote {
			open = append(open, f)
		}
	}
	if err := l.close(); err != nil || len(open) == 0 {
		return err
	}
	w.lock()
	for _, f := range open {
		if err := w.settle(f); err != nil {
			return errors.Join(err, l.close())
		}
	}
	return l.close()
}

// settle queues one URL if it is new, else moves it. The writer is locked.
func (w *writer) settle(f *store.Found) error {
	k := f.URL.Key()
	if _, here := w.added[k]; here {
		return nil
	}
	is := false
	switch w.s.seen.ask(k) {
	case known:
		is = true
	case unsure:
		w.s.looks.Add(1)
		_, c, err := w.s.db.Get(pageKey(k))
		if err == nil {
			is, err = true, c.Close()
		}
		if err != nil && !errors.Is(err, pebble.ErrNotFound) {
			return err
		}
	}
	if !is {
		return w.queue(k, f)
	}
	if !f.Due.IsZero() || f.Promote {
		return w.move(k, f)
	}
	return nil
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
	if w.added == nil {
		w.added = map[weburl.Key]struct{}{}
	}
	w.added[k] = struct{}{}
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
// nothing to do. The writer is locked.
func (w *writer) move(k weburl.Key, f *store.Found) error {
	v, err := w.s.get(pageKey(k))
	if err != nil || v == nil {
		return err
	}
	var p store.Page
	if err := decodePage(v, &p); err != nil {
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
	if w.moved[k] || !w.mayMove(h, k) {
		return nil
	}
	w.moved[k] = true
	old := slotKey(k, p.Slot)
	p.Slot = to
	if err := errors.Join(w.b.Delete(old, nil), w.put(pageKey(k), &p), w.b.Set(slotKey(k, to), nil, nil)); err != nil {
		return err
	}
	if to.Order > 0 {
		w.count(h, 0)
		w.lower(h, to.Order)
		return nil
	}
	w.hasten(h, to.Due)
	return nil
}

// hasten notes that a revisit moved forward.
func (w *writer) hasten(h hostKey, due time.Time) {
	if w.sooner == nil {
		w.sooner = map[hostKey]uint64{}
	}
	w.touch(h)
	at, ok := w.sooner[h]
	if !ok || millis(due) < at {
		w.sooner[h] = millis(due)
	}
}

// mayMove reports whether a page is not out. From the first such question to the
// end of the batch Take knows that pages are moving.
func (w *writer) mayMove(h hostKey, k weburl.Key) bool {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	if w.moved == nil {
		w.moved = map[weburl.Key]bool{}
		w.s.moves++
	}
	rec := w.s.hosts.in[h]
	if rec == nil { // nobody has it
		return true
	}
	_, out := rec.taken[k]
	return !out
}

// commit writes the batch and brings memory up to date; durable must follow. One
// batch at a time: entries of the feed must appear in the order of their numbers, or a reader
// could pass one by.
func (w *writer) commit() error {
	s := w.s
	w.lock()
	seq := s.seq // only written here
	for _, v := range w.changed {
		seq++
		if err := w.put(number(feedSpace, seq), &store.Change{Seq: seq, URL: v.Page.URL, Time: v.Arrived}); err != nil {
			return err
		}
	}
	unknown, err := w.check()
	if err != nil {
		return err
	}
	for _, h := range unknown {
		if err := w.host(h); err != nil {
			return err
		}
	}
	if s.write.Sync {
		err = s.db.ApplyNoSyncWait(w.b, s.write)
	} else {
		err = w.b.Commit(s.write)
	}
	if err != nil {
		return err
	}
	if w.syncing = s.write.Sync; w.syncing {
		s.unsynced.Add(1)
	}
	for k := range w.added {
		s.seen.add(k)
	}
	for _, h := range unknown {
		s.seen.add(idleKey(weburl.HostKey(h.Name)))
	}
	due, err := w.firstDue()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seq, w.seq = seq, seq
	if !w.syncing {
		s.told = seq
	}
	for _, rec := range unknown {
		h := &host{key: weburl.HostKey(rec.Name), at: -1, pins: 1}
		s.hosts.in[h.key], w.brought[h.key] = h, h
		s.stats.Hosts++
	}
	w.remember(due)
	return err
}

// check makes sure of the lease, brings the hosts of the batch into memory and
// lists those that are new. The lease does not run out until the batch ends.
func (w *writer) check() (unknown []store.Host, err error) {
	s := w.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.lease != nil {
		if w.h, err = s.leased(w.lease); err != nil {
			return nil, err
		}
		w.h.writing = true
	}
	w.brought = make(map[hostKey]*host, len(w.touched))
	for _, k := range w.touched {
		h, err := s.bring(k)
		if err != nil {
			return nil, err
		}
		if h != nil {
			w.brought[k] = h
		} else if name, ok := w.hosts[k]; ok {
			unknown = append(unknown, store.Host{Name: name})
		}
	}
	return unknown, nil
}

// firstDue returns the earliest revisit of the leased host after the batch. It
// looks at the queue only if the earliest may have left it.
func (w *writer) firstDue() (uint64, error) {
	if w.h == nil {
		return 0, nil
	}
	from := w.h.due // only written by a batch
	if from == 0 || w.nextDue > 0 && w.nextDue < from {
		from = w.nextDue
	}
	if !w.wasDue || from == 0 {
		return from, nil
	}
	prefix := append([]byte{dueSpace}, w.h.key[:]...)
	it, err := w.s.db.NewIter(&pebble.IterOptions{LowerBound: binary.BigEndian.AppendUint64(prefix, from), UpperBound: prefixEnd(prefix)})
	if err != nil {
		return from, err
	}
	due := uint64(0)
	if it.First() {
		_, due = pageOf(it.Key())
	}
	return due, it.Close()
}

// remember brings the hosts' places and the counts up to date. The caller holds
// mu.
func (w *writer) remember(due uint64) {
	s := w.s
	s.stats.URLs += int64(len(w.added))
	if w.h != nil {
		w.h.next, w.h.due = w.next, due
		for _, k := range w.visited {
			delete(w.h.taken, k)
		}
	}
	for _, k := range w.touched {
		h := w.brought[k]
		if h == nil { // a page without a host cannot be visited, wherever it stands
			continue
		}
		if n, ok := w.fresh[k]; ok {
			h.fresh += n
			h.adds++
			s.stats.New += n
		}
		if low, ok := w.lowest[k]; ok {
			h.low = min(h.low, low)
		}
		if at, ok := w.sooner[k]; ok && (h.due == 0 || at < h.due) {
			h.due = at
		}
		s.hosts.reheap(h)
	}
	if w.h != nil {
		s.hosts.reheap(w.h)
	}
	for st, n := range w.states {
		s.stats.States[st] += n
	}
}

func beUint(b []byte) uint64 { return binary.BigEndian.Uint64(b) }
