package render

import (
	"context"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/cdp"
	cdpfetch "github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/network"

	"github.com/freshet/freshet/weburl"
)

// visit is one page in a tab.
type visit struct {
	page    *Page
	config  *Config
	foreign *foreignHosts
	ctx     context.Context // ends with the visit: what the page still loads is cut off

	mu      sync.Mutex
	doc     Document
	served  bool      // the document was asked for
	last    time.Time // of the last sign of the network
	moves   int       // addresses that the page wanted to go to
	links   map[string]bool
	flight  map[network.RequestID]string // requests without an end yet, with the foreign host that they go to
	done    int                          // requests that ended
	decoded int64                        // bytes received, unpacked

	// What the guard forwards: addresses of plain HTTP, and host:port of TLS.
	addresses map[string]bool
	secure    map[string]bool
	hosts     map[string]int // requests to each foreign host
	wire      int64          // bytes through the guard
}

func newVisit(ctx context.Context, p *Page, c *Config, f *foreignHosts) *visit {
	return &visit{
		page: p, config: c, foreign: f, ctx: ctx, last: time.Now(), links: map[string]bool{}, flight: map[network.RequestID]string{},
		addresses: map[string]bool{}, secure: map[string]bool{}, hosts: map[string]int{},
	}
}

// verdict on a request.
type verdict int

const (
	block verdict = iota // as an ad blocker does
	serve                // answer with what the robot has
	pass
	leave // the page wanted to go elsewhere: note it and stay
	plain // the browser tries HTTPS first: as if nobody listened there
)

// judgeRequest decides on a request and counts it. It may wait: for a robots.txt, the
// robot's budget, or the turn of a foreign host.
func (v *visit) judgeRequest(ctx context.Context, main cdp.FrameID, e *cdpfetch.EventRequestPaused) verdict {
	if e.ResourceType == network.ResourceTypeDocument && e.FrameID == main {
		return v.judgeNavigation(e)
	}
	if strings.HasPrefix(e.Request.URL, "data:") || strings.HasPrefix(e.Request.URL, "blob:") {
		return pass // within the browser
	}
	u, err := weburl.Parse(e.Request.URL)
	if err != nil || !needed[e.ResourceType] || !v.mayUse(e.Request.Method, u) {
		v.countLocked(&v.doc.Blocked)
		return block
	}
	own := u.Host() == v.page.URL.Host()
	if !v.reserveRequest(u.Host(), own) {
		return block
	}
	if v.page.Allowed != nil && !v.page.Allowed(ctx, u) || !own && !v.foreign.waitForToken(ctx, u.Host()) {
		v.countLocked(&v.doc.Blocked)
		return block
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.last = time.Now()
	host := u.Host()
	if own {
		host = ""
	}
	v.flight[e.NetworkID] = host
	v.permitForward(e.Request.URL, u)
	return pass
}

// needed are the kinds of requests that may bring text or links. Style sheets are
// among them because loaders of scripts wait for them, and because what is drawn
// decides on what pages load when it comes into view. All others are blocked:
// images, fonts, media, frames (pages of their own to the robot), pings, beacons,
// streams of events, prefetches, manifests, reports.
var needed = map[network.ResourceType]bool{
	network.ResourceTypeScript: true, network.ResourceTypeStylesheet: true, network.ResourceTypeXHR: true, network.ResourceTypeFetch: true, network.ResourceTypePreflight: true,
}

// mayUse reports whether a method may be used: reading anywhere, POST to the page's
// own host alone, since many pages read by it (GraphQL); whatever else changes things.
func (v *visit) mayUse(method string, u weburl.URL) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return true
	case http.MethodPost:
		return u.Host() == v.page.URL.Host()
	}
	return false
}

// reserveRequest counts a request that is within the page's bounds.
func (v *visit) reserveRequest(host string, own bool) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.last = time.Now()
	if v.doc.Requests >= v.config.Requests || max(v.decoded, v.wire) > v.config.MaxBytes || !own && v.hosts[host] >= v.config.ForeignRequests {
		v.doc.Refused++
		return false
	}
	if !own {
		v.hosts[host]++
	}
	v.doc.Requests++
	return true
}

// permitForward lets the guard forward a request. The caller holds mu.
func (v *visit) permitForward(address string, u weburl.URL) {
	if u.Scheme() == "http" {
		v.addresses[address] = true
		return
	}
	host := u.Host()
	if _, _, err := net.SplitHostPort(host); err != nil {
		host = net.JoinHostPort(strings.Trim(host, "[]"), "443")
	}
	v.secure[host] = true
}

// isPermitted reports whether the guard may forward a request.
func (v *visit) isPermitted(r *http.Request) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.last = time.Now()
	if r.Method == http.MethodConnect {
		return v.secure[r.Host]
	}
	return r.URL.Scheme == "http" && v.addresses[r.RequestURI] && v.mayUseHTTP(r)
}

// mayUseHTTP is mayUse for a request at the guard.
func (v *visit) mayUseHTTP(r *http.Request) bool {
	u, err := weburl.Parse(r.RequestURI)
	return err == nil && v.mayUse(r.Method, u)
}

// countTransferred counts bytes at the guard and reports whether there may be more.
func (v *visit) countTransferred(n int64) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.last = time.Now()
	v.wire += n
	if v.wire > v.config.MaxBytes {
		v.doc.Refused++
		return false
	}
	return true
}

// judgeNavigation judges a request for a document of the main frame. The first is
// ours; any other is where a script or a refresh wants to go, which is a link.
func (v *visit) judgeNavigation(e *cdpfetch.EventRequestPaused) verdict {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.last = time.Now()
	if !v.served && v.isHTTPSUpgrade(e.Request.URL) {
		return plain
	}
	if v.served {
		if e.Request.Method == http.MethodGet && v.moves < maxMoves && len(e.Request.URL) <= maxAddress {
			v.moves++
			v.links[e.Request.URL+e.Request.URLFragment] = true
		}
		return leave
	}
	v.served = true
	return serve
}

const (
	maxMoves   = 200  // places that a page wants to go to; beyond, it is a loop
	maxAddress = 4096 // bytes of an address that is taken from a page
)

// isHTTPSUpgrade reports whether an address is that of the page, at HTTPS in place of
// HTTP. Browsers that we do not start (Config.Remote) may ask for that first; then
// links, and what the page's scripts ask for, would be relative to an address at
// which perhaps nobody listens. Refused, they ask for what they were told to.
func (v *visit) isHTTPSUpgrade(address string) bool {
	u, err := weburl.Parse(address)
	return err == nil && u.Scheme() == "https" && v.page.URL.Scheme() == "http" && u.Host() == v.page.URL.Host() && u.Target() == v.page.URL.Target()
}

func (v *visit) countLocked(n *int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.last = time.Now()
	*n++
}

// noteReceived notes what the page got of an answer.
func (v *visit) noteReceived(wire, length int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.last = time.Now()
	v.decoded += max(wire, length)
}

// noteEnded notes the end of a request.
func (v *visit) noteEnded(id network.RequestID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.last = time.Now()
	if _, ok := v.flight[id]; ok { // the document itself is none
		delete(v.flight, id)
		v.done++
	}
}

// noteCached notes that the browser had the answer to a request: it went nowhere.
func (v *visit) noteCached(id network.RequestID) {
	v.mu.Lock()
	host := v.flight[id]
	v.mu.Unlock()
	if host != "" {
		v.foreign.restoreToken(host)
	}
}

// endedRequests is how many requests have ended.
func (v *visit) endedRequests() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.done
}

// policy is what the page's own scripts may not open, beside what its server
// forbids: workers of all kinds, WebSockets, plug-ins. Frames that a page makes
// without a server (srcdoc, blob:, data:, about:blank) inherit it.
const policy = "worker-src 'none'; connect-src http: https: data: blob:; object-src 'none'; webrtc 'block'"

// documentAnswer is the robot's copy of the document.
func (v *visit) documentAnswer(id cdpfetch.RequestID) cdpfetch.FulfillRequestParams {
	headers := append(visibleHeader(v.page), &cdpfetch.HeaderEntry{Name: "Content-Security-Policy", Value: policy})
	return cdpfetch.FulfillRequestParams{RequestID: id, ResponseCode: 200, ResponseHeaders: headers, Body: v.page.Body}
}

// left are header fields that the browser does not see: those of the transfer,
// which is over, and those that make a browser send something by itself.
var left = []string{
	"content-encoding", "content-length", "transfer-encoding", "connection", "keep-alive", "refresh", "critical-ch", "link", "nel", "report-to", "reporting-endpoints", "speculation-rules",
	"content-security-policy-report-only", "attribution-reporting-register-source", "attribution-reporting-register-trigger", "alt-svc",
}

// visibleHeader lists the fields of the answer that the browser may see again.
func visibleHeader(p *Page) []*cdpfetch.HeaderEntry {
	var out []*cdpfetch.HeaderEntry
	for k, vs := range p.Header {
		if slices.Contains(left, strings.ToLower(k)) {
			continue
		}
		for _, v := range vs {
			out = append(out, &cdpfetch.HeaderEntry{Name: k, Value: v})
		}
	}
	return out
}
