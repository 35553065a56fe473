package console

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/freshet/freshet/index"
	"github.com/freshet/freshet/progress"
)

const (
	resultsAPage  = 10
	searchTimeout = 10 * time.Second
)

// functions are what the templates call.
var functions = template.FuncMap{
	"ago":     ago,
	"bytes":   sizeText,
	"count":   countText,
	"percent": func(v float64) string { return strconv.FormatFloat(100*v, 'f', 1, 64) + " %" },
	"short":   shortTime,
	"clock":   progress.Clock,
	"giga":    func(v float64) float64 { return v / 1e9 },
	"spark":   spark,
	"address": func(u string) template.URL { return template.URL(safeAddress(u)) },
	"pretty":  prettyURL,
}

// safeAddress lets through the schemes that results have and no script.
func safeAddress(u string) string {
	scheme, _, _ := strings.Cut(u, ":")
	switch strings.ToLower(scheme) {
	case "http", "https", "ftp", "sftp", "smb", "file", "webdav", "webdavs":
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
	out := u.Host + strings.ReplaceAll(strings.TrimSuffix(path, "/"), "/", " › ")
	if u.RawQuery != "" {
		out += "?" + u.RawQuery
	}
	return out
}

func ago(t time.Time) string {
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
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
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

// searchView is what search.html shows.
type searchView struct {
	Title    string
	Query    string
	Kind     string
	ByDate   bool
	Operator bool
	Asked    bool
	Problem  string
	Results  *Results
	Facets   []facetView
	Pages    []pageLink
	Kinds    []string

	sign func(address string) string // of links through this server; nil for direct ones
}

type facetView struct {
	Name   string
	Values []facetLink
}

type facetLink struct {
	Label string
	Count int
	Href  string
	On    bool
}

type pageLink struct {
	Label string
	Href  string
	On    bool
}

func (s *Server) searchPage(w http.ResponseWriter, r *http.Request) {
	v := &searchView{Title: s.config.Title, Query: r.URL.Query().Get("q"), Kind: r.URL.Query().Get("kind"), ByDate: r.URL.Query().Get("sort") == "date", Operator: s.auth.operator(r)}
	if s.config.Clicked != nil && !pings(r) {
		v.sign = s.sign
	}
	v.Kinds = []string{"", "web", "file", "audio", "video", "image", "document"}
	code := http.StatusOK
	if r.URL.Query().Has("q") {
		v.Asked = true
		req, err := searchRequest(r, resultsAPage)
		if err == nil {
			req.Facets = true
			ctx, cancel := context.WithTimeout(r.Context(), searchTimeout)
			defer cancel()
			v.Results, err = s.finder.Find(ctx, req)
		} else {
			code = http.StatusBadRequest
		}
		switch {
		case err == nil:
			v.Facets = facetViews(r.URL, v.Query, v.Results.Facets)
			v.Pages = pageLinks(r.URL, req.Offset, v.Results.Total)
		case code == http.StatusBadRequest:
			v.Problem = err.Error()
		default:
			s.log.Error("search failed", "query", v.Query, "err", err)
			v.Problem, code = "The search failed; the log says why.", http.StatusInternalServerError
		}
	}
	s.render(w, code, "search.html", v)
}

// facetViews makes links that add a value to the query, or take it away.
func facetViews(u *url.URL, q string, facets map[string][]index.Count) []facetView {
	var out []facetView
	for _, f := range []struct{ field, name string }{{"host", "Host"}, {"type", "Type"}, {"lang", "Language"}, {"kind", "Kind"}, {"genre", "Genre"}, {"year", "Year"}, {"ext", "Extension"}} {
		view := facetView{Name: f.name}
		for i, c := range facets[f.field] {
			if i == 8 {
				break
			}
			word := f.field + ":" + c.Value
			if strings.ContainsAny(c.Value, " ()|\"") {
				word = f.field + `:"` + strings.ReplaceAll(c.Value, `"`, "") + `"`
			}
			on := strings.Contains(" "+q+" ", " "+word+" ")
			next := strings.TrimSpace(q + " " + word)
			if on {
				next = strings.Join(strings.Fields(strings.Replace(" "+q+" ", " "+word+" ", " ", 1)), " ")
			}
			view.Values = append(view.Values, facetLink{c.Value, c.Count, with(u, "q", next), on})
		}
		if len(view.Values) > 1 || (len(view.Values) == 1 && view.Values[0].On) {
			out = append(out, view)
		}
	}
	return append(out, dateView(u, q))
}

// dateView makes the links that narrow a search to recent changes.
func dateView(u *url.URL, q string) facetView {
	view := facetView{Name: "Changed"}
	rest := strings.Join(slices.DeleteFunc(strings.Fields(q), func(w string) bool { return strings.HasPrefix(w, "date:") }), " ")
	for _, d := range []struct{ label, age string }{{"last day", "1d"}, {"last week", "7d"}, {"last month", "30d"}, {"last year", "365d"}} {
		word := "date:" + d.age
		on := strings.Contains(" "+q+" ", " "+word+" ")
		next := strings.TrimSpace(rest + " " + word)
		if on {
			next = rest
		}
		view.Values = append(view.Values, facetLink{Label: d.label, Href: with(u, "q", next), On: on})
	}
	return view
}

// with returns the page's address with one parameter changed, on page one.
func with(u *url.URL, key, value string) string {
	v := u.Query()
	v.Del("offset")
	if value == "" {
		v.Del(key)
	} else {
		v.Set(key, value)
	}
	return "/?" + v.Encode()
}

func pageLinks(u *url.URL, offset, total int) []pageLink {
	last := (min(total, index.MaxOffset+resultsAPage) - 1) / resultsAPage
	if last <= 0 {
		return nil
	}
	here := offset / resultsAPage
	link := func(label string, p int) pageLink {
		return pageLink{label, with(u, "offset", strconv.Itoa(p*resultsAPage)), p == here && label != "‹" && label != "›"}
	}
	var out []pageLink
	if here > 0 {
		out = append(out, link("‹", here-1))
	}
	for p := max(0, here-4); p <= min(last, here+4); p++ {
		out = append(out, link(strconv.Itoa(p+1), p))
	}
	if here < last {
		out = append(out, link("›", here+1))
	}
	return out
}

// cachedPage shows our copy as inert text or HTML: scripts off by the sandbox,
// nothing loaded from elsewhere.
func (s *Server) cachedPage(w http.ResponseWriter, r *http.Request) {
	if s.cacher == nil {
		http.NotFound(w, r)
		return
	}
	u := r.URL.Query().Get("url")
	c, err := s.cacher.Cached(r.Context(), u)
	if errors.Is(err, fs.ErrNotExist) {
		http.Error(w, "There is no copy of this page.", http.StatusNotFound)
		return
	}
	if err != nil {
		s.log.Error("cached copy", "url", u, "err", err)
		http.Error(w, "The copy cannot be read; the log says why.", http.StatusInternalServerError)
		return
	}
	ct := c.ContentType
	if !strings.HasPrefix(ct, "text/") && !strings.HasPrefix(ct, "application/xhtml") {
		w.Header().Set("Content-Disposition", "attachment")
	}
	w.Header().Set("Content-Security-Policy", "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'")
	w.Header().Set("Content-Type", ct)
	if strings.Contains(ct, "html") {
		_, _ = fmt.Fprintf(w, `<!DOCTYPE html><div style="font:14px/1.5 sans-serif;background:#eef4fb;border-bottom:1px solid #9bb;padding:.5em 1em;margin:0 0 1em">Copy of <b>%s</b> as it was fetched %s (%s). The page may have changed since.</div>`,
			template.HTMLEscapeString(c.URL), c.Fetched.UTC().Format("2 January 2006 15:04 UTC"), ago(c.Fetched))
	}
	_, _ = w.Write(c.Body)
}

func (s *Server) statusPage(w http.ResponseWriter, r *http.Request) {
	st, err := s.operator.Status(r.Context())
	if err != nil {
		s.log.Error("status", "err", err)
		http.Error(w, "The status cannot be read; the log says why.", http.StatusInternalServerError)
		return
	}
	s.render(w, http.StatusOK, "status.html", map[string]any{"Title": s.config.Title, "S": st, "Login": len(s.auth.hash) > 0, "Lab": s.config.Lab != nil})
}

func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	s.stream(w, r, "live", func(ctx context.Context) (any, error) { return s.operator.Status(ctx) })
}

// stream sends what view returns every second as server-sent events until the
// page is left. The event is the inner HTML of the page's live part, so that the
// page needs a few lines of script and no copy of the template.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, template string, view func(context.Context) (any, error)) {
	rc := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no")
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
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
	ctx := r.Context()
	var err error
	switch r.PostFormValue("do") {
	case "pause":
		err = s.operator.Pause(ctx)
	case "resume":
		err = s.operator.Resume(ctx)
	case "agents":
		var fetch, render *int
		for name, dst := range map[string]**int{"fetch": &fetch, "render": &render} {
			if v := r.PostFormValue(name); v != "" {
				n, convErr := strconv.Atoi(v)
				if convErr != nil || n < 0 || n > maxAgents {
					http.Error(w, fmt.Sprintf("%s agents: %q is not a number in 0 to %d", name, v, maxAgents), http.StatusBadRequest)
					return
				}
				*dst = &n
			}
		}
		err = s.operator.SetAgents(ctx, fetch, render)
	case "source":
		err = s.operator.AddSource(ctx, Source{URL: strings.TrimSpace(r.PostFormValue("url")), Scope: r.PostFormValue("scope")})
	default:
		err = fmt.Errorf("unknown action %q", r.PostFormValue("do"))
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	http.Redirect(w, r, "/status", http.StatusSeeOther)
}

// render executes a page into memory first, so that a template's error does
// not end half a page.
func (s *Server) render(w http.ResponseWriter, code int, name string, data any) {
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
