package sweep

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// Watch follows a sweep while it runs and pauses, resumes or stops it, between
// two runs. Give it to Config; it tells of the sweep in Status, in the status
// file of the sweep's directory and, as an http.Handler, in a browser. The zero
// Watch is ready.
type Watch struct {
	mu      sync.Mutex
	dir     string
	cell    Cell
	status  Status
	order   []string // variants of the plan
	start   float64  // share that was done when it began
	active  time.Duration
	since   time.Time     // when it went on last
	resumed chan struct{} // closed when a pause ends
	cancel  context.CancelFunc
	stopped bool
}

// lately is how many runs are told of.
const lately = 30

// Status tells how the sweep stands.
func (w *Watch) Status() Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.copyStatus()
}

// copyStatus copies the status; w is locked.
func (w *Watch) copyStatus() Status {
	s := w.status
	s.Variants, s.Latest = slices.Clone(s.Variants), slices.Clone(s.Latest)
	s.Updated = time.Now()
	active := w.active
	if s.State == Running {
		active += time.Since(w.since)
	}
	if gain := s.Done - w.start; gain > 0 && s.State.Live() {
		s.Left = time.Duration(float64(active) / gain * (1 - s.Done))
	}
	return s
}

// beginSweep takes over a sweep whose context can be ended. An order of earlier is
// forgotten, but for a pause that other cells obey just now.
func (w *Watch) beginSweep(dir string, p *Plan, cell Cell, cancel context.CancelFunc) error {
	others, err := Statuses(dir)
	if err != nil {
		return err
	}
	obeyed := slices.ContainsFunc(others, func(s Status) bool { return s.State.Live() && s.Cell != cell.String() })
	if o := readOrder(dir); o != "" && (o != Pause || !obeyed) {
		if err := os.Remove(filepath.Join(dir, controlName)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, statusDir), 0o755); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dir, w.cell, w.cancel, w.order = dir, cell, cancel, p.Variants
	w.since = time.Now()
	w.status = Status{Plan: p.Name, Cell: cell.String(), State: Running, Began: w.since}
	return nil
}

// countRun adds a run that was there, or has ended now.
func (w *Watch) countRun(r *Run, now bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.status.Runs++
	vs := w.status.Variants
	i := slices.IndexFunc(vs, func(t Tally) bool { return t.Variant == r.Variant })
	if i < 0 {
		vs = append(vs, Tally{Variant: r.Variant})
		slices.SortStableFunc(vs, func(a, b Tally) int {
			return slices.Index(w.order, a.Variant) - slices.Index(w.order, b.Variant)
		})
		w.status.Variants = vs
		i = slices.IndexFunc(vs, func(t Tally) bool { return t.Variant == r.Variant })
	}
	t := &vs[i]
	t.Runs++
	t.Freshness += (r.FreshnessMean - t.Freshness) / float64(t.Runs)
	t.Bytes += (float64(r.Bytes) - t.Bytes) / float64(t.Runs)
	if now {
		w.status.Latest = slices.Insert(w.status.Latest, 0, endedOf(r))
		w.status.Latest = w.status.Latest[:min(len(w.status.Latest), lately)]
	}
}

// reportWork says how much is done, of how many runs; first is the call before any
// run is begun.
func (w *Watch) reportWork(done, total int64, of int, first bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.status.Done, w.status.Of = 1, of
	if total > 0 {
		w.status.Done = float64(done) / float64(total)
	}
	if first {
		w.start = w.status.Done
	}
}

// followOrders obeys the orders of the directory and writes the status there until the
// context ends.
func (w *Watch) followOrders(ctx context.Context) {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		w.obeyOrder(readOrder(w.dir))
		if n%2 == 0 {
			_ = w.writeStatus() // whoever watches sees that it is old; the results are what counts
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// writeStatus writes the status file.
func (w *Watch) writeStatus() error {
	text, err := json.Marshal(w.Status())
	if err != nil {
		return err
	}
	return replaceFile(statusPath(w.dir, w.cell), append(text, '\n'), false)
}

// endSweep tells how it ended.
func (w *Watch) endSweep(err error) error {
	w.mu.Lock()
	switch {
	case err == nil:
		w.status.State = Finished
	case errors.Is(err, context.Canceled):
		w.status.State = Stopped
	default:
		w.status.State, w.status.Problem = Failed, err.Error()
	}
	w.mu.Unlock()
	return w.writeStatus()
}

// obeyOrder does what was asked.
func (w *Watch) obeyOrder(o Order) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case o == Stop && w.cancel != nil:
		w.stopped = true
		w.cancel()
	case o == Pause && w.status.State == Running:
		w.active += time.Since(w.since)
		w.status.State, w.resumed = Paused, make(chan struct{})
	case o != Pause && w.status.State == Paused:
		w.since = time.Now()
		w.status.State = Running
		close(w.resumed)
	}
}

// requestOrder does what is asked in this process, and lets the other cells of the
// directory know.
func (w *Watch) requestOrder(o Order) error {
	w.mu.Lock()
	dir := w.dir
	w.mu.Unlock()
	w.obeyOrder(o)
	if dir == "" {
		return nil
	}
	return Ask(dir, o)
}

// Stopped reports whether somebody asked it to stop.
func (w *Watch) Stopped() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stopped
}

// waitWhilePaused returns when the sweep is not paused, or with the context's error.
func (w *Watch) waitWhilePaused(ctx context.Context) error {
	for {
		w.mu.Lock()
		paused, resumed := w.status.State == Paused, w.resumed
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
