package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/freshet/freshet/archive"
	"github.com/freshet/freshet/console"
	"github.com/freshet/freshet/internal/command"
	"github.com/freshet/freshet/lab/jsweb"
)

// jsSite serves one site built by scripts.
func jsSite(t *testing.T, kind string, pages int) string {
	t.Helper()
	if _, err := exec.LookPath("chromium"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	web, err := jsweb.New(1, pages, []string{kind})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(web)
	t.Cleanup(srv.Close)
	return srv.URL + "/"
}

// freshet runs a command and returns what it printed.
func freshet(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if code := runArguments(context.Background(), args, strings.NewReader(""), &out, &errs); code != command.ExitOK {
		t.Fatalf("%v: exit %d: %s", args, code, errs.String())
	}
	return out.String()
}

// One crawl without a browser, one with: what waited comes, the archive has
// both forms, the index has the text, and why tells the reason.
func TestCrawlRenders(t *testing.T) {
	t.Parallel()
	site, dir := jsSite(t, "react", 13), filepath.Join(t.TempDir(), "data")
	var sum crawlSummary
	crawl := func(args ...string) {
		t.Helper()
		out := freshet(t, append([]string{"crawl", "--quiet", "--json", "--allow-private", "--data", dir, site}, args...)...)
		sum = crawlSummary{}
		if err := json.Unmarshal([]byte(out), &sum); err != nil {
			t.Fatal(err)
		}
	}
	crawl("--render", "auto", "--render-no-sandbox", "--chromium", "/nonexistent/chromium")
	if sum.Pages != 1 || sum.Waiting != 1 || sum.Rendered != 0 {
		t.Fatalf("without a browser: %+v", sum)
	}
	if out := freshet(t, "why", "--data", dir, site); !strings.Contains(out, "waits for the browser") || !strings.Contains(out, "class empty") {
		t.Errorf("why: %s", out)
	}
	lines := filepath.Join(dir, "out.jsonl")
	if os.Geteuid() == 0 { // without the flag nothing is rendered, and the way out is named
		var out, errs bytes.Buffer
		base := []string{"crawl", "--quiet", "--allow-private", "--data", filepath.Join(t.TempDir(), "data"), site}
		if code := runArguments(t.Context(), append(base, "--render", "auto"), strings.NewReader(""), &out, &errs); code != command.ExitOK || !strings.Contains(errs.String(), "--render-no-sandbox") {
			t.Errorf("--render auto as root: exit %d, %s; want a warning that names --render-no-sandbox", code, errs.String())
		}
		errs.Reset()
		if code := runArguments(t.Context(), append(base, "--render", "all"), strings.NewReader(""), &out, &errs); code != command.ExitUsage || !strings.Contains(errs.String(), "--render-no-sandbox") {
			t.Errorf("--render all as root: exit %d, %s; want %d and --render-no-sandbox", code, errs.String(), command.ExitUsage)
		}
	}
	crawl("--render", "auto", "--render-no-sandbox", "--out", lines)
	if sum.Pages != 13 || sum.Waiting != 0 || sum.Rendered < 13 || sum.OnlyRendering != 12 {
		t.Errorf("with a browser: %+v", sum)
	}
	b, err := os.ReadFile(lines)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(b), `"rendered":true`); n != 13 || !strings.Contains(string(b), site+"list/1") {
		t.Errorf("%d rendered lines: %.500s", n, b)
	}
	if out := freshet(t, "search", "--data", dir, "harbour"); !strings.Contains(out, site) {
		t.Errorf("search: %s", out)
	}
	out := freshet(t, "why", "--data", dir, site+"item/9")
	for _, want := range []string{"rendered", "class empty", "found on", "next visit"} {
		if !strings.Contains(out, want) {
			t.Errorf("why says nothing of %q: %s", want, out)
		}
	}
	kinds := map[string]int{}
	files, err := filepath.Glob(filepath.Join(dir, "warc", "*.warc*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		records := archive.NewReader(f)
		for rec, err := records.Next(); err == nil; rec, err = records.Next() {
			if strings.Contains(rec.Header.Get("WARC-Target-URI"), "/item/9") {
				kinds[rec.Header.Get("WARC-Type")]++
			}
		}
	}
	if kinds["response"] != 1 || kinds["resource"] != 1 {
		t.Errorf("the archive has %v of a rendered page", kinds)
	}
}

// serving is a freshet serve that can be ended and started again.
func serving(t *testing.T, args ...string) (address string, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var out served
	done := make(chan int, 1)
	go func() {
		done <- runArguments(ctx, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...), strings.NewReader(""), &out, os.Stderr)
	}()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if code := <-done; code != command.ExitOK {
				t.Errorf("serve exited with %d", code)
			}
		})
	}
	t.Cleanup(stop)
	waitFor(t, "address", func() bool { return out.address() != "" })
	return out.address(), stop
}

// Without Chromium serve does all else and says what waits; the list survives a
// restart; render agents are set apart from fetch agents.
func TestServeRenders(t *testing.T) {
	t.Parallel()
	site, dir := jsSite(t, "vue", 7), filepath.Join(t.TempDir(), "data")
	file := filepath.Join(t.TempDir(), "freshet.yaml")
	if err := os.WriteFile(file, []byte("sources: [{url: '"+site+"', allow_private: true}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	status := func() (s console.Status) {
		if err := json.Unmarshal([]byte(freshet(t, "status", "--json", "--data", dir)), &s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	address, stop := serving(t, "--config", file, "--data", dir, "--set", "render.no_sandbox=true", "--set", "render.chromium=/nonexistent/chromium")
	waitFor(t, "page that waits", func() bool { return status().Render.Waiting == 1 })
	if r := status().Render; r.Available || !strings.Contains(r.Why, "/nonexistent/chromium") {
		t.Errorf("without Chromium: %+v", r)
	}
	if page := get(t, address+"/status"); !strings.Contains(page, "1 waiting") || !strings.Contains(page, "no Chromium at") {
		t.Error("the status page says nothing of what waits")
	}
	if out := freshet(t, "why", "--data", dir, site); !strings.Contains(out, "waits for the browser") {
		t.Errorf("why: %s", out)
	}
	stop()
	serving(t, "--config", file, "--data", dir, "--set", "render.no_sandbox=true", "--set", "render.agents=0")
	if s := status(); s.Render.Waiting != 1 || s.Render.Available || s.Agents.RenderLimit != 0 {
		t.Errorf("with no render agents: %+v, %+v", s.Render, s.Agents)
	}
	if out := freshet(t, "agents", "set", "5", "--render", "3", "--data", dir); !strings.Contains(out, "of 5 agents fetch") || !strings.Contains(out, "of 3 render") {
		t.Errorf("agents set: %s", out)
	}
	waitFor(t, "rendered pages", func() bool { r := status().Render; return r.Rendered >= 7 && r.Waiting == 0 })
	s := status()
	if s.Render.Waiting != 0 || s.Render.Gained != 6 || s.URLs != 7 {
		t.Errorf("in the end: %+v, %d URLs", s.Render, s.URLs)
	}
	if out := freshet(t, "status", "--data", dir); !strings.Contains(out, "6 URLs found only by that") {
		t.Errorf("status: %s", out)
	}
}
