package visit

import (
	"errors"
	"net/http"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/freshet/freshet/crawl/politeness"
	"github.com/freshet/freshet/crawl/trap"
	"github.com/freshet/freshet/extract"
	"github.com/freshet/freshet/extract/pdftext"
	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/freshness/change"
	"github.com/freshet/freshet/robots"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

const day = 24 * time.Hour

var (
	now   = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	rules = Rules{Canon: weburl.DefaultCanon, Token: "freshet", MinRevisit: 5 * time.Minute, MaxRevisit: 30 * day, MaxFailedAge: 10 * day}
)

func mustParse(t *testing.T, s string) weburl.URL {
	t.Helper()
	u, err := weburl.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// known is the record of a page that was fetched two days ago and seen changed a day before.
func known() *store.Page {
	p := &store.Page{
		URL: "http://h.example/a", State: store.OK, Depth: 2, Status: 200, Type: "text/html", ETag: `"1"`, Title: "old", Lang: "en", Bytes: 9,
		Digest: [16]byte{1}, Simhash: 0xff, Shown: 1, Slot: store.Slot{Due: now},
	}
	p.Shown = shownFingerprint(&extract.Page{Lang: "en"}, p.Type)
	p.History = change.History{Last: now.Add(-2 * day), Changed: now.Add(-3 * day)}
	return p
}

// queued is the record of a page that was never visited.
func queued() *store.Page {
	return &store.Page{URL: "http://h.example/a", State: store.Queued, Depth: 2, Slot: store.Slot{Order: 3}}
}

// with returns a page that fn changed.
func with(p *store.Page, fn func(*store.Page)) *store.Page {
	fn(p)
	return p
}

// answer returns an answer with header fields, each a name and a value.
func answer(status int, fields ...string) *fetch.Response {
	h := http.Header{"Content-Type": {"text/html"}}
	for i := 0; i+1 < len(fields); i += 2 {
		h.Set(fields[i], fields[i+1])
	}
	return &fetch.Response{Status: status, Header: h, Body: []byte("<p>body")}
}

// oldText and newText are extracted pages, with the digest of known and with another.
func oldText() *extract.Page {
	return &extract.Page{Title: "old", Lang: "en", Digest: [16]byte{1}, Simhash: 0xff, Length: 500}
}

func newText() *extract.Page {
	return &extract.Page{Title: "new", Lang: "en", Digest: [16]byte{2}, Simhash: 0xff00, Length: 500, Links: []extract.Link{{}}}
}

// Every way in which a visit may end, and what it means.
func TestDecide(t *testing.T) {
	t.Parallel()
	other := mustParse(t, "http://h.example/b")
	type want struct {
		kind                       Kind
		state                      store.State
		reason                     store.Reason
		failures                   int
		due                        time.Duration // from now; 0 with planned
		changed, planned, differs  bool
		observed, archive, noIndex bool
		counted                    []Failure
		traps                      []trap.Kind
		skipped                    store.Reason
	}
	for _, tt := range []struct {
		name   string
		before *store.Page
		in     Input
		rules  func(*Rules)
		want   want
		check  func(t *testing.T, o *Outcome)
	}{
		{
			name: "new page", before: queued(), in: Input{Response: answer(200, "ETag", `"2"`, "Last-Modified", "x\xe4"), Page: newText(), Why: "plain"},
			want: want{kind: Content, state: store.OK, changed: true, planned: true, differs: true, observed: true, archive: true},
			check: func(t *testing.T, o *Outcome) {
				t.Helper()
				p := &o.Page
				if p.Title != "new" || p.Digest != [16]byte{2} || p.Simhash != 0xff00 || p.Bytes != 7 || p.Type != "text/html" || p.ETag != `"2"` || p.LastModified != "" || p.Why != "plain" || p.Shown == 0 || len(o.Links) != 1 || o.Unchanged {
					t.Errorf("got %+v, links %v, unchanged %v", p, o.Links, o.Unchanged)
				}
			},
		},
		{
			name: "changed page", before: known(), in: Input{Response: answer(200), Page: newText()},
			want: want{kind: Content, state: store.OK, changed: true, planned: true, differs: true, observed: true, archive: true},
		},
		{
			name: "unchanged page", before: known(), in: Input{Response: answer(200), Page: oldText()},
			want: want{kind: Content, state: store.OK, planned: true, observed: true},
			check: func(t *testing.T, o *Outcome) {
				t.Helper()
				if !o.Unchanged || o.Page.History.Last != now || o.Page.Digest != [16]byte{1} {
					t.Errorf("unchanged %v, last visit %v, digest %x", o.Unchanged, o.Page.History.Last, o.Page.Digest)
				}
			},
		},
		{
			name: "same text, other description", before: known(),
			in:   Input{Response: answer(200), Page: &extract.Page{Title: "old", Lang: "en", Description: "d", Digest: [16]byte{1}, Simhash: 0xff}},
			want: want{kind: Content, state: store.OK, planned: true, observed: true, archive: true},
		},
		{
			name: "ornaments within the noise", before: known(), rules: func(r *Rules) { r.Noise = 3 },
			in:   Input{Response: answer(200), Page: &extract.Page{Title: "old", Lang: "en", Digest: [16]byte{2}, Simhash: 0xfe}},
			want: want{kind: Content, state: store.OK, planned: true, observed: true},
			check: func(t *testing.T, o *Outcome) {
				t.Helper()
				if o.Page.Simhash != 0xff {
					t.Errorf("got simhash %x, want the one of the last change", o.Page.Simhash)
				}
			},
		},
		{
			name: "page that failed before", before: with(known(), func(p *store.Page) { p.State, p.Failures, p.FailingSince = store.Failed, 2, now.Add(-day) }),
			in:   Input{Response: answer(200), Page: oldText()},
			want: want{kind: Content, state: store.OK, planned: true, observed: true},
			check: func(t *testing.T, o *Outcome) {
				t.Helper()
				if !o.Page.FailingSince.IsZero() {
					t.Errorf("still failing since %v", o.Page.FailingSince)
				}
			},
		},
		{
			name: "noindex", before: known(), in: Input{Response: answer(200), Page: func() *extract.Page {
				p := oldText()
				p.Robots = robots.Directives{NoIndex: true, NoArchive: true}
				return p
			}()},
			want: want{kind: Content, state: store.OK, planned: true, observed: true, noIndex: true},
		},
		{
			name: "expired", before: known(), in: Input{Response: answer(200), Page: func() *extract.Page { p := oldText(); p.Robots.Until = now.Add(-time.Second); return p }()},
			want: want{kind: Content, state: store.OK, planned: true, observed: true, noIndex: true},
		},
		{
			name: "canonical elsewhere", before: known(), in: Input{Response: answer(200), Page: func() *extract.Page { p := oldText(); p.Canonical = other; return p }()},
			want: want{kind: Content, state: store.OK, planned: true, observed: true, archive: true},
			check: func(t *testing.T, o *Outcome) {
				t.Helper()
				v := o.Visit(known(), now, time.Second)
				if o.Page.Canonical != "http://h.example/b" || !v.Reindex || !v.Retarget || v.Alias != other.Key() {
					t.Errorf("canonical %q, visit %+v", o.Page.Canonical, v)
				}
			},
		},
		{
			name: "canonical of itself", before: known(),
			in: Input{Response: answer(200), Page: func() *extract.Page {
				p := oldText()
				p.Canonical = mustParse(t, "http://h.example/a?utm_source=x")
				return p
			}()},
			want: want{kind: Content, state: store.OK, planned: true, observed: true},
		},
		{
			name: "sitemap", before: queued(), in: Input{Response: answer(200, "Content-Type", "application/xml"), Page: func() *extract.Page { p := newText(); p.Sitemap = true; return p }()},
			rules: func(r *Rules) { r.Types = []string{"html"} },
			want:  want{kind: Content, state: store.OK, changed: true, planned: true, differs: true, observed: true, archive: true},
			check: func(t *testing.T, o *Outcome) {
				t.Helper()
				if o.Links != nil {
					t.Error("entries of a sitemap are taken for links")
				}
			},
		},
		{
			name: "other content type", before: known(), in: Input{Response: answer(200, "Content-Type", "image/png"), Page: newText()},
			rules: func(r *Rules) { r.Types = []string{"html"} },
			want:  want{kind: OtherType, state: store.Excluded, reason: store.ReasonContentType, changed: true, observed: true, skipped: store.ReasonContentType, traps: []trap.Kind{trap.WrongContentType}},
		},
		{
			name: "too large", before: known(), in: Input{Response: func() *fetch.Response { r := answer(200); r.Truncated = true; return r }(), Page: newText()},
			want: want{kind: Content, state: store.OK, changed: true, planned: true, differs: true, observed: true, archive: true, traps: []trap.Kind{trap.EndlessBody}},
		},
		{
			name: "bad bytes", before: known(), in: Input{Response: answer(200), Page: func() *extract.Page { p := newText(); p.Malformed, p.Skipped = true, 3; return p }()},
			want: want{kind: Content, state: store.OK, changed: true, planned: true, differs: true, observed: true, archive: true, traps: []trap.Kind{trap.LinkFlood, trap.BadCharset}},
		},
		{
			name: "document that cannot be read", before: known(), in: Input{Response: &fetch.Response{Status: 200, Header: http.Header{"Content-Type": {"application/pdf"}}, Body: []byte("%PDF-1.7")}, Page: &extract.Page{Problem: extract.Problem(pdftext.MemoryLimit), Digest: [16]byte{7}}},
			want: want{kind: Content, state: store.OK, reason: store.Reason(pdftext.MemoryLimit), changed: true, planned: true, differs: true, observed: true, archive: true, counted: []Failure{{string(pdftext.MemoryLimit), store.Reason(pdftext.MemoryLimit).Text()}}},
		},
		{
			name: "soft 404", before: known(), in: Input{Response: answer(200), Page: newText(), IsSoft404: true},
			want: want{kind: Soft404, state: store.Gone, reason: store.Reason(trap.SoftNotFound), due: day, changed: true, observed: true, traps: []trap.Kind{trap.SoftNotFound}},
		},
		{
			name: "page that a browser is to see", before: queued(), in: Input{Response: answer(200), Page: newText(), AwaitsRender: true, Why: "script"},
			want: want{kind: Content, state: store.OK, changed: true, planned: true, differs: true, observed: true, archive: true},
			check: func(t *testing.T, o *Outcome) {
				t.Helper()
				if !o.Page.Waits || o.Page.Why != "script" {
					t.Errorf("waits %v, why %q", o.Page.Waits, o.Page.Why)
				}
			},
		},
		{
			name: "page that a browser saw before", before: with(known(), func(p *store.Page) { p.Rendered = true }), in: Input{Response: answer(203), Page: newText(), AwaitsRender: true, Why: "script"},
			want: want{kind: Deferred, state: store.OK, due: day},
			check: func(t *testing.T, o *Outcome) {
				t.Helper()
				if p := &o.Page; !p.Waits || !p.Rendered || p.Title != "old" || p.Status != 203 || len(o.Links) != 1 {
					t.Errorf("got %+v, links %v", p, o.Links)
				}
			},
		},
		{
			name: "not modified", before: with(known(), func(p *store.Page) { p.Reason = store.ReasonPDFDamaged }), in: Input{Response: answer(304)},
			want: want{kind: NotModified, state: store.OK, reason: store.ReasonPDFDamaged, planned: true, observed: true},
			check: func(t *testing.T, o *Outcome) {
				t.Helper()
				if o.Page.Status != 200 || !o.Unchanged || o.Page.History.Last != now {
					t.Errorf("status %d, unchanged %v, last visit %v", o.Page.Status, o.Unchanged, o.Page.History.Last)
				}
			},
		},
		{
			name: "not modified, with directives", before: known(), in: Input{Response: answer(304, "X-Robots-Tag", "noindex, noarchive", "Link", `<http://h.example/b>; rel="canonical"`)},
			want: want{kind: NotModified, state: store.OK, planned: true, observed: true, noIndex: true},
			check: func(t *testing.T, o *Outcome) {
				t.Helper()
				if !o.Page.NoCopy || o.Page.Canonical != "http://h.example/b" {
					t.Errorf("no copy %v, canonical %q", o.Page.NoCopy, o.Page.Canonical)
				}
			},
		},
		{
			name: "not modified, but never fetched", before: queued(), in: Input{Response: answer(304)},
			want: want{kind: Redirected, state: store.Redirect, planned: true, observed: true},
		},
		{
			name: "redirect", before: known(), in: Input{Response: answer(301, "Location", "/b")},
			want: want{kind: Redirected, state: store.Redirect, changed: true, planned: true, differs: true, observed: true},
			check: func(t *testing.T, o *Outcome) {
				t.Helper()
				if o.Target != other || o.Page.Location != "http://h.example/b" || len(o.Links) != 1 || o.Page.Digest != [16]byte{} {
					t.Errorf("target %v, location %q, links %v, digest %x", o.Target, o.Page.Location, o.Links, o.Page.Digest)
				}
			},
		},
		{
			name: "redirect as before", before: &store.Page{URL: "http://h.example/a", State: store.Redirect, Location: "http://h.example/b"}, in: Input{Response: answer(302, "Location", "/b")},
			want: want{kind: Redirected, state: store.Redirect, planned: true, observed: true},
		},
		{
			name: "redirect to itself", before: queued(), in: Input{Response: answer(301, "Location", "/a?utm_source=x")},
			want: want{kind: Redirected, state: store.Redirect, reason: store.ReasonRedirectLoop, planned: true, differs: true, observed: true, traps: []trap.Kind{trap.RedirectLoop}},
		},
		{
			name: "redirect in a circle", before: queued(), in: Input{Response: answer(301, "Location", "/b"), Redirects: 2, RedirectsToTarget: true},
			want: want{kind: Redirected, state: store.Redirect, reason: store.ReasonRedirectLoop, planned: true, differs: true, observed: true, traps: []trap.Kind{trap.RedirectLoop}},
		},
		{
			name: "too many redirects", before: queued(), in: Input{Response: answer(301, "Location", "/b"), Redirects: MaxRedirects},
			want: want{kind: Redirected, state: store.Redirect, planned: true, differs: true, observed: true, traps: []trap.Kind{trap.RedirectChain}},
			check: func(t *testing.T, o *Outcome) {
				t.Helper()
				if !o.Target.IsZero() {
					t.Errorf("%v is queued", o.Target)
				}
			},
		},
		{
			name: "denied", before: known(), in: Input{Response: answer(403)},
			want: want{kind: Denied, state: store.Blocked, due: day, changed: true, observed: true},
		},
		{
			name: "gone", before: known(), in: Input{Response: answer(410)},
			want: want{kind: Missing, state: store.Gone, due: day, changed: true, observed: true},
		},
		{
			name: "gone for five days", before: &store.Page{State: store.Gone, History: change.History{Last: now.Add(-day), Changed: now.Add(-5 * day)}}, in: Input{Response: answer(404)},
			want: want{kind: Missing, state: store.Gone, due: 5 * day, observed: true},
		},
		{
			name: "gone for a year", before: &store.Page{State: store.Gone, History: change.History{Last: now.Add(-day), Changed: now.Add(-365 * day)}}, in: Input{Response: answer(404)},
			want: want{kind: Missing, state: store.Gone, due: 30 * day, observed: true},
		},
		{
			name: "overloaded", before: known(), in: Input{Response: answer(503), HostNext: now.Add(time.Hour)},
			want: want{kind: Overloaded, state: store.Failed, reason: store.ReasonOverloaded, failures: 1, due: time.Hour, observed: true, counted: []Failure{{"status-503", "status 503"}}},
		},
		{
			name: "overloaded, for a moment", before: known(), in: Input{Response: answer(429), HostNext: now.Add(time.Second)},
			want: want{kind: Overloaded, state: store.Failed, reason: store.ReasonOverloaded, failures: 1, due: 2 * time.Second, observed: true, counted: []Failure{{"status-429", "status 429"}}},
		},
		{
			name: "server error", before: known(), in: Input{Response: answer(500)},
			want: want{kind: ServerError, state: store.Failed, reason: store.ReasonServerError, failures: 1, due: 2 * time.Second, observed: true, counted: []Failure{{"status-5xx", "status 500"}}},
			check: func(t *testing.T, o *Outcome) {
				t.Helper()
				if !o.Page.Held() || o.Page.FailingSince != now {
					t.Errorf("held %v, failing since %v", o.Page.Held(), o.Page.FailingSince)
				}
			},
		},
		{
			name: "server error, for the third time", before: with(known(), func(p *store.Page) { p.State, p.Failures, p.FailingSince = store.Failed, 2, now.Add(-time.Minute) }), in: Input{Response: answer(500)},
			want: want{kind: ServerError, state: store.Failed, reason: store.ReasonServerError, failures: 3, due: day, observed: true, counted: []Failure{{"status-5xx", "status 500"}}},
		},
		{
			name: "no answer", before: queued(), in: Input{Err: &fetch.Error{URL: "http://h.example/a", Kind: fetch.Timeout, Err: errors.New("late")}},
			want: want{kind: NoAnswer, state: store.Failed, reason: store.ReasonNoAnswer, failures: 1, due: 2 * time.Second, observed: true, counted: []Failure{{"timeout", "late"}}, traps: []trap.Kind{trap.Silence}},
		},
		{
			name: "no answer, of no kind", before: known(), in: Input{Err: errors.New("odd")},
			want: want{kind: NoAnswer, state: store.Failed, reason: store.ReasonNoAnswer, failures: 1, due: 2 * time.Second, observed: true, counted: []Failure{{string(fetch.Protocol), "odd"}}},
		},
		{
			name: "private address", before: queued(), in: Input{Err: &fetch.Error{Kind: fetch.Private, Err: errors.New("10.0.0.1")}},
			want: want{kind: NoAnswer, state: store.Failed, reason: store.ReasonNoAnswer, failures: 1, due: day, observed: true, counted: []Failure{{string(fetch.Private), "10.0.0.1"}}, traps: []trap.Kind{trap.PrivateAddress}},
		},
		{
			name: "expires while its server fails", before: with(known(), func(p *store.Page) { p.Expires = now.Add(-time.Second) }), in: Input{Response: answer(500)},
			want: want{kind: ServerError, state: store.Failed, reason: store.ReasonServerError, failures: 1, due: 2 * time.Second, observed: true, noIndex: true, counted: []Failure{{"status-5xx", "status 500"}}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, in, before := rules, tt.in, *tt.before
			if tt.rules != nil {
				tt.rules(&r)
			}
			in.URL, in.Before, in.At = mustParse(t, "http://h.example/a"), tt.before, now
			in.Prior = func(*store.Page) change.Prior { return change.DefaultPrior }
			o := r.Decide(&in)
			if !reflect.DeepEqual(*tt.before, before) {
				t.Errorf("the record before was changed: %+v", tt.before)
			}
			p := &o.Page
			got := want{
				kind: o.Kind, state: p.State, reason: p.Reason, failures: p.Failures, changed: o.Changed, planned: o.Planned, differs: o.Differs,
				observed: o.Observed, archive: o.Archive, noIndex: p.NoIndex, counted: o.Failures, traps: o.Traps, skipped: o.Skipped,
			}
			if !o.Planned && !p.Slot.Due.IsZero() {
				got.due = p.Slot.Due.Sub(now)
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
			if p.State != store.OK && p.State != store.Failed && p.Held() {
				t.Error("the index keeps a page that is not there")
			}
			if tt.check != nil {
				tt.check(t, &o)
			}
		})
	}
}

// What a browser made of a page.
func TestDecideRendered(t *testing.T) {
	t.Parallel()
	waits := func() *store.Page { return with(known(), func(p *store.Page) { p.Waits = true }) }
	slot := store.Slot{Due: now.Add(3 * day)}
	for _, tt := range []struct {
		name                                         string
		in                                           Input
		kind                                         Kind
		changed, planned, observed, archive, visited bool
		title                                        string
		slot                                         store.Slot
	}{
		{"nothing gained", Input{Improves: true, Page: newText()}, Kept, false, false, false, false, false, "old", slot},
		{"content replaced", Input{Improves: true, Rendered: true, Page: newText()}, Content, true, false, false, true, false, "new", slot},
		{"as it was fetched", Input{Improves: true, Rendered: true, Page: oldText()}, Content, false, false, false, false, false, "old", slot},
		{"seen again, changed", Input{Rendered: true, Page: newText()}, Content, true, true, true, true, true, "new", store.Slot{Due: now}},
		{"seen again, unchanged", Input{Rendered: true, Page: oldText()}, Content, false, true, true, false, true, "old", store.Slot{Due: now}},
		{"not seen again", Input{Page: newText()}, Content, true, true, true, true, true, "new", store.Slot{Due: now}},
	} {
		in := tt.in
		in.URL, in.Before, in.Response, in.At, in.NextSlot, in.Why = mustParse(t, "http://h.example/a"), waits(), answer(200), now, slot, "why"
		in.Prior = func(*store.Page) change.Prior { return change.DefaultPrior }
		o := rules.DecideRendered(&in)
		p := &o.Page
		if o.Kind != tt.kind || o.Changed != tt.changed || o.Planned != tt.planned || o.Observed != tt.observed || o.Archive != tt.archive {
			t.Errorf("%s: got %s, changed %v, planned %v, observed %v, archive %v", tt.name, o.Kind, o.Changed, o.Planned, o.Observed, o.Archive)
		}
		if p.Waits || p.Why != "why" || p.Title != tt.title || p.Slot != tt.slot || p.Rendered != in.Rendered || p.History.Last.Equal(now) != tt.visited {
			t.Errorf("%s: got record %+v", tt.name, p)
		}
	}
}

// A page whose body could not be archived counts as not seen.
func TestArchiveFailed(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]*store.Page{"new": queued(), "known": known(), "failing": with(known(), func(p *store.Page) { p.State, p.FailingSince = store.Failed, now.Add(-11*day) })} {
		in := Input{URL: mustParse(t, before.URL), Before: before, Response: answer(200), Page: newText(), At: now, AwaitsRender: true}
		in.Prior = func(*store.Page) change.Prior { return change.DefaultPrior }
		o := rules.Decide(&in)
		f := rules.ArchiveFailed(&o, before, errors.New("disk full"), now)
		p := &f.Page
		if f.Kind != NotArchived || f.Changed || f.Planned || f.Archive || f.Links != nil || p.Waits {
			t.Errorf("%s: got %+v", name, f)
		}
		if p.State != store.Failed || p.Reason != store.ReasonArchive || p.Error != "archive: disk full" || p.Slot.Due != now.Add(time.Minute) {
			t.Errorf("%s: got record %+v", name, p)
		}
		if held := name == "known"; p.Held() != held || held && (p.Digest != before.Digest || p.Simhash != before.Simhash || p.Shown != before.Shown) {
			t.Errorf("%s: held %v, want %v with what was known: %+v", name, p.Held(), held, p)
		}
	}
}

// Pages that are not asked for.
func TestNotVisited(t *testing.T) {
	t.Parallel()
	tenth := with(known(), func(p *store.Page) { p.Failures, p.FailingSince = 9, now.Add(-time.Hour) })
	for _, tt := range []struct {
		name    string
		got     Outcome
		state   store.State
		reason  store.Reason
		due     time.Duration // 0: not queued
		changed bool
		held    bool
	}{
		{"excluded", rules.Exclude(queued(), store.ReasonMalformedURL, "malformed URL", now), store.Excluded, store.ReasonMalformedURL, 0, false, false},
		{"known page excluded", rules.Exclude(known(), store.ReasonMalformedURL, "malformed URL", now), store.Excluded, store.ReasonMalformedURL, 0, true, false},
		{"copy", rules.SetAside(known(), store.ReasonMirror, "mirror of x", now), store.Excluded, store.ReasonMirror, trap.MirrorAge, true, false},
		{"forbidden by robots.txt", rules.RobotsForbid(known(), now), store.Blocked, store.ReasonRobotsRefused, politeness.RobotsAge, true, false},
		{"new, robots.txt unavailable", rules.RobotsUnavailable(queued(), now.Add(time.Minute), now), store.Failed, store.ReasonRobotsUnavailable, time.Minute, false, false},
		{"known, robots.txt unavailable", rules.RobotsUnavailable(known(), now.Add(time.Minute), now), store.OK, store.ReasonRobotsUnavailable, time.Minute, false, true},
		{"robots.txt unavailable for the tenth time", rules.RobotsUnavailable(tenth, now.Add(time.Minute), now), store.OK, store.ReasonRobotsUnavailable, time.Minute + min(politeness.RobotsRetry<<7, politeness.RobotsAge), false, true},
		{"source removed", rules.SourceRemoved(known(), false, now), store.Excluded, store.ReasonSourceRemoved, 30 * day, true, false},
		{"source removed, kept", rules.SourceRemoved(known(), true, now), store.OK, "", 30 * day, false, true},
		{"source of a new page removed, kept", rules.SourceRemoved(queued(), true, now), store.Excluded, store.ReasonSourceRemoved, 30 * day, false, false},
	} {
		p := &tt.got.Page
		want := store.Slot{}
		if tt.due != 0 {
			want.Due = now.Add(tt.due)
		}
		if p.State != tt.state || p.Reason != tt.reason || p.Slot != want || tt.got.Changed != tt.changed || p.Held() != tt.held {
			t.Errorf("%s: got %s, reason %q, slot %v, changed %v, held %v; want %s, %q, %v, %v, %v",
				tt.name, p.State, p.Reason, p.Slot, tt.got.Changed, p.Held(), tt.state, tt.reason, want, tt.changed, tt.held)
		}
		if tt.got.Kind != NotVisited || tt.got.Observed || tt.got.Planned || tt.got.Skipped == "" {
			t.Errorf("%s: got %+v", tt.name, tt.got)
		}
	}
}

// A page that cannot be fetched for MaxFailedAge leaves the index, whatever failed.
func TestFailedPagesLeaveTheIndex(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		state  store.State
		reason store.Reason
		since  time.Duration // the failures began
		held   bool
	}{
		"first failure":              {store.Failed, store.ReasonServerError, 0, true},
		"fails for nine days":        {store.Failed, store.ReasonServerError, 9 * day, true},
		"fails for ten days":         {store.Failed, store.ReasonNoAnswer, 10 * day, false},
		"no robots.txt, nine days":   {store.OK, store.ReasonRobotsUnavailable, 9 * day, true},
		"no robots.txt for ten days": {store.OK, store.ReasonRobotsUnavailable, 10 * day, false},
		"fetched again":              {store.OK, "", 10 * day, true},
	} {
		before := &store.Page{State: store.Failed, Digest: [16]byte{1}}
		if tt.since > 0 {
			before.FailingSince = now.Add(-tt.since)
		}
		o := Outcome{Page: *before}
		o.Page.State, o.Page.Reason = tt.state, tt.reason
		o = rules.complete(o, now)
		v := o.Visit(before, time.Time{}, 0)
		if v.Page.Held() != tt.held || v.Reindex == tt.held {
			t.Errorf("%s: held %v, index told %v; want held %v", name, v.Page.Held(), v.Reindex, tt.held)
		}
		if tt.reason == "" && !v.Page.FailingSince.IsZero() {
			t.Errorf("%s: still failing since %v", name, v.Page.FailingSince)
		}
	}
}

// Validators are kept byte for byte, or not at all.
func TestValidator(t *testing.T) {
	t.Parallel()
	for tag, want := range map[string]string{`"plain"`: `"plain"`, "\"\xe4\xf6\"": "", `"žodis"`: `"žodis"`, "\"a\x00b\"": "", "": ""} {
		if got := validator(tag); got != want {
			t.Errorf("validator(%q) = %q, want %q", tag, got, want)
		}
	}
}

// The header of an answer counts as what the page says itself.
func TestExtract(t *testing.T) {
	t.Parallel()
	u := mustParse(t, "http://h.example/a")
	page := Extract(t.Context(), u, &fetch.Response{Status: 200, Header: http.Header{"Content-Type": {"text/html"}, "X-Robots-Tag": {"noindex"}}, Body: []byte(`<title>t</title><p>words <a href=/b>b</a>`)}, queued(), extract.Options{Token: "freshet"})
	if page.Title != "t" || !page.Robots.NoIndex || !slices.ContainsFunc(page.Links, func(l extract.Link) bool { return l.URL.String() == "http://h.example/b" }) {
		t.Errorf("got %+v", page)
	}
}
