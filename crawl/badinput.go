package crawl

import (
	"errors"
	"slices"
	"time"

	"github.com/freshet/freshet/store"
)

// leaveOut takes what an engine refused out of the batch, logs and counts it, and reports
// whether the rest can be committed: an error of one page or host record must not end the
// robot. A refused page is excluded and tried again after MaxRevisit; where even that record
// is refused, its visit is dropped.
func (b *visitBatch) leaveOut(err error) bool {
	var page *store.PageError
	var host *store.HostError
	switch {
	case errors.As(err, &page):
		i := slices.IndexFunc(b.Visits, func(v store.Visit) bool { return v.Page.Key == page.Key })
		if i < 0 {
			return false
		}
		b.leaveOutVisit(i, page)
	case errors.As(err, &host):
		h := &b.Host
		if len(h.Robots) == 0 && len(h.Groups) == 0 && len(h.Trust) == 0 {
			return false // nothing that could be wrong is left
		}
		*b.host = store.Host{Name: h.Name, Next: h.Next, Delay: h.Delay, Fetched: h.Fetched, Pages: h.Pages, Kept: h.Kept, KeptSince: h.KeptSince, Reason: store.ReasonBadRecord, Error: host.Err.Error()}
		b.Host = *b.host
		b.access.ForgetRules()
		b.robot.config.Log.Error("the host's record cannot be stored and begins again", "host", h.Name, "reason", store.ReasonBadRecord, "err", host.Err)
	default:
		return false
	}
	b.robot.stats.skip(store.ReasonBadRecord)
	return true
}

// leaveOutVisit excludes the page of a visit, or drops the visit if that was done before.
func (b *visitBatch) leaveOutVisit(i int, refused *store.PageError) {
	v := &b.Visits[i]
	b.robot.config.Log.Error("the page cannot be stored and is excluded", "url", refused.URL, "reason", store.ReasonBadRecord, "err", refused.Err)
	if v.Page.Reason == store.ReasonBadRecord || errors.Is(refused, store.ErrTwice) || errors.Is(refused, store.ErrNotTaken) {
		b.Visits = slices.Delete(b.Visits, i, i+1)
		return
	}
	p := store.Page{
		Key: v.Page.Key, URL: v.Page.URL, Depth: v.Page.Depth, From: v.Page.From, State: store.Excluded, Reason: store.ReasonBadRecord, Error: refused.Err.Error(),
		Slot: store.Slot{Due: time.Now().Add(b.robot.config.MaxRevisit)},
	}
	b.countPage(v.Page.Held(), p.Held())
	*v = store.Visit{Page: p, Changed: true, Retarget: true} // the index may have it
}
