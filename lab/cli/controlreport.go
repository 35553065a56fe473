package cli

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/freshet/freshet/internal/command"

	"github.com/freshet/freshet/internal/progress"
	"github.com/freshet/freshet/lab/control"
	"github.com/freshet/freshet/lab/control/study"
)

type controlReportCmd struct {
	methodFlags
	Out      string   `short:"o" help:"File of the report." required:"" type:"path" placeholder:"FILE"`
	Simulate int      `help:"Pages offered in each of ten replications that check the best policies; 0 for none." default:"100000"`
	Seed     uint64   `help:"Seed of the simulation." default:"1"`
	Models   []string `arg:"" name:"model.json" help:"Models."`
}

// Help says what is in it.
func (controlReportCmd) Help() string {
	return "Writes one HTML file that opens from disk: the optimum of each model and what it is worth, cost against threshold for each pair of modes, the effect of capacity and of mean and variance of service and staleness, bounds in place of costs, and a simulation beside the solver. With --json the figures also go to standard output."
}

// Run reports.
func (c *controlReportCmd) Run(ctx context.Context, g *command.Globals) error {
	if c.Simulate < 0 {
		return command.Usagef("control report: --simulate is negative")
	}
	var models []*control.Model
	for _, name := range c.Models { // all are read before the first is worked on
		m, err := readModel(g, name)
		if err != nil {
			return err
		}
		models = append(models, m)
	}
	line := progress.New(g.Stderr)
	if g.Quiet {
		line = progress.New(nil)
	}
	var studies []*study.Study
	for i, m := range models {
		name := strings.TrimSuffix(filepath.Base(c.Models[i]), ".json")
		s, err := study.Do(ctx, name, m, study.Config{Simulate: c.Simulate, Seed: c.Seed, Options: c.controlOptions(), Progress: func(done, total int64, what string) {
			line.Update(done, max(done, total), name+": "+what)
		}})
		if err != nil {
			return modelError(c.Models[i], err)
		}
		studies = append(studies, s)
	}
	if err := writeReportFile(c.Out, study.Page(studies)); err != nil {
		return err
	}
	line.Done("report written to " + c.Out)
	if g.JSON {
		return g.PrintJSON(map[string]any{"report": c.Out, "models": studies})
	}
	return nil
}
