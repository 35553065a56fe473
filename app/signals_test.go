package app

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/freshet/freshet/config"
	"github.com/freshet/freshet/crawl/politeness"
)

// However many strangers name key files, their host is asked as politely as by the
// robot, and after one that is no key not at all for a while.
func TestKeyFilesArePolite(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, rules string
		status      int
		keys        int64 // most requests for key files
	}{
		{"no key", "", http.StatusNotFound, 1},
		{"key", "User-agent: *\nCrawl-delay: 1", http.StatusOK, 3},
		{"forbidden", "User-agent: *\nDisallow: /", http.StatusOK, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var asked, now, most atomic.Int64
			site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if most.Store(max(most.Load(), now.Add(1))); r.URL.Path == "/robots.txt" {
					fmt.Fprint(w, tt.rules)
				} else {
					asked.Add(1)
					w.WriteHeader(tt.status)
				}
				now.Add(-1)
			}))
			defer site.Close()
			c := config.Default()
			c.Sources = []config.Source{{URL: site.URL + "/", AllowPrivate: true}}
			n, err := Open(c, Options{Dir: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			if err := n.prepareServe(t.Context()); err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := n.close(); err != nil {
					t.Error(err)
				}
			}()
			var wg sync.WaitGroup
			for i := range 200 {
				wg.Go(func() {
					_, err := (keyFiles{n}).Key(t.Context(), fmt.Sprintf("%s/k%d.txt?q=%d", site.URL, i, i))
					if err != nil && tt.status == http.StatusOK && tt.rules == "" && !errors.Is(err, politeness.ErrHostRests) {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if n, together := asked.Load(), most.Load(); n > tt.keys || together > 1 {
				t.Errorf("%d requests, %d at once; want %d, one at once", n, together, tt.keys)
			}
		})
	}
}
