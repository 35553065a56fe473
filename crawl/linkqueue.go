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

// linkQueue queues the URLs to which the pages of one host lead. It belongs to the agent of the
// host.
type linkQueue struct {
	robot      *Robot
	host       *store.Host
	parameters *hostParameters
	batch      *visitBatch
	known      []bool // memory: which links of a page are known
}

// keysOf returns the keys of the pages that are linked to, in canonical form. They hold until the next
// commit.
func (q *linkQueue) keysOf(links []extract.Link) []weburl.Key {
	n := len(q.batch.keys)
	for i := range links {
		u, _ := q.robot.config.Canon.Apply(links[i].URL)
		q.batch.keys = append(q.batch.keys, u.Key())
	}
	return q.batch.keys[n:len(q.batch.keys):len(q.batch.keys)]
}

// addLinks adds the links that are in scope and no traps. Those that the store
// knows anyway, nearly all of a site's in the end, go no further.
func (q *linkQueue) addLinks(ctx context.Context, p *store.Page, page *extract.Page, keys []weburl.Key, b *pendingVisit) {
	r := q.robot
	if page.Robots.NoFollow {
		r.stats.skip(store.ReasonNoFollow)
		return
	}
	q.teachOrdering(p, page)
	fetched := q.linksAsFetched(b)
	q.known = q.areKnown(keys, q.known[:0])
	r.sources.mu.RLock() // once for all links
	defer r.sources.mu.RUnlock()
	for i := range page.Links {
		l := &page.Links[i]
		if l.NoFollow || l.Kind == extract.Image && !r.config.images() {
			continue
		}
		u, known := q.canonical(l.URL, p.Depth+1), q.known[i]
		if u != l.URL {
			known = q.areKnown([]weburl.Key{u.Key()}, nil)[0]
		}
		if q.inScope(u, p.Depth+1) && (known || q.addInScope(p, u, p.Depth+1, time.Time{})) && q.countRenderGain(ctx, u, fetched) {
			b.gained++
		}
	}
}

// teachOrdering tells an ordering that learns from links.
func (q *linkQueue) teachOrdering(p *store.Page, page *extract.Page) {
	o, ok := q.robot.config.Ordering.(Spreader)
	if !ok {
		return
	}
	u, err := weburl.Parse(p.URL)
	if err != nil {
		return
	}
	to := make([]weburl.Key, 0, len(page.Links))
	for i := range page.Links {
		if c, _ := q.robot.config.Canon.Apply(page.Links[i].URL); c != u {
			to = append(to, c.Key())
		}
	}
	o.Spread(u.Key(), to)
}

// add queues one URL in canonical form, unless it is out of scope or a trap.
func (q *linkQueue) add(p *store.Page, u weburl.URL, depth int, due time.Time) bool {
	u = q.canonical(u, depth)
	q.robot.sources.mu.RLock()
	defer q.robot.sources.mu.RUnlock()
	return q.inScope(u, depth) && q.addInScope(p, u, depth, due)
}

// canonical takes out what chooses no content, and counts session numbers and tracking
// parameters. depth is the number of links from a start.
func (q *linkQueue) canonical(whole weburl.URL, depth int) weburl.URL {
	r := q.robot
	u, cut := r.config.Canon.Apply(whole)
	if cut&weburl.Session != 0 {
		r.stats.trap(trap.Session, whole.String())
	}
	if cut&weburl.Tracking != 0 {
		r.stats.trap(trap.Tracking, whole.String())
	}
	return q.parameters.strip(u, depth)
}

// addInScope queues a URL in canonical form that is in scope, unless it is a trap.
func (q *linkQueue) addInScope(p *store.Page, u weburl.URL, depth int, due time.Time) bool {
	r := q.robot
	if kind := r.config.Traps.Check(u, q.host.Name, q.host.Pages); kind != "" {
		r.stats.trap(kind, u.String())
		return false
	}
	f := store.Found{URL: u, Depth: depth, From: p.URL, Due: due}
	f.Order = r.config.Ordering.Order(&f)
	_, f.Promote = r.config.Ordering.(Spreader)
	q.batch.Found = append(q.batch.Found, f)
	return true
}

// redirectsBefore counts the redirects that led to a page one after the other, and reports
// whether one of them stood at a target. They are in the store: their targets were queued by
// the commits that wrote them.
func (q *linkQueue) redirectsBefore(ctx context.Context, p *store.Page, target string) (n int, loop bool) {
	from := p.From
	for n < visit.MaxRedirects {
		u, err := weburl.Parse(from)
		if err != nil {
			return n, loop
		}
		q, err := q.robot.config.Store.Page(ctx, u)
		if err != nil || q.State != store.Redirect {
			return n, loop
		}
		loop = loop || from == target
		from = q.From
		n++
	}
	return n, loop
}

// addEntries queues what a sitemap or feed lists, known pages again if they are
// said to have changed since their last visit.
func (q *linkQueue) addEntries(ctx context.Context, p *store.Page, u weburl.URL, res *fetch.Response, now time.Time) {
	r := q.robot
	entries, err := extract.Entries(res.Body, u)
	if err != nil {
		r.config.Log.Info("sitemap", "url", p.URL, "err", err)
	}
	nested := slices.ContainsFunc(entries, func(e extract.Entry) bool { return e.Sitemap }) && q.sitemapLevel(ctx, p) >= maxSitemapLevel
	if nested {
		r.stats.trap(trap.NestedSitemaps, p.URL)
	}
	for _, e := range entries {
		if e.Sitemap && nested {
			continue
		}
		var due time.Time
		if q.countsDatesOf(u, e.URL) && q.changedSinceVisit(ctx, e, now) {
			due = r.Signal(ctx, dates, e.URL)
		}
		if e.Deleted && due.IsZero() {
			continue // we do not have it, or know
		}
		depth := p.Depth + 1
		if e.Sitemap {
			depth = p.Depth
		}
		q.add(p, e.URL, depth, due)
	}
}

// maxSitemapLevel is how many sitemap indexes may lie above a sitemap. The protocol has
// one; without a bound, indexes that list indexes are an endless space of URLs.
const maxSitemapLevel = 2

// sitemapLevel returns how many sitemap indexes lead to a sitemap, by the pages on which
// each was found first.
func (q *linkQueue) sitemapLevel(ctx context.Context, p *store.Page) (level int) {
	for from := p.From; level < maxSitemapLevel; level++ {
		u, err := weburl.Parse(from)
		if err != nil {
			break
		}
		parent, err := q.robot.config.Store.Page(ctx, u)
		if err != nil || extract.Type(parent.Type) == "html" { // robots.txt has no record
			break
		}
		from = parent.From
	}
	return level
}

// countsDatesOf reports whether dates in a sitemap or feed count for a page: it is on the page's
// host, or the robots.txt of that host names it. Anybody else could have a site visited as
// often as he likes.
func (q *linkQueue) countsDatesOf(sitemap, page weburl.URL) bool {
	if page.Host() == q.host.Name {
		return true
	}
	rules := q.robot.requests.KnownRules(page.Origin())
	return rules != nil && slices.ContainsFunc(rules.Sitemaps, func(s string) bool {
		named, err := page.Resolve(s)
		if err != nil {
			return false
		}
		named, _ = q.robot.config.Canon.Apply(named)
		return named == sitemap
	})
}

// changedSinceVisit reports whether an entry says that its page changed since we saw it.
// Dates of long ago and of the future say nothing.
func (q *linkQueue) changedSinceVisit(ctx context.Context, e extract.Entry, now time.Time) bool {
	if e.Modified.IsZero() || e.Modified.Before(now.Add(-24*time.Hour)) || e.Modified.After(now) {
		return false
	}
	u, _ := q.robot.config.Canon.Apply(e.URL)
	p, err := q.robot.config.Store.Page(ctx, u)
	return err == nil && p.History.Last.Before(e.Modified)
}

// linksAsFetched are the links of a page that need no browser, in canonical form; nil if
// it was not rendered.
func (q *linkQueue) linksAsFetched(b *pendingVisit) map[weburl.Key]bool {
	if b.rendered == nil {
		return nil
	}
	out := make(map[weburl.Key]bool, len(b.Page.Links))
	for i := range b.Page.Links {
		u, _ := q.robot.config.Canon.Apply(b.Page.Links[i].URL)
		out[q.parameters.strip(u, b.before.Depth+1).Key()] = true
	}
	return out
}

// countRenderGain keeps the account of URLs that only rendering finds. It reports whether
// this one, in canonical form, is new by a render.
func (q *linkQueue) countRenderGain(ctx context.Context, u weburl.URL, fetched map[weburl.Key]bool) bool {
	r := q.robot
	if r.config.Render == nil {
		return false
	}
	k := u.Key()
	if fetched == nil || fetched[k] {
		r.gains.plain(k)
		q.batch.plainLinks = append(q.batch.plainLinks, k)
		return false
	}
	return r.gains.rendered(k, func() bool {
		_, err := r.config.Store.Page(ctx, u)
		return err == nil
	})
}

// areKnown appends of each key whether its URL need not be queued, by what the store
// has in memory.
func (q *linkQueue) areKnown(keys []weburl.Key, known []bool) []bool {
	known = append(known, make([]bool, len(keys))...)
	if _, promotes := q.robot.config.Ordering.(Spreader); promotes {
		return known
	}
	if s, ok := q.robot.config.Store.(store.Knower); ok {
		s.Known(keys, known)
	}
	return known
}

// inScope reports whether a URL belongs to a source, and counts those that do not. The caller
// holds the mutex of the sources.
func (q *linkQueue) inScope(u weburl.URL, depth int) bool {
	why := q.robot.config.Scopes.Check(u, depth)
	if why != "" {
		q.robot.stats.skip(why)
	}
	return why == ""
}
