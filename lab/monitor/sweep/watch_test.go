package sweep

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A sweep is watched, paused between runs, resumed and stopped by requests of
// this machine; others are refused.
func TestWatchPage(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	w := &Watch{}
	p := mustPlan(t, small)
	dir := t.TempDir()
	must(t, claimDirectory(dir, []byte(small)))
	must(t, w.beginSweep(dir, p, Cell{}, cancel))
	ask := func(method, path string, change func(*http.Request)) (int, string) {
		r := httptest.NewRequest(method, path, nil)
		r.RemoteAddr, r.Host = "127.0.0.1:5", "127.0.0.1:8090"
		if change != nil {
			change(r)
		}
		rec := httptest.NewRecorder()
		w.ServeHTTP(rec, r)
		return rec.Code, rec.Body.String()
	}
	w.reportWork(1, 4, 4, true)
	w.countRun(&Run{Factors: Factors{Field: 3, Pages: 9}, Variant: "plain:1 <b>"}, true)
	if code, s := ask("GET", "/", nil); code != 200 || !strings.Contains(s, `value="0.25"`) || !strings.Contains(s, "&lt;b&gt;") {
		t.Errorf("page: %d %s", code, s)
	}
	if err := w.waitWhilePaused(ctx); err != nil {
		t.Error(err)
	}
	ask("POST", "/pause", nil)
	waited := make(chan error, 1)
	go func() { waited <- w.waitWhilePaused(ctx) }()
	select {
	case <-waited:
		t.Fatal("went on while paused")
	case <-time.After(30 * time.Millisecond):
	}
	var st Status
	if _, s := ask("GET", "/status", nil); json.Unmarshal([]byte(s), &st) != nil || st.State != Paused || st.Runs != 1 || st.Of != 4 {
		t.Errorf("status %s", s)
	}
	if readOrder(dir) != Pause {
		t.Error("the other cells are not told")
	}
	for name, change := range map[string]func(*http.Request){
		"another machine":  func(r *http.Request) { r.RemoteAddr = "192.0.2.1:5" },
		"a name of others": func(r *http.Request) { r.Host = "evil.example" },
		"a foreign page":   func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
	} {
		if code, _ := ask("POST", "/resume", change); code != http.StatusForbidden {
			t.Errorf("%s: %d", name, code)
		}
	}
	ask("POST", "/resume", nil)
	if err := <-waited; err != nil {
		t.Error(err)
	}
	ask("POST", "/pause", nil)
	go func() { waited <- w.waitWhilePaused(ctx) }()
	ask("POST", "/stop", nil)
	if err := <-waited; !errors.Is(err, context.Canceled) || !w.Stopped() {
		t.Errorf("stopped while paused: %v", err)
	}
}

// endless is a plan of more runs than a test has time for.
const endless = "pages: 3000\ntime: 400000\nchanges: [1, 2, 3, 4]\nrequests: 5\nvariants: [\"plain:1\", sensor]\nreplications: 500\n"

// Another process sees how a sweep stands by its directory alone, and pauses,
// resumes and stops it there.
func TestWatchFromOutside(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := mustPlan(t, endless)
	done := make(chan error, 1)
	go func() {
		_, err := p.Do(t.Context(), Config{Text: []byte(endless), Dir: dir, Cell: Cell{1, 2}, Watch: &Watch{}})
		done <- err
	}()
	status := func() (s Status) {
		for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			all, err := Statuses(dir)
			must(t, err)
			if len(all) == 1 {
				return all[0]
			}
		}
		t.Fatal("no status")
		return s
	}
	until := func(what string, ok func(Status) bool) (s Status) {
		for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			if s = status(); ok(s) {
				return s
			}
		}
		t.Fatalf("%s: %+v", what, s)
		return s
	}
	s := until("it runs", func(s Status) bool { return s.Runs > 3 })
	if s.State != Running || s.Cell != "1/2" || s.Of != 2000 || s.Left <= 0 || s.Done <= 0 || len(s.Variants) == 0 || len(s.Latest) == 0 || len(s.Latest[0].Curve) != curvePoints || s.Latest[0].Curve[0] != 100 {
		t.Errorf("%+v", s)
	}
	if dirs := Directories([]string{filepath.Dir(dir)}); !slices.Contains(dirs, dir) {
		t.Errorf("%s is not among %q", dir, dirs)
	}
	must(t, Ask(dir, Pause))
	before := until("it pauses", func(s Status) bool { return s.State == Paused })
	was := before.Runs
	until("the runs under way end", func(Status) bool {
		last := status().Runs
		time.Sleep(1200 * time.Millisecond)
		was = status().Runs
		return was == last
	})
	if now := status(); now.Runs != was || now.State != Paused || was < before.Runs {
		t.Errorf("%d runs while paused, %d before", now.Runs, was)
	}
	must(t, Ask(dir, Resume))
	until("it goes on", func(s Status) bool { return s.State == Running && s.Runs > was })
	must(t, Ask(dir, Stop))
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
	if s := status(); s.State != Stopped || s.Runs < was {
		t.Errorf("%+v", s)
	}
	if err := Ask(t.TempDir(), Stop); !errors.Is(err, ErrInput) {
		t.Errorf("a directory of something else: %v", err)
	}
	if err := Ask(dir, "dance"); !errors.Is(err, ErrInput) {
		t.Errorf("an unknown order: %v", err)
	}
}
