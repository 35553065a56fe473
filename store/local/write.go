package local

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

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
