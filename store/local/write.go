package local

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
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
	visits  []visit        // by the keys of their pages, then in order
	changed []feedEntry    // in order, for the feed
	open    []*store.Found // may be new
	added   map[weburl.Key]struct{}
	news    []newPage // the added ones
	touched []*hostChange
	byHost  map[hostKey]*hostChange // of touched
	states  map[store.State]int64
	nextDue uint64              // earliest revisit among the visits, 0 for none
	wasDue  bool                // a visit left the queue of revisits
	locked  bool                // holds committing
	seq     uint64              // of the feed after the batch
	syncing bool                // the batch was written and is not known to be durable yet
	moved   map[weburl.Key]bool // pages moved forward in this batch, once each
}

// newPage is a URL that was not known.
type newPage struct {
	key   weburl.Key
	found *store.Found
}

func (p newPage) queueSlot() store.Slot { return store.Slot{Order: max(1, p.found.Order)} }

// hostChange is what a batch changes in the queue of a host.
type hostChange struct {
	key    hostKey
	name   string // where pages are added
	queued bool   // new pages came, went or moved
	fresh  int64  // change of the count of new pages
	lowest uint64 // order of the new pages, 0 for none
	sooner uint64 // revisits moved forward by signals to here, 0 for none
	h      *host  // in memory until the batch ends
}

// newWriter begins a batch, with the room of one that ended.
func (s *Store) newWriter() *writer {
	w, ok := s.writers.Get().(*writer)
	if !ok {
		w = &writer{added: map[weburl.Key]struct{}{}, byHost: map[hostKey]*hostChange{}, states: map[store.State]int64{}}
	}
	w.s, w.b = s, s.db.NewBatch()
	return w
}

// mostRoom is how many URLs a batch may have had whose room is kept.
const mostRoom = 1024

// closeBatch ends the batch, written or not.
func (w *writer) closeBatch() {
	w.unlockBatches()
	_ = w.b.Close() // it fails only for a batch that is still being synced: Pebble leaves that to the collector
	s := w.s
	if len(w.added) > mostRoom || cap(w.open) > mostRoom || len(w.byHost) > mostRoom {
		return
	}
	clear(w.added)
	clear(w.byHost)
	clear(w.states)
	clear(w.changed)
	clear(w.open)
	clear(w.visits)
	clear(w.news)
	clear(w.touched)
	*w = writer{
		room: w.room[:0], changed: w.changed[:0], open: w.open[:0], added: w.added, news: w.news[:0],
		touched: w.touched[:0], byHost: w.byHost, states: w.states, visits: w.visits[:0],
	}
	s.writers.Put(w)
}

// changeOf returns the change of a host.
func (w *writer) changeOf(h hostKey) *hostChange {
	c := w.byHost[h]
	if c == nil {
		c = &hostChange{key: h}
		w.byHost[h] = c
		w.touched = append(w.touched, c)
	}
	return c
}

// lockBatches makes this the only batch under way.
func (w *writer) lockBatches() {
	if !w.locked {
		w.s.committing.Lock()
		w.locked = true
	}
}

// awaitDurable lets other batches go on and waits until this one is on the disk.
func (w *writer) awaitDurable() error {
	w.unlockBatches()
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

// unlockBatches lets other batches go on, whether this one was written or not.
func (w *writer) unlockBatches() {
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
	for _, c := range w.touched {
		if c.h != nil {
			w.s.letGo(c.h)
		}
	}
	w.s.hosts.spillSome()
	w.s.mu.Unlock()
	w.locked = false
	w.s.committing.Unlock()
}

// setEncoded writes what one of the append functions has put into the writer's room.
func (w *writer) setEncoded(key, value []byte, err error) error {
	w.room = value[:0]
	if err != nil {
		return err
	}
	return w.b.Set(key, value, nil)
}

func (w *writer) writePageRecord(k weburl.Key, p *store.Page) error {
	v, err := appendPage(w.room[:0], p)
	return w.setEncoded(pageKey(k), v, err)
}

func (w *writer) writeHostRecord(h store.Host) error {
	v, err := appendJSON(w.room[:0], h)
	return w.setEncoded(hostRecordKey(weburl.HostKey(h.Name)), v, err)
}

// countNewPages notes that new pages came or went.
func (c *hostChange) countNewPages(n int64) {
	c.queued = true
	c.fresh += n
}

// noteLowestOrder notes the least order among the new pages of the batch.
func (c *hostChange) noteLowestOrder(order uint64) {
	if order = max(1, order); c.lowest == 0 || order < c.lowest {
		c.lowest = order
	}
}

// queueFound queues the URLs that are new and moves known ones forward where they
// ask for it. First, beside other batches, it sorts out what is known; what
// remains is asked for again once no other batch can commit.
func (w *writer) queueFound(found []store.Found) error {
	l := lookup{s: w.s}
	for i := range found {
		f := &found[i]
		is, err := l.isKnown(f.URL.Key())
		if err != nil {
			return errors.Join(err, l.closeLookup())
		}
		if !is || !f.Due.IsZero() || f.Promote {
			w.open = append(w.open, f)
		}
	}
	if err := l.closeLookup(); err != nil || len(w.open) == 0 {
		return err
	}
	w.lockBatches()
	for _, f := range w.open {
		if err := w.queueOrMove(f); err != nil {
			return errors.Join(err, l.closeLookup())
		}
	}
	return errors.Join(w.writeNews(), l.closeLookup())
}

// queueOrMove queues one URL if it is new, else moves it. The writer is locked.
func (w *writer) queueOrMove(f *store.Found) error {
	k := f.URL.Key()
	if _, here := w.added[k]; here {
		return nil
	}
	is := false
	switch w.s.seen.lookupURL(k) {
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
		w.queueNew(k, f)
		return nil
	}
	if !f.Due.IsZero() || f.Promote {
		return w.moveForward(k, f)
	}
	return nil
}

// queueNew takes up a URL that is not known.
func (w *writer) queueNew(k weburl.Key, f *store.Found) {
	w.added[k] = struct{}{}
	w.news = append(w.news, newPage{k, f})
	c := w.changeOf(hostKey(k[:8]))
	c.name = f.URL.Host()
	c.countNewPages(1)
	c.noteLowestOrder(f.Order)
}

// writeNews writes the new pages, in the order of their keys as visits do.
func (w *writer) writeNews() error {
	slices.SortFunc(w.news, func(a, b newPage) int { return bytes.Compare(a.key[:], b.key[:]) })
	for _, p := range w.news {
		f := p.found
		if err := w.writePageRecord(p.key, &store.Page{Key: p.key, URL: f.URL.String(), State: store.Queued, Depth: f.Depth, From: f.From, Slot: p.queueSlot()}); err != nil {
			return err
		}
	}
	for _, p := range w.news {
		if err := w.b.Set(slotKey(p.key, p.queueSlot()), nil, nil); err != nil {
			return err
		}
	}
	return nil
}

// moveForward brings a known page forward in its queue: a revisit to f.Due, a page
// never visited to f.Order. A page that is out under a lease is being visited:
// nothing to do. The writer is locked.
func (w *writer) moveForward(k weburl.Key, f *store.Found) error {
	v, err := w.s.getCopy(pageKey(k))
	if err != nil || v == nil {
		return err
	}
	var p store.Page
	if err := decodePage(v, &p); err != nil {
		return err
	}
	if f.Refetch {
		return w.forgetBody(k, &p, f.Due)
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
	if err := errors.Join(w.b.Delete(old, nil), w.writePageRecord(k, &p), w.b.Set(slotKey(k, to), nil, nil)); err != nil {
		return err
	}
	c := w.changeOf(h)
	if to.Order > 0 {
		c.countNewPages(0)
		c.noteLowestOrder(to.Order)
		return nil
	}
	c.noteSooner(to.Due)
	return nil
}

// forgetBody lets the body of a page be fetched again, by due at the latest. Of a page
// that is out the visit under way does not count, unless it brings a body.
func (w *writer) forgetBody(k weburl.Key, p *store.Page, due time.Time) error {
	if p.Slot.Order > 0 || w.moved[k] { // it has no body; or it is done
		return nil
	}
	h, old := hostKey(k[:8]), slotKey(k, p.Slot)
	in := w.mayMove(h, k)
	w.moved[k] = true
	p.ForgetBody()
	if !in {
		w.s.mu.Lock()
		w.s.refetch[k] = due
		w.s.mu.Unlock()
		return w.writePageRecord(k, p)
	}
	if p.Slot.Due.IsZero() || due.Before(p.Slot.Due) {
		p.Slot.Due = due
	}
	if old != nil {
		if err := w.b.Delete(old, nil); err != nil {
			return err
		}
	}
	w.changeOf(h).noteSooner(p.Slot.Due)
	return errors.Join(w.writePageRecord(k, p), w.b.Set(slotKey(k, p.Slot), nil, nil))
}

// noteSooner notes that a revisit moved forward.
func (c *hostChange) noteSooner(due time.Time) {
	if at := millis(due); c.sooner == 0 || at < c.sooner {
		c.sooner = at
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

// commitWrites writes the batch and brings memory up to date; awaitDurable must follow. One
// batch at a time: entries of the feed must appear in the order of their numbers, or a reader
// could pass one by.
func (w *writer) commitWrites() error {
	s := w.s
	w.lockBatches()
	seq := s.seq // only written here
	for _, c := range w.changed {
		seq++
		v, err := appendChange(w.room[:0], c.key, &store.Change{Seq: seq, URL: c.url, Time: c.at})
		if err = w.setEncoded(numberKey(feedSpace, seq), v, err); err != nil {
			return err
		}
	}
	unknown, err := w.checkLease()
	if err != nil {
		return err
	}
	for _, h := range unknown {
		if err := w.writeHostRecord(h); err != nil {
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
		s.seen.addURL(k)
	}
	for _, h := range unknown {
		s.seen.addURL(idleKey(weburl.HostKey(h.Name)))
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
		s.hosts.in[h.key], w.changeOf(h.key).h = h, h
		s.stats.Hosts++
	}
	w.updateMemory(due)
	return err
}

// checkLease makes sure of the lease, brings the hosts of the batch into memory and
// lists those that are new. The lease does not run out until the batch ends.
func (w *writer) checkLease() (unknown []store.Host, err error) {
	s := w.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.lease != nil {
		if w.h, err = s.leasedHost(w.lease); err != nil {
			return nil, err
		}
		w.h.writing = true
	}
	for _, c := range w.touched {
		if c.h, err = s.bringHost(c.key); err != nil {
			return nil, err
		}
		if c.h == nil && c.name != "" {
			unknown = append(unknown, store.Host{Name: c.name})
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
	it, err := w.s.db.NewIter(&pebble.IterOptions{LowerBound: binary.BigEndian.AppendUint64(prefix, from), UpperBound: prefixUpperBound(prefix)})
	if err != nil {
		return from, err
	}
	due := uint64(0)
	if it.First() {
		_, due = pageOf(it.Key())
	}
	return due, it.Close()
}

// updateMemory brings the hosts' places and the counts up to date. The caller holds
// mu.
func (w *writer) updateMemory(due uint64) {
	s := w.s
	s.stats.URLs += int64(len(w.added))
	if w.h != nil {
		w.h.next, w.h.due = w.next, due
		for i := range w.visits {
			delete(w.h.taken, w.visits[i].key)
		}
	}
	for _, c := range w.touched {
		h := c.h
		if h == nil { // a page without a host cannot be visited, wherever it stands
			continue
		}
		if c.queued {
			h.fresh += c.fresh
			h.adds++
			s.stats.New += c.fresh
		}
		if c.lowest > 0 {
			h.low = min(h.low, c.lowest)
		}
		if c.sooner > 0 && (h.due == 0 || c.sooner < h.due) {
			h.due = c.sooner
		}
		s.hosts.updateHeap(h)
	}
	if w.h != nil {
		s.hosts.updateHeap(w.h)
	}
	for st, n := range w.states {
		s.stats.States[st] += n
	}
}

func beUint(b []byte) uint64 { return binary.BigEndian.Uint64(b) }
