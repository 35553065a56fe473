package console

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/freshet/freshet/cluster"
	"github.com/freshet/freshet/index"
	"github.com/freshet/freshet/index/query"
)

// SearchAnswer is the JSON of GET /api/search and freshet search --json.
type SearchAnswer struct {
	Total     int                      `json:"total"`
	Estimated bool                     `json:"estimated,omitempty"` // Total is about right: not every match was looked at
	TookMS    float64                  `json:"took_ms"`
	Results   []ResultAnswer           `json:"results"`
	Facets    map[string][]index.Count `json:"facets,omitempty"`
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
	out := SearchAnswer{Total: r.Total, Estimated: r.Estimated, TookMS: float64(r.Elapsed.Microseconds()) / 1000, Results: []ResultAnswer{}, Facets: r.Facets}
	for _, h := range r.Results {
		a := ResultAnswer{
			Title: h.Title, URL: h.URL, Kind: h.Kind, Snippet: h.Snippet.String(), Score: finiteOrZero(h.Score), Host: h.Host,
			Online: h.Online, Copies: h.Copies, Type: h.Type, Lang: h.Lang, Date: h.Date, Size: h.Size, Facts: h.Facts,
		}
		if a.Copies == nil {
			a.Copies = []Copy{}
		}
		out.Results = append(out.Results, a)
	}
	return out
}

// finiteOrZero is v, or 0 where it is no number that JSON can write.
func finiteOrZero(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return v
}

// searchRequest reads q, kind, limit, offset and sort of a query string.
func searchRequest(r *http.Request, limit int) (Request, error) {
	v := r.URL.Query()
	req := Request{Query: v.Get("q"), Kind: v.Get("kind"), Limit: limit, ByDate: v.Get("sort") == "date"}
	if !slices.Contains(Kinds, req.Kind) {
		return req, fmt.Errorf("kind=%q is none of %s", req.Kind, strings.Join(Kinds[1:], ", "))
	}
	if len(req.Query) > query.MaxBytes {
		return req, fmt.Errorf("q is longer than %d bytes", query.MaxBytes)
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
	res, err := s.findBounded(r.Context(), req)
	if err != nil {
		code, why := s.searchProblem(req, err)
		if code == http.StatusServiceUnavailable {
			w.Header().Set("Retry-After", "2")
		}
		apiError(w, code, errors.New(why))
		return
	}
	s.writeJSON(w, http.StatusOK, res.Answer())
}

func (s *Server) apiStatus(w http.ResponseWriter, r *http.Request) {
	st, err := s.operator.Status(r.Context())
	if err != nil {
		s.internalError(w, "status", err)
		return
	}
	s.writeJSON(w, http.StatusOK, st)
}

func (s *Server) apiAgents(w http.ResponseWriter, r *http.Request) {
	st, err := s.operator.Status(r.Context())
	if err != nil {
		s.internalError(w, "status", err)
		return
	}
	if st.Work == nil {
		st.Work = []cluster.Agent{}
	}
	s.writeJSON(w, http.StatusOK, map[string]any{"agents": st.Agents, "work": st.Work})
}

func (s *Server) apiSources(w http.ResponseWriter, r *http.Request) {
	st, err := s.operator.Status(r.Context())
	if err != nil {
		s.internalError(w, "status", err)
		return
	}
	s.writeJSON(w, http.StatusOK, map[string]any{"sources": st.Sources})
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
		s.writeJSON(w, http.StatusOK, a)
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
	s.writeJSON(w, http.StatusOK, map[string]any{"thresholds": body.Thresholds, "modes": body.Modes})
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
	s.writeJSON(w, http.StatusCreated, src)
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
	s.writeJSON(w, http.StatusOK, map[string]any{"url": q.Get("url"), "kept": keep})
}

// apiAct makes a handler of an action without an answer.
func (s *Server) apiAct(act func(context.Context, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := act(r.Context(), r); err != nil {
			apiError(w, http.StatusConflict, err)
			return
		}
		s.writeJSON(w, http.StatusOK, map[string]bool{"ok": true})
	}
}

// readJSON reads the body into v; unknown keys are an error, which it answers.
func readJSON(w http.ResponseWriter, r *http.Request, v any) bool {
	dec := json.NewDecoder(r.Body) // limitBody bounds it
	dec.DisallowUnknownFields()
	err := dec.Decode(v)
	if err == nil {
		if _, more := dec.Token(); more != io.EOF {
			err = errors.New("something follows the object")
		}
	}
	switch {
	case err == nil:
		return true
	case isBodyTooLong(err):
		apiError(w, http.StatusRequestEntityTooLarge, fmt.Errorf("body: at most %d bytes are allowed", maxFormBytes))
	default:
		apiError(w, http.StatusBadRequest, fmt.Errorf("body: %w", err))
	}
	return false
}

// writeJSON answers with v. A value that cannot be written as JSON is an error
// of ours: it is logged and answered with 500, never with an empty body.
func (s *Server) writeJSON(w http.ResponseWriter, code int, v any) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		s.internalError(w, "encode an answer", err)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(b.Bytes()) // the client is gone: nothing left to tell it
}

// internalError logs an error of ours and answers 500 without its text, which may
// name files, addresses and other servers.
func (s *Server) internalError(w http.ResponseWriter, what string, err error) {
	s.log.Error(what, "err", err)
	apiError(w, http.StatusInternalServerError, errors.New("internal error; the server's log says why"))
}

// searchProblem is the status and the text for a search that failed.
func (s *Server) searchProblem(req Request, err error) (code int, why string) {
	var bounds *query.BoundsError
	switch {
	case errors.As(err, &bounds):
		return http.StatusBadRequest, bounds.Error()
	case errors.Is(err, errBusy):
		return http.StatusServiceUnavailable, errBusy.Error()
	case errors.Is(err, context.DeadlineExceeded):
		s.log.Warn("search took too long", "query", req.Query, "err", err)
		return http.StatusServiceUnavailable, "the search took too long: use fewer or longer words"
	case errors.Is(err, context.Canceled): // the client is gone
		return http.StatusServiceUnavailable, "the search was cancelled"
	}
	s.log.Error("search failed", "query", req.Query, "err", err)
	return http.StatusInternalServerError, "the search failed; the server's log says why"
}

func apiError(w http.ResponseWriter, code int, err error) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": err.Error()})
}
