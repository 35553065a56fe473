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

	"github.com/freshet/freshet/config"
	"github.com/freshet/freshet/crawl"
	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/index/feed"
	"github.com/freshet/freshet/lab/bench"
	"github.com/freshet/freshet/node"
	"github.com/freshet/freshet/progress"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/store/postgres"
	"github.com/freshet/freshet/weburl"
)

type crawlCmd struct {
	URLs []string `arg:"" optional:"" name:"url" help:"Where to start."`

	Seeds    string        `help:"File with one URL a line." placeholder:"FILE"`
	MaxPages int64         `help:"Stop after so many fetched pages." placeholder:"N"`
	Depth    int           `help:"Most links from a start." placeholder:"N"`
	Scope    string        `help:"Which links are followed: host, domain, prefix, any." enum:"host,domain,prefix,any" default:"host"`
	Include  []string      `help:"Regular expression that a URL must match (repeatable)." sep:"none"`
	Exclude  []string      `help:"Regular expression of URLs that are left out (repeatable)." sep:"none"`
	Agents   int           `help:"Hosts worked at the same time." default:"16"`
	Ordering string        `help:"Which page of a host next: ${orderings}." default:"breadth-first" aliases:"order"`
	Render   string        `help:"Build pages in a browser: off, auto, all." enum:"off,auto,all" default:"off"`
	Tabs     int           `name:"render-agents" help:"Pages built in the browser at the same time." default:"2"`
	Chromium string        `help:"Path of Chromium, or ws:// or http:// debugging address of a running one (default: the installed one)." placeholder:"PATH" env:"FRESHET_CHROMIUM"`
	Delay    time.Duration `help:"Least time between requests to a host (default 1s; loopback 0)." default:"-1ns" hidden:""`
	Budget   float64       `help:"Requests a second in all." placeholder:"R"`
	Timeout  time.Duration `help:"Longest time of one request." default:"30s"`
	Types    []string      `help:"Keep only documents of these types: html, pdf, text, image (those of pages, too: src, srcset), audio, video, json or a subtype." placeholder:"TYPE"`
	MaxBody  string        `help:"Longest body." default:"16MB"`
	MinFree  string        `help:"Disk space that is kept free." default:"256MB" env:"FRESHET_MIN_FREE"`

	AllowPrivate bool   `help:"Contact loopback and private addresses, too."`
	Contact      string `help:"URL or mail address at which servers' operators reach you; needed for public servers." env:"FRESHET_AGENT_CONTACT"`
	AgentName    string `help:"Product token of the robot." default:"freshet" env:"FRESHET_AGENT_NAME"`
	Resolver     string `help:"DNS server address:port." placeholder:"ADDR"`
	Proxy        string `help:"Forward proxy URL." placeholder:"URL"`
	Insecure     bool   `help:"Accept certificates that do not verify."`

	Database string        `help:"postgres://... shared with other processes." placeholder:"URL" env:"FRESHET_DATABASE"`
	Node     string        `help:"Name among the processes that share the database (default: host name and identity of the data directory)." placeholder:"NAME"`
	Lease    time.Duration `help:"With a database: after so long without a sign of life others take over this process's hosts." default:"30s"`

	PriceCPU     float64 `name:"price-cpu" help:"Price of a CPU hour, for the cost of a million pages in the summary." placeholder:"P"`
	PriceMemory  float64 `help:"Price of a GB of memory for an hour." placeholder:"P"`
	PriceTraffic float64 `help:"Price of a GB received." placeholder:"P"`

	Warc    string `help:"Folder for WARC files (default: in the data directory)." placeholder:"DIR"`
	Packing string `name:"warc-compression" help:"How WARC files are packed: fast (gzip in one pass), gzip (smaller, three to five times the work), none." enum:"fast,gzip,none" default:"fast"`
	Out     string `help:"Write a line of JSON for each fetched page." placeholder:"FILE.jsonl"`
	Bucket  string `help:"s3://BUCKET/PREFIX?endpoint=HOST:PORT to which finished WARC files are sent." placeholder:"URL" env:"FRESHET_ARCHIVE_BUCKET"`
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
	Indexed       int64            `json:"indexed"`
	CPU           float64          `json:"cpu_seconds"` // of this process
	Million       float64          `json:"cost_per_million_pages,omitempty"`

	states map[store.State]int64 // URLs of the store
}

// Run crawls.
func (c *crawlCmd) Run(ctx context.Context, g *globals) (err error) {
	seeds, err := c.seeds(g)
	if err != nil {
		return err
	}
	cfg, scopes, err := c.settings(g, seeds)
	if err != nil {
		return err
	}
	ordering, end, err := openOrdering(ctx, c.Ordering, g.logger())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	dir, err := g.dataDir()
	if err != nil {
		return err
	}
	profiled, err := profile(c.CPUProfile, c.MemProfile)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, profiled()) }()
	parts, err := node.Open(ctx, dir, cfg, !c.NoIndex, version)
	if err != nil {
		return err
	}
	for _, damage := range parts.Archive.Mended() {
		fmt.Fprintln(g.stderr, "freshet: archive:", damage)
	}
	run := crawlRun{cmd: c, g: g, cfg: cfg, parts: parts, log: g.logger(), ordering: ordering}
	sum, err := run.crawl(ctx, seeds, scopes)
	if err := errors.Join(err, parts.Close()); err != nil {
		return err
	}
	sum.advise(g.stderr)
	if g.JSON {
		return g.printJSON(sum)
	}
	sum.print(g.stdout)
	return nil
}

// seeds reads the arguments and the file of seeds; each bad URL is named.
func (c *crawlCmd) seeds(g *globals) ([]weburl.URL, error) {
	raw := slices.Clone(c.URLs)
	if c.Seeds != "" {
		f, err := os.Open(c.Seeds)
		if err != nil {
			return nil, usagef("seeds: %w", err)
		}
		defer f.Close()
		sc := bufio.NewScanner(f)
		for n := 1; sc.Scan(); n++ {
			line := strings.TrimSpace(sc.Text())
			if line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			if _, err := weburl.Parse(line); err != nil {
				return nil, usagef("%s:%d: %q: %w", c.Seeds, n, line, err)
			}
			raw = append(raw, line)
		}
		if err := sc.Err(); err != nil {
			return nil, fmt.Errorf("read %s: %w", c.Seeds, err)
		}
	}
	if len(raw) == 0 {
		return nil, usagef("crawl: no URL to start from: give one, or --seeds FILE")
	}
	var out []weburl.URL
	for _, s := range raw {
		u, err := weburl.Parse(s)
		if err != nil {
			return nil, usagef("%q: %w (a web address is written with http:// or https://)", s, err)
		}
		if crawl.PublicName(u.Hostname()) && c.Contact == "" && !c.AllowPrivate {
			return nil, usagef("%s is a public server: give --contact URL or mail address, so that its operator can reach you", u)
		}
		out = append(out, u)
	}
	return out, nil
}

// settings makes the configuration that a crawl shares with serve.
func (c *crawlCmd) settings(g *globals, seeds []weburl.URL) (*config.Config, crawl.Scopes, error) {
	cfg := config.Default()
	cfg.Agent = config.Agent{Name: c.AgentName, Contact: c.Contact}
	cfg.Archive.Dir = c.Warc
	cfg.Archive.Bucket = c.Bucket
	cfg.Archive.Packing = c.Packing
	cfg.Database, cfg.Node, cfg.Lease, cfg.Crawl.Agents = c.Database, c.Node, c.Lease, c.Agents
	size, err := config.ParseBytes(c.MaxBody)
	if err != nil {
		return nil, crawl.Scopes{}, usagef("--max-body: %w", err)
	}
	cfg.Crawl.MaxBody, cfg.Crawl.Timeout = size, c.Timeout
	if cfg.MinFree, err = config.ParseBytes(c.MinFree); err != nil {
		return nil, crawl.Scopes{}, usagef("--min-free: %w", err)
	}
	if c.Lease < time.Second {
		return nil, crawl.Scopes{}, usagef("--lease %v: at least a second is needed", c.Lease)
	}
	if c.Agents < 1 {
		return nil, crawl.Scopes{}, usagef("--agents %d: at least one agent is needed", c.Agents)
	}
	if c.MaxPages < 0 || c.Depth < 0 {
		return nil, crawl.Scopes{}, usagef("--max-pages and --depth are not negative")
	}
	var scopes crawl.Scopes
	for _, u := range seeds {
		s, err := crawl.NewScope(u, c.Scope, c.Depth, c.Include, c.Exclude)
		if err != nil {
			return nil, scopes, usagef("%w", err)
		}
		scopes.Add(s)
	}
	if c.Tabs < 1 {
		return nil, scopes, usagef("--render-agents %d: at least one is needed; --render off renders nothing", c.Tabs)
	}
	cfg.Render.Mode, cfg.Render.Agents = c.Render, c.Tabs
	if strings.Contains(c.Chromium, "://") {
		cfg.Render.Remote = c.Chromium
	} else {
		cfg.Render.Chromium = c.Chromium
	}
	return cfg, scopes, nil
}

// crawlRun is one run of the command.
type crawlRun struct {
	ordering crawl.Ordering
	cmd      *crawlCmd
	g        *globals
	cfg      *config.Config
	parts    *node.Parts
	log      *slog.Logger
	out      *pageWriter
}

func (r *crawlRun) crawl(ctx context.Context, seeds []weburl.URL, scopes crawl.Scopes) (*crawlSummary, error) {
	c := r.cmd
	r.cfg.Crawl.Proxy = c.Proxy
	client, err := fetch.New(fetch.Config{
		UserAgent: node.UserAgent(r.cfg), Timeout: c.Timeout, MaxBody: int64(r.cfg.Crawl.MaxBody), AllowPrivate: c.AllowPrivate,
		Resolver: c.Resolver, Proxy: c.Proxy, Insecure: c.Insecure,
	})
	if err != nil {
		return nil, usagef("%w", err)
	}
	defer client.Close()
	rc := crawl.Config{
		Store: r.parts.Store, Fetch: client, Archive: r.parts.Archive, Log: r.log, Node: r.parts.Name(""), Token: c.AgentName, Agents: c.Agents, Scopes: scopes,
		Canon: weburl.DefaultCanon, Types: c.Types, Ordering: r.ordering, Once: true, MaxPages: c.MaxPages, Budget: c.Budget,
		Lease: c.Lease, Delay: max(c.Delay, 0), DelayGiven: c.Delay >= 0, Space: r.parts.Space.Check,
	}
	renderer, err := node.NewRenderer(r.cfg, r.parts.Store, client, c.Insecure)
	if err != nil {
		return nil, usagef("%w", err)
	}
	if renderer != nil {
		defer renderer.Pool.Close()
		if err := renderer.Ready(); err != nil {
			fmt.Fprintf(r.g.stderr, "freshet: %v: pages are taken as they are fetched, and wait for a browser\n", err)
		}
	}
	rc.Render = node.Hook(renderer)
	if c.Out != "" {
		if r.out, err = newPageWriter(c.Out); err != nil {
			return nil, err
		}
		rc.OnPage = r.out.write
	}
	if err := r.begin(ctx, seeds); err != nil {
		return nil, err
	}
	var started atomic.Pointer[crawl.Robot]
	var orders atomic.Pointer[postgres.Orders]
	member, err := r.parts.Join(ctx, postgres.Membership{
		TTL: c.Lease, Wanted: func() int { return c.Agents }, Log: r.log,
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
	rc.Limit = node.AgentLimit(member, nil)
	r.parts.Share(&rc)
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
		indexer, err = feed.New(work, feed.Config{Store: r.parts.Store, Read: r.parts.Body, Flush: r.parts.Archive.Flush, Engine: r.parts.Engine, Log: r.log, Space: r.parts.Space.Check, Services: &feed.Services{Dir: r.parts.Dir}})
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
	return progress.New(r.g.stderr)
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
		Pages: s.Pages, URLsSeen: st.URLs, Hosts: st.Hosts, Errors: s.Errors, Bytes: s.Bytes, Unchanged: s.Unchanged, Rendered: s.Rendered, OnlyRendering: s.Gained, Waiting: s.Waiting, Skipped: s.Skipped,
		Seconds: time.Since(start).Seconds(), states: st.States,
	}
	for _, t := range s.Traps {
		out.Skipped["trap: "+t.Kind] += t.Count
	}
	out.PagesSecond = float64(s.Pages) / out.Seconds
	if r.parts.Engine != nil {
		ix, err := r.parts.Engine.Stats(context.Background())
		if err != nil {
			return nil, err
		}
		out.Indexed = int64(ix.Documents)
	}
	out.CPU = cpu()
	c := r.cmd
	out.Million = bench.Prices{CPU: c.PriceCPU, Memory: c.PriceMemory, Traffic: c.PriceTraffic}.Million(&bench.AgentsRow{
		Visited: s.Pages, CPU: out.CPU, Memory: int64(peak() * 1e6), Seconds: out.Seconds, Bytes: s.Bytes,
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
	if len(s.Errors) == 0 && s.Skipped["robots.txt"] > 0 {
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
