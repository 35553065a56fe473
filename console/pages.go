package console

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/freshet/freshet/internal/progress"
)

const (
	resultsAPage  = 10
	searchTimeout = 10 * time.Second
)

// functions are what the templates call.
var functions = template.FuncMap{
	"ago":     formatAgo,
	"until":   formatUntil,
	"asset":   assetAddress,
	"bytes":   sizeText,
	"count":   countText,
	"percent": func(v float64) string { return strconv.FormatFloat(100*v, 'f', 1, 64) + " %" },
	"short":   shortTime,
	"clock":   progress.Clock,
	"giga":    func(v float64) float64 { return v / 1e9 },
	"figures": threeFigures,
	"spark":   sparkPoints,
	"address": func(u string) template.URL { return template.URL(safeAddress(u)) },
	"pretty":  prettyURL,
}

// safeAddress lets through the schemes that results have and no script.
func safeAddress(u string) string {
	scheme, _, _ := strings.Cut(u, ":")
	switch strings.ToLower(scheme) {
	case "http", "https", "ftp", "ftps", "ftpes", "sftp", "smb", "file", "webdav", "webdavs":
		return u
	}
	if strings.HasPrefix(u, "/") && !strings.HasPrefix(u, "//") {
		return u
	}
	return "#"
}

// prettyURL shows an address as people write it: unescaped, without scheme.
func prettyURL(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return s
	}
	path, err := url.PathUnescape(u.EscapedPath())
	if err != nil || strings.ContainsFunc(path, func(r rune) bool { return r < ' ' }) {
		path = u.EscapedPath()
	}
	out := strings.TrimPrefix(u.Host+strings.ReplaceAll(strings.TrimSuffix(path, "/"), "/", " › "), " › ")
	if u.RawQuery != "" {
		out += "?" + u.RawQuery
	}
	return out
}

func formatAgo(t time.Time) string {
	if t.IsZero() || t.Unix() <= 0 {
		return "never"
	}
	switch d := time.Since(t); {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", int(d.Hours()))
	case d < 60*24*time.Hour:
		return fmt.Sprintf("%d days ago", int(d.Hours()/24))
	}
	return t.Format("2 Jan 2006")
}

// formatUntil says how far away a time to come is.
func formatUntil(t time.Time) string {
	d := time.Until(t)
	if d < time.Second {
		return "now"
	}
	return "in " + shortTime(d.Round(time.Second))
}

func sizeText(n int64) string {
	v, units := float64(n), []string{"B", "KB", "MB", "GB", "TB", "PB"}
	i := 0
	for v >= 1024 && i < len(units)-1 {
		v /= 1024
		i++
	}
	if i == 0 || v >= 100 {
		return fmt.Sprintf("%.0f %s", v, units[i])
	}
	return fmt.Sprintf("%.1f %s", v, units[i])
}

// shortTime rounds a duration to what a reader cares about.
func shortTime(d time.Duration) string {
	switch {
	case d > 0 && d < time.Millisecond:
		return "under 1 ms"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Round(time.Millisecond).Milliseconds())
	case d < time.Minute:
		return strconv.FormatFloat(d.Round(100*time.Millisecond).Seconds(), 'f', -1, 64) + " s"
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Round(time.Minute).Minutes()))
	case d < 48*time.Hour:
		d = d.Round(time.Minute)
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d days", int(d.Round(24*time.Hour).Hours()/24))
}

// threeFigures writes a number with three figures that mean something.
func threeFigures(v float64) string {
	if v >= 100 {
		return countText(int64(v + .5))
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// countText groups the digits of a number.
func countText(n any) string {
	s := fmt.Sprint(n)
	var b strings.Builder
	for i, c := range s {
		if i > 0 && (len(s)-i)%3 == 0 && s[i-1] != '-' {
			b.WriteRune('\u202f')
		}
		b.WriteRune(c)
	}
	return b.String()
}

// cachedPage shows our copy as inert text or HTML: the sandbox gives it an origin
// of its own without scripts, and nothing is loaded from elsewhere. What is not
// HTML is shown as plain text or downloaded, so that no copy can serve as script
// or style sheet of a page of ours.
func (s *Server) cachedPage(w http.ResponseWriter, r *http.Request) {
	if s.cacher == nil {
		s.handleUnknown(w, r)
		return
	}
	u := r.URL.Query().Get("url")
	c, err := s.cacher.Cached(r.Context(), u)
	if errors.Is(err, fs.ErrNotExist) {
		s.failWith(w, r, http.StatusNotFound, "There is no copy of this page: it is no longer kept, or was never fetched, or its author does not want copies.")
		return
	}
	if err != nil {
		s.log.Error("cached copy", "url", u, "err", err)
		s.failWith(w, r, http.StatusInternalServerError, "The copy cannot be read; the log says why.")
		return
	}
	kind, isHTML, isText := copyType(c.ContentType)
	h := w.Header()
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("Content-Type", kind)
	if !isText {
		h.Set("Content-Disposition", "attachment")
	}
	if isHTML {
		_, _ = fmt.Fprintf(w, `<!DOCTYPE html><div style="font:14px/1.5 sans-serif;background:#eef4fb;color:#1b1f24;overflow-wrap:anywhere;border-bottom:1px solid #9bb;padding:.5em 1em;margin:0 0 1em">Copy of <a href="%s" rel="noreferrer">%s</a> as it was fetched %s (%s). The page may have changed since.</div>`,
			template.HTMLEscapeString(safeAddress(c.URL)), template.HTMLEscapeString(c.URL), c.Fetched.UTC().Format("2 January 2006 15:04 UTC"), formatAgo(c.Fetched))
	}
	_, _ = w.Write(c.Body)
}

// copyType returns the Content-Type that a copy is served with: HTML as HTML,
// other text and what browsers take for documents or scripts as plain text, the
// rest as bytes to download. A charset that the server declared is kept.
func copyType(declared string) (kind string, isHTML, isText bool) {
	media, params, err := mime.ParseMediaType(declared)
	if err != nil {
		media, _, _ = strings.Cut(strings.ToLower(declared), ";")
		media = strings.TrimSpace(media)
	}
	charset := ""
	if name := params["charset"]; charsetName.MatchString(name) {
		charset = "; charset=" + name
	}
	switch {
	case media == "text/html" || media == "application/xhtml+xml":
		return "text/html" + charset, true, true // by the lenient parser, which needs no well-formed text
	case strings.HasPrefix(media, "text/"), strings.HasSuffix(media, "+xml"), strings.HasSuffix(media, "/xml"), strings.HasSuffix(media, "json"), strings.HasSuffix(media, "javascript"):
		return "text/plain" + charset, false, true
	}
	return "application/octet-stream", false, false
}

var charsetName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,40}$`)

// statusView is what status.html shows.
type statusView struct {
	frame
	S   liveView
	Did string // what a button has done
}

// liveView is the part of the status page that is kept up to date.
type liveView struct {
	*Status
	Operator bool // the reader may change things
}

// done tells what the buttons of the status page have done.
var done = map[string]string{
	"pause":  "Paused: what runs is finished, nothing new begins.",
	"resume": "Going on.",
	"agents": "The numbers of agents are set.",
	"source": "The source is added; it stands below, its pages come as they are fetched.",
	"remove": "The source is removed; its pages leave the index as the robot comes to them.",
	"leave":  "The source is removed; its pages stay in the index and are visited no more.",
}

func (s *Server) statusPage(w http.ResponseWriter, r *http.Request) {
	st, err := s.operator.Status(r.Context())
	if err != nil {
		s.log.Error("status", "err", err)
		s.failWith(w, r, http.StatusInternalServerError, "The status cannot be read; the log says why.")
		return
	}
	s.renderTemplate(w, http.StatusOK, "status.html", statusView{s.pageFrame(r, "/status"), liveView{st, s.mayOperate(r)}, done[r.URL.Query().Get("did")]})
}

func (s *Server) streamStatus(w http.ResponseWriter, r *http.Request) {
	s.streamEvents(w, r, "live", func(ctx context.Context) (any, error) {
		st, err := s.operator.Status(ctx)
		return liveView{st, s.mayOperate(r)}, err // a session may end meanwhile
	})
}

// streamEvents sends what view returns every second as server-sent events until the
// page is left. The event is the inner HTML of the page's live part, so that the
// page needs a few lines of script and no copy of the template.
func (s *Server) streamEvents(w http.ResponseWriter, r *http.Request, template string, view func(context.Context) (any, error)) {
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		s.failWith(w, r, http.StatusServiceUnavailable, "too many live pages are open: close one")
		return
	}
	rc := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no")
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		if !s.mayRead(r) { // the session has ended
			return
		}
		v, err := view(r.Context())
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := s.pages.ExecuteTemplate(&b, template, v); err != nil {
			s.log.Error("live page", "template", template, "err", err)
			return
		}
		data, err := json.Marshal(b.String())
		if err != nil {
			return
		}
		if _, err := fmt.Fprintf(w, "data: %s\n\n", data); err != nil {
			return
		}
		if err := rc.Flush(); err != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
	}
}

// controlForm takes the buttons of the status page.
func (s *Server) controlForm(w http.ResponseWriter, r *http.Request) {
	if !s.readForm(w, r) {
		return
	}
	ctx := r.Context()
	var err error
	switch r.PostForm.Get("do") {
	case "pause":
		err = s.operator.Pause(ctx)
	case "resume":
		err = s.operator.Resume(ctx)
	case "agents":
		var fetch, render *int
		for name, dst := range map[string]**int{"fetch": &fetch, "render": &render} {
			if v := r.PostForm.Get(name); v != "" {
				n, convErr := strconv.Atoi(v)
				if convErr != nil || n < 0 || n > maxAgents {
					s.failWith(w, r, http.StatusBadRequest, fmt.Sprintf("%s agents: %q is not a number in 0 to %d", name, v, maxAgents))
					return
				}
				*dst = &n
			}
		}
		err = s.operator.SetAgents(ctx, fetch, render)
	case "source":
		err = s.operator.AddSource(ctx, Source{URL: strings.TrimSpace(r.PostForm.Get("url")), Scope: r.PostForm.Get("scope")})
	case "remove", "leave":
		err = s.operator.RemoveSource(ctx, r.PostForm.Get("url"), r.PostForm.Get("do") == "leave")
	default:
		err = fmt.Errorf("unknown action %q", r.PostForm.Get("do"))
	}
	if err != nil {
		s.failWith(w, r, http.StatusBadRequest, err.Error())
		return
	}
	http.Redirect(w, r, "/status?did="+r.PostForm.Get("do"), http.StatusSeeOther)
}

// renderTemplate executes a page into memory first, so that a template's error does
// not end half a page.
func (s *Server) renderTemplate(w http.ResponseWriter, code int, name string, data any) {
	var b bytes.Buffer
	if err := s.pages.ExecuteTemplate(&b, name, data); err != nil {
		s.log.Error("page", "name", name, "err", err)
		http.Error(w, "This page cannot be shown; the log says why.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = w.Write(b.Bytes())
}
