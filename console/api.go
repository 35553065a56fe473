package console

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/freshet/freshet/index"
)

// maxRequest bounds the body of an API request.
const maxRequest = 1 << 20

// SearchAnswer is the JSON of GET /api/search and freshet search --json.
type SearchAnswer struct {
	Total   int                      `json:"total"`
	TookMS  float64                  `json:"took_ms"`
	Results []ResultAnswer           `json:"results"`
	Facets  map[string][]index.Count `json:"facets,omitempty"`
}

// ResultAnswer is one result in JSON.
type ResultAnswer struct {
	Title   string    `json:"title"`
	URL     string    `json:"url"`
	Kind    string    `json:"kind"`
	Snippet string    `json:"snippet"`
	Score   float64   `json:"score"`
	Host    string    `json:"host"`
	Online  bool      `json:"online"`
	Copies  []Copy    `json:"copies"`
	Type    string    `json:"type,omitempty"`
	Lang    string    `json:"lang,omitempty"`
	Date    time.Time `json:"date,omitzero"`
	Size    int64     `json:"size,omitempty"`
	Facts   []string  `json:"facts,omitempty"`
}

// Answer makes the JSON form of results.
func (r *Results) Answer() SearchAnswer {
	out := SearchAnswer{Total: r.Total, TookMS: float64(r.Elapsed.Microseconds()) / 1000, Results: []ResultAnswer{}, Facets: r.Facets}
	for _, h := range r.Results {
		a := ResultAnswer{
			Title: h.Title, URL: h.URL, Kind: h.Kind, Snippet: h.Snippet.String(), Score: h.Score, Host: h.Host,
			Online: h.Online, Copies: h.Copies, Type: h.Type, Lang: h.Lang, Date: h.Date, Size: h.Size, Facts: h.Facts,
		}
		if a.Copies == nil {
			a.Copies = []Copy{}
		}
		out.Results = append(out.Results, a)
	}
	return out
}

// searchRequest reads q, kind, limit, offset and sort of a query string.
func searchRequest(r *http.Request, limit int) (Request, error) {
	v := r.URL.Query()
	req := Request{Query: v.Get("q"), Kind: v.Get("kind"), Limit: limit, ByDate: v.Get("sort") == "date"}
	if !slices.Contains(Kinds, req.Kind) {
		return req, fmt.Errorf("kind=%q is none of %s", req.Kind, strings.Join(Kinds[1:], ", "))
	}
	if len(req.Query) > 4096 {
		return req, errors.New("q is longer than 4096 bytes")
	}
	for name, dst := range map[string]*int{"limit": &req.Limit, "offset": &req.Offset} {
		s := v.Get(name)
		if s == "" {
			continue
		}
		n, err := strconv.Atoi(s)
		if err != nil || n < 0 {
			return req, fmt.Errorf("%s=%q is not a number from 0 up", name, s)
		}
		*dst = n
	}
	if req.Limit > index.MaxLimit || req.Offset > index.MaxOffset {
		return req, fmt.Errorf("limit is at most %d, offset at most %d", index.MaxLimit, index.MaxOffset)
	}
	return req, nil
}

func (s *Server) apiSearch(w http.ResponseWriter, r *http.Request) {
	req, err := searchRequest(r, 10)
	if err != nil {
		apiError(w, http.StatusBadRequest, err)
		return
	}
	req.Facets = r.URL.Query().Get("facets") != ""
	ctx, cancel := context.WithTimeout(r.Context(), searchTimeout)
	defer cancel()
	res, err := s.finder.Find(ctx, req)
	if err != nil {
		s.log.Error("search failed", "query", req.Query, "err", err)
		apiError(w, http.StatusInternalServerError, err)
		return
	}
	writeJSON(w, res.Answer())
}

func (s *Server) apiStatus(w http.ResponseWriter, r *http.Request) {
	st, err := s.operator.Status(r.Context())
	if err != nil {
		apiError(w, http.StatusInternalServerError, err)
		return
	}
	writeJSON(w, st)
}

func (s *Server) apiAgents(w http.ResponseWriter, r *http.Request) {
	st, err := s.operator.Status(r.Context())
	if err != nil {
		apiError(w, http.StatusInternalServerError, err)
		return
	}
	if st.Work == nil {
		st.Work = []Agent{}
	}
	writeJSON(w, map[string]any{"agents": st.Agents, "work": st.Work})
}

func (s *Server) apiSources(w http.ResponseWriter, r *http.Request) {
	st, err := s.operator.Status(r.Context())
	if err != nil {
		apiError(w, http.StatusInternalServerError, err)
		return
	}
	writeJSON(w, map[string]any{"sources": st.Sources})
}

// ErrUnknown is the error of asking about a page that is not known.
var ErrUnknown = errors.New("the robot does not know this URL")

func (s *Server) apiWhy(w http.ResponseWriter, r *http.Request) {
	url := r.URL.Query().Get("url")
	if url == "" {
		apiError(w, http.StatusBadRequest, errors.New("which page? ask with ?url="))
		return
	}
	a, err := s.operator.Why(r.Context(), url)
	switch {
	case errors.Is(err, ErrUnknown):
		apiError(w, http.StatusNotFound, err)
	case err != nil:
		apiError(w, http.StatusBadRequest, err)
	default:
		writeJSON(w, a)
	}
}

func (s *Server) apiSetAgents(w http.ResponseWriter, r *http.Request) {
	var body struct{ Fetch, Render *int }
	if !readJSON(w, r, &body) {
		return
	}
	for _, n := range []*int{body.Fetch, body.Render} {
		if n != nil && (*n < 0 || *n > maxAgents) {
			apiError(w, http.StatusBadRequest, fmt.Errorf("agents: %d is not in 0 to %d", *n, maxAgents))
			return
		}
	}
	if err := s.operator.SetAgents(r.Context(), body.Fetch, body.Render); err != nil {
		apiError(w, http.StatusConflict, err)
		return
	}
	s.apiAgents(w, r)
}

// maxAgents bounds what an operator can ask for by mistake.
const maxAgents = 100_000

func (s *Server) apiSetThrottle(w http.ResponseWriter, r *http.Request) {
	var body struct{ Thresholds, Modes []int }
	if !readJSON(w, r, &body) {
		return
	}
	if err := s.operator.SetThrottle(r.Context(), body.Thresholds, body.Modes); err != nil {
		apiError(w, http.StatusBadRequest, err)
		return
	}
	writeJSON(w, map[string]any{"thresholds": body.Thresholds, "modes": body.Modes})
}

func (s *Server) apiAddSource(w http.ResponseWriter, r *http.Request) {
	var src Source
	if !readJSON(w, r, &src) {
		return
	}
	if !strings.Contains(src.URL, "://") {
		apiError(w, http.StatusBadRequest, fmt.Errorf("url %q has no scheme", src.URL))
		return
	}
	if err := s.operator.AddSource(r.Context(), src); err != nil {
		apiError(w, http.StatusBadRequest, err)
		return
	}
	w.WriteHeader(http.StatusCreated)
	writeJSON(w, src)
}

func (s *Server) apiRemoveSource(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	keep, err := strconv.ParseBool(cmp.Or(q.Get("keep"), "false"))
	if err != nil {
		apiError(w, http.StatusBadRequest, fmt.Errorf("keep: %q is neither true nor false", q.Get("keep")))
		return
	}
	if err := s.operator.RemoveSource(r.Context(), q.Get("url"), keep); err != nil {
		apiError(w, http.StatusBadRequest, err)
		return
	}
	writeJSON(w, map[string]any{"url": q.Get("url"), "kept": keep})
}

// apiAct makes a handler of an action without an answer.
func (s *Server) apiAct(act func(context.Context, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := act(r.Context(), r); err != nil {
			apiError(w, http.StatusConflict, err)
			return
		}
		writeJSON(w, map[string]bool{"ok": true})
	}
}

// readJSON reads the body into v; unknown keys are an error, which it answers.
func readJSON(w http.ResponseWriter, r *http.Request, v any) bool {
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest))
	dec.DisallowUnknownFields()
	err := dec.Decode(v)
	if err == nil {
		if _, more := dec.Token(); more != io.EOF {
			err = errors.New("something follows the object")
		}
	}
	if err != nil {
		apiError(w, http.StatusBadRequest, fmt.Errorf("body: %w", err))
		return false
	}
	return true
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // the client is gone: nothing left to tell it
}

func apiError(w http.ResponseWriter, code int, err error) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": err.Error()})
}
