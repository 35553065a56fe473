// Command freshet keeps a search index of a site, a company or a local network
// fresh for the least traffic, and lets its user choose how by simulation,
// theory and a synthetic web before a robot is let loose.
//
// This package is the command line and the wiring, nothing else: one file per
// command, each a struct whose fields are the flags and whose Run method calls
// the package that does the work.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"reflect"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/freshet/freshet/lab/control"
	"github.com/freshet/freshet/lab/field"
	"github.com/freshet/freshet/lab/monitor"
	"github.com/freshet/freshet/lab/webgraph/gen"
	"github.com/freshet/freshet/lab/webgraph/stats"
	"github.com/freshet/freshet/revisit"
)

// version is set by the linker (-X main.version=...) in released builds.
var version = "devel"

// Exit codes of every command.
const (
	exitOK     = 0
	exitFailed = 1 // the work was understood but failed
	exitUsage  = 2 // wrong usage or wrong input
)

// cli is the whole command line. Commands stand in the order of the manual.
type cli struct {
	globals

	Serve    serveCmd    `cmd:"" help:"Keep sources fresh and searchable: robots, index, search page, API."`
	Crawl    crawlCmd    `cmd:"" help:"Crawl web sites once."`
	Robots   robotsCmd   `cmd:"" help:"May a robot fetch a URL, and by which line of robots.txt?"`
	Web      webCmd      `cmd:"" help:"Synthetic webs for testing robots."`
	Strategy strategyCmd `cmd:"" help:"Download strategies in a language of their own, tried on a stored web."`
	Scan     scanCmd     `cmd:"" help:"Scan file shares once."`
	Export   exportCmd   `cmd:"" help:"Write pages, links, files or logs as JSON lines, CSV or Parquet."`
	Migrate  migrateCmd  `cmd:"" help:"Copy a store from one engine to another."`
	Backup   backupCmd   `cmd:"" help:"Save records and bodies in a folder."`
	Restore  restoreCmd  `cmd:"" help:"Bring a backup back, into either engine."`
	Revisit  revisitCmd  `cmd:"" help:"Plan visits by a policy; estimate change rates."`
	Control  controlCmd  `cmd:"" help:"How many robots should be active: the queue between robots and indexer."`
	Monitor  monitorCmd  `cmd:"" help:"Simulate ways of watching for changes."`
	Sensor   sensorCmd   `cmd:"" help:"Tell a serve of changes at a web server: reverse proxy, document root."`
	Why      whyCmd      `cmd:"" help:"How a page was found, why it was rendered or not, when it is due."`
	Search   searchCmd   `cmd:"" help:"Search from the terminal."`
	Status   statusCmd   `cmd:"" help:"How a running serve does."`
	Agents   agentsCmd   `cmd:"" help:"The agents of a running serve."`
	Sources  sourcesCmd  `cmd:"" help:"The sources of a running serve."`
	Pause    pauseCmd    `cmd:"" help:"Let a running serve start no new work."`
	Resume   resumeCmd   `cmd:"" help:"Let it go on."`
	Stop     stopCmd     `cmd:"" help:"End a running serve after the pages under way."`
	Config   configCmd   `cmd:"" help:"The configuration of serve."`
	Bench    benchCmd    `cmd:"" help:"Measure freshet beside its peers."`
	Version  versionCmd  `cmd:"" help:"Print the version."`
}

// globals are the flags that every command understands.
type globals struct {
	Data    string `help:"Data directory (default: $$FRESHET_DATA or the user's data directory)." placeholder:"DIR" env:"FRESHET_DATA"`
	Quiet   bool   `help:"No progress on standard error."`
	JSON    bool   `help:"Print one JSON object on standard output."`
	Verbose bool   `help:"More in the log." short:"v"`

	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
}

// usageError marks an error as the user's: wrong usage or wrong input.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// usagef returns an error that makes the command exit with code 2.
func usagef(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// parser returns the parser of the whole command line, which fills c.
func (c *cli) parser(options ...kong.Option) (*kong.Kong, error) { return newParser(c, options...) }

// grammar returns the part of the command line that args are of: the command that
// they begin with, or all of them, and the flags of both. To build the flags of
// all commands takes longer than many a command.
func grammar(args []string) (part any, g *globals) {
	if len(args) > 0 {
		for _, f := range reflect.VisibleFields(reflect.TypeFor[cli]()) {
			if _, ok := f.Tag.Lookup("cmd"); ok && strings.ToLower(f.Name) == args[0] {
				v := reflect.New(reflect.StructOf([]reflect.StructField{
					{Name: "Globals", Type: reflect.TypeFor[globals](), Tag: `embed:""`},
					{Name: f.Name, Type: f.Type, Tag: f.Tag},
				}))
				return v.Interface(), v.Elem().Field(0).Addr().Interface().(*globals)
			}
		}
	}
	var c cli
	return &c, &c.globals
}

// newParser returns the parser of a part of the command line, which fills it. Names
// that packages own stand in the help texts by variables.
func newParser(part any, options ...kong.Option) (*kong.Kong, error) {
	variants, _ := monitor.Variants()
	return kong.New(part, append([]kong.Option{
		kong.Name("freshet"),
		kong.Description("Keeps a search index fresh for the least traffic."),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Vars{
			"orderings":      strings.Join(orderingNames(), ", "),
			"bound_measures": strings.Join(control.BoundMeasures(), ", "),
			"policies":       strings.Join(revisit.Names(), ", "),
			"models":         strings.Join(gen.Models(), ", "),
			"laws":           field.Laws,
			"variants":       strings.Join(variants, ", "),
			"web_steps":      strings.Join(stats.Steps(), ", "),
		},
	}, options...)...)
}

// run parses args, runs the chosen command and returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	part, g := grammar(args)
	exit := -1 // set when the parser itself wants to end (--help)
	parser, err := newParser(part, kong.Writers(stdout, stderr), kong.Exit(func(code int) { exit = code }), kong.BindTo(ctx, (*context.Context)(nil)))
	if err != nil {
		fmt.Fprintln(stderr, "freshet:", err)
		return exitFailed
	}
	kctx, err := parser.Parse(args)
	if exit >= 0 {
		return exit
	}
	if err != nil {
		fmt.Fprintln(stderr, "freshet:", err, hint(err))
		return exitUsage
	}
	g.stdin, g.stdout, g.stderr = stdin, stdout, stderr
	if err := kctx.Run(g); err != nil {
		var status exitStatus
		if errors.As(err, &status) {
			return int(status) // the command that we ran has told its own error
		}
		fmt.Fprintln(stderr, "freshet:", err)
		var usage usageError
		if errors.As(err, &usage) {
			return exitUsage
		}
		return exitFailed
	}
	return exitOK
}

// hint says where the usage of the command stands that was not understood.
func hint(err error) string {
	var p *kong.ParseError
	if !errors.As(err, &p) || p.Context == nil {
		return "(freshet --help)"
	}
	var path []string
	for _, e := range p.Context.Path {
		if e.Command != nil {
			path = append(path, e.Command.Name)
		}
	}
	return "(" + strings.Join(append([]string{"freshet"}, append(path, "--help")...), " ") + ")"
}

type versionCmd struct{}

// Run prints the version.
func (versionCmd) Run(g *globals) error {
	if g.JSON {
		return g.printJSON(map[string]string{"version": version})
	}
	_, err := fmt.Fprintln(g.stdout, "freshet", version)
	return err
}
