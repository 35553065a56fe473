package sweep

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// State says what a sweep does.
type State string

// States of a sweep.
const (
	Running  State = "running"
	Paused   State = "paused"
	Stopped  State = "stopped" // the same command goes on
	Failed   State = "failed"
	Finished State = "finished"
	Lost     State = "lost" // it has said nothing for a while: killed, or its machine is asleep
)

// Live reports whether a sweep in this state can be paused, resumed or stopped.
func (s State) Live() bool { return s == Running || s == Paused }

// Status is how a sweep stands, or one cell of it. The sweep writes it into its
// directory every second or so, for whoever wants to watch: another process
// needs no more than to read the file.
type Status struct {
	Plan     string        `json:"plan"`
	Cell     string        `json:"cell,omitempty"` // i/n
	State    State         `json:"state"`
	Problem  string        `json:"problem,omitempty"` // why it failed
	Runs     int           `json:"runs"`              // that have ended, or were there
	Of       int           `json:"of"`
	Done     float64       `json:"done"`    // share of the work
	Left     time.Duration `json:"left_ns"` // 0: not known yet
	Began    time.Time     `json:"began"`
	Updated  time.Time     `json:"updated"`
	Variants []Tally       `json:"variants"` // in the order of the plan, so far
	Latest   []Ended       `json:"latest"`   // runs, the one that ended last first
}

// Tally is how a variant has done on the runs so far.
type Tally struct {
	Variant   string  `json:"variant"`
	Runs      int     `json:"runs"`
	Freshness float64 `json:"freshness_mean"` // percent, mean over runs
	Bytes     float64 `json:"bytes"`
}

// Ended is a run in brief.
type Ended struct {
	Field       int       `json:"field"`
	Variant     string    `json:"variant"`
	Replication int       `json:"replication"`
	Freshness   float64   `json:"freshness_mean"` // percent
	Bytes       int64     `json:"bytes"`
	Seconds     float64   `json:"seconds"`
	Curve       []float64 `json:"curve"` // freshness in percent at even times, from the start to the end
}

// curvePoints bounds a Curve.
const curvePoints = 80

func endedOf(r *Run) Ended {
	e := Ended{Field: r.Field, Variant: r.Variant, Replication: r.Replication, Freshness: r.FreshnessMean, Bytes: r.Bytes, Seconds: r.Seconds}
	stale := r.Series.Stale
	for i := range min(len(stale), curvePoints) {
		at := i
		if len(stale) > curvePoints {
			at = i * (len(stale) - 1) / (curvePoints - 1)
		}
		e.Curve = append(e.Curve, 100*(1-float64(stale[at])/float64(r.Pages)))
	}
	return e
}

// Names of files next to the results.
const (
	statusDir   = "status"
	controlName = "control"
)

// silence is after what time without a word a live sweep counts as lost.
const silence = 15 * time.Second

func (c Cell) String() string {
	if c.Of == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", c.Index, c.Of)
}

// statusPath returns the file of a cell's status.
func statusPath(dir string, c Cell) string {
	name := "whole.json"
	if c.Of > 0 {
		name = fmt.Sprintf("%d-of-%d.json", c.Index, c.Of)
	}
	return filepath.Join(dir, statusDir, name)
}

// Statuses reads how the sweep of a directory stands, a cell each, the one begun
// last first. A directory whose sweep has not told yet gives none.
func Statuses(dir string) ([]Status, error) {
	names, err := filepath.Glob(filepath.Join(dir, statusDir, "*.json"))
	if err != nil {
		return nil, err
	}
	var out []Status
	for _, name := range names {
		text, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var s Status
		if err := json.Unmarshal(text, &s); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrInput, name, err)
		}
		if s.State.Live() && time.Since(s.Updated) > silence {
			s.State = Lost
		}
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b Status) int { return b.Began.Compare(a.Began) })
	return out, nil
}

// Directories returns those with results of sweeps among dirs and the
// directories in them.
func Directories(dirs []string) []string {
	var out []string
	for _, d := range dirs {
		for _, pattern := range []string{d, filepath.Join(d, "*")} {
			plans, _ := filepath.Glob(filepath.Join(pattern, planName))
			for _, p := range plans {
				if dir := filepath.Dir(p); !slices.Contains(out, dir) && isDir(filepath.Join(dir, "runs")) {
					out = append(out, dir)
				}
			}
		}
	}
	return out
}

func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

// Order is what a sweep is asked to do.
type Order string

// Orders to a sweep.
const (
	Pause  Order = "pause" // begin no further run
	Resume Order = "resume"
	Stop   Order = "stop" // give up the runs under way; the same command goes on later
)

// Ask asks the sweep of a directory, all its cells, to do something. They look
// every half second.
func Ask(dir string, o Order) error {
	switch o {
	case Pause, Resume, Stop:
	default:
		return fmt.Errorf("%w: a sweep can pause, resume and stop, not %q", ErrInput, o)
	}
	if !isDir(filepath.Join(dir, "runs")) {
		return fmt.Errorf("%w: %s holds no results of a sweep", ErrInput, dir)
	}
	return writeFile(filepath.Join(dir, controlName), []byte(o+"\n"))
}

// readOrder returns the order of a directory, empty if there is none.
func readOrder(dir string) Order {
	text, err := os.ReadFile(filepath.Join(dir, controlName))
	if err != nil {
		return ""
	}
	return Order(strings.TrimSpace(string(text)))
}
