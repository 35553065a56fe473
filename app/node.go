package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/freshet/freshet/config"
	"github.com/freshet/freshet/console"
	"github.com/freshet/freshet/crawl"
	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/freshness"
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
	config *config.Config
	// allowPrivate permits all sources private addresses.
	allowPrivate bool
	parts        *Parts
	member       *postgres.Member // nil without a database
	orders       func()           // of all nodes, from before there was a robot
	adopted      time.Time        // when changes of dead nodes were last looked for
	log          *slog.Logger
	client       *fetch.Client
	robot        *crawl.Robot
	ready        atomic.Pointer[crawl.Robot] // robot, for who may ask before there is one
	indexer      *feed.Indexer
	render       *render.Renderer // nil where rendering is off
	shares       *Shares          // nil without shares
	files        *share.Robot     // nil without shares
	server       *http.Server
	console      *console.Server
	challenges   http.Handler           // of ACME by HTTP-01; nil without
	proxies      []netip.Prefix         // console.trusted_proxies
	address      atomic.Pointer[string] // of the console, once it listens
	started      time.Time
	secure       bool // the console speaks TLS; set before it serves
	stop         context.CancelFunc

	scheduler   *freshness.Scheduler // nil where no budget is divided
	estimator   *freshness.Estimator
	importance  freshness.Importance
	clicks      freshness.Clicks
	rates       func(weburl.URL) (float64, bool)
	websub      *signal.WebSub   // nil without topics
	indexNow    *signal.IndexNow // nil unless configured
	keyRequests keyRequests

	sweep    chan struct{} // sources may be to be swept
	reading  sync.Mutex    // held while sources of other nodes are taken up
	saving   sync.Mutex    // held while the list of added sources is changed
	mu       sync.Mutex
	sources  []console.Source
	gone     map[string]bool // sources taken back that the robot was told of
	throttle *throttle.Controller
	lag      throttleLag
	lab      console.Lab
}

// Options are what a process may be told beside the configuration.
type Options struct {
	Dir string // data directory
	Log *slog.Logger
	// Dial replaces the robot's dialling (the demo web, tests).
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// AllowPrivate permits all sources private addresses, also those that are added
	// while the node runs.
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
	n := &Node{config: c, allowPrivate: o.AllowPrivate, log: o.Log, started: time.Now(), rates: o.Rates, lab: o.Lab, sweep: make(chan struct{}, 1)}
	if n.log == nil {
		n.log = slog.New(slog.DiscardHandler)
	}
	var err error
	if n.parts, err = Open(ctx, o.Dir, c, true); err != nil {
		return nil, err
	}
	for _, damage := range n.parts.Archive.Mended() {
		n.log.Warn("archive", "damage", damage)
	}
	if n.parts.IndexReset != nil {
		n.log.Warn("index", "err", n.parts.IndexReset)
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
	if n.client, err = NewClient(c, n.permitsHost, o.Dial); err != nil {
		return err
	}
	handover := &feed.Handover{}
	n.indexer, err = feed.New(ctx, feed.Config{
		Store: n.parts.Store, Read: n.parts.Body, Handover: handover, PDF: n.parts.PDF, Flush: n.parts.Archive.Flush, Engine: n.parts.Engine, Log: n.log, Keep: c.Retain.Changes, Space: n.parts.Space.Check,
		Services: &feed.Services{Dir: o.Dir}, OneDatabase: n.parts.Shared != nil,
	})
	if err != nil {
		return err
	}
	if err := n.clicks.Load(ctx, n.parts.Store, time.Now()); err != nil {
		return err
	}
	if n.websub, err = n.newWebSub(c); err != nil {
		return err
	}
	n.newThrottle(c)
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
	if n.render, err = NewRenderer(c, n.parts.Store, n.client); err != nil {
		return err
	}
	plan, err := n.newPlanner(c.Crawl)
	if err != nil {
		return err
	}
	rc := n.parts.CrawlConfig(c, n.client, n.render, n.log)
	rc.Scopes, rc.Ordering, rc.Plan, rc.Limit, rc.OnBody = scopes, o.Ordering, plan, AgentLimit(n.member, n.agentLimit), handover.Offer
	if n.parts.Shared != nil {
		rc.Sources = n.readSources
	}
	n.robot = crawl.New(rc)
	n.estimator.Evidence = n.robot
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
	if n.files, err = newShareRobot(ctx, c, n.shares, n.parts.PDF, n.log); err != nil {
		return err
	}
	for _, s := range wanted {
		spec, err := specOf(s)
		if err != nil {
			return err
		}
		o, err := sourceOptions(s)
		if err != nil {
			return err
		}
		if _, err := n.files.AddSourceWith(ctx, spec, o); err != nil {
			return fmt.Errorf("source: %w", err)
		}
		if s.HasLogin() && !s.Open && !c.Console.Private {
			n.log.Info("searching needs a login, because a share has one; open: true on the source lifts this", "source", weburl.Redact(s.URL))
		}
	}
	return nil
}

// addScope takes a source that is a web site into the scopes.
func (n *Node) addScope(scopes *crawl.Scopes, s config.Source) error {
	shown := s.URL
	if s.Share() {
		shown = weburl.Redact(shown)
	}
	n.sources = append(n.sources, console.Source{URL: shown, Scope: s.Scope, Depth: s.Depth})
	if s.Share() {
		return nil
	}
	u, err := weburl.Parse(s.URL)
	if err == nil && s.Weight > 0 {
		n.importance.SetWeight(u, s.Weight)
	}
	if err != nil {
		return fmt.Errorf("source: %w", err)
	}
	if err := n.checkContact(u); err != nil {
		return err
	}
	sc, err := ScopeOf(&s)
	if err != nil {
		return err
	}
	sc.Private = sc.Private || n.allowPrivate
	scopes.Add(sc)
	return nil
}

// permitsHost reports whether a source permits private addresses of a host and port.
func (n *Node) permitsHost(host, port string) bool {
	r := n.ready.Load()
	return r != nil && r.PermitsHost(host, port)
}

// permitsURL reports whether a source permits private addresses of a URL's host.
func (n *Node) permitsURL(u weburl.URL) bool {
	r := n.ready.Load()
	return r != nil && r.PermitsURL(u)
}

// checkContact refuses public servers while their operators could not reach us.
func (n *Node) checkContact(u weburl.URL) error {
	if crawl.PublicName(u.Hostname()) && n.config.Agent.Contact == "" {
		return fmt.Errorf("source %s is a public server: set agent.contact, so that its operator can reach you", u)
	}
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

// Address returns the URL of the console that serves a data directory, or an error
// that says that none does.
func Address(dir string) (string, error) {
	b, err := os.ReadFile(filepath.Join(dir, addressFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("no freshet serve runs on %s (no %s there): start one, or give --address", dir, addressFile)
	}
	if errors.Is(err, fs.ErrPermission) {
		return "", fmt.Errorf("%w: the data directory belongs to another user; give --address, and --token to change something", err)
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
	if err := writePrivate(path, n.URL()); err != nil {
		return errors.Join(err, l.Close(), n.close())
	}
	defer os.Remove(path)
	defer os.Remove(filepath.Join(n.parts.Dir, ownerFile))
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
	start("throttle", n.watchLag)
	start("freshness", n.estimator.Run)
	start("sources", n.sweepSources)
	if n.scheduler != nil {
		start("schedule", func(ctx context.Context) error { return n.scheduler.Run(ctx, n.robot.Wake) })
	}
	start("clicks", func(ctx context.Context) error { return n.clicks.Run(ctx, n.parts.Store, n.log) })
	if n.indexNow != nil {
		start("indexnow", n.indexNow.Run)
	}
	if n.websub != nil {
		start("websub", n.websub.Run)
	}
	if n.files != nil {
		start("share robot", n.files.Run)
	}
	start("console", func(context.Context) error { return n.serveConsole(l) })
	if n.challenges != nil && n.config.Console.ACME.HTTP != "" {
		start("acme", n.serveChallenges)
	}
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
	owner, err := newOwnerToken(n.parts.Dir)
	if err != nil {
		return fmt.Errorf("operator's token: %w", err)
	}
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
		Title: c.Title, Listen: l.Addr().String(), Password: c.Password, Tokens: c.Tokens, OwnerToken: owner, Header: c.Header, Operators: c.Operators, Proxies: c.Proxies, Hosts: append(slices.Clone(c.Hosts), c.ACME.Hosts...),
		Addresses: []string{c.PublicURL, n.config.Signals.Callback}, PublicURL: c.PublicURL,
		Private: n.config.SearchNeedsLogin(), Rate: c.Rate, Media: media, Clicked: n.Clicked, Lab: n.lab,
	}, finder, n, n, n.log, extra)
	if err != nil {
		return err
	}
	n.console = s
	if n.proxies, err = console.ParseNetworks(c.Proxies); err != nil {
		return err
	}
	n.server = consoleServer(s.Handler(), consoleTimeouts)
	if n.server.TLSConfig, n.challenges, err = consoleTLS(c, n.parts.Dir, n.log); err != nil {
		return err
	}
	n.secure = n.server.TLSConfig != nil
	n.server.BaseContext = func(net.Listener) context.Context { return ctx }
	n.server.ErrorLog = slog.NewLogLogger(n.log.Handler(), slog.LevelWarn)
	return nil
}

// Cached implements console.Cacher from the archive.
func (n *Node) Cached(ctx context.Context, address string) (*console.Copied, error) {
	u, err := weburl.Parse(address)
	if err != nil {
		return nil, fs.ErrNotExist
	}
	p, err := n.parts.Store.Page(ctx, u)
	if errors.Is(err, store.ErrNotFound) || (err == nil && (p.Body.IsZero() || !p.Held() || p.NoIndex || p.NoCopy || !p.Expires.IsZero() && time.Now().After(p.Expires))) {
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
