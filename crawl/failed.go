package crawl

import (
	"errors"
	"strconv"
	"time"

	"github.com/freshet/freshet/crawl/trap"
	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/store"
)

// maxRetries is how often in a row a page that fails is tried soon again.
const maxRetries = 3

// retryDelay is the wait before try n+1: 2, 4, 8 seconds ...
func retryDelay(n int) time.Duration { return time.Second << min(max(n, 1), 10) }

// noAnswer handles a request without answer.
func (a *agent) noAnswer(p *store.Page, err error, now time.Time) {
	kind := a.robot.unanswered(p.URL, err)
	p.Reason, p.Error, p.State, p.Status = store.ReasonNoAnswer, err.Error(), store.Failed, 0
	p.Failures++
	switch kind {
	case fetch.Private: // nobody was asked; names and leave may change
		p.Slot = store.Slot{Due: now.Add(24 * time.Hour)}
		return
	case fetch.Bomb, fetch.Slow, fetch.Encoding, fetch.Header, fetch.Protocol: // the page's fault, not the host's
		a.rest(now.Add(a.host.Delay))
	default:
		hangs := kind == fetch.Timeout || kind == fetch.Reset
		if hangs && p.Failures > 1 { // this page again: nothing new about its host
			a.rest(now.Add(a.host.Delay))
			break
		}
		a.host.Failures++
		a.host.Reason, a.host.Error = store.ReasonNoAnswer, string(kind)
		rest := retryDelay(a.host.Failures)
		if hangs && a.host.Failures == 1 {
			rest = a.host.Delay // one page that hangs says little of its host
		}
		a.rest(now.Add(min(rest, a.robot.config.MaxDelay)))
	}
	a.retry(p, now)
}

// retry queues a failed page again, soon at first, then once a day.
func (a *agent) retry(p *store.Page, now time.Time) {
	wait := 24 * time.Hour
	if p.Failures < maxRetries {
		wait = retryDelay(p.Failures)
	}
	p.Slot = store.Slot{Due: now.Add(wait)}
}

func (a *agent) serverError(p *store.Page, now time.Time) {
	p.State = store.Failed
	p.Failures++
	p.Reason, p.Error = store.ReasonServerError, "status "+strconv.Itoa(p.Status)
	a.robot.stats.fail("status-5xx", p.URL, p.Error)
	a.retry(p, now)
}

// goneAgain says when a page that is not there is looked for again: after a day,
// then after as long again as it has been gone.
func (a *agent) goneAgain(before, p *store.Page, now time.Time) {
	a.observe(p, before.State != store.Gone, now)
	wait := max(now.Sub(p.History.Changed), goneAtFirst, a.robot.config.MinRevisit)
	p.Slot = store.Slot{Due: now.Add(min(wait, max(goneAtFirst, a.robot.config.MaxRevisit)))}
}

// goneAtFirst is after what time a page that has gone is looked for again.
const goneAtFirst = 24 * time.Hour

// overloaded puts a page off that was answered with 429 or 503.
func (a *agent) overloaded(p *store.Page, res *fetch.Response, now time.Time) {
	p.State = store.Failed
	p.Failures++
	p.Reason, p.Error = store.ReasonOverloaded, "status "+strconv.Itoa(p.Status)
	a.robot.stats.fail("status-"+strconv.Itoa(p.Status), p.URL, p.Error)
	a.overload(res, now)
	a.retry(p, now)
	if p.Slot.Due.Before(a.host.Next) {
		p.Slot.Due = a.host.Next
	}
}

// unanswered counts a request without an answer, and returns the kind of the error.
func (r *Robot) unanswered(address string, err error) fetch.Kind {
	kind, why := fetch.Protocol, err
	var fe *fetch.Error
	if errors.As(err, &fe) {
		kind, why = fe.Kind, fe.Err
	}
	r.stats.fail(string(kind), address, why.Error())
	if t := trap.OfError(kind); t != "" {
		r.stats.trap(t, address)
	}
	return kind
}
