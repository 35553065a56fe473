package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/freshet/freshet/internal/command"

	"github.com/freshet/freshet/internal/progress"
	"github.com/freshet/freshet/lab/strategy"
	strategyrun "github.com/freshet/freshet/lab/strategy/run"
	"github.com/freshet/freshet/lab/strategy/syntax"
	"github.com/freshet/freshet/lab/webgraph"
)

// strategyCmd groups what is done with scripts in the strategy language.
type strategyCmd struct {
	Check   strategyCheckCmd   `cmd:"" help:"Find what is wrong with a strategy."`
	Run     strategyRunCmd     `cmd:"" help:"Run a strategy on a stored web."`
	Compare strategyCompareCmd `cmd:"" help:"Run strategies and compare what they fetch first."`
	List    strategyListCmd    `cmd:"" help:"The shipped strategies; print one."`
}

// scriptFlags say how a script is read.
type scriptFlags struct {
	Dialect string            `help:"How a script is read: auto, strict or thesis." default:"auto" enum:"auto,strict,thesis"`
	Set     map[string]string `help:"Give a constant of the script another value." placeholder:"NAME=VALUE"`
}

// readScript reads and checks a script; one that cannot be read is the user's error.
func (f *scriptFlags) readScript(g *command.Globals, name string) (*strategy.Script, error) {
	var file, src string
	var err error
	if name == "-" {
		var b []byte
		b, err = io.ReadAll(g.Stdin)
		file, src = "standard input", string(b)
	} else {
		file, src, err = strategy.Read(name)
	}
	if err != nil {
		return nil, command.UsageError{Err: err}
	}
	set := map[string]string{}
	for k, v := range f.Set {
		set[strings.ToLower(k)] = v
	}
	return strategy.Load(file, src, f.Dialect, set)
}

// loadCorrectScript is load for scripts that are to be run: it prints what is wrong.
func (f *scriptFlags) loadCorrectScript(g *command.Globals, name string) (*strategy.Script, error) {
	s, err := f.readScript(g, name)
	if err != nil {
		return nil, err
	}
	for _, d := range s.Diagnostics {
		if !d.Warning || !g.Quiet {
			fmt.Fprintln(g.Stderr, d.Human(s.File, s.Source))
		}
	}
	if s.Errors > 0 {
		return nil, command.Usagef("%s: %s", s.File, countNoun(s.Errors, "error"))
	}
	return s, nil
}

// countNoun writes a number with its noun.
func countNoun(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

type strategyCheckCmd struct {
	scriptFlags
	Format string   `help:"How messages are written: human, gcc or json." default:"human" enum:"human,gcc,json"`
	Script []string `arg:"" help:"Files, names of shipped strategies, or - for standard input."`
}

// checkAnswer is the JSON of strategy check.
type checkAnswer struct {
	Errors   int            `json:"errors"`
	Warnings int            `json:"warnings"`
	Messages []checkMessage `json:"messages"`
}

// checkMessage is one message; columns count characters from 1.
type checkMessage struct {
	File      string `json:"file"`
	Line      int    `json:"line"`
	Column    int    `json:"column"`
	EndColumn int    `json:"end_column"`
	Severity  string `json:"severity"`
	Message   string `json:"message"`
	Source    string `json:"source"`
}

// Run checks.
func (c *strategyCheckCmd) Run(g *command.Globals) error {
	if g.JSON {
		c.Format = "json"
	}
	a := checkAnswer{Messages: []checkMessage{}}
	for _, name := range c.Script {
		s, err := c.readScript(g, name)
		if err != nil {
			return err
		}
		a.Errors += s.Errors
		for _, d := range s.Diagnostics {
			m := checkMessage{s.File, d.Pos.Line, d.Pos.Col, d.End, "error", d.Message, syntax.SourceLine(s.Source, d.Pos.Line)}
			if d.Warning {
				a.Warnings++
				m.Severity = "warning"
			}
			a.Messages = append(a.Messages, m)
			switch c.Format {
			case "gcc":
				fmt.Fprintln(g.Stdout, d.GCC(s.File))
			case "human":
				fmt.Fprintln(g.Stdout, d.Human(s.File, s.Source))
			}
		}
	}
	if c.Format == "json" {
		if err := g.PrintJSON(a); err != nil {
			return err
		}
	}
	if a.Errors > 0 {
		return command.Usagef("%s", countNoun(a.Errors, "error"))
	}
	if c.Format == "human" && a.Warnings == 0 {
		fmt.Fprintln(g.Stdout, "no errors")
	}
	return nil
}

// runFlags are the web, the limits and the costs of a run.
type runFlags struct {
	Web         string  `help:"Folder of a stored web (freshet lab web gen, web import)." required:"" placeholder:"DIR"`
	Seed        uint64  `help:"Seed of random() and of the sizes of pages." default:"1"`
	MaxPages    int64   `help:"End a script after so many outputs; 0: never." placeholder:"N"`
	MaxSteps    int64   `help:"Most turns of loops, calls and elements copied; 0: any." default:"100000000000"`
	MaxMemory   int64   `help:"Most bytes in containers; 0: any." default:"1073741824"`
	MaxDisk     int64   `help:"Most bytes in files, the output included; 0: any." default:"17179869184"`
	Latency     float64 `help:"Simulated seconds a fetch." default:"0.1"`
	Bandwidth   float64 `help:"Simulated bytes a second of one connection; 0: any." default:"1000000"`
	Delay       float64 `help:"Simulated seconds between two fetches from a server." default:"1"`
	Connections int     `help:"Simulated fetches at the same time." default:"32"`
	Temp        string  `help:"Folder for temporary files (default: the system's)." placeholder:"DIR"`
}

// checkRunFlags says what is wrong with the flags.
func (f *runFlags) checkRunFlags() error {
	switch {
	case f.MaxPages < 0 || f.MaxSteps < 0 || f.MaxMemory < 0 || f.MaxDisk < 0:
		return command.Usagef("a limit is not negative; 0 is none")
	case !(f.Latency >= 0 && f.Latency < 1e9) || !(f.Bandwidth >= 0) || !(f.Delay >= 0 && f.Delay < 1e9):
		return command.Usagef("--latency, --bandwidth and --delay are not negative")
	case f.Connections < 1 || f.Connections > 1<<20:
		return command.Usagef("--connections %d: want 1 to %d", f.Connections, 1<<20)
	}
	return nil
}

// openWebGraph opens the web.
func (f *runFlags) openWebGraph(ctx context.Context, g *command.Globals) (*webgraph.Graph, error) {
	web, err := openGraph(g, ctx, f.Web)
	if err != nil {
		return nil, err
	}
	if web.Sites() == 0 && !g.Quiet {
		fmt.Fprintf(g.Stderr, "freshet: %s tells no sites: all pages are taken to be on one server\n", f.Web)
	}
	return web, nil
}

func (f *runFlags) runOptions(web strategyrun.Web, dir string) strategyrun.Options {
	return strategyrun.Options{
		Web: web, Dir: dir, Seed: f.Seed, MaxPages: f.MaxPages, MaxSteps: f.MaxSteps, MaxMemory: f.MaxMemory, MaxDisk: f.MaxDisk,
		Cost: strategyrun.Cost{Latency: f.Latency, Bandwidth: f.Bandwidth, Delay: f.Delay, Connections: f.Connections},
	}
}

type strategyRunCmd struct {
	scriptFlags
	runFlags
	Out        string        `help:"File for the pages in the order of output, one number a line; - is standard output." default:"-" short:"o" placeholder:"FILE"`
	Work       string        `help:"Folder in which attributes persist from run to run (default: they are forgotten)." placeholder:"DIR"`
	Checkpoint time.Duration `help:"Save attributes in --work this often; 0: at the end only." default:"5m"`
	Script     string        `arg:"" help:"File, name of a shipped strategy, or - for standard input."`
}

// runAnswer is the JSON of strategy run.
type runAnswer struct {
	Script string `json:"script"`
	strategyrun.Result
	WallSeconds float64 `json:"wall_seconds"`
}

// Run runs.
func (c *strategyRunCmd) Run(ctx context.Context, g *command.Globals) (err error) {
	if err := c.checkRunFlags(); err != nil {
		return err
	}
	s, err := c.loadCorrectScript(g, c.Script)
	if err != nil {
		return err
	}
	web, err := c.openWebGraph(ctx, g)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, web.Close()) }()
	dir, err := os.MkdirTemp(c.Temp, "freshet-strategy-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	opt := c.runOptions(web, dir)
	opt.Attributes, opt.Checkpoint, opt.Log = c.Work, c.Checkpoint, g.Stderr
	switch {
	case c.Out != "-":
		f, err := os.Create(c.Out)
		if err != nil {
			return command.UsageError{Err: err}
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		opt.Out = f
	case !g.JSON:
		opt.Out = g.Stdout
	}
	shown := func() {}
	if !g.Quiet {
		line, nodes := progress.New(g.Stderr), int64(web.Nodes())
		n := int64(0)
		opt.Output = func(uint32, int64, float64) {
			if n++; n&(1<<12-1) == 0 {
				line.Update(min(n, nodes), nodes, "pages")
			}
		}
		shown = func() { line.Done(fmt.Sprintf("%d pages", n)) }
	}
	began := time.Now()
	res, err := strategy.Run(ctx, s, opt)
	shown()
	if err != nil {
		return err
	}
	if res.Repeated > 0 && !g.Quiet {
		fmt.Fprintf(g.Stderr, "freshet: warning: %d pages were output that had been output before\n", res.Repeated)
	}
	a := runAnswer{s.File, res, time.Since(began).Seconds()}
	if g.JSON {
		return g.PrintJSON(a)
	}
	if !g.Quiet {
		fmt.Fprintf(g.Stderr, "%d pages of %d servers, %.3g MB, %.6g simulated seconds; %d steps in %.2f s\n",
			res.Pages, res.Servers, float64(res.Bytes)/1e6, res.Seconds, res.Steps, a.WallSeconds)
	}
	return nil
}

type strategyListCmd struct {
	Name string `arg:"" optional:"" help:"Print this one."`
}

// Run lists the shipped strategies, or prints one.
func (c *strategyListCmd) Run(g *command.Globals) error {
	if c.Name != "" {
		if !slices.Contains(strategy.Scripts(), c.Name) {
			return command.Usagef("no shipped strategy %q; there are %s", c.Name, strings.Join(strategy.Scripts(), ", "))
		}
		_, src, err := strategy.Read(c.Name)
		if err == nil {
			_, err = io.WriteString(g.Stdout, src)
		}
		return err
	}
	first := map[string]string{}
	for _, name := range strategy.Scripts() {
		_, src, err := strategy.Read(name)
		if err != nil {
			return err
		}
		first[name] = strings.TrimPrefix(syntax.SourceLine(src, 1), "// ")
	}
	if g.JSON {
		return g.PrintJSON(first)
	}
	for _, name := range slices.Sorted(maps.Keys(first)) {
		fmt.Fprintf(g.Stdout, "%-20s %s\n", name, first[name])
	}
	return nil
}
