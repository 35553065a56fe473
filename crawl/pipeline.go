package crawl

import (
	"context"
	"errors"
	"time"

	"github.com/freshet/freshet/crawl/politeness"
	"github.com/freshet/freshet/extract"
	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// pageVisit is the visit of a page that may be fetched now. With several connections
// its request is under way while the agent works on the answers of other pages.
type pageVisit struct {
	page    *store.Page
	url     weburl.URL
	private bool // the page may be at a private address

	started bool // the request was sent ahead: what follows is its answer
	request fetch.Request
	answer  *fetch.Response
	at      time.Time // of the answer
	err     error
}

// visitPages visits pages of the agent's host, as many at once as it has connections:
// their requests are under way at once, and what comes of them is worked by the agent
// alone, in the order of the answers. It returns when no request is under way. more is
// false when the agent should let go of the host.
func (a *agent) visitPages(ctx context.Context, pages []store.Page, deadline time.Time) (more bool, err error) {
	answers := make(chan *pageVisit, a.access.Pace().Connections)
	underWay := 0
	more = true
	for i := 0; more && i < len(pages); i++ {
		if i > 0 && !time.Now().Before(deadline) {
			more = false
			break
		}
		v, goOn, failed := a.admit(ctx, &pages[i], len(pages)-i)
		if more, err = goOn && failed == nil, failed; v == nil {
			continue
		}
		if !a.fetchAhead(ctx, v, answers) {
			more, err = a.finishVisit(ctx, v)
			continue
		}
		if underWay++; underWay == a.access.Pace().Connections {
			underWay--
			more, err = a.finishVisit(ctx, <-answers)
		}
	}
	for ; underWay > 0; underWay-- {
		goOn, failed := a.finishVisit(ctx, <-answers)
		more, err = more && goOn, errors.Join(err, failed)
	}
	return more, err
}

// finishVisit visits a page whose request was admitted, and commits when it is time.
func (a *agent) finishVisit(ctx context.Context, v *pageVisit) (more bool, err error) {
	a.access.Private = v.private
	a.visit(ctx, v)
	if a.access.UpdateNext() > politeness.Patience { // perhaps by another answer; the end of the work commits
		return false, nil
	}
	if a.ripe() {
		return true, a.commit(context.WithoutCancel(ctx))
	}
	return true, nil
}

// fetchAhead sends the request of a page and reports whether it did: only to a host
// with several connections that has no delay. The visit is sent to answers.
func (a *agent) fetchAhead(ctx context.Context, v *pageVisit, answers chan<- *pageVisit) bool {
	if !a.access.MayGetAhead() {
		return false
	}
	v.request = a.requestOf(v)
	if a.heads(v.page, v.request) { // two requests, the second by the answer to the first
		return false
	}
	v.started, a.answer = true, nil // its room is the request's now
	a.robot.signals.BeginVisit(v.url.Key())
	get := a.access.GetAhead()
	go func() {
		v.answer, v.err = get(ctx, v.request)
		v.at = time.Now()
		answers <- v // has room
	}()
	return true
}

// requestOf returns the request of a page.
func (a *agent) requestOf(v *pageVisit) fetch.Request {
	p := v.page
	req := fetch.Request{URL: v.url, Room: a.answer, Private: v.private}
	// An error page's validators say nothing of the page, nor does a shell's of what scripts
	// put into it. Whether a page may be shown again only a whole answer tells: servers leave
	// headers out of a 304. A document that may be read now needs its body.
	if p.State == store.OK && !p.Rendered && !p.Waits && !p.NoIndex && !extract.Problem(p.Reason).ReadsAgain(p.Digest, a.robot.config.PDF) {
		req.ETag, req.LastModified = p.ETag, p.LastModified
	}
	return req
}

// answerTo returns the request of a page and its answer, that of the request that was
// sent ahead or of one that is sent now.
func (a *agent) answerTo(ctx context.Context, v *pageVisit) (req fetch.Request, res *fetch.Response, at time.Time, err error) {
	if v.started {
		return v.request, v.answer, v.at, v.err
	}
	a.robot.signals.BeginVisit(v.url.Key())
	req = a.requestOf(v)
	res, err = a.request(ctx, v.page, v.url, req)
	return req, res, time.Now(), err
}
