package render

import (
	"context"
	"regexp"
	"sync"
	"time"

	"github.com/chromedp/cdproto/cdp"
	cdpfetch "github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/network"

	"github.com/freshet/freshet/weburl"
)

// visit is one page in a tab.
type visit struct {
	page   *Page
	config *Config

	mu     sync.Mutex
	doc    Document
	served bool      // the document was asked for
	last   time.Time // of the last sign of the network
	links  map[string]bool
	flight map[network.RequestID]bool // requests without an end yet
	done   int                        // requests that ended
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

// judge decides on a request and counts it.
func (v *visit) judge(ctx context.Context, main cdp.FrameID, e *cdpfetch.EventRequestPaused) verdict {
	if e.ResourceType == network.ResourceTypeDocument && e.FrameID == main {
		return v.navigation(e)
	}
	if d := v.bounds(e); d != pass {
		return d
	}
	if v.page.Allowed != nil {
		if u, err := weburl.Parse(e.Request.URL); err == nil && !v.page.Allowed(ctx, u) {
			v.count(&v.doc.Blocked)
			return block
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.doc.Requests++
	v.flight[e.NetworkID] = true
	return pass
}

// navigation judges a request for a document of the main frame. The first is
// ours; any other is where a script or a refresh wants to go, which is a link.
func (v *visit) navigation(e *cdpfetch.EventRequestPaused) verdict {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.last = time.Now()
	if !v.served && v.upgraded(e.Request.URL) {
		return plain
	}
	if v.served && (e.RedirectedRequestID == "" || v.page.Body != nil) {
		v.links[e.Request.URL+e.Request.URLFragment] = true
		return leave
	}
	v.served = true
	if v.page.Body != nil {
		return serve
	}
	v.doc.Requests++
	return pass
}

// upgraded reports whether an address is that of the page, at HTTPS in place of
// HTTP. Browsers that we do not start (Config.Remote) may ask for that first; then
// links, and what the page's scripts ask for, would be relative to an address at
// which perhaps nobody listens. Refused, they ask for what they were told to.
func (v *visit) upgraded(address string) bool {
	u, err := weburl.Parse(address)
	return err == nil && u.Scheme() == "https" && v.page.URL.Scheme() == "http" && u.Host() == v.page.URL.Host() && u.Target() == v.page.URL.Target()
}

// icon matches what browsers ask of every site unasked.
var icon = regexp.MustCompile(`(?i)/[^/?]*icon[^/?]*(\?|$)|\.ico(\?|$)`)

// bounds blocks what shows nothing to a robot, and what is too much.
func (v *visit) bounds(e *cdpfetch.EventRequestPaused) verdict {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.last = time.Now()
	switch e.ResourceType {
	case network.ResourceTypeImage, network.ResourceTypeFont, network.ResourceTypeMedia, network.ResourceTypeTextTrack, network.ResourceTypePing,
		network.ResourceTypePrefetch, network.ResourceTypeManifest, network.ResourceTypeCSPViolationReport,
		network.ResourceTypeDocument: // a frame: a page of its own to the robot
		v.doc.Blocked++
		return block
	}
	if e.ResourceType == network.ResourceTypeOther && icon.MatchString(e.Request.URL) {
		v.doc.Blocked++
		return block
	}
	if v.doc.Requests >= v.config.Requests || v.doc.Bytes > v.config.MaxBytes {
		v.doc.Refused++
		return block
	}
	return pass
}

func (v *visit) count(n *int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	*n++
}

// received notes what came over the network.
func (v *visit) received(wire, length int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.last = time.Now()
	v.doc.Bytes += max(wire, length)
}

// ended notes the end of a request.
func (v *visit) ended(id network.RequestID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.last = time.Now()
	if v.flight[id] { // the document itself is none
		delete(v.flight, id)
		v.done++
	}
}

// answers is how many requests have ended.
func (v *visit) answers() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.done
}

// answer is the robot's copy of the document.
func (v *visit) answer(id cdpfetch.RequestID) cdpfetch.FulfillRequestParams {
	return cdpfetch.FulfillRequestParams{RequestID: id, ResponseCode: 200, ResponseHeaders: header(v.page), Body: v.page.Body}
}
