package sensor

import (
	"fmt"
	"html/template"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/freshet/freshet/signal"
)

// What a handler writes in pieces, as bytes and as strings, is digested as one
// body, and a calm page's pieces go straight on.
func TestPieces(t *testing.T) {
	t.Parallel()
	var told []signal.Event
	body := "one two three"
	h := New("http://h.example", 0, func(e signal.Event) { told = append(told, e) }).Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for i, word := range strings.SplitAfter(body, " ") {
			if i%2 == 0 == (r.Header.Get("Turn") == "") {
				_, _ = io.WriteString(w, word)
			} else {
				_, _ = w.Write([]byte(word))
			}
		}
	}))
	get := func(turn string) {
		r := httptest.NewRequest(http.MethodGet, "/p", nil)
		if turn != "" {
			r.Header.Set("Turn", turn)
		}
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Body.String() != body {
			t.Errorf("%q, want %q", w.Body.String(), body)
		}
	}
	for range 3 {
		get("")
		get("other")
	}
	if len(told) != 0 {
		t.Errorf("told of %v", told)
	}
	if body = "one two four"; len(told) == 0 {
		get("")
	}
	if len(told) != 1 || told[0].Size != int64(len(body)) {
		t.Errorf("told of %+v", told)
	}
	for range 2 * calm {
		get("")
	}
}

// BenchmarkTemplate executes a template of forty rows behind a server on
// loopback, with and without the sensor.
func BenchmarkTemplate(b *testing.B) {
	page := template.Must(template.New("").Parse(`{{range .}}<h2>{{.}}</h2><p>{{.}}</p>{{printf "%.2f" 1.5}}<a href="/tag/{{.}}">{{.}}</a>{{end}}`))
	var rows []string
	for i := range 40 {
		rows = append(rows, fmt.Sprintf("Article %d, black & white", i))
	}
	plain := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _ = page.Execute(w, rows) })
	for name, h := range map[string]http.Handler{"plain": plain, "sensor": New("http://h.example", 0, func(signal.Event) {}).Wrap(plain)} {
		b.Run(name, func(b *testing.B) {
			s := httptest.NewServer(h)
			defer s.Close()
			for b.Loop() {
				res, err := http.Get(s.URL)
				if err != nil {
					b.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
			}
		})
	}
}
