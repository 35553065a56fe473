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
	"log"
	"os"
	"os/signal"
	"reflect"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/freshet/freshet/internal/command"
	"github.com/freshet/freshet/internal/version"
	"github.com/freshet/freshet/lab/cli"
	"github.com/freshet/freshet/weburl"
)

// commandLine is the whole command line. Commands stand in the order of the manual.
type commandLine struct {
	command.Globals

	ShowVersion kong.VersionFlag `name:"version" help:"Print the version."`

	Serve   serveCmd   `cmd:"" group:"robots" help:"Keep sources fresh and searchable: robots, index, search page, API."`
	Crawl   crawlCmd   `cmd:"" group:"robots" help:"Crawl web sites once."`
	Scan    scanCmd    `cmd:"" group:"robots" help:"Scan file shares once."`
	Sensor  sensorCmd  `cmd:"" group:"robots" help:"Report changes of a web server to a running server: reverse proxy, access log, document root."`
	Search  searchCmd  `cmd:"" group:"use" help:"Search from the terminal."`
	Why     whyCmd     `cmd:"" group:"use" help:"Explain a page: how it was found, whether it was rendered, when it is due."`
	Robots  robotsCmd  `cmd:"" group:"use" help:"Check whether a robot may fetch a URL, and by which line of robots.txt."`
	Status  statusCmd  `cmd:"" group:"server" help:"Show the status of a running server."`
	Agents  agentsCmd  `cmd:"" group:"server" help:"Show or set the agents of a running server."`
	Sources sourcesCmd `cmd:"" group:"server" help:"Show, add or remove sources of a running server."`
	Open    openCmd    `cmd:"" group:"server" help:"Print a link that logs a browser in to the operator's pages, once."`
	Pause   pauseCmd   `cmd:"" group:"server" help:"Pause a running server: it starts no new work."`
	Resume  resumeCmd  `cmd:"" group:"server" help:"Resume a paused server."`
	Stop    stopCmd    `cmd:"" group:"server" help:"Stop a running server after the pages under way."`
	Export  exportCmd  `cmd:"" group:"data" help:"Write pages, links, files or logs as JSON lines, CSV or Parquet."`
	Backup  backupCmd  `cmd:"" group:"data" help:"Save records and bodies in a folder."`
	Restore restoreCmd `cmd:"" group:"data" help:"Restore a backup, into either engine."`
	Migrate migrateCmd `cmd:"" group:"data" help:"Copy a store from one engine to another."`
	Index   indexCmd   `cmd:"" group:"data" help:"Check the text index, describe it, or build it again from the store."`
	Config  configCmd  `cmd:"" group:"other" help:"Print or check the configuration."`
	Version versionCmd `cmd:"" group:"other" help:"Print the version."`

	Lab cli.Commands `cmd:"" group:"lab" help:"Choose how to keep fresh before a robot is let loose: synthetic webs, strategies, simulation, queueing model, benchmarks."`
}

// commandGroups are the headings of freshet --help, in order.
var commandGroups = kong.ExplicitGroups([]kong.Group{
	{Key: "robots", Title: "Robots:"},
	{Key: "use", Title: "Search and explain:"},
	{Key: "server", Title: "A running server:"},
	{Key: "data", Title: "Data:"},
	{Key: "other", Title: "Program:"},
	{Key: "lab", Title: "Lab:"},
})

func main() {
	// net/http writes bytes that servers send unasked to the standard logger, which nothing
	// else here uses: any server could fill standard error.
	log.SetOutput(io.Discard)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := runArguments(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// newParser returns the parser of the whole command line, which fills c.
func (c *commandLine) newParser(options ...kong.Option) (*kong.Kong, error) {
	return newParser(c, options...)
}

// commandGrammar returns the part of the command line that args are of: the command that
// they begin with, or all of them, and the flags of both. To build the flags of
// all commands takes longer than many a command.
func commandGrammar(args []string) (part any, g *command.Globals) {
	if len(args) > 0 {
		for _, f := range reflect.VisibleFields(reflect.TypeFor[commandLine]()) {
			if _, ok := f.Tag.Lookup("cmd"); ok && strings.ToLower(f.Name) == args[0] {
				v := reflect.New(reflect.StructOf([]reflect.StructField{
					{Name: "Globals", Type: reflect.TypeFor[command.Globals](), Tag: `embed:""`},
					{Name: f.Name, Type: f.Type, Tag: f.Tag},
				}))
				return v.Interface(), v.Elem().Field(0).Addr().Interface().(*command.Globals)
			}
		}
	}
	var c commandLine
	return &c, &c.Globals
}

// newParser returns the parser of a part of the command line, which fills it. Names
// that packages own stand in the help texts by variables.
func newParser(part any, options ...kong.Option) (*kong.Kong, error) {
	vars := kong.Vars(cli.HelpVars())
	vars["version"] = "freshet " + version.String()
	configVars(vars)
	vars["orderings"] = strings.Join(orderingNames(), ", ")
	return kong.New(part, append([]kong.Option{
		kong.Name("freshet"),
		kong.Description("Keeps a search index fresh for the least traffic."),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
		commandGroups,
		vars,
	}, options...)...)
}

// runArguments parses args, runs the chosen command and returns the exit code.
func runArguments(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	part, g := commandGrammar(args)
	exit := -1 // set when the parser itself wants to end (--help)
	parser, err := newParser(part, kong.Writers(stdout, stderr), kong.Exit(func(code int) { exit = code }), kong.BindTo(ctx, (*context.Context)(nil)))
	if err != nil {
		fmt.Fprintln(stderr, "freshet:", err)
		return command.ExitFailed
	}
	kctx, err := parser.Parse(args)
	if exit >= 0 {
		return exit
	}
	if err != nil {
		if len(args) > 0 && cli.Moved(args[0]) {
			err = fmt.Errorf("%q is a command of the lab: freshet lab %s", args[0], strings.Join(args, " "))
		}
		fmt.Fprintln(stderr, "freshet:", err, usageHint(err))
		return command.ExitUsage
	}
	g.Stdin, g.Stdout, g.Stderr = stdin, command.ForReader(stdout), stderr
	if err := kctx.Run(g); err != nil {
		var status command.ExitStatus
		if errors.As(err, &status) {
			return int(status) // the command that we ran has told its own error
		}
		fmt.Fprintln(stderr, "freshet:", command.PlainText(weburl.Redact(err.Error())))
		var usage command.UsageError
		if errors.As(err, &usage) {
			return command.ExitUsage
		}
		return command.ExitFailed
	}
	return command.ExitOK
}

// usageHint says where the usage of the command stands that was not understood.
func usageHint(err error) string {
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
func (versionCmd) Run(g *command.Globals) error {
	if g.JSON {
		return g.PrintJSON(map[string]string{"version": version.String()})
	}
	_, err := fmt.Fprintln(g.Stdout, "freshet", version.String())
	return err
}
