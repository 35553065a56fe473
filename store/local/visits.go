package local

import (
	"cmp"
	"fmt"
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

// visit notes the visits of the batch: each page leaves the slot from which it was
// taken for that of its new record.
func (w *writer) visit(h *host, visits []store.Visit) error {
	for i := range visits {
		v := &visits[i]
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
		w.visits = append(w.visits, visit{v, k, from, i})
		w.moves(h, from.slot, v.Page.Slot)
		w.states[v.Page.State]++
		if from.state != store.Queued {
			w.states[from.state]--
		}
		if v.Changed {
			w.changed = append(w.changed, feedEntry{k, v.Arrived, v.Page.URL})
		}
	}
	slices.SortFunc(w.visits, func(a, b visit) int {
		return cmp.Or(cmp.Compare(beUint(a.key[8:]), beUint(b.key[8:])), a.at-b.at)
	})
	return w.writeVisits()
}

// moves notes what a visit changes in the queue of its host.
func (w *writer) moves(h *host, from, to store.Slot) {
	if from.Order > 0 {
		w.of(h.key).count(-1)
	}
	switch {
	case to.Order > 0:
		c := w.of(h.key)
		c.count(1)
		c.lower(to.Order)
		c.again = true
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
		if err := w.page(w.visits[i].key, &w.visits[i].Page); err != nil {
			return err
		}
	}
	for i := range w.visits {
		v := &w.visits[i]
		if !v.Changed {
			continue
		}
		if err := w.set(linkKey(v.key), appendLinks(w.room[:0], v.Links), nil); err != nil {
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
		if err := w.logged(v.key, line); err != nil {
			return err
		}
	}
	return nil
}

// logged writes a line of the log of visits.
func (w *writer) logged(k weburl.Key, line *store.VisitLog) error {
	v, err := appendVisit(w.room[:0], line)
	return w.set(visitKey(line.Time, k), v, err)
}
