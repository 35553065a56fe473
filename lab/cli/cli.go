// Package cli has the commands of the lab, freshet lab ...: one file a command,
// each a struct whose fields are the flags and whose Run method calls the package
// that does the work.
package cli

import (
	"slices"
	"strings"

	"github.com/freshet/freshet/freshness/revisit"
	"github.com/freshet/freshet/lab/control"
	"github.com/freshet/freshet/lab/field"
	"github.com/freshet/freshet/lab/monitor"
	"github.com/freshet/freshet/lab/webgraph/gen"
	"github.com/freshet/freshet/lab/webgraph/stats"
)

// Commands are the commands of the lab, in the order of the manual.
type Commands struct {
	Revisit  revisitCmd  `cmd:"" help:"Plan visits by a policy; estimate change rates."`
	Monitor  monitorCmd  `cmd:"" help:"Simulate ways of watching for changes."`
	Control  controlCmd  `cmd:"" help:"How many robots should be active: the queue between robots and indexer."`
	Web      webCmd      `cmd:"" help:"Synthetic webs for testing robots."`
	Strategy strategyCmd `cmd:"" help:"Download strategies in a language of their own, tried on a stored web."`
	Attack   attackCmd   `cmd:"" help:"Serve a hostile web to any robot, and score how the robot withstands it."`
	Bench    benchCmd    `cmd:"" help:"Measure freshet next to its peers."`
}

// movedNames are the commands that were product commands before they moved
// below lab.
var movedNames = []string{"revisit", "monitor", "control", "web", "strategy", "bench"}

// Moved reports whether a command of this name is now below lab.
func Moved(name string) bool { return slices.Contains(movedNames, name) }

// HelpVars returns names that packages of the lab own, for the help texts.
func HelpVars() map[string]string {
	variants, _ := monitor.Variants()
	return map[string]string{
		"bound_measures": strings.Join(control.BoundMeasures(), ", "),
		"policies":       strings.Join(revisit.Names(), ", "),
		"models":         strings.Join(gen.Models(), ", "),
		"laws":           field.Laws,
		"variants":       strings.Join(variants, ", "),
		"web_steps":      strings.Join(stats.Steps(), ", "),
	}
}
