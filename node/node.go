package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/freshet/freshet/config"
	"github.com/freshet/freshet/console"
	"github.com/freshet/freshet/crawl"
	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/index/feed"
	"github.com/freshet/freshet/render"
	"github.com/freshet/freshet/share"
	"github.com/freshet/freshet/signal"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/store/postgres"
	"github.com/freshet/freshet/throttle"
	"github.com/freshet/freshet/weburl"
)

// Node is one running process: robot, indexer and console over its parts.
type Node struct {
	config  *config.Config
	parts   *Parts
	member  *postgres.Member // nil without a database
	orders  func()           // of all nodes, from before there was a robot
	adopted time.Time        // when changes of dead nodes were last looked for
	log     *slog.Logger
	client  *fetch.Client
	robot   *crawl.Robot
	ready   atomic.Pointer[crawl.Robot] // robot, for who may ask before there is one
	indexer *feed.Indexer
	render  *render.Renderer // nil where rendering is off
	shares  *Shares          // nil without shares
	files   *share.Robot     // nil without shares
	server  *http.Server
	address atomic.Pointer[string] // of the console, once it listens
	started time.Time
	stop    context.CancelFunc

	plan     *planner // nil where no budget is divided
	rates    func(weburl.URL) (float64, bool)
	interest interest
	websub   *signal.WebSub // nil without topics
	weights  []weighted     // of sources; not changed after the start

	sweep    chan struct{} // sources may be to be swept
	reading  sync.Mutex    // held while sources of other nodes are taken up
	saving   sync.Mutex    // held while the list of added sources is changed
	mu       sync.Mutex
	sources  []console.Source
	gone     map[string]bool // sources taken back that the robot was told of
	fresh    freshness
	throttle *throttle.Controller
	lab      console.Lab
}

// Options are what a process may be told beside the configuration.
type Options struct {
	Version string
	Dir     string // data directory
	Log     *slog.Logger
	// Dial replaces the robot's dialling (the demo web, tests).
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// AllowPrivate lets the robot contact loopback and private addresses.
	AllowPrivate bool
	// Ordering replaces the one that the configuration names (scripts are no
	// business of this package).
	Ordering crawl.Ordering
	// Lab is shown in the console; nil is not.
	Lab console.Lab
	// Rates, if not nil, knows the change rates of pages, in changes a second: for
	// experiments that leave out what must be learned.
	Rates func(u weburl.URL) (rate float64, ok bool)
}

// New opens the parts and assembles the node; Run starts it.
func New(ctx context.Context, c *config.Config, o Options) (*Node, error) {
	for _, s := range c.Sources {
		o.AllowPrivate = o.AllowPrivate || s.AllowPrivate
	}
	n := &Node{config: c, log: o.Log, started: time.Now(), rates: o.Rates, lab: o.Lab, sweep: make(chan struct{}, 1)}
	if n.log == nil {
		n.log = slog.New(slog.DiscardHandler)
	}
	var err error
	if n.parts, err = Open(ctx, o.Dir, c, true, o.Version); err != nil {
		return nil, err
	}
	for _, damage := range n.parts.Archive.Mended() {
		n.log.Warn("archive", "damage", damage)
	}
	if err := n.assemble(ctx, c, o); err != nil {
		return nil, errors.Join(err, n.close())
	}
	return n, nil
}

// close closes what keeps data.
func (n *Node) close() error {
	var err error
	if n.render != nil {
		n.render.Pool.Close()
	}
	if n.shares != nil {
		err = n.shares.Store.Close()
	}
	return errors.Join(err, n.parts.Close())
}

func (n *Node) assemble(ctx context.Context, c *config.Config, o Options) (err error) {
	n.client, err = fetch.New(fetch.Config{
		UserAgent: UserAgent(c), Timeout: c.Crawl.Timeout, MaxBody: int64(c.Crawl.MaxBody), AllowPrivate: o.AllowPrivate,
		Resolver: c.Crawl.Resolver, Proxy: c.Crawl.Proxy, Dial: o.Dial,
	})
	if err != nil {
		return err
	}
	n.indexer, err = feed.New(ctx, feed.Config{
		Store: n.parts.Store, Read: n.parts.Body, Flush: n.parts.Archive.Flush, Engine: n.parts.Engine, Log: n.log, Keep: c.Retain.Changes, Space: n.parts.Space.Check,
		Services: &feed.Services{Dir: o.Dir},
	})
	if err != nil {
		return err
	}
	if err := n.interest.load(ctx, n.parts.Store); err != nil {
		return err
	}
	if n.websub, err = n.newWebSub(c); err != nil {
		return err
	}
	if err := n.newThrottle(c); err != nil {
		return err
	}
	if err := checkPolicy(c.Crawl); err != nil {
		return err
	}
	if err := n.join(ctx, c); err != nil {
		return err
	}
	if o.Ordering == nil {
		ordering, ok := crawl.Orderings()[c.Crawl.Ordering]
		if !ok {
			return fmt.Errorf("crawl.ordering: unknown ordering %q", c.Crawl.Ordering)
		}
		o.Ordering = ordering()
	}
	var scopes crawl.Scopes
	for _, s := range c.Sources {
		if err := n.addScope(&scopes, s); err != nil {
			return err
		}
	}
	if n.render, err = NewRenderer(c, n.parts.Store, n.client, false); err != nil {
		return err
	}
	plan, planner, err := newPlanner(n, c.Crawl)
	if err != nil {
		return err
	}
	n.plan = planner
	rc := crawl.Config{
		Store: n.parts.Store, Fetch: n.client, Archive: n.parts.Archive, Log: n.log, Node: n.parts.Name(c.Node), Token: c.Agent.Name, Agents: c.Crawl.Agents,
		Scopes: scopes, Types: c.Crawl.Types, Canon: weburl.DefaultCanon, Ordering: o.Ordering, Delay: c.Crawl.Delay, DelayPopular: c.Crawl.DelayPopular, MinRevisit: c.Crawl.MinRevisit, MaxRevisit: c.Crawl.MaxRevisit,
		Budget: c.Crawl.Budget, BudgetBytes: float64(c.Crawl.BudgetBytes) / 86400, Plan: plan, Limit: AgentLimit(n.member, n.limit()), Space: n.parts.Space.Check,
		Lease: c.Lease, Render: Hook(n.render), Traps: crawl.Traps(c.Crawl.Traps),
	}
	n.parts.Share(&rc)
	if n.parts.Shared != nil {
		rc.Sources = n.readSources
	}
	n.robot = crawl.New(rc)
	n.ready.Store(n.robot)
	if err := n.readSources(ctx); err != nil {
		return fmt.Errorf("sources added while running: %w", err)
	}
	if err := n.addSeeds(ctx); err != nil {
		return err
	}
	return n.addShares(ctx, c, o.Dir)
}

// addShares opens the shares and gives them to their robot.
func (n *Node) addShares(ctx context.Context, c *config.Config, dir string) (err error) {
	var wanted []config.Source
	for _, s := range c.Sources {
		if s.Share() {
			wanted = append(wanted, s)
		}
	}
	if n.shares, err = OpenShares(ctx, dir, len(wanted) > 0); err != nil || n.shares == nil {
		return err
	}
	if n.files, err = newShareRobot(ctx, c, n.shares, n.log); err != nil {
		return err
	}
	for _, s := range wanted {
		spec, err := specOf(s)
		if err != nil {
			return err
		}
		if _, err := n.files.AddSource(ctx, spec); err != nil {
			return fmt.Errorf("source: %w", err)
		}
	}
	return nil
}

// addScope takes a source that is a web site into the scopes.
func (n *Node) addScope(scopes *crawl.Scopes, s config.Source) error {
	n.sources = append(n.sources, console.Source{URL: s.URL, Scope: s.Scope, Depth: s.Depth})
	if s.Share() {
		return nil
	}
	u, err := weburl.Parse(s.URL)
	if err == nil && s.Weight > 0 {
		n.weights = append(n.weights, weighted{u.Host(), u.String(), s.Weight})
	}
	if err != nil {
		return fmt.Errorf("source: %w", err)
	}
	if crawl.PublicName(u.Hostname()) && n.config.Agent.Contact == "" {
		return fmt.Errorf("source %s is a public server: set agent.contact, so that its operator can reach you", s.URL)
	}
	sc, err := crawl.NewScope(u, s.Scope, s.Depth, s.Include, s.Exclude)
	if err != nil {
		return fmt.Errorf("source: %w", err)
	}
	scopes.Add(sc)
	return nil
}

func (n *Node) addSeeds(ctx context.Context) error {
	var seeds []store.Found
	for _, s := range n.config.Sources {
		if u, err := weburl.Parse(s.URL); err == nil {
			seeds = append(seeds, store.Found{URL: u, Order: 1})
		}
	}
	_, err := n.parts.Store.Add(ctx, seeds)
	return err
}

// addressFile tells other commands where the console listens.
const addressFile = "serve.addr"

// Address returns the address of the process that serves a data directory, or
// an error that says that none does.
func Address(dir string) (string, error) {
	b, err := os.ReadFile(filepath.Join(dir, addressFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("no freshet serve runs on %s (no %s there): start one, or give --address", dir, addressFile)
	}
	return string(b), err
}

// Run serves until ctx ends or Stop is called, then drains. ready is called
// with the address once the console answers.
func (n *Node) Run(ctx context.Context, ready func(address string)) error {
	ctx, n.stop = context.WithCancel(ctx)
	defer n.stop()
	l, err := net.Listen("tcp", n.config.Console.Listen)
	if err != nil {
		return errors.Join(fmt.Errorf("console: %w (console.listen chooses another address)", err), n.close())
	}
	address := l.Addr().String()
	n.address.Store(&address)
	if err := n.listen(ctx, l); err != nil {
		return errors.Join(err, l.Close(), n.close())
	}
	path := filepath.Join(n.parts.Dir, addressFile)
	if err := os.WriteFile(path, []byte(address), 0o600); err != nil {
		return errors.Join(err, l.Close(), n.close())
	}
	defer os.Remove(path)
	var parts sync.WaitGroup
	var failing sync.Mutex
	var failed []error
	start := func(name string, f func(context.Context) error) {
		parts.Go(func() {
			err := f(ctx)
			switch {
			case err == nil:
			case ctx.Err() == nil:
				failing.Lock()
				failed = append(failed, fmt.Errorf("%s: %w", name, err))
				failing.Unlock()
				n.stop()
			case !errors.Is(err, ctx.Err()):
				n.log.Error(name+": at the end", "err", err)
			}
		})
	}
	start("robot", n.robot.Run)
	start("indexer", n.indexer.Run)
	start("bodies", n.parts.Send)
	if n.member != nil {
		if n.orders != nil {
			n.orders()
		}
		start("registry", n.member.Run)
	}
	start("freshness", n.watchFreshness)
	start("sources", n.sweepSources)
	if n.plan != nil {
		start("schedule", n.plan.run)
	}
	start("clicks", n.watchInterest)
	if n.websub != nil {
		start("websub", n.websub.Run)
	}
	if n.files != nil {
		start("share robot", n.files.Run)
	}
	start("console", func(context.Context) error {
		if err := n.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	if ready != nil {
		ready(address)
	}
	<-ctx.Done()
	down, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := n.server.Shutdown(down); err != nil { // event streams do not end by themselves
		_ = n.server.Close()
	}
	parts.Wait()
	n.client.Close()
	return errors.Join(append(failed, n.close())...)
}

// listen makes the console's server.
func (n *Node) listen(ctx context.Context, l net.Listener) error {
	c := n.config.Console
	finder := &Finder{Engine: n.parts.Engine, Ranking: RankingOf(n.config), HideOffline: n.config.Share.Offline == "hide", Play: c.Media}
	if n.shares != nil {
		finder.Files = n.shares.Index
	}
	extra := map[string]http.Handler{"GET /metrics": promhttp.HandlerFor(n.metrics(), promhttp.HandlerOpts{})}
	maps.Copy(extra, n.receivers())
	var media http.HandlerFunc
	if c.Media && n.shares != nil {
		media = n.play
	}
	s, err := console.New(console.Config{
		Title: c.Title, Listen: l.Addr().String(), Password: c.Password, Tokens: c.Tokens, Header: c.Header, Proxies: c.Proxies, Private: c.Private, Rate: c.Rate, Media: media, Clicked: n.Clicked, Lab: n.lab,
	}, finder, n, n, n.log, extra)
	if err != nil {
		return err
	}
	n.server = &http.Server{
		Handler: s.Handler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx }, ErrorLog: slog.NewLogLogger(n.log.Handler(), slog.LevelWarn),
	}
	return nil
}

// Cached implements console.Cacher from the archive.
func (n *Node) Cached(ctx context.Context, address string) (*console.Copied, error) {
	u, err := weburl.Parse(address)
	if err != nil {
		return nil, fs.ErrNotExist
	}
	p, err := n.parts.Store.Page(ctx, u)
	if errors.Is(err, store.ErrNotFound) || (err == nil && (p.Body.IsZero() || !p.Held())) {
		return nil, fs.ErrNotExist
	}
	if err != nil {
		return nil, err
	}
	if err := n.parts.Archive.Flush(); err != nil {
		return nil, err
	}
	x, err := n.parts.Body(p.Body)
	if errors.Is(err, feed.ErrElsewhere) {
		return nil, fmt.Errorf("the copy is in the archive of another node: %w", fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	return &console.Copied{URL: p.URL, ContentType: x.Header.Get("Content-Type"), Body: x.Body, Fetched: x.Time}, nil
}

func hostOf(address string) string {
	u, err := weburl.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host()
}
