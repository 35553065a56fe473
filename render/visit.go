package render

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/storage"
)

// errTab is the error of a tab that cannot be used again.
var errTab = errors.New("the tab does not answer")

// errBrowser is the error of a browser that cannot be used again.
var errBrowser = errors.New("the browser does not answer")

// renderPage builds one page. An error that is errTab means that the tab is lost.
func (t *tab) renderPage(ctx context.Context, p *Page) (*Document, error) {
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, t.config.Timeout)
	defer cancel()
	within, end := context.WithCancel(t.ctx) // not the time limit: what came until then counts
	defer end()
	v := newVisit(within, p, t.config, t.browser.foreign)
	t.setTabVisit(v)
	select { // of the page before
	case <-t.expired:
	default:
	}
	err := t.buildPage(ctx, v)
	t.setTabVisit(nil)
	end() // connections of the page are cut
	if cerr := t.cleanTab(p); err == nil {
		err = cerr
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.doc.Took, v.doc.Bytes = time.Since(start), v.wire
	doc := v.doc
	return &doc, err
}

func (t *tab) buildPage(ctx context.Context, v *visit) error {
	if _, err := callTab(t.ctx, t, emulation.SetVirtualTimePolicy, emulation.SetVirtualTimePolicyParams{Policy: emulation.VirtualTimePolicyPause}); err != nil {
		return t.asTabLost(err)
	}
	if err := t.navigateTo(ctx, v); err != nil {
		return err
	}
	if err := t.settlePage(ctx, v, t.config.Budget); err != nil {
		return err
	}
	if err := t.scrollToEnd(ctx, v); err != nil {
		return err
	}
	if err := t.collectContent(v); err != nil {
		return err
	}
	return t.walkRoutes(ctx, v)
}

// navigateTo loads the document. It returns once the browser has begun to read
// it.
func (t *tab) navigateTo(ctx context.Context, v *visit) error {
	within, cancel := context.WithCancel(t.ctx) // the command's context must be the tab's
	defer cancel()
	unhook := context.AfterFunc(ctx, cancel)
	defer unhook()
	r, err := cdp.Call(within, t.target, page.Navigate, page.NavigateParams{URL: v.page.URL.String()})
	switch {
	case err != nil && ctx.Err() != nil && t.ctx.Err() == nil:
		return fmt.Errorf("render %s: no document after %v", v.page.URL, t.config.Timeout)
	case err != nil:
		return t.asTabLost(err)
	case r.ErrorText != "":
		return fmt.Errorf("render %s: %s", v.page.URL, r.ErrorText)
	}
	world, err := callTab(t.ctx, t, page.CreateIsolatedWorld, page.CreateIsolatedWorldParams{FrameID: t.frame, WorldName: worldName})
	if err != nil {
		return t.asTabLost(err)
	}
	t.world = world.ExecutionContextID
	return nil
}

// scriptStep is how long the page's clock runs after we touched the page.
const scriptStep = time.Second

// settlePage lets the page's clock run for budget. It goes by slices: between the
// end of a request and the script that takes its answer the page looks idle, and
// its clock would leap to the end. After each slice the page gets to do what it
// has at hand, and a slice in which an answer came does not count.
func (t *tab) settlePage(ctx context.Context, v *visit, budget time.Duration) error {
	uncounted := 0
	for left := budget; left > 0; {
		before := v.endedRequests()
		if err := t.runVirtualTime(ctx, v, min(left, slice)); err != nil || v.wasStopped() {
			return err
		}
		if v.endedRequests() != before && uncounted < maxUncounted {
			uncounted++
			pauseContext(ctx, handover)
		} else {
			left -= slice
		}
		if _, err := callTab(t.ctx, t, runtime.Evaluate, runtime.EvaluateParams{Expression: "0"}); err != nil {
			if errors.Is(err, context.DeadlineExceeded) && t.ctx.Err() == nil {
				return t.haltPage(v, CutHang)
			}
			return t.asTabLost(err)
		}
	}
	v.markTooLong()
	return nil
}

const (
	slice        = time.Second
	maxUncounted = 100                  // requests that follow one upon the other
	handover     = 2 * time.Millisecond // from the network to the script
)

// pauseContext sleeps; it reports false when ctx ended first.
func pauseContext(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// runVirtualTime lets the page's clock run for some time: it returns when that has passed,
// or when the page has had its real time, or the network stalls.
func (t *tab) runVirtualTime(ctx context.Context, v *visit, budget time.Duration) error {
	ms := float64(budget.Milliseconds())
	_, err := callTab(t.ctx, t, emulation.SetVirtualTimePolicy, emulation.SetVirtualTimePolicyParams{
		Policy: emulation.VirtualTimePolicyPauseIfNetworkFetchesPending, Budget: &ms, MaxVirtualTimeTaskStarvationCount: 100_000,
	})
	if err != nil {
		return t.asTabLost(err)
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-t.expired:
			return nil
		case <-t.crashed:
			return fmt.Errorf("render %s: the page's process died: %w", v.page.URL, errTab)
		case <-t.ctx.Done():
			return t.asTabLost(context.Cause(t.ctx))
		case <-ctx.Done():
			return t.haltPage(v, CutTime)
		case <-tick.C:
			if v.isStalled() {
				return t.haltPage(v, CutStall)
			}
		}
	}
}

// markTooLong marks a document that lacks what was beyond its bounds.
func (v *visit) markTooLong() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.doc.Refused > 0 && v.doc.Cut == "" {
		v.doc.Cut = CutBytes
	}
}

// isStalled reports whether nothing has happened for long. Without a request
// under way it is the page's script that is at work, which may take longer on a
// loaded machine.
func (v *visit) isStalled() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	limit := v.config.Stall
	if len(v.flight) == 0 {
		limit *= 2
	}
	return time.Since(v.last) > limit
}

// haltPage stops a page that does not settle; what it has shown by now counts. A
// script that never ends is ended.
func (t *tab) haltPage(v *visit, why string) error {
	if _, err := callTab(t.ctx, t, emulation.SetVirtualTimePolicy, emulation.SetVirtualTimePolicyParams{Policy: emulation.VirtualTimePolicyPause}); err != nil {
		why = CutHang
		if _, err := callTab(t.ctx, t, runtime.TerminateExecution, cdp.Empty{}); err != nil {
			return t.asTabLost(err)
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.doc.Cut = why
	return nil
}

// wasStopped reports whether the page was stopped.
func (v *visit) wasStopped() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.doc.Cut != ""
}

// scrollToEnd goes to the end of the page as long as that makes it grow.
func (t *tab) scrollToEnd(ctx context.Context, v *visit) error {
	if v.wasStopped() || t.config.Scrolls < 0 {
		return nil
	}
	size, err := evalWorld[[3]int](t.ctx, t, "size()")
	if err != nil {
		return t.pageOrTabError(err)
	}
	for v.doc.Scrolls < t.config.Scrolls && !v.wasStopped() {
		if err := t.toEnd(size[2] > 0); err != nil {
			return err
		}
		if err := t.settlePage(ctx, v, scriptStep); err != nil {
			return err
		}
		now, err := evalWorld[[3]int](t.ctx, t, "size()")
		if err != nil {
			return t.pageOrTabError(err)
		}
		if now == size {
			return nil
		}
		size = now
		v.doc.Scrolls++
	}
	return nil
}

// toEnd scrolls to the end. A page that observes what is visible is shown its
// begin first, and drawn: it is told of what comes into view only if it was told
// that it had left, and what it adds may grow under a view that is at the end.
func (t *tab) toEnd(observes bool) error {
	steps := []string{"scroll()"}
	if observes {
		steps = []string{"top()", "scroll()"}
	}
	for _, step := range steps {
		if _, err := evalWorld[any](t.ctx, t, step); err != nil {
			return t.pageOrTabError(err)
		}
		if !observes {
			continue
		}
		if err := t.awaitDrawing(); err != nil {
			return err
		}
	}
	return nil
}

// awaitDrawing waits until the page was drawn: what observes visibility is told by
// frames, which come by the real clock.
func (t *tab) awaitDrawing() error {
	_, err := callTab(t.ctx, t, emulation.SetVirtualTimePolicy, emulation.SetVirtualTimePolicyParams{Policy: emulation.VirtualTimePolicyPauseIfNetworkFetchesPending})
	if err != nil {
		return t.asTabLost(err)
	}
	_, err = evalWorld[bool](t.ctx, t, "frame()")
	if errors.Is(err, context.DeadlineExceeded) && t.ctx.Err() == nil {
		return nil // a page that is not drawn has been seen as far as it goes
	}
	if err != nil {
		return t.pageOrTabError(err)
	}
	return nil
}

// collected is what page.js gathers.
type collected struct {
	URL   string
	HTML  string
	Links []string
}

// Bounds of what a page may list beside its HTML.
const (
	maxLinks     = 100_000
	maxLinkBytes = 4 << 20
)

// collect reads the document. What comes back is bounded in the browser, by code
// that the page cannot change.

func (t *tab) collectContent(v *visit) error {
	text, err := evalWorld[string](t.ctx, t, fmt.Sprintf("collect(%d, %d, %d)", t.config.MaxHTML, maxLinks, maxLinkBytes))
	if errors.Is(err, context.DeadlineExceeded) && t.ctx.Err() == nil { // a script that never ends
		if err := t.haltPage(v, CutHang); err != nil {
			return err
		}
		text, err = evalWorld[string](t.ctx, t, fmt.Sprintf("collect(%d, %d, %d)", t.config.MaxHTML, maxLinks, maxLinkBytes))
	}
	if err != nil {
		return t.pageOrTabError(err)
	}
	var c collected
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return fmt.Errorf("render %s: %w", v.page.URL, err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.doc.URL, v.doc.HTML = c.URL, []byte(c.HTML)
	v.addMoreLinks(c.Links)
	return nil
}

// addMoreLinks adds links that the HTML may lack. The caller holds mu.
func (v *visit) addMoreLinks(links []string) {
	for _, l := range links {
		if strings.HasPrefix(l, "http") && len(v.links) < maxLinks {
			v.links[l] = true
		}
	}
	v.doc.Links = v.doc.Links[:0]
	for l := range v.links {
		v.doc.Links = append(v.doc.Links, l)
	}
}

// walkRoutes walks the states of a document that its script shows by fragment
// (#/page, #!page). To the robot they are one page: their links and texts are
// added to it.
func (t *tab) walkRoutes(ctx context.Context, v *visit) error {
	if v.wasStopped() || t.config.Routes < 0 {
		return nil
	}
	list, err := evalWorld[[]string](t.ctx, t, fmt.Sprintf("routes(%d, %d)", maxLinks, maxLinkBytes))
	if err != nil {
		return nil //nolint:nilerr // the page itself is had
	}
	known := map[string]bool{}
	for _, r := range list {
		known[r] = true
	}
	var texts bytes.Buffer
	for n := 0; n < len(list) && n < t.config.Routes && !v.wasStopped() && ctx.Err() == nil; n++ {
		arg, err := json.Marshal(list[n])
		if err != nil {
			return err
		}
		if _, err := evalWorld[any](t.ctx, t, "go("+string(arg)+")"); err != nil {
			break
		}
		if err := t.settlePage(ctx, v, scriptStep); err != nil {
			return err
		}
		text, err := evalWorld[string](t.ctx, t, fmt.Sprintf("body(%d, %d, %d)", max(0, t.config.MaxHTML-texts.Len()), maxLinks, maxLinkBytes))
		if err != nil {
			break
		}
		var c collected
		if err := json.Unmarshal([]byte(text), &c); err != nil {
			break
		}
		fmt.Fprintf(&texts, "<section>%s</section>", c.HTML)
		v.mu.Lock()
		v.addMoreLinks(c.Links)
		v.doc.Routes++
		v.mu.Unlock()
		further, err := evalWorld[[]string](t.ctx, t, fmt.Sprintf("routes(%d, %d)", maxLinks, maxLinkBytes))
		if err != nil {
			break
		}
		for _, r := range further {
			if !known[r] && r != list[n] && len(list) < t.config.Routes {
				known[r] = true
				list = append(list, r)
			}
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.doc.HTML = append(v.doc.HTML, texts.Bytes()...)
	return nil
}

// cleanTab ends the page and forgets what it left: cookies and storage. It gets no
// more requests through, not those that pages make when they are left either.
func (t *tab) cleanTab(p *Page) error {
	if t.ctx.Err() != nil {
		return t.asTabLost(context.Cause(t.ctx))
	}
	r, err := callTab(t.ctx, t, page.Navigate, page.NavigateParams{URL: "about:blank"})
	if err == nil && r.ErrorText != "" {
		err = errors.New(r.ErrorText)
	}
	if err != nil {
		return t.asTabLost(fmt.Errorf("leave the page: %w", err))
	}
	if _, err := callTab(t.ctx, t, network.ClearBrowserCookies, cdp.Empty{}); err != nil {
		return t.asTabLost(err)
	}
	types := "local_storage,session_storage,indexeddb,cache_storage,service_workers,websql,file_systems"
	_, err = callTab(t.ctx, t, storage.ClearDataForOrigin, storage.ClearDataForOriginParams{Origin: p.URL.Scheme() + "://" + p.URL.Host(), StorageTypes: types})
	if err != nil {
		return t.asTabLost(err)
	}
	return nil
}

// asTabLost makes an error of the connection to the tab one that gives it up.
func (t *tab) asTabLost(err error) error { return fmt.Errorf("%w: %w", errTab, err) }

// pageOrTabError tells an error of the page's script from one of the tab.
func (t *tab) pageOrTabError(err error) error {
	if errors.Is(err, errScript) {
		return err
	}
	return t.asTabLost(err)
}
