package crawl

import (
	"context"
	"slices"
	"time"

	"github.com/freshet/freshet/crawl/trap"
	"github.com/freshet/freshet/crawl/visit"
	"github.com/freshet/freshet/extract"
	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

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

// queue adds the links that are in scope and no traps. Those that the store
// knows anyway, nearly all of a site's in the end, go no further.
func (a *agent) queue(ctx context.Context, p *store.Page, page *extract.Page, keys []weburl.Key, b *pendingVisit) {
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
		if r.inScope(u, p.Depth+1) && (known || a.enqueue(p, u, p.Depth+1, time.Time{})) && a.tally(ctx, u, fetched) {
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

// redirectsBefore counts the redirects that led to a page one after the other, and reports
// whether one of them stood at a target. They are in the store: their targets were queued by
// the commits that wrote them.
func (a *agent) redirectsBefore(ctx context.Context, p *store.Page, target string) (n int, loop bool) {
	from := p.From
	for n < visit.MaxRedirects {
		u, err := weburl.Parse(from)
		if err != nil {
			return n, loop
		}
		q, err := a.robot.config.Store.Page(ctx, u)
		if err != nil || q.State != store.Redirect {
			return n, loop
		}
		loop = loop || from == target
		from = q.From
		n++
	}
	return n, loop
}

// entries queues what a sitemap or feed lists, known pages again if they are
// said to have changed since their last visit.
func (a *agent) entries(ctx context.Context, p *store.Page, u weburl.URL, res *fetch.Response, now time.Time) {
	r := a.robot
	entries, err := extract.Entries(res.Body, u)
	if err != nil {
		r.config.Log.Info("sitemap", "url", p.URL, "err", err)
	}
	nested := slices.ContainsFunc(entries, func(e extract.Entry) bool { return e.Sitemap }) && a.sitemapLevel(ctx, p) >= maxSitemapLevel
	if nested {
		r.stats.trap(trap.NestedSitemaps, p.URL)
	}
	for _, e := range entries {
		if e.Sitemap && nested {
			continue
		}
		var due time.Time
		if a.speaksFor(u, e.URL) && a.newer(ctx, e, now) {
			due = r.Signal(ctx, dates, e.URL)
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
func (a *agent) sitemapLevel(ctx context.Context, p *store.Page) (level int) {
	for from := p.From; level < maxSitemapLevel; level++ {
		u, err := weburl.Parse(from)
		if err != nil {
			break
		}
		parent, err := a.robot.config.Store.Page(ctx, u)
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
func (a *agent) newer(ctx context.Context, e extract.Entry, now time.Time) bool {
	if e.Modified.IsZero() || e.Modified.Before(now.Add(-24*time.Hour)) || e.Modified.After(now) {
		return false
	}
	u, _ := a.robot.config.Canon.Apply(e.URL)
	p, err := a.robot.config.Store.Page(ctx, u)
	return err == nil && p.History.Last.Before(e.Modified)
}
