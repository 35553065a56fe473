package console

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Lab is the long computations that an operator can watch beside the robot:
// sweeps of the simulator, run by other processes.
type Lab interface {
	// Sweeps tells how they stand, the most recent first; it is called about
	// once a second for each open page.
	Sweeps(ctx context.Context) ([]Sweep, error)
	// Ask asks a sweep to pause, resume or stop.
	Ask(ctx context.Context, sweep, order string) error
	// Report returns a report on the results so far: an HTML document that needs
	// nothing else.
	Report(ctx context.Context, sweep string) ([]byte, error)
}

// Sweep is one sweep, or a part of one that is run for itself.
type Sweep struct {
	ID       string // what Ask and Report take
	Plan     string
	Part     string // which, of how many
	State    string // running, paused, stopped, failed, finished, lost
	Live     bool   // it can be asked
	Problem  string
	Runs, Of int
	Done     float64       // share of the work
	Left     time.Duration // 0: not known
	Began    time.Time
	Updated  time.Time
	Variants []SweepVariant
	Latest   []SweepRun // that have ended, the last one first
}

// SweepVariant is how a variant has done so far.
type SweepVariant struct {
	Name             string
	Runs             int
	Freshness, Bytes float64 // means; freshness in percent
}

// SweepRun is a run that has ended.
type SweepRun struct {
	Field       int
	Variant     string
	Replication int     // from 0
	Freshness   float64 // percent
	Bytes       int64
	Took        time.Duration
	Curve       []float64 // freshness in percent over the model's time
}

// shownRuns bounds the runs of a sweep on the page.
const shownRuns = 12

// labPageView is what lab.html shows.
type labPageView struct {
	frame
	Sweeps any
}

func (s *Server) labView(ctx context.Context) (any, error) {
	sweeps, err := s.config.Lab.Sweeps(ctx)
	for i := range sweeps {
		sweeps[i].Latest = sweeps[i].Latest[:min(len(sweeps[i].Latest), shownRuns)]
	}
	return sweeps, err
}

func (s *Server) labPage(w http.ResponseWriter, r *http.Request) {
	v, err := s.labView(r.Context())
	if err != nil {
		s.log.Error("lab", "err", err)
		s.failWith(w, r, http.StatusInternalServerError, "The sweeps cannot be read; the log says why.")
		return
	}
	s.renderTemplate(w, http.StatusOK, "lab.html", labPageView{s.pageFrame(r, "/lab"), v})
}

func (s *Server) labEvents(w http.ResponseWriter, r *http.Request) {
	s.streamEvents(w, r, "sweeps", s.labView)
}

// labForm takes the buttons of the page.
func (s *Server) labForm(w http.ResponseWriter, r *http.Request) {
	if !s.readForm(w, r) {
		return
	}
	if err := s.config.Lab.Ask(r.Context(), r.PostForm.Get("sweep"), r.PostForm.Get("do")); err != nil {
		s.failWith(w, r, http.StatusBadRequest, err.Error())
		return
	}
	http.Redirect(w, r, "/lab", http.StatusSeeOther)
}

// labReport shows a report. It has its own style sheet, and no scripts.
func (s *Server) labReport(w http.ResponseWriter, r *http.Request) {
	page, err := s.config.Lab.Report(r.Context(), r.URL.Query().Get("sweep"))
	if err != nil {
		s.failWith(w, r, http.StatusNotFound, err.Error())
		return
	}
	w.Header().Set("Content-Security-Policy", "sandbox allow-popups; default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(page)
}

// Size of a small curve, in the units of its view box.
const (
	sparkWidth  = 120
	sparkHeight = 28
)

// sparkPoints returns the points of a curve of percentages.
func sparkPoints(curve []float64) string {
	var b strings.Builder
	for i, v := range curve {
		x := 0.
		if len(curve) > 1 {
			x = sparkWidth * float64(i) / float64(len(curve)-1)
		}
		fmt.Fprintf(&b, "%.1f,%.1f ", x, sparkHeight*(1-v/100))
	}
	return strings.TrimSpace(b.String())
}
