package crawl

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// A server that ignores conditions is asked by HEAD first, once that was seen a
// few times, which spares its bodies; a page that changes is fetched all the
// same. One that heeds conditions, whose validators say nothing, whose pages are
// short, or that knows no HEAD, is asked as ever.
func TestHeadFirst(t *testing.T) {
	t.Parallel()
	const rounds = 12
	long, short := strings.Repeat("a sentence that is here to stay ", 1000), "short"
	for _, tt := range []struct {
		name          string
		body          string
		heeds, refuse bool // conditions, HEAD
		lies          bool // each answer is another, with the same validator
		heads         bool // are wanted
	}{
		{"ignores", long, false, false, false, true},
		{"heeds", long, true, false, false, false},
		{"short", short, false, false, false, false},
		{"lies", long, false, false, true, false},
		{"refuses", long, false, true, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var heads, bytes, answers atomic.Int64
			var version atomic.Int64
			s := newSite(t, nil, map[string]http.HandlerFunc{"/": func(w http.ResponseWriter, r *http.Request) {
				tag := fmt.Sprintf("%q", fmt.Sprint(version.Load()))
				w.Header().Set("ETag", tag)
				w.Header().Set("Content-Type", "text/html")
				if r.Method == http.MethodHead {
					heads.Add(1)
					if tt.refuse {
						w.WriteHeader(http.StatusMethodNotAllowed)
					}
					return
				}
				if tt.heeds && r.Header.Get("If-None-Match") == tag {
					w.WriteHeader(http.StatusNotModified)
					return
				}
				n, _ := fmt.Fprintf(w, "<title>t</title>%s version %d", tt.body, version.Load())
				if tt.lies {
					m, _ := fmt.Fprintf(w, " answer%d", answers.Add(1))
					n += m
				}
				bytes.Add(int64(n))
			}})
			r := newRig(t)
			for range rounds {
				r.crawl(t, s.URL+"/")
			}
			p := r.page(t, s.URL+"/")
			if p.Digest == [16]byte{} || p.Failures != 0 {
				t.Errorf("%+v", p)
			}
			t.Logf("%d HEAD, %d bytes of bodies", heads.Load(), bytes.Load())
			switch n := heads.Load(); {
			case tt.heads && (n < rounds/2 || bytes.Load() > int64(rounds/2*len(long))):
				t.Errorf("%d HEAD, %d bytes", n, bytes.Load())
			case tt.refuse && n > 1, !tt.heads && !tt.refuse && n > 0:
				t.Errorf("%d HEAD", n)
			}
			if !tt.heads {
				return
			}
			version.Store(1)
			r.crawl(t, s.URL+"/")
			if q := r.page(t, s.URL+"/"); q.Digest == p.Digest || q.ETag == p.ETag {
				t.Error("the change behind a HEAD was not fetched")
			}
		})
	}
}
