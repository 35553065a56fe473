package crawl

import (
	"context"
	"errors"
	"time"

	"github.com/freshet/freshet/crawl/politeness"
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
		if !a.requests.sendAhead(ctx, v, answers) {
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
	if a.batch.isDue() {
		return true, a.batch.commit(context.WithoutCancel(ctx))
	}
	return true, nil
}
