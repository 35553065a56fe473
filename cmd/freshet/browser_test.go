package main

import (
	"bytes"
	"context"
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
)

// browser starts Chromium for a test, or skips it outside CI.
func browser(t *testing.T) context.Context {
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
	ctx, cancel = context.WithTimeout(ctx, 90*time.Second)
	t.Cleanup(cancel)
	return ctx
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
		done <- run(ctx, append([]string{"serve", "--demo", "--data", dir, "--listen", "127.0.0.1:0"}, more...), strings.NewReader(""), &out, os.Stderr)
	}()
	t.Cleanup(func() {
		cancel()
		if code := <-done; code != exitOK {
			t.Errorf("serve exited with %d", code)
		}
	})
	for range 300 {
		if a := out.address(); a != "" {
			return a
		}
		select {
		case code := <-done:
			done <- code
			t.Fatalf("serve exited with %d", code)
		case <-time.After(100 * time.Millisecond):
		}
	}
	t.Fatal("serve did not tell its address")
	return ""
}

// A user searches the demo web in a browser, reads our copy of a result, and
// sees the status page move without reloading it.
func TestBrowser(t *testing.T) {
	t.Parallel()
	address := serveDemo(t, filepath.Join(t.TempDir(), "data"))
	ctx := browser(t)
	waitFor(t, "results", func() bool { return strings.Contains(get(t, address+"/api/search?q=the"), `"url"`) })
	do := func(steps ...chromedp.Action[chromedp.Void]) {
		t.Helper()
		if err := chromedp.Do(ctx, steps...); err != nil {
			t.Fatal(err)
		}
	}
	text := func(sel chromedp.CSS) string {
		t.Helper()
		s, err := chromedp.Run(ctx, chromedp.Text(sel))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	do(chromedp.Navigate(address+"/"), chromedp.SendKeys(chromedp.CSS("input[name=q]"), "the\r"), chromedp.WaitVisible(chromedp.CSS("ol.results li")))
	results := text("ol.results")
	do(chromedp.Click(chromedp.CSS(".facts a")), chromedp.WaitVisible(chromedp.CSS("body > div")))
	copied := text("body")
	do(chromedp.Navigate(address+"/status"), chromedp.WaitVisible(chromedp.CSS(".tiles")))
	before := text("#live")
	time.Sleep(2500 * time.Millisecond)
	after := text("#live")
	if !strings.Contains(results, "our copy") {
		t.Errorf("results: %.200s", results)
	}
	if !strings.Contains(copied, "Copy of ") {
		t.Errorf("copy: %.200s", copied)
	}
	if before == after || !strings.Contains(after, "running") {
		t.Errorf("the status page did not move: %.300s", after)
	}
	shoot(t, ctx, address, map[string]string{"search": "/?q=the", "status": "/status"})
}

// shoot keeps pictures of pages where $FRESHET_SHOTS says.
func shoot(t *testing.T, ctx context.Context, address string, pages map[string]string) {
	t.Helper()
	dir := os.Getenv("FRESHET_SHOTS")
	if dir == "" {
		return
	}
	for name, page := range pages {
		if err := chromedp.Do(ctx, chromedp.Navigate(address+page), chromedp.WaitVisible(chromedp.CSS("main"))); err != nil {
			t.Fatal(err)
		}
		png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600); err != nil {
			t.Fatal(err)
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
	for range 300 {
		if f() {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("no %s after 30 s", what)
}

// The running process answers the other commands, and ends when told.
func TestServeAndCommands(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	serveDemo(t, dir)
	call := func(args ...string) string {
		var out, errs bytes.Buffer
		if code := run(context.Background(), append(args, "--data", dir), strings.NewReader(""), &out, &errs); code != exitOK {
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
	if code := run(context.Background(), []string{"crawl", "--data", dir, "--allow-private", "http://127.0.0.1:1/"}, strings.NewReader(""), &out, &errs); code != exitFailed || !strings.Contains(errs.String(), "a freshet is running on this data directory") {
		t.Errorf("second process: exit %d: %s", code, errs.String())
	}
	call("stop")
}
