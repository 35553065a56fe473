package crawl

import (
	"fmt"
	"math/rand/v2"
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
			for version = range 8 {
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
			if last := visits[len(visits)-1]; lies && last > pages/2 || !lies && last != pages {
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

// The memory of signals and of trust is bounded, and a source that is always
// wrong is let through one time in twenty.
func TestSignalsBounded(t *testing.T) {
	t.Parallel()
	s := signals{random: rand.New(rand.NewPCG(1, 2)).Float64}
	u := func(i int) weburl.URL {
		v, err := weburl.Parse(fmt.Sprintf("http://h%d.example/%d", i%3, i))
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for i := range 3 * signalsKept {
		s.accept("x", u(i))
	}
	if n := len(s.now) + len(s.old); n > 2*signalsKept {
		t.Errorf("%d signals are kept", n)
	}
	if s.take(u(3*signalsKept-1).Key()) != "x" || s.take(u(3*signalsKept-1).Key()) != "" {
		t.Error("the last signal is not given once")
	}
	s.learned("h0.example", map[string]change.Trust{"liar": {False: 1000}})
	taken := 0
	for i := range 3000 {
		if s.accept("liar", u(3*i)) {
			taken++
		}
	}
	if taken < 100 || taken > 220 {
		t.Errorf("%d of 3000 signals of a liar were taken, want about 150", taken)
	}
	if !s.accept("liar", u(1)) {
		t.Error("its other host's pages suffer")
	}
}
