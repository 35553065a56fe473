package crawl

import (
	"strconv"
	"time"

	"github.com/freshet/freshet/crawl/politeness"
	"github.com/freshet/freshet/crawl/trap"
	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/store"
)

// noAnswer handles a request without answer.
func (a *agent) noAnswer(p *store.Page, err error, now time.Time) {
	kind := a.robot.stats.unanswered(p.URL, err)
	p.Reason, p.Error, p.State, p.Status = store.ReasonNoAnswer, err.Error(), store.Failed, 0
	p.Failures++
	a.access.NoAnswer(kind, p.Failures, now)
	if kind == fetch.Private { // nobody was asked; names and permission may change
		p.Slot = store.Slot{Due: now.Add(24 * time.Hour)}
		return
	}
	a.retry(p, now)
}

// retry queues a failed page again, soon at first, then once a day.
func (a *agent) retry(p *store.Page, now time.Time) {
	wait := 24 * time.Hour
	if p.Failures < politeness.MaxRetries {
		wait = politeness.RetryDelay(p.Failures)
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
	a.access.Overloaded(res, now)
	a.retry(p, now)
	if p.Slot.Due.Before(a.host.Next) {
		p.Slot.Due = a.host.Next
	}
}

// unanswered counts a request without an answer, and returns the kind of the error.
func (c *counters) unanswered(address string, err error) fetch.Kind {
	kind, cause := politeness.KindOf(err)
	c.fail(string(kind), address, cause.Error())
	if t := trap.OfError(kind); t != "" {
		c.trap(t, address)
	}
	return kind
}
