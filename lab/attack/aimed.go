package attack

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// aimedAttacks are sites that try to make the robot a weapon: it shall reach an
// address that it may not, or ask a third party more often than it asks anybody.
// No bystander is among the start pages.
func aimedAttacks() []attack {
	// atPeace wants no request at all but for the bystander's robots.txt.
	atPeace := func(hits []Hit, _ time.Duration) error {
		for _, h := range hits {
			if h.Target != "/robots.txt" {
				return fmt.Errorf("%s %s reached a host that no start page names", h.Method, h.Target)
			}
		}
		return nil
	}
	return []attack{
		{
			name: "to-other-hosts", what: "redirects, robots.txt, sitemaps, frames, base and refresh that lead to a host out of scope",
			links: []string{"/redirect", "/frame", "/base", "/refresh", "/canonical", "/link-header"}, bystander: atPeace,
			handle: func(s *site, w http.ResponseWriter, r *http.Request) bool {
				to := s.bystander.originURL()
				switch r.URL.Path {
				case "/redirect":
					http.Redirect(w, r, to+"/admin/delete?all=1", http.StatusTemporaryRedirect)
				case "/robots.txt":
					fmt.Fprintf(w, "Sitemap: %s/sitemap.xml\nSitemap: %s/sitemap.xml\n", to, s.originURL())
				case "/sitemap.xml":
					fmt.Fprintf(w, "<urlset><url><loc>%s/from-sitemap</loc></url></urlset>", to)
				case "/frame":
					writePage(w, "Frame", fmt.Sprintf(`<iframe src="%[1]s/frame"></iframe><img src="%[1]s/image"><link rel=preload href="%[1]s/preload">`, to))
				case "/base":
					writePage(w, "Base", fmt.Sprintf(`<base href="%s/"><a href="based">x</a>`, to))
				case "/refresh":
					writePage(w, "Refresh", fmt.Sprintf(`<meta http-equiv=refresh content="0; url=%s/refreshed">`, to))
				case "/canonical":
					writePage(w, "Canonical", fmt.Sprintf(`<link rel=canonical href="%[1]s/c"><link rel=alternate hreflang=de href="%[1]s/de">`, to))
				case "/link-header":
					w.Header().Add("Link", fmt.Sprintf(`<%s/next>; rel=next`, to))
					writePage(w, "Link", "<p>x")
				default:
					return false
				}
				return true
			},
		},
		{
			name: "robots-redirect", what: "a robots.txt that redirects to an address that nobody may reach", canaryOptional: true, bystander: atPeace,
			handle: func(s *site, w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path != "/robots.txt" {
					return false
				}
				http.Redirect(w, r, s.bystander.originURL()+"/latest/meta-data/", http.StatusFound)
				return true
			},
			links: []string{"/a", "/b"},
		},
		{
			name: "flooding-scripts", what: "pages whose scripts, workers, sockets and beacons flood a third party", links: []string{"/flood", "/workers"}, maxRequests: 400,
			bystander: func(hits []Hit, _ time.Duration) error {
				for _, h := range hits {
					if h.Method != http.MethodGet {
						return fmt.Errorf("%s %s: a page made the robot send more than GET to a third party", h.Method, h.Target)
					}
				}
				if n := len(hits); n > 40 {
					return fmt.Errorf("%d requests to a third party for two pages", n)
				}
				return nil
			},
			handle: func(s *site, w http.ResponseWriter, r *http.Request) bool {
				to := s.bystander.originURL()
				switch r.URL.Path {
				case "/flood":
					writePage(w, "Flood", fmt.Sprintf(floodScript, to, strings.Replace(to, "http", "ws", 1)))
				case "/workers":
					writePage(w, "Workers", `<div id=root></div><script>
try { new SharedWorker("/worker.js") } catch (e) {}
try { new Worker("/worker.js") } catch (e) {}
try { navigator.serviceWorker.register("/worker.js") } catch (e) {}
try { new Worker(URL.createObjectURL(new Blob(["importScripts('"+location.origin+"/worker.js')"]))) } catch (e) {}
</script>`)
				case "/worker.js":
					w.Header().Set("Content-Type", "text/javascript")
					fmt.Fprintf(w, `let n = 0; setInterval(() => { for (let i = 0; i < 10; i++) fetch("%s/worker?" + n++, {method: "POST", mode: "no-cors", body: "x"}).catch(() => 0) }, 50)`, to)
				default:
					return false
				}
				return true
			},
		},
	}
}

// floodScript takes the origin of a third party for HTTP and for WebSockets.
const floodScript = `<div id=root></div><script>
let n = 0
setInterval(() => {
  for (let i = 0; i < 5; i++) {
    fetch("%[1]s/fetch?" + n++, {method: "POST", mode: "no-cors", body: "x"}).catch(() => 0)
    new Image().src = "%[1]s/image?" + n++
    try { navigator.sendBeacon("%[1]s/beacon?" + n++, "x") } catch (e) {}
    try { new WebSocket("%[2]s/socket?" + n++) } catch (e) {}
    try { new EventSource("%[1]s/events?" + n++) } catch (e) {}
  }
  history.pushState(0, "", "?state=" + n)
  try { window.open("%[1]s/popup?" + n) } catch (e) {}
}, 20)
for (let i = 0; i < 50; i++) document.write('<a href="?variant=' + i + '">v</a><iframe src="%[1]s/frame?' + i + '"></iframe>')
</script>`
