package attack

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
)

// linkAttacks are sites whose links are the weapon: URLs that are read in two
// ways, that name the same page again and again, or that lead on without end.
func linkAttacks() []attack {
	return []attack{
		{
			name: "session-in-dots", what: "links whose path has dot segments once a session id is cut out",
			links: []string{
				"..;jsessionid=ABC", "/a/..;sid=1/b", "/x/%2e;sid=1/y", "/x/%2E%2e;PHPSESSID=0/z", "/a/.;jsessionid=1/./b", ";jsessionid=1",
				"/%2e%2e;sid=2/..;sid=3/", "/a;jsessionid=1;jsessionid=2/..", "/..;sid=/..;sid=", "/a/b;sid=../c", "?;jsessionid=..", "/./;sid=1?sid=1&PHPSESSID=2",
			},
		},
		{
			name: "odd-urls", what: "links that are no URLs, or just so",
			links: []string{
				"http://[::", "http://a b/", "//", "///", "http:///x", "/%", "/%zz", "/\x00", "/\x01\x02", "\\\\host\\x", "http:x", "?", "#", "javascript:void(0)", "data:text/html,x",
				"http://user:pass@/", "http://127.66.0.999/", "http://" + strings.Repeat("a", 300) + "/", "/" + strings.Repeat("a", 100_000), "/" + strings.Repeat("a/", 5000),
				"/caf\u00e9", "/\ufffd\ufffe", "http://127.1:99999/", "ftp://127.66.0.1/", "/a?" + strings.Repeat("x&", 5000), "mailto:x@y", "//%00/", "/%00", "http://1.2.3.4.5/",
			},
		},
		{
			name: "odd-hosts", what: "links to host names that IDNA reads in two ways or not at all",
			links: []string{
				"http://\u0130~.example.test/", "http://xn--i~-rub.example.test/", "http://xn--/", "http://xn--a.test/", "http://\u00df.example.test/", "http://fa\u00df.test/", "http://\u200d.test/",
				"http://a..b.test/", "http://.test/", "http://test../", "http://%41.test/", "http://\uff0e\uff0e/", "http://\u2488com/", "http://a\u00adb.test/", "http://xn--0.test/", "http://[fe80::1%25lo]/",
				"http://" + strings.Repeat("a.", 130) + "test/", "http://xn--" + strings.Repeat("a", 60) + ".test/", "http://\u0130\u0130\u0130.test/", "http://a_b.test/", "http://-a-.test/",
			},
		},
		{
			name: "deep-folders", what: "relative links that make the path longer for ever", maxRequests: 2000,
			links: []string{"deep/x/"},
			handle: func(_ *site, w http.ResponseWriter, r *http.Request) bool {
				if !strings.HasPrefix(r.URL.Path, "/deep/") {
					return false
				}
				writePage(w, "Deeper", `<p><a href="x/">x</a> <a href="y/x/">y</a>`)
				return true
			},
		},
		{
			name: "calendar", what: "a next month for ever", maxRequests: 2000,
			links: []string{"/calendar?month=1"},
			handle: func(_ *site, w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path != "/calendar" {
					return false
				}
				var month int
				_, _ = fmt.Sscan(r.URL.Query().Get("month"), &month)
				writePage(w, fmt.Sprint("Month ", month), fmt.Sprintf(`<p>No events. <a href="/calendar?month=%d">next month</a>`, month+1))
				return true
			},
		},
		{
			name: "new-sessions", what: "every link of twenty pages carries a new session id", maxRequests: 400,
			links: []string{"/shop/1"},
			handle: func(_ *site, w http.ResponseWriter, r *http.Request) bool {
				if !strings.HasPrefix(r.URL.Path, "/shop/") {
					return false
				}
				var b strings.Builder
				for i := range 20 {
					fmt.Fprintf(&b, `<p><a href="/shop/%d?PHPSESSID=%016x">item %d</a>`, i, rand.Uint64(), i)
				}
				writePage(w, "Shop "+r.URL.Path, b.String())
				return true
			},
		},
	}
}
