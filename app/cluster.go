package app

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/freshet/freshet/config"
	"github.com/freshet/freshet/console"
	"github.com/freshet/freshet/crawl"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/store/postgres"
	"github.com/freshet/freshet/weburl"
)

// Identity is who a process is among those that share a database. It belongs
// to the data directory: a process that starts again there is the same node,
// whose bodies lie there and whose changes wait for it.
type Identity struct {
	Name     string
	Instance string
	runs     []string // of the processes here, this one last
	lock     *os.File
}

// identityFile holds the random half of the identity.
const identityFile = "node.id"

// identify locks a data directory against other processes and returns who works
// there: the given name, or one made of the host's name and the identity.
func identify(dir, name string) (*Identity, error) {
	lock, err := os.OpenFile(filepath.Join(dir, "node.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("data directory %s: %w", dir, store.ErrLocked), lock.Close())
	}
	path := filepath.Join(dir, identityFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		var id [8]byte
		_, _ = rand.Read(id[:]) // never fails
		b = []byte(hex.EncodeToString(id[:]))
		err = os.WriteFile(path, b, 0o600)
	}
	id := strings.TrimSpace(string(b))
	if err == nil && len(id) < 8 {
		err = fmt.Errorf("%s: %q is no identity: remove the file", path, id)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	if name == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "node"
		}
		name = host + "-" + id[:6]
	}
	runs, err := newRun(filepath.Join(dir, runsFile))
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return &Identity{Name: name, Instance: id, runs: runs, lock: lock}, nil
}

// runsFile names the last processes that worked in a data directory: one that
// starts again takes its own place in the registry, and that of no process that
// works in a copy of the directory.
const runsFile = "node.runs"

// keptRuns is how many are named.
const keptRuns = 16

// newRun adds this process to the file and returns all that it names.
func newRun(path string) ([]string, error) {
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	runs := append(strings.Fields(string(b)), rand.Text())
	runs = runs[max(0, len(runs)-keptRuns):]
	return runs, os.WriteFile(path, []byte(strings.Join(runs, "\n")+"\n"), 0o600)
}

// filePrefix makes names of archive files tell the node, so that those of two
// nodes never meet in a bucket.
func (i *Identity) filePrefix() string {
	return "freshet-" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '.' {
			return r
		}
		return '_'
	}, i.Name) + "-" + i.Instance[:6]
}

// Join puts this process into the registry of its database; agents tells what
// works. Without a database it returns nil.
func (p *Parts) Join(ctx context.Context, m postgres.Membership, agents func() []crawl.Agent) (*postgres.Member, error) {
	if p.Shared == nil {
		return nil, nil
	}
	last := len(p.id.runs) - 1
	m.Instance, m.Before = p.id.runs[last], append([]string{p.id.Instance}, p.id.runs[:last]...)
	m.Agents = func() []postgres.Agent {
		var out []postgres.Agent
		for _, a := range agents() {
			out = append(out, postgres.Agent{Name: a.Name, Zone: a.Zone, Since: a.Since, Last: a.Last, Queue: a.Queue, Delay: a.Delay})
		}
		return out
	}
	return p.Shared.Join(ctx, m)
}

// AgentLimit joins two bounds of the number of agents, each of which may be nil.
func AgentLimit(m *postgres.Member, other func() int) func() int {
	if m == nil {
		return other
	}
	if other == nil {
		return m.Allowed
	}
	return func() int { return min(m.Allowed(), other()) }
}

// join makes the node a member of its database. beat, if not nil, is called after every
// sign of life.
func (n *Node) join(ctx context.Context, c *config.Config, beat func(context.Context)) (err error) {
	agents := func() []crawl.Agent {
		if r := n.ready.Load(); r != nil {
			return r.Status().Agents
		}
		return nil
	}
	n.member, err = n.parts.Join(ctx, postgres.Membership{
		TTL: c.Lease, Wanted: func() int { return c.Crawl.Agents }, Ordered: n.ordered, Beat: beat, Log: n.log,
		Address: func() string {
			if a := n.address.Load(); a != nil {
				return *a
			}
			return ""
		},
	}, agents)
	return err
}

// ordered does what all nodes are told. What is told before there is a robot is
// done when there is one.
func (n *Node) ordered(o postgres.Orders, stop bool) {
	r := n.ready.Load()
	if r == nil {
		n.orders = func() { n.ordered(o, stop) }
		return
	}
	switch {
	case stop:
		n.log.Info("all nodes are told to end", "now", o.Now)
		n.endRun(!o.Now)
	case o.Paused:
		r.Pause()
	default:
		r.Resume()
	}
}

// Share lets a robot keep budget and places with the other processes on its
// database.
func (p *Parts) Share(c *crawl.Config) {
	if p.Shared == nil {
		return
	}
	c.AddressSlots = addressSlots{p.Shared}
	c.Spend = func(ctx context.Context, cost time.Duration) (time.Time, error) {
		return p.Shared.Spend(ctx, "crawl", cost)
	}
}

// addressSlots are those of all processes on a database.
type addressSlots struct{ store *postgres.Store }

// Acquire implements politeness.AddressSlots.
func (a addressSlots) Acquire(ctx context.Context, ip string, limit int, ttl time.Duration) (release func(context.Context), err error) {
	slot, ok, err := a.store.Enter(ctx, ip, limit, ttl)
	if err != nil || !ok {
		return nil, err
	}
	return func(ctx context.Context) { _ = a.store.Leave(ctx, slot) }, nil // it ends by itself
}

// adoptEvery is how often a node looks for what dead ones have left.
const adoptEvery = time.Minute

// beat follows what other nodes have told the database.
func (n *Node) beat(ctx context.Context) {
	if err := n.readSources(ctx); err != nil && ctx.Err() == nil {
		n.log.Warn("sources of other nodes", "err", err)
	}
	if now := time.Now(); now.Sub(n.adopted) > adoptEvery { // only the registry's goroutine comes here
		n.adopted = now
		if err := n.parts.Adopt(ctx); err != nil && ctx.Err() == nil {
			n.log.Warn("changes of dead nodes", "err", err)
		}
	}
}

// sourcesKey is the setting with the sources that were added while nodes ran.
const sourcesKey = "sources"

func (n *Node) savedSources(ctx context.Context) (out []console.Source, err error) {
	return out, n.setting(ctx, sourcesKey, &out)
}

// setting reads a setting that is kept as JSON; without one v stays as it is.
func (n *Node) setting(ctx context.Context, key string, v any) error {
	b, err := n.parts.Store.Get(ctx, key)
	if err != nil || len(b) == 0 {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("setting %s: %w", key, err)
	}
	return nil
}

// rewrite changes a setting that is kept as JSON. Of two who do so at once, here or
// at other nodes, none is lost. f may be called again.
func rewrite[T any](ctx context.Context, n *Node, key string, f func(v *T) error) error {
	do := func(b []byte) ([]byte, error) {
		var v T
		if len(b) > 0 {
			if err := json.Unmarshal(b, &v); err != nil {
				return nil, fmt.Errorf("setting %s: %w", key, err)
			}
		}
		if err := f(&v); err != nil {
			return nil, err
		}
		return json.Marshal(v)
	}
	if n.parts.Shared != nil {
		return n.parts.Shared.Change(ctx, key, do)
	}
	b, err := n.parts.Store.Get(ctx, key) // nobody else has this store; the caller holds saving
	if err != nil {
		return err
	}
	if b, err = do(b); err != nil {
		return err
	}
	return n.parts.Store.Put(ctx, key, b)
}

// saveSource keeps a source for the next start, and for the other nodes.
func (n *Node) saveSource(ctx context.Context, s console.Source) error {
	n.saving.Lock()
	defer n.saving.Unlock()
	return rewrite(ctx, n, sourcesKey, func(saved *[]console.Source) error {
		if !slices.ContainsFunc(*saved, func(o console.Source) bool { return o.URL == s.URL }) {
			*saved = append(*saved, s)
		}
		return nil
	})
}

// readSources takes up sources that were added before the start or at other
// nodes.
func (n *Node) readSources(ctx context.Context) error {
	n.reading.Lock()
	defer n.reading.Unlock()
	saved, err := n.savedSources(ctx)
	if err != nil {
		return err
	}
	if err := n.readRemoved(ctx); err != nil {
		return err
	}
	for _, s := range saved {
		n.mu.Lock()
		known := slices.ContainsFunc(n.sources, func(o console.Source) bool { return o.URL == s.URL })
		n.mu.Unlock()
		if known {
			continue
		}
		if err := n.takeSource(s); err != nil {
			return err
		}
	}
	return nil
}

// takeSource lets the robot follow the links of a web site.
func (n *Node) takeSource(s console.Source) error {
	u, err := weburl.Parse(s.URL)
	if err != nil {
		return err
	}
	if err := n.checkContact(u, false); err != nil {
		return err
	}
	sc, err := scopeOf(s)
	if err != nil {
		return err
	}
	s.Added = true
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, o := range n.sources {
		switch {
		case o.URL != s.URL:
		case cmp.Or(o.Scope, "host") == cmp.Or(s.Scope, "host") && o.Depth == s.Depth:
			return nil // added twice
		default:
			return fmt.Errorf("%s is a source already, with the scope %s and depth %d: take it back first", s.URL, cmp.Or(o.Scope, "host"), o.Depth)
		}
	}
	sc.Private = n.options.AllowPrivate
	n.ready.Load().AddScope(sc)
	n.sources = append(n.sources, s)
	delete(n.gone, s.URL)
	return nil
}

// others adds the agents of other nodes to a status.
func (n *Node) others(s *console.Status) {
	if n.member == nil {
		return
	}
	if limit := n.member.Limit(); limit != postgres.Unlimited {
		s.Agents.FetchLimit = limit
	} else {
		for _, o := range n.member.Others() {
			s.Agents.FetchLimit += o.Wanted
		}
	}
	for i := range s.Work {
		s.Work[i].Name = n.parts.id.Name + "/" + s.Work[i].Name
	}
	for _, o := range n.member.Others() {
		s.Nodes = append(s.Nodes, console.NodeStatus{Name: o.Name, Address: o.Address, Since: o.Since, Agents: len(o.Agents)})
		s.Agents.Fetch += len(o.Agents)
		for _, a := range o.Agents {
			s.Work = append(s.Work, console.Agent{Name: o.Name + "/" + a.Name, Zone: a.Zone, Since: a.Since, Last: a.Last, Queue: a.Queue, Delay: a.Delay})
		}
	}
}
