package crawl

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/freshet/freshet/archive"
	"github.com/freshet/freshet/crawl/politeness"
	"github.com/freshet/freshet/crawl/trap"
	"github.com/freshet/freshet/crawl/visit"
	"github.com/freshet/freshet/extract"
	"github.com/freshet/freshet/freshness"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// maxReusedBody is how long a body may be whose memory is used for the next one.
const maxReusedBody = 1 << 20

// visit fetches a page, decides what that means for it, and carries the decision out.
func (a *agent) visit(ctx context.Context, v *pageVisit) {
	r := a.robot
	b := a.newPendingVisit(v)
	req, res, at, err := a.requests.answerTo(ctx, v)
	if err == nil {
		a.access.Answered(res, at)
		r.stats.answer(res, at)
		res, at, err = a.requests.followToItself(ctx, v.url, res, at)
	} else if ctx.Err() != nil {
		a.access.RestAfterRequest() // it may have arrived
	}
	b.Answer, b.at = res, at
	if err != nil && (ctx.Err() != nil || errors.Is(err, politeness.ErrNotSent)) {
		r.unreserve()
		return // we gave up, not the server: the page stays queued
	}
	in, ok := a.lookUp(ctx, b, err)
	if !ok {
		r.unreserve()
		return
	}
	out := r.rules.Decide(&in)
	a.apply(ctx, b, &out)
	switch out.Kind {
	case visit.NoAnswer, visit.Overloaded, visit.ServerError:
		r.unreserve()
	case visit.NotModified:
		if !res.Head {
			a.requests.noteConditions(req, res, true)
		}
	case visit.Content, visit.Soft404, visit.OtherType, visit.NotArchived:
		a.requests.noteConditions(req, res, !out.Changed)
	}
}

// newPendingVisit returns a visit without an answer: the same for each page, unless pages
// come back later from the browser.
func (a *agent) newPendingVisit(v *pageVisit) *pendingVisit {
	b := &a.plain
	if a.robot.config.Render != nil {
		b = &pendingVisit{}
	}
	*b = pendingVisit{before: *v.page}
	b.URL, b.Before = v.url, &b.before
	return b
}

// lookUp collects what the decision on a visit needs: it extracts the page, asks the host and
// the store. It reports false if the page was given up.
func (a *agent) lookUp(ctx context.Context, b *pendingVisit, failed error) (in visit.Input, ok bool) {
	r, res := a.robot, b.Answer
	if failed != nil {
		kind, _ := politeness.KindOf(failed)
		a.access.NoAnswer(kind, b.before.Failures+1, b.at)
		in = a.inputOf(b)
		in.Response, in.Err = nil, failed
		return in, true
	}
	if res.Status < 500 && res.Status != http.StatusTooManyRequests { // else nothing was seen: signals wait for the next try
		b.signals = r.signals.EndVisit(b.URL.Key())
	}
	r.budget.AddBytes(res.Wire + politeness.HeaderBytes)
	if a.requests.reusable = nil; r.config.Render == nil && cap(res.Body) <= maxReusedBody { // else it may be kept for later
		a.requests.reusable = res
	}
	in = a.inputOf(b)
	switch s := res.Status; {
	case s >= 200 && s < 300:
		in.AwaitsRender, in.Why = a.extractPage(ctx, b)
		if b.Page.Incomplete { // we gave up, not the document
			return in, false
		}
		in.Page = b.Page
		in.IsSoft404 = !in.IsDeferred() && a.soft404.matches(ctx, b.URL, &b.before, b.Page, b.at)
	case s >= 300 && s < 400:
		if to, redirects := res.Location(b.URL); redirects {
			target, _ := r.config.Canon.Apply(to)
			in.Redirects, in.RedirectsToTarget = a.links.redirectsBefore(ctx, &b.before, target.String())
		}
	case politeness.IsOverloaded(s):
		a.access.Overloaded(res, b.at)
		in.HostNext = a.host.Next
	}
	return in, true
}

// inputOf returns what the decision on a visit knows anyway.
func (a *agent) inputOf(b *pendingVisit) visit.Input {
	return visit.Input{URL: b.URL, Before: &b.before, Response: b.Answer, At: b.at, Prior: a.prior, Signals: freshness.EvidenceOf(a.host.Trust, b.signals)}
}

// apply carries out what a visit means: it archives, plans, follows links and adds the page
// to the batch.
func (a *agent) apply(ctx context.Context, b *pendingVisit, out *visit.Outcome) {
	r := a.robot
	r.stats.outcome(out)
	if out.Archive {
		a.archiveBody(b, out)
	}
	if b.Page != nil {
		// The page may wait for the browser for long. What the browser saw keeps its
		// text: the renderer learns from it what rendering gains.
		b.Page.Text = ""
	}
	page := b.shownPage()
	if out.Planned {
		a.plan(b, out)
	}
	var keys []weburl.Key
	switch out.Kind {
	case visit.NotModified:
		r.traps.ConfirmPage(b.URL, out.Page.Title, out.Page.Simhash, b.at)
	case visit.Content:
		a.compareHosts(b, page)
		if page.Sitemap {
			a.links.addEntries(ctx, &out.Page, b.URL, b.Answer, b.at)
			break
		}
		keys = a.links.keysOf(page.Links)
		a.parameters.noteVariant(b.URL, b, page, b.at)
		a.links.addLinks(ctx, &out.Page, page, keys, b)
	case visit.Deferred:
		a.links.addLinks(ctx, &out.Page, page, a.links.keysOf(page.Links), b)
	case visit.Kept:
		b.waits = false
		a.parameters.noteVariant(b.URL, b, page, b.at)
	case visit.Redirected:
		keys = a.links.keysOf(out.Links)
		if !out.Target.IsZero() {
			a.links.add(&out.Page, out.Target, out.Page.Depth, time.Time{})
		}
	}
	a.finish(b, out, keys)
	if out.Page.Waits && (out.Kind == visit.Content || out.Kind == visit.Deferred) {
		if out.Kind == visit.Content {
			b.improves, b.slot, b.archived = true, out.Page.Slot, !out.Page.Body.IsZero()
		}
		a.batch.toRender = append(a.batch.toRender, &renderPage{url: b.URL, visit: b})
	}
}

// finish adds the visit to the batch, teaches the estimates and calls OnPage. keys are those of
// the links.
func (a *agent) finish(b *pendingVisit, out *visit.Outcome, keys []weburl.Key) {
	r, p := a.robot, &out.Page
	if out.Observed && freshness.Learn(&a.host, r.prior(), &b.before, p, b.signals, out.Changed, b.at) {
		r.knowSignals(&a.host)
	}
	if p.State != store.OK && p.State != store.Redirect {
		r.config.Plan.Unplanned(b.URL)
	}
	arrived, took := b.at, time.Duration(0)
	if b.Answer != nil {
		took = b.Answer.Elapsed
	}
	if b.improves {
		arrived, took = time.Time{}, 0 // that visit is in the log
	}
	a.batch.add(&b.before, out, keys, arrived, took)
	a.parameters.noteOutcome(p, b.URL, time.Now())
	if r.config.OnPage == nil || p.State == store.Failed || p.State == store.Excluded || out.Kind == visit.Deferred || out.Kind == visit.Kept {
		return
	}
	final := p.URL
	if p.Location != "" && p.State == store.Redirect {
		final = p.Location
	}
	r.config.OnPage(&Result{Page: *p, FinalURL: final, Links: out.Links, Fetched: b.at, Changed: out.Changed || b.before.State == store.Queued})
}

// archiveBody writes the body of a visit to the archive, and what the browser made of it. The
// outcome says so if that fails.
func (a *agent) archiveBody(b *pendingVisit, out *visit.Outcome) {
	c, p := &a.robot.config, &out.Page
	if c.Archive == nil {
		return
	}
	at, err := b.writeBodies(c.Archive, &a.host, p.Body)
	if err != nil {
		c.Log.Error("archive", "url", p.URL, "err", err)
		*out = a.robot.rules.ArchiveFailed(out, &b.before, err, b.at)
		return
	}
	p.Body = at
	if c.OnBody != nil && b.rendered == nil && !p.Body.IsZero() && !p.NoIndex {
		c.OnBody(p.Body, p.URL, b.Page)
	}
}

// writeBodies archives the answer and what the browser made of it, and returns where the body
// is that the index reads. at is where the answer is if it was archived before.
func (b *pendingVisit) writeBodies(w *archive.Writer, h *store.Host, at archive.Position) (archive.Position, error) {
	res := b.Answer
	x := &archive.Exchange{URL: b.URL.String(), Time: b.at, IP: res.Remote, Proto: res.Proto, Status: res.Status, Header: res.Header, Body: res.Body}
	if res.Truncated {
		x.Truncated = "length"
	}
	var err error
	if !b.archived {
		countKept(h, int64(len(res.Body)), b.at)
		at, err = w.Write(x)
	}
	if err == nil && b.rendered != nil {
		x.Rendered, x.Body, x.Header = true, b.rendered.HTML, http.Header{"Content-Type": {"text/html; charset=utf-8"}}
		countKept(h, int64(len(b.rendered.HTML)), b.at)
		at, err = w.Write(x)
	}
	return at, err
}

// compareHosts compares a new page with those of other hosts, of which this one may be a
// copy. A page that is known confirms that its host has it.
func (a *agent) compareHosts(b *pendingVisit, page *extract.Page) {
	r := a.robot
	if isNew := b.before.State == store.Queued || b.before.Reason == store.ReasonMirror; !isNew {
		r.traps.ConfirmPage(b.URL, page.Title, page.Simhash, b.at)
		return
	}
	if page.Length < trap.MirrorText {
		return
	}
	if of := r.traps.MirrorOf(b.URL, page.Title, page.Simhash, r.sources.standingOf(&a.host), b.at); of != "" && a.mirror == "" {
		a.mirror = of
		r.stats.trap(r.traps.MirrorKind(b.URL.Host()), b.URL.Host()+" of "+of)
	}
}

// plan asks the planner when the page is visited again.
func (a *agent) plan(b *pendingVisit, out *visit.Outcome) {
	c, p := &a.robot.config, &out.Page
	v := freshness.Visited{Page: p, URL: b.URL, Changed: out.Differs, Prior: a.prior(p), Signals: freshness.SignalQuality(a.host.Trust), Delay: a.host.Delay}
	if last := b.before.History.Last; !last.IsZero() {
		v.Since = max(0, b.at.Sub(last))
	}
	interval := min(max(c.Plan.Visited(&v), c.MinRevisit), c.MaxRevisit)
	if c.Once {
		interval = max(interval, 24*time.Hour)
	}
	p.Slot = store.Slot{Due: b.at.Add(interval)}
	if p.Expires.After(b.at) && p.Expires.Before(p.Slot.Due) {
		p.Slot.Due = p.Expires.Add(time.Second) // the visit takes it out of the index
	}
}
