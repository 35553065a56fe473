package crawl

import (
	"context"
	"errors"
	"fmt"
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
	told         pending // signals before the visit
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
	page := extract.Document(b.res.Body, p.Type, b.url, extract.Options{Token: r.config.Token, Traits: r.config.Render != nil, Images: r.config.images(), Brief: true})
	page.Header(b.res.Header, b.url, r.config.Token)
	b.Fetched = Fetched{URL: b.url, Answer: b.res, Page: page, Before: &b.before}
	if r.config.Render == nil || extract.Type(p.Type) != "html" {
		return false
	}
	b.Get, b.Allowed = a.get, a.permits()
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
	if !a.permits()(u) {
		return nil, errors.New("robots.txt forbids it")
	}
	if wait := time.Until(a.host.Next); u.Host() == a.host.Name && wait > longPause {
		return nil, fmt.Errorf("%s rests for %v", a.host.Name, wait.Round(time.Second))
	}
	return a.beside(ctx, fetch.Request{URL: u, Accept: "*/*"})
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
	a.robot.rest(a.id, true)
	defer a.robot.rest(a.id, false)
	a.arrive(ctx, <-a.built)
}

// rest notes whether an agent only waits.
func (r *Robot) rest(id int, waits bool) {
	r.mu.Lock()
	if waits {
		r.resting++
	} else {
		r.resting--
	}
	r.live[id].Waits = waits
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
		r.stats.fail("render", p.URL, b.err.Error())
		r.config.Log.Warn("render", "url", p.URL, "err", b.err)
	}
	a.told = b.told
	links, keys, changed := a.content(ctx, p, b)
	r.config.Render.Learn(&b.Fetched, b.rendered, b.gained)
	a.finish(&b.before, p, b.url, links, keys, b.at, b.res.Elapsed, changed)
}
