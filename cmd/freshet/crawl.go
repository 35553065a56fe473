package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/freshet/freshet/app"
	"github.com/freshet/freshet/config"
	"github.com/freshet/freshet/crawl"
	"github.com/freshet/freshet/internal/command"
	"github.com/freshet/freshet/internal/progress"
	"github.com/freshet/freshet/internal/usage"
	"github.com/freshet/freshet/store"
)

type crawlCmd struct {
	URLs []string `arg:"" optional:"" name:"url" help:"Where to start."`

	Config string   `help:"Configuration file, as of serve: its web sites are crawled once with its settings. Flags override it, and URLs given here replace its sources." placeholder:"FILE.yaml" env:"FRESHET_CONFIG"`
	Set    []string `help:"Override a key of the configuration: --set crawl.max_revisit=24h (repeatable)." placeholder:"KEY=VALUE" sep:"none"`

	Seeds       string         `help:"File with one URL a line." placeholder:"FILE"`
	MaxPages    int64          `help:"Stop after so many fetched pages." placeholder:"N"`
	Depth       *int           `help:"Most links from a start." placeholder:"N"`
	Scope       string         `help:"Which links are followed: host (default), domain, prefix, any." enum:",host,domain,prefix,any" default:"" placeholder:"SCOPE"`
	Include     []string       `help:"Regular expression that a URL must match (repeatable)." sep:"none"`
	Exclude     []string       `help:"Regular expression of URLs that are left out (repeatable)." sep:"none"`
	Agents      *int           `help:"Hosts worked at the same time (default ${agents})." placeholder:"N"`
	Ordering    string         `help:"Which page of a host next: ${orderings} (default ${ordering})." placeholder:"NAME" aliases:"order"`
	Render      string         `help:"Build pages in a browser: off (default), auto, all." enum:",off,auto,all" default:"" placeholder:"MODE"`
	NoBox       bool           `name:"render-no-sandbox" help:"Start Chromium without its sandbox; as root nothing is rendered without this."`
	Tabs        *int           `name:"render-agents" help:"Pages built in the browser at the same time (default ${tabs})." placeholder:"N"`
	Chromium    string         `help:"Path of Chromium, or ws:// or http:// debugging address of a running one (default: the installed one)." placeholder:"PATH" env:"FRESHET_CHROMIUM"`
	Delay       *time.Duration `help:"Least time between requests to a host (default 1s; none for loopback hosts). 0 is no pause at hosts of the start URLs: for servers of your own. A Crawl-delay in robots.txt holds all the same." placeholder:"D"`
	Connections *int           `help:"Requests at once to a host of the start URLs whose delay is 0 (default ${connections})." placeholder:"N"`
	Budget      *float64       `help:"Requests a second in all." placeholder:"R"`
	Timeout     *time.Duration `help:"Longest time of one request (default ${timeout})." placeholder:"D"`
	Types       []string       `help:"Keep only documents of these types: html, pdf, text, image (those of pages, too: src, srcset), audio, video, json or a subtype." placeholder:"TYPE"`
	MaxBody     string         `help:"Longest body (default ${max_body})." placeholder:"SIZE"`
	MinFree     string         `help:"Disk space that is kept free (default ${min_free})." placeholder:"SIZE"`

	AllowPrivate bool   `help:"Contact loopback and private addresses of hosts in the scope of the start URLs, too."`
	Contact      string `help:"URL or mail address at which servers' operators reach you; needed for public servers." placeholder:"ADDRESS"`
	AgentName    string `help:"Product token of the robot (default ${agent_name})." placeholder:"NAME"`
	Resolver     string `help:"DNS server address:port." placeholder:"ADDR"`
	Proxy        string `help:"Forward proxy of all requests but those to loopback hosts (default: $$HTTP_PROXY, $$HTTPS_PROXY, $$NO_PROXY); none: no proxy." placeholder:"URL"`
	CACert       string `name:"cacert" help:"File with certificates (PEM) of authorities that are trusted besides the system's." placeholder:"FILE" type:"path"`
	UserAgent    string `help:"User-Agent sent to the origins of the start URLs (default: name and version, with the contact)." placeholder:"TEXT"`

	Header       []string `help:"\"Name: value\", sent to the origins (scheme, host, port) of the start URLs and to no other (repeatable)." placeholder:"HEADER" sep:"none"`
	User         string   `help:"NAME or NAME:PASSWORD for HTTP Basic, sent to the origins of the start URLs and to no other. Other users of this machine see arguments: give the password by --password-file or $$FRESHET_PASSWORD_<HOST>." placeholder:"NAME"`
	PasswordFile string   `help:"File with the password of --user." placeholder:"FILE" type:"path"`
	Hours        string   `help:"When hosts of the start URLs may be visited, such as \"mon-fri 20:00-06:00, sat, sun\"." placeholder:"TIMES"`
	Insecure     bool     `help:"Accept certificates that do not verify."`

	Database string         `help:"postgres://... shared with other processes." placeholder:"URL"`
	Node     string         `help:"Name among the processes that share the database (default: host name and identity of the data directory)." placeholder:"NAME"`
	Lease    *time.Duration `help:"With a database: after so long without a sign of life others take over this process's hosts (default ${lease})." placeholder:"D"`

	PriceCPU     float64 `name:"price-cpu" help:"Price of a CPU hour, for the cost of a million pages in the summary." placeholder:"P"`
	PriceMemory  float64 `help:"Price of a GB of memory for an hour." placeholder:"P"`
	PriceTraffic float64 `help:"Price of a GB received." placeholder:"P"`

	Warc    string `help:"Folder for WARC files (default: in the data directory)." placeholder:"DIR"`
	Packing string `name:"warc-compression" help:"How WARC files are packed: fast (default: gzip in one pass), gzip (smaller, three to five times the work), none." enum:",fast,gzip,none" default:"" placeholder:"KIND"`
	Out     string `help:"Write a line of JSON for each fetched page." placeholder:"FILE.jsonl"`
	Bucket  string `help:"s3://BUCKET/PREFIX?endpoint=HOST:PORT to which finished WARC files are sent." placeholder:"URL"`
	NoIndex bool   `help:"Do not index the pages."`

	CPUProfile string `name:"cpu-profile" help:"Write where the CPU time goes, for go tool pprof." placeholder:"FILE" hidden:"" type:"path"`
	MemProfile string `name:"mem-profile" help:"Write what is allocated, for go tool pprof." placeholder:"FILE" hidden:"" type:"path"`
}

// Help explains what a second run does.
func (crawlCmd) Help() string {
	return "One crawl, polite and complete: robots.txt, delays, conditional requests. A second run with the same data directory goes on where the first was interrupted, and asks known pages only whether they changed. Ctrl-C finishes the pages under way; a second Ctrl-C stops at once."
}

// Run crawls.
func (c *crawlCmd) Run(ctx context.Context, g *command.Globals) (err error) {
	keepFilesPrivate()
	cfg, err := c.loadConfig()
	if err != nil {
		return err
	}
	if err := config.CheckMode(c.Config, cfg); err != nil {
		fmt.Fprintln(g.Stderr, "freshet: warning:", err)
	}
	ordering, end, err := openOrdering(ctx, cfg.Crawl.Ordering, g.Logger())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	dir := cfg.Data
	if dir == "" || g.Data != "" {
		if dir, err = g.DataDir(); err != nil {
			return err
		}
	}
	profiled, err := command.Profile(c.CPUProfile, c.MemProfile)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, profiled()) }()
	node, err := app.Open(cfg, app.Options{Dir: dir, Log: g.Logger(), Ordering: ordering})
	if err != nil {
		return command.UsageError{Err: err}
	}
	report, err := c.runCrawl(ctx, g, node)
	if err != nil {
		return err
	}
	sum := summarizeCrawl(report, usage.Prices{CPU: c.PriceCPU, Memory: c.PriceMemory, Traffic: c.PriceTraffic})
	sum.printAdvice(g.Stderr)
	if g.JSON {
		return g.PrintJSON(sum)
	}
	sum.printSummary(g.Stdout)
	return nil
}

// runCrawl runs the node with its progress line and the file of pages. The first
// interrupt ends ctx, which drains; the second aborts.
func (c *crawlCmd) runCrawl(ctx context.Context, g *command.Globals, node *app.Node) (report *app.CrawlReport, err error) {
	o := app.CrawlOptions{MaxPages: c.MaxPages, NoIndex: c.NoIndex}
	if c.Out != "" {
		pages, err := newPageWriter(c.Out)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, pages.closePages()) }()
		o.OnPage = pages.writePageLine
	}
	if !g.Quiet {
		line := progress.New(g.Stderr)
		defer line.Done("")
		o.Progress = func(robot crawl.Status, st store.Stats) { showCrawl(line, c.MaxPages, &robot, &st) }
	}
	interrupts := make(chan os.Signal, 2)
	signal.Notify(interrupts, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(interrupts)
	over := make(chan struct{})
	defer close(over)
	o.Abort = secondInterrupt(interrupts, over)
	return node.Crawl(ctx, o)
}

// secondInterrupt returns a channel that is closed at the second interrupt, unless
// over is closed before.
func secondInterrupt(interrupts <-chan os.Signal, over <-chan struct{}) <-chan struct{} {
	second := make(chan struct{})
	go func() {
		for range 2 {
			select {
			case <-interrupts:
			case <-over:
				return
			}
		}
		close(second)
	}()
	return second
}

// showCrawl shows how far the crawl is.
func showCrawl(line *progress.Line, maxPages int64, s *crawl.Status, st *store.Stats) {
	var errs int64
	for _, n := range s.Errors {
		errs += n
	}
	line.Update(s.Pages, maxPages, fmt.Sprintf("%d pages  %.0f/s  queue %d  hosts %d  errors %d", s.Pages, s.Rate, st.New, st.Hosts, errs))
}
