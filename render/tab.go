package render

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/css"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/emulation"
	cdpfetch "github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/inspector"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/security"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

// pageScript runs in the page's world, worldScript in one of its own.
var (
	//go:embed page.js
	pageScript string
	//go:embed world.js
	worldScript string
)

// worldName names the isolated world.
const worldName = "freshet"

// tab is one page target, used for one page after the other. Each has a
// browser context of its own: cookies and storage of a page are seen by no
// other tab, and are cleared before the next page.
type tab struct {
	browser *chromium
	config  *Config
	traffic *tabTraffic // what the guard forwards
	ctx     context.Context
	cancel  context.CancelFunc
	target  *chromedp.Target
	frame   cdp.FrameID                // the main frame
	world   runtime.ExecutionContextID // of worldScript, in the page that is shown
	host    string                     // whose page it showed last
	replies sync.WaitGroup

	expired chan struct{} // the page's time is over
	crashed chan struct{} // closed when the page's process dies
	once    sync.Once

	mu    sync.Mutex
	visit *visit // nil between pages
}

// viewport is tall, so that what is loaded when it becomes visible mostly is.
const (
	viewWidth  = 1280
	viewHeight = 2400
)

func newTab(ctx context.Context, b *chromium, c *Config) (*tab, error) {
	t := &tab{browser: b, config: c, traffic: b.guard.registerTab(), expired: make(chan struct{}, 1), crashed: make(chan struct{})}
	t.ctx, t.cancel = chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext(func(p *target.CreateBrowserContextParams) {
		p.ProxyServer, p.ProxyBypassList = "http://"+b.guard.proxyAddress(), "<-loopback>"
	}))
	limit := time.AfterFunc(startTime, t.cancel) // the first call must have no deadline of its own
	defer limit.Stop()
	unhook := context.AfterFunc(ctx, t.cancel)
	defer unhook()
	err := chromedp.Do(t.ctx)
	if err == nil {
		err = t.prepareTab()
	}
	if err != nil {
		t.closeTab()
		return nil, fmt.Errorf("open a tab: %w", err)
	}
	return t, nil
}

// callTab runs a command of the DevTools protocol in the tab.
func callTab[P, R any](ctx context.Context, t *tab, c cdp.Command[P, R], p P) (R, error) {
	ctx, cancel := context.WithTimeout(ctx, t.config.Answer)
	defer cancel()
	r, err := cdp.Call(ctx, t.target, c, p)
	if err != nil {
		err = fmt.Errorf("%s: %w", c.Method, err)
	}
	return r, err
}

// prepareTab turns off what chromedp listens to and we do not, and sets what
// holds for all pages of the tab.
func (t *tab) prepareTab() error {
	cc := chromedp.FromContext(t.ctx)
	t.target = cc.Target
	if err := chromedp.Listen(t.ctx, t.handleEvent); err != nil {
		return err
	}
	tree, err := callTab(t.ctx, t, page.GetFrameTree, cdp.Empty{})
	if err != nil {
		return err
	}
	t.frame = tree.FrameTree.Frame.ID
	deny := browser.SetDownloadBehaviorParams{Behavior: browser.SetDownloadBehaviorBehaviorDeny, BrowserContextID: cc.BrowserContextID}
	if _, err := cdp.Call(t.ctx, cc.Browser, browser.SetDownloadBehavior, deny); err != nil {
		return err
	}
	yes := true
	for _, step := range []struct {
		method string
		params any
	}{
		{css.Disable.Method, cdp.Empty{}},
		{dom.Disable.Method, cdp.Empty{}},
		{cdplog.Disable.Method, cdp.Empty{}},
		{runtime.Disable.Method, cdp.Empty{}},
		{page.SetLifecycleEventsEnabled.Method, page.SetLifecycleEventsEnabledParams{}},
		{network.SetBypassServiceWorker.Method, network.SetBypassServiceWorkerParams{Bypass: true}},
		{security.SetIgnoreCertificateErrors.Method, security.SetIgnoreCertificateErrorsParams{Ignore: t.config.Insecure}},
		{emulation.SetUserAgentOverride.Method, emulation.SetUserAgentOverrideParams{UserAgent: t.browser.agent}},
		{emulation.SetDeviceMetricsOverride.Method, emulation.SetDeviceMetricsOverrideParams{Width: viewWidth, Height: viewHeight, DeviceScaleFactor: 1}},
		{page.AddScriptToEvaluateOnNewDocument.Method, page.AddScriptToEvaluateOnNewDocumentParams{Source: pageScript}},
		{page.AddScriptToEvaluateOnNewDocument.Method, page.AddScriptToEvaluateOnNewDocumentParams{Source: worldScript, WorldName: worldName}},
		{cdpfetch.Enable.Method, cdpfetch.EnableParams{HandleAuthRequests: &yes}},
		// Workers, frames in processes of their own and the like wait for a debugger
		// that does not come.
		{target.SetAutoAttach.Method, target.SetAutoAttachParams{AutoAttach: true, WaitForDebuggerOnStart: true, Flatten: &yes}},
	} {
		ctx, cancel := context.WithTimeout(t.ctx, t.config.Answer)
		err := t.target.Call(ctx, step.method, step.params, nil)
		cancel()
		if err != nil {
			return fmt.Errorf("%s: %w", step.method, err)
		}
	}
	return nil
}

func (t *tab) closeTab() {
	t.browser.guard.unregisterTab(t.traffic)
	t.cancel()
	t.replies.Wait()
}

// handleEvent takes one event of the tab. It must not wait.
func (t *tab) handleEvent(ev any) {
	switch e := ev.(type) {
	case *cdpfetch.EventRequestPaused:
		v := t.visitOfTab()
		t.replyAsync(func(ctx context.Context) { t.decideRequest(ctx, v, e) })
	case *cdpfetch.EventAuthRequired:
		t.replyAsync(func(ctx context.Context) { t.answerAuth(ctx, e) })
	case *network.EventRequestServedFromCache:
		if v := t.visitOfTab(); v != nil {
			v.noteCached(e.RequestID)
		}
	case *network.EventDataReceived:
		if v := t.visitOfTab(); v != nil {
			v.noteReceived(e.EncodedDataLength, e.DataLength)
		}
	case *network.EventResponseReceived:
		if v := t.visitOfTab(); v != nil {
			v.noteReceived(0, 0)
		}
	case *network.EventLoadingFinished:
		if v := t.visitOfTab(); v != nil {
			v.noteEnded(e.RequestID)
		}
	case *network.EventLoadingFailed:
		if v := t.visitOfTab(); v != nil {
			v.noteEnded(e.RequestID)
		}
	case *page.EventJavascriptDialogOpening:
		t.replyAsync(func(ctx context.Context) {
			leave := page.HandleJavaScriptDialogParams{Accept: e.Type == page.DialogTypeBeforeunload}
			_, _ = callTab(ctx, t, page.HandleJavaScriptDialog, leave)
		})
	case *emulation.EventVirtualTimeBudgetExpired:
		select {
		case t.expired <- struct{}{}:
		default:
		}
	case *inspector.EventTargetCrashed:
		t.once.Do(func() { close(t.crashed) })
	}
}

// replyAsync runs a command outside the loop that delivers events.
func (t *tab) replyAsync(f func(context.Context)) {
	t.replies.Add(1)
	go func() { // ends with the tab's context
		defer t.replies.Done()
		f(t.ctx)
	}()
}

func (t *tab) visitOfTab() *visit {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.visit
}

func (t *tab) setTabVisit(v *visit) {
	t.traffic.setVisit(v)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.visit = v
}

// answerAuth shows the tab's credentials to the guard, and none to servers.
func (t *tab) answerAuth(ctx context.Context, e *cdpfetch.EventAuthRequired) {
	answer := &cdpfetch.AuthChallengeResponse{Response: cdpfetch.AuthChallengeResponseResponseCancelAuth}
	if e.AuthChallenge.Source == cdpfetch.AuthChallengeSourceProxy {
		answer = &cdpfetch.AuthChallengeResponse{Response: cdpfetch.AuthChallengeResponseResponseProvideCredentials, Username: t.traffic.name, Password: t.traffic.password}
	}
	_, _ = callTab(ctx, t, cdpfetch.ContinueWithAuth, cdpfetch.ContinueWithAuthParams{RequestID: e.RequestID, AuthChallengeResponse: answer})
}

// decideRequest decides on one request of the page.
func (t *tab) decideRequest(ctx context.Context, v *visit, e *cdpfetch.EventRequestPaused) {
	if v == nil { // of the page before
		t.failPaused(ctx, e, network.ErrorReasonAborted)
		return
	}
	switch verdict := v.judgeRequest(ctx, t.frame, e); verdict {
	case serve:
		_, _ = callTab(ctx, t, cdpfetch.FulfillRequest, v.documentAnswer(e.RequestID))
	case pass:
		_, _ = callTab(ctx, t, cdpfetch.ContinueRequest, cdpfetch.ContinueRequestParams{RequestID: e.RequestID})
	case plain:
		t.failPaused(ctx, e, network.ErrorReasonConnectionRefused)
	case leave:
		t.failPaused(ctx, e, network.ErrorReasonAborted)
	default:
		t.failPaused(ctx, e, network.ErrorReasonBlockedByClient)
	}
}

func (t *tab) failPaused(ctx context.Context, e *cdpfetch.EventRequestPaused, why network.ErrorReason) {
	_, _ = callTab(ctx, t, cdpfetch.FailRequest, cdpfetch.FailRequestParams{RequestID: e.RequestID, ErrorReason: why})
}

// errScript is the error of a call into the page that threw.
var errScript = errors.New("script error")

// evalWorld calls a function of world.js and decodes its value.
func evalWorld[T any](ctx context.Context, t *tab, expression string) (T, error) {
	var out T
	yes := true
	r, err := callTab(ctx, t, runtime.Evaluate, runtime.EvaluateParams{Expression: "freshet." + expression, ContextID: t.world, ReturnByValue: &yes, AwaitPromise: &yes})
	if err != nil {
		return out, err
	}
	if r.ExceptionDetails != nil {
		return out, fmt.Errorf("%w: %.100s: %s", errScript, expression, r.ExceptionDetails.Text)
	}
	if len(r.Result.Value) == 0 {
		return out, nil
	}
	if err := json.Unmarshal(r.Result.Value, &out); err != nil {
		return out, fmt.Errorf("%w: %.100s: %w", errScript, expression, err)
	}
	return out, nil
}
