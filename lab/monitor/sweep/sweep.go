package sweep

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/freshet/freshet/lab/field"
	"github.com/freshet/freshet/lab/monitor"
)

// Cell is a part of a plan: every Of-th run, beginning one later in each row of
// Of, so that no cell has always the same variants. The zero value is the whole
// plan.
type Cell struct{ Index, Of int }

// ParseCell reads "i/n" with 1 <= i <= n; empty is the whole.
func ParseCell(s string) (Cell, error) {
	if s == "" {
		return Cell{}, nil
	}
	var c Cell
	var rest string
	if n, _ := fmt.Sscanf(s, "%d/%d%s", &c.Index, &c.Of, &rest); n != 2 || c.Index < 1 || c.Index > c.Of {
		return Cell{}, fmt.Errorf("%w: cell %q is not i/n with i from 1 to n", ErrInput, s)
	}
	return c, nil
}

func (c Cell) holdsJob(j Job) bool { return c.Of == 0 || (j.Number+j.Number/c.Of)%c.Of == c.Index-1 }

// Config says how a plan is run.
type Config struct {
	Text    []byte // of the plan, kept beside the results
	Dir     string
	Base    string // directory that names of field files in the plan start from
	Cell    Cell
	Workers int // simulations at a time; 0: one a core

	// Progress, if not nil, is called for every run that ended: how much of the
	// work is done, of how much, and of what has just been done.
	Progress func(done, total int64, text string)
	// Watch, if not nil, follows the sweep and can pause and stop it.
	Watch *Watch
	// Warn, if not nil, receives problems that were repaired.
	Warn func(text string)
}

// Summary is what a sweep did.
type Summary struct {
	Runs    int     `json:"runs"`    // of the plan, or of the cell
	Ran     int     `json:"ran"`     // now
	Kept    int     `json:"kept"`    // that were there
	Damaged int     `json:"damaged"` // were there, but not whole: run again
	Events  int64   `json:"events"`  // of those run now
	Seconds float64 `json:"seconds"`
}

// Do runs what is not there yet. When the context ends, runs under way are
// given up, those that ended are kept, and the error is the context's.
func (p *Plan) Do(ctx context.Context, c Config) (*Summary, error) {
	if err := claimDirectory(c.Dir, c.Text); err != nil {
		return nil, err
	}
	if c.Watch == nil {
		return p.runSweep(ctx, c)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := c.Watch.beginSweep(c.Dir, p, c.Cell, cancel); err != nil {
		return nil, err
	}
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.Watch.followOrders(following)
	}()
	sum, err := p.runSweep(ctx, c)
	stop()
	<-ended
	return sum, errors.Join(err, c.Watch.endSweep(err))
}

// runSweep finds what is there and runs the rest.
func (p *Plan) runSweep(ctx context.Context, c Config) (*Summary, error) {
	began := time.Now()
	sum := &Summary{}
	var todo []Job
	var done, total int64
	for _, j := range p.Jobs() {
		if !c.Cell.holdsJob(j) {
			continue
		}
		sum.Runs++
		total += j.jobWeight()
		r, err := loadResult(c.Dir, j)
		switch {
		case err == nil:
			sum.Kept++
			done += j.jobWeight()
			if c.Watch != nil {
				c.Watch.countRun(r, false)
			}
			continue
		case errors.Is(err, ErrDamaged):
			sum.Damaged++
			if c.Warn != nil {
				c.Warn(err.Error() + "; it is run again")
			}
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
		todo = append(todo, j)
	}
	if c.Watch != nil {
		c.Watch.reportWork(done, total, sum.Runs, true)
	}
	err := p.runJobs(ctx, c, todo, sum, done, total)
	sum.Seconds = time.Since(began).Seconds()
	return sum, err
}

// runJobs works through the jobs on all workers.
func (p *Plan) runJobs(ctx context.Context, c Config, todo []Job, sum *Summary, done, total int64) error {
	workers := c.Workers
	if workers < 1 {
		workers = runtime.GOMAXPROCS(0)
	}
	fields := newShelf(c.Base, todo)
	jobs := make(chan Job)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer close(jobs)
		for _, j := range todo {
			select {
			case jobs <- j:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	var mu sync.Mutex
	for range min(workers, len(todo)) {
		g.Go(func() error {
			for j := range jobs {
				if c.Watch != nil {
					if err := c.Watch.waitWhilePaused(ctx); err != nil {
						return err
					}
				}
				r, err := p.simulateJob(ctx, j, fields)
				if err != nil {
					return fmt.Errorf("field %d, %s, replication %d: %w", j.Factors.Field, j.Variant, j.Replication, err)
				}
				if err := saveResult(j.Path(c.Dir), r); err != nil {
					return err
				}
				mu.Lock()
				sum.Ran++
				sum.Events += r.Events
				done += j.jobWeight()
				if c.Watch != nil {
					c.Watch.countRun(r, true)
					c.Watch.reportWork(done, total, sum.Runs, false)
				}
				if c.Progress != nil {
					c.Progress(done, total, fmt.Sprintf("%d of %d runs; field %d %s: %.2f %% fresh", sum.Kept+sum.Ran, sum.Runs, r.Field, r.Variant, r.FreshnessMean))
				}
				mu.Unlock()
			}
			return nil
		})
	}
	return g.Wait()
}

// jobWeight is about what a job takes, for the time left. Variants differ too, but
// they take turns.
func (j Job) jobWeight() int64 {
	n := float64(j.Factors.Pages)
	return int64(n*(j.Factors.Changes+j.Factors.Requests/8)) + int64(j.Factors.Time/2) + 1
}

// simulateJob runs one job.
func (p *Plan) simulateJob(ctx context.Context, j Job, fields *shelf) (*Run, error) {
	f, factors, err := p.jobField(j, fields)
	if err != nil {
		return nil, err
	}
	defer fields.releaseHistory(j.Factors.File)
	res, err := monitor.Run(ctx, monitor.Config{
		Field: f, Variant: j.variant, Warmup: p.Warmup,
		Seed: p.Seed, Number: j.Factors.Field, Replication: j.Replication,
	})
	if err != nil {
		return nil, err
	}
	return &Run{Factors: factors, Variant: j.Variant, Replication: j.Replication, Result: *res, Series: res.Series}, nil
}

// jobField makes or reads a job's field and says what its factors are.
func (p *Plan) jobField(j Job, fields *shelf) (field.Field, Factors, error) {
	if j.Factors.File == "" {
		s, err := p.fieldSpec(j.Factors, j.Replication)
		if err != nil {
			return nil, Factors{}, err
		}
		f, err := field.New(s)
		return f, j.Factors, err
	}
	h, err := fields.getHistory(j.Factors.File)
	if err != nil {
		return nil, Factors{}, err
	}
	changes, _, requests := h.Count()
	n := float64(h.Pages())
	return h, Factors{
		Field: j.Factors.Field, File: j.Factors.File, Pages: h.Pages(), Time: h.Horizon(), Changes: float64(changes) / n, Requests: float64(requests) / n,
		ChangeLaw: "file", ChangeSpread: "file", RequestLaw: "file", RequestSpread: "file",
	}, nil
}

// Open reads the plan whose results a directory holds.
func Open(dir string) (*Plan, error) {
	path := filepath.Join(dir, planName)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %s holds no results of a sweep: %w", ErrInput, dir, err)
	}
	return ParsePlan(path, text)
}
