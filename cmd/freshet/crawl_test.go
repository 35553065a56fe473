package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
)

// Only the second interrupt aborts a crawl; the first drains it.
func TestSecondInterrupt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		interrupts, over := make(chan os.Signal, 2), make(chan struct{})
		second := secondInterrupt(interrupts, over)
		aborted := func() bool {
			synctest.Wait()
			select {
			case <-second:
				return true
			default:
				return false
			}
		}
		interrupts <- os.Interrupt
		if aborted() {
			t.Error("after the first interrupt: aborted, want not")
		}
		interrupts <- os.Interrupt
		if !aborted() {
			t.Error("after the second interrupt: not aborted, want aborted")
		}
		secondInterrupt(interrupts, over)
		close(over) // ends the goroutine, which synctest waits for
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
