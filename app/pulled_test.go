package app

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/freshet/freshet/config"
	"github.com/freshet/freshet/signal"
)

// What a sitemap, a feed, or a list of ResourceSync dates later than our last
// visit is visited again at once, new pages are found, and what a change list
// says is deleted is taken out; pages that the list says nothing new of are left
// in peace.
func TestPulledNotices(t *testing.T) {
	t.Parallel()
	const rs = `xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/"`
	entry := func(form, page string, at time.Time, change string) string {
		date := at.UTC().Format(time.RFC3339Nano)
		switch form {
		case "sitemap":
			return fmt.Sprintf("<url><loc>%s</loc><lastmod>%s</lastmod></url>", page, date)
		case "feed":
			return fmt.Sprintf(`<entry><link href="%s"/><updated>%s</updated></entry>`, page, date)
		case "resourcelist":
			return fmt.Sprintf(`<url><loc>%s</loc><lastmod>%s</lastmod><rs:md hash="md5:1" length="8"/></url>`, page, date)
		}
		return fmt.Sprintf(`<url><loc>%s</loc><rs:md change="%s" datetime="%s"/></url>`, page, change, date)
	}
	around := map[string]string{
		"sitemap":      `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">%s</urlset>`,
		"feed":         `<feed xmlns="http://www.w3.org/2005/Atom">%s</feed>`,
		"resourcelist": `<urlset ` + rs + `><rs:ln rel="up" href="/caps.xml"/><rs:md capability="resourcelist" at="2026-01-01T00:00:00Z"/>%s</urlset>`,
		"changelist":   `<urlset ` + rs + `><rs:ln rel="up" href="/caps.xml"/><rs:md capability="changelist" from="2026-01-01T00:00:00Z"/>%s</urlset>`,
	}
	for form := range around {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			entries := ""
			pages := map[string]string{"/a": "heron", "/b": "bittern", "/c": "egret"}
			asked := map[string]int{}
			site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				asked[r.URL.Path]++
				if r.URL.Path == "/list" {
					w.Header().Set("Content-Type", "application/xml")
					fmt.Fprintf(w, around[form], entries)
					return
				}
				text, ok := pages[r.URL.Path]
				if !ok {
					http.NotFound(w, r)
					return
				}
				w.Header().Set("Content-Type", "text/html")
				fmt.Fprintf(w, "<title>T</title><p>%s", text)
			}))
			defer site.Close()
			old := time.Now().Add(-time.Hour)
			for _, p := range []string{"/a", "/b", "/c"} {
				entries += entry(form, p, old, "created")
			}
			c := config.Default()
			c.Crawl.MinRevisit = time.Millisecond // it bounds what dates can do
			c.Sources = []config.Source{{URL: site.URL + "/list", AllowPrivate: true}}
			n, address := start(t, c, t.TempDir())
			finds := func(word, page string) func() bool {
				return func() bool {
					_, s := get(t, address+"/api/search?q="+word)
					return strings.Contains(s, `"url":"`+site.URL+page)
				}
			}
			eventually(t, "the pages are found", func() bool { return finds("heron", "/a")() && finds("bittern", "/b")() && finds("egret", "/c")() })
			mu.Lock()
			pages["/a"], pages["/new"] = "pelican", "cormorant"
			delete(pages, "/b")
			now := time.Now()
			entries = entry(form, "/a", now, "updated") + entry(form, "/b", now, "deleted") + entry(form, "/new", now, "created") + entry(form, "/c", old, "created") + entry(form, "/never", now, "deleted")
			before := asked["/c"]
			mu.Unlock()
			if _, err := n.Changed(t.Context(), "test", []signal.Event{{URL: site.URL + "/list"}}); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the change is found", finds("pelican", "/a"))
			eventually(t, "the new page is found", finds("cormorant", "/new"))
			eventually(t, "the deleted page is not found", func() bool { return !finds("bittern", "/b")() })
			mu.Lock()
			defer mu.Unlock()
			if asked["/c"] != before {
				t.Errorf("the page that did not change was asked for %d times, before %d", asked["/c"], before)
			}
			if form == "changelist" && asked["/never"] > 0 {
				t.Error("a page that we never had was asked for, for it is deleted")
			}
		})
	}
}
