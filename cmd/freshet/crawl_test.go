package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// The first interrupt drains, the second stops, whatever the crawl is at.
func TestHeed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, over := context.WithCancel(context.Background())
		defer over()
		asked, end := context.WithCancel(ctx)
		var drained, stopped atomic.Int32
		interrupts := make(chan os.Signal, 2)
		go heed(ctx, interrupts, asked.Done(), func() { drained.Add(1) }, func() { stopped.Add(1) })
		end() // as the command's context does at the first
		interrupts <- os.Interrupt
		if synctest.Wait(); drained.Load() == 0 || stopped.Load() != 0 {
			t.Errorf("after the first: %d drained, %d stopped", drained.Load(), stopped.Load())
		}
		interrupts <- os.Interrupt
		if synctest.Wait(); stopped.Load() != 1 {
			t.Errorf("after the second: %d stopped", stopped.Load())
		}
	})
}

// A single crawl takes the sources and settings of a configuration; flags override them.
func TestCrawlConfiguration(t *testing.T) {
	t.Parallel()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path == "/robots.txt" {
			http.NotFound(w, q)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<title>%s</title>text of %[1]s <a href="/a">a</a> <a href="/secret">b</a>`, q.URL.Path)
	}))
	t.Cleanup(site.Close)
	file := filepath.Join(t.TempDir(), "freshet.yaml")
	text := "sources:\n  - url: " + site.URL + "/\n    allow_private: true\n    exclude: [secret]\n    delay: 0s\n    connections: 4\n  - url: file:///nowhere\nrender: {mode: off}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		args  []string
		pages int64
	}{
		"sources of the file": {nil, 2},
		"flag over key":       {[]string{"--exclude", "/a"}, 2},
		"url over sources":    {[]string{"--allow-private", site.URL + "/"}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sum crawlSummary
			runCommand(t, &sum, append([]string{"--data", t.TempDir(), "crawl", "--config", file, "--no-index"}, tt.args...)...)
			if sum.Pages != tt.pages {
				t.Errorf("%d pages, want %d", sum.Pages, tt.pages)
			}
		})
	}
}
