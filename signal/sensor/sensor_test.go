package sensor

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/freshet/freshet/signal"
)

type collector struct {
	mu     sync.Mutex
	events []signal.Event
}

func (c *collector) add(e signal.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, e)
}

// Changed makes it a sink.
func (c *collector) Changed(_ context.Context, _ string, e []signal.Event) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, e...)
	return len(e), nil
}

func (c *collector) take() []signal.Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.events
	c.events = nil
	return e
}

// eventually waits until something holds, however slow the machine is.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

func TestSensor(t *testing.T) {
	t.Parallel()
	var got collector
	body, status, private := "one", 200, false
	path := "/p?q=1"
	s := New("http://h.example/", 0, got.add)
	h := s.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if private {
			w.Header().Set("Cache-Control", "private")
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}))
	get := func(method string, header ...string) {
		r := httptest.NewRequest(method, path, nil)
		for i := 0; i+1 < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != status || w.Body.String() != body {
			t.Errorf("answer %d %q, want %d %q", w.Code, w.Body, status, body)
		}
	}
	steps := []struct {
		name    string
		do      func()
		want    string
		private bool
	}{
		{"first sight", func() { get("GET") }, "", false},
		{"same", func() { get("GET") }, "", false},
		{"changed", func() { body = "two"; get("GET") }, "updated", false},
		{"post", func() { body = "three"; get("POST") }, "", false},
		{"with credentials", func() { get("GET", "Authorization", "x") }, "", false},
		{"private", func() { private = true; get("GET"); private = false }, "", false},
		{"an error is no change", func() { status = 500; get("GET"); status = 200 }, "", false},
		{"seen at last", func() { get("GET") }, "updated", false},
		{"gone", func() { status = 404; get("GET") }, "deleted", false},
		{"gone still", func() { get("GET") }, "", false},
		{"back", func() { status = 200; get("GET") }, "updated", false},
		{"gone again", func() { status = 410; get("GET") }, "deleted", false},
		{"errors are told", func() { s.TellErrors(); status = 500; get("GET") }, "updated", false},
		{"the same error", func() { get("GET") }, "", false},
		{"another error", func() { status = 403; get("GET") }, "updated", false},
		{"and its end", func() { status = 200; get("GET") }, "updated", false},
		{"an unknown page in error", func() { path, status = "/q", 500; get("GET"); status = 200; get("GET"); path = "/p?q=1" }, "", false},
	}
	for _, step := range steps {
		step.do()
		e := got.take()
		if (step.want == "") != (len(e) == 0) || (step.want != "" && (len(e) != 1 || e[0].Event != step.want || e[0].URL != "http://h.example/p?q=1")) {
			t.Errorf("%s: %+v", step.name, e)
		}
	}
}

// A page that is never the same twice does not flood the receiver.
func TestNoise(t *testing.T) {
	t.Parallel()
	var got collector
	n := 0
	h := New("http://h", 0, got.add).Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { n++; fmt.Fprint(w, n) }))
	for range 1000 {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	}
	if e := len(got.take()); e < 1 || e > noisy {
		t.Errorf("%d events of a clock", e)
	}
}

// A receiver that is down, then refuses, then works gets every event, across a
// restart of the sensor, each once.
func TestNothingIsLost(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var sink collector
	receiver := &signal.Events{Secrets: map[string]string{"s": "k"}, Sink: &sink}
	var up atomic.Bool
	var refused, lost atomic.Int64 // lost: answers taken but lost on the way back
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !up.Load() {
			refused.Add(1)
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		if lost.Add(1) == 1 {
			receiver.ServeHTTP(httptest.NewRecorder(), r)
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		receiver.ServeHTTP(w, r)
	}))
	defer server.Close()
	const half = 4000
	run := func(from int, what string, enough func() bool) {
		t.Helper()
		spool, err := OpenSpool(dir, 64<<20)
		if err != nil {
			t.Fatal(err)
		}
		for i := range half {
			spool.Add(signal.Event{URL: fmt.Sprintf("http://h/%d/%s", from+i, strings.Repeat("x", 200)), Seen: time.Now()})
		}
		send(t, &Sender{Spool: spool, To: server.URL, Name: "s", Secret: "k", Every: 5 * time.Millisecond}, what, enough)
	}
	run(0, "a refusal", func() bool { return refused.Load() > 0 })
	if got := len(sink.take()); got != 0 {
		t.Fatalf("%d events while down", got)
	}
	up.Store(true)
	seen := map[string]int{}
	run(half, "every event", func() bool {
		for _, e := range sink.take() {
			seen[e.URL]++
		}
		return len(seen) >= 2*half
	})
	for _, e := range sink.take() {
		seen[e.URL]++
	}
	if len(seen) != 2*half {
		t.Errorf("%d of %d events arrived", len(seen), 2*half)
	}
	for u, n := range seen {
		if n != 1 {
			t.Fatalf("%s came %d times", u[:20], n)
		}
	}
}

// send runs a sender until something holds, and closes its spool.
func send(t *testing.T, s *Sender, what string, enough func() bool) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	eventually(t, what, enough)
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if err := s.Spool.Close(); err != nil {
		t.Fatal(err)
	}
}

// A torn last line is cut off, a full spool says so, and neither panics.
func TestSpool(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := OpenSpool(dir, 400)
	if err != nil {
		t.Fatal(err)
	}
	s.Add(signal.Event{URL: "http://h/a"})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "0000000001.ndjson")
	whole, _ := os.ReadFile(name)
	if err := os.WriteFile(name, append(whole, `{"url":"torn`...), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err = OpenSpool(dir, 400); err != nil {
		t.Fatal(err)
	}
	if b, err := s.Next(1 << 20); err != nil || string(b) != string(whole) {
		t.Errorf("after a crash: %q, %v", b, err)
	}
	for range 100 {
		s.Add(signal.Event{URL: "http://h/b"})
	}
	if err := s.Sync(); err == nil || s.Dropped() != 100 {
		t.Errorf("a full spool: %v, %d dropped", err, s.Dropped())
	}
}

// What the sensor costs a page of 12 KB.
func BenchmarkWrap(b *testing.B) {
	page := []byte(strings.Repeat("x", 12<<10))
	plain := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(page) })
	for name, h := range map[string]http.Handler{"plain": plain, "sensor": New("http://h", 0, func(signal.Event) {}).Wrap(plain)} {
		b.Run(name, func(b *testing.B) {
			server := httptest.NewServer(h)
			defer server.Close()
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					res, err := http.Get(server.URL)
					if err != nil {
						b.Fatal(err)
					}
					io.Copy(io.Discard, res.Body)
					res.Body.Close()
				}
			})
		})
	}
}

// An event that the receiver calls malformed is given up and holds nothing up.
func TestRefusedEvent(t *testing.T) {
	t.Parallel()
	var sink collector
	receiver := &signal.Events{Secrets: map[string]string{"s": "k"}, Sink: &sink}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if strings.Contains(string(b), "bad") {
			http.Error(w, "line 2: bad", http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(strings.NewReader(string(b)))
		receiver.ServeHTTP(w, r)
	}))
	defer server.Close()
	spool, err := OpenSpool(t.TempDir(), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "bad", "b", "c"} {
		spool.Add(signal.Event{URL: "http://h/" + name})
	}
	sender := &Sender{Spool: spool, To: server.URL, Name: "s", Secret: "k", Every: 5 * time.Millisecond}
	var arrived []signal.Event
	send(t, sender, "three events and one given up", func() bool {
		arrived = append(arrived, sink.take()...)
		return len(arrived) >= 3 && sender.Refused() >= 1
	})
	if n := len(arrived) + len(sink.take()); n != 3 || sender.Refused() != 1 {
		t.Errorf("%d events arrived, %d were given up; want 3 and 1", n, sender.Refused())
	}
}
