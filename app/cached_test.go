package app

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/freshet/freshet/config"
)

// Pages whose authors want no copies are found, where that is allowed, and have
// none; what is not HTML cannot run in the console's origin.
func TestCopies(t *testing.T) {
	t.Parallel()
	header := map[string]string{"/h-noarchive": "noarchive", "/h-none": "none", "/h-other": "otherbot: noarchive", "/h-mine": "freshet: noarchive", "/h-gone": "unavailable_after: 1 Jan 2020 00:00:00 GMT", "/h-later": "unavailable_after: 1 Jan 2199 00:00:00 GMT"}
	meta := map[string]string{"/m-noarchive": "NOARCHIVE, nofollow", "/m-noindex": "noindex", "/m-all": "all"}
	types := map[string]string{"/a.js": "text/javascript", "/a.txt": "text/plain; charset=utf-8"}
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if v := header[r.URL.Path]; v != "" {
			w.Header().Set("X-Robots-Tag", v)
		}
		if v := types[r.URL.Path]; v != "" {
			w.Header().Set("Content-Type", v)
			fmt.Fprint(w, "alert(1) // heron script "+r.URL.Path)
			return
		}
		fmt.Fprintf(w, "<title>%s</title>", r.URL.Path)
		if v := meta[r.URL.Path]; v != "" {
			fmt.Fprintf(w, `<meta name="robots" content="%s">`, v)
		}
		fmt.Fprintf(w, "<p>heron at %s", r.URL.Path)
		if r.URL.Path == "/" {
			for _, set := range []map[string]string{header, meta, types} {
				for path := range set {
					fmt.Fprintf(w, `<a href="%s">x</a>`, path)
				}
			}
		}
	}))
	defer site.Close()
	c := config.Default()
	c.Sources = []config.Source{{URL: site.URL + "/"}}
	_, address := start(t, c, t.TempDir())
	eventually(t, "all pages are fetched", func() bool {
		_, s := get(t, address+"/api/status")
		return strings.Contains(s, fmt.Sprintf(`"pages":%d,`, 1+len(header)+len(meta)+len(types)))
	})
	for path, want := range map[string]int{
		"/": 200, "/h-other": 200, "/h-later": 200, "/m-all": 200, "/a.js": 200, "/a.txt": 200,
		"/h-noarchive": 404, "/h-none": 404, "/h-mine": 404, "/h-gone": 404, "/m-noarchive": 404, "/m-noindex": 404,
	} {
		res, err := http.Get(address + "/cached?url=" + url.QueryEscape(site.URL+path))
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, res.StatusCode, want)
		}
		if want != 200 {
			continue
		}
		h := res.Header
		if types[path] != "" && !strings.HasPrefix(h.Get("Content-Type"), "text/plain") {
			t.Errorf("%s is served as %s", path, h.Get("Content-Type"))
		}
		if h.Get("X-Content-Type-Options") != "nosniff" || !strings.HasPrefix(h.Get("Content-Security-Policy"), "sandbox;") || h.Get("Cross-Origin-Resource-Policy") != "same-origin" || h.Get("X-Robots-Tag") == "" {
			t.Errorf("%s: headers %v", path, h)
		}
	}
}
