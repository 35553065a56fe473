package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/freshet/freshet/index/query"
)

// countedReader counts what is read of a body that never ends.
type countedReader struct{ n int }

func (c *countedReader) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'a'
	}
	c.n += len(b)
	return len(b), nil
}

// No request without login can make the server read, keep or store a long body.
func TestBodiesAreBounded(t *testing.T) {
	t.Parallel()
	robot := &robot{}
	s, err := New(Config{Listen: "127.0.0.1:0", Password: passwordHash(t)}, robot, robot, robot, slog.New(slog.DiscardHandler), map[string]http.Handler{
		"POST /indexnow": http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.CopyN(io.Discard, r.Body, 1<<20) }),
	})
	if err != nil {
		t.Fatal(err)
	}
	h := s.Handler()
	form := "application/x-www-form-urlencoded"
	for _, tt := range []struct {
		method, path, contentType, begin string
		code                             int
	}{
		{"POST", "/login", form, "password=", 413},
		{"POST", "/login", "multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=\"password\"; filename=\"x\"\r\n\r\n", 415},
		{"POST", "/login", "", "password=", 415},
		{"POST", "/login", "text/plain", "password=", 415},
		{"POST", "/login", form + "; charset=\xff", "password=", 415},
	} {
		body := &countedReader{}
		r := httptest.NewRequest(tt.method, tt.path, io.MultiReader(strings.NewReader(tt.begin), body))
		r.Host = "127.0.0.1"
		if tt.contentType != "" {
			r.Header.Set("Content-Type", tt.contentType)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != tt.code {
			t.Errorf("%s %s as %q: %d %s, want %d", tt.method, tt.path, tt.contentType, w.Code, w.Body, tt.code)
		}
		if body.n > 2*maxFormBytes {
			t.Errorf("%s %s as %q: read %d bytes", tt.method, tt.path, tt.contentType, body.n)
		}
	}
	body := &countedReader{}
	r := httptest.NewRequest("POST", "/indexnow", body)
	r.Host = "127.0.0.1"
	h.ServeHTTP(httptest.NewRecorder(), r)
	if body.n < 1<<20 {
		t.Errorf("a receiver, which bounds its body itself, got %d bytes", body.n)
	}
}

// finder answers by a function.
type finder func(context.Context, Request) (*Results, error)

func (f finder) Find(ctx context.Context, r Request) (*Results, error) { return f(ctx, r) }

// Whatever goes wrong in a search is an answer with a status and a text, and
// what is inside the server stays there.
func TestSearchProblems(t *testing.T) {
	t.Parallel()
	_, bounds := query.ParseBounded("a*", time.Now())
	for _, tt := range []struct {
		name string
		find finder
		code int
		want string
	}{
		{"a score that JSON has no word for", func(context.Context, Request) (*Results, error) {
			return &Results{Total: 1, Results: []Result{{URL: "http://h/", Score: math.NaN()}, {URL: "http://i/", Score: math.Inf(1)}}}, nil
		}, 200, `"http://i/"`},
		{"a total that is about right", func(context.Context, Request) (*Results, error) {
			return &Results{Total: 4321, Estimated: true, Results: []Result{{URL: "http://h/"}}}, nil
		}, 200, `"estimated":true`},
		{"a date that JSON has no form for", func(context.Context, Request) (*Results, error) {
			return &Results{Total: 1, Results: []Result{{URL: "http://h/", Date: time.Unix(1e15, 0)}}}, nil
		}, 500, "internal error"},
		{"a bound", func(context.Context, Request) (*Results, error) { return nil, fmt.Errorf("engine: %w", bounds) }, 400, "stands for too many words"},
		{"time", func(context.Context, Request) (*Results, error) { return nil, context.DeadlineExceeded }, 503, "took too long"},
		{"the disk", func(context.Context, Request) (*Results, error) { return nil, errors.New("open /secret/path: EIO") }, 500, "log says why"},
	} {
		s, err := New(Config{Listen: "127.0.0.1:0"}, tt.find, &robot{}, nil, slog.New(slog.DiscardHandler), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/api/search?q=x", "/?q=x"} {
			r := httptest.NewRequest("GET", path, nil)
			r.Host = "localhost"
			w := httptest.NewRecorder()
			s.Handler().ServeHTTP(w, r)
			if path == "/?q=x" && tt.code == 500 && strings.HasPrefix(tt.name, "a date") {
				continue // the page can show it
			}
			if w.Code != tt.code || w.Body.Len() == 0 || (path != "/?q=x" && !strings.Contains(w.Body.String(), tt.want)) {
				t.Errorf("%s, %s: %d %.200s, want %d %s", tt.name, path, w.Code, w.Body, tt.code, tt.want)
			}
			if strings.Contains(w.Body.String(), "/secret/path") {
				t.Errorf("%s, %s tells %s", tt.name, path, w.Body)
			}
		}
	}
}

// Searches beyond the places wait, those beyond the queue are refused at once,
// and no more run than there are places.
func TestSearchGate(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	var mu sync.Mutex
	running, peak := 0, 0
	slow := finder(func(ctx context.Context, _ Request) (*Results, error) {
		mu.Lock()
		running++
		peak = max(peak, running)
		mu.Unlock()
		<-release
		mu.Lock()
		running--
		mu.Unlock()
		return &Results{}, nil
	})
	s, err := New(Config{Listen: "127.0.0.1:0"}, slow, &robot{}, nil, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	h := s.Handler()
	places := cap(s.searches.running)
	const asked = 400
	codes := make(chan int, asked)
	var all sync.WaitGroup
	for range asked {
		all.Go(func() {
			r := httptest.NewRequest("GET", "/api/search?q=x", nil)
			r.Host = "localhost"
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code == http.StatusServiceUnavailable && w.Header().Get("Retry-After") == "" {
				t.Error("503 without Retry-After")
			}
			codes <- w.Code
		})
	}
	for range asked - 5*places { // these were refused while all places are taken
		if code := <-codes; code != http.StatusServiceUnavailable {
			t.Fatalf("answer %d, want 503", code)
		}
	}
	close(release)
	all.Wait()
	if peak != places {
		t.Errorf("%d searches ran at once, want %d", peak, places)
	}
	if len(s.searches.running) != 0 || s.searches.waiting.Load() != 0 {
		t.Errorf("%d places taken, %d waiting after the end", len(s.searches.running), s.searches.waiting.Load())
	}
}
