package render

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/remote"
)

// names under which Chromium is installed, Debian's first.
var names = []string{"chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome", "headless_shell"}

// Find returns the path of Chromium: path itself if it is given, else the first
// that is installed.
func Find(path string) (string, error) {
	if path != "" {
		p, err := exec.LookPath(path)
		if err != nil {
			return "", fmt.Errorf("%w: no Chromium at %s: %w", ErrNoBrowser, path, err)
		}
		return p, nil
	}
	for _, n := range names {
		if p, err := exec.LookPath(n); err == nil {
			return p, nil
		}
	}
	return "", fmt.Errorf("%w: no Chromium is installed (looked for %s)", ErrNoBrowser, strings.Join(names, ", "))
}

// chromium is one running browser.
type chromium struct {
	ctx     context.Context // of its first tab; the parent of all others
	cancel  context.CancelFunc
	guard   *guard
	foreign *foreignHosts
	dir     string // profile, removed at the end; "" for a remote one
	pid     int    // leader of its process group; 0 for a remote one
	agent   string // User-Agent that it sends

	started time.Time
	pages   atomic.Int64
	looked  atomic.Int64 // when its memory was looked at last, after started
	once    sync.Once
	ended   chan struct{} // closed when the pool has closed it

	// Guarded by the pool's mutex.
	tabs    int  // open
	retired bool // no more pages: it is closed when its last tab is
}

// startChromium starts a browser, or connects to the one whose debugging address is
// given. The browser lives until close.
func startChromium(ctx context.Context, c *Config, f *foreignHosts) (*chromium, error) {
	b := &chromium{started: time.Now(), foreign: f, ended: make(chan struct{})}
	if err := b.listenGuard(c); err != nil {
		return nil, err
	}
	var err error
	if c.Remote != "" {
		err = b.attachRemote(ctx, c.Remote)
	} else {
		err = b.launchBrowser(ctx, c)
	}
	if err == nil {
		err = b.composeUserAgent(ctx, c)
	}
	if err != nil {
		b.closeBrowser()
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%w: start: %w", ErrNoBrowser, err)
	}
	return b, nil
}

// listenGuard opens the guard where the browser can reach it.
func (b *chromium) listenGuard(c *Config) (err error) {
	own := "127.0.0.1"
	if c.Remote != "" {
		u, err := url.Parse(c.Remote)
		if err != nil || u.Hostname() == "" {
			return fmt.Errorf("render: debugging address %q: want ws://host:port or http://host:port", c.Remote)
		}
		// Connecting by UDP sends nothing and tells which of our addresses it sees.
		probe, err := net.Dial("udp", net.JoinHostPort(u.Hostname(), "9"))
		if err != nil {
			return fmt.Errorf("render: debugging address %s: %w", c.Remote, err)
		}
		defer probe.Close()
		own = probe.LocalAddr().(*net.UDPAddr).IP.String()
	}
	b.guard, err = newGuard(c.Client, net.JoinHostPort(own, "0"))
	return err
}

// flags are what Chromium is started with beside chromedp's own.
var flags = []string{
	"disable-gpu", "disable-dev-shm-usage", "disable-back-forward-cache", "disable-background-networking", "disable-component-update", "disable-sync", "disable-extensions", "disable-quic",
	"disable-shared-workers", "disable-notifications", "disable-speech-api", "disable-breakpad", "no-first-run", "no-pings", "mute-audio", "disable-domain-reliability", "disable-client-side-phishing-detection",
}

// disabled are features of Chromium that send what no page asked for in a way that
// could be judged, and one that shows pages by another scheme than the one at which
// the robot has them. The first two are chromedp's own.
var disabled = []string{
	"Translate", "BlinkGenPropertyTrees", "HttpsUpgrades", "Prerender2", "SpeculationRulesPrefetchProxy", "PrefetchPrivacyChanges", "LoadingPredictorPrefetch", "NavigationPredictor", "FetchLaterAPI",
	"WebTransport", "AttributionReportingCrossAppWeb", "ConversionMeasurement", "PrivateAggregationApi", "SharedStorageAPI", "Fledge", "InterestGroupStorage", "BrowsingTopics", "PrivacySandboxAdsAPIs", "FencedFrames",
	"Reporting", "NetworkErrorLogging", "DocumentReporting", "OptimizationHints", "MediaRouter", "IsolateSandboxedIframes",
}

// profile is how names of profile folders begin; the process number follows.
const profile = "freshet-chromium-"

// removeStaleProfiles removes profiles of processes that are gone: they were killed and could
// not.
func removeStaleProfiles(dir string) {
	names, err := filepath.Glob(filepath.Join(dir, profile+"*"))
	if err != nil {
		return
	}
	for _, name := range names {
		number, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(name), profile), "-")
		pid, err := strconv.Atoi(number)
		if err == nil && pid > 0 && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			_ = os.RemoveAll(name)
		}
	}
}

// ErrSandbox is why root starts no browser without Config.NoSandbox.
var ErrSandbox = fmt.Errorf("%w: Chromium has no sandbox as root: run freshet as a user, or set render.no_sandbox: true (crawl: --render-no-sandbox) to render without it", ErrNoBrowser)

// NeedsSandbox reports whether a pool of c would have to do without the sandbox
// although it is wanted.
func (c *Config) NeedsSandbox() bool {
	return c.Remote == "" && !c.NoSandbox && os.Geteuid() == 0
}

// findChromium returns the path of the Chromium that may be started.
func (c *Config) findChromium() (string, error) {
	if c.NeedsSandbox() {
		return "", ErrSandbox
	}
	return Find(c.Path)
}

func (b *chromium) launchBrowser(ctx context.Context, c *Config) error {
	path, err := c.findChromium()
	if err != nil {
		return err
	}
	removeStaleProfiles(os.TempDir())
	if b.dir, err = os.MkdirTemp("", fmt.Sprintf("%s%d-", profile, os.Getpid())); err != nil {
		return err
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.UserDataDir(b.dir))
	for _, f := range flags {
		opts = append(opts, chromedp.Flag(f, true))
	}
	opts = append(
		opts,
		chromedp.ProxyServer("http://"+b.guard.proxyAddress()),
		chromedp.Flag("proxy-bypass-list", "<-loopback>"),
		chromedp.Flag("disable-features", strings.Join(disabled, ",")),
		// WebRTC would go around the proxy.
		chromedp.Flag("force-webrtc-ip-handling-policy", "disable_non_proxied_udp"),
		chromedp.Flag("webrtc-ip-handling-policy", "disable_non_proxied_udp"),
		chromedp.Flag("js-flags", fmt.Sprintf("--max-old-space-size=%d", heapMB)),
		chromedp.ModifyCmdFunc(setProcessGroup),
	)
	if c.NoSandbox {
		opts = append(opts, chromedp.NoSandbox)
	}
	parent, cancel := chromedp.NewExecAllocator(context.WithoutCancel(ctx), opts...)
	return b.beginSession(ctx, parent, cancel)
}

// heapMB is how much memory the scripts of one page may take; beyond it the
// page's process ends, and nothing else.
const heapMB = 512

// setProcessGroup makes the browser the leader of a process group of its own, that dies
// with us.
func setProcessGroup(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Setpgid, cmd.SysProcAttr.Pdeathsig = true, syscall.SIGKILL
}

func (b *chromium) attachRemote(ctx context.Context, address string) error {
	parent, cancel := remote.NewAllocator(context.WithoutCancel(ctx), address)
	return b.beginSession(ctx, parent, cancel)
}

// beginSession makes the first tab, within the time that ctx leaves and startTime.
func (b *chromium) beginSession(ctx, parent context.Context, stopAllocator context.CancelFunc) error {
	var stop context.CancelFunc
	b.ctx, stop = chromedp.NewContext(parent, chromedp.WithLogf(func(string, ...any) {}), chromedp.WithErrorf(func(string, ...any) {}))
	b.cancel = func() { stop(); stopAllocator() }
	// The context of the first call is the browser's life, so the time limit is
	// kept beside it.
	limit := time.AfterFunc(startTime, b.cancel)
	unhook := context.AfterFunc(ctx, b.cancel)
	defer unhook()
	err := chromedp.Do(b.ctx)
	if !limit.Stop() && err == nil {
		err = context.DeadlineExceeded
	}
	if err == nil {
		err = chromedp.ListenBrowser(b.ctx, b.targetCreated)
	}
	if p := chromedp.FromContext(b.ctx).Browser; p != nil && p.Process() != nil {
		b.pid = p.Process().Pid
	}
	return err
}

// targetCreated closes what is none of our tabs: windows that pages open, and
// workers that outlive pages.
func (b *chromium) targetCreated(ev any) {
	e, ok := ev.(*target.EventTargetCreated)
	if !ok || e.TargetInfo.OpenerID == "" && e.TargetInfo.Type != "shared_worker" && e.TargetInfo.Type != "service_worker" {
		return
	}
	go func() { // ends with the browser, or its answer
		ctx, cancel := context.WithTimeout(b.ctx, startTime)
		defer cancel()
		_, _ = cdp.Call(ctx, chromedp.FromContext(b.ctx).Browser, target.CloseTarget, target.CloseTargetParams{TargetID: e.TargetInfo.TargetID})
	}()
}

// composeUserAgent composes the User-Agent: the browser's own, since pages choose their
// scripts by it, with the robot's name and contact, since it is a robot.
func (b *chromium) composeUserAgent(ctx context.Context, c *Config) error {
	v, err := cdp.Call(ctx, chromedp.FromContext(b.ctx).Browser, browser.GetVersion, cdp.Empty{})
	if err != nil {
		return err
	}
	b.agent = strings.ReplaceAll(v.UserAgent, "HeadlessChrome", "Chrome")
	if c.UserAgent != "" {
		b.agent += " " + c.UserAgent
	}
	return nil
}

// isAlive asks the browser for a sign of life.
func (b *chromium) isAlive(ctx context.Context, limit time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	_, err := cdp.Call(ctx, chromedp.FromContext(b.ctx).Browser, browser.GetVersion, cdp.Empty{})
	return err == nil
}

// killBrowser ends the process group at once.
func (b *chromium) killBrowser() {
	if b.pid > 0 {
		_ = syscall.Kill(-b.pid, syscall.SIGKILL)
	}
}

// closeBrowser ends the browser and removes its profile.
func (b *chromium) closeBrowser() {
	b.once.Do(func() {
		b.killBrowser() // nothing in it is worth a graceful end
		if b.cancel != nil {
			b.cancel()
			if c := chromedp.FromContext(b.ctx); c != nil && c.Allocator != nil && b.pid > 0 {
				c.Allocator.Wait()
			}
		}
		b.guard.closeGuard()
		if b.dir != "" {
			_ = os.RemoveAll(b.dir)
		}
	})
}

func (b *chromium) resourceUsage() (memory int64, cpu time.Duration) {
	if b.pid == 0 {
		return 0, 0
	}
	return Usage(b.pid)
}
