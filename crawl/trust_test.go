package crawl

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/freshet/freshet/change"
	"github.com/freshet/freshet/weburl"
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

// The memory of signals and of trust is bounded; a signal is given once, and not
// to a visit that had begun before it.
func TestSignalsBounded(t *testing.T) {
	t.Parallel()
	var s signals
	now := time.Now()
	u := func(i int) weburl.Key { return mustParse(t, fmt.Sprintf("http://h%d.example/%d", i%3, i)).Key() }
	for i := range 3 * signalsKept {
		s.add("x", u(i), 1, now)
	}
	if n := len(s.now) + len(s.old); n > 2*signalsKept {
		t.Errorf("%d signals are kept", n)
	}
	last := u(3*signalsKept - 1)
	if got := s.add("y", last, 2, now).evidence; got != 3 {
		t.Errorf("two signals say %g, want 3", got)
	}
	if got := s.take(last); got.count != 0 {
		t.Errorf("a visit that began before the signals has %+v", got)
	}
	s.ask(last)
	s.add("z", last, 4, now) // comes while the page is fetched
	if a, b := s.take(last), s.take(last); a.count != 2 || a.evidence != 3 || b.count != 0 {
		t.Errorf("the visit is for %+v, then for %+v", a, b)
	}
	s.ask(last)
	if c, d := s.take(last), s.take(last); c.source != "z" || c.count != 1 || c.evidence != 4 || d.count != 0 {
		t.Errorf("the next visit is for %+v, then for %+v", c, d)
	}
	for i := range trustedKept + 5 {
		s.learned(fmt.Sprint(i), map[string]change.Trust{"liar": {False: 1000, Watched: 1}}, change.DefaultPrior)
	}
	if len(s.hosts) > trustedKept {
		t.Errorf("%d hosts are kept", len(s.hosts))
	}
	liar := s.heard(fmt.Sprint(trustedKept + 4)).trust["liar"]
	if e := evidence(change.Trust{True: 1, Watched: 5}); e < math.Ln2 {
		t.Errorf("the second signal of a source that was right says %g", e)
	}
	if e := evidence(liar); e > .01 {
		t.Errorf("a liar's signal says %g", e)
	}
	if e := evidence(change.Trust{}); e < math.Ln2 {
		t.Errorf("a signal of an unknown source says %g", e)
	}
}
