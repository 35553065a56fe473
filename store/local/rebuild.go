package local

import (
	"bytes"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// loadPages fills the table of known URLs and counts states. States are read from
// the record's head without decoding all of it.
func (s *Store) loadPages() error {
	return s.scanPrefix([]byte{pageSpace}, func(k, v []byte) error {
		s.seen.addURL(weburl.Key(k[spaceLength:]))
		s.stats.URLs++
		st, err := stateOf(v)
		if err == nil && st != store.Queued {
			s.stats.States[st]++
		}
		return err
	})
}

// loadHosts builds the order of the hosts anew, in one pass over their records
// and queues, which all stand in the order of the hosts' keys.
func (s *Store) loadHosts() (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fresh, due := &queues{s: s, space: newSpace}, &queues{s: s, space: dueSpace}
	defer func() { err = errors.Join(err, fresh.closeQueues(), due.closeQueues()) }()
	s.hosts.in, s.hosts.all = map[hostKey]*host{}, true
	now := s.now()
	return s.scanPrefix([]byte{hostSpace}, func(k, v []byte) error {
		h, err := hostFrom(hostKey(k[spaceLength:]), v)
		if err != nil {
			return err
		}
		h.boundRest(now)
		if h.due, err = due.seekQueue(h.key); err != nil {
			return err
		}
		if h.low, err = fresh.seekQueue(h.key); err != nil {
			return err
		}
		if h.fresh, err = fresh.countEntries(h.key); err != nil {
			return err
		}
		s.seen.addURL(idleKey(h.key))
		s.stats.Hosts++
		s.stats.New += h.fresh
		s.hosts.in[h.key] = h
		s.hosts.updateHeap(h)
		s.hosts.spillSome()
		return s.hosts.err
	})
}

// queues walks over the queue entries of hosts in the order of their keys.
type queues struct {
	s     *Store
	space byte
	it    *pebble.Iterator
	ok    bool
}

// seekQueue goes to the queue of a host that is behind those before, and returns the
// order or time of its first entry, 0 for none.
func (q *queues) seekQueue(h hostKey) (at uint64, err error) {
	if q.it == nil {
		if q.it, err = q.s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{q.space}, UpperBound: []byte{q.space + 1}}); err != nil {
			return 0, err
		}
		q.ok = q.it.First()
	}
	if q.ok && bytes.Compare(q.it.Key()[spaceLength:9], h[:]) < 0 {
		q.ok = q.it.SeekGE(append([]byte{q.space}, h[:]...))
	}
	if !q.isAtHost(h) {
		return 0, q.it.Error()
	}
	_, at = pageOf(q.it.Key())
	return at, nil
}

// countEntries counts the entries of the host from the one on that first went to.
func (q *queues) countEntries(h hostKey) (n int64, err error) {
	for ; q.isAtHost(h); q.ok = q.it.Next() {
		n++
	}
	return n, q.it.Error()
}

func (q *queues) isAtHost(h hostKey) bool {
	return q.ok && bytes.Equal(q.it.Key()[spaceLength:9], h[:])
}

func (q *queues) closeQueues() error {
	if q.it == nil {
		return nil
	}
	return q.it.Close()
}
