package storetest

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/freshet/freshet/freshness/change"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// The key travels with the page: what Take, Page, Pages, Records and Changes hand out has
// the key of its URL, and Commit finds the page by it.
func testKey(t *testing.T, open Opener) {
	s := open(t)
	defer closeStore(t, s)
	ctx := context.Background()
	const address = "http://a/1"
	want := mustParseURL(t, address).Key()
	mustAdd(t, s, address)
	l := mustClaim(t, s, start)
	p := mustTake(t, s, l, 1, start)[0]
	if p.Key != want {
		t.Errorf("Take gives the key %x, want %x", p.Key, want)
	}
	mustCommit(t, s, l, &store.Batch{Visits: []store.Visit{visitedPage(p, start, true)}})
	got, err := s.Page(ctx, mustParseURL(t, address))
	if err != nil || got.Key != want {
		t.Errorf("Page gives the key %x, %v, want %x", got.Key, err, want)
	}
	if err := s.Pages(ctx, func(p *store.Page) error {
		if p.Key != want {
			t.Errorf("Pages gives the key %x, want %x", p.Key, want)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if r, err := s.Records(ctx, []weburl.Key{want}); err != nil || len(r) != 1 || r[0].Key != want {
		t.Errorf("Records gives %+v, %v, want the key %x", r, err, want)
	}
	if c, err := s.Changes(ctx, 0, 10); err != nil || len(c) != 1 || c[0].Page.Key != want {
		t.Errorf("Changes gives %+v, %v, want the key %x", c, err, want)
	}
}

// What strangers can put into a record is stored, or refused by a PageError or HostError
// that leaves the lease: then the rest of the batch can be committed.
func testBadInput(t *testing.T, open Opener) {
	long := strings.Repeat("x", 1<<20)
	for name, c := range map[string]struct {
		spoil  func(*store.Page)
		refuse bool
	}{
		"NUL bytes": {func(p *store.Page) {
			p.Title, p.Type, p.Error, p.Location, p.Lang = "a\x00b", "text\x00", "\x00", "http://b/\x00", "\x00"
		}, false},
		"invalid UTF-8": {func(p *store.Page) {
			p.Title, p.ETag, p.LastModified, p.Canonical = "\xff\xfe", "\"\xe4\"", "\x80", "http://b/\xc3"
		}, false},
		"From not a URL":   {func(p *store.Page) { p.From = "\xff\x00" }, false},
		"long texts":       {func(p *store.Page) { p.Title, p.ETag, p.Why = long, long, long }, false},
		"negative numbers": {func(p *store.Page) { p.Depth, p.Bytes, p.Status, p.Failures = -1, math.MinInt64, math.MinInt32, -1 }, false},
		"great numbers":    {func(p *store.Page) { p.Bytes, p.Status, p.Failures = math.MaxInt64, math.MaxInt32, math.MaxInt32 }, false},
		"NaN":              {func(p *store.Page) { p.History = change.History{Visits: math.NaN()} }, true},
		"infinity":         {func(p *store.Page) { p.History = change.History{Time: math.Inf(1)} }, true},
		"far future":       {func(p *store.Page) { p.Slot.Due = time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC) }, true},
		"unknown state":    {func(p *store.Page) { p.State = "lost" }, true},
		"key of another":   {func(p *store.Page) { p.Key[15]++ }, true},
		"no key":           {func(p *store.Page) { p.Key = weburl.Key{} }, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			defer closeStore(t, s)
			ctx := context.Background()
			before, err := s.Stats(ctx)
			if err != nil {
				t.Fatal(err)
			}
			host := "http://" + strings.ReplaceAll(strings.ToLower(name), " ", "-")
			mustAdd(t, s, host+"/1", host+"/2")
			l := mustClaim(t, s, start)
			for l != nil && "http://"+l.Host.Name != host { // of a case before
				l = mustClaim(t, s, start)
			}
			if l == nil {
				t.Fatalf("%s cannot be claimed", host)
			}
			pages := mustTake(t, s, l, 2, start)
			bad, good := visitedPage(pages[0], start, true), visitedPage(pages[1], start, true)
			c.spoil(&bad.Page)
			b := &store.Batch{Host: l.Host, Visits: []store.Visit{good, bad}, Found: foundURLs(t, host+"/3")}
			_, err = s.Commit(ctx, l, b)
			var refused *store.PageError
			if errors.As(err, &refused) != c.refuse || !c.refuse && err != nil {
				t.Fatalf("commit: %v, want refused: %v", err, c.refuse)
			}
			if c.refuse {
				if refused.Key != bad.Page.Key || !store.IsInputError(err) {
					t.Errorf("the refused page is %x (%v), want %x", refused.Key, err, bad.Page.Key)
				}
				plain := store.Page{Key: pages[0].Key, URL: pages[0].URL, State: store.Excluded, Reason: store.ReasonBadRecord}
				mustCommit(t, s, l, &store.Batch{Visits: []store.Visit{good, {Page: plain}}, Found: b.Found})
			}
			mustRelease(t, s, l)
			st, err := s.Stats(ctx)
			if err != nil || st.New-before.New != 1 || st.URLs-before.URLs != 3 {
				t.Errorf("stats %+v after %+v, %v, want 3 more URLs of which 1 is new", st, before, err)
			}
			if p, err := s.Page(ctx, mustParseURL(t, good.Page.URL)); err != nil || p.State != store.OK {
				t.Errorf("the good page is %+v, %v, want state ok", p, err)
			}
			if p, err := s.Page(ctx, mustParseURL(t, pages[0].URL)); err != nil || p.State == store.Queued {
				t.Errorf("the bad page is %+v, %v, want it visited", p, err)
			}
		})
	}
}

// A host's record that cannot be written is told from other errors, and the lease holds;
// so it is when the host is given back in the same step.
func testBadHost(t *testing.T, open Opener) {
	s := open(t)
	defer closeStore(t, s)
	ctx := context.Background()
	mustAdd(t, s, "http://a/1")
	l := mustClaim(t, s, start)
	p := mustTake(t, s, l, 1, start)
	write := s.Commit
	if f, ok := s.(store.Finisher); ok {
		write = f.Finish
	}
	b := &store.Batch{Host: l.Host, Visits: []store.Visit{visitedPage(p[0], start, true)}}
	b.Host.Groups = map[string]change.Group{"": {Time: math.NaN()}}
	_, err := write(ctx, l, b)
	var refused *store.HostError
	if !errors.As(err, &refused) || refused.Host != "a" || !store.IsInputError(err) {
		t.Fatalf("commit: %v, want a HostError of a", err)
	}
	b.Host.Groups = nil
	if _, err := write(ctx, l, b); err != nil {
		t.Errorf("commit with a plain record: %v", err)
	}
}

// Where a URL was found is kept as well as the engine can.
func testBadOrigin(t *testing.T, open Opener) {
	s := open(t)
	defer closeStore(t, s)
	n, err := s.Add(context.Background(), []store.Found{{URL: mustParseURL(t, "http://a/1"), From: "http://b/\x00\xff"}, {URL: mustParseURL(t, "http://a/2"), Depth: -5}})
	if err != nil || n != 2 {
		t.Errorf("added %d, %v, want 2", n, err)
	}
}

// A visit that the index must hear of gets an entry in the feed without being a change, and
// pages that name another one as canonical get one when that one is retargeted.
func testReindex(t *testing.T, open Opener) {
	s := open(t)
	ctx := context.Background()
	target := mustParseURL(t, "http://b/target")
	mustAdd(t, s, "http://a/alias", "http://a/other")
	l := mustClaim(t, s, start)
	visits := map[string]*store.Visit{}
	var b store.Batch
	for _, p := range mustTake(t, s, l, 2, start) {
		v := visitedPage(p, start, true)
		if p.URL == "http://a/alias" {
			v.Page.Canonical, v.Alias = target.String(), target.Key()
		}
		b.Visits = append(b.Visits, v)
	}
	mustCommit(t, s, l, &b)
	mustRelease(t, s, l)
	last := uint64(0)
	told := func() (out string) {
		t.Helper()
		changes, err := s.Changes(ctx, last, 10)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, c := range changes {
			if c.Page == nil || c.Page.URL != c.URL {
				t.Errorf("change of %q has the record %+v", c.URL, c.Page)
			}
			all, last = append(all, c.URL), c.Seq
		}
		slices.Sort(all)
		return strings.Join(all, " ")
	}
	if got, want := told(), "http://a/alias http://a/other"; got != want {
		t.Errorf("feed of the first visits: %q, want %q", got, want)
	}
	now := start
	visit := func(address string, change func(*store.Visit)) {
		t.Helper()
		now = now.Add(2 * time.Hour)
		mustAdd(t, s, address)
		for {
			l := mustClaim(t, s, now)
			if l == nil {
				t.Fatalf("%s cannot be claimed", address)
			}
			var b store.Batch
			for _, p := range mustTake(t, s, l, 10, now) {
				v := visitedPage(p, now, false)
				if p.URL == address {
					change(&v)
				}
				visits[p.URL] = &v
				b.Visits = append(b.Visits, v)
			}
			mustCommit(t, s, l, &b)
			mustRelease(t, s, l)
			if visits[address] != nil {
				delete(visits, address)
				return
			}
		}
	}
	visit("http://a/other", func(*store.Visit) {})
	if got := told(); got != "" {
		t.Errorf("feed of a visit without a change: %q, want nothing", got)
	}
	visit("http://a/other", func(v *store.Visit) { v.Reindex = true })
	if got, want := told(), "http://a/other"; got != want {
		t.Errorf("feed of a visit to be indexed again: %q, want %q", got, want)
	}
	visit(target.String(), func(v *store.Visit) { v.Retarget = true })
	if got, want := told(), "http://a/alias"; got != want {
		t.Errorf("feed when the canonical page came: %q, want %q", got, want)
	}
	closeStore(t, s)
	s = open(t)
	defer func() { closeStore(t, s) }()
	visit(target.String(), func(v *store.Visit) { v.Retarget = true })
	if got, want := told(), "http://a/alias"; got != want {
		t.Errorf("feed when it went, after a restart: %q, want %q", got, want)
	}
	changed := 0
	if err := s.Visits(ctx, time.Time{}, func(l *store.VisitLog) error {
		if l.Changed {
			changed++
		}
		return nil
	}); err != nil || changed != 2 {
		t.Errorf("%d logged visits saw a change (%v), want the first 2", changed, err)
	}
}
