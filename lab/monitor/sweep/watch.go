package sweep

import (
	"context"
	"encoding/json"
	"html/template"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/freshet/freshet/progress"
)

// Watch shows a sweep in a browser while it runs, and pauses, resumes or stops
// it between two runs. Give its Update and Wait to Config; it is an
// http.Handler for loopback addresses: GET / is the page, GET /status JSON,
// POST /pause, /resume and /stop do what they say. The zero Watch is ready.
type Watch struct {
	Stop func() // ends the sweep; nil: it cannot be stopped from here

	mu      sync.Mutex
	began   time.Time
	state   State
	ended   []string      // the last runs, newest first
	resumed chan struct{} // closed when a pause ends
}

// State is what GET /status tells.
type State struct {
	Done   int64  `json:"done"`
	Total  int64  `json:"total"`
	Text   string `json:"text"`
	Left   string `json:"left"` // time left, by what was done so far
	Paused bool   `json:"paused"`
}

// lately is how many runs the page lists.
const lately = 30

// Update takes what Config.Progress is told.
func (w *Watch) Update(done, total int64, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.began.IsZero() {
		w.began = time.Now()
	}
	w.state.Done, w.state.Total, w.state.Text = done, total, text
	w.state.Left = progress.Format(done, total, time.Since(w.began))
	w.ended = slices.Insert(w.ended, 0, text)
	w.ended = w.ended[:min(len(w.ended), lately)]
}

// Wait returns when the sweep is not paused, or with the context's error.
func (w *Watch) Wait(ctx context.Context) error {
	for {
		w.mu.Lock()
		paused, resumed := w.state.Paused, w.resumed
		w.mu.Unlock()
		if !paused {
			return ctx.Err()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-resumed:
		}
	}
}

func (w *Watch) pause(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case on && !w.state.Paused:
		w.resumed = make(chan struct{})
	case !on && w.state.Paused:
		close(w.resumed)
	}
	w.state.Paused = on
}

// State tells where the sweep stands.
func (w *Watch) State() State {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state
}

var watchPage = template.Must(template.New("watch").Parse(`<!DOCTYPE html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="2"><title>Sweep</title>
<style>body{font:16px system-ui;max-width:50em;margin:2em auto;padding:0 1em}progress{width:100%}form{display:inline}li{color:#555}</style>
<h1>Sweep{{if .Paused}}, paused{{end}}</h1><progress value="{{.Done}}" max="{{.Total}}"></progress><p>{{.Left}}</p>
{{if .Paused}}<form method="post" action="/resume"><button>Resume</button></form>{{else}}<form method="post" action="/pause"><button>Pause</button></form>{{end}}
{{if .Stop}}<form method="post" action="/stop"><button>Stop (the same command goes on later)</button></form>{{end}}
<ul>{{range .Ended}}<li>{{.}}</li>{{end}}</ul></html>
`))

// ServeHTTP implements http.Handler.
func (w *Watch) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if !local(r) {
		http.Error(rw, "from this machine only", http.StatusForbidden)
		return
	}
	switch r.Method + " " + r.URL.Path {
	case "GET /":
		w.mu.Lock()
		page := struct {
			State
			Ended []string
			Stop  bool
		}{w.state, slices.Clone(w.ended), w.Stop != nil}
		w.mu.Unlock()
		rw.Header().Set("Content-Type", "text/html; charset=utf-8")
		rw.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'")
		_ = watchPage.Execute(rw, page)
	case "GET /status":
		rw.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(rw).Encode(w.State())
	case "POST /pause":
		w.pause(true)
		http.Redirect(rw, r, "/", http.StatusSeeOther)
	case "POST /resume":
		w.pause(false)
		http.Redirect(rw, r, "/", http.StatusSeeOther)
	case "POST /stop":
		if w.Stop != nil {
			w.Stop()
		}
		_, _ = rw.Write([]byte("stopping\n"))
	default:
		http.NotFound(rw, r)
	}
}

// local reports whether a request comes from this machine, by its address and by
// the name that was asked for, and not from a foreign page.
func local(r *http.Request) bool {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !peer.Addr().Unmap().IsLoopback() {
		return false
	}
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	name, err := netip.ParseAddr(host)
	if host != "localhost" && (err != nil || !name.IsLoopback()) {
		return false // a name that somebody points here
	}
	site := r.Header.Get("Sec-Fetch-Site")
	return r.Method == http.MethodGet || site == "" || site == "same-origin" || site == "none"
}
