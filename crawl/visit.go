package crawl

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/freshet/freshet/archive"
	"github.com/freshet/freshet/extract"
	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// roomKept is how long a body may be whose room is used for the next one.
const roomKept = 1 << 20

// visit fetches a page and adds what came of it to the batch.
func (a *agent) visit(ctx context.Context, p *store.Page, u weburl.URL) {
	r := a.robot
	b := a.build()
	b.before = *p
	before := &b.before
	r.signals.ask(u.Key())
	req := fetch.Request{URL: u, Room: a.answer}
	if p.State == store.OK && !p.Rendered && !p.Waits { // an error page's validators say nothing of the page, nor does a shell's of what scripts put into it
		req.ETag, req.LastModified = p.ETag, p.LastModified
	}
	res, err := a.request(ctx, before, u, req)
	now := time.Now()
	if err != nil {
		r.unreserve()
		if ctx.Err() != nil || errors.Is(err, errBudget) {
			return // we gave up, not the server: the page stays queued
		}
		a.noAnswer(p, err, now)
		a.finish(before, p, u, nil, nil, now, 0, false)
		return
	}
	a.polite(u, res, now)
	r.stats.answer(res, now)
	a.told = pending{}
	if res.Status < 500 && res.Status != http.StatusTooManyRequests { // else nothing was seen: signals wait for the next try
		a.told = r.signals.take(u.Key())
	}
	r.budget.spent(res.Wire + headerBytes)
	if a.answer = nil; r.config.Render == nil && cap(res.Body) <= roomKept { // else it may be kept for later
		a.answer = res
	}
	var links []extract.Link
	var keys []weburl.Key
	changed := false
	p.Status, p.Error = res.Status, ""
	switch s := res.Status; {
	case s == http.StatusNotModified && before.State == store.OK:
		p.Status, p.State, p.Failures = before.Status, store.OK, 0
		r.stats.unchanged.Add(1)
		if !res.Head {
			a.conditions(req, res, true)
		}
		a.observe(p, false, now)
		a.schedule(before, p, u, false, now)
	case s >= 200 && s < 300:
		b.page, b.url, b.res, b.at, b.told = *p, u, res, now, a.told
		if a.send(ctx, b) {
			return // the agent goes on; comeback finishes the page
		}
		*p = b.page
		links, keys, changed = a.content(ctx, p, b)
		a.conditions(req, res, !changed)
	case s >= 300 && s < 400:
		links = a.redirect(before, p, u, res, now)
		changed = before.Held()
	case refuses(s):
		r.unreserve()
		a.overloaded(p, res, now)
	case s >= 500:
		r.unreserve()
		a.serverError(p, now)
	case s == http.StatusUnauthorized || s == http.StatusForbidden:
		p.State, p.Failures = store.Blocked, 0
		changed = before.Held()
		a.observe(p, changed, now)
		p.Slot = store.Slot{Due: now.Add(max(r.config.MinRevisit, 24*time.Hour))}
	default:
		p.State, p.Failures = store.Gone, 0
		changed = before.Held()
		a.goneAgain(before, p, now)
	}
	if keys == nil {
		keys = a.keysOf(links)
	}
	a.finish(before, p, u, links, keys, now, res.Elapsed, changed)
}

// build returns an empty building: the same for each page, unless pages come back
// later from the browser.
func (a *agent) build() *building {
	if a.robot.config.Render != nil {
		return &building{}
	}
	a.plain = building{}
	return &a.plain
}

// keysOf returns the keys of the pages that are linked to. They hold until the next
// commit.
func (a *agent) keysOf(links []extract.Link) []weburl.Key {
	n := len(a.keys)
	for i := range links {
		a.keys = append(a.keys, links[i].URL.Key())
	}
	return a.keys[n:len(a.keys):len(a.keys)]
}

// finish adds the visit to the batch and tells who wants to know. keys are those
// of the links.
func (a *agent) finish(before, p *store.Page, u weburl.URL, links []extract.Link, keys []weburl.Key, now time.Time, took time.Duration, changed bool) {
	if p.State != store.OK && p.State != store.Failed {
		p.Digest = [16]byte{} // nothing of it is in the index
	}
	a.learn(before, p, changed, now)
	a.count(before.Held(), p)
	if p.State != store.OK && p.State != store.Redirect {
		a.robot.config.Plan.Unplanned(u)
	}
	v := store.Visit{Page: *p, Changed: changed, Arrived: now, Took: took}
	if changed {
		v.Links = keys
	}
	a.batch.Visits = append(a.batch.Visits, v)
	if a.robot.config.OnPage != nil && p.Error == "" {
		final := p.URL
		if p.Location != "" && p.State == store.Redirect {
			final = p.Location
		}
		a.robot.config.OnPage(&Result{Page: *p, FinalURL: final, Links: links, Fetched: now, Changed: changed || before.State == store.Queued})
	}
}

// count keeps the number of the host's pages. held says whether the page was one of
// them before.
func (a *agent) count(held bool, p *store.Page) {
	switch {
	case p.Held() && !held:
		a.host.Pages++
	case held && !p.Held() && a.host.Pages > 0:
		a.host.Pages--
	}
}

// content takes a page that came: archive, compare, queue its links. keys are
// those of the links, or nil.
func (a *agent) content(ctx context.Context, p *store.Page, b *building) (links []extract.Link, keys []weburl.Key, changed bool) {
	r, before, u, res, now, page, rendered := a.robot, &b.before, b.url, b.res, b.at, b.Page, b.rendered
	if rendered != nil {
		page = rendered.Page
	}
	p.Rendered = rendered != nil
	for _, kind := range oddities(page, res) {
		r.stats.trap(kind, p.URL)
	}
	if a.soft(ctx, u, before, page, now) {
		r.stats.trap("soft 404", p.URL)
		p.State, p.Title, p.Simhash = store.Gone, "", page.Simhash
		a.goneAgain(before, p, now)
		return nil, nil, before.Held()
	}
	if kind := extract.Type(res.Header.Get("Content-Type")); len(r.config.Types) > 0 && !page.Sitemap && !slices.Contains(r.config.Types, kind) {
		r.stats.skip("content type", p.URL)
		p.State, p.Error, p.Slot, p.Title = store.Excluded, "content type "+kind, store.Slot{}, ""
		return nil, nil, before.Held()
	}
	changed = !before.Held() || r.differs(before, page)
	a.observe(p, changed, now)
	p.Title, p.Lang, p.Digest, p.Simhash, p.NoIndex = page.Title, page.Lang, page.Digest, page.Simhash, page.Robots.Hidden(now)
	p.Canonical = ""
	if c := page.Canonical; !c.IsZero() && c != u {
		p.Canonical = c.String()
	}
	if !changed {
		r.stats.unchanged.Add(1)
	} else if err := a.keep(p, u, res, rendered, now); err != nil {
		// Without its body the page cannot be indexed: leave it queued.
		r.config.Log.Error("archive", "url", p.URL, "err", err)
		p.State, p.Error, p.Slot = store.Failed, "archive: "+err.Error(), store.Slot{Due: now.Add(time.Minute)}
		p.Digest = before.Digest // what has no body counts as not seen
		return nil, nil, false
	}
	a.schedule(before, p, u, changed, now)
	if before.State == store.Queued && page.Length >= mirrorText {
		if of := r.waste.mirror(u, page.Title, page.Simhash); of != "" && a.mirror == "" {
			a.mirror = of
			r.stats.trap(r.waste.mirrorKind(u.Host()), u.Host()+" of "+of)
		}
	}
	if page.Sitemap {
		a.entries(p, u, res, now)
		return nil, nil, changed
	}
	keys = a.keysOf(page.Links)
	a.queue(p, page, keys, b)
	return page.Links, keys, changed
}

// mirrorText is how much text a page must have to tell hosts apart.
const mirrorText = 200

// differs reports whether a page is not what it was: its digest is another, and
// its text differs by more than the ornaments that Noise allows.
func (r *Robot) differs(before *store.Page, page *extract.Page) bool {
	if page.Digest == before.Digest {
		return false
	}
	return r.config.Noise <= 0 || page.Title != before.Title || extract.Distance(page.Simhash, before.Simhash) > r.config.Noise
}

// keep writes the body to the archive.
func (a *agent) keep(p *store.Page, u weburl.URL, res *fetch.Response, rendered *Rendered, now time.Time) error {
	w := a.robot.config.Archive
	if w == nil {
		return nil
	}
	x := &archive.Exchange{URL: u.String(), Time: now, IP: res.Remote, Proto: res.Proto, Status: res.Status, Header: res.Header, Body: res.Body}
	if res.Truncated {
		x.Truncated = "length"
	}
	pos, err := w.Write(x)
	if err == nil && rendered != nil {
		x.Rendered, x.Body, x.Header = true, rendered.HTML, http.Header{"Content-Type": {"text/html; charset=utf-8"}}
		pos, err = w.Write(x)
	}
	p.Body = pos
	return err
}

// queue adds the links that are in scope and no traps. Those that the store
// knows anyway, nearly all of a site's in the end, go no further.
func (a *agent) queue(p *store.Page, page *extract.Page, keys []weburl.Key, b *building) {
	r := a.robot
	if page.Robots.NoFollow {
		r.stats.skip("nofollow", p.URL)
		return
	}
	a.spread(p, page)
	fetched := b.fetchedLinks(r.config.Canon)
	a.known = r.known(keys, a.known[:0])
	r.scopesMu.RLock() // once for all links
	defer r.scopesMu.RUnlock()
	for i := range page.Links {
		l := &page.Links[i]
		if l.NoFollow || l.Kind == extract.Image && !r.config.images() {
			continue
		}
		u, known := a.canonical(l.URL), a.known[i]
		if u != l.URL {
			known = r.known([]weburl.Key{u.Key()}, nil)[0]
		}
		if r.inScope(u, p.Depth+1) && (known || a.enqueue(p, u, p.Depth+1, time.Time{})) && a.tally(l.URL, fetched) {
			b.gained++
		}
	}
}

// known appends of each key whether its URL need not be queued, by what the store
// has in memory.
func (r *Robot) known(keys []weburl.Key, known []bool) []bool {
	known = append(known, make([]bool, len(keys))...)
	if _, promotes := r.config.Ordering.(Spreader); promotes {
		return known
	}
	if s, ok := r.config.Store.(store.Knower); ok {
		s.Known(keys, known)
	}
	return known
}

// spread tells an ordering that learns from links.
func (a *agent) spread(p *store.Page, page *extract.Page) {
	o, ok := a.robot.config.Ordering.(Spreader)
	if !ok {
		return
	}
	u, err := weburl.Parse(p.URL)
	if err != nil {
		return
	}
	to := make([]weburl.Key, 0, len(page.Links))
	for i := range page.Links {
		if c, _ := a.robot.config.Canon.Apply(page.Links[i].URL); c != u {
			to = append(to, c.Key())
		}
	}
	o.Spread(u.Key(), to)
}

// found queues one URL in canonical form, unless it is out of scope or a trap.
func (a *agent) found(p *store.Page, u weburl.URL, depth int, due time.Time) bool {
	u = a.canonical(u)
	a.robot.scopesMu.RLock()
	defer a.robot.scopesMu.RUnlock()
	return a.robot.inScope(u, depth) && a.enqueue(p, u, depth, due)
}

// canonical counts session numbers and tracking parameters.
func (a *agent) canonical(whole weburl.URL) weburl.URL {
	r := a.robot
	u, cut := r.config.Canon.Apply(whole)
	if cut&weburl.Session != 0 {
		r.stats.trap("session number", whole.String())
	}
	if cut&weburl.Tracking != 0 {
		r.stats.trap("tracking parameter", whole.String())
	}
	return u
}

// inScope is InScope, and counts links that are not. The caller holds scopesMu.
func (r *Robot) inScope(u weburl.URL, depth int) bool {
	why := r.config.Scopes.Check(u, depth)
	if why != "" {
		r.stats.skip(why, u.String())
	}
	return why == ""
}

// enqueue is found for a URL that is canonical and in scope.
func (a *agent) enqueue(p *store.Page, u weburl.URL, depth int, due time.Time) bool {
	r := a.robot
	if trap := r.config.Traps.Check(u, a.host.Name, a.host.Pages); trap != "" {
		r.stats.trap(trap, u.String())
		return false
	}
	f := store.Found{URL: u, Depth: depth, From: p.URL, Due: due}
	f.Order = r.config.Ordering.Order(&f)
	_, f.Promote = r.config.Ordering.(Spreader)
	a.batch.Found = append(a.batch.Found, f)
	return true
}

// maxRedirects is how long a chain of redirects may be; browsers give up at 20.
const maxRedirects = 10

// hops counts the redirects that led to a page one after the other, and tells
// whether one of them stood at a target. Those before the page are in the store:
// their targets were queued by the commit that wrote them.
func (a *agent) hops(p *store.Page, target string) (n int, loop bool) {
	from := p.From
	for n < maxRedirects {
		u, err := weburl.Parse(from)
		if err != nil {
			return n, loop
		}
		q, err := a.robot.config.Store.Page(context.Background(), u)
		if err != nil || q.State != store.Redirect {
			return n, loop
		}
		loop = loop || from == target
		from = q.From
		n++
	}
	return n, loop
}

// redirect records where the page went and queues the target.
func (a *agent) redirect(before, p *store.Page, u weburl.URL, res *fetch.Response, now time.Time) []extract.Link {
	was := p.Location
	p.State, p.Failures, p.Location = store.Redirect, 0, ""
	var links []extract.Link
	if to, ok := res.Location(u); ok {
		p.Location = to.String()
		links = []extract.Link{{URL: to, Kind: extract.Refresh}}
		switch n, loop := a.hops(p, p.Location); {
		case to == u || loop:
			a.robot.stats.trap("redirect loop", p.URL)
		case n >= maxRedirects:
			a.robot.stats.trap("redirect chain", p.URL)
		default:
			a.found(p, to, p.Depth, time.Time{})
		}
	}
	a.observe(p, p.Location != was, now)
	a.schedule(before, p, u, p.Location != was, now)
	return links
}

// entries queues what a sitemap or feed lists, known pages again if they are
// said to have changed since their last visit.
func (a *agent) entries(p *store.Page, u weburl.URL, res *fetch.Response, now time.Time) {
	r := a.robot
	entries, err := extract.Entries(res.Body, u)
	if err != nil {
		r.config.Log.Info("sitemap", "url", p.URL, "err", err)
	}
	for _, e := range entries {
		var due time.Time
		if a.newer(e, now) {
			due = r.Signal(context.Background(), dates, e.URL)
		}
		if e.Deleted && due.IsZero() {
			continue // we do not have it, or know
		}
		depth := p.Depth + 1
		if e.Sitemap {
			depth = p.Depth
		}
		a.found(p, e.URL, depth, due)
	}
}

// newer reports whether an entry says that its page changed since we saw it.
// Dates of long ago and of the future say nothing.
func (a *agent) newer(e extract.Entry, now time.Time) bool {
	if e.Modified.IsZero() || e.Modified.Before(now.Add(-24*time.Hour)) || e.Modified.After(now) {
		return false
	}
	u, _ := a.robot.config.Canon.Apply(e.URL)
	p, err := a.robot.config.Store.Page(context.Background(), u)
	return err == nil && p.History.Last.Before(e.Modified)
}

// headerBytes is about what a request and its answer take beside the body.
const headerBytes = 700

// schedule says when the page is visited again.
func (a *agent) schedule(before, p *store.Page, u weburl.URL, changed bool, now time.Time) {
	c := &a.robot.config
	v := Visited{Page: p, URL: u, Changed: changed, Prior: a.prior(p), Signals: Noisy(a.host.Trust), Delay: a.host.Delay}
	if last := before.History.Last; !last.IsZero() {
		v.Since = max(0, now.Sub(last))
	}
	interval := min(max(c.Plan.Visited(&v), c.MinRevisit), c.MaxRevisit)
	if c.Once {
		interval = max(interval, 24*time.Hour)
	}
	p.Slot = store.Slot{Due: now.Add(interval)}
}
