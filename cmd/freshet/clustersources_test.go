package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/freshet/freshet/console"
	"github.com/freshet/freshet/internal/pgtest"
)

// siteAt serves a few pages that have a word in common at a loopback address.
func siteAt(t *testing.T, ip string, pages int) *httptest.Server {
	t.Helper()
	l, err := net.Listen("tcp4", ip+":0")
	if err != nil {
		t.Fatal(err)
	}
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "<title>%s at %s</title><p>a pelican of %s with words of its own", r.URL.Path, ip, r.URL.Path)
		for i := range pages {
			fmt.Fprintf(w, ` <a href="/p%d.html">%d</a>`, i, i)
		}
	})}}
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// Sources are added and taken back at two nodes of one database at once: none is
// lost, and no page of what was taken back stays in the index, whichever node visits
// it while it has not heard yet. Added again, all are visited again.
func TestSourcesOfNodes(t *testing.T) {
	t.Parallel()
	const lease, pages = 5 * time.Second, 3
	f := newFleet(t, pgtest.New(t).Database(t), 1, 1, time.Millisecond, lease)
	nodes := []string{"anna", "boris"}
	for _, name := range nodes {
		config := filepath.Join(f.dir, name+".yaml")
		if err := os.WriteFile(config, fmt.Appendf(nil, "node: %s\ndatabase: %s\nlease: %v\ncrawl: {min_revisit: 1h, max_revisit: 2h, timeout: 2s}\nrender: {mode: \"off\"}\n", name, f.database, lease), 0o600); err != nil {
			t.Fatal(err)
		}
		f.launch(name, "--data", filepath.Join(f.dir, name), "serve", "--quiet", "--config", config, "--allow-private", "--listen", "127.0.0.1:0")
	}
	at := func(node string, args ...string) error {
		out, err := exec.Command(f.bin, append([]string{"--data", filepath.Join(f.dir, node)}, args...)...).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%v: %w: %s", args, err, out)
		}
		return err
	}
	for _, name := range nodes {
		waitFor(t, name+" to run", func() bool { f.alive(); return at(name, "status") == nil })
	}
	var urls []string
	for i := range 8 {
		urls = append(urls, siteAt(t, fmt.Sprintf("127.0.3.%d", i+1), pages).URL+"/")
	}
	all := func(verb string, of []string) {
		var wg sync.WaitGroup
		for i, u := range of {
			wg.Go(func() {
				err := at(nodes[i%2], "sources", verb, u)
				for verb == "remove" && err != nil && strings.Contains(err.Error(), "is no source") { // not heard of yet
					time.Sleep(lease / 5)
					err = at(nodes[i%2], "sources", verb, u)
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	found := func(n int) func() bool {
		return func() bool {
			var a console.SearchAnswer
			f.ask(&a, "search", "pelican")
			f.alive()
			return a.Total == n
		}
	}
	all("add", urls)
	waitFor(t, "all pages in the index", found(len(urls)*(pages+1)))
	all("remove", urls[2:])
	waitFor(t, "two sources in the index", found(2*(pages+1)))
	time.Sleep(lease)
	if !found(2 * (pages + 1))() {
		t.Error("pages of sources that were taken back have come again")
	}
	all("add", urls[2:])
	waitFor(t, "all pages in the index again", found(len(urls)*(pages+1)))
	for _, name := range nodes {
		if err := at(name, "stop"); err != nil {
			t.Error(err)
		}
	}
}
