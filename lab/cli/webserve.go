package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/freshet/freshet/internal/command"

	"github.com/freshet/freshet/lab/testweb"
	"github.com/freshet/freshet/lab/testweb/behaviour"
	"github.com/freshet/freshet/lab/testweb/content"
	"github.com/freshet/freshet/lab/testweb/name"
	"github.com/freshet/freshet/lab/testweb/netns"
	"github.com/freshet/freshet/lab/testweb/truth"
)

// webServeCmd serves a synthetic web.
type webServeCmd struct {
	Web     string   `arg:"" optional:"" help:"Stored graph (else --virtual or --demo)."`
	Command []string `arg:"" optional:"" help:"With --netns, after --: the command to run."`

	Virtual uint64 `help:"Serve a computed web of so many pages, up to 2^42." placeholder:"N"`
	virtualWeb
	Demo  bool   `help:"Serve the demo web."`
	Seed  uint64 `help:"Seed of everything that is drawn." default:"1"`
	Sites uint64 `help:"Number of hosts (default: one for 64 pages)." placeholder:"N"`

	HTTP   string `help:"Address for HTTP." placeholder:"ADDR" name:"http"`
	HTTPS  string `help:"Address for HTTPS." placeholder:"ADDR" name:"https"`
	DNS    string `help:"Address for DNS, UDP and TCP." placeholder:"ADDR" name:"dns"`
	Proxy  string `help:"Address for a forward proxy with CONNECT." placeholder:"ADDR"`
	Answer string `help:"Address that DNS gives for every host, e.g. 127.0.0.1 (default: each host's own)." placeholder:"IP"`
	Netns  bool   `help:"Run the command after -- where all addresses are this web, in namespaces of its own."`
	CA     string `help:"Write the certificate that robots must trust for HTTPS to this file." placeholder:"FILE" name:"ca"`

	Parent    string   `help:"Domain of all hosts." default:"cz"`
	Dotted    bool     `help:"Names like www.aa.bb.cc.dd.cz."`
	Languages []string `help:"Languages of the hosts: en, ru, lt." placeholder:"TAG"`

	Behaviour string `help:"Behaviours of the servers (YAML)." placeholder:"FILE"`
	Preset    string `help:"Behaviours of the servers: a preset (see --list-behaviours)." placeholder:"NAME"`
	List      bool   `help:"Print the behaviours and presets, and end." name:"list-behaviours"`
	webLife
	Truth string `help:"Log of all that is asked and what the web knew of it (JSON lines)." placeholder:"FILE"`
	Seeds int    `help:"Number of entry pages to print." default:"1"`

	behavioursText string // as the truth log tells them
}

// Run serves until the context ends or, with --netns, the command does.
func (c *webServeCmd) Run(ctx context.Context, g *command.Globals) error {
	if c.List {
		return c.listBehaviours(g)
	}
	cfg, argv, err := c.configFromFlags(ctx, g)
	if err != nil {
		return err
	}
	if c.Netns {
		if !netns.Inside() {
			code, err := netns.Run(ctx, os.Args, g.Stdin, g.Stdout, g.Stderr)
			if err == nil && code != 0 {
				err = command.ExitStatus(code)
			}
			return err
		}
		return c.serveInNamespace(ctx, g, cfg, argv)
	}
	return c.serveTestWeb(ctx, g, cfg, func(ctx context.Context, _ *testweb.Server) error {
		<-ctx.Done()
		return nil
	})
}

// configFromFlags turns the flags into a configuration and the command to run.
func (c *webServeCmd) configFromFlags(ctx context.Context, g *command.Globals) (cfg testweb.Config, args []string, err error) {
	// Without a stored graph the first argument is part of the command.
	args = c.Command
	if c.Web != "" {
		args = append([]string{c.Web}, args...)
	}
	dir := ""
	if c.isStoredGraph() {
		if len(args) == 0 {
			return cfg, nil, command.Usagef("web serve: which web? give the folder of a stored graph, --virtual N, --field FILE or --demo")
		}
		dir, args = args[0], args[1:]
	}
	switch {
	case c.Netns && len(args) == 0:
		return cfg, nil, command.Usagef("web serve --netns: no command: give it after --, like `--netns -- wget -r http://...`")
	case c.Netns && (c.HTTP != "" || c.HTTPS != "" || c.DNS != "" || c.Proxy != "" || c.Answer != ""):
		return cfg, nil, command.Usagef("web serve --netns: the addresses are all there are: leave out --http, --https, --dns, --proxy and --answer")
	case !c.Netns && len(args) > 0:
		return cfg, nil, command.Usagef("web serve: unexpected argument %q (a command runs only with --netns)", args[0])
	}
	if c.Demo {
		cfg = testweb.Demo()
	}
	if c.Demo && c.TimeScale == 1 {
		c.TimeScale = cfg.TimeScale
	}
	cfg.Pages = max(cfg.Pages, c.Virtual)
	if !c.Demo || c.Sites != 0 {
		cfg.Sites = c.Sites
	}
	if !c.Demo || c.Seed != 1 {
		cfg.Seed = c.Seed
	}
	cfg.Names = name.Scheme{Parent: c.Parent, Dotted: c.Dotted}
	cfg.HTTP, cfg.HTTPS, cfg.DNS, cfg.Proxy = c.HTTP, c.HTTPS, c.DNS, c.Proxy
	for _, tag := range c.Languages {
		l, ok := content.ParseLanguage(tag)
		if !ok {
			return cfg, nil, command.Usagef("--languages %s: the pages speak en, ru and lt", tag)
		}
		cfg.Languages = append(cfg.Languages, l)
	}
	if c.Answer != "" {
		a, err := netip.ParseAddr(c.Answer)
		if err != nil {
			return cfg, nil, command.Usagef("--answer %s: not an IP address", c.Answer)
		}
		cfg.Answer = a
	}
	cfg.Log = slog.New(slog.NewTextHandler(g.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	if err = c.setBehaviours(&cfg); err != nil {
		return cfg, nil, err
	}
	switch {
	case dir != "":
		if cfg.Graph, err = openStored(g, ctx, dir); err != nil {
			return cfg, nil, err
		}
	case c.Virtual > 0:
		if cfg.Graph, err = c.virtualWeb.computedGraph(&cfg); err != nil {
			return cfg, nil, err
		}
	}
	if err := c.webLife.configureHistory(&cfg); err != nil {
		return cfg, nil, err
	}
	return cfg, args, nil
}

// isStoredGraph reports whether the first argument is a graph. With a field it may be left
// out: then it is the command's if there is one and no such graph.
func (c *webServeCmd) isStoredGraph() bool {
	return c.Virtual == 0 && !c.Demo && (c.Field == "" || c.Web != "" && (!c.Netns || fileExists(c.Web)))
}

func (c *webServeCmd) setBehaviours(cfg *testweb.Config) (err error) {
	path := ""
	switch {
	case c.Preset != "" && c.Behaviour != "":
		return command.Usagef("--preset and --behaviour: give one; a file may begin with `preset: %s`", c.Preset)
	case c.Preset != "":
		c.behavioursText = "preset: " + c.Preset
	case c.Behaviour != "":
		b, err := os.ReadFile(c.Behaviour)
		if err != nil {
			return command.Usagef("--behaviour: %w", err)
		}
		path, c.behavioursText = c.Behaviour, string(b)
	case c.Demo:
		c.behavioursText = "preset: demo"
	}
	if cfg.Behaviours, err = behaviour.Parse(path, []byte(c.behavioursText)); err != nil {
		return command.UsageError{Err: err}
	}
	return nil
}

// serveTestWeb serves while during runs.
func (c *webServeCmd) serveTestWeb(ctx context.Context, g *command.Globals, cfg testweb.Config, during func(context.Context, *testweb.Server) error) (err error) {
	closeLog, err := c.openTruth(&cfg)
	if err != nil {
		return err
	}
	s, err := testweb.New(cfg)
	if err != nil {
		return errors.Join(usageOrNot(err), closeLog())
	}
	defer func() { err = errors.Join(err, s.Close(), closeLog()) }()
	if c.CA != "" {
		if err := os.WriteFile(c.CA, s.CertificateAuthority(), 0o644); err != nil {
			return fmt.Errorf("--ca: %w", err)
		}
	}
	if !c.Netns {
		if err := c.announceServer(g, s); err != nil {
			return err
		}
	}
	return c.serveWithVisitors(ctx, g, s, cfg.Seed, during)
}

// usageOrNot marks errors of a configuration as the user's; an address that
// cannot be listened on is not.
func usageOrNot(err error) error {
	if listen := (*testweb.ListenError)(nil); errors.As(err, &listen) {
		return err
	}
	return command.UsageError{Err: err}
}

// openTruth opens the truth log; the function closes it.
func (c *webServeCmd) openTruth(cfg *testweb.Config) (func() error, error) {
	if c.Truth == "" {
		return func() error { return nil }, nil
	}
	web, err := testweb.NewWeb(*cfg)
	if err != nil {
		return nil, command.UsageError{Err: err}
	}
	f, err := os.Create(c.Truth)
	if err != nil {
		return nil, fmt.Errorf("--truth: %w", err)
	}
	graph := ""
	if c.isStoredGraph() {
		if graph, err = filepath.Abs(c.Web); err != nil {
			return nil, errors.Join(fmt.Errorf("--truth: %w", err), f.Close())
		}
	}
	head := truth.Head{
		Record: truth.Record{Time: time.Now()},
		Pages:  web.Pages(), Hosts: web.Hosts(), Seed: cfg.Seed, Graph: graph, Sites: cfg.Sites,
		Parent: cfg.Names.Domain(), Dotted: cfg.Names.Dotted, TimeScale: cfg.TimeScale, Behaviours: c.behavioursText, Interval: c.Changes.Seconds(), Field: c.Field,
	}
	if c.Virtual > 0 && c.Model != treeModel {
		head.Model, head.In, head.Out, head.Intra, head.BowTie, head.Degree = c.Model, c.In, c.Out, c.Intra, c.Tie, c.Degree
	}
	log, err := truth.NewLog(f, head)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	cfg.Truth = log
	return func() error { return errors.Join(log.Close(), f.Close()) }, nil
}

// announceServer says what is served and where.
func (c *webServeCmd) announceServer(g *command.Globals, s *testweb.Server) error {
	seeds := s.Seeds(c.Seeds)
	if g.JSON {
		return g.PrintJSON(map[string]any{
			"pages": s.Pages(), "hosts": s.Hosts(), "http": s.HTTPAddr(), "https": s.HTTPSAddr(),
			"dns": s.DNSAddr(), "proxy": s.ProxyAddr(), "seeds": seeds,
		})
	}
	fmt.Fprintf(g.Stdout, "%d pages on %d hosts\n", s.Pages(), s.Hosts())
	for _, l := range []struct{ what, addr string }{
		{"HTTP", s.HTTPAddr()}, {"HTTPS", s.HTTPSAddr()}, {"DNS", s.DNSAddr()}, {"proxy", s.ProxyAddr()},
	} {
		if l.addr != "" {
			fmt.Fprintf(g.Stdout, "%-6s %s\n", l.what, l.addr)
		}
	}
	for _, u := range seeds {
		fmt.Fprintln(g.Stdout, "seed  ", u)
	}
	if s.DNSAddr() != "" && c.Answer == "" {
		fmt.Fprintln(g.Stderr, "note: DNS gives each host's own address, which leads to this web only inside --netns; --answer 127.0.0.1 gives that one for all")
	}
	return nil
}

// listBehaviours prints the behaviours.
func (c *webServeCmd) listBehaviours(g *command.Globals) error {
	if g.JSON {
		list := map[string]string{}
		for _, k := range behaviour.Kinds() {
			list[k.Name] = k.Doc
		}
		return g.PrintJSON(map[string]any{"behaviours": list, "presets": behaviour.Presets()})
	}
	for _, k := range behaviour.Kinds() {
		fmt.Fprintf(g.Stdout, "%-11s %s\n", k.Name, k.Doc)
	}
	fmt.Fprintln(g.Stdout, "presets:   ", strings.Join(behaviour.Presets(), ", "))
	return nil
}

// serveInNamespace serves in the namespace, on all addresses, while the command runs.
func (c *webServeCmd) serveInNamespace(ctx context.Context, g *command.Globals, cfg testweb.Config, argv []string) error {
	dir, err := os.MkdirTemp("", "freshet-web-")
	if err != nil {
		return fmt.Errorf("web serve --netns: %w", err)
	}
	defer os.RemoveAll(dir)
	if err := netns.Prepare(); err != nil {
		return fmt.Errorf("web serve --netns: %w", err)
	}
	cfg.HTTP, cfg.HTTPS, cfg.DNS = ":80", ":443", ":53"
	return c.serveTestWeb(ctx, g, cfg, func(ctx context.Context, s *testweb.Server) error {
		files := netns.Files{Dir: dir, Resolver: "127.0.0.1", CA: s.CertificateAuthority()}
		if err := files.Mount(); err != nil {
			return fmt.Errorf("web serve --netns: %w", err)
		}
		return runCommand(ctx, g, argv)
	})
}

// runCommand runs a command and passes its exit code on.
func runCommand(ctx context.Context, g *command.Globals, argv []string) error {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = g.Stdin, g.Stdout, g.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return command.ExitStatus(exit.ExitCode())
	case errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist):
		return command.Usagef("web serve --netns: no program %q", argv[0])
	case err != nil:
		return fmt.Errorf("run %s: %w", argv[0], err)
	}
	return nil
}
