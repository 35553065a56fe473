package local

import (
	"cmp"
	"slices"
	"time"

	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// visit is a visit under way into a batch.
type visit struct {
	*store.Visit
	key  weburl.Key
	from place // where the page stood
	at   int   // in the batch
}

// feedEntry is what the feed tells of a change.
type feedEntry struct {
	key weburl.Key
	at  time.Time
	url string
}

// writeVisitRecords notes the visits of the batch: each page leaves the slot from which it was
// taken for that of its new record.
func (w *writer) writeVisitRecords(h *host, visits []store.Visit) error {
	if err := store.CheckVisits(visits, func(k weburl.Key) bool { _, out := w.taken[k]; return out }); err != nil {
		return err
	}
	for i := range visits {
		v := w.s.withRefetch(&visits[i])
		k := v.Page.Key
		from := w.taken[k]
		w.visits = append(w.visits, visit{v, k, from, i})
		w.noteQueueMove(h, from.slot, v.Page.Slot)
		w.states[v.Page.State]++
		if from.state != store.Queued {
			w.states[from.state]--
		}
		if v.Changed || v.Reindex {
			w.changed = append(w.changed, feedEntry{k, v.Arrived, v.Page.URL})
		}
		if v.Retarget {
			if err := w.requeueCanonical(k, v.Arrived); err != nil {
				return err
			}
		}
	}
	slices.SortFunc(w.visits, func(a, b visit) int {
		return cmp.Or(cmp.Compare(beUint(a.key[8:]), beUint(b.key[8:])), a.at-b.at)
	})
	return w.writeVisits()
}

// requeueCanonical puts pages into the feed that name a page as canonical.
func (w *writer) requeueCanonical(target weburl.Key, at time.Time) error {
	prefix := append([]byte{aliasSpace}, target[:]...)
	return w.s.scanSome(prefix, store.MaxAliases, func(k []byte) {
		w.changed = append(w.changed, feedEntry{key: weburl.Key(k[spaceLength+len(target):]), at: at})
	})
}

// withRefetch is a visit of whose page the body was asked for again while it was out:
// one that brought no other body is not enough.
func (s *Store) withRefetch(v *store.Visit) *store.Visit {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.refetch) == 0 {
		return v
	}
	due, asked := s.refetch[v.Page.Key]
	if !asked {
		return v
	}
	delete(s.refetch, v.Page.Key)
	if v.Changed {
		return v
	}
	again := *v
	again.Page.ForgetBody()
	if again.Page.State == store.OK {
		again.Page.Slot = store.Slot{Due: due}
	}
	return &again
}

// noteQueueMove notes what a visit changes in the queue of its host.
func (w *writer) noteQueueMove(h *host, from, to store.Slot) {
	if from.Order > 0 {
		w.changeOf(h.key).countNewPages(-1)
	}
	switch {
	case to.Order > 0:
		c := w.changeOf(h.key)
		c.countNewPages(1)
		c.noteLowestOrder(to.Order)
	case !to.Due.IsZero():
		if at := max(1, millis(to.Due)); w.nextDue == 0 || at < w.nextDue {
			w.nextDue = at
		}
	}
	w.wasDue = w.wasDue || from.Order == 0
}

// writeVisits writes one kind of entry after the other, each in the order of the
// keys: the table of fresh writes finds the place of a key that follows the one
// before at half the cost.
func (w *writer) writeVisits() error {
	for i := range w.visits {
		v := &w.visits[i]
		if old := slotKey(v.key, v.from.slot); old != nil {
			if err := w.b.Delete(old, nil); err != nil {
				return err
			}
		}
	}
	for i := range w.visits {
		v := &w.visits[i]
		if next := slotKey(v.key, v.Page.Slot); next != nil {
			if err := w.b.Set(next, nil, nil); err != nil {
				return err
			}
		}
	}
	for i := range w.visits {
		if err := w.writePageRecord(w.visits[i].key, &w.visits[i].Page); err != nil {
			return &store.PageError{Key: w.visits[i].key, URL: w.visits[i].Page.URL, Err: err}
		}
	}
	for i := range w.visits {
		v := &w.visits[i]
		if v.Alias == (weburl.Key{}) || !v.Changed && !v.Reindex {
			continue
		}
		if err := w.b.Set(aliasKey(v.Alias, v.key), nil, nil); err != nil {
			return err
		}
	}
	for i := range w.visits {
		v := &w.visits[i]
		if !v.Changed {
			continue
		}
		if err := w.setEncoded(linkKey(v.key), appendLinks(w.room[:0], v.Links), nil); err != nil {
			return err
		}
	}
	slices.SortFunc(w.visits, func(a, b visit) int { return a.at - b.at }) // about by time
	for i := range w.visits {
		v := &w.visits[i]
		if v.Arrived.IsZero() {
			continue
		}
		line := &store.VisitLog{URL: v.Page.URL, Time: v.Arrived, Changed: v.Changed, Status: v.Page.Status, Bytes: v.Page.Bytes, Took: v.Took}
		if err := w.writeVisitLog(v.key, line); err != nil {
			return err
		}
	}
	return nil
}

// writeVisitLog writes a line of the log of visits.
func (w *writer) writeVisitLog(k weburl.Key, line *store.VisitLog) error {
	v, err := appendVisit(w.room[:0], line)
	return w.setEncoded(visitKey(line.Time, k), v, err)
}
