package postgres

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/freshet/freshet/archive"
	"github.com/freshet/freshet/freshness/change"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/store/dump"
	"github.com/freshet/freshet/store/local"
	"github.com/freshet/freshet/weburl"
)

// image is all that a store holds, record by record, in one order.
func image(t *testing.T, s store.Source) []string {
	t.Helper()
	var out []string
	add := func(kind string, v any) error {
		b, err := json.Marshal(v)
		out = append(out, kind+" "+string(b))
		return err
	}
	ctx := context.Background()
	err := errors.Join(
		s.Hosts(ctx, func(h *store.Host) error { return add("host", h) }),
		s.Pages(ctx, func(p *store.Page) error {
			p.Slot.Due = p.Slot.Due.UTC()
			return add("page", p)
		}),
		s.Links(ctx, func(k weburl.Key, to []weburl.Key) error { return add("links", store.PageLinks{From: k, To: to}) }),
		s.Visits(ctx, time.Time{}, func(v *store.VisitLog) error {
			v.Time = v.Time.UTC()
			return add("visit", v)
		}),
		s.Settings(ctx, func(name string, value []byte) error { return add("setting", store.Setting{Name: name, Value: value}) }),
	)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out
}

// grown fills a store by some random work: pages of every state, revisits,
// queued pages, links, settings.
func grown(t *testing.T, s store.Store, begin time.Time) {
	t.Helper()
	ctx := context.Background()
	r := rand.New(rand.NewPCG(3, 4))
	link := func() weburl.URL { return parse(t, fmt.Sprintf("http://h%d.example/%d?q=ž", r.IntN(7), r.IntN(400))) }
	if _, err := s.Add(ctx, []store.Found{{URL: link(), Order: 1}}); err != nil {
		t.Fatal(err)
	}
	for step := range 60 {
		now := begin.Add(time.Duration(step) * time.Minute)
		l, _, err := s.Claim(ctx, "n", now, ttl)
		if err != nil {
			t.Fatal(err)
		}
		if l == nil {
			continue
		}
		pages, err := s.Take(ctx, l, 6, now)
		if err != nil {
			t.Fatal(err)
		}
		b := &store.Batch{Host: l.Host}
		b.Host.Next, b.Host.Delay, b.Host.Fetched = now.Add(time.Second), time.Second, l.Host.Fetched+1
		for _, p := range pages {
			p.State = []store.State{store.OK, store.OK, store.Redirect, store.Gone, store.Blocked, store.Failed, store.Excluded}[r.IntN(7)]
			p.Status, p.Title, p.Simhash, p.Bytes, p.Digest = 200, "Žąsys", r.Uint64(), 123, [16]byte{1, 2}
			p.Body = archive.Position{File: "x.warc.gz", Offset: int64(r.IntN(1000))}
			p.History.Observe(now, true, change.DefaultPrior)
			p.Slot = store.Slot{Due: now.Add(time.Duration(1+r.IntN(300)) * time.Minute)}
			if p.State == store.Excluded {
				p.Slot = store.Slot{}
			}
			v := store.Visit{Page: p, Changed: r.IntN(2) == 0, Arrived: now.Add(time.Duration(r.IntN(1000)) * time.Millisecond), Took: time.Millisecond}
			for range 4 {
				f := store.Found{URL: link(), Order: uint64(1 + r.IntN(9)), Depth: p.Depth + 1, From: p.URL}
				v.Links = append(v.Links, f.URL.Key())
				b.Found = append(b.Found, f)
			}
			b.Visits = append(b.Visits, v)
		}
		if _, err := s.Commit(ctx, l, b); err != nil {
			t.Fatal(err)
		}
		if err := s.Release(ctx, l); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Put(ctx, "greeting", []byte("labas\x00")); err != nil {
		t.Fatal(err)
	}
}

func openLocal(t *testing.T) *local.Store {
	t.Helper()
	s, err := local.Open(filepath.Join(t.TempDir(), "store"), local.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// A store copied from one engine to the other, back, and through a file, is the
// same store: record by record, by its counters, and by what is claimed next.
func TestCopy(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	begin := time.Now().Add(-2 * time.Hour).UTC().Truncate(time.Millisecond)
	first := openLocal(t)
	grown(t, first, begin)
	want := image(t, first)
	wantStats, err := first.Stats(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if wantStats.URLs < 100 || wantStats.New == 0 || len(wantStats.States) < 6 {
		t.Fatalf("the store to be copied is too simple: %+v", wantStats)
	}
	shared, back, restored := open(t, cluster.Database(t), Config{Node: "n"}), openLocal(t), open(t, cluster.Database(t), Config{Node: "n"})
	copied := func(from store.Source, to store.Target) {
		t.Helper()
		n, err := store.Copy(ctx, from, to, nil)
		if err != nil || n.Pages != wantStats.URLs || n.Hosts != wantStats.Hosts {
			t.Fatalf("copied %+v, %v", n, err)
		}
	}
	copied(first, shared)
	snapshot, err := shared.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer snapshot.Close(ctx)
	copied(snapshot, back)
	var file bytes.Buffer
	w, err := dump.NewWriter(&file, begin)
	if err != nil {
		t.Fatal(err)
	}
	copied(back, w)
	if _, err := dump.Restore(ctx, bytes.NewReader(file.Bytes()), restored, nil); err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]interface {
		store.Store
		store.Source
	}{"PostgreSQL": shared, "back": back, "restored": restored} {
		if got := image(t, s); !slices.Equal(got, want) {
			for i := range min(len(got), len(want)) {
				if got[i] != want[i] {
					t.Errorf("%s: record %d is\n%s, want\n%s", name, i, got[i], want[i])
					break
				}
			}
			t.Errorf("%s: %d records, want %d", name, len(got), len(want))
		}
		st, err := s.Stats(ctx)
		st.Feed = wantStats.Feed
		if err != nil || !reflect.DeepEqual(st, wantStats) {
			t.Errorf("%s: stats %+v, %v; want %+v", name, st, err, wantStats)
		}
		pages := int64(0)
		late := time.Now().Add(24 * time.Hour)
		for {
			l, _, err := s.Claim(ctx, "n", late, ttl)
			if err != nil {
				t.Fatal(err)
			}
			if l == nil {
				break
			}
			got, err := s.Take(ctx, l, 1000, late)
			if err != nil {
				t.Fatal(err)
			}
			pages += int64(len(got))
		}
		if left := st.URLs - st.States[store.Excluded]; pages != left {
			t.Errorf("%s: %d pages can be visited, want %d", name, pages, left)
		}
	}
	if _, err := store.Copy(ctx, first, restored, nil); !errors.Is(err, store.ErrNotEmpty) {
		t.Errorf("into a full database: %v", err)
	}
	if _, err := store.Copy(ctx, shared, back, nil); !errors.Is(err, store.ErrNotEmpty) {
		t.Errorf("into a full store: %v", err)
	}
}
