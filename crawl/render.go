package crawl

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/freshet/freshet/crawl/politeness"
	"github.com/freshet/freshet/crawl/visit"
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
	before  store.Page               // the record that the visit found
	at      time.Time                // of the answer
	signals freshness.PendingSignals // before the visit

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

// shownPage returns what is shown of the page: by the browser, or else by the answer.
func (b *pendingVisit) shownPage() *extract.Page {
	if b.rendered != nil {
		return b.rendered.Page
	}
	return b.Page
}

// extractPage reads an answer and decides whether a browser is to see the page, too; why says
// why or why not.
func (a *agent) extractPage(ctx context.Context, b *pendingVisit) (render bool, why string) {
	r := a.robot
	b.Page = r.extract(ctx, b)
	if r.config.Render == nil || extract.Type(b.Answer.Header.Get("Content-Type")) != "html" {
		return false, ""
	}
	if name := r.variants.voidParameter(b.URL); name != "" {
		return false, voidWhy(name)
	}
	b.Get = a.access.GetScript
	d := r.config.Render.Wants(ctx, &b.Fetched)
	if !d.Render && !d.Wait {
		return false, d.Why
	}
	if !r.renders.hasSpaceFor(a.host.Name) {
		return false, d.Why + "; too many pages of its host wait for the browser"
	}
	b.Get, b.Allowed, b.waits = nil, a.access.SubresourceFilter(), true
	return true, d.Why
}

// extract reads the answer of a visit. Its text is wanted where OnBody takes it.
func (r *Robot) extract(ctx context.Context, b *pendingVisit) *extract.Page {
	c := &r.config
	return visit.Extract(ctx, b.URL, b.Answer, &b.before, extract.Options{
		Token: c.Token, Traits: c.Render != nil, Images: c.images(), PDF: c.PDF,
		Brief: c.OnBody == nil || b.archived || b.before.Rendered,
	})
}

// voidWhy says why variants of pages are not rendered.
func voidWhy(name string) string { return "the parameter " + name + " changes nothing on this host" }

// later returns the later of two times.
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
	r.renders.unblockHost(v.URL.Host())
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
	v := &pendingVisit{before: *p, at: x.Time, improves: true, slot: p.Slot, archived: true}
	v.Fetched = Fetched{
		URL: u, Answer: &fetch.Response{Status: http.StatusOK, Header: x.Header, Body: x.Body}, Before: &v.before,
		Allowed: r.requests.SubresourceFilter(u.Host(), nil, r.sources.permitsPage(u)),
	}
	v.Page = r.extract(ctx, v)
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
	a.batch.rendersDone = append(a.batch.rendersDone, rp)
	if v == nil || v.improves && (!p.Waits || p.Rendered) {
		r.discardRender(v)
		return false
	}
	why := v.why
	if v.err != nil {
		why += "; failed: " + v.err.Error()
	}
	if v.rendered != nil || v.err != nil { // it was in the browser
		if a.host.Delay > 0 { // what the page asked for counts as one visit
			a.access.Rest(later(a.host.Next, time.Now().Add(a.host.Delay)))
		}
		defer func() {
			r.config.Render.Learn(&v.Fetched, v.rendered, v.gained)
			r.renders.unblockHost(a.host.Name)
		}()
	}
	v.before, v.Before = *p, &v.before
	in := a.inputOf(v)
	in.Page, in.Rendered, in.Improves, in.NextSlot, in.Why = v.shownPage(), v.rendered != nil, v.improves, v.slot, why
	in.IsSoft404 = (in.Rendered || !in.Improves) && a.soft404.matches(ctx, v.URL, &v.before, in.Page, v.at)
	out := r.rules.DecideRendered(&in)
	a.apply(ctx, v, &out)
	return true
}
