// Package visit decides what a visit means for a page: its record, when it is visited again,
// whether the index must hear of it, and which links are followed.
//
// The decisions are functions of values: the page's record before the visit, the answer, what
// was extracted of it, and what had to be looked up for it. They ask nobody and change nothing
// but the Outcome that they return. An agent of package crawl looks things up before, and
// carries the outcome out.
package visit

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/freshet/freshet/crawl/politeness"
	"github.com/freshet/freshet/crawl/trap"
	"github.com/freshet/freshet/extract"
	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/freshness/change"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// Rules are the options of a crawl by which visits are decided.
type Rules struct {
	Canon weburl.Canon
	Token string   // product token for X-Robots-Tag
	Types []string // content types that are kept, as extract.Type names them; empty is all
	// Noise is up to how many bits of its simhash a text may differ and count as unchanged; 0
	// lets the digest alone decide.
	Noise                  int
	MinRevisit, MaxRevisit time.Duration
	// MaxFailedAge is for how long a page that cannot be fetched any more stays in the index.
	MaxFailedAge time.Duration
}

// Input is what is known when a page was visited.
type Input struct {
	URL      weburl.URL
	Before   *store.Page     // the record that the visit found
	Response *fetch.Response // nil without an answer
	Err      error           // why there was no answer
	At       time.Time       // of the answer

	// Page is what was extracted of an answer with content, or what a browser shows.
	Page *extract.Page
	// AwaitsRender says that a browser is to see the page, too; Why says why or why not.
	AwaitsRender bool
	Why          string
	// Rendered says that Page is what a browser shows.
	Rendered bool
	// Improves says that the page was stored as it was fetched, with its next visit; what the
	// browser shows replaces its content only.
	Improves bool
	NextSlot store.Slot // with Improves: the next visit

	// Redirects is how many redirects led to the page one after the other;
	// RedirectsToTarget says that one of them stood at the target of this one.
	Redirects         int
	RedirectsToTarget bool
	// IsSoft404 says that the answer is the host's text for pages that do not exist.
	IsSoft404 bool
	// HostNext is when the host may be asked next, after an answer that says it is overloaded.
	HostNext time.Time

	// Prior returns what the host's pages say of the change rate of one.
	Prior func(*store.Page) change.Prior
	// Signals are those that came before the visit.
	Signals change.Heard
}

// IsDeferred reports whether what is known of the page stays until a browser has seen it
// again: a page that was rendered would else lose at each visit what its scripts show.
func (in *Input) IsDeferred() bool {
	return in.AwaitsRender && in.Before.Rendered && in.Before.State == store.OK
}

// Kind names what became of a visit.
type Kind string

// Kinds of outcomes.
const (
	NoAnswer    Kind = "no answer"
	NotModified Kind = "not modified"
	Content     Kind = "content"  // a page, whether it changed or not
	Deferred    Kind = "deferred" // what is known of the page stays until a browser has seen it
	Kept        Kind = "kept"     // a browser gained nothing: the page stays as it was fetched
	OtherType   Kind = "other type"
	Soft404     Kind = "soft 404"
	Redirected  Kind = "redirected"
	Denied      Kind = "denied" // 401, 403
	Missing     Kind = "missing"
	Overloaded  Kind = "overloaded"
	ServerError Kind = "server error"
	NotArchived Kind = "not archived"
	NotVisited  Kind = "not visited" // the page was not asked for
)

// Failure is a failure to be counted.
type Failure struct {
	Kind    string // a fetch.Kind, status-5xx, status-429, status-503 or an extract.Problem
	Message string
}

// Outcome is what a visit means. The zero value means nothing.
type Outcome struct {
	Kind Kind
	// Page is the record after the visit. With Planned its Slot is not set.
	Page store.Page
	// Changed says that the content is new, or is gone from the index.
	Changed bool
	// Planned says that the planner chooses the next visit; Differs, whether the visit saw a
	// change.
	Planned, Differs bool
	// Observed says that the visit counts as an observation of the page.
	Observed bool
	// Archive says that the body must be archived before the record is stored.
	Archive bool
	// Links are those that the page has; Target is the URL to which it redirects, to be queued,
	// zero for none.
	Links  []extract.Link
	Target weburl.URL

	// What is counted.
	Failures  []Failure
	Traps     []trap.Kind
	Skipped   store.Reason // "" if the page was not left out
	Unchanged bool
}

// Decide returns what a visit means whose request was answered, or was not.
func (r *Rules) Decide(in *Input) Outcome {
	o := Outcome{Page: *in.Before, Observed: true}
	if in.Response == nil {
		r.noAnswer(&o, in)
		return r.complete(o, in.At)
	}
	status := in.Response.Status
	p := &o.Page
	p.Status, p.Reason, p.Error = status, "", ""
	switch {
	case status == http.StatusNotModified && in.Before.State == store.OK:
		r.notModified(&o, in)
	case status >= 200 && status < 300 && in.IsDeferred():
		r.deferred(&o, in)
	case status >= 200 && status < 300:
		p.State, p.Failures = store.OK, 0
		p.Type, p.Bytes = in.Response.Header.Get("Content-Type"), int64(len(in.Response.Body))
		p.ETag, p.LastModified = validator(in.Response.Header.Get("ETag")), validator(in.Response.Header.Get("Last-Modified"))
		p.Reason, p.Error = store.Reason(in.Page.Problem), store.Reason(in.Page.Problem).Text()
		p.Why = in.Why
		r.content(&o, in)
		p.Waits = in.AwaitsRender && p.State == store.OK
	case status >= 300 && status < 400:
		r.redirected(&o, in)
	case politeness.IsOverloaded(status):
		r.overloaded(&o, in)
	case status >= 500:
		r.serverError(&o, in)
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		o.Kind, p.State, p.Failures, o.Changed = Denied, store.Blocked, 0, in.Before.Held()
		observe(p, in, o.Changed)
		p.Slot = store.Slot{Due: in.At.Add(max(r.MinRevisit, 24*time.Hour))}
	default:
		o.Kind, p.State, p.Failures = Missing, store.Gone, 0
		r.gone(&o, in)
	}
	return r.complete(o, in.At)
}

// complete decides what every visit decides alike, however it ended: whether the page is
// still held and may still be shown.
func (r *Rules) complete(o Outcome, now time.Time) Outcome {
	p := &o.Page
	if p.State != store.OK && p.State != store.Failed {
		p.Digest = [16]byte{} // nothing of it is in the index
	}
	r.dropOutdated(p, now)
	hideExpired(p, now)
	return o
}

// Visit returns the entry of a batch for an outcome. arrived is when the answer came, zero
// without a request.
func (o *Outcome) Visit(before *store.Page, arrived time.Time, took time.Duration) store.Visit {
	v := store.Visit{Page: o.Page, Changed: o.Changed, Arrived: arrived, Took: took}
	v.Reindex = o.Page.ShownDiffers(before)
	v.Retarget = o.Page.Represents() != before.Represents()
	v.Alias, _ = o.Page.AliasOf()
	return v
}

// dropOutdated takes a page out of the index that could not be fetched for MaxFailedAge,
// whether its host, its robots.txt or the page itself failed.
func (r *Rules) dropOutdated(p *store.Page, now time.Time) {
	if p.State != store.Failed && !WaitsForRobots(p) {
		p.FailingSince = time.Time{}
		return
	}
	if p.FailingSince.IsZero() || p.FailingSince.After(now) {
		p.FailingSince = now
	}
	if p.Held() && now.Sub(p.FailingSince) >= r.MaxFailedAge {
		p.State, p.Digest, p.Shown = store.Failed, [16]byte{}, 0
	}
}

// hideExpired marks a page whose unavailable_after has passed.
func hideExpired(p *store.Page, now time.Time) {
	if !p.Expires.IsZero() && now.After(p.Expires) {
		p.NoIndex = true
	}
}

// observe adds the visit to the page's history.
func observe(p *store.Page, in *Input, changed bool) {
	p.History.ObserveHeard(in.At, changed, in.Prior(p), in.Signals)
}

// notModified keeps the record of a page that was answered with 304.
func (r *Rules) notModified(o *Outcome, in *Input) {
	p := &o.Page
	o.Kind, o.Unchanged, o.Planned = NotModified, true, true
	p.Status, p.Failures, p.Reason, p.Error = in.Before.Status, 0, in.Before.Reason, in.Before.Error
	r.applyDirectives(p, in)
	observe(p, in, false)
}

// applyDirectives takes over what the headers of a 304 say to robots. A header that a 304
// does not have says nothing: servers leave out what the 200 had. A header that it has may
// make a page less visible, and name another canonical page.
func (r *Rules) applyDirectives(p *store.Page, in *Input) {
	header := in.Response.Header
	if len(header.Values("X-Robots-Tag"))+len(header.Values("Link")) == 0 {
		return
	}
	var page extract.Page
	page.Header(header, in.URL, r.Token)
	p.NoIndex, p.NoCopy = p.NoIndex || page.Robots.NoIndex, p.NoCopy || page.Robots.NoArchive
	if until := page.Robots.Until; !until.IsZero() && (p.Expires.IsZero() || until.Before(p.Expires)) {
		p.Expires = until
	}
	if !page.Canonical.IsZero() {
		p.Canonical = r.canonicalOf(&page, in.URL)
	}
	hideExpired(p, in.At)
}

// redirected records the target of a redirect, which is queued unless it leads in a circle or
// the chain is too long.
func (r *Rules) redirected(o *Outcome, in *Input) {
	p := &o.Page
	o.Kind, o.Planned, o.Changed = Redirected, true, in.Before.Held()
	p.State, p.Failures, p.Location = store.Redirect, 0, ""
	if to, ok := in.Response.Location(in.URL); ok {
		p.Location = to.String()
		o.Links = []extract.Link{{URL: to, Kind: extract.Refresh}}
		canonical, _ := r.Canon.Apply(to)
		switch {
		case canonical == in.URL || in.RedirectsToTarget:
			o.Traps = append(o.Traps, trap.RedirectLoop)
			p.Reason, p.Error = store.ReasonRedirectLoop, "redirect loop"
		case in.Redirects >= MaxRedirects:
			o.Traps = append(o.Traps, trap.RedirectChain)
		default:
			o.Target = to
		}
	}
	o.Differs = p.Location != in.Before.Location
	observe(p, in, o.Differs)
}

// MaxRedirects is how long a chain of redirects may be; browsers give up at 20.
const MaxRedirects = 10

// goneAtFirst is the time after which a page that has gone is looked for again.
const goneAtFirst = 24 * time.Hour

// gone says when a page that is not there is looked for again: after a day, then after as
// long again as it has been gone.
func (r *Rules) gone(o *Outcome, in *Input) {
	p := &o.Page
	o.Changed = in.Before.Held()
	observe(p, in, in.Before.State != store.Gone)
	wait := max(in.At.Sub(p.History.Changed), goneAtFirst, r.MinRevisit)
	p.Slot = store.Slot{Due: in.At.Add(min(wait, max(goneAtFirst, r.MaxRevisit)))}
}

// noAnswer records a request without an answer.
func (r *Rules) noAnswer(o *Outcome, in *Input) {
	p := &o.Page
	kind, cause := politeness.KindOf(in.Err)
	o.Kind, o.Failures = NoAnswer, []Failure{{string(kind), cause.Error()}}
	if t := trap.OfError(kind); t != "" {
		o.Traps = append(o.Traps, t)
	}
	p.Reason, p.Error, p.State, p.Status = store.ReasonNoAnswer, in.Err.Error(), store.Failed, 0
	p.Failures++
	if kind == fetch.Private { // nobody was asked; names and permission may change
		p.Slot = store.Slot{Due: in.At.Add(24 * time.Hour)}
		return
	}
	retry(p, in.At)
}

// serverError records an answer of 5xx.
func (r *Rules) serverError(o *Outcome, in *Input) {
	o.Kind = ServerError
	failed(o, store.ReasonServerError, "status-5xx")
	retry(&o.Page, in.At)
}

// overloaded records an answer of 429 or 503.
func (r *Rules) overloaded(o *Outcome, in *Input) {
	o.Kind = Overloaded
	failed(o, store.ReasonOverloaded, "status-"+strconv.Itoa(o.Page.Status))
	retry(&o.Page, in.At)
	if o.Page.Slot.Due.Before(in.HostNext) {
		o.Page.Slot.Due = in.HostNext
	}
}

func failed(o *Outcome, reason store.Reason, kind string) {
	p := &o.Page
	p.State = store.Failed
	p.Failures++
	p.Reason, p.Error = reason, "status "+strconv.Itoa(p.Status)
	o.Failures = []Failure{{kind, p.Error}}
}

// retry queues a failed page again, soon at first, then once a day.
func retry(p *store.Page, now time.Time) {
	wait := 24 * time.Hour
	if p.Failures < politeness.MaxRetries {
		wait = politeness.RetryDelay(p.Failures)
	}
	p.Slot = store.Slot{Due: now.Add(wait)}
}

// validator returns what is kept of an ETag or a date: nothing of one that is no UTF-8. It
// could not be sent back byte for byte, since records are written in UTF-8, and would bring
// the whole page at each visit.
func validator(s string) string {
	if !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
		return ""
	}
	return s
}

// keepsType reports whether pages of a content type are kept.
func (r *Rules) keepsType(kind string) bool {
	return len(r.Types) == 0 || slices.Contains(r.Types, kind)
}
