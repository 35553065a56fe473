package crawl

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/freshet/freshet/crawl/politeness"
	"github.com/freshet/freshet/store"
)

// Each kind of failed requests is told with its last example.
func TestFailures(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"/": link("/broken", "/cut")}, map[string]http.HandlerFunc{
		"/broken": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"/cut":    func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	})
	st := newRig(t).crawl(t, s.URL+"/").Status()
	got := map[string]Failure{}
	for _, f := range st.Failures {
		if f.Count != st.Errors[f.Kind] || f.At.Before(st.Started) {
			t.Errorf("%+v of errors %v", f, st.Errors)
		}
		got[f.Kind] = f
	}
	for kind, want := range map[string]Failure{
		"status-5xx": {Example: s.URL + "/broken", Message: "status 500"},
		"reset":      {Example: s.URL + "/cut", Message: "EOF"},
	} {
		if f := got[kind]; f.Example != want.Example || !strings.Contains(f.Message, want.Message) || strings.Contains(f.Message, s.URL) {
			t.Errorf("%s: %+v", kind, f)
		}
	}
}

// Messages come from elsewhere: they are cut.
func TestLongMessage(t *testing.T) {
	t.Parallel()
	r := New(Config{})
	r.stats.fail("protocol", "http://h.example/", strings.Repeat("ž", maxMessage))
	if f := r.Status().Failures[0]; len(f.Message) > maxMessage || strings.Trim(f.Message, "ž") != "" {
		t.Errorf("%d bytes: %s", len(f.Message), f.Message)
	}
}

// Of a robots.txt that cannot be had it is known why, and since when: that stays
// from try to try.
func TestRobotsSince(t *testing.T) {
	t.Parallel()
	var status atomic.Int32
	s := newSite(t, nil, map[string]http.HandlerFunc{"/robots.txt": func(w http.ResponseWriter, _ *http.Request) {
		if status.Load() == 0 {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(int(status.Load()))
	}})
	u := mustParse(t, s.URL+"/")
	c := newRig(t).config
	c.MaxDelay = time.Nanosecond
	a := testAgent(New(c), store.Host{Name: u.Host()})
	var first time.Time
	for i, step := range []struct {
		status int
		why    string
		tries  int
	}{{0, "reset", 1}, {0, "reset", 2}, {500, "", 3}, {404, "", 0}, {0, "reset", 1}} {
		a.access.ForgetRules()
		status.Store(int32(step.status))
		if ready, _ := a.access.LoadRules(t.Context(), u); !ready {
			t.Fatal("the rules are not loaded")
		}
		rb := &a.host.Robots[0]
		if step.tries == 1 {
			first = rb.Fetched
		}
		if rb.Why != step.why || rb.Tries != step.tries || rb.Failed() && !rb.Since.Equal(first) || !rb.Failed() && !rb.Since.IsZero() {
			t.Errorf("step %d: %+v, first tried %v", i, rb, first)
		}
		if wait := politeness.RobotsNext(rb).Sub(rb.Fetched); rb.Failed() && wait != min(politeness.RetryDelay(rb.Tries), politeness.RobotsRetry) && rb.Tries < politeness.MaxRetries {
			t.Errorf("step %d: asked for again after %v", i, wait)
		}
		rb.Fetched, first = rb.Fetched.Add(-48*time.Hour), first.Add(-48*time.Hour)
		if !rb.Since.IsZero() {
			rb.Since = rb.Since.Add(-48 * time.Hour)
		}
	}
}
