package local

import (
	"cmp"
	"math"
	"slices"

	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// lead is the front of a host's queue of new pages in memory: every page that
// stands before limit and is not out under a lease, and no other. Most pages of a
// crawl are taken soon after they were found, so that neither the queue on disk
// nor their records need be read for it. Whatever would make it doubtful (a page
// moved in the queue, one that was visited and stands in it again, a host that left
// memory, a start) empties it: the disk is asked then, until the host's queue has
// been empty once.
type lead struct {
	list  []newPage // a heap, the first page to be taken on top
	limit mark      // the zero mark: nothing is known
}

// mark is a place in the queue of a host's new pages.
type mark struct{ order, hash uint64 }

// nowhere is behind every page.
var nowhere = mark{math.MaxUint64, math.MaxUint64}

func (m mark) before(o mark) bool { return m.order < o.order || m.order == o.order && m.hash < o.hash }

// newPage is what the record of a page tells that was never visited.
type newPage struct {
	mark
	key   weburl.Key
	depth int
	url   string
	from  string
}

func newPageOf(k weburl.Key, f *store.Found) newPage {
	both := f.URL.String() + f.From // a copy: what they were cut from may be far longer
	n := len(both) - len(f.From)
	return newPage{mark: mark{max(1, f.Order), beUint(k[8:])}, key: k, depth: f.Depth, url: both[:n], from: both[n:]}
}

// size is about how many bytes a page takes in memory.
func (p *newPage) size() int { return 80 + len(p.url) + len(p.from) }

func (p *newPage) record() store.Page {
	return store.Page{Key: p.key, URL: p.url, State: store.Queued, Depth: p.depth, From: p.from, Slot: store.Slot{Order: p.order}}
}

// aheadBytes bounds what the fronts of all hosts take together.
const aheadBytes = 8 << 20

// covers reports whether the next n pages of the host are here.
func (a *lead) covers(n int) bool { return a.limit == nowhere || len(a.list) >= n }

// forget empties the front of a host. The caller holds mu.
func (hs *hosts) forget(h *host) {
	for i := range h.ahead.list {
		hs.ahead -= h.ahead.list[i].size()
	}
	h.ahead, h.out = lead{}, nil
}

// put adds a page to the front of a host if it stands there. When the fronts of
// all hosts are too large together, half of this one goes. The caller holds mu.
func (hs *hosts) put(h *host, p newPage) {
	if !p.before(h.ahead.limit) {
		return
	}
	if _, out := h.taken[p.key]; out { // Take read it from the disk before this was called
		return
	}
	h.ahead.push(p)
	if hs.ahead += p.size(); hs.ahead <= hs.mostAhead {
		return
	}
	list := h.ahead.list
	slices.SortFunc(list, func(a, b newPage) int { return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.hash, b.hash)) })
	half := len(list) / 2
	h.ahead.limit = list[half].mark
	for i := range list[half:] {
		hs.ahead -= list[half+i].size()
	}
	h.ahead.list = slices.Clone(list[:half])
}

// takeAhead takes up to n pages from the front of a leased host. The caller holds
// mu.
func (hs *hosts) takeAhead(h *host, n int) []store.Page {
	n = min(n, len(h.ahead.list))
	if n == 0 {
		return nil
	}
	if len(h.taken) == 0 {
		h.low = max(h.low, h.ahead.list[0].order)
	}
	h.out = slices.DeleteFunc(h.out, func(p newPage) bool { _, out := h.taken[p.key]; return !out })
	pages := make([]store.Page, n)
	for i := range pages {
		p := h.ahead.pop()
		hs.ahead -= p.size()
		h.out = append(h.out, p)
		pages[i] = p.record()
		h.taken[p.key] = place{pages[i].Slot, store.Queued}
	}
	return pages
}

// putBack gives the pages that are out under a lease back to the front of their
// host, when the lease ends. The caller holds mu.
func (hs *hosts) putBack(h *host) {
	if h.writing { // a batch that is being written may have visited some of them
		hs.forget(h)
	}
	taken, out := h.taken, h.out
	h.taken, h.out = nil, nil // a batch under the lease may still read the map
	missing := 0
	for _, at := range taken {
		if at.slot.Order > 0 {
			missing++
		}
	}
	for _, p := range out {
		if _, still := taken[p.key]; still {
			missing--
			hs.put(h, p)
		}
	}
	if missing > 0 { // some were read from the disk
		hs.forget(h)
	}
}

func (a *lead) push(p newPage) {
	a.list = append(a.list, p)
	l, i := a.list, len(a.list)-1
	for i > 0 {
		up := (i - 1) / 2
		if !l[i].before(l[up].mark) {
			return
		}
		l[up], l[i] = l[i], l[up]
		i = up
	}
}

func (a *lead) pop() newPage {
	l := a.list
	first, last := l[0], len(l)-1
	l[0], l[last] = l[last], newPage{}
	l = l[:last]
	a.list = l
	for i := 0; ; {
		least := 2*i + 1
		if least >= len(l) {
			return first
		}
		if r := least + 1; r < len(l) && l[r].before(l[least].mark) {
			least = r
		}
		if !l[least].before(l[i].mark) {
			return first
		}
		l[i], l[least] = l[least], l[i]
		i = least
	}
}
