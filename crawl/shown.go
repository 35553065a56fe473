package crawl

import (
	"context"
	"net/http"
	"time"

	"github.com/freshet/freshet/crawl/politeness"
	"github.com/freshet/freshet/extract"
	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// record adds a visit to the batch. It decides what every visit decides alike, however it
// ended: whether the page is still shown, whether the index must hear of it, and whether
// pages that name it as canonical must be looked at again.
func (a *agent) record(before, p *store.Page, v store.Visit, now time.Time) {
	a.dropOutdated(p, now)
	a.hideExpired(p, now)
	a.count(before.Held(), p)
	v.Page = *p
	v.Reindex = p.ShownDiffers(before)
	v.Retarget = p.Represents() != before.Represents()
	v.Alias, _ = p.AliasOf()
	a.batch.Visits = append(a.batch.Visits, v)
}

// dropOutdated takes a page out of the index that could not be fetched for MaxFailedAge,
// whether its host, its robots.txt or the page itself failed.
func (a *agent) dropOutdated(p *store.Page, now time.Time) {
	if p.State != store.Failed && !WaitsForRobots(p) {
		p.FailingSince = time.Time{}
		return
	}
	if p.FailingSince.IsZero() || p.FailingSince.After(now) {
		p.FailingSince = now
	}
	if p.Held() && now.Sub(p.FailingSince) >= a.robot.config.MaxFailedAge {
		p.State, p.Digest, p.Shown = store.Failed, [16]byte{}, 0
	}
}

// hideExpired marks a page whose unavailable_after has passed.
func (a *agent) hideExpired(p *store.Page, now time.Time) {
	if !p.Expires.IsZero() && now.After(p.Expires) {
		p.NoIndex = true
	}
}

// directivesOf takes over what the headers of a 304 say to robots. A header that a 304 does
// not have says nothing: servers leave out what the 200 had. What it does have may make a
// page less visible, and name another canonical page.
func (a *agent) directivesOf(p *store.Page, u weburl.URL, res *fetch.Response, now time.Time) {
	if len(res.Header.Values("X-Robots-Tag"))+len(res.Header.Values("Link")) == 0 {
		return
	}
	var page extract.Page
	page.Header(res.Header, u, a.robot.config.Token)
	p.NoIndex, p.NoCopy = p.NoIndex || page.Robots.NoIndex, p.NoCopy || page.Robots.NoArchive
	if until := page.Robots.Until; !until.IsZero() && (p.Expires.IsZero() || until.Before(p.Expires)) {
		p.Expires = until
	}
	if !page.Canonical.IsZero() {
		p.Canonical = a.canonicalOf(&page, u)
	}
	a.hideExpired(p, now)
}

// canonicalOf returns the URL that a page names as canonical, in canonical form, or "" for
// the page itself and for none.
func (a *agent) canonicalOf(page *extract.Page, u weburl.URL) string {
	if page.Canonical.IsZero() {
		return ""
	}
	if c, _ := a.robot.config.Canon.Apply(page.Canonical); c != u {
		return c.String()
	}
	return ""
}

// followToItself follows, once, a redirect whose target is the page itself but for a session
// number or a tracking parameter: that target is never queued, since its canonical form is
// the page. Where the target redirects to the page again, or the host would have to rest for
// long before it, the redirect is returned, which is a loop.
func (a *agent) followToItself(ctx context.Context, u weburl.URL, res *fetch.Response, now time.Time) (*fetch.Response, time.Time, error) {
	to, ok := res.Location(u)
	if !ok || to == u || !a.access.Allows(to) || time.Until(a.host.Next) > politeness.LongPause {
		return res, now, nil
	}
	if c, _ := a.robot.config.Canon.Apply(to); c != u {
		return res, now, nil
	}
	followed, err := a.access.GetAuxiliary(ctx, fetch.Request{URL: to})
	now = time.Now()
	if err != nil {
		return nil, now, err
	}
	a.robot.stats.answer(followed, now)
	if followed.Status == http.StatusNotModified { // it was not asked for on a condition
		return res, now, nil
	}
	return followed, now, nil
}
