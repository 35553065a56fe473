package app

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/freshet/freshet/config"
	"github.com/freshet/freshet/console"
)

// Key files, topics and hubs are at private addresses only where a source with
// allow_private covers that very host, not because another source may.
func TestPermissionOfSignals(t *testing.T) {
	t.Parallel()
	serve := func() (*httptest.Server, *atomic.Int64) {
		asked := &atomic.Int64{}
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked.Add(1)
			fmt.Fprint(w, "key")
		}))
		t.Cleanup(s.Close)
		return s, asked
	}
	intranet, _ := serve()
	other, asked := serve()
	for _, tt := range []struct {
		name    string
		private bool // the other host's own source has allow_private
		added   bool // it was added while the node ran
		option  bool // all sources may
		want    bool
	}{
		{"no permission of its own", false, false, false, false},
		{"permission of its own", true, false, false, true},
		{"added while running", false, true, false, false},
		{"all sources may", false, false, true, true},
		{"all sources may, added while running", false, true, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := config.Default()
			c.Sources = []config.Source{{URL: intranet.URL + "/", AllowPrivate: true}}
			if !tt.added {
				c.Sources = append(c.Sources, config.Source{URL: other.URL + "/", AllowPrivate: tt.private})
			}
			n, err := Open(c, Options{Dir: t.TempDir(), AllowPrivate: tt.option})
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
			if tt.added {
				if err := n.AddSource(t.Context(), console.Source{URL: other.URL + "/"}); err != nil {
					t.Fatal(err)
				}
			}
			h := newHubs(n.client, n.permitsURL)
			for what, ask := range map[string]func() error{
				"key file": func() error { _, err := (keyFiles{n}).Key(t.Context(), other.URL+"/key.txt"); return err },
				"topic":    func() error { _, _, err := h.Discover(t.Context(), other.URL+"/feed"); return err },
				"hub":      func() error { return h.Subscribe(t.Context(), other.URL+"/hub", url.Values{}) },
			} {
				before := asked.Load()
				err := ask()
				if got := err == nil; got != tt.want || (asked.Load() > before) != tt.want {
					t.Errorf("%s: got %v, asked %d times, want %v", what, err, asked.Load()-before, tt.want)
				}
			}
		})
	}
}
