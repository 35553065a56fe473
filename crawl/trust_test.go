package crawl

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/freshet/freshet/freshness/change"
)

// A sitemap that says at each look that all pages have just changed is heeded
// at first, then less and less; an honest one is heeded always. What was
// learned is in the host's record.
func TestSitemapThatLies(t *testing.T) {
	t.Parallel()
	const pages = 20
	for _, lies := range []bool{true, false} {
		t.Run(fmt.Sprintf("lies %v", lies), func(t *testing.T) {
			t.Parallel()
			version := 0
			special := map[string]http.HandlerFunc{"/map.xml": func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/xml")
				var b strings.Builder
				for i := range pages {
					fmt.Fprintf(&b, "<url><loc>/%d</loc><lastmod>%s</lastmod></url>", i, time.Now().Format(time.RFC3339Nano))
				}
				fmt.Fprintf(w, "<urlset>%s</urlset>", b.String())
			}}
			for i := range pages {
				special[fmt.Sprintf("/%d", i)] = func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "text/html")
					if lies {
						fmt.Fprint(w, "<title>t</title>the same for ever")
						return
					}
					fmt.Fprintf(w, "<title>t</title>version %d", version)
				}
			}
			s := newSite(t, nil, special)
			r := newRig(t)
			r.config.MinRevisit = time.Nanosecond
			var robot *Robot
			var visits []int
			for version = range 10 {
				s.forget()
				robot = r.crawl(t, s.URL+"/map.xml")
				n := 0
				for i := range pages {
					n += s.count(fmt.Sprintf("/%d", i))
				}
				visits = append(visits, n)
			}
			if visits[0] != pages || visits[1] != pages {
				t.Errorf("visits %v: the first notices were not heeded", visits)
			}
			// A source that was never right is tried now and then.
			if last := min(visits[8], visits[9]); lies && last > pages/2 || !lies && last != pages {
				t.Errorf("visits %v", visits)
			}
			known := 0
			robot.Trust(func(host, source string, tr change.Trust) {
				if source == dates && host == strings.TrimPrefix(s.URL, "http://") && tr.True+tr.False >= pages {
					known++
				}
			})
			if known != 1 {
				t.Error("nothing was learned of the sitemap")
			}
		})
	}
}
