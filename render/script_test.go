package render

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/weburl"
)

// Scripts whose addresses and texts differ each time (?v=RANDOM) fill no store, and what
// shares a place with another is examined as itself.
func TestScriptsStayBounded(t *testing.T) {
	t.Parallel()
	const scripts, places = 80_000, 1 << 16
	keep := &memory{}
	table := newScripts(keep)
	get := func(_ context.Context, u weburl.URL) (*fetch.Response, error) {
		code := "document.body.innerHTML=" + u.Target()
		if len(code)%2 == 0 {
			code = "var counted=" + u.Target()
		}
		return &fetch.Response{Status: 200, Header: http.Header{"Content-Type": {"text/javascript"}}, Body: []byte(code)}, nil
	}
	check := func(i int) {
		t.Helper()
		address := fmt.Sprintf("http://h.example/a.js?v=%d", i)
		got, err := table.examineAddress(t.Context(), address, get)
		want := Builds
		if len(fmt.Sprintf("document.body.innerHTML=/a.js?v=%d", i))%2 == 0 {
			want = Inert
		}
		if err != nil || got.Verdict != want {
			t.Fatalf("%s: %q, %v; want %q", address, got.Verdict, err, want)
		}
	}
	for i := range scripts {
		check(i)
	}
	for i := range 1000 {
		check(i)
	}
	if n := len(keep.m); n > 2*places {
		t.Errorf("%d records of %d scripts, want at most %d", n, scripts, 2*places)
	}
}
