package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/freshet/freshet/console"
	"github.com/freshet/freshet/lab/monitor/sweep"
)

// SweepDirectories is the console's view of the sweeps in directories; each directory
// is one, or holds some.
type SweepDirectories []string

// Sweeps implements console.Lab.
func (s SweepDirectories) Sweeps(context.Context) ([]console.Sweep, error) {
	var out []console.Sweep
	for _, dir := range sweep.Directories(s) {
		parts, err := sweep.Statuses(dir)
		if err != nil {
			return nil, err
		}
		for i := range parts {
			out = append(out, consoleSweep(dir, &parts[i]))
		}
	}
	slices.SortStableFunc(out, func(a, b console.Sweep) int { return b.Began.Compare(a.Began) })
	slices.SortStableFunc(out, func(a, b console.Sweep) int { return sortWeight(b.Live) - sortWeight(a.Live) })
	return out, nil
}

func sortWeight(live bool) int {
	if live {
		return 1
	}
	return 0
}

func consoleSweep(dir string, s *sweep.Status) console.Sweep {
	v := console.Sweep{
		ID: dir, Plan: s.Plan, Part: s.Cell, State: string(s.State), Live: s.State.Live(), Problem: s.Problem,
		Runs: s.Runs, Of: s.Of, Done: s.Done, Left: s.Left, Began: s.Began, Updated: s.Updated,
	}
	for _, t := range s.Variants {
		v.Variants = append(v.Variants, console.SweepVariant{Name: t.Variant, Runs: t.Runs, Freshness: t.Freshness, Bytes: t.Bytes})
	}
	for _, e := range s.Latest {
		v.Latest = append(v.Latest, console.SweepRun{Field: e.Field, Variant: e.Variant, Replication: e.Replication, Freshness: e.Freshness, Bytes: e.Bytes, Took: time.Duration(e.Seconds * float64(time.Second)), Curve: e.Curve})
	}
	return v
}

// checkKnownDir refuses directories that were not configured.
func (s SweepDirectories) checkKnownDir(dir string) error {
	if !slices.Contains(sweep.Directories(s), dir) {
		return fmt.Errorf("no sweep %q", dir)
	}
	return nil
}

// Ask implements console.Lab.
func (s SweepDirectories) Ask(_ context.Context, dir, order string) error {
	if err := s.checkKnownDir(dir); err != nil {
		return err
	}
	return sweep.Ask(dir, sweep.Order(order))
}

// Report implements console.Lab.
func (s SweepDirectories) Report(ctx context.Context, dir string) ([]byte, error) {
	if err := s.checkKnownDir(dir); err != nil {
		return nil, err
	}
	r, err := sweep.Read(ctx, dir)
	if err != nil {
		return nil, err
	}
	return r.HTML()
}
