package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/freshet/freshet/app"
	"github.com/freshet/freshet/config"
	"github.com/freshet/freshet/crawl"
	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/index/feed"
	"github.com/freshet/freshet/internal/command"
	"github.com/freshet/freshet/internal/progress"
	"github.com/freshet/freshet/internal/usage"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/store/postgres"
	"github.com/freshet/freshet/weburl"
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
	Proxy        string `help:"Forward proxy URL." placeholder:"URL"`
	Insecure     bool   `help:"Accept certificates that do not verify."`

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

// crawlSummary is the JSON that a crawl ends with.
type crawlSummary struct {
	Pages         int64            `json:"pages"`
	URLsSeen      int64            `json:"urls_seen"`
	Hosts         int64            `json:"hosts"`
	Errors        map[string]int64 `json:"errors"`
	Bytes         int64            `json:"bytes"`
	Seconds       float64          `json:"seconds"`
	PagesSecond   float64          `json:"pages_per_second"`
	Unchanged     int64            `json:"unchanged"`
	Rendered      int64            `json:"rendered"`
	OnlyRendering int64            `json:"urls_only_by_rendering"`
	Waiting       int64            `json:"waiting_for_browser"`
	Skipped       map[string]int64 `json:"skipped"`
	robots        int64            // pages that robots.txt forbids
	Indexed       int64            `json:"indexed"`
	CPU           float64          `json:"cpu_seconds"` // of this process
	Million       float64          `json:"cost_per_million_pages,omitempty"`

	states map[store.State]int64 // URLs of the store
}

// Run crawls.
func (c *crawlCmd) Run(ctx context.Context, g *command.Globals) (err error) {
	keepFilesPrivate()
	cfg, err := c.load()
	if err != nil {
		return err
	}
	if err := config.CheckMode(c.Config, cfg); err != nil {
		fmt.Fprintln(g.Stderr, "freshet: warning:", err)
	}
	seeds, scopes, err := c.scopes(cfg)
	if err != nil {
		return err
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
	parts, err := app.Open(ctx, dir, cfg, !c.NoIndex)
	if err != nil {
		return err
	}
	for _, damage := range parts.Archive.Mended() {
		fmt.Fprintln(g.Stderr, "freshet: archive:", damage)
	}
	if parts.IndexReset != nil {
		fmt.Fprintln(g.Stderr, "freshet:", parts.IndexReset)
	}
	run := crawlRun{cmd: c, g: g, cfg: cfg, parts: parts, log: g.Logger(), ordering: ordering}
	sum, err := run.crawl(ctx, seeds, scopes)
	if err := errors.Join(err, parts.Close()); err != nil {
		return err
	}
	sum.advise(g.Stderr)
	if g.JSON {
		return g.PrintJSON(sum)
	}
	sum.print(g.Stdout)
	return nil
}

// seeds reads the arguments and the file of seeds; each bad URL is named.
func (c *crawlCmd) seeds() ([]string, error) {
	raw := slices.Clone(c.URLs)
	for _, s := range raw {
		if _, err := weburl.Parse(s); err != nil {
			return nil, command.Usagef("%q: %w (a web address is written with http:// or https://)", s, err)
		}
	}
	if c.Seeds == "" {
		return raw, nil
	}
	f, err := os.Open(c.Seeds)
	if err != nil {
		return nil, command.Usagef("seeds: %w", err)
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	for n := 1; sc.Scan(); n++ {
		line := strings.TrimSpace(sc.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if _, err := weburl.Parse(line); err != nil {
			return nil, command.Usagef("%s:%d: %q: %w", c.Seeds, n, line, err)
		}
		raw = append(raw, line)
	}
	if err := sc.Err(); err != nil {
		return nil, fmt.Errorf("read %s: %w", c.Seeds, err)
	}
	return raw, nil
}

// load reads the configuration and overrides it by the flags.
func (c *crawlCmd) load() (*config.Config, error) {
	environ := os.Environ()
	if c.Config == "" { // one crawl has no browser unless it is asked for
		environ = append([]string{"FRESHET_RENDER_MODE=off"}, environ...)
	}
	cfg, err := config.Load(c.Config, environ, c.Set)
	if err != nil {
		return nil, command.UsageError{Err: err}
	}
	urls, err := c.seeds()
	if err != nil {
		return nil, err
	}
	if len(urls) > 0 {
		cfg.Sources = nil
	}
	for _, u := range urls {
		cfg.Sources = append(cfg.Sources, config.Source{URL: u})
	}
	cfg.Sources = slices.DeleteFunc(cfg.Sources, func(s config.Source) bool { return s.Share() })
	if len(cfg.Sources) == 0 {
		return nil, command.Usagef("crawl: no URL to start from: give one, --seeds FILE, or --config FILE with a web site among its sources")
	}
	if err := c.override(cfg); err != nil {
		return nil, err
	}
	if err := cfg.Check(); err != nil {
		return nil, command.UsageError{Err: err}
	}
	return cfg, nil
}

// give sets a key by a flag that was given.
func give[T any](key, flag *T) {
	if flag != nil {
		*key = *flag
	}
}

// name sets a key by a flag that is not empty.
func name(key *string, flag string) {
	if flag != "" {
		*key = flag
	}
}

// override sets the keys of the configuration for which there are flags.
func (c *crawlCmd) override(cfg *config.Config) error {
	k := &cfg.Crawl
	give(&k.Agents, c.Agents)
	give(&k.Connections, c.Connections)
	give(&k.Budget, c.Budget)
	give(&k.Timeout, c.Timeout)
	give(&cfg.Lease, c.Lease)
	give(&cfg.Render.Agents, c.Tabs)
	name(&k.Ordering, c.Ordering)
	name(&k.Resolver, c.Resolver)
	name(&k.Proxy, c.Proxy)
	name(&cfg.Agent.Name, c.AgentName)
	name(&cfg.Agent.Contact, c.Contact)
	name(&cfg.Database, c.Database)
	name(&cfg.Node, c.Node)
	name(&cfg.Archive.Dir, c.Warc)
	name(&cfg.Archive.Bucket, c.Bucket)
	name(&cfg.Archive.Packing, c.Packing)
	name(&cfg.Render.Mode, c.Render)
	if c.Delay != nil {
		k.Delay, k.DelayPopular = c.Delay, *c.Delay // popular hosts, too
	}
	if len(c.Types) > 0 {
		k.Types = c.Types
	}
	k.Insecure = k.Insecure || c.Insecure
	cfg.Render.NoSandbox = cfg.Render.NoSandbox || c.NoBox
	if strings.Contains(c.Chromium, "://") {
		cfg.Render.Remote = c.Chromium
	} else {
		name(&cfg.Render.Chromium, c.Chromium)
	}
	for i := range cfg.Sources {
		c.overrideSource(&cfg.Sources[i])
	}
	for _, size := range []struct {
		flag, value string
		key         *config.Bytes
	}{{"--max-body", c.MaxBody, &k.MaxBody}, {"--min-free", c.MinFree, &cfg.MinFree}} {
		if size.value == "" {
			continue
		}
		n, err := config.ParseBytes(size.value)
		if err != nil {
			return command.Usagef("%s: %w", size.flag, err)
		}
		*size.key = n
	}
	return c.check(cfg)
}

// overrideSource sets the keys of a source for which there are flags.
func (c *crawlCmd) overrideSource(s *config.Source) {
	name(&s.Scope, c.Scope)
	give(&s.Depth, c.Depth)
	if len(c.Include) > 0 {
		s.Include = c.Include
	}
	if len(c.Exclude) > 0 {
		s.Exclude = c.Exclude
	}
	if c.Delay != nil {
		s.Delay = nil
	}
	if c.Connections != nil {
		s.Connections = 0
	}
	s.AllowPrivate = s.AllowPrivate || c.AllowPrivate
}

// check refuses numbers with which a single crawl cannot work.
func (c *crawlCmd) check(cfg *config.Config) error {
	switch {
	case cfg.Lease < time.Second:
		return command.Usagef("--lease %v: at least a second is needed", cfg.Lease)
	case cfg.Crawl.Agents < 1:
		return command.Usagef("--agents %d: at least one agent is needed", cfg.Crawl.Agents)
	case c.MaxPages < 0 || c.Depth != nil && *c.Depth < 0:
		return command.Usagef("--max-pages and --depth are not negative")
	case c.Delay != nil && *c.Delay < 0:
		return command.Usagef("--delay %v: a delay is not negative", *c.Delay)
	case cfg.Render.Agents < 1:
		return command.Usagef("--render-agents %d: at least one is needed; --render off renders nothing", cfg.Render.Agents)
	}
	return nil
}

// scopes returns the sources' URLs and scopes.
func (c *crawlCmd) scopes(cfg *config.Config) (seeds []weburl.URL, scopes crawl.Scopes, err error) {
	for i := range cfg.Sources {
		s := &cfg.Sources[i]
		sc, err := app.ScopeOf(s)
		if err != nil {
			return nil, scopes, command.UsageError{Err: err}
		}
		u, err := weburl.Parse(s.URL)
		if err != nil {
			return nil, scopes, command.UsageError{Err: err}
		}
		if crawl.PublicName(u.Hostname()) && cfg.Agent.Contact == "" && !c.AllowPrivate {
			return nil, scopes, command.Usagef("%s is a public server: give --contact URL or mail address, so that its operator can reach you", u)
		}
		scopes.Add(sc)
		seeds = append(seeds, u)
	}
	return seeds, scopes, nil
}

// crawlRun is one run of the command.
type crawlRun struct {
	ordering crawl.Ordering
	cmd      *crawlCmd
	g        *command.Globals
	cfg      *config.Config
	parts    *app.Parts
	log      *slog.Logger
	out      *pageWriter
	handover feed.Handover
}

func (r *crawlRun) crawl(ctx context.Context, seeds []weburl.URL, scopes crawl.Scopes) (*crawlSummary, error) {
	c := r.cmd
	var started atomic.Pointer[crawl.Robot]
	permit := func(host, port string) bool {
		robot := started.Load()
		return robot != nil && robot.PermitsHost(host, port)
	}
	client, err := app.NewClient(r.cfg, permit, nil)
	if err != nil {
		return nil, command.Usagef("%w", err)
	}
	defer client.Close()
	renderer, err := app.NewRenderer(r.cfg, r.parts.Store, client)
	if err != nil {
		return nil, command.Usagef("%w", err)
	}
	rc := r.parts.CrawlConfig(r.cfg, client, renderer, r.log)
	rc.Scopes, rc.Ordering, rc.Once, rc.MaxPages = scopes, r.ordering, true, c.MaxPages
	if r.parts.Engine != nil {
		r.handover.Wait = 250 * time.Millisecond
		rc.OnBody = r.handover.Offer
	}
	if rc.Plan, err = app.OncePlanner(r.cfg); err != nil {
		return nil, command.Usagef("crawl.policy: %w", err)
	}
	if err := app.RenderOff(&r.cfg.Render); r.cfg.Render.Mode != "off" && err != nil {
		fmt.Fprintf(r.g.Stderr, "freshet: --render %s: %v\n", r.cfg.Render.Mode, err)
	}
	if renderer != nil {
		defer renderer.Pool.Close()
		if err := renderer.Ready(); err != nil {
			fmt.Fprintf(r.g.Stderr, "freshet: %v: pages are taken as they are fetched, and wait for a browser\n", err)
		}
	}
	if c.Out != "" {
		if r.out, err = newPageWriter(c.Out); err != nil {
			return nil, err
		}
		rc.OnPage = r.out.write
	}
	if err := r.begin(ctx, seeds); err != nil {
		return nil, err
	}
	var orders atomic.Pointer[postgres.Orders]
	member, err := r.parts.Join(ctx, postgres.Membership{
		TTL: r.cfg.Lease, Wanted: func() int { return r.cfg.Crawl.Agents }, Log: r.log,
		Ordered: func(o postgres.Orders, stop bool) {
			if robot := started.Load(); robot != nil {
				obey(robot, o, stop)
			}
			orders.Store(&o)
		},
	}, func() []crawl.Agent {
		if robot := started.Load(); robot != nil {
			return robot.Status().Agents
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	rc.Limit = app.AgentLimit(member, nil)
	robot := crawl.New(rc)
	started.Store(robot)
	if o := orders.Load(); o != nil { // from before there was a robot: nobody had told this one to end
		obey(robot, *o, false)
	}
	if member != nil {
		defer r.stay(ctx, member, robot)()
	}
	start := time.Now()
	err = r.work(ctx, robot)
	if r.out != nil {
		err = errors.Join(err, r.out.close())
	}
	if err != nil {
		return nil, err
	}
	return r.summary(robot, start)
}

// obey does what all processes on the database are told.
func obey(robot *crawl.Robot, o postgres.Orders, stop bool) {
	switch {
	case stop:
		robot.Drain()
	case o.Paused:
		robot.Pause()
	default:
		robot.Resume()
	}
}

// stay keeps the process in the registry until the returned function is called.
// A process that may not be there stops working.
func (r *crawlRun) stay(ctx context.Context, m *postgres.Member, robot *crawl.Robot) func() {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // draining takes its time
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := m.Run(ctx); err != nil {
			r.log.Error("registry", "err", err)
			robot.Drain()
		}
	}()
	return func() { cancel(); <-ended }
}

// roundKey names the value that holds when the crawl under way began; it is
// empty between crawls.
const roundKey = "crawl-began"

// roundAge is how old an interrupted crawl may be to be gone on with.
const roundAge = 24 * time.Hour

// round returns when the crawl began that this run goes on with: now, unless
// the one before was interrupted.
func (r *crawlRun) round(ctx context.Context, now time.Time) (time.Time, error) {
	v, err := r.parts.Store.Get(ctx, roundKey)
	if err != nil {
		return now, err
	}
	if t, err := time.Parse(time.RFC3339Nano, string(v)); err == nil && now.Sub(t) < roundAge && !t.After(now) {
		return t, nil
	}
	return now, r.parts.Store.Put(ctx, roundKey, []byte(now.Format(time.RFC3339Nano)))
}

// begin queues the seeds, and makes pages due that this crawl has not visited
// yet: a crawl asked for now looks now.
func (r *crawlRun) begin(ctx context.Context, seeds []weburl.URL) error {
	now := time.Now()
	began, err := r.round(ctx, now)
	if err != nil {
		return err
	}
	var found []store.Found
	add := func() error {
		_, err := r.parts.Store.Add(ctx, found)
		found = found[:0]
		return err
	}
	err = r.parts.Store.Pages(ctx, func(p *store.Page) error {
		u, err := weburl.Parse(p.URL)
		if err != nil {
			return err
		}
		if p.Slot.Due.After(now) && p.History.Last.Before(began) {
			found = append(found, store.Found{URL: u, Due: now})
		}
		if len(found) >= 1000 {
			return add()
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, u := range seeds {
		u, _ = weburl.DefaultCanon.Apply(u)
		found = append(found, store.Found{URL: u, Order: 1})
	}
	return add()
}

// work runs robot, indexer and progress line until the robot is done. The
// first interrupt drains, the second stops.
func (r *crawlRun) work(ctx context.Context, robot *crawl.Robot) error {
	interrupts := make(chan os.Signal, 2)
	signal.Notify(interrupts, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(interrupts)
	// ctx ends at the first interrupt; the work goes on until drained.
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var side sync.WaitGroup
	ended := make(chan struct{})
	sendCtx, stopSending := context.WithCancel(work)
	defer stopSending()
	side.Go(func() { r.watch(ctx, robot, ended) })
	var listening sync.WaitGroup
	defer listening.Wait()
	all, over := context.WithCancel(context.WithoutCancel(ctx))
	defer over()
	listening.Go(func() { heed(all, interrupts, ctx.Done(), robot.Drain, stop) })
	var indexer *feed.Indexer
	if r.parts.Engine != nil {
		var err error
		indexer, err = feed.New(work, feed.Config{Store: r.parts.Store, Read: r.parts.Body, Handover: &r.handover, PDF: r.parts.PDF, Flush: r.parts.Archive.Flush, Engine: r.parts.Engine, Log: r.log, Space: r.parts.Space.Check, Services: &feed.Services{Dir: r.parts.Dir}, OneDatabase: r.parts.Shared != nil})
		if err != nil {
			close(ended)
			side.Wait()
			return err
		}
	}
	side.Go(func() { _ = r.parts.Send(sendCtx) }) // the last are sent when the parts are closed
	indexCtx, stopIndex := context.WithCancel(work)
	var ix sync.WaitGroup
	if indexer != nil {
		ix.Go(func() { _ = indexer.Run(indexCtx) }) // its errors come again from Finish
	}
	err := robot.Run(work)
	stopIndex()
	ix.Wait()
	stopSending()
	close(ended)
	side.Wait()
	if err == nil && indexer != nil && work.Err() == nil {
		line := r.progress()
		if err = indexer.Finish(work); work.Err() != nil && errors.Is(err, work.Err()) {
			err = nil // a second interrupt: the next run goes on with it
		}
		line.Done("")
	}
	if err == nil && robot.Finished() && work.Err() == nil {
		err = r.parts.Store.Put(work, roundKey, nil)
	}
	return err
}

func (r *crawlRun) progress() *progress.Line {
	if r.g.Quiet {
		return progress.New(nil)
	}
	return progress.New(r.g.Stderr)
}

// heed takes interrupts until ctx ends: the first drains, as the end of asked does,
// the second stops, the indexing of what is left, too.
func heed(ctx context.Context, interrupts <-chan os.Signal, asked <-chan struct{}, drain, stop func()) {
	for count := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-asked:
			asked = nil
			drain()
		case <-interrupts:
			if count++; count > 1 {
				stop()
			}
			drain()
		}
	}
}

// watch shows progress until the run has ended.
func (r *crawlRun) watch(ctx context.Context, robot *crawl.Robot, ended <-chan struct{}) {
	line := r.progress()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			line.Done("")
			return
		case <-tick.C:
			s := robot.Status()
			st, err := r.parts.Store.Stats(context.WithoutCancel(ctx))
			if err != nil {
				continue
			}
			var errs int64
			for _, n := range s.Errors {
				errs += n
			}
			line.Update(s.Pages, r.cmd.MaxPages, fmt.Sprintf("%d pages  %.0f/s  queue %d  hosts %d  errors %d", s.Pages, s.Rate, st.New, st.Hosts, errs))
		}
	}
}

func (r *crawlRun) summary(robot *crawl.Robot, start time.Time) (*crawlSummary, error) {
	st, err := r.parts.Store.Stats(context.Background())
	if err != nil {
		return nil, err
	}
	s := robot.Status()
	out := &crawlSummary{
		Pages: s.Pages, URLsSeen: st.URLs, Hosts: st.Hosts, Errors: s.Errors, Bytes: s.Bytes, Unchanged: s.Unchanged, Rendered: s.Rendered, OnlyRendering: s.Gained, Waiting: s.Waiting, Skipped: s.SkippedTexts(), robots: s.Skipped[store.ReasonRobotsRefused],
		Seconds: time.Since(start).Seconds(), states: st.States,
	}
	for _, t := range s.Traps {
		out.Skipped["trap: "+string(t.Kind)] += t.Count
	}
	out.PagesSecond = float64(s.Pages) / out.Seconds
	if r.parts.Engine != nil {
		ix, err := r.parts.Engine.Stats(context.Background())
		if err != nil {
			return nil, err
		}
		out.Indexed = int64(ix.Documents)
	}
	out.CPU = usage.CPUSeconds()
	c := r.cmd
	out.Million = usage.Prices{CPU: c.PriceCPU, Memory: c.PriceMemory, Traffic: c.PriceTraffic}.PerMillion(usage.Crawl{
		Pages: s.Pages, CPUSeconds: out.CPU, MemoryBytes: int64(usage.PeakMemory() * 1e6), Seconds: out.Seconds, Bytes: s.Bytes,
	})
	return out, nil
}

// remedies say what may be done where nothing could be fetched.
var remedies = []struct{ kind, say string }{
	{string(fetch.Private), "loopback and private addresses need --allow-private"},
	{string(fetch.DNS), "the name does not resolve: is it written right?"},
	{string(fetch.Refused), "nobody listens at that host and port"},
	{string(fetch.Unreached), "no way leads to that host"},
	{string(fetch.Timeout), "no answer in time"},
	{string(fetch.TLS), "no valid certificate"},
	{string(fetch.Protocol), "what answers there does not speak HTTP"},
}

// advise tells why a crawl has fetched nothing. It is no failure of the command:
// the report says what the hosts answered.
func (s *crawlSummary) advise(w io.Writer) {
	if s.Pages > 0 {
		return
	}
	for _, r := range remedies {
		if s.Errors[r.kind] > 0 {
			fmt.Fprintf(w, "freshet: nothing was fetched (%s): %s\n", r.kind, r.say)
		}
	}
	if len(s.Errors) == 0 && s.robots > 0 {
		fmt.Fprintln(w, "freshet: nothing was fetched: robots.txt forbids it (freshet robots tells by which line)")
		return
	}
	for _, r := range answers {
		if len(s.Errors) == 0 && s.states[r.state] > 0 {
			fmt.Fprintln(w, "freshet: nothing was fetched:", r.say)
			return
		}
	}
}

// answers say why pages that were asked for gave none.
var answers = []struct {
	state store.State
	say   string
}{
	{store.Gone, "the server says that there is no such page (404 or 410): is the address written right?"},
	{store.Blocked, "the server refuses it (401 or 403)"},
	{store.Redirect, "it redirects to where --scope does not reach"},
}

func (s *crawlSummary) print(w io.Writer) {
	fmt.Fprintf(w, "%d pages (%d unchanged) of %d URLs on %d hosts in %.1f s, %.1f pages/s, %d bytes\n", s.Pages, s.Unchanged, s.URLsSeen, s.Hosts, s.Seconds, s.PagesSecond, s.Bytes)
	if s.Million > 0 {
		fmt.Fprintf(w, "%.1f s of CPU; a million such pages cost %.4g\n", s.CPU, s.Million)
	}
	if s.Indexed > 0 {
		fmt.Fprintf(w, "%d documents in the index: freshet search WORDS\n", s.Indexed)
	}
	if s.Rendered+s.Waiting > 0 {
		fmt.Fprintf(w, "%d pages rendered, %d URLs found only by that; %d pages wait for a browser\n", s.Rendered, s.OnlyRendering, s.Waiting)
	}
	for _, l := range []struct {
		name string
		m    map[string]int64
	}{{"errors", s.Errors}, {"left out", s.Skipped}} {
		keys := make([]string, 0, len(l.m))
		for k := range l.m {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			fmt.Fprintf(w, "%s: %s %d\n", l.name, k, l.m[k])
		}
	}
}

// pageWriter writes --out.
type pageWriter struct {
	mu  sync.Mutex
	f   *os.File
	buf *bufio.Writer
	enc *json.Encoder
	err error
}

func newPageWriter(path string) (*pageWriter, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("--out: %w", err)
	}
	w := &pageWriter{f: f, buf: bufio.NewWriter(f)}
	w.enc = json.NewEncoder(w.buf)
	w.enc.SetEscapeHTML(false)
	return w, nil
}

// pageLine is one line of --out.
type pageLine struct {
	URL         string    `json:"url"`
	FinalURL    string    `json:"final_url"`
	Status      int       `json:"status"`
	ContentType string    `json:"content_type"`
	Bytes       int64     `json:"bytes"`
	Title       string    `json:"title"`
	Lang        string    `json:"lang"`
	Depth       int       `json:"depth"`
	From        string    `json:"from"`
	FetchedAt   time.Time `json:"fetched_at"`
	Rendered    bool      `json:"rendered"`
	Digest      string    `json:"digest"`
	Links       []string  `json:"links"`
}

func (w *pageWriter) write(r *crawl.Result) {
	p := &r.Page
	l := pageLine{
		URL: p.URL, FinalURL: r.FinalURL, Status: p.Status, ContentType: p.Type, Bytes: p.Bytes, Title: p.Title, Lang: p.Lang, Depth: p.Depth,
		From: p.From, FetchedAt: r.Fetched.UTC(), Rendered: p.Rendered, Digest: fmt.Sprintf("%x", p.Digest), Links: []string{},
	}
	for _, link := range r.Links {
		l.Links = append(l.Links, link.URL.String())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.enc.Encode(&l); err != nil && w.err == nil {
		w.err = err
	}
}

func (w *pageWriter) close() error {
	err := errors.Join(w.err, w.buf.Flush(), w.f.Close())
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	return nil
}

// crawlVars adds the defaults of the configuration to the variables of help texts.
func crawlVars(vars kong.Vars) {
	d := config.Default()
	for key, value := range map[string]any{
		"agents": d.Crawl.Agents, "ordering": d.Crawl.Ordering, "tabs": d.Render.Agents, "connections": d.Crawl.Connections, "timeout": d.Crawl.Timeout,
		"max_body": d.Crawl.MaxBody, "min_free": d.MinFree, "agent_name": d.Agent.Name, "lease": d.Lease,
	} {
		vars[key] = fmt.Sprint(value)
	}
}
