package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/freshet/freshet/internal/command"
)

// tab is a page in a browser. What is looked for and clicked on is so in one
// step within the page: a page that is brought up to date all the time replaces
// its elements between two.
type tab struct {
	t   *testing.T
	ctx context.Context
}

// browser starts Chromium for a test, or skips it outside CI.
func browser(t *testing.T) tab {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("chromium is not installed (.ci/run installs it)")
		}
		t.Skip("chromium is not installed")
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WindowSize(1100, 900),
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), opts...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil { // starts it; a timeout on a child would end it
		t.Fatalf("start chromium: %v", err)
	}
	ctx, cancel = context.WithTimeout(ctx, 10*time.Minute)
	t.Cleanup(cancel)
	return tab{t, ctx}
}

func (b tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// until evaluates a function of an element that is to be seen, again and again,
// until it returns something.
func (b tab) until(selector, function string) string {
	b.t.Helper()
	script := fmt.Sprintf("(e => e && e.getClientRects().length ? (%s)(e) : '')(document.querySelector(%q))", function, selector)
	for {
		s, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](script))
		if err == nil && s != "" {
			return s
		}
		if b.ctx.Err() != nil {
			b.t.Fatalf("%s in the page: %v", selector, err)
		}
		time.Sleep(20 * time.Millisecond) // one page may be giving way to the next: that is an error, too
	}
}

func (b tab) text(selector string) string {
	b.t.Helper()
	return b.until(selector, "e => e.innerText")
}

func (b tab) see(selector string) {
	b.t.Helper()
	b.until(selector, "e => 'seen'")
}

func (b tab) click(selector string) {
	b.t.Helper()
	b.until(selector, "e => { e.click(); return 'clicked' }")
}

// served collects a command's output and finds the address in it.
type served struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *served) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

var servesAt = regexp.MustCompile(`serves (http://[0-9.:]+)/`)

func (s *served) address() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := servesAt.FindStringSubmatch(s.buf.String()); m != nil {
		return m[1]
	}
	return ""
}

// serveDemo runs freshet serve --demo inside the test, with further arguments.
func serveDemo(t *testing.T, dir string, more ...string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var out served
	done := make(chan int, 1)
	go func() {
		done <- runArguments(ctx, append([]string{"serve", "--demo", "--data", dir, "--listen", "127.0.0.1:0"}, more...), strings.NewReader(""), &out, os.Stderr)
	}()
	t.Cleanup(func() {
		cancel()
		if code := <-done; code != command.ExitOK {
			t.Errorf("serve exited with %d", code)
		}
	})
	for late := time.After(3 * time.Minute); ; {
		if a := out.address(); a != "" {
			return a
		}
		select {
		case code := <-done:
			done <- code
			t.Fatalf("serve exited with %d", code)
		case <-late:
			t.Fatal("serve did not tell its address")
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// A user searches the demo web in a browser, reads our copy of a result, and
// sees the status page move without reloading it.
func TestBrowser(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	address := serveDemo(t, dir)
	b := browser(t)
	waitFor(t, "results", func() bool { return strings.Contains(get(t, address+"/api/search?q=the"), `"url"`) })
	b.do(chromedp.Navigate(address+"/"), chromedp.SendKeys(chromedp.CSS("input[name=q]"), "the\r"))
	b.see("ol.results li")
	results := b.text("ol.results")
	b.click(".facts a")
	b.see("body > div")
	copied := b.text("body")
	b.do(chromedp.Navigate(address + "/status"))
	b.see(".tiles")
	before := b.text("#live")
	var after string
	waitFor(t, "the status page to move", func() bool { after = b.text("#live"); return after != before })
	if strings.Contains(after, "Pause") {
		t.Errorf("a reader has the operator's buttons: %.300s", after)
	}
	b.do(chromedp.Navigate(loginLink(t, dir)))
	b.click("#pause")
	b.see("#resume")
	b.do(chromedp.Navigate(address + "/"))
	b.click(".links button")
	b.do(chromedp.Sleep(2*time.Second), chromedp.Navigate(address+"/status")) // the log-out leads to another page first
	if s := b.text("#live"); !strings.Contains(s, "paused") || strings.Contains(s, "Resume") {
		t.Errorf("after the log-out: %.300s", s)
	}
	if !strings.Contains(results, "our copy") {
		t.Errorf("results: %.200s", results)
	}
	if !strings.Contains(copied, "Copy of ") {
		t.Errorf("copy: %.200s", copied)
	}
	if !strings.Contains(after, "running") {
		t.Errorf("the status page: %.300s", after)
	}
	b.shoot(address, map[string]string{"search": "/?q=the", "status": "/status"})
}

// loginLink returns the link that freshet open prints.
func loginLink(t *testing.T, dir string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if code := runArguments(t.Context(), []string{"open", "--data", dir}, strings.NewReader(""), &out, &errs); code != command.ExitOK {
		t.Fatalf("open: exit %d: %s", code, errs.String())
	}
	return strings.TrimSpace(out.String())
}

// shoot keeps pictures of pages where $FRESHET_SHOTS says.
func (b tab) shoot(address string, pages map[string]string) {
	b.t.Helper()
	dir := os.Getenv("FRESHET_SHOTS")
	if dir == "" {
		return
	}
	for name, page := range pages {
		b.do(chromedp.Navigate(address + page))
		b.see("main")
		png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
		if err != nil {
			b.t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600); err != nil {
			b.t.Fatal(err)
		}
	}
}

func get(t *testing.T, u string) string {
	t.Helper()
	res, err := http.Get(u)
	if err != nil {
		return ""
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func waitFor(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); !f(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// The running process answers the other commands, and ends when told.
func TestServeAndCommands(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	serveDemo(t, dir)
	call := func(args ...string) string {
		var out, errs bytes.Buffer
		if code := runArguments(context.Background(), append(args, "--data", dir), strings.NewReader(""), &out, &errs); code != command.ExitOK {
			t.Errorf("%v: exit %d: %s", args, code, errs.String())
		}
		return out.String()
	}
	waitFor(t, "pages", func() bool { return strings.Contains(call("search", "the"), "1. ") })
	for _, tt := range []struct{ args, want string }{
		{"status", "running"},
		{"status --json", `"pages"`},
		{"agents", "agents fetch"},
		{"agents set 3", "of 3 agents"},
		{"sources", "http://www."},
		{"pause", ""},
		{"status", "paused"},
		{"resume", ""},
		{"status", "running"},
		{"search --json the", `"results"`},
	} {
		if got := call(strings.Fields(tt.args)...); !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s", tt.args, got)
		}
	}
	var out, errs bytes.Buffer
	if code := runArguments(context.Background(), []string{"crawl", "--data", dir, "--allow-private", "http://127.0.0.1:1/"}, strings.NewReader(""), &out, &errs); code != command.ExitFailed || !strings.Contains(errs.String(), "a freshet is running on this data directory") {
		t.Errorf("second process: exit %d: %s", code, errs.String())
	}
	call("stop")
}
