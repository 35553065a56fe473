package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/freshet/freshet/cluster"
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
	"github.com/freshet/freshet/throttle"
	"github.com/freshet/freshet/weburl"
)

// Node is one process of Freshet, composed from a configuration by Open. Crawl,
// Serve or Scan runs it, once, and closes what it opened.
type Node struct {
	config  *config.Config
	options Options
	log     *slog.Logger
	started time.Time

	client *fetch.Client
	scopes crawl.Scopes  // of the sources that are web sites
	seeds  []store.Found // their addresses

	parts   *Parts
	member  cluster.Member
	endRun  func(drain bool) // ends Crawl or Serve
	robot   *crawl.Robot
	ready   atomic.Pointer[crawl.Robot] // robot, for who may ask before there is one
	indexer *feed.Indexer
	// handover gives texts of fetched pages to the indexer.
	handover feed.Handover
	render   *render.Renderer // nil where rendering is off

	followed   time.Time    // when changes of dead nodes were last looked for
	shares     *Shares      // nil without shares
	files      *share.Robot // nil without shares
	server     *http.Server
	console    *console.Server
	challenges http.Handler           // of ACME by HTTP-01; nil without
	proxies    []netip.Prefix         // console.trusted_proxies
	address    atomic.Pointer[string] // of the console, once it listens
	secure     bool                   // the console speaks TLS; set before it serves

	scheduler   *freshness.Scheduler // nil where no budget is divided
	estimator   *freshness.Estimator
	importance  freshness.Importance
	clicks      freshness.Clicks
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

// Open checks what a configuration asks for and composes a process of it. Its errors
// are errors of the configuration: nothing on disk is touched before Crawl, Serve or
// Scan.
func Open(c *config.Config, o Options) (*Node, error) {
	n := &Node{config: c, options: o, log: o.Log, started: time.Now(), sweep: make(chan struct{}, 1)}
	if n.log == nil {
		n.log = slog.New(slog.DiscardHandler)
	}
	if n.options.Ordering == nil {
		ordering, ok := crawl.Orderings()[c.Crawl.Ordering]
		if !ok {
			return nil, fmt.Errorf("crawl.ordering: unknown ordering %q", c.Crawl.Ordering)
		}
		n.options.Ordering = ordering()
	}
	if err := freshness.CheckPolicy(c.Crawl.Policy, c.Crawl.Budget > 0 || c.Crawl.BudgetBytes > 0); err != nil {
		return nil, fmt.Errorf("crawl.policy: %w", err)
	}
	if _, err := renderRules(&c.Render); err != nil {
		return nil, err
	}
	for i := range c.Sources {
		if err := n.addSource(&c.Sources[i]); err != nil {
			return nil, err
		}
	}
	var err error
	n.client, err = newClient(c, n.permitsHost, o.Dial)
	return n, err
}

// addSource takes a configured source into the list, and the scopes and seeds if it is
// a web site.
func (n *Node) addSource(s *config.Source) error {
	if s.Share() {
		n.sources = append(n.sources, console.Source{URL: weburl.Redact(s.URL), Scope: s.Scope, Depth: s.Depth})
		return nil
	}
	n.sources = append(n.sources, console.Source{URL: s.URL, Scope: s.Scope, Depth: s.Depth})
	u, err := weburl.Parse(s.URL)
	if err != nil {
		return fmt.Errorf("source: %w", err)
	}
	sc, err := scopeOfSource(s)
	if err != nil {
		return err
	}
	if err := n.checkContact(u, s.AllowPrivate); err != nil {
		return err
	}
	sc.Private = sc.Private || n.options.AllowPrivate
	if s.Weight > 0 {
		n.importance.SetWeight(u, s.Weight)
	}
	n.scopes.Add(sc)
	u, _ = weburl.DefaultCanon.Apply(u)
	n.seeds = append(n.seeds, store.Found{URL: u, Order: 1})
	return nil
}

// checkContact refuses public servers while their operators could not reach us. isOwn
// says that the source is the user's own, as one that may be at private addresses.
func (n *Node) checkContact(u weburl.URL, isOwn bool) error {
	if crawl.PublicName(u.Hostname()) && n.config.Agent.Contact == "" && !isOwn {
		return fmt.Errorf("%s is a public server: set agent.contact (crawl: give --contact), so that its operator can reach you", u)
	}
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

// openParts opens what keeps data, and what works on it for Crawl and Serve alike:
// indexer and browser.
func (n *Node) openParts(ctx context.Context, withIndex bool) (err error) {
	if n.parts, err = OpenParts(ctx, n.options.Dir, n.config, withIndex); err != nil {
		return err
	}
	for _, damage := range n.parts.Archive.Mended() {
		n.log.Warn("archive", "damage", damage)
	}
	if n.parts.IndexReset != nil {
		n.log.Error("index", "err", n.parts.IndexReset)
	}
	if withIndex {
		n.indexer, err = feed.New(ctx, feed.Config{
			Store: n.parts.Store, Read: n.parts.Body, Handover: &n.handover, PDF: n.parts.PDF, Flush: n.parts.Archive.Flush, Engine: n.parts.Engine, Log: n.log, Keep: n.config.Retain.Changes, Space: n.parts.Space.Check,
			Services: &feed.Services{Dir: n.options.Dir}, OneDatabase: n.parts.Cluster.IsShared(),
		})
		if err != nil {
			return err
		}
	}
	n.render, err = newRenderer(n.config, n.parts.Store, n.client)
	return err
}

// robotConfig returns the robot's configuration with the composition's own parts.
func (n *Node) robotConfig(plan freshness.Planner) crawl.Config {
	rc := n.parts.crawlConfig(n.config, n.client, n.render, n.log)
	rc.Scopes, rc.Ordering, rc.Plan = n.scopes, n.options.Ordering, plan
	if n.indexer != nil {
		rc.OnBody = n.handover.Offer
	}
	return rc
}

// startRobot makes the robot, and makes it known to those that ask for it.
func (n *Node) startRobot(rc crawl.Config) {
	n.robot = crawl.New(rc)
	n.ready.Store(n.robot)
	if n.member.Orders().Paused {
		n.robot.Pause()
	}
}

// close closes what is open.
func (n *Node) close() error {
	var err error
	n.client.Close()
	if n.render != nil {
		n.render.Pool.Close()
	}
	if n.shares != nil {
		err = n.shares.Close()
	}
	if n.parts != nil {
		err = errors.Join(err, n.parts.Close())
	}
	return err
}
