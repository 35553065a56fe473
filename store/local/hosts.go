package local

import (
	"container/heap"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// hosts are those that are kept in memory: leased ones, and as many of the others
// as there is room for. Of what has no room, hosts with work are parked on disk in
// the order in which they will be claimed, the last ones first; hosts without work
// are forgotten, since their records tell all there is. Claim takes the first of
// both memory and disk, so that the order does not depend on the room.
type hosts struct {
	most   int // in memory
	in     map[hostKey]*host
	ready  hostHeap
	turns  uint64
	idle   []*host // had no work when they were listed
	parked parked
	all    bool  // every host of the store is in memory
	err    error // why no host can be parked; nil again once one was
}

// idleKey is the key under which the front of the known URLs holds a host.
func idleKey(k hostKey) (u weburl.Key) {
	copy(u[:8], k[:])
	return u
}

// bringHost returns a host from wherever it is; nil if the store does not have it. It
// stays in memory until it is let go. The caller holds mu and committing.
func (s *Store) bringHost(k hostKey) (*host, error) {
	h := s.hosts.in[k]
	if h == nil && !s.hosts.all {
		var err error
		if h, err = s.fetchHost(k); err != nil {
			return nil, err
		}
	}
	if h != nil {
		h.pins++
	}
	return h, nil
}

// fetchHost brings a host that is not in memory.
func (s *Store) fetchHost(k hostKey) (*host, error) {
	if s.seen.lookupURL(idleKey(k)) == unknown {
		return nil, nil
	}
	h, err := s.hosts.parked.unspillHost(k)
	if err != nil {
		return nil, err
	}
	if h == nil { // without work, or not there
		v, err := s.getCopy(hostRecordKey(k))
		if err != nil || v == nil {
			return nil, err
		}
		if h, err = hostFrom(k, v); err != nil {
			return nil, err
		}
		if !s.clock.IsZero() {
			h.boundRest(s.clock) // the clock may have been set back since it was forgotten
		}
	}
	s.hosts.insertHost(h)
	return h, nil
}

// hostFrom reads what must be known of a host without work.
func hostFrom(k hostKey, record []byte) (*host, error) {
	var rec struct {
		Next time.Time `json:"x"`
	}
	if err := json.Unmarshal(record, &rec); err != nil {
		return nil, fmt.Errorf("host record %x: %w", k, err)
	}
	return &host{key: k, next: rec.Next, at: -1}, nil
}

// letGo ends what bring began.
func (s *Store) letGo(h *host) {
	h.pins--
	s.hosts.listIdle(h)
}

// insertHost puts a host into memory, and into the heap where it has work; one that was
// parked keeps its turn.
func (hs *hosts) insertHost(h *host) {
	hs.in[h.key] = h
	if h.hasWork() {
		heap.Push(&hs.ready, h)
	}
}

// listIdle lists a host that has nothing to do, to be forgotten first.
func (hs *hosts) listIdle(h *host) {
	if h.at < 0 && h.isUnclaimed() && !h.listed {
		h.listed = true
		hs.idle = append(hs.idle, h)
	}
}

func (h *host) hasWork() bool { return h.fresh > 0 || h.due > 0 }

// isUnclaimed reports whether nobody holds the host.
func (h *host) isUnclaimed() bool { return h.lease == 0 && h.pins == 0 }

// spillSome makes room: some hosts more than needed go, since they go together.
func (hs *hosts) spillSome() {
	if len(hs.in) <= hs.most {
		return
	}
	room := hs.most - hs.most/16
	for len(hs.idle) > 0 && len(hs.in) > room {
		h := hs.idle[len(hs.idle)-1]
		hs.idle = hs.idle[:len(hs.idle)-1]
		h.listed = false
		if h.at < 0 && h.isUnclaimed() && !h.hasWork() && hs.in[h.key] == h {
			delete(hs.in, h.key)
			hs.all = false
		}
	}
	var go_ []*host
	for tries := 2 * len(hs.in); len(hs.in)-len(go_) > room && len(hs.ready) > 0 && tries > 0; tries-- {
		if h := hs.lateHost(); h.isUnclaimed() {
			heap.Remove(&hs.ready, h.at)
			go_ = append(go_, h)
		}
	}
	if len(go_) == 0 {
		return
	}
	if hs.err = hs.parked.spillHosts(go_); hs.err != nil {
		for _, h := range go_ {
			heap.Push(&hs.ready, h)
		}
		return
	}
	hs.all = false
	for _, h := range go_ {
		delete(hs.in, h.key)
	}
}

// lateHost returns a host that will be claimed late: the last of some in the lower
// half of the heap.
func (hs *hosts) lateHost() *host {
	half := len(hs.ready) / 2
	last := len(hs.ready) - 1
	for range 8 {
		if i := half + rand.IntN(len(hs.ready)-half); hs.ready.Less(last, i) {
			last = i
		}
	}
	return hs.ready[last]
}

// nextHost returns the host to be claimed next, from the disk if it is there and its
// time has come; next is when it comes, 0 if there is none.
func (hs *hosts) nextHost(now int64) (h *host, next int64, err error) {
	p, ok, err := hs.parked.firstSpilled()
	if err != nil {
		return nil, 0, err
	}
	if ok && p.wait <= now && (len(hs.ready) == 0 || p.claimedBefore(hs.ready[0].claimRank())) {
		back, err := hs.parked.unspillFirst(max(1, min(hs.most/4, mostBack)))
		if err != nil {
			return nil, 0, err
		}
		for _, h := range back {
			hs.insertHost(h)
		}
		p, ok = hs.parked.head, hs.parked.n > 0
	}
	if len(hs.ready) > 0 && hs.ready[0].wait <= now {
		return hs.ready[0], 0, nil
	}
	if len(hs.ready) > 0 {
		next = hs.ready[0].wait
	}
	if ok && (next == 0 || p.wait < next) {
		next = p.wait
	}
	return nil, next, nil
}

// mostBack is how many hosts come back from the disk at a time.
const mostBack = 256

// updateHeap puts a host where it belongs: into the heap if it has work and is not
// leased.
func (hs *hosts) updateHeap(h *host) {
	if h.lease != 0 || !h.hasWork() {
		if h.at >= 0 {
			heap.Remove(&hs.ready, h.at)
		}
		hs.listIdle(h)
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
		hs.turns++
		h.turn = hs.turns
		heap.Push(&hs.ready, h)
	} else {
		heap.Fix(&hs.ready, h.at)
	}
}

// shortenRests shortens the rests of all hosts that were asked while the clock was
// ahead.
func (hs *hosts) shortenRests(now time.Time) error {
	mend := func(h *host) {
		if h.boundRest(now) {
			hs.updateHeap(h)
		}
	}
	for _, h := range hs.in {
		mend(h)
	}
	return hs.parked.unspillWaiting(now.Add(store.LongestRest).UnixMilli(), func(back []*host) error {
		for _, h := range back {
			hs.insertHost(h)
			mend(h)
		}
		hs.spillSome()
		return hs.err
	})
}

// countDue counts the hosts with something to visit, about.
func (hs *hosts) countDue(now uint64) (int64, error) {
	n, err := hs.parked.countDueSpilled(now)
	for _, h := range hs.in {
		if h.fresh > 0 || h.due > 0 && h.due <= now {
			n++
		}
	}
	return n, err
}
