package crawl

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/freshet/freshet/crawl/politeness"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

func mustParse(t *testing.T, s string) weburl.URL {
	t.Helper()
	u, err := weburl.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// A server that answers everything with 200 has only the pages that it has.
func TestSoft404(t *testing.T) {
	t.Parallel()
	pages := map[string]string{"/": link("/real", "/no1", "/no2", "/no3", "/no4", "/no5", "/no6"), "/real": "<title>Real</title><p>A page with words of its own about herons and lakes."}
	s := newSite(t, pages, nil)
	next := s.Config.Handler
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, ok := pages[r.URL.Path]; ok || r.URL.Path == "/robots.txt" {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<title>Oops</title><p>Sorry, what you look for is not here any more, try the search box on our start page.")
	})
	r := newRig(t)
	robot := r.crawl(t, s.URL+"/")
	gone, ok := 0, 0
	for i := 1; i <= 6; i++ {
		switch r.page(t, fmt.Sprintf("%s/no%d", s.URL, i)).State {
		case store.Gone:
			gone++
		case store.OK:
			ok++
		}
	}
	if gone != 4 || ok != 2 { // two were taken before three alike raised the question
		t.Errorf("%d gone, %d ok", gone, ok)
	}
	if p := r.page(t, s.URL+"/real"); p.State != store.OK {
		t.Errorf("the real page is %s", p.State)
	}
	for _, tr := range robot.Status().Traps {
		if tr.Kind == "soft 404" && tr.Count == 4 {
			return
		}
	}
	t.Errorf("traps %+v", robot.Status().Traps)
}

// The same on a host that must rest between requests, so that each page has an
// agent of its own.
func TestSoft404OfRestingHost(t *testing.T) {
	t.Parallel()
	// An agent that is held up has its host's time come while it works, and asks
	// itself: then it is another case, and this one is tried again.
	gone := 0
	for try := 0; try < 6 && gone != 2; try++ {
		gone = goneAtRest(t)
	}
	if gone != 2 {
		t.Errorf("%d pages gone, want the 2 after three alike", gone)
	}
}

func goneAtRest(t *testing.T) (gone int) {
	t.Helper()
	s := newSite(t, map[string]string{"/": link("/no1", "/no2", "/no3", "/no4", "/no5")}, nil)
	next := s.Config.Handler
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" || r.URL.Path == "/robots.txt" {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<title>Oops</title><p>Sorry, what you look for is not here any more, try the search box on our start page.")
	})
	r := newRig(t)
	r.config.Delay, r.config.DelayGiven = politeness.Patience+100*time.Millisecond, true
	r.crawl(t, s.URL+"/")
	for i := 1; i <= 5; i++ {
		if r.page(t, fmt.Sprintf("%s/no%d", s.URL, i)).State == store.Gone {
			gone++
		}
	}
	return gone
}
