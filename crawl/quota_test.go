package crawl

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// A host that grows the archive without end rests for what is left of the day; others go on.
func TestHostBytesDay(t *testing.T) {
	t.Parallel()
	body := strings.Repeat("words and words ", 4<<10) // 64 KiB
	var n atomic.Int32
	endless := newSite(t, nil, nil)
	endless.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		i := n.Add(1)
		fmt.Fprintf(w, "<p>%d %s%s", i, body, link(fmt.Sprintf("/x%d", 2*i), fmt.Sprintf("/x%d", 2*i+1)))
	})
	other := newSite(t, map[string]string{"/": link("/a"), "/a": "<p>" + body}, nil)
	r := newRig(t)
	r.config.HostBytesDay = 5 * int64(len(body))
	c := r.config
	c.Store, c.Archive, c.Once = r.store, r.archive, false
	for _, seed := range []string{endless.URL + "/", other.URL + "/"} {
		scope, err := NewScope(mustParse(t, seed), "host", 0, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		c.Scopes.Add(scope)
		if _, err := r.store.Add(t.Context(), []store.Found{{URL: scope.Seed, Order: 1}}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	robot := New(c)
	ended := make(chan error, 1)
	go func() { ended <- robot.Run(ctx) }()
	for ctx.Err() == nil && (robot.Status().Skipped[store.ReasonStorageQuota] == 0 || other.count("/a") == 0) {
		time.Sleep(10 * time.Millisecond)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if got := n.Load(); got < 5 || got > 6 {
		t.Errorf("%d bodies of the endless host were kept, want 5 or 6", got)
	}
	if p := r.page(t, other.URL+"/a"); p.State != store.OK {
		t.Errorf("the other host's page is %s, want ok", p.State)
	}
	if robot.Status().Skipped[store.ReasonStorageQuota] == 0 {
		t.Error("nothing was counted")
	}
	if err := r.store.Hosts(t.Context(), func(h *store.Host) error {
		rests := time.Until(h.Next)
		if full := h.Kept >= r.config.HostBytesDay; full != (h.Reason == store.ReasonStorageQuota) || full && (rests < 23*time.Hour || rests > 24*time.Hour) {
			t.Errorf("%s kept %d bytes, reason %q, rests for %v", h.Name, h.Kept, h.Reason, rests)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	h := store.Host{Name: "h", Kept: 1 << 40, KeptSince: time.Now().Add(-25 * time.Hour)}
	if robot.restForQuota(&h, robot.config.HostBytesDay, time.Now()) {
		t.Error("the host rests though its day is over")
	}
	if countKept(&h, 7, time.Now()); h.Kept != 7 {
		t.Errorf("%d bytes on a new day, want 7", h.Kept)
	}
}

// Dates in a sitemap count for its own host, and for hosts whose robots.txt names it.
func TestSitemapSpeaksFor(t *testing.T) {
	t.Parallel()
	r := New(Config{Canon: weburl.DefaultCanon})
	a := testAgent(r, store.Host{Name: "maps.example"})
	sitemap := mustParse(t, "https://maps.example/s.xml?x=1")
	for i, tt := range []struct {
		page, robots string
		want         bool
	}{
		{"http://maps.example/page", "", true},
		{"https://stranger.example/page", "", false},
		{"https://other.example/page", "Sitemap: https://maps.example/another.xml\n", false},
		{"https://named.example/page", "Sitemap: https://maps.example/s.xml?x=1\n", true},
		{"https://session.example/page", "Sitemap: https://maps.example/s.xml?x=1&PHPSESSID=0123456789\n", true},
		{"http://named.example/page", "", false}, // of another scheme
	} {
		page := mustParse(t, tt.page)
		if tt.robots != "" {
			a.access.UseRobots(page, &store.Robots{Scheme: page.Scheme(), Status: 200, Body: []byte(tt.robots), Fetched: time.Unix(int64(i), 0)})
		}
		if got := a.links.countsDatesOf(sitemap, page); got != tt.want {
			t.Errorf("%s counts for %s: %v, want %v", sitemap, page, got, tt.want)
		}
	}
}

// A stranger's sitemap that says that a page has just changed has it visited no sooner.
func TestForeignSitemap(t *testing.T) {
	t.Parallel()
	page := newSite(t, map[string]string{"/page": "<p>static"}, nil)
	stranger := newSite(t, nil, map[string]http.HandlerFunc{"/sitemap.xml": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/xml")
		fmt.Fprintf(w, `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>%s/page</loc><lastmod>%s</lastmod></url></urlset>`, page.URL, time.Now().Format(time.RFC3339Nano))
	}})
	r := newRig(t)
	r.config.MinRevisit = time.Nanosecond
	r.crawl(t, page.URL+"/page")
	for range 3 {
		r.again(t, stranger.URL+"/sitemap.xml")
	}
	if got := page.count("/page"); got != 1 || stranger.count("/sitemap.xml") != 3 {
		t.Errorf("the page was asked for %d times, the sitemap %d times, want 1 and 3", got, stranger.count("/sitemap.xml"))
	}
}

// MinRevisit bounds how often dates in sitemaps have a page visited.
func TestDatesKeepMinRevisit(t *testing.T) {
	t.Parallel()
	r := New(Config{MinRevisit: 5 * time.Minute})
	last := time.Now()
	for _, tt := range []struct {
		source string
		due    time.Time
		want   time.Time
	}{
		{dates, last.Add(time.Second), last.Add(5 * time.Minute)},
		{dates, last.Add(time.Hour), last.Add(time.Hour)},
		{dates, time.Time{}, time.Time{}},
		{"indexnow", last.Add(time.Second), last.Add(time.Second)},
	} {
		if got := r.notBefore(tt.source, tt.due, last); !got.Equal(tt.want) {
			t.Errorf("%s, due after %v: %v, want after %v", tt.source, tt.due.Sub(last), got.Sub(last), tt.want.Sub(last))
		}
	}
}

// Orders by the time of finding go on behind those of an earlier process.
func TestOrdersGoOn(t *testing.T) {
	t.Parallel()
	for name, rises := range map[string]bool{"found": true, "depth-first": false} {
		var last uint64
		for start := range 3 {
			o := Orderings()[name]()
			for i := range 1000 {
				order := o.Order(nil)
				if (start > 0 || i > 0) && (order > last) != rises {
					t.Fatalf("%s: start %d, URL %d: order %d after %d", name, start+1, i, order, last)
				}
				last = order
			}
			time.Sleep(2 * time.Millisecond) // more than a thousand numbers
		}
	}
}

// A validator that cannot be sent back byte for byte is not sent at all.
func TestValidators(t *testing.T) {
	t.Parallel()
	var asked atomic.Value
	s := newSite(t, nil, map[string]http.HandlerFunc{"/": func(w http.ResponseWriter, r *http.Request) {
		asked.Store(r.Header.Get("If-None-Match"))
		w.Header().Set("ETag", "\"\xe4\"")
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<p>words")
	}})
	r := newRig(t)
	r.crawl(t, s.URL+"/")
	r.again(t, s.URL+"/")
	if got := asked.Load(); got != "" || s.count("/") != 2 {
		t.Errorf("asked %d times, with If-None-Match %q, want none", s.count("/"), got)
	}
}

// With Noise, many small differences add up to a change.
func TestSlowDriftIsAChange(t *testing.T) {
	t.Parallel()
	words := strings.Fields(strings.Repeat("alpha beta gamma delta epsilon zeta eta theta iota kappa ", 12))
	for i := range words {
		words[i] += fmt.Sprint(i)
	}
	var turn atomic.Int32
	s := newSite(t, nil, map[string]http.HandlerFunc{"/": func(w http.ResponseWriter, _ *http.Request) {
		now := append([]string(nil), words...)
		for i := range int(turn.Load()) {
			now[i] = fmt.Sprintf("other%d", i)
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "<title>t</title><p>%s", strings.Join(now, " "))
	}})
	r := newRig(t)
	r.config.Noise = 6
	r.crawl(t, s.URL+"/")
	changes := 0
	for range 60 {
		turn.Add(2)
		if len(r.again(t, s.URL+"/")) > 0 {
			changes++
		}
	}
	if changes == 0 || changes > 40 {
		t.Errorf("%d of 60 small differences were a change, want few but some", changes)
	}
}
