package sensor

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/freshet/freshet/signal"
)

// readerFrom is a server that tells whether a body went its own way.
type readerFrom struct {
	*httptest.ResponseRecorder
	fast int
}

func (r *readerFrom) ReadFrom(from io.Reader) (int64, error) {
	r.fast++
	return io.Copy(r.Body, from)
}

// A page whose validator is known is not digested and goes the fast way; a new
// validator with the old body tells nothing, one with a new body does; the date
// of a moment ago is no validator, for the file may change once more.
func TestValidators(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	name := filepath.Join(root, "a.html")
	begun := time.Now() // dates that stay the same from step to step, however long these take
	write := func(text string, ago time.Duration) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		at := begun.Add(-ago)
		if ago == 0 {
			at = time.Now()
		}
		if err := os.Chtimes(name, at, at); err != nil {
			t.Fatal(err)
		}
	}
	var got collector
	h := New("http://h.example", 0, got.add).Wrap(http.FileServer(http.Dir(root)))
	page := strings.Repeat("x", 5000)
	steps := []struct {
		name, text string
		ago        time.Duration
		fast       int
		events     int
	}{
		{"first sight", page, time.Hour, 0, 0},
		{"known", page, time.Hour, 1, 0},
		{"touched", page, time.Minute, 0, 0},
		{"known again", page, time.Minute, 1, 0},
		{"changed", page + "y", 30 * time.Second, 0, 1},
		{"known once more", page + "y", 30 * time.Second, 1, 0},
		{"changed a moment ago", page + "z", 0, 0, 1},
		{"changed within a second, of one length", page + "w", 0, 0, 1},
	}
	for _, s := range steps {
		write(s.text, s.ago)
		w := &readerFrom{ResponseRecorder: httptest.NewRecorder()}
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/a.html", nil))
		if w.Body.String() != s.text || w.fast != s.fast {
			t.Errorf("%s: %d bytes, %d of the fast way, want %d", s.name, w.Body.Len(), w.fast, s.fast)
		}
		if e := got.take(); len(e) != s.events {
			t.Errorf("%s: events %+v", s.name, e)
		}
	}
}

// A page without a validator that is asked for all the time and stays as it is
// is not digested each time; its change is seen after a moment all the same.
func TestBusyPage(t *testing.T) {
	t.Parallel()
	var got collector
	text := "as it was"
	s := New("http://h.example", 0, got.add)
	h := s.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }))
	get := func() { h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)) }
	for range 100 {
		get()
	}
	text = "changed"
	var e []signal.Event
	eventually(t, "an event", func() bool { get(); e = got.take(); return len(e) > 0 })
	if len(e) != 1 {
		t.Errorf("events %+v", e)
	}
}
