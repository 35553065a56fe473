package attack

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
)

// redirectAttacks are sites that send robots about.
func redirectAttacks() []attack {
	redirect := func(w http.ResponseWriter, r *http.Request, to string) bool {
		http.Redirect(w, r, to, http.StatusFound)
		return true
	}
	return []attack{
		{
			name: "redirect-loops", what: "redirects to themselves, in a ring, and on and on",
			links: []string{"/self", "/ring/0", "/on/0", "/case"}, maxRequests: 200,
			handle: func(_ *site, w http.ResponseWriter, r *http.Request) bool {
				var n int
				switch {
				case r.URL.Path == "/self":
					return redirect(w, r, "/self")
				case r.URL.Path == "/case":
					return redirect(w, r, "/CASE")
				case r.URL.Path == "/CASE":
					return redirect(w, r, "/case")
				case strings.HasPrefix(r.URL.Path, "/ring/"):
					_, _ = fmt.Sscan(r.URL.Path[len("/ring/"):], &n)
					return redirect(w, r, fmt.Sprintf("/ring/%d", (n+1)%7))
				case strings.HasPrefix(r.URL.Path, "/on/"):
					_, _ = fmt.Sscan(r.URL.Path[len("/on/"):], &n)
					return redirect(w, r, fmt.Sprintf("/on/%d", n+1))
				}
				return false
			},
		},
		{
			name: "session-redirect", what: "a page that wants a session id in its address before it shows itself",
			links: []string{"/door"},
			handle: func(_ *site, w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path != "/door" {
					return false
				}
				if r.URL.Query().Get("PHPSESSID") == "" {
					return redirect(w, r, fmt.Sprintf("/door?PHPSESSID=%016x", rand.Uint64()))
				}
				writePage(w, "Door", "<p>You are in.")
				return true
			},
		},
		{
			name: "odd-locations", what: "Location fields that are no addresses",
			links: []string{"/to/0", "/to/1", "/to/2", "/to/3", "/to/4", "/to/5", "/to/6"},
			handle: func(_ *site, w http.ResponseWriter, r *http.Request) bool {
				if !strings.HasPrefix(r.URL.Path, "/to/") {
					return false
				}
				to := []string{"", "http://[::", "..;jsessionid=1", "javascript:1", "http://\u0130~.test/", strings.Repeat("/a", 30_000), "\xff\xfe"}
				var n int
				_, _ = fmt.Sscan(r.URL.Path[len("/to/"):], &n)
				w.Header().Set("Location", to[n%len(to)])
				w.WriteHeader(http.StatusMovedPermanently)
				return true
			},
		},
	}
}
