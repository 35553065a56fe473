package emulate

import (
	"context"
	"net/http"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/freshet/freshet/lab/field"
	"github.com/freshet/freshet/lab/monitor"
	"github.com/freshet/freshet/lab/testweb/name"
)

// pace is the model's time: a handler in front of the web's that lets the
// answers to the robot take what visits take in the simulator.
type pace struct {
	index  *field.Index
	kind   string
	unit   time.Duration
	start  atomic.Pointer[time.Time] // nil before the beginning
	shares []uint32
	robots []*pacer // none for the sensor

	mu    sync.Mutex
	drawn monitor.Durations // the simulator's, in nearly its order
	waits int
	sum   float64
	most  float64
}

// pacer is the time of one robot.
type pacer struct {
	mu    sync.Mutex
	due   float64           // end of what it does, units
	known map[uint32]uint64 // versions it was given, where not the first
}

func newPace(r *run, index *field.Index) *pace {
	p := &pace{index: index, kind: r.kind, unit: r.Unit, shares: monitor.Shares(index.Pages(), r.robots), drawn: monitor.NewDurations(r.Seed, r.Number, r.Replication)}
	for range r.robots {
		p.robots = append(p.robots, &pacer{known: map[uint32]uint64{}})
	}
	return p
}

func (p *pace) beginTime(at time.Time) { p.start.Store(&at) }

// unitsSinceStart returns the time in units; false before the beginning.
func (p *pace) unitsSinceStart() (float64, bool) {
	start := p.start.Load()
	if start == nil {
		return 0, false
	}
	return float64(time.Since(*start)) / float64(p.unit), true
}

// paceHandler puts the pace before a handler.
func (p *pace) paceHandler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		req.Header.Del("Accept-Encoding") // bodies are as long as the model's
		page, ok := name.ParseDocument(req.URL.Path)
		now, begun := p.unitsSinceStart()
		if !ok || page >= uint64(p.index.Pages()) || !begun || req.UserAgent() != agent {
			next.ServeHTTP(w, req)
			return
		}
		gone := p.index.At(page, now).Kind.Gone()
		switch p.kind {
		case "plain":
			p.pacePlain(w, req, next, uint32(page), gone)
		case "conditional":
			p.paceConditional(w, req, next, uint32(page))
		default:
			p.paceAlerted(w, req, next, now, gone)
		}
	})
}

func (p *pace) pacerOfPage(page uint32) *pacer {
	i := sort.Search(len(p.shares), func(i int) bool { return p.shares[i] > page }) - 1
	return p.robots[i]
}

// drawUniform draws an integer from 1 to n.
func (p *pace) drawUniform(n uint64) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.drawn.Uniform(n)
}

// pacePlain: a page in error takes no time; what else is shown is the page at the
// end of the download.
func (p *pace) pacePlain(w http.ResponseWriter, req *http.Request, next http.Handler, page uint32, gone bool) {
	b := p.pacerOfPage(page)
	b.mu.Lock()
	defer b.mu.Unlock()
	if !gone {
		b.due += p.drawUniform(monitor.DownloadTime)
		if !p.sleepUntil(req.Context(), b.due) {
			return
		}
	}
	next.ServeHTTP(w, req)
}

// paceConditional: first the time of a probe, then that of a download if the page
// is another than the robot knows.
func (p *pace) paceConditional(w http.ResponseWriter, req *http.Request, next http.Handler, page uint32) {
	b := p.pacerOfPage(page)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.due += p.drawUniform(monitor.ProbeTime)
	if !p.sleepUntil(req.Context(), b.due) {
		return
	}
	now, _ := p.unitsSinceStart()
	s := p.index.At(uint64(page), now)
	if !s.Kind.Gone() && (s.Number != b.known[page] || req.Header.Get("If-None-Match") == "") {
		b.due += p.drawUniform(monitor.DownloadTime)
		if !p.sleepUntil(req.Context(), b.due) {
			return
		}
		now, _ = p.unitsSinceStart()
		s = p.index.At(uint64(page), now)
	}
	b.known[page] = s.Number
	next.ServeHTTP(w, req)
}

// paceAlerted: the page is what it was at the start of the download. Downloads do
// not wait for each other.
func (p *pace) paceAlerted(w http.ResponseWriter, req *http.Request, next http.Handler, now float64, gone bool) {
	if !gone {
		until := now + p.drawUniform(monitor.DownloadTime)
		w = &held{w, func() { p.sleepUntil(req.Context(), until) }}
	}
	next.ServeHTTP(w, req)
}

// held is a writer whose answer is held back when it is made up.
type held struct {
	http.ResponseWriter
	wait func()
}

// WriteHeader waits first.
func (h *held) WriteHeader(status int) {
	h.wait()
	h.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (h *held) Unwrap() http.ResponseWriter { return h.ResponseWriter }

// sleepUntil waits for a time in units and notes how late it came; false if the
// robot left before.
func (p *pace) sleepUntil(ctx context.Context, until float64) bool {
	t := time.NewTimer(time.Until(p.start.Load().Add(time.Duration(until * float64(p.unit)))))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
	}
	now, _ := p.unitsSinceStart()
	p.mu.Lock()
	defer p.mu.Unlock()
	late := max(0, now-until)
	p.waits++
	p.sum += late
	p.most = max(p.most, late)
	return true
}

// latenessSummary returns the mean and the greatest lateness, units.
func (p *pace) latenessSummary() (mean, most float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sum / float64(max(1, p.waits)), p.most
}
