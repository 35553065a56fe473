package sweep

import (
	"encoding/json"
	"html/template"
	"net"
	"net/http"
	"net/netip"

	"github.com/freshet/freshet/internal/progress"
)

var watchPage = template.Must(template.New("watch").Funcs(template.FuncMap{"clock": progress.Clock, "percent": func(v float64) float64 { return 100 * v }}).Parse(`<!DOCTYPE html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta http-equiv="refresh" content="2"><title>Sweep {{.Plan}}</title>
<style>body{font:16px/1.5 system-ui;max-width:50em;margin:2em auto;padding:0 1em}progress{width:100%}form{display:inline}td,th{padding:.1em 1em .1em 0;text-align:left}</style>
<h1>Sweep {{.Plan}} {{.Cell}}: {{.State}}</h1><progress value="{{.Done}}" max="1"></progress>
<p>{{.Runs}} of {{.Of}} runs, {{printf "%.1f" (percent .Done)}} % of the work{{if .Left}}, {{clock .Left}} left{{end}}</p>
{{if eq .State "paused"}}<form method="post" action="/resume"><button>Resume</button></form>{{else}}<form method="post" action="/pause"><button>Pause</button></form>{{end}}
<form method="post" action="/stop"><button>Stop (the same command goes on later)</button></form>
<table><tr><th>variant<th>runs<th>fresh, %<th>GB</tr>{{range .Variants}}<tr><td>{{.Variant}}<td>{{.Runs}}<td>{{printf "%.2f" .Freshness}}<td>{{printf "%.2e" .Bytes}}</tr>{{end}}</table>
<ul>{{range .Latest}}<li>field {{.Field}} {{.Variant}}{{with .Replication}}, replication {{.}}{{end}}: {{printf "%.2f" .Freshness}} % fresh</li>{{end}}</ul></html>
`))

// ServeHTTP shows the sweep to browsers of this machine: GET / is the page, GET
// /status JSON, POST /pause, /resume and /stop do what they say.
func (w *Watch) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if !isLocalRequest(r) {
		http.Error(rw, "from this machine only", http.StatusForbidden)
		return
	}
	switch path := r.Method + " " + r.URL.Path; path {
	case "GET /":
		rw.Header().Set("Content-Type", "text/html; charset=utf-8")
		rw.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'")
		_ = watchPage.Execute(rw, w.Status())
	case "GET /status":
		rw.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(rw).Encode(w.Status())
	case "POST /pause", "POST /resume", "POST /stop":
		if err := w.requestOrder(Order(r.URL.Path[1:])); err != nil {
			http.Error(rw, err.Error(), http.StatusInternalServerError)
			return
		}
		http.Redirect(rw, r, "/", http.StatusSeeOther)
	default:
		http.NotFound(rw, r)
	}
}

// isLocalRequest reports whether a request comes from this machine, by its address and by
// the name that was asked for, and not from a foreign page.
func isLocalRequest(r *http.Request) bool {
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
