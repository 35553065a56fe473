package app

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/freshet/freshet/config"
)

// A host whose pages wait for a robots.txt that cannot be had is listed with what
// is known of that.
func TestRobotsWait(t *testing.T) {
	t.Parallel()
	now := time.Now().Truncate(time.Millisecond)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
	}))
	defer site.Close()
	c := config.Default()
	c.Sources = []config.Source{{URL: site.URL + "/", AllowPrivate: true}}
	n, _ := start(t, c, t.TempDir())
	eventually(t, "the host that waits is listed", func() bool {
		st, err := n.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range st.Top {
			if len(h.Robots) > 0 {
				w := h.Robots[0]
				if w.URL != site.URL+"/robots.txt" || w.Why != "status 500" || w.Pages != 1 || w.Since.Before(now) || !w.Next.After(w.Since) {
					t.Errorf("%+v", w)
				}
				return true
			}
		}
		return false
	})
}
