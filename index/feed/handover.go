package feed

import (
	"sync"
	"time"

	"github.com/freshet/freshet/archive"
	"github.com/freshet/freshet/extract"
)

// Handover carries what the robot extracted of a body to the indexer of the same
// process, in memory, so that the body is neither read back from the archive nor
// extracted a second time. The feed on disk stays the queue: a document that is not
// here (after a crash, for a new index, from another node, beyond the bound) is made
// from the archive, and is the same.
//
// The key is the place of the body in the archive, which names its bytes for good. A
// full Handover takes nothing more: the indexer works in the order of the feed, and
// needs the oldest documents first. The zero value is ready to be used.
type Handover struct {
	// Wait is for how long Offer waits for room. A crawl that ends when its pages are
	// indexed loses nothing by waiting, and saves reading them back; a robot whose indexer
	// may fall behind does not wait.
	Wait time.Duration

	mu    sync.Mutex
	room  chan struct{} // closed when there is room; nil if nobody waits
	byAt  map[archive.Position]*handed
	queue []*handed // in the order of time, taken ones included
	bytes int
}

// handed is one document that waits for the indexer.
type handed struct {
	content
	at    archive.Position
	url   string
	since time.Time
	taken bool
}

// Bounds of a Handover.
const (
	// handoverBytes holds some 1,600 pages of 10 KB: twice as much as a robot at full speed
	// collects between two commits.
	handoverBytes = 16 << 20
	// handoverAge is when a document is given up that nobody has asked for: its page was
	// not committed, changed again, or is hidden. An indexer that is so far behind finds
	// hardly any of its documents here anyway.
	handoverAge = time.Minute
	// handedOverhead is about what a document takes beside its strings.
	handedOverhead = 300
)

// Offer gives the document that was extracted of a body. Only url, Title, Description
// and Text are kept. It may be called from many goroutines.
func (h *Handover) Offer(at archive.Position, url string, page *extract.Page) {
	if at.IsZero() || page.Incomplete || isUnread(page) {
		return
	}
	d := &handed{content: contentOfPage(page), at: at, url: url, since: time.Now()}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.expireHanded(d.since.Add(-handoverAge))
	if h.bytes+d.handedBytes() > handoverBytes && !h.waitForRoom(d.handedBytes()) {
		return
	}
	if h.byAt == nil {
		h.byAt = map[archive.Position]*handed{}
	}
	if old := h.byAt[at]; old != nil { // a failed write left the place free
		h.removeHanded(old)
	}
	h.byAt[at] = d
	h.queue = append(h.queue, d)
	h.bytes += d.handedBytes()
}

// waitForRoom waits until a document of n bytes fits; the caller holds mu.
func (h *Handover) waitForRoom(n int) bool {
	if h.Wait <= 0 {
		return false
	}
	t := time.NewTimer(h.Wait)
	defer t.Stop()
	for h.bytes+n > handoverBytes {
		if h.room == nil {
			h.room = make(chan struct{})
		}
		room, late := h.room, false
		h.mu.Unlock()
		select {
		case <-room:
		case <-t.C:
			late = true
		}
		h.mu.Lock()
		if late {
			return h.bytes+n <= handoverBytes
		}
	}
	return true
}

// takeContent returns and removes the document of a body.
func (h *Handover) takeContent(at archive.Position, url string) (content, bool) {
	if h == nil {
		return content{}, false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	d := h.byAt[at]
	if d == nil || d.url != url {
		return content{}, false
	}
	c := d.content
	h.removeHanded(d)
	return c, true
}

// removeHanded takes a document out; the caller holds mu.
func (h *Handover) removeHanded(d *handed) {
	h.bytes -= d.handedBytes()
	delete(h.byAt, d.at)
	d.content, d.taken = content{}, true
	if h.room != nil && h.bytes < handoverBytes*3/4 {
		close(h.room)
		h.room = nil
	}
}

// expireHanded forgets the documents of before, and the places of those taken at the front
// of the queue; the caller holds mu.
func (h *Handover) expireHanded(before time.Time) {
	n := 0
	for _, d := range h.queue {
		if !d.taken && !d.since.Before(before) {
			break
		}
		if n++; !d.taken {
			h.removeHanded(d)
		}
	}
	clear(h.queue[:n])
	h.queue = h.queue[n:]
}

// handedBytes is what a document takes of the bound; it does not change until it is removed.
func (d *handed) handedBytes() int {
	return handedOverhead + len(d.url) + len(d.content.title) + len(d.content.text)
}
