package crawl

import (
	"context"
	"errors"
	"hash/fnv"
	"net/http"
	"slices"
	"time"

	"github.com/freshet/freshet/archive"
	"github.com/freshet/freshet/crawl/politeness"
	"github.com/freshet/freshet/crawl/trap"
	"github.com/freshet/freshet/extract"
	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/freshness"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// roomKept is how long a body may be whose room is used for the next one.
const roomKept = 1 << 20

// visit fetches a page and adds what came of it to the batch.
func (a *agent) visit(ctx context.Context, v *pageVisit) {
	r, p, u := a.robot, v.page, v.url
	b := a.build()
	b.before = *p
	before := &b.before
	req, res, now, err := a.answerTo(ctx, v)
	if err != nil {
		r.unreserve()
		if ctx.Err() != nil {
			a.access.RestAfterRequest() // it may have arrived
		}
		if ctx.Err() != nil || errors.Is(err, politeness.ErrNotSent) {
			return // we gave up, not the server: the page stays queued
		}
		a.noAnswer(p, err, now)
		a.finish(before, p, u, nil, nil, now, 0, false)
		return
	}
	a.access.Answered(res, now)
	r.stats.answer(res, now)
	if res, now, err = a.followToItself(ctx, u, res, now); err != nil {
		r.unreserve()
		if ctx.Err() != nil || errors.Is(err, politeness.ErrNoBudget) {
			return
		}
		a.noAnswer(p, err, now)
		a.finish(before, p, u, nil, nil, now, 0, false)
		return
	}
	a.answered = freshness.PendingSignals{}
	if res.Status < 500 && res.Status != http.StatusTooManyRequests { // else nothing was seen: signals wait for the next try
		a.answered = r.signals.EndVisit(u.Key())
	}
	r.budget.AddBytes(res.Wire + politeness.HeaderBytes)
	if a.answer = nil; r.config.Render == nil && cap(res.Body) <= roomKept { // else it may be kept for later
		a.answer = res
	}
	var links []extract.Link
	var keys []weburl.Key
	changed := false
	p.Status, p.Reason, p.Error = res.Status, "", ""
	switch s := res.Status; {
	case s == http.StatusNotModified && before.State == store.OK:
		p.Status, p.State, p.Failures, p.Reason, p.Error = before.Status, store.OK, 0, before.Reason, before.Error
		r.stats.unchanged.Add(1)
		if !res.Head {
			a.conditions(req, res, true)
		}
		a.directivesOf(p, u, res, now)
		r.traps.ConfirmPage(u, p.Title, p.Simhash, now)
		a.observe(p, false, now)
		a.schedule(before, p, u, false, now)
	case s >= 200 && s < 300:
		b.page, b.url, b.res, b.at, b.answered = *p, u, res, now, a.answered
		render := a.extractPage(ctx, b)
		if b.Page.Incomplete {
			r.unreserve()
			return // we gave up, not the document: the page stays queued
		}
		*p = b.page
		if render && a.deferContent(b) {
			a.waitWithContent(p, b)
			return
		}
		p.Waits = render
		links, keys, changed = a.content(ctx, p, b)
		a.conditions(req, res, !changed)
		if p.Waits = render && p.State == store.OK; p.Waits {
			b.improves, b.slot, b.archived = true, p.Slot, !p.Body.IsZero()
			b.page = *p
			a.awaitRender(b)
		}
	case s >= 300 && s < 400:
		links = a.redirect(before, p, u, res, now)
		changed = before.Held()
	case politeness.IsOverloaded(s):
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

// build returns an empty visit: the same for each page, unless pages come back
// later from the browser.
func (a *agent) build() *pendingVisit {
	if a.robot.config.Render != nil {
		return &pendingVisit{}
	}
	a.plain = pendingVisit{}
	return &a.plain
}

// waitWithContent puts a page that was rendered before into the batch as it is known,
// until the browser has seen it again; the links of the answer are followed now.
func (a *agent) waitWithContent(p *store.Page, b *pendingVisit) {
	why := p.Why
	*p = b.before
	p.Waits, p.Why, p.Status, p.Reason, p.Error = true, why, b.res.Status, "", ""
	p.Slot = store.Slot{Due: b.at.Add(politeness.RobotsAge)} // if nothing comes back
	a.queue(p, b.Page, a.keysOf(b.Page.Links), b)
	a.batch.Visits = append(a.batch.Visits, store.Visit{Page: *p, Arrived: b.at, Took: b.res.Elapsed})
	a.awaitRender(b)
}

// keysOf returns the keys of the pages that are linked to, in canonical form. They hold until the next
// commit.
func (a *agent) keysOf(links []extract.Link) []weburl.Key {
	n := len(a.keys)
	for i := range links {
		u, _ := a.robot.config.Canon.Apply(links[i].URL)
		a.keys = append(a.keys, u.Key())
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
	if p.State != store.OK && p.State != store.Redirect {
		a.robot.config.Plan.Unplanned(u)
	}
	v := store.Visit{Changed: changed, Arrived: now, Took: took}
	if changed {
		v.Links = keys
	}
	a.record(before, p, v, now)
	if a.robot.config.OnPage != nil && p.State != store.Failed && p.State != store.Excluded {
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
func (a *agent) content(ctx context.Context, p *store.Page, b *pendingVisit) (links []extract.Link, keys []weburl.Key, changed bool) {
	r, before, u, res, now, page, rendered := a.robot, &b.before, b.url, b.res, b.at, b.Page, b.rendered
	if rendered != nil {
		page = rendered.Page
	}
	p.Rendered = rendered != nil
	if page.Problem != "" {
		r.stats.fail(string(page.Problem), p.URL, store.Reason(page.Problem).Text())
	}
	for _, kind := range trap.OfAnswer(page, res) {
		r.stats.trap(kind, p.URL)
	}
	if a.isSoft404(ctx, u, before, page, now) {
		r.stats.trap(trap.SoftNotFound, p.URL)
		p.State, p.Title, p.Simhash = store.Gone, "", page.Simhash
		p.Reason, p.Error = store.Reason(trap.SoftNotFound), "status 200 with the host's text for pages that do not exist"
		a.goneAgain(before, p, now)
		return nil, nil, before.Held()
	}
	if kind := extract.Type(res.Header.Get("Content-Type")); len(r.config.Types) > 0 && !page.Sitemap && !slices.Contains(r.config.Types, kind) {
		r.stats.skip(store.ReasonContentType)
		p.State, p.Slot, p.Title = store.Excluded, store.Slot{}, ""
		p.Reason, p.Error = store.ReasonContentType, "content type "+kind
		return nil, nil, before.Held()
	}
	changed = !before.Held() || r.differs(before, page)
	if rendered == nil || !b.improves {
		a.observe(p, changed, now)
	}
	p.Title, p.Lang, p.Digest = page.Title, page.Lang, page.Digest
	if changed || before.Simhash == 0 || r.config.Noise <= 0 { // else many small differences would never be a change
		p.Simhash = page.Simhash
	}
	p.Shown = shown(page, p.Type)
	p.NoIndex, p.NoCopy, p.Expires = page.Robots.NoIndex, page.Robots.NoArchive, page.Robots.Until
	p.Canonical = a.canonicalOf(page, u)
	a.hideExpired(p, now)
	if !changed {
		r.stats.unchanged.Add(1)
	}
	// The index reads what it shows from the body that was kept last, and cannot read one
	// that another process kept.
	if changed || p.ShownDiffers(before) && !p.NoIndex {
		if err := a.keep(p, b, now); err != nil {
			// Without its body the page cannot be indexed: what has no body counts as not seen.
			r.config.Log.Error("archive", "url", p.URL, "err", err)
			p.State, p.Slot = store.Failed, store.Slot{Due: now.Add(time.Minute)}
			p.Reason, p.Error = store.ReasonArchive, "archive: "+err.Error()
			p.Digest, p.Simhash, p.Shown, p.NoIndex, p.Expires, p.Canonical = before.Digest, before.Simhash, before.Shown, before.NoIndex, before.Expires, before.Canonical
			return nil, nil, false
		}
		if r.config.OnBody != nil && rendered == nil && !p.Body.IsZero() && !p.NoIndex {
			r.config.OnBody(p.Body, p.URL, page)
		}
	}
	page.Text = "" // the page may wait for the browser for long
	if rendered == nil || !b.improves {
		a.schedule(before, p, u, changed, now)
	} else {
		p.Slot = b.slot
	}
	if isNew := before.State == store.Queued || before.Reason == store.ReasonMirror; !isNew {
		r.traps.ConfirmPage(u, page.Title, page.Simhash, now)
	} else if page.Length >= trap.MirrorText {
		if of := r.traps.MirrorOf(u, page.Title, page.Simhash, r.sources.standingOf(&a.host), now); of != "" && a.mirror == "" {
			a.mirror = of
			r.stats.trap(r.traps.MirrorKind(u.Host()), u.Host()+" of "+of)
		}
	}
	if page.Sitemap {
		a.entries(p, u, res, now)
		return nil, nil, changed
	}
	keys = a.keysOf(page.Links)
	a.noteVariant(u, b, page, now)
	a.queue(p, page, keys, b)
	return page.Links, keys, changed
}

// shown is the fingerprint of what the index shows of a page and its digest
// does not have.
func shown(page *extract.Page, contentType string) uint64 {
	h := fnv.New64a()
	for _, s := range []string{page.Description, extract.Type(contentType), page.Lang} {
		_, _ = h.Write(append([]byte(s), 0))
	}
	return max(h.Sum64(), 1)
}

// differs reports whether a page is not what it was: its digest is another, and
// its text differs by more than the ornaments that Noise allows.
func (r *Robot) differs(before *store.Page, page *extract.Page) bool {
	if page.Digest == before.Digest {
		return false
	}
	return r.config.Noise <= 0 || page.Title != before.Title || extract.Distance(page.Simhash, before.Simhash) > r.config.Noise
}

// keep writes the body to the archive, and what the browser made of it.
func (a *agent) keep(p *store.Page, b *pendingVisit, now time.Time) (err error) {
	w, res := a.robot.config.Archive, b.res
	if w == nil {
		return nil
	}
	x := &archive.Exchange{URL: b.url.String(), Time: now, IP: res.Remote, Proto: res.Proto, Status: res.Status, Header: res.Header, Body: res.Body}
	if res.Truncated {
		x.Truncated = "length"
	}
	pos := p.Body
	if !b.archived {
		countKept(&a.host, int64(len(res.Body)), now)
		pos, err = w.Write(x)
	}
	if err == nil && b.rendered != nil {
		x.Rendered, x.Body, x.Header = true, b.rendered.HTML, http.Header{"Content-Type": {"text/html; charset=utf-8"}}
		countKept(&a.host, int64(len(b.rendered.HTML)), now)
		pos, err = w.Write(x)
	}
	p.Body = pos
	return err
}

// queue adds the links that are in scope and no traps. Those that the store
// knows anyway, nearly all of a site's in the end, go no further.
func (a *agent) queue(p *store.Page, page *extract.Page, keys []weburl.Key, b *pendingVisit) {
	r := a.robot
	if page.Robots.NoFollow {
		r.stats.skip(store.ReasonNoFollow)
		return
	}
	a.spread(p, page)
	fetched := a.fetchedLinks(b)
	a.known = r.known(keys, a.known[:0])
	r.sources.mu.RLock() // once for all links
	defer r.sources.mu.RUnlock()
	for i := range page.Links {
		l := &page.Links[i]
		if l.NoFollow || l.Kind == extract.Image && !r.config.images() {
			continue
		}
		u, known := a.canonical(l.URL, p.Depth+1), a.known[i]
		if u != l.URL {
			known = r.known([]weburl.Key{u.Key()}, nil)[0]
		}
		if r.inScope(u, p.Depth+1) && (known || a.enqueue(p, u, p.Depth+1, time.Time{})) && a.tally(u, fetched) {
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
	u = a.canonical(u, depth)
	a.robot.sources.mu.RLock()
	defer a.robot.sources.mu.RUnlock()
	return a.robot.inScope(u, depth) && a.enqueue(p, u, depth, due)
}

// canonical takes out what chooses no content, and counts session numbers and tracking
// parameters. depth is the number of links from a start.
func (a *agent) canonical(whole weburl.URL, depth int) weburl.URL {
	r := a.robot
	u, cut := r.config.Canon.Apply(whole)
	if cut&weburl.Session != 0 {
		r.stats.trap(trap.Session, whole.String())
	}
	if cut&weburl.Tracking != 0 {
		r.stats.trap(trap.Tracking, whole.String())
	}
	return a.stripVoid(u, depth)
}

// inScope is InScope, and counts links that are not. The caller holds scopesMu.
func (r *Robot) inScope(u weburl.URL, depth int) bool {
	why := r.config.Scopes.Check(u, depth)
	if why != "" {
		r.stats.skip(why)
	}
	return why == ""
}

// enqueue is found for a URL that is canonical and in scope.
func (a *agent) enqueue(p *store.Page, u weburl.URL, depth int, due time.Time) bool {
	r := a.robot
	if kind := r.config.Traps.Check(u, a.host.Name, a.host.Pages); kind != "" {
		r.stats.trap(kind, u.String())
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
		canonical, _ := a.robot.config.Canon.Apply(to)
		itself := canonical == u
		switch n, loop := a.hops(p, canonical.String()); {
		case itself || loop:
			a.robot.stats.trap(trap.RedirectLoop, p.URL)
			p.Reason, p.Error = store.ReasonRedirectLoop, "redirect loop"
		case n >= maxRedirects:
			a.robot.stats.trap(trap.RedirectChain, p.URL)
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
	nested := slices.ContainsFunc(entries, func(e extract.Entry) bool { return e.Sitemap }) && a.sitemapLevel(p) >= maxSitemapLevel
	if nested {
		r.stats.trap(trap.NestedSitemaps, p.URL)
	}
	for _, e := range entries {
		if e.Sitemap && nested {
			continue
		}
		var due time.Time
		if a.speaksFor(u, e.URL) && a.newer(e, now) {
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

// maxSitemapLevel is how many sitemap indexes may lie above a sitemap. The protocol has
// one; without a bound, indexes that list indexes are an endless space of URLs.
const maxSitemapLevel = 2

// sitemapLevel returns how many sitemap indexes lead to a sitemap, by the pages on which
// each was found first.
func (a *agent) sitemapLevel(p *store.Page) (level int) {
	for from := p.From; level < maxSitemapLevel; level++ {
		u, err := weburl.Parse(from)
		if err != nil {
			break
		}
		parent, err := a.robot.config.Store.Page(context.Background(), u)
		if err != nil || extract.Type(parent.Type) == "html" { // robots.txt has no record
			break
		}
		from = parent.From
	}
	return level
}

// speaksFor reports whether dates in a sitemap or feed count for a page: it is on the page's
// host, or the robots.txt of that host names it. Anybody else could have a site visited as
// often as he likes.
func (a *agent) speaksFor(sitemap, page weburl.URL) bool {
	if page.Host() == a.host.Name {
		return true
	}
	rules := a.robot.requests.KnownRules(page.Origin())
	return rules != nil && slices.ContainsFunc(rules.Sitemaps, func(s string) bool {
		named, err := page.Resolve(s)
		if err != nil {
			return false
		}
		named, _ = a.robot.config.Canon.Apply(named)
		return named == sitemap
	})
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

// schedule says when the page is visited again.
func (a *agent) schedule(before, p *store.Page, u weburl.URL, changed bool, now time.Time) {
	c := &a.robot.config
	v := freshness.Visited{Page: p, URL: u, Changed: changed, Prior: a.prior(p), Signals: freshness.SignalQuality(a.host.Trust), Delay: a.host.Delay}
	if last := before.History.Last; !last.IsZero() {
		v.Since = max(0, now.Sub(last))
	}
	interval := min(max(c.Plan.Visited(&v), c.MinRevisit), c.MaxRevisit)
	if c.Once {
		interval = max(interval, 24*time.Hour)
	}
	p.Slot = store.Slot{Due: now.Add(interval)}
	if p.Expires.After(now) && p.Expires.Before(p.Slot.Due) {
		p.Slot.Due = p.Expires.Add(time.Second) // the visit takes it out of the index
	}
}
