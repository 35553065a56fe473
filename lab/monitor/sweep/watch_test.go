package sweep

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// A sweep is watched, paused between runs, resumed and stopped by requests of
// this machine; others are refused.
func TestWatch(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	w := &Watch{Stop: cancel}
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
	w.Update(1, 4, "1 of 4 runs; plain:1 <b>")
	if code, s := ask("GET", "/", nil); code != 200 || !strings.Contains(s, `max="4"`) || !strings.Contains(s, "&lt;b&gt;") {
		t.Errorf("page: %d %s", code, s)
	}
	if err := w.Wait(ctx); err != nil {
		t.Error(err)
	}
	ask("POST", "/pause", nil)
	waited := make(chan error, 1)
	go func() { waited <- w.Wait(ctx) }()
	select {
	case <-waited:
		t.Fatal("went on while paused")
	case <-time.After(30 * time.Millisecond):
	}
	var st State
	if _, s := ask("GET", "/status", nil); json.Unmarshal([]byte(s), &st) != nil || !st.Paused || st.Done != 1 {
		t.Errorf("status %s", s)
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
	go func() { waited <- w.Wait(ctx) }()
	ask("POST", "/stop", nil)
	if err := <-waited; !errors.Is(err, context.Canceled) {
		t.Errorf("stopped while paused: %v", err)
	}
}
