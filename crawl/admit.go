package crawl

import (
	"context"
	"time"

	"github.com/freshet/freshet/crawl/trap"
	"github.com/freshet/freshet/crawl/visit"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// admit prepares the visit of one page when the time of its host has come. v is nil if the
// page is not to be fetched; more is false when the agent should let go of the host.
func (a *agent) admit(ctx context.Context, p *store.Page, queue int) (v *pageVisit, more bool, err error) {
	r := a.robot
	if ctx.Err() != nil || !r.mayContinue(a.id, queue, a.host.Delay) {
		return nil, false, nil
	}
	u, err := weburl.Parse(p.URL)
	if err != nil || u.Key() != p.Key {
		a.decline(p, r.rules.Exclude(p, store.ReasonMalformedURL, "malformed URL", time.Now()))
		return nil, true, nil
	}
	if declined, err := a.declineRemoved(ctx, p, u); declined || err != nil {
		return nil, err == nil, err
	}
	a.access.Private = r.sources.permitsPage(u)
	if !a.access.WaitForSlot(ctx) {
		return nil, false, nil
	}
	if a.declineCopy(p, u) {
		return nil, true, nil
	}
	ready, sitemaps := a.access.LoadRules(ctx, u)
	for _, to := range sitemaps {
		a.links.add(&store.Page{URL: u.Origin() + "/robots.txt"}, to, 0, time.Time{})
	}
	if !ready {
		return nil, false, nil
	}
	if a.declineByRobots(p, u) {
		return nil, true, nil
	}
	if !a.access.WaitForSlot(ctx) { // robots.txt was a request
		return nil, false, nil
	}
	if r.traps.IsSoft404Suspect(a.host.Name) {
		a.soft404.ask(ctx, u, time.Now())
		if !a.access.WaitForSlot(ctx) {
			return nil, false, nil
		}
	}
	if r.restForQuota(&a.host, a.limits.BytesDay, time.Now()) || !r.reserve() {
		return nil, false, nil
	}
	if !r.budget.Wait(ctx) {
		r.unreserve()
		return nil, false, nil
	}
	return &pageVisit{page: p, url: u, private: a.access.Private}, true, nil
}

// decline records a page that is not fetched.
func (a *agent) decline(p *store.Page, out visit.Outcome) {
	a.robot.stats.outcome(&out)
	a.batch.add(p, &out, nil, time.Time{}, 0)
}

// declineRemoved declines a page whose source was removed. Where processes share a store, the
// sources are read again before a page is declined, or is visited that is of none.
func (a *agent) declineRemoved(ctx context.Context, p *store.Page, u weburl.URL) (declined bool, err error) {
	r := a.robot
	removed, keep := r.sources.isRemoved(u)
	if r.config.Sources != nil && (removed || p.State == store.Queued && r.InScope(u, p.Depth) != "") {
		if err := r.sources.refresh(ctx, a.taken); err != nil {
			return false, err
		}
		removed, keep = r.sources.isRemoved(u)
	}
	if removed {
		a.decline(p, r.rules.SourceRemoved(p, keep, time.Now()))
	}
	return removed, nil
}

// declineCopy declines a page of an endless space of URLs, of a mirror, or that differs from
// another in void parameters only. That other page is queued.
func (a *agent) declineCopy(p *store.Page, u weburl.URL) (declined bool) {
	r := a.robot
	if p.State == store.Queued {
		kind := r.traps.CountShape(u, p.Depth, &r.config.Traps)
		if a.limits.Pages > 0 && a.host.Pages >= a.limits.Pages {
			kind = trap.HostBudget
		}
		if kind != "" {
			r.stats.trap(kind, p.URL)
			a.decline(p, r.rules.Exclude(p, store.Reason(kind), string(kind), time.Now()))
			return true
		}
	}
	if a.mirror != "" {
		a.decline(p, r.rules.SetAside(p, store.ReasonMirror, "mirror of "+a.mirror, time.Now()))
		return true
	}
	if p.State != store.Queued && p.Reason != store.ReasonDuplicate {
		return false
	}
	base := a.parameters.strip(u, p.Depth)
	if base == u || r.InScope(base, p.Depth) != "" {
		return false
	}
	a.links.add(&store.Page{URL: p.From}, base, p.Depth, time.Time{})
	a.decline(p, r.rules.SetAside(p, store.ReasonDuplicate, "duplicate of "+base.String()+": the parameters that differ change nothing on this host", time.Now()))
	return true
}

// declineByRobots declines a page that robots.txt forbids, or whose robots.txt is unavailable.
func (a *agent) declineByRobots(p *store.Page, u weburl.URL) (declined bool) {
	if unavailable, askedAgain := a.access.RulesUnavailable(); unavailable {
		a.decline(p, a.robot.rules.RobotsUnavailable(p, askedAgain, time.Now()))
		return true
	}
	if !a.access.Allows(u) {
		a.decline(p, a.robot.rules.RobotsForbid(p, time.Now()))
		return true
	}
	return false
}
