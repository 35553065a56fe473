package crawl

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/freshet/freshet/crawl/politeness"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// renderQueue holds the pages that wait for the browser, apart from what agents
// fetch: a page is stored and indexed as it was fetched, and improved when it was
// rendered. Hosts have their turns one after the other, so that a large one does not
// keep others waiting.
//
// A page goes through four steps. An agent commits it and appends it here (rows in
// the store name it, so that it is as durable as the page). The queue's own goroutines
// render it. It is then made due, and the agent that takes it next from its host's
// queue finds the result here and commits that instead of fetching. Then the page's
// row is deleted.
type renderQueue struct {
	store  store.Store
	prefix string // of the rows' names

	mu       sync.Mutex
	hosts    map[string]*renderHost
	turns    []string                   // hosts with pages that wait, in the order of their turns
	pages    map[weburl.Key]*renderPage // all that are in one of the steps
	rows     map[uint64]int             // pages of each row that are not done
	next     uint64                     // number of the next row
	upTo     uint64                     // row numbers below it are reserved in the store
	waiting  int                        // pages that wait
	inFlight int
	results  int   // pages whose result waits for an agent
	bytes    int64 // of bodies in memory
	ripe     []store.Found
	wake     chan struct{}
}

// renderHost is the share of one host.
type renderHost struct {
	queue    []*renderPage
	inFlight int
	results  int
	delay    time.Duration // of the host: no two of its pages are in the browser at once
	next     time.Time     // no page before
	blocked  bool          // its pages wait for what those in the browser teach
}

// renderPage is one page on its way.
type renderPage struct {
	url      weburl.URL
	row      uint64
	visit    *pendingVisit // nil: the body is in the archive
	finished bool          // a result waits for an agent
}

// Bounds of the queue.
const (
	maxHostRenders  = 50_000 // pages of one host that wait
	maxRenders      = 200_000
	maxRenderBytes  = 32 << 20 // of bodies that are in memory and not in the archive
	rowsReserved    = 1024     // numbers of rows taken at once
	renderPoll      = 200 * time.Millisecond
	maxRenderErrors = 10 * time.Second // pause after the store failed
)

func (q *renderQueue) key(n uint64) string { return q.prefix + strconv.FormatUint(n, 10) }

// open finds the pages that an earlier process left.
func (q *renderQueue) open(ctx context.Context, c *Config) error {
	if c.Render == nil {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.store, q.prefix = c.Store, "render-wait/"+c.Node+"/"
	q.hosts, q.pages, q.rows, q.turns = map[string]*renderHost{}, map[weburl.Key]*renderPage{}, map[uint64]int{}, nil
	q.waiting, q.inFlight, q.results, q.bytes, q.ripe = 0, 0, 0, 0, nil
	q.wake = make(chan struct{}, 1)
	first, err := q.number(ctx, "first")
	if err != nil {
		return err
	}
	if q.upTo, err = q.number(ctx, "end"); err != nil {
		return err
	}
	for q.next = first; ; q.next++ {
		v, err := q.store.Get(ctx, q.key(q.next))
		if err != nil {
			return err
		}
		if len(v) == 0 && q.next >= q.upTo {
			break
		}
		q.load(q.next, string(v))
	}
	if len(q.rows) == 0 {
		first = q.next
	} else {
		first = slices.Min(keysOfRows(q.rows))
	}
	q.upTo = q.next
	return q.store.Put(ctx, q.prefix+"first", binary.BigEndian.AppendUint64(nil, first))
}

func keysOfRows(rows map[uint64]int) []uint64 {
	out := make([]uint64, 0, len(rows))
	for n := range rows {
		out = append(out, n)
	}
	return out
}

func (q *renderQueue) number(ctx context.Context, name string) (uint64, error) {
	v, err := q.store.Get(ctx, q.prefix+name)
	if err != nil || len(v) != 8 {
		return 0, err
	}
	return binary.BigEndian.Uint64(v), nil
}

// load takes the pages of a row. The caller holds mu.
func (q *renderQueue) load(row uint64, text string) {
	for line := range strings.SplitSeq(text, "\n") {
		if u, err := weburl.Parse(line); err == nil {
			q.insert(&renderPage{url: u, row: row}, 0)
		}
	}
}

// length is how many pages are on their way.
func (q *renderQueue) length() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return int64(len(q.pages))
}

// hasSpaceFor reports whether a page of a host may be appended.
func (q *renderQueue) hasSpaceFor(host string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	h := q.hosts[host]
	return len(q.pages) < maxRenders && (h == nil || len(h.queue) < maxHostRenders)
}

// persist names pages in the store before they are committed, and returns the row.
func (q *renderQueue) persist(ctx context.Context, pages []*renderPage) error {
	if len(pages) == 0 {
		return nil
	}
	q.mu.Lock()
	row := q.next
	q.next++
	reserve := q.next > q.upTo
	if reserve {
		q.upTo = q.next + rowsReserved
	}
	upTo := q.upTo
	q.mu.Unlock()
	if reserve {
		if err := q.store.Put(ctx, q.prefix+"end", binary.BigEndian.AppendUint64(nil, upTo)); err != nil {
			return fmt.Errorf("queue of pages to render: %w", err)
		}
	}
	var text strings.Builder
	for i, p := range pages {
		p.row = row
		if i > 0 {
			text.WriteByte('\n')
		}
		text.WriteString(p.url.String())
	}
	if err := q.store.Put(ctx, q.key(row), []byte(text.String())); err != nil {
		return fmt.Errorf("queue of pages to render: %w", err)
	}
	return nil
}

// push appends pages that are committed. It returns visits whose results nobody takes
// any more, since the pages were visited again.
func (q *renderQueue) push(ctx context.Context, pages []*renderPage, delay time.Duration) (stale []*pendingVisit, err error) {
	if len(pages) == 0 {
		return nil, nil
	}
	var done []uint64
	q.mu.Lock()
	for _, p := range pages {
		if old := q.pages[p.url.Key()]; old != nil { // a newer visit counts
			if old.finished {
				stale = append(stale, old.visit)
			}
			done = q.remove(old, done)
		}
		q.insert(p, delay)
	}
	q.mu.Unlock()
	q.signal()
	return stale, q.forget(ctx, done)
}

// insert appends a page. The caller holds mu.
func (q *renderQueue) insert(p *renderPage, delay time.Duration) {
	q.rows[p.row]++
	q.pages[p.url.Key()] = p
	first := p.visit != nil && p.visit.first
	if p.visit != nil {
		if n := int64(len(p.visit.Answer.Body)); p.visit.archived && q.bytes+n > maxRenderBytes {
			p.visit = nil // it is read back
		} else {
			q.bytes += n
		}
	}
	h := q.hosts[p.url.Host()]
	if h == nil {
		h = &renderHost{}
		q.hosts[p.url.Host()] = h
	}
	h.delay = delay
	if len(h.queue) == 0 {
		q.turns = append(q.turns, p.url.Host())
	}
	if first {
		h.queue = slices.Insert(h.queue, 0, p)
	} else {
		h.queue = append(h.queue, p)
	}
	q.waiting++
}

// promote moves a page that waits to the front of its host's queue.
func (q *renderQueue) promote(k weburl.Key) {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := q.pages[k]
	if p == nil {
		return
	}
	h := q.hosts[p.url.Host()]
	if i := slices.Index(h.queue, p); i > 0 {
		copy(h.queue[1:i+1], h.queue[:i])
		h.queue[0] = p
	}
}

// remove takes a page out, wherever it is, and appends its row to done if that was its
// last. The caller holds mu.
func (q *renderQueue) remove(p *renderPage, done []uint64) []uint64 {
	key, host := p.url.Key(), p.url.Host()
	if q.pages[key] != p {
		return done
	}
	delete(q.pages, key)
	if p.visit != nil {
		q.bytes -= int64(len(p.visit.Answer.Body))
	}
	if h := q.hosts[host]; h != nil {
		if i := slices.Index(h.queue, p); i >= 0 {
			h.queue = slices.Delete(h.queue, i, i+1)
			q.waiting--
		}
		if p.finished {
			h.results--
			q.results--
		}
		q.tidy(host, h)
	}
	if q.rows[p.row]--; q.rows[p.row] <= 0 {
		delete(q.rows, p.row)
		done = append(done, p.row)
	}
	return done
}

// tidy forgets a host of which nothing is on its way. The caller holds mu.
func (q *renderQueue) tidy(name string, h *renderHost) {
	if len(h.queue) == 0 {
		if i := slices.Index(q.turns, name); i >= 0 {
			q.turns = slices.Delete(q.turns, i, i+1)
		}
		if h.inFlight == 0 && h.results == 0 && !h.next.After(time.Now()) {
			delete(q.hosts, name)
		}
	}
}

// forget deletes rows whose pages are all done.
func (q *renderQueue) forget(ctx context.Context, rows []uint64) error {
	for _, n := range rows {
		if err := q.store.Put(ctx, q.key(n), nil); err != nil {
			return fmt.Errorf("queue of pages to render: %w", err)
		}
	}
	return nil
}

// finish removes pages that are committed in their last form.
func (q *renderQueue) finish(ctx context.Context, pages []*renderPage) error {
	if len(pages) == 0 {
		return nil
	}
	var done []uint64
	q.mu.Lock()
	for _, p := range pages {
		done = q.remove(p, done)
	}
	q.mu.Unlock()
	return q.forget(ctx, done)
}

// take returns the page whose turn it is, or nil while no host may have one in the
// browser.
func (q *renderQueue) take(now time.Time) *renderPage {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, name := range q.turns {
		h := q.hosts[name]
		if h.blocked || now.Before(h.next) || h.delay > 0 && h.inFlight > 0 {
			continue
		}
		p := h.queue[0]
		h.queue[0] = nil
		h.queue = h.queue[1:]
		h.inFlight++
		q.inFlight++
		q.waiting--
		q.turns = slices.Delete(q.turns, i, i+1)
		if len(h.queue) > 0 {
			q.turns = append(q.turns, name)
		}
		return p
	}
	return nil
}

// giveBack puts a page that was taken back to the end of its host's queue; blocked
// says that the host's pages are not taken before one is back from the browser.
func (q *renderQueue) giveBack(p *renderPage, blocked bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	host := p.url.Host()
	h := q.hosts[host]
	h.inFlight--
	q.inFlight--
	h.blocked = h.blocked || blocked && h.inFlight+h.results > 0
	if q.pages[p.url.Key()] != p { // a newer visit came
		q.tidy(host, h)
		return
	}
	if len(h.queue) == 0 {
		q.turns = append(q.turns, host)
	}
	h.queue = append(h.queue, p)
	q.waiting++
}

// complete notes that a page's result is there: an agent is to take it. rendered says
// whether the page was in the browser, so that its host rests. It returns false where
// nobody takes the result, since the page was visited again.
func (q *renderQueue) complete(p *renderPage, v *pendingVisit, rendered bool) bool {
	now := time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	h := q.hosts[p.url.Host()]
	h.inFlight--
	q.inFlight--
	if rendered {
		h.next = now.Add(h.delay)
	}
	if q.pages[p.url.Key()] != p {
		q.tidy(p.url.Host(), h)
		return false
	}
	if p.visit == nil && v != nil {
		q.bytes += int64(len(v.Answer.Body))
	}
	p.visit, p.finished = v, true
	h.results++
	q.results++
	q.ripe = append(q.ripe, store.Found{URL: p.url, Due: now})
	return true
}

// unblockHost lets a host's pages go on: a result of it was learned from.
func (q *renderQueue) unblockHost(host string) {
	q.mu.Lock()
	if h := q.hosts[host]; h != nil {
		h.blocked = false
	}
	q.mu.Unlock()
	q.signal()
}

// result returns the page if its result waits for an agent.
func (q *renderQueue) result(k weburl.Key) *renderPage {
	q.mu.Lock()
	defer q.mu.Unlock()
	if p := q.pages[k]; p != nil && p.finished {
		return p
	}
	return nil
}

// hasResults reports whether results of a host, or of any, wait for an agent.
func (q *renderQueue) hasResults(host string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if host == "" {
		return q.results > 0
	}
	h := q.hosts[host]
	return h != nil && h.results > 0
}

// busy reports whether pages are being rendered, or could be.
func (q *renderQueue) busy(ready bool) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.inFlight+q.results+len(q.ripe) > 0 || ready && q.waiting > 0
}

func (q *renderQueue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// RenderWait tells of one host whose pages wait for the browser.
type RenderWait struct {
	Host  string
	Pages int64
	Why   string
}

// waits lists the hosts with the most pages that wait.
func (q *renderQueue) waits(why string, n int) []RenderWait {
	now := time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	var out []RenderWait
	for name, h := range q.hosts {
		count := len(h.queue) + h.inFlight + h.results
		if count == 0 {
			continue
		}
		w := RenderWait{Host: name, Pages: int64(count), Why: why}
		switch {
		case why != "":
		case h.inFlight > 0 && len(h.queue) == 0:
			w.Why = "in the browser"
		case h.blocked:
			w.Why = "its first pages are in the browser: what they gain decides on the others"
		case now.Before(h.next) || h.delay > 0 && h.inFlight > 0:
			w.Why = "the host's delay: one page of it at a time"
		case len(h.queue) == 0:
			w.Why = "rendered, to be committed"
		default:
			w.Why = "other pages are in the browser"
		}
		out = append(out, w)
	}
	slices.SortFunc(out, func(a, b RenderWait) int {
		if a.Pages != b.Pages {
			return cmp.Compare(b.Pages, a.Pages)
		}
		return strings.Compare(a.Host, b.Host)
	})
	return out[:min(n, len(out))]
}

// runRenders renders what waits until ctx ends.
func (r *Robot) runRenders(ctx context.Context) {
	q := &r.renders
	var open sync.WaitGroup
	defer open.Wait()
	for ctx.Err() == nil {
		if err := r.releaseRendered(ctx); err != nil {
			r.config.Log.Error("queue of pages to render", "err", err)
			politeness.Pause(ctx, maxRenderErrors)
			continue
		}
		var p *renderPage
		if r.mayRender() {
			p = q.take(time.Now())
		}
		if p == nil {
			t := time.NewTimer(renderPoll)
			select {
			case <-ctx.Done():
			case <-q.wake:
			case <-t.C:
			}
			t.Stop()
			continue
		}
		open.Go(func() {
			r.renderPage(ctx, p)
			q.signal()
		})
	}
}

// mayRender reports whether one more page may go to the browser.
func (r *Robot) mayRender() bool {
	r.mu.Lock()
	stopped := r.paused || r.drain
	r.mu.Unlock()
	if stopped || r.space() != nil || r.config.Render.Ready() != nil {
		return false
	}
	r.renders.mu.Lock()
	defer r.renders.mu.Unlock()
	return r.renders.inFlight < r.config.Render.Slots()
}

// releaseRendered makes pages due whose results are there.
func (r *Robot) releaseRendered(ctx context.Context) error {
	q := &r.renders
	q.mu.Lock()
	ripe := q.ripe
	q.ripe = nil
	q.mu.Unlock()
	if len(ripe) == 0 {
		return nil
	}
	if _, err := r.config.Store.Add(ctx, ripe); err != nil {
		q.mu.Lock()
		q.ripe = append(ripe, q.ripe...)
		q.mu.Unlock()
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	r.Wake()
	return nil
}
