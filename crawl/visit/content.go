package visit

import (
	"context"
	"hash/fnv"
	"time"

	"github.com/freshet/freshet/crawl/politeness"
	"github.com/freshet/freshet/crawl/trap"
	"github.com/freshet/freshet/extract"
	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// Extract reads an answer with content. before is the page's record before: a document that
// could not be read then is not tried again unless it changed.
func Extract(ctx context.Context, u weburl.URL, res *fetch.Response, before *store.Page, o extract.Options) *extract.Page {
	if why := extract.Problem(before.Reason); why.Final() {
		o.Refused, o.RefusedFor = before.Digest, why
	}
	page := extract.Document(ctx, res.Body, res.Header.Get("Content-Type"), u, o)
	page.Header(res.Header, u, o.Token)
	return page
}

// DecideRendered returns what a page means that a browser has seen, or that it need not see
// any more. Before is its record now, Page what is shown of it.
func (r *Rules) DecideRendered(in *Input) Outcome {
	o := Outcome{Page: *in.Before, Observed: !in.Improves}
	p := &o.Page
	p.Waits, p.Why = false, in.Why
	if in.Improves && !in.Rendered {
		o.Kind, p.Slot = Kept, in.NextSlot
		return o
	}
	r.content(&o, in)
	return r.complete(o, in.At)
}

// deferred leaves the record of a page as it is. The links of the answer are followed at once.
func (r *Rules) deferred(o *Outcome, in *Input) {
	p := &o.Page
	o.Kind, o.Links, o.Observed = Deferred, in.Page.Links, false
	p.Waits, p.Why = true, in.Why
	p.Slot = store.Slot{Due: in.At.Add(politeness.RobotsAge)} // if nothing comes back
}

// content decides on an answer with content.
func (r *Rules) content(o *Outcome, in *Input) {
	p, page, before := &o.Page, in.Page, in.Before
	p.Rendered = in.Rendered
	if page.Problem != "" {
		o.Failures = append(o.Failures, Failure{string(page.Problem), store.Reason(page.Problem).Text()})
	}
	o.Traps = append(o.Traps, trap.OfAnswer(page, in.Response)...)
	if in.IsSoft404 {
		o.Kind, o.Traps = Soft404, append(o.Traps, trap.SoftNotFound)
		p.State, p.Title, p.Simhash = store.Gone, "", page.Simhash
		p.Reason, p.Error = store.Reason(trap.SoftNotFound), "status 200 with the host's text for pages that do not exist"
		r.gone(o, in)
		return
	}
	if kind := extract.Type(in.Response.Header.Get("Content-Type")); !page.Sitemap && !r.keepsType(kind) {
		o.Kind, o.Skipped, o.Changed = OtherType, store.ReasonContentType, before.Held()
		p.State, p.Slot, p.Title = store.Excluded, store.Slot{}, ""
		p.Reason, p.Error = store.ReasonContentType, "content type "+kind
		return
	}
	o.Kind = Content
	if !page.Sitemap {
		o.Links = page.Links
	}
	o.Changed = !before.Held() || r.differs(before, page)
	o.Unchanged, o.Differs = !o.Changed, o.Changed
	r.describe(p, in, o.Changed)
	// The index reads the page from the body that was kept last, and cannot read a body that
	// another process kept.
	o.Archive = o.Changed || p.ShownDiffers(before) && !p.NoIndex
	if in.Improves {
		p.Slot = in.NextSlot
		return
	}
	o.Planned = true
}

// describe writes what a page shows, and what it says to robots, into its record.
func (r *Rules) describe(p *store.Page, in *Input, changed bool) {
	page, before := in.Page, in.Before
	if !in.Improves {
		observe(p, in, changed)
	}
	p.Title, p.Lang, p.Digest = page.Title, page.Lang, page.Digest
	if changed || before.Simhash == 0 || r.Noise <= 0 { // else many small differences would never be a change
		p.Simhash = page.Simhash
	}
	p.Shown = shownFingerprint(page, p.Type)
	p.NoIndex, p.NoCopy, p.Expires = page.Robots.NoIndex, page.Robots.NoArchive, page.Robots.Until
	p.Canonical = r.canonicalOf(page, in.URL)
	hideExpired(p, in.At)
}

// differs reports whether a page is not what it was: its digest is another, and its text
// differs by more than the ornaments that Noise allows.
func (r *Rules) differs(before *store.Page, page *extract.Page) bool {
	if page.Digest == before.Digest {
		return false
	}
	return r.Noise <= 0 || page.Title != before.Title || extract.Distance(page.Simhash, before.Simhash) > r.Noise
}

// canonicalOf returns the URL that a page names as canonical, in canonical form, or "" for
// the page itself and for none.
func (r *Rules) canonicalOf(page *extract.Page, u weburl.URL) string {
	if page.Canonical.IsZero() {
		return ""
	}
	if c, _ := r.Canon.Apply(page.Canonical); c != u {
		return c.String()
	}
	return ""
}

// shownFingerprint returns a fingerprint of what the index shows of a page and its digest
// does not have.
func shownFingerprint(page *extract.Page, contentType string) uint64 {
	h := fnv.New64a()
	for _, s := range []string{page.Description, extract.Type(contentType), page.Lang} {
		_, _ = h.Write(append([]byte(s), 0))
	}
	return max(h.Sum64(), 1)
}

// ArchiveFailed returns what an outcome becomes whose body could not be archived. Without its
// body the page cannot be indexed: it counts as not seen.
func (r *Rules) ArchiveFailed(o *Outcome, before *store.Page, err error, now time.Time) Outcome {
	failed := *o
	failed.Kind, failed.Changed, failed.Planned, failed.Archive, failed.Links = NotArchived, false, false, false, nil
	p := &failed.Page
	p.State, p.Slot, p.Waits = store.Failed, store.Slot{Due: now.Add(time.Minute)}, false
	p.Reason, p.Error = store.ReasonArchive, "archive: "+err.Error()
	p.Digest, p.Simhash, p.Shown, p.NoIndex, p.Expires, p.Canonical = before.Digest, before.Simhash, before.Shown, before.NoIndex, before.Expires, before.Canonical
	p.FailingSince, p.Body = before.FailingSince, before.Body
	return r.complete(failed, now)
}
