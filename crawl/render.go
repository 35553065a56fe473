package crawl

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/freshet/freshet/crawl/politeness"
	"github.com/freshet/freshet/extract"
	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/freshness"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// Renderer builds pages in a browser where that gains something.
type Renderer interface {
	// Wants decides whether a browser may see more of a page than was fetched. It is
	// asked when the page was fetched, and again, with f.Queued, when its turn has
	// come: others of its kind may have been rendered meanwhile.
	Wants(ctx context.Context, f *Fetched) Decision
	// Render builds the page. An error that is ErrNoBrowser leaves it waiting.
	Render(ctx context.Context, f *Fetched) (*Rendered, error)
	// Learn is told of each render how many URLs in scope nobody knew before; r is
	// nil where it failed.
	Learn(f *Fetched, r *Rendered, urls int)
	// Relearn forgets what renders of a host's pages gained: links that counted have
	// turned out to be copies.
	Relearn(host string)
	// Ready is nil if pages can be rendered now, else why not.
	Ready() error
	// Slots is how many pages can be rendered at the same time.
	Slots() int
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
	Queued bool          // its turn in the browser has come
	Tag    any           // of the decision
	// Get fetches what the page needs (a script), as politely as pages are. It
	// may be used in Wants only, and is nil where nothing may be fetched.
	Get func(ctx context.Context, u weburl.URL) (*fetch.Response, error)
	// Allowed says whether the page may ask for a URL in the browser: the robots.txt
	// of its host is asked for if it is not known, and the request has its place in
	// the robot's budget, for which it may wait. Hosts of sources that may be at private
	// addresses are for pages of such sources only.
	Allowed func(ctx context.Context, u weburl.URL) bool
}

// Rendered is a page as a browser built it.
type Rendered struct {
	HTML     []byte
	Page     *extract.Page // with the links of the fetched page
	Bytes    int64         // that the page loaded beside itself
	Requests int
}

// pendingVisit is a visited page on its way to the batch, perhaps by the browser.
type pendingVisit struct {
	Fetched
	page, before store.Page
	url          weburl.URL
	res          *fetch.Response
	at           time.Time
	answered     freshness.PendingSignals // signals before the visit

	rendered *Rendered
	gained   int // URLs that nobody knew before the render
	err      error
	why      string // of the last decision

	// improves: the page was committed as it was fetched, and its next visit is
	// planned; what the browser shows replaces its content.
	improves bool
	slot     store.Slot // the next visit
	archived bool       // the answer is in the archive
	waits    bool       // for the browser
	first    bool       // before others of its host
}

// extractPage reads a page and decides whether a browser is to see it, too.
func (a *agent) extractPage(ctx context.Context, b *pendingVisit) (render bool) {
	r := a.robot
	p := &b.page
	p.State, p.Failures = store.OK, 0
	p.Type, p.Bytes = b.res.Header.Get("Content-Type"), int64(len(b.res.Body))
	p.ETag, p.LastModified = validator(b.res.Header.Get("ETag")), validator(b.res.Header.Get("Last-Modified"))
	p.Waits, p.Why = false, ""
	b.Fetched = r.fetched(ctx, b, p)
	if r.config.Render == nil || extract.Type(p.Type) != "html" {
		return false
	}
	if name := r.variants.voidParameter(b.url); name != "" {
		p.Why = voidWhy(name)
		return false
	}
	b.Get = a.access.GetScript
	d := r.config.Render.Wants(ctx, &b.Fetched)
	p.Why = d.Why
	if !d.Render && !d.Wait {
		return false
	}
	if !r.renders.room(a.host.Name) {
		p.Why += "; too many pages of its host wait for the browser"
		return false
	}
	b.Get, b.Allowed, b.waits = nil, a.access.SubresourceFilter(), true
	return true
}

// fetched extracts the answer, and notes in the page's record what was wrong with it.
func (r *Robot) fetched(ctx context.Context, b *pendingVisit, p *store.Page) Fetched {
	o := extract.Options{Token: r.config.Token, Traits: r.config.Render != nil, Images: r.config.images(), PDF: r.config.PDF}
	o.Brief = r.config.OnBody == nil || b.archived || b.before.Rendered
	if why := extract.Problem(b.before.Reason); why.Final() {
		o.Refused, o.RefusedFor = b.before.Digest, why
	}
	page := extract.Document(ctx, b.res.Body, p.Type, b.url, o)
	p.Reason = store.Reason(page.Problem)
	p.Error = p.Reason.Text()
	page.Header(b.res.Header, b.url, r.config.Token)
	return Fetched{URL: b.url, Answer: b.res, Page: page, Before: &b.before}
}

// deferContent reports whether a page keeps what is known of it until the browser
// has seen it: one that was rendered would else lose what its scripts show at each
// visit. The links of the answer are followed at once.
func (a *agent) deferContent(b *pendingVisit) bool {
	return b.before.Rendered && b.before.State == store.OK
}

// voidWhy says why variants of pages are not rendered.
func voidWhy(name string) string { return "the parameter " + name + " changes nothing on this host" }

// awaitRender queues a page for the browser; it is in the batch.
func (a *agent) awaitRender(b *pendingVisit) {
	a.toRender = append(a.toRender, &renderPage{url: b.url, visit: b})
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// renderPage takes one page through the browser.
func (r *Robot) renderPage(ctx context.Context, p *renderPage) {
	q := &r.renders
	v := p.visit
	if v == nil {
		v = r.readBack(ctx, p.url)
	}
	if v == nil { // it changed, or its body is gone: the next visit decides
		q.complete(p, nil, false)
		return
	}
	if name := r.variants.voidParameter(p.url); name != "" {
		v.why = voidWhy(name)
		q.complete(p, v, false)
		return
	}
	v.Queued = true
	d := r.config.Render.Wants(ctx, &v.Fetched)
	v.why, v.Tag = d.Why, d.Tag
	switch {
	case d.Wait:
		q.giveBack(p, true)
		return
	case !d.Render:
		q.complete(p, v, false)
		return
	}
	v.rendered, v.err = r.config.Render.Render(ctx, &v.Fetched)
	if errors.Is(v.err, ErrNoBrowser) || ctx.Err() != nil {
		r.config.Render.Learn(&v.Fetched, nil, 0)
		q.giveBack(p, false)
		return
	}
	if v.rendered != nil {
		r.stats.rendered.Add(1)
		r.stats.bytes.Add(v.rendered.Bytes)
		r.budget.AddBytes(v.rendered.Bytes + int64(v.rendered.Requests)*politeness.HeaderBytes)
	} else {
		r.stats.fail("render", p.url.String(), v.err.Error())
		r.config.Log.Warn("render", "url", p.url.String(), "err", v.err)
	}
	if !q.complete(p, v, true) {
		r.discardRender(v)
	}
}

// discardRender lets the renderer know that a render teaches nothing.
func (r *Robot) discardRender(v *pendingVisit) {
	if v == nil || v.rendered == nil && v.err == nil { // it was not in the browser
		return
	}
	r.config.Render.Learn(&v.Fetched, nil, 0)
	r.renders.taught(v.url.Host())
}

// readBack returns the visit of a page whose answer is in the archive, or nil.
func (r *Robot) readBack(ctx context.Context, u weburl.URL) *pendingVisit {
	p, err := r.config.Store.Page(ctx, u)
	if err != nil || !p.Waits || p.Rendered || p.State != store.OK || r.config.ReadBody == nil {
		return nil
	}
	x, err := r.config.ReadBody(p.Body)
	if err != nil || x.Rendered {
		return nil
	}
	res := &fetch.Response{Status: http.StatusOK, Header: x.Header, Body: x.Body}
	v := &pendingVisit{url: u, res: res, at: x.Time, page: *p, before: *p, improves: true, slot: p.Slot, archived: true}
	v.Fetched = r.fetched(ctx, v, &v.page)
	v.Allowed = r.requests.SubresourceFilter(u.Host(), nil, r.sources.permitsPage(u))
	return v
}

// applyRenders takes out the pages that the browser is done with: for those nothing
// is asked of the host.
func (a *agent) applyRenders(ctx context.Context, pages []store.Page) []store.Page {
	rest := pages[:0]
	for i := range pages {
		p := &pages[i]
		if rp := a.robot.renders.result(p.Key); rp == nil || ctx.Err() != nil || !a.applyRender(ctx, p, rp) {
			rest = append(rest, *p)
		}
	}
	return rest
}

// applyRender commits what became of a page in the browser. It reports false where
// the page has to be visited after all.
func (a *agent) applyRender(ctx context.Context, p *store.Page, rp *renderPage) bool {
	r, v := a.robot, rp.visit
	a.rendersDone = append(a.rendersDone, rp)
	if v == nil || v.improves && (!p.Waits || p.Rendered) {
		r.discardRender(v)
		return false
	}
	before := *p
	p.Waits, p.Why = false, v.why
	if v.err != nil {
		p.Why += "; failed: " + v.err.Error()
	}
	if v.rendered != nil || v.err != nil { // it was in the browser
		if a.host.Delay > 0 { // what the page asked for counts as one visit
			a.access.Rest(later(a.host.Next, time.Now().Add(a.host.Delay)))
		}
		defer func() {
			r.config.Render.Learn(&v.Fetched, v.rendered, v.gained)
			r.renders.taught(a.host.Name)
		}()
	}
	if v.improves && v.rendered == nil {
		p.Slot, v.waits = v.slot, false
		a.noteVariant(v.url, v, v.Page, v.at)
		a.batch.Visits = append(a.batch.Visits, store.Visit{Page: *p})
		return true
	}
	v.before, v.Before = before, &v.before
	links, keys, changed := a.content(ctx, p, v)
	if !v.improves {
		a.answered = v.answered
		a.finish(&before, p, v.url, links, keys, v.at, v.res.Elapsed, changed)
		return true
	}
	visit := store.Visit{Page: *p, Changed: changed}
	if changed {
		visit.Links = keys
	}
	a.count(before.Held(), p)
	a.batch.Visits = append(a.batch.Visits, visit)
	if r.config.OnPage != nil && p.State == store.OK {
		r.config.OnPage(&Result{Page: *p, FinalURL: p.URL, Links: links, Fetched: v.at, Changed: changed})
	}
	return true
}
