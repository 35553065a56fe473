// Package crawl is the web robot: it works the hosts of a store politely, keeps
// bodies in an archive, and queues what it finds.
//
// A dispatcher claims hosts and gives each to an agent, a goroutine that owns
// the host while its lease lasts: it fetches one page after the other with the
// host's delay between them, and commits what it learned in batches. An agent
// whose host must wait longer than a moment lets go of it, so that agents are
// never idle and never more than the limit; the store knows when the host's
// time has come. Politeness (next time, delay, back-off, robots.txt) is part of
// the host's record and of every commit: it survives a crash.
//
// The agents follow Mercator (Heydon, Najork 1999) in having one connection per
// host and a delay in proportion to the time the host takes to answer; hosts
// ordered by the time at which they may be visited are BUbiNG's workbench
// (Boldi, Marino, Santini, Vigna 2018).
package crawl

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/freshet/freshet/archive"
	"github.com/freshet/freshet/cluster"
	"github.com/freshet/freshet/crawl/politeness"
	"github.com/freshet/freshet/crawl/trap"
	"github.com/freshet/freshet/crawl/visit"
	"github.com/freshet/freshet/extract"
	"github.com/freshet/freshet/extract/pdftext"
	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/freshness"
	"github.com/freshet/freshet/freshness/change"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// Config are the parts and options of a Robot.
type Config struct {
	Store   store.Store
	Fetch   *fetch.Client
	Archive *archive.Writer // nil keeps no bodies
	Log     *slog.Logger

	Node   string // name in leases
	Token  string // product token for robots.txt
	Agents int    // default 16
	// Lease is after what time without a sign of life another process takes over
	// the hosts of this one; default store.DefaultLease.
	Lease time.Duration

	Scopes   Scopes
	Canon    weburl.Canon
	Ordering Ordering // default BreadthFirst
	Traps    trap.Limits
	// Types are the content types that are kept, as extract.Type names them: others
	// are fetched once and left out. Empty is all; sitemaps are always read.
	Types []string

	Delay      time.Duration // least delay of public hosts; default 1 s
	DelayGiven bool          // Delay holds for loopback hosts, too
	// Connections is how many requests may be under way at once to a host that a scope
	// names and whose delay is 0; default 1.
	Connections int
	// DelayPopular is the least delay of hosts with 10,000 pages and more; down to
	// 100 pages it rises to Delay. 0 makes no difference between hosts, but where
	// Delay is the default, where it is half of it.
	DelayPopular time.Duration
	DelayFactor  float64       // delay in response times; default 5
	MaxDelay     time.Duration // of Crawl-delay and back-off; default 1 h

	PerAddress   int                  // hosts of one public IP address worked at once; default 4
	AddressLimit cluster.AddressLimit // default: of this process

	// Noise is up to how many bits of its simhash a text may differ and count as
	// unchanged, for sites whose pages carry changing ornaments; default 0, where
	// the digest alone decides.
	Noise int

	// Plan says when a page is visited again; default HalfChange. MinRevisit and
	// MaxRevisit bound it.
	Plan freshness.Planner

	MinRevisit time.Duration // default 5 min
	MaxRevisit time.Duration // default 30 days
	// MaxFailedAge is for how long a page that cannot be fetched any more (its host is gone,
	// answers 5xx, or its robots.txt cannot be read) stays in the index; default 30 days.
	MaxFailedAge time.Duration
	// HostBytesDay is how many bytes of bodies, before compression, may be archived of one
	// host in a day; then the host rests for what is left of it. 0 is no limit.
	HostBytesDay int64
	// Once ends the run when everything in scope was visited; pages then are not
	// due again for a day.
	Once     bool
	MaxPages int64 // fetched pages after which the run ends; 0 is no limit

	// Budget is how many requests a second the robot may send in all; 0 is no
	// limit. BudgetBytes is how many bytes of answers a second, in the mean.
	Budget      float64
	BudgetBytes float64
	// Spend, if not nil, takes from a budget that other processes take from, too;
	// it goes on as fast as Budget and BudgetBytes say.
	Spend politeness.Spend

	// OnPage is called for each fetched page, from many goroutines.
	OnPage func(*Result)
	// OnBody, if not nil, is called for each answer that was archived, before its page is
	// committed, with what was extracted of it, Text included, from many goroutines.
	OnBody func(at archive.Position, url string, page *extract.Page)
	// Render, if not nil, may replace what was extracted by what a browser sees.
	Render Renderer
	// PDF reads PDF documents; nil fetches them without reading.
	PDF *pdftext.Pool
	// ReadBody reads an answer back from the archive, for the browser. Without it
	// pages that wait longer than memory holds are not rendered before their next visit.
	ReadBody func(at archive.Position) (*archive.Exchange, error)
	// Space, if not nil, says why nothing more may be written (a full disk). With
	// Once that ends the run with its error; else the robot waits until it is nil.
	Space func() error
	// Limit returns how many agents may live now; default Agents. Wake lets the robot ask
	// again.
	Limit func() int
	// Sources, if not nil, is called before a page is visited that is of no source:
	// where several processes share a store, one may have been added at another. It
	// adds and removes scopes.
	Sources func(ctx context.Context) error
}

// Result tells of one fetched page.
type Result struct {
	Page     store.Page
	FinalURL string
	Links    []extract.Link
	Fetched  time.Time
	Changed  bool
}

// Robot crawls. Make one with New, start it with Run.
type Robot struct {
	config   Config
	stats    counters
	sources  sourceSet
	rules    visit.Rules
	budget   *politeness.Budget
	requests *politeness.Client
	traps    trap.Detector
	variants variantTable
	signals  freshness.SignalLedger
	commits  groupCommit

	mu      sync.Mutex
	live    map[int]*cluster.Agent
	next    int
	resting int // agents that only wait for another host
	writing int // agents that have let go of their hosts and write what they learned
	paused  bool
	drain   bool
	ended   bool  // a run with Once left nothing to visit
	failed  error // of an agent
	pages   int64 // reserved of MaxPages
	wake    chan struct{}

	started time.Time

	renders renderQueue
	gains   gains

	base atomic.Pointer[change.Prior] // of hosts that nothing is known of; nil is the default
}

// images reports whether images are asked for by name: else no page's images are
// fetched.
func (c *Config) images() bool { return slices.Contains(c.Types, "image") }

// New returns a robot.
func New(c Config) *Robot {
	def := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	if c.Delay <= 0 && !c.DelayGiven {
		c.Delay = time.Second
		def(&c.DelayPopular, c.Delay/2)
	}
	def(&c.MaxDelay, time.Hour)
	def(&c.Lease, store.DefaultLease)
	def(&c.MinRevisit, 5*time.Minute)
	def(&c.MaxRevisit, 30*24*time.Hour)
	def(&c.MaxFailedAge, 30*24*time.Hour)
	if c.DelayFactor <= 0 {
		c.DelayFactor = 5
	}
	if c.Connections <= 0 {
		c.Connections = 1
	}
	if c.Agents <= 0 {
		c.Agents = 16
	}
	if c.PerAddress == 0 {
		c.PerAddress = 4
	}
	if c.Limit == nil {
		agents := c.Agents
		c.Limit = func() int { return agents }
	}
	if c.Plan == nil {
		c.Plan = freshness.HalfChange{}
	}
	if c.Ordering == nil {
		c.Ordering = BreadthFirst{}
	}
	if c.Token == "" {
		c.Token = "freshet"
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Traps = c.Traps.WithDefaults()
	r := &Robot{config: c, live: map[int]*cluster.Agent{}, wake: make(chan struct{}, 1), budget: politeness.NewBudget(c.Budget, c.BudgetBytes, c.Spend)}
	r.sources.config = &r.config
	r.rules = visit.Rules{Canon: c.Canon, Token: c.Token, Types: c.Types, Noise: c.Noise, MinRevisit: c.MinRevisit, MaxRevisit: c.MaxRevisit, MaxFailedAge: c.MaxFailedAge}
	hosts, _ := c.Store.(store.HostReader)
	r.requests = politeness.NewClient(politeness.Config{
		Fetch: c.Fetch, Hosts: hosts, Sources: &r.sources, Observer: requestObserver{r},
		Token:      c.Token,
		Delays:     politeness.Delays{Delay: c.Delay, DelayPopular: c.DelayPopular, DelayFactor: c.DelayFactor, MaxDelay: c.MaxDelay},
		Budget:     r.budget,
		PerAddress: c.PerAddress, AddressLimit: c.AddressLimit,
	})
	return r
}

const (
	// maxWriting is how many agents may write while the next ones work.
	maxWriting = 256
	// maxResting is how many agents that only wait for another host do not count
	// among those that fetch.
	maxResting = 64
	// idlePoll bounds how long the dispatcher sleeps without being woken.
	idlePoll = 500 * time.Millisecond
)

// Run works until ctx ends, Drain is called, or, with Once, nothing is
// left to visit. It returns when all agents have committed what they have, with
// the error of one that could not.
func (r *Robot) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.mu.Lock()
	r.started = time.Now()
	r.mu.Unlock()
	r.stats.begin(r.started)
	r.requests.Begin(r.started)
	if err := r.renders.open(ctx, &r.config); err != nil {
		return fmt.Errorf("crawl: %w", err)
	}
	var agents, renders sync.WaitGroup
	within, stop := context.WithCancel(ctx)
	defer renders.Wait()
	defer stop()
	if r.config.Render != nil {
		renders.Go(func() { r.runRenders(within) })
	}
	for {
		done, err := r.dispatch(ctx, cancel, &agents)
		if !done && err == nil {
			continue
		}
		if err != nil {
			err = fmt.Errorf("crawl: %w", err)
			cancel(err) // the agents commit what they have and end
		}
		agents.Wait()
		if err != nil {
			return err
		}
		return r.failed
	}
}

// dispatch starts one agent, or waits for something to change.
func (r *Robot) dispatch(ctx context.Context, cancel context.CancelCauseFunc, agents *sync.WaitGroup) (done bool, err error) {
	if err := context.Cause(ctx); err != nil {
		if errors.Is(err, context.Canceled) {
			err = nil
		}
		return true, err
	}
	r.mu.Lock()
	full := r.full()
	if r.drain || full && !r.rendering() {
		idle := len(r.live) == 0
		r.mu.Unlock()
		if !idle {
			r.sleep(ctx, idlePoll)
		}
		return idle, nil
	}
	room := !r.paused && len(r.live)-min(r.resting, maxResting) < r.config.Limit() && r.writing < maxWriting && (!full || r.renders.hasResults(""))
	idle := len(r.live)+r.writing == 0
	r.mu.Unlock()
	if err := r.space(); err != nil {
		if r.config.Once && idle {
			return true, err
		}
		room = false
	}
	if !room {
		r.sleep(ctx, idlePoll)
		return false, nil
	}
	lease, next, err := r.config.Store.Claim(ctx, r.config.Node, time.Now(), r.config.Lease)
	if err != nil && ctx.Err() != nil { // the next turn tells why
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("claim a host: %w", err)
	}
	if lease == nil {
		wait := idlePoll
		if !next.IsZero() {
			wait = min(wait, max(time.Until(next), time.Millisecond))
		}
		if idle { // else an agent may have released its host, with new pages, since it was looked for one
			if done, err := r.finished(ctx, next); done || err != nil {
				return done, err
			}
		}
		r.sleep(ctx, wait)
		return false, nil
	}
	id := r.register(lease)
	agents.Go(func() {
		defer r.endWriting()
		a := r.newAgent(id, lease)
		switch err := a.work(ctx); {
		case err == nil:
		case errors.Is(err, store.ErrLease), ctx.Err() != nil && errors.Is(err, ctx.Err()):
			r.config.Log.Warn("agent stopped", "host", lease.Host.Name, "err", err)
		default:
			r.fail(err)
			cancel(err)
		}
	})
	return false, nil
}

// fail keeps the first error of an agent: when it comes the run may have ended for
// another reason.
func (r *Robot) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed == nil {
		r.failed = fmt.Errorf("crawl: %w", err)
	}
}

// full reports whether MaxPages are fetched. The caller holds mu.
func (r *Robot) full() bool { return r.config.MaxPages > 0 && r.pages >= r.config.MaxPages }

// finished reports whether a run with Once has nothing left, where no host could be
// claimed though no agent had one.
func (r *Robot) finished(ctx context.Context, next time.Time) (bool, error) {
	if !r.config.Once || r.rendering() {
		return false, nil
	}
	done := next.IsZero()
	if !done {
		st, err := r.config.Store.Stats(ctx)
		if err != nil {
			return false, err
		}
		// Failed pages are tried again after some seconds; what is due later than
		// that was visited by this run.
		done = st.Leases == 0 && st.New == 0 && st.Due == 0 && time.Until(next) > politeness.RetryDelay(politeness.MaxRetries)
	}
	if done {
		r.mu.Lock()
		r.ended = true
		r.mu.Unlock()
	}
	return done, nil
}

// onlyRenders reports whether MaxPages are fetched.
func (r *Robot) onlyRenders() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.full()
}

// rendering reports whether pages are on their way through the browser.
func (r *Robot) rendering() bool {
	return r.config.Render != nil && r.renders.busy(r.config.Render.Ready() == nil)
}

// Finished reports whether a run with Once has visited all there was, instead
// of being drained or stopped.
func (r *Robot) Finished() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended
}

// sleep waits for a change or the end of d.
func (r *Robot) sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	case <-r.wake:
	}
}

// Wake tells the dispatcher that something changed: URLs were added.
func (r *Robot) Wake() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *Robot) register(l *store.Lease) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next++
	now := time.Now()
	r.live[r.next] = &cluster.Agent{Name: fmt.Sprintf("agent-%d", r.next), Zone: l.Host.Name, Since: now, Last: now}
	return r.next
}

// beginWriting takes an agent out of the registry that only has to write.
func (r *Robot) beginWriting(id int) {
	r.mu.Lock()
	delete(r.live, id)
	r.writing++
	r.mu.Unlock()
	r.Wake()
}

// endWriting notes that an agent has written.
func (r *Robot) endWriting() {
	r.mu.Lock()
	r.writing--
	r.mu.Unlock()
	r.Wake()
}

// mayContinue updates an agent's line and reports whether it may go on: not when
// there are more agents than allowed, or the robot is paused or ending.
func (r *Robot) mayContinue(id, queue int, delay time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.live[id]
	a.Last, a.Queue, a.Delay = time.Now(), queue, delay
	return !r.paused && !r.drain && !r.full() && len(r.live)-min(r.resting, maxResting) <= r.config.Limit() && r.space() == nil
}

// space is why nothing more may be written, or nil.
func (r *Robot) space() error {
	if r.config.Space == nil {
		return nil
	}
	return r.config.Space()
}

// reserve takes one page of MaxPages.
func (r *Robot) reserve() bool {
	if r.config.MaxPages <= 0 {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.full() {
		return false
	}
	r.pages++
	return true
}

// unreserve gives back a page that was not fetched after all.
func (r *Robot) unreserve() {
	if r.config.MaxPages <= 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pages--
}

// Pause lets agents finish their page and starts no more; Resume goes on.
func (r *Robot) Pause() { r.set(&r.paused, true) }

// Resume ends a pause.
func (r *Robot) Resume() { r.set(&r.paused, false) }

// Drain ends Run after the pages under way are committed.
func (r *Robot) Drain() { r.set(&r.drain, true) }

func (r *Robot) set(flag *bool, v bool) {
	r.mu.Lock()
	*flag = v
	r.mu.Unlock()
	r.Wake()
}
