package crawl

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/freshet/freshet/crawl/trap"
)

// Sitemap indexes that list indexes without end are followed to a bounded depth, counted as a
// trap, and the pages that are listed above it are fetched.
func TestNestedSitemapsEnd(t *testing.T) {
	t.Parallel()
	for _, contentType := range []string{"application/xml", "text/plain", ""} {
		t.Run(contentType, func(t *testing.T) {
			t.Parallel()
			var s *site
			index := func(w http.ResponseWriter, r *http.Request) {
				if contentType != "" {
					w.Header().Set("Content-Type", contentType)
				}
				fmt.Fprint(w, `<?xml version="1.0"?><sitemapindex>`)
				for i := range 3 {
					fmt.Fprintf(w, "<sitemap><loc>%s%s%d</loc></sitemap>", s.URL, r.URL.Path, i)
				}
				fmt.Fprint(w, "</sitemapindex>")
			}
			special := map[string]http.HandlerFunc{"/robots.txt": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, "Sitemap: %s/map\n", s.URL) }}
			var paths []string
			for level, at := 0, []string{"/map"}; level < 5; level++ {
				var next []string
				for _, path := range at {
					special[path] = index
					paths = append(paths, path)
					for i := range 3 {
						next = append(next, fmt.Sprint(path, i))
					}
				}
				at = next
			}
			s = newSite(t, map[string]string{"/": "start"}, special)
			robot := newRig(t).crawl(t, s.URL+"/")
			asked := 0
			for _, path := range paths {
				asked += min(1, s.count(path))
			}
			if want := 1 + 3 + 9; asked != want {
				t.Errorf("%d sitemaps were fetched, want %d: %s", asked, want, strings.Join(paths[:5], " "))
			}
			found := false
			for _, tr := range robot.Status().Traps {
				found = found || tr.Kind == trap.NestedSitemaps
			}
			if !found {
				t.Errorf("traps %+v, want %q among them", robot.Status().Traps, trap.NestedSitemaps)
			}
		})
	}
}
