package crawl

import (
	"context"
	"log/slog"
	"math"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/freshet/freshet/freshness/change"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// Links whose canonical form was another page's, or none: the robot visits what they name and
// goes on, at each start.
func TestOddLinksEndNothing(t *testing.T) {
	t.Parallel()
	odd := []string{"/a/..;jsessionid=1/b", "/x/%2e;sid=12345678/y", "..;jsessionid=ABC", "/q/.;phpsessid=1", "http://İ~.localhost/", "http://İ^/", "/%;sid=1;2e%2e/z"}
	s := newSite(t, map[string]string{"/": link(append(odd, "/good")...), "/good": link(), "/b": link("/c"), "/c": link()}, nil)
	r := newRig(t)
	r.scope = "any"
	for start := range 2 {
		r.crawl(t, s.URL+"/")
		for _, path := range []string{"/good", "/b", "/c"} {
			if s.count(path) != 1 {
				t.Errorf("start %d: %s was asked for %d times, want once", start+1, path, s.count(path))
			}
		}
	}
	if err := r.store.Pages(t.Context(), func(p *store.Page) error {
		if !p.IsNamed() {
			t.Errorf("%q is stored under the key of another URL", p.URL)
		}
		if p.State == store.Queued {
			t.Errorf("%q was never visited", p.URL)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// spoiler is a store before which some pages' records, and once a host's, get what cannot be
// kept.
type spoiler struct {
	store.Store
	hosts atomic.Int32
}

func (s *spoiler) Commit(ctx context.Context, l *store.Lease, b *store.Batch) (int, error) {
	for i := range b.Visits {
		if p := &b.Visits[i].Page; strings.Contains(p.URL, "/bad") && p.Reason == "" {
			p.History.Time = math.NaN()
		}
	}
	if len(b.Host.Robots) > 0 && s.hosts.Add(1) == 1 {
		g := b.Host.Groups[""]
		g.Time = math.Inf(1)
		b.Host.Groups = map[string]change.Group{"": g}
	}
	return s.Store.Commit(ctx, l, b)
}

// A record that cannot be stored costs its page, with a reason, a line in the log and a
// count; the other pages of the batch are stored, and the robot goes on.
func TestRecordThatCannotBeStored(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"/": link("/bad1", "/good1", "/bad2", "/good2"), "/bad1": link("/from-bad"), "/bad2": link(), "/good1": link(), "/good2": link(), "/from-bad": link()}, nil)
	r := newRig(t)
	var log strings.Builder
	u, err := weburl.Parse(s.URL + "/")
	if err != nil {
		t.Fatal(err)
	}
	scope, err := NewScope(u, "host", 0, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := r.config
	c.Store, c.Archive, c.Agents, c.Log = &spoiler{Store: r.store}, r.archive, 1, slog.New(slog.NewTextHandler(&log, nil))
	c.Scopes.Add(scope)
	if _, err := r.store.Add(t.Context(), []store.Found{{URL: u, Order: 1}}); err != nil {
		t.Fatal(err)
	}
	robot := New(c)
	if err := robot.Run(t.Context()); err != nil {
		t.Fatalf("the robot ended: %v", err)
	}
	for path, want := range map[string]store.State{"/": store.OK, "/good1": store.OK, "/good2": store.OK, "/bad1": store.Excluded, "/bad2": store.Excluded, "/from-bad": store.OK} {
		if p := r.page(t, s.URL+path); p.State != want || want == store.Excluded && (p.Reason != store.ReasonBadRecord || p.Error == "" || p.Slot.Due.IsZero()) {
			t.Errorf("%s: %s, reason %q (%s), due %v, want %s", path, p.State, p.Reason, p.Error, p.Slot.Due, want)
		}
	}
	if n := robot.Status().Skipped[store.ReasonBadRecord]; n != 3 {
		t.Errorf("%d records were counted, want 2 pages and 1 host", n)
	}
	for _, want := range []string{"/bad1", "/bad2", "reason=" + string(store.ReasonBadRecord), "host's record"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not name %q:\n%s", want, log.String())
		}
	}
}
