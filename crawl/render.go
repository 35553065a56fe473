package crawl

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/freshet/freshet/extract"
	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// Renderer builds pages in a browser where that gains something.
type Renderer interface {
	// Wants decides whether a browser may see more of a page than was fetched.
	Wants(ctx context.Context, f *Fetched) Decision
	// Render builds the page, waiting for its turn. An error that is ErrNoBrowser
	// puts it on the waiting list.
	Render(ctx context.Context, f *Fetched) (*Rendered, error)
	// Learn is told of each render how many URLs in scope nobody knew before; r is
	// nil where it failed.
	Learn(f *Fetched, r *Rendered, urls int)
	// Ready is nil if pages can be rendered now, else why not.
	Ready() error
}

// Decision is whether to render a page.
type Decision struct {
	Render bool
	Why    string
	// Wait says that pages of this host that are being rendered will tell: the
	// decision is asked for again when one is back.
	Wait bool
	// Tag is the renderer's own: Learn finds it in Fetched.
	Tag any
}

// ErrNoBrowser is what a Renderer returns while it has no browser.
var ErrNoBrowser = errors.New("no browser")

// Fetched is a page as the server sent it.
type Fetched struct {
	URL    weburl.URL
	Answer *fetch.Response
	Page   *extract.Page // with Traits
	Before *store.Page   // what was known of it
	Tag    any           // of the decision
	// Get fetches what the page needs (a script), as politely as pages are. It
	// may be used in Wants only.
	Get func(ctx context.Context, u weburl.URL) (*fetch.Response, error)
	// Allowed says whether robots.txt permits a URL, as far as that is known: of
	// the page's host, and of hosts that the robot visited lately.
	Allowed func(u weburl.URL) bool
}

// Rendered is a page as a browser built it.
type Rendered struct {
	HTML  []byte
	Page  *extract.Page // with the links of the fetched page
	Bytes int64         // that the page loaded beside itself
}

// building is a visited page on its way to the batch, perhaps by the browser.
type building struct {
	Fetched
	page, before store.Page
	url          weburl.URL
	res          *fetch.Response
	at           time.Time
	rendered     *Rendered
	gained       int // URLs that nobody knew before the render
	err          error
}

const (
	// maxAway is how many pages of one host may be in the browser while the agent
	// goes on; a host with a delay has one, so that a page's requests and the
	// agent's do not come together.
	maxAway = 8
	// maxResting is how many agents that only wait for the browser do not count
	// among those that fetch.
	maxResting = 64
	// longPause is how long a script is waited for because its host rests.
	longPause = 30 * time.Second
)

// send reads a page and gives it to the browser if that is wanted. If it is
// not, the page is ready to be taken as it was fetched.
func (a *agent) send(ctx context.Context, b *building) bool {
	r := a.robot
	p := &b.page
	p.State, p.Failures = store.OK, 0
	p.Type, p.Bytes = b.res.Header.Get("Content-Type"), int64(len(b.res.Body))
	p.ETag, p.LastModified = b.res.Header.Get("ETag"), b.res.Header.Get("Last-Modified")
	p.Waits, p.Why = false, ""
	page := extract.Document(b.res.Body, p.Type, b.url, extract.Options{Token: r.config.Token, Traits: r.config.Render != nil})
	page.Header(b.res.Header, b.url, r.config.Token)
	b.Fetched = Fetched{URL: b.url, Answer: b.res, Page: page, Before: &b.before, Get: a.get, Allowed: a.permits()}
	if r.config.Render == nil || extract.Type(p.Type) != "html" {
		return false
	}
	d := r.config.Render.Wants(ctx, &b.Fetched)
	for d.Wait && a.away > 0 {
		a.await(ctx)
		d = r.config.Render.Wants(ctx, &b.Fetched)
	}
	p.Why, b.Tag = d.Why, d.Tag
	if !d.Render {
		return false
	}
	if a.built == nil {
		a.built = make(chan *building, maxAway)
	}
	a.away++
	go func() { // ends with ctx, or the renderer's own time limit; the agent waits for it
		b.rendered, b.err = r.config.Render.Render(ctx, &b.Fetched)
		a.built <- b
	}()
	return true
}

// get fetches for the renderer. A script of the host counts as a visit of it.
func (a *agent) get(ctx context.Context, u weburl.URL) (*fetch.Response, error) {
	own := u.Host() == a.host.Name
	if own {
		if !a.permits()(u) {
			return nil, errors.New("robots.txt forbids it")
		}
		wait := time.Until(a.host.Next)
		if wait > longPause {
			return nil, fmt.Errorf("%s rests for %v", a.host.Name, wait.Round(time.Second))
		}
		if !pause(ctx, max(0, wait)) {
			return nil, ctx.Err()
		}
	}
	a.robot.budget.wait(ctx)
	res, err := a.robot.config.Fetch.Get(ctx, fetch.Request{URL: u, Accept: "*/*"})
	if own && err == nil {
		pages := a.host.Pages
		a.polite(u, res, time.Now())
		a.host.Pages = pages // a script is none
	}
	return res, err
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// permits returns a function that other goroutines may call: it does not touch
// the agent.
func (a *agent) permits() func(u weburl.URL) bool {
	host, rules, cache := a.host.Name, a.rules, &a.robot.robots
	return func(u weburl.URL) bool {
		if u.Host() == host {
			return rules == nil || rules.Allowed(u.Target())
		}
		other := cache.peek(u.Origin())
		return other == nil || other.Allowed(u.Target())
	}
}

// comeback takes the pages that are back, and waits for one while too many are
// away.
func (a *agent) comeback(ctx context.Context) {
	for a.away > 0 {
		if a.away >= maxAway || a.host.Delay > 0 {
			a.await(ctx)
			continue
		}
		select {
		case b := <-a.built:
			a.arrive(ctx, b)
		default:
			return
		}
	}
}

// homecoming waits for all pages that are away.
func (a *agent) homecoming(ctx context.Context) {
	for a.away > 0 {
		a.await(ctx)
	}
}

// await waits for one page. Meanwhile the agent does not count among those that
// fetch; its lease is renewed beside it.
func (a *agent) await(ctx context.Context) {
	a.robot.rest(1)
	defer a.robot.rest(-1)
	a.arrive(ctx, <-a.built)
}

// rest counts agents that only wait.
func (r *Robot) rest(n int) {
	r.mu.Lock()
	r.resting += n
	r.mu.Unlock()
	r.Wake()
}

// arrive finishes a page that is back from the browser. One that failed there
// costs nothing but what rendering would have gained.
func (a *agent) arrive(ctx context.Context, b *building) {
	a.away--
	r := a.robot
	p := &b.page
	switch {
	case b.err == nil && b.rendered != nil:
		r.stats.rendered.Add(1)
		r.stats.bytes.Add(b.rendered.Bytes)
		if a.host.Delay > 0 { // what the page asked for counts as one visit
			a.host.Next = later(a.host.Next, time.Now().Add(a.host.Delay))
		}
	case ctx.Err() != nil:
		r.unreserve()
		r.config.Render.Learn(&b.Fetched, nil, 0)
		return // given up: the page stays queued
	case errors.Is(b.err, ErrNoBrowser):
		p.Waits = true
		if !b.before.Waits || r.renders.fed(p.URL) {
			if err := r.renders.add(context.WithoutCancel(ctx), p.URL); err != nil {
				r.config.Log.Error("waiting list of pages to render", "url", p.URL, "err", err)
			}
		}
	case b.err != nil:
		p.Why += "; failed: " + b.err.Error()
		r.stats.fail("render")
		r.config.Log.Warn("render", "url", p.URL, "err", b.err)
	}
	links, changed := a.content(ctx, p, b)
	r.config.Render.Learn(&b.Fetched, b.rendered, b.gained)
	a.finish(&b.before, p, links, b.at, b.res.Elapsed, changed)
}

// fetchedLinks are the links that need no browser; nil for a page that was not
// rendered.
func (b *building) fetchedLinks(canon weburl.Canon) map[weburl.Key]bool {
	if b.rendered == nil {
		return nil
	}
	out := make(map[weburl.Key]bool, len(b.Page.Links))
	for i := range b.Page.Links {
		u, _ := canon.Apply(b.Page.Links[i].URL)
		out[u.Key()] = true
	}
	return out
}

// tally keeps the account of URLs that only rendering finds. It reports whether
// this one is new by a render.
func (a *agent) tally(u weburl.URL, fetched map[weburl.Key]bool) bool {
	r := a.robot
	if r.config.Render == nil {
		return false
	}
	u, _ = r.config.Canon.Apply(u)
	k := u.Key()
	if fetched == nil || fetched[k] {
		r.gains.plain(k)
		a.gathers = append(a.gathers, k)
		return false
	}
	return r.gains.rendered(k, func() bool {
		_, err := r.config.Store.Page(context.Background(), u)
		return err == nil
	})
}

// gains are the URLs that this run found by rendering only. A URL that comes
// without a browser, too, before or after, is none of them.
type gains struct {
	mu     sync.Mutex
	only   map[weburl.Key]bool
	beyond int64              // of those that found no room in only
	recent map[weburl.Key]int // found without a browser, not committed yet
}

// maxGains bounds the memory of gains; what comes later is counted as gained
// for good.
const maxGains = 2_000_000

func (g *gains) plain(k weburl.Key) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.only, k)
	if g.recent == nil {
		g.recent = map[weburl.Key]int{}
	}
	g.recent[k]++
}

// committed forgets URLs that the store knows by now.
func (g *gains) committed(keys []weburl.Key) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, k := range keys {
		if g.recent[k]--; g.recent[k] <= 0 {
			delete(g.recent, k)
		}
	}
}

// rendered reports whether a URL is found by this render first.
func (g *gains) rendered(k weburl.Key, known func() bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.only[k] || g.recent[k] > 0 || known() {
		return false
	}
	if len(g.only) >= maxGains {
		g.beyond++
		return true
	}
	if g.only == nil {
		g.only = map[weburl.Key]bool{}
	}
	g.only[k] = true
	return true
}

func (g *gains) count() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return int64(len(g.only)) + g.beyond
}

// renders is the list of pages that wait for a browser. It is a row of numbered
// values in the store, so that it is as durable as the pages and costs no
// memory; the first number is a value, too.
type renders struct {
	store  store.Store
	ready  func() error
	prefix string
	mu     sync.Mutex
	head   uint64
	tail   uint64
	again  map[string]bool // fed back to the queue and not seen yet
	fedAt  time.Time
}

// feedPages is how many waiting pages are queued again at a time.
const (
	feedPages = 64
	feedEvery = 2 * time.Second
)

// open finds the list of an earlier process.
func (w *renders) open(ctx context.Context, c *Config) error {
	if c.Render == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.store, w.ready, w.prefix, w.again = c.Store, c.Render.Ready, "render-wait/"+c.Node+"/", map[string]bool{}
	v, err := w.store.Get(ctx, w.prefix+"first")
	if err != nil {
		return err
	}
	if len(v) == 8 {
		w.head = binary.BigEndian.Uint64(v)
	}
	for w.tail = w.head; ; w.tail++ {
		v, err := w.store.Get(ctx, w.key(w.tail))
		if err != nil {
			return err
		}
		if len(v) == 0 {
			return nil
		}
	}
}

func (w *renders) key(n uint64) string { return w.prefix + strconv.FormatUint(n, 10) }

func (w *renders) length() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return int64(w.tail - w.head)
}

// due reports whether there are pages that wait without need.
func (w *renders) due() bool { return w.length() > 0 && w.ready() == nil }

// fed reports, once, whether a page was queued again from the list.
func (w *renders) fed(url string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	was := w.again[url]
	delete(w.again, url)
	return was
}

func (w *renders) add(ctx context.Context, url string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.store.Put(ctx, w.key(w.tail), []byte(url)); err != nil {
		return err
	}
	w.tail++
	return nil
}

// feedWaiting queues some waiting pages again if there is a browser now.
func (r *Robot) feedWaiting(ctx context.Context) error {
	w := &r.renders
	if w.store == nil || !w.due() {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Since(w.fedAt) < feedEvery {
		return nil
	}
	w.fedAt = time.Now()
	var found []store.Found
	last := min(w.tail, w.head+feedPages)
	clear(w.again) // a page not seen since is in the queue all the same
	for n := w.head; n < last; n++ {
		v, err := w.store.Get(ctx, w.key(n))
		if err != nil {
			return err
		}
		u, err := weburl.Parse(string(v))
		if err != nil {
			r.config.Log.Error("waiting list of pages to render", "entry", n, "err", err)
			continue
		}
		found = append(found, store.Found{URL: u, Due: time.Now()})
		w.again[string(v)] = true
	}
	if _, err := w.store.Add(ctx, found); err != nil {
		return err
	}
	first := binary.BigEndian.AppendUint64(nil, last)
	if err := w.store.Put(ctx, w.prefix+"first", first); err != nil {
		return fmt.Errorf("waiting list of pages to render: %w", err)
	}
	for n := w.head; n < last; n++ {
		if err := w.store.Put(ctx, w.key(n), nil); err != nil {
			return err
		}
	}
	w.head = last
	return nil
}
