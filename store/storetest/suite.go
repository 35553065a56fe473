// Package storetest is the suite that every store.Store must pass.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// Opener opens a store; called again after Close it finds what was written.
type Opener func(t *testing.T) store.Store

var start = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

const ttl = time.Minute

// Run runs the suite; fresh returns an opener of an empty store.
func Run(t *testing.T, fresh func(t *testing.T) Opener) {
	tests := map[string]func(*testing.T, Opener){
		"AddOnce": testAddOnce, "Visit": testVisit, "Lease": testLease, "Politeness": testPoliteness, "Order": testOrder,
		"Revisit": testRevisit, "Hasten": testHasten, "Promote": testPromote, "Feed": testFeed, "Atomic": testAtomic, "Restart": testRestart,
		"Concurrent": testConcurrent, "Model": testModel, "Meta": testMeta, "NotFound": testNotFound,
		"Key": testKey, "BadInput": testBadInput, "BadHost": testBadHost, "BadOrigin": testBadOrigin, "Reindex": testReindex,
		"ID": testID, "Refetch": testRefetch, "Postpone": testPostpone, "HostRecord": testHostRecord,
	}
	for name, f := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, fresh(t))
		})
	}
}

func mustParseURL(t *testing.T, s string) weburl.URL {
	t.Helper()
	u, err := weburl.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func foundURLs(t *testing.T, urls ...string) []store.Found {
	t.Helper()
	var out []store.Found
	for i, s := range urls {
		out = append(out, store.Found{URL: mustParseURL(t, s), Order: uint64(i + 1)})
	}
	return out
}

func mustAdd(t *testing.T, s store.Store, urls ...string) int {
	t.Helper()
	n, err := s.Add(context.Background(), foundURLs(t, urls...))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func mustClaim(t *testing.T, s store.Store, now time.Time) *store.Lease {
	t.Helper()
	l, _, err := s.Claim(context.Background(), "n1", now, ttl)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func mustTake(t *testing.T, s store.Store, l *store.Lease, n int, now time.Time) []store.Page {
	t.Helper()
	pages, err := s.Take(context.Background(), l, n, now)
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

func joinURLs(pages []store.Page) string {
	var out []string
	for _, p := range pages {
		out = append(out, p.URL)
	}
	return strings.Join(out, " ")
}

// visitedPage is the visit of a page that is due again in an hour.
func visitedPage(p store.Page, now time.Time, changed bool) store.Visit {
	p.State, p.Status, p.Slot = store.OK, 200, store.Slot{Due: now.Add(time.Hour)}
	return store.Visit{Page: p, Changed: changed, Arrived: now}
}

func mustCommit(t *testing.T, s store.Store, l *store.Lease, b *store.Batch) int {
	t.Helper()
	b.Host.Name = l.Host.Name
	n, err := s.Commit(context.Background(), l, b)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func mustRelease(t *testing.T, s store.Store, l *store.Lease) {
	t.Helper()
	if err := s.Release(context.Background(), l); err != nil {
		t.Fatal(err)
	}
}

func closeStore(t *testing.T, s store.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A URL is queued once, however often it is found.
func testAddOnce(t *testing.T, open Opener) {
	s := open(t)
	defer closeStore(t, s)
	if n := mustAdd(t, s, "http://a/1", "http://a/2", "http://a/1"); n != 2 {
		t.Errorf("added %d, want 2", n)
	}
	if n := mustAdd(t, s, "http://a/2", "http://b/"); n != 1 {
		t.Errorf("added %d, want 1", n)
	}
	st, err := s.Stats(context.Background())
	if err != nil || st.URLs != 3 || st.New != 3 || st.Hosts != 2 {
		t.Errorf("stats %+v, %v", st, err)
	}
}

// A visit moves a page from the queue to its record, and queues what it links to.
func testVisit(t *testing.T, open Opener) {
	s := open(t)
	defer closeStore(t, s)
	mustAdd(t, s, "http://a/1")
	l := mustClaim(t, s, start)
	if l == nil || l.Host.Name != "a" {
		t.Fatalf("lease %+v", l)
	}
	pages := mustTake(t, s, l, 10, start)
	if joinURLs(pages) != "http://a/1" {
		t.Fatalf("took %s", joinURLs(pages))
	}
	if again := mustTake(t, s, l, 10, start); len(again) != 0 {
		t.Errorf("took %s again", joinURLs(again))
	}
	v := visitedPage(pages[0], start, true)
	v.Page.Title, v.Page.ETag = "Žodis", `"x"`
	v.Links = []weburl.Key{mustParseURL(t, "http://a/2").Key(), mustParseURL(t, "http://b/").Key()}
	if n := mustCommit(t, s, l, &store.Batch{Visits: []store.Visit{v}, Found: foundURLs(t, "http://a/1", "http://a/2", "http://b/")}); n != 2 {
		t.Errorf("added %d", n)
	}
	if more := mustTake(t, s, l, 10, start); joinURLs(more) != "http://a/2" {
		t.Errorf("then took %s", joinURLs(more))
	}
	mustRelease(t, s, l)
	p, err := s.Page(context.Background(), mustParseURL(t, "http://a/1"))
	if err != nil || p.State != store.OK || p.Title != "Žodis" || p.ETag != `"x"` {
		t.Errorf("page %+v, %v", p, err)
	}
	st, err := s.Stats(context.Background())
	if err != nil || st.New != 2 || st.States[store.OK] != 1 || st.URLs != 3 || st.Leases != 0 {
		t.Errorf("stats %+v, %v", st, err)
	}
	links := 0
	err = s.Links(context.Background(), func(from weburl.Key, to []weburl.Key) error {
		p, err := s.Records(context.Background(), []weburl.Key{from})
		if err == nil && (len(p) != 1 || p[0].URL != "http://a/1" || len(to) != 2) {
			err = fmt.Errorf("links of %+v: %d", p, len(to))
		}
		links++
		return err
	})
	if err != nil || links != 1 {
		t.Errorf("%d pages with links, %v", links, err)
	}
}

// One agent a host; a lease that ran out or was given back is worth nothing.
func testLease(t *testing.T, open Opener) {
	s := open(t)
	defer closeStore(t, s)
	ctx := context.Background()
	mustAdd(t, s, "http://a/1", "http://b/1")
	first, second := mustClaim(t, s, start), mustClaim(t, s, start)
	if first == nil || second == nil || first.Host.Name == second.Host.Name {
		t.Fatalf("leases %+v, %+v", first, second)
	}
	if third := mustClaim(t, s, start); third != nil {
		t.Errorf("a third lease %+v", third)
	}
	if err := s.Renew(ctx, first, start.Add(30*time.Second), ttl); err != nil {
		t.Error(err)
	}
	pages := mustTake(t, s, second, 1, start)
	late := start.Add(70 * time.Second)
	successor := mustClaim(t, s, late) // second's lease is over, first's was renewed
	if successor == nil || successor.Host.Name != second.Host.Name || successor.Token <= second.Token || !successor.Orphan || second.Orphan {
		t.Fatalf("successor %+v of %+v", successor, second)
	}
	b := &store.Batch{Host: second.Host, Visits: []store.Visit{visitedPage(pages[0], late, true)}}
	if _, err := s.Commit(ctx, second, b); !errors.Is(err, store.ErrLease) {
		t.Errorf("commit under a lost lease: %v", err)
	}
	if _, err := s.Take(ctx, second, 1, late); !errors.Is(err, store.ErrLease) {
		t.Errorf("take under a lost lease: %v", err)
	}
	if err := s.Renew(ctx, second, late, ttl); !errors.Is(err, store.ErrLease) {
		t.Errorf("renewal of a lost lease: %v", err)
	}
	if got := mustTake(t, s, successor, 5, late); joinURLs(got) != joinURLs(pages) {
		t.Errorf("the successor took %s", joinURLs(got))
	}
	mustRelease(t, s, first)
	if err := s.Release(ctx, first); !errors.Is(err, store.ErrLease) {
		t.Errorf("released twice: %v", err)
	}
	mustRelease(t, s, successor)
	for range 2 {
		if l := mustClaim(t, s, late); l == nil || l.Orphan {
			t.Errorf("lease %+v after one that was given back", l)
		}
	}
}

// A host is not claimed before its time, and the caller learns when that is.
func testPoliteness(t *testing.T, open Opener) {
	s := open(t)
	defer closeStore(t, s)
	if l, next, err := s.Claim(context.Background(), "n", start, ttl); l != nil || !next.IsZero() || err != nil {
		t.Errorf("empty store: %+v, %v, %v", l, next, err)
	}
	mustAdd(t, s, "http://a/1", "http://a/2")
	l := mustClaim(t, s, start)
	pages := mustTake(t, s, l, 1, start)
	mustCommit(t, s, l, &store.Batch{Host: store.Host{Next: start.Add(10 * time.Second)}, Visits: []store.Visit{visitedPage(pages[0], start, false)}})
	mustRelease(t, s, l)
	l, next, err := s.Claim(context.Background(), "n", start.Add(9*time.Second), ttl)
	if l != nil || !next.Equal(start.Add(10*time.Second)) || err != nil {
		t.Errorf("too early: %+v, %v, %v", l, next, err)
	}
	if l := mustClaim(t, s, start.Add(10*time.Second)); l == nil {
		t.Error("not claimed in time")
	}
}

// New pages come by their order, whenever they were added.
func testOrder(t *testing.T, open Opener) {
	s := open(t)
	defer closeStore(t, s)
	ctx := context.Background()
	for _, o := range []uint64{5, 1, 9, 3} {
		if _, err := s.Add(ctx, []store.Found{{URL: mustParseURL(t, fmt.Sprintf("http://a/%d", o)), Order: o}}); err != nil {
			t.Fatal(err)
		}
	}
	l := mustClaim(t, s, start)
	if got := joinURLs(mustTake(t, s, l, 3, start)); got != "http://a/1 http://a/3 http://a/5" {
		t.Errorf("order %s", got)
	}
}

// A visited page comes back when it is due, also beside endless new pages.
func testRevisit(t *testing.T, open Opener) {
	s := open(t)
	defer closeStore(t, s)
	mustAdd(t, s, "http://a/old")
	l := mustClaim(t, s, start)
	p := mustTake(t, s, l, 1, start)
	mustCommit(t, s, l, &store.Batch{Visits: []store.Visit{visitedPage(p[0], start, true)}})
	mustRelease(t, s, l)
	if l, next, _ := s.Claim(context.Background(), "n", start, ttl); l != nil || !next.Equal(start.Add(time.Hour)) {
		t.Errorf("before it is due: %+v, %v", l, next)
	}
	var many []string
	for i := range 100 {
		many = append(many, fmt.Sprintf("http://a/%d", i))
	}
	mustAdd(t, s, many...)
	later := start.Add(2 * time.Hour)
	l = mustClaim(t, s, later)
	pages := mustTake(t, s, l, 10, later)
	if len(pages) != 10 || !strings.Contains(joinURLs(pages), "http://a/old") {
		t.Errorf("took %s", joinURLs(pages))
	}
}

// A signal moves a revisit forward, never back.
func testHasten(t *testing.T, open Opener) {
	s := open(t)
	defer closeStore(t, s)
	ctx := context.Background()
	mustAdd(t, s, "http://a/1")
	l := mustClaim(t, s, start)
	p := mustTake(t, s, l, 1, start)
	mustCommit(t, s, l, &store.Batch{Visits: []store.Visit{visitedPage(p[0], start, true)}})
	mustRelease(t, s, l)
	for _, due := range []time.Duration{5 * time.Minute, 30 * time.Minute} {
		if _, err := s.Add(ctx, []store.Found{{URL: mustParseURL(t, "http://a/1"), Due: start.Add(due)}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, next, _ := s.Claim(ctx, "n", start, ttl); !next.Equal(start.Add(5 * time.Minute)) {
		t.Errorf("due at %v", next)
	}
	l = mustClaim(t, s, start.Add(6*time.Minute))
	if got := joinURLs(mustTake(t, s, l, 5, start.Add(6*time.Minute))); got != "http://a/1" {
		t.Errorf("took %q", got)
	}
}

// A queued page can be moved forward among the new ones, never back, and stays
// where it is unless that is asked for.
func testPromote(t *testing.T, open Opener) {
	s := open(t)
	defer closeStore(t, s)
	ctx := context.Background()
	mustAdd(t, s, "http://a/1", "http://a/2", "http://a/3", "http://a/4") // orders 1 to 4
	_, err := s.Add(ctx, []store.Found{
		{URL: mustParseURL(t, "http://a/4"), Order: 2, Promote: true}, {URL: mustParseURL(t, "http://a/1"), Order: 9, Promote: true}, {URL: mustParseURL(t, "http://a/3"), Order: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Add(ctx, []store.Found{{URL: mustParseURL(t, "http://a/4"), Order: 1, Promote: true}}); err != nil {
		t.Fatal(err)
	}
	l := mustClaim(t, s, start)
	first := mustTake(t, s, l, 2, start)
	if got := joinURLs(first); !strings.Contains(got, "http://a/1") || !strings.Contains(got, "http://a/4") {
		t.Errorf("first %s", got)
	}
	if _, err := s.Add(ctx, []store.Found{{URL: mustParseURL(t, "http://a/4"), Order: 1, Promote: true}}); err != nil { // it is out
		t.Fatal(err)
	}
	if got := joinURLs(mustTake(t, s, l, 9, start)); got != "http://a/2 http://a/3" {
		t.Errorf("then %s", got)
	}
	if st, err := s.Stats(ctx); err != nil || st.New != 4 || st.URLs != 4 {
		t.Errorf("stats %+v, %v", st, err)
	}
	mustRelease(t, s, l)
	testPromoteFirst(t, s)
}

// A page can be moved before all that were ever at the head of the queue.
func testPromoteFirst(t *testing.T, s store.Store) {
	t.Helper()
	var queue []store.Found
	for i := range 4 {
		queue = append(queue, store.Found{URL: mustParseURL(t, fmt.Sprintf("http://b/%d", i)), Order: uint64(10 * (i + 1))})
	}
	if _, err := s.Add(context.Background(), queue); err != nil {
		t.Fatal(err)
	}
	var l *store.Lease
	for l == nil || l.Host.Name != "b" {
		l = mustClaim(t, s, start)
	}
	for i := range 2 {
		p := mustTake(t, s, l, 1, start)
		if got, want := joinURLs(p), fmt.Sprintf("http://b/%d", i); got != want {
			t.Errorf("took %s, want %s", got, want)
		}
		mustCommit(t, s, l, &store.Batch{Visits: []store.Visit{visitedPage(p[0], start, true)}})
	}
	if _, err := s.Add(context.Background(), []store.Found{{URL: mustParseURL(t, "http://b/3"), Order: 5, Promote: true}}); err != nil {
		t.Fatal(err)
	}
	if got := joinURLs(mustTake(t, s, l, 1, start)); got != "http://b/3" {
		t.Errorf("took %q, want the page that was moved to the head", got)
	}
	mustRelease(t, s, l)
}

// The feed has every change once, in order; a reader that asks again from its
// cursor misses nothing; what is trimmed is gone.
func testFeed(t *testing.T, open Opener) {
	s := open(t)
	ctx := context.Background()
	mustAdd(t, s, "http://a/1", "http://a/2", "http://a/3")
	l := mustClaim(t, s, start)
	var b store.Batch
	for i, p := range mustTake(t, s, l, 3, start) {
		b.Visits = append(b.Visits, visitedPage(p, start, i != 1))
	}
	mustCommit(t, s, l, &b)
	read := func(after uint64) (out []string, last uint64) {
		changes, err := s.Changes(ctx, after, 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range changes {
			if c.Seq <= after {
				t.Errorf("seq %d after %d", c.Seq, after)
			}
			if c.Page == nil || c.Page.URL != c.URL || c.Page.State != store.OK {
				t.Errorf("change of %s has the record %+v", c.URL, c.Page)
			}
			out, after = append(out, c.URL), c.Seq
		}
		return out, after
	}
	got, last := read(0)
	if !slices.Equal(got, []string{"http://a/1", "http://a/3"}) {
		t.Errorf("feed %v", got)
	}
	visits := 0
	if err := s.Visits(ctx, start.Add(-time.Second), func(*store.VisitLog) error { visits++; return nil }); err != nil || visits != 3 {
		t.Errorf("%d visits logged, %v", visits, err)
	}
	if err := s.Trim(ctx, last, start.Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	if got, _ := read(0); len(got) != 0 {
		t.Errorf("after trimming: %v", got)
	}
	if err := s.Visits(ctx, time.Time{}, func(*store.VisitLog) error { return errors.New("a visit is left") }); err != nil {
		t.Error(err)
	}
	closeStore(t, s)
	s = open(t)
	defer closeStore(t, s)
	l = mustClaim(t, s, start.Add(2*time.Hour))
	p := mustTake(t, s, l, 1, start.Add(2*time.Hour))
	mustCommit(t, s, l, &store.Batch{Visits: []store.Visit{visitedPage(p[0], start.Add(2*time.Hour), true)}})
	if got, seq := read(last); len(got) != 1 || seq <= last {
		t.Errorf("after a restart the feed goes on with %v, %d", got, seq)
	}
}

func testMeta(t *testing.T, open Opener) {
	s := open(t)
	ctx := context.Background()
	if v, err := s.Get(ctx, "none"); err != nil || v != nil {
		t.Errorf("unknown name: %q, %v", v, err)
	}
	if err := s.Put(ctx, "x", []byte("žodis")); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	s = open(t)
	defer closeStore(t, s)
	if v, err := s.Get(ctx, "x"); err != nil || string(v) != "žodis" {
		t.Errorf("%q, %v", v, err)
	}
	for _, empty := range [][]byte{nil, {}} {
		if err := s.Put(ctx, "x", []byte("again")); err != nil {
			t.Fatal(err)
		}
		if err := s.Put(ctx, "x", empty); err != nil {
			t.Fatal(err)
		}
		if v, err := s.Get(ctx, "x"); err != nil || v != nil {
			t.Errorf("after an empty value was put: got %q, %v, want none", v, err)
		}
	}
}

func testNotFound(t *testing.T, open Opener) {
	s := open(t)
	defer closeStore(t, s)
	u := mustParseURL(t, "http://nowhere/")
	if _, err := s.Page(context.Background(), u); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("page: %v", err)
	}
	mustAdd(t, s, "http://a/1", "http://b/2", "http://b/3")
	keys := []weburl.Key{mustParseURL(t, "http://b/2").Key(), u.Key(), mustParseURL(t, "http://a/1").Key(), mustParseURL(t, "http://b/2").Key()}
	pages, err := s.Records(context.Background(), keys)
	slices.SortFunc(pages, func(a, b store.Page) int { return strings.Compare(a.URL, b.URL) })
	if err != nil || len(pages) != 2 || pages[0].URL != "http://a/1" || pages[1].URL != "http://b/2" || pages[1].State != store.Queued {
		t.Errorf("records of two known keys and one that is not: %+v, %v", pages, err)
	}
	if pages, err = s.Records(context.Background(), nil); err != nil || len(pages) != 0 {
		t.Errorf("records of nothing: %+v, %v", pages, err)
	}
}

// A store has an ID of its own for as long as it lives, and another one after a
// copy was loaded into it.
func testID(t *testing.T, open Opener) {
	ctx := context.Background()
	id := func(s store.Store) string {
		t.Helper()
		if s.ID() == "" {
			t.Fatal("the store has no ID")
		}
		return s.ID()
	}
	s := open(t)
	first := id(s)
	closeStore(t, s)
	s = open(t)
	if got := id(s); got != first {
		t.Errorf("after a restart the ID is %s, want %s", got, first)
	}
	part := store.Part{Settings: []store.Setting{{Name: "x", Value: []byte("1")}}}
	if from, ok := s.(store.Source); ok { // the settings of a store hold no ID to be copied
		err := from.Settings(ctx, func(name string, value []byte) error {
			part.Settings = append(part.Settings, store.Setting{Name: name, Value: value})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, v := range part.Settings {
		if string(v.Value) == first {
			t.Errorf("the ID would be copied as %s", v.Name)
		}
	}
	if to, ok := s.(store.Target); ok {
		if err := errors.Join(to.Load(ctx, &part), to.Loaded(ctx)); err != nil {
			t.Fatal(err)
		}
		second := id(s)
		if second == first {
			t.Errorf("after a copy was loaded the ID is still %s", first)
		}
		closeStore(t, s)
		s = open(t)
		if got := id(s); got != second {
			t.Errorf("after another restart the ID is %s, want %s", got, second)
		}
	}
	closeStore(t, s)
}

// What tells a page's content from another is forgotten when its body is asked for
// again, also while a visit is under way that brings none.
func testRefetch(t *testing.T, open Opener) {
	s := open(t)
	ctx := context.Background()
	mustAdd(t, s, "http://a/rests", "http://a/out", "http://a/brings", "http://a/new")
	ask := func(now time.Time, urls ...string) {
		t.Helper()
		var f []store.Found
		for _, u := range urls {
			f = append(f, store.Found{URL: mustParseURL(t, u), Due: now, Refetch: true})
		}
		if n, err := s.Add(ctx, f); n != 0 || err != nil {
			t.Fatalf("added %d, %v", n, err)
		}
	}
	visit := func(p store.Page, now time.Time, changed bool) store.Visit {
		v := visitedPage(p, now, changed)
		v.Page.Digest, v.Page.Simhash, v.Page.ETag, v.Page.LastModified = [16]byte{1}, 7, `"e"`, "Mon"
		return v
	}
	check := func(url string, forgotten bool, due time.Time) {
		t.Helper()
		p, err := s.Page(ctx, mustParseURL(t, url))
		if err != nil {
			t.Fatal(err)
		}
		is := p.Digest == [16]byte{} && p.Simhash == 0 && p.ETag == "" && p.LastModified == ""
		not := p.Digest == [16]byte{1} && p.Simhash == 7 && p.ETag == `"e"` && p.LastModified == "Mon"
		if forgotten && !is || !forgotten && !not || p.Slot.Due.After(due) {
			t.Errorf("%s: %+v, want its body forgotten: %v, and due by %v", url, p, forgotten, due)
		}
	}
	l := mustClaim(t, s, start)
	b := &store.Batch{}
	for _, p := range mustTake(t, s, l, 9, start) {
		if p.URL != "http://a/new" {
			b.Visits = append(b.Visits, visit(p, start, true))
		}
	}
	mustCommit(t, s, l, b)
	mustRelease(t, s, l)
	ask(start.Add(time.Minute), "http://a/rests", "http://a/new", "http://a/rests")
	check("http://a/rests", true, start.Add(time.Minute))
	closeStore(t, s)
	s = open(t)
	defer func() { closeStore(t, s) }()
	check("http://a/rests", true, start.Add(time.Minute))

	later := start.Add(2 * time.Hour)
	l = mustClaim(t, s, later)
	pages := mustTake(t, s, l, 9, later)
	if len(pages) != 4 {
		t.Fatalf("took %s, want all", joinURLs(pages))
	}
	ask(later, "http://a/out", "http://a/brings")
	b = &store.Batch{}
	for _, p := range pages {
		if p.URL == "http://a/rests" && (p.Digest != [16]byte{} || p.ETag != "") {
			t.Errorf("taken with %+v, want its body forgotten", p)
		}
		b.Visits = append(b.Visits, visit(p, later, p.URL != "http://a/out"))
	}
	mustCommit(t, s, l, b)
	mustRelease(t, s, l)
	check("http://a/rests", false, later.Add(time.Hour))
	check("http://a/brings", false, later.Add(time.Hour))
	check("http://a/out", true, later.Add(time.Hour))
}
