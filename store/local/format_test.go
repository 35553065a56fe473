package local

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// testdata/format1 is a store as the robot left it when all records were JSON:
// 6 pages visited, 18 queued. It opens, tells the same, and can be worked on.
func TestFormat1(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	if err := os.CopyFS(dir, os.DirFS("testdata/format1")); err != nil {
		t.Fatal(err)
	}
	pages, links := readFormat1(t, dir)
	s, err := Open(dir, Config{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	got, gotLinks := map[string]store.Page{}, map[weburl.Key]int{}
	if err := s.Pages(ctx, func(p *store.Page) error { got[p.URL] = *p; return nil }); err != nil {
		t.Fatal(err)
	}
	if err := s.Links(ctx, func(k weburl.Key, to []weburl.Key) error { gotLinks[k] = len(to); return nil }); err != nil {
		t.Fatal(err)
	}
	if len(pages) != 24 || !reflect.DeepEqual(got, pages) {
		t.Errorf("pages are\n%+v\nwant\n%+v", got, pages)
	}
	if len(links) != 6 || !reflect.DeepEqual(gotLinks, links) {
		t.Errorf("links are %v, want %v", gotLinks, links)
	}
	if n := countVisits(t, s); n != 6 {
		t.Errorf("%d visits", n)
	}
	changes, err := s.Changes(ctx, 0, 100)
	if err != nil || len(changes) != 6 {
		t.Fatalf("changes: %+v, %v", changes, err)
	}
	for _, c := range changes {
		if c.Page.URL != c.URL || c.Page.State != store.OK || c.Time.IsZero() {
			t.Errorf("change %+v", c)
		}
	}
	visitAll(t, s, time.Now())
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(dir, Config{}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	st, err := s.Stats(ctx)
	if err != nil || st.URLs != 24 || st.States[store.OK] != 24 || st.New != 0 || st.Feed != 24 {
		t.Errorf("after visits of all: %+v, %v", st, err)
	}
	if n := countVisits(t, s); n != 24 {
		t.Errorf("%d visits", n)
	}
	if changes, err = s.Changes(ctx, 0, 100); err != nil || len(changes) != 24 {
		t.Errorf("%d changes, %v", len(changes), err)
	}
	if v, err := s.Get(ctx, "version"); err != nil || string(v) != formatVersion {
		t.Errorf("version %s, %v: the program before must refuse it", v, err)
	}
}

// readFormat1 reads the records with what wrote them, encoding/json, and counts
// the links of pages.
func readFormat1(t *testing.T, dir string) (map[string]store.Page, map[weburl.Key]int) {
	t.Helper()
	db, err := pebble.Open(dir, &pebble.Options{Logger: quiet{}})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	it, err := db.NewIter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	pages, links := map[string]store.Page{}, map[weburl.Key]int{}
	for ok := it.First(); ok; ok = it.Next() {
		k, v := it.Key(), it.Value()
		switch k[0] {
		case pageSpace:
			var p store.Page
			if err := json.Unmarshal(v, &p); err != nil {
				t.Fatal(err)
			}
			p.Key = weburl.Key(k[1:])
			pages[p.URL] = p
		case linkSpace:
			links[weburl.Key(k[1:])] = len(v) / 16
		}
	}
	return pages, links
}

func countVisits(t *testing.T, s *Store) (n int) {
	t.Helper()
	if err := s.Visits(t.Context(), time.Time{}, func(l *store.VisitLog) error {
		if l.URL != "" && l.Status == 200 {
			n++
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return n
}

// visitAll visits all new pages.
func visitAll(t *testing.T, s *Store, now time.Time) {
	t.Helper()
	ctx := context.Background()
	for {
		l, _, err := s.Claim(ctx, "n", now, time.Minute)
		if err != nil || l == nil {
			if err != nil {
				t.Fatal(err)
			}
			return
		}
		pages, err := s.Take(ctx, l, 7, now)
		if err != nil {
			t.Fatal(err)
		}
		b := store.Batch{Host: l.Host}
		for _, p := range pages {
			p.State, p.Status, p.Slot = store.OK, 200, store.Slot{Due: now.Add(time.Hour)}
			b.Visits = append(b.Visits, store.Visit{Page: p, Changed: true, Arrived: now})
		}
		if _, err := s.Commit(ctx, l, &b); err != nil {
			t.Fatal(err)
		}
		if err := s.Release(ctx, l); err != nil {
			t.Fatal(err)
		}
	}
}

// Pages under a key that their URL does not name are taken out of a store of an earlier
// format, with their places in the queue, and texts without reasons get them.
func TestFormat2(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	s, err := Open(dir, Config{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	good, err := weburl.Parse("http://a/good")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Add(ctx, []store.Found{{URL: good, Order: 1}}); err != nil {
		t.Fatal(err)
	}
	k, b := good.Key(), s.db.NewBatch()
	set := func(p store.Page) {
		k[15]++
		v, err := appendPage(nil, &p)
		if err := errors.Join(err, b.Set(pageKey(k), v, nil), b.Set(slotKey(k, p.Slot), nil, nil)); err != nil {
			t.Fatal(err)
		}
	}
	for _, bad := range []string{"http://a/a/../b", "http://a/x/./y", "http://xn--i~-rub.a/", "no URL"} {
		set(store.Page{URL: bad, State: store.Queued, Slot: store.Slot{Order: 1}})
	}
	for text, st := range map[string]store.State{"robots.txt cannot be had": store.Failed, "source taken back": store.Excluded, "mirror of b": store.Excluded, "calendar": store.Excluded, "dial: refused": store.Failed} {
		u, err := weburl.Parse("http://a/" + url.PathEscape(text))
		if err != nil {
			t.Fatal(err)
		}
		k = u.Key()
		k[15]--
		set(store.Page{URL: u.String(), State: st, Error: text, Slot: store.Slot{Due: time.Now().Add(time.Hour)}})
	}
	if err := errors.Join(b.Set(metaKey("version"), []byte("2"), nil), b.Commit(pebble.Sync), s.Close()); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(dir, Config{}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if st, err := s.Stats(ctx); err != nil || st.URLs != 6 || st.New != 1 {
		t.Errorf("stats %+v, %v, want 6 URLs of which 1 is new", st, err)
	}
	want := map[string]store.Reason{
		"robots.txt cannot be had": store.ReasonRobotsUnavailable, "source taken back": store.ReasonSourceRemoved, "mirror of b": store.ReasonMirror, "calendar": "calendar", "dial: refused": store.ReasonNoAnswer, "": "",
	}
	if err := s.Pages(ctx, func(p *store.Page) error {
		if p.Reason != want[p.Error] {
			t.Errorf("%s: reason %q, want %q", p.Error, p.Reason, want[p.Error])
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	visitAll(t, s, time.Now())
}
