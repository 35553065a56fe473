package render

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/freshet/freshet/fetch"
)

// A connection to a private address that a source permitted serves nothing once no
// source does.
func TestGuardAsksForPermission(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("x")) }))
	defer s.Close()
	var allow atomic.Bool
	g, client := newTestGuard(t, fetch.Config{Permit: func(string, string) bool { return allow.Load() }}, slices.Repeat([]string{s.URL + "/data"}, 10)...)
	for i, want := range []bool{false, true, true, false, true, false} {
		allow.Store(want)
		res, err := client.Get(s.URL + "/data")
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if got := res.StatusCode == http.StatusOK; got != want {
			t.Errorf("request %d, permitted %v: %s", i, want, res.Status)
		}
	}
	if n := g.refused.Load(); n != 3 {
		t.Errorf("%d connections were refused, want 3", n)
	}
}
