package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/freshet/freshet/store"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Membership are the options of Join.
type Membership struct {
	// Instance tells this process from another that was given the same name.
	Instance string
	// Before are the instances of earlier processes of the same data directory, whose
	// name this one takes over though it may seem alive. If an earlier process lives,
	// in a copy of the directory, its next sign of life fails with ErrName.
	Before []string
	// Address, if not nil, is that of the console, "" without one.
	Address func() string
	// TTL is after what time without a sign of life the node is dead and its
	// slots are others'. Default store.DefaultLease.
	TTL time.Duration
	// Agents tells of the agents at work.
	Agents func() []Agent
	// Wanted is how many agents the node may run by its own configuration.
	Wanted func() int
	// Ordered, if not nil, is called with the first sign of life and when there are
	// others: stop tells that they end this node.
	Ordered func(o Orders, stop bool)
	// Beat, if not nil, is called after every sign of life.
	Beat func(context.Context)
	Log  *slog.Logger
}

// Agent is one agent at work.
type Agent struct {
	Name  string        `json:"name"`
	Zone  string        `json:"zone"`
	Since time.Time     `json:"since"`
	Last  time.Time     `json:"last"`
	Queue int           `json:"queue"`
	Delay time.Duration `json:"delay_ns"`
}

// Node is one line of the registry.
type Node struct {
	Name    string
	Since   time.Time
	Until   time.Time
	Address string
	Wanted  int
	Agents  []Agent
}

// Member is this process in the registry. It holds as many slots of the global
// limit of agents as its share among the living nodes; a slot is a lease, so
// that there are never more agents than slots without anybody counting them,
// and the slots of a dead node come free by themselves.
type Member struct {
	store *Store
	m     Membership

	beating sync.Mutex // one sign of life at a time; before mu
	joined  time.Time
	orders  *Orders // as of the last sign of life
	seen    bool    // a sign of life was given

	mu     sync.Mutex
	slots  int       // agents allowed, unlimited without a global limit
	limit  int       // the global limit, unlimited without one
	until  time.Time // slots are ours until then
	others []Node    // living nodes but this one
}

// Unlimited is the number of agents where there is no limit.
const Unlimited = math.MaxInt32

// limitKey is the setting that holds the global limit of agents.
const limitKey = "agents-limit"

// ErrName is the error of a name that another living process has.
var ErrName = errors.New("another living process has the same node name")

// Join puts this process into the registry. Run keeps it there.
func (s *Store) Join(ctx context.Context, m Membership) (*Member, error) {
	if m.TTL <= 0 {
		m.TTL = store.DefaultLease
	}
	if m.Log == nil {
		m.Log = slog.New(slog.DiscardHandler)
	}
	n := &Member{store: s, m: m, joined: time.Now()}
	if err := n.beat(ctx); err != nil {
		return nil, fmt.Errorf("registry: %w", err)
	}
	return n, nil
}

// Run gives signs of life until ctx ends, then leaves the registry.
func (n *Member) Run(ctx context.Context) error {
	t := time.NewTicker(n.m.TTL / 5)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return n.leave(context.WithoutCancel(ctx))
		case <-t.C:
		}
		try, cancel := context.WithTimeout(ctx, n.m.TTL)
		err := n.beat(try)
		cancel()
		if ctx.Err() != nil {
			continue
		}
		if errors.Is(err, ErrName) {
			return err
		}
		if err != nil { // the slots are gone when their time is up
			n.m.Log.Warn("registry", "err", err)
			continue
		}
		if n.m.Beat != nil {
			n.m.Beat(ctx)
		}
	}
}

// Allowed is how many agents this process may run now: none when it has not
// reached the database for so long that its slots may be another's.
func (n *Member) Allowed() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !time.Now().Before(n.until) {
		return 0
	}
	return n.slots
}

// Limit is the global limit of agents, or Unlimited.
func (n *Member) Limit() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.limit
}

// Others lists the other living nodes as of the last sign of life.
func (n *Member) Others() []Node {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.others
}

// SetLimit changes the global limit of agents. It holds in each node from its
// next sign of life.
func (s *Store) SetLimit(ctx context.Context, limit int) error {
	return s.Put(ctx, limitKey, []byte(strconv.Itoa(max(0, limit))))
}

// SetLimit changes the global limit of agents, for all nodes. It holds here at
// once, and in all when each has given its next sign of life.
func (n *Member) SetLimit(ctx context.Context, limit int) error {
	limit = max(0, limit)
	if err := n.store.SetLimit(ctx, limit); err != nil {
		return err
	}
	n.mu.Lock()
	n.limit, n.slots = limit, min(n.slots, limit)
	n.mu.Unlock()
	return n.beat(ctx) // its share of the limit is claimed before others join
}

const (
	putNode = `
insert into nodes (name, instance, since, until, address, wanted, working, agents) values ($1, $2, $3, $4, $5, $6, $7, $8)
on conflict (name) do update set instance = excluded.instance, until = excluded.until, address = excluded.address, wanted = excluded.wanted,
	working = excluded.working, agents = excluded.agents where nodes.instance = excluded.instance or nodes.instance = any($9) or nodes.until < $3`
	liveNodes  = "select name, since, until, address, wanted, agents from nodes where until >= $1 order by name"
	makeSlots  = "insert into slots (n) select n from generate_series(1, $1::integer) as t (n) on conflict (n) do nothing"
	dropSlots  = "delete from slots where n > $1 and (node = '' or until < $2)"
	ownSlots   = "select n from slots where node = $1 and until >= $2 order by n for update"
	renewSlots = "update slots set until = $3 where node = $1 and n = any($2)"
	freeSlots  = "update slots set node = '', until = 0 where node = $1 and not (n = any($2))"
	claimSlots = `
with free as (select n from slots where n <= $2 and (node = '' or until < $3) order by n limit $4 for update skip locked)
update slots set node = $1, until = $5 from free where slots.n = free.n`
)

// beat gives a sign of life and brings the slots to this node's share.
func (n *Member) beat(ctx context.Context) error {
	n.beating.Lock()
	defer n.beating.Unlock()
	asked := time.Now()
	now, until := asked.UnixMilli(), asked.Add(n.m.TTL)
	limit, orders, err := n.told(ctx)
	if err != nil {
		return err
	}
	if skew, took, err := n.store.measureClock(ctx); err != nil {
		return err
	} else if skew.Abs() > maxSkew+took {
		n.m.Log.Warn("registry: this machine's clock and the database's are apart: set both by NTP", "by", skew.Abs().Round(time.Millisecond))
	}
	var agents []Agent
	if n.m.Agents != nil {
		agents = n.m.Agents()
	}
	wanted := Unlimited
	if n.m.Wanted != nil {
		wanted = n.m.Wanted()
	}
	lines, err := json.Marshal(agents)
	if err != nil {
		return err
	}
	address := ""
	if n.m.Address != nil {
		address = n.m.Address()
	}
	name := n.store.config.Node
	var nodes []Node
	slots := Unlimited
	err = n.store.tx(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, putNode, name, n.m.Instance, now, until.UnixMilli(), address, wanted, len(agents), lines, n.before())
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return fmt.Errorf("%s: %w: give this one another (node in the configuration)", name, ErrName)
		}
		if nodes, err = living(ctx, tx, now); err != nil || limit == Unlimited {
			return err
		}
		slots, err = n.share(ctx, tx, limit, min(wanted, fair(limit, nodes, name)), len(agents), now, until.UnixMilli())
		return err
	})
	if err != nil {
		return err
	}
	n.seen = true
	n.obey(orders)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.slots, n.limit, n.until = slots, limit, until.Add(-n.m.TTL/5)
	n.others = n.others[:0:0]
	for _, o := range nodes {
		if o.Name != name {
			n.others = append(n.others, o)
		}
	}
	return nil
}

// before are the instances that this process takes the place of: none after the
// first sign of life.
func (n *Member) before() []string {
	if n.seen || n.m.Before == nil {
		return []string{}
	}
	return n.m.Before
}

// told reads what holds for all nodes.
func (n *Member) told(ctx context.Context) (limit int, o Orders, err error) {
	set := map[string][]byte{}
	err = n.store.retry(ctx, func() error {
		rows, err := n.store.pool.Query(ctx, "select name, value from settings where name = any($1)", []string{limitKey, ordersKey})
		if err != nil {
			return err
		}
		var name string
		var value []byte
		_, err = pgx.ForEachRow(rows, []any{&name, &value}, func() error { set[name] = slices.Clone(value); return nil })
		return err
	})
	if err != nil {
		return 0, o, err
	}
	if o, err = readOrders(set[ordersKey]); err != nil {
		return 0, o, err
	}
	limit, err = readLimit(set[limitKey])
	return limit, o, err
}

// obey tells of orders that are new.
func (n *Member) obey(o Orders) {
	if n.m.Ordered == nil || n.orders != nil && o.Paused == n.orders.Paused && o.Stop.Equal(n.orders.Stop) {
		return
	}
	n.orders = &o
	n.m.Ordered(o, o.Stop.After(n.joined))
}

func readLimit(v []byte) (int, error) {
	if len(v) == 0 {
		return Unlimited, nil
	}
	limit, err := strconv.Atoi(string(v))
	if err != nil || limit < 0 {
		return 0, fmt.Errorf("setting %s: %q is no number of agents", limitKey, v)
	}
	return limit, nil
}

// fair is a node's part of the limit: what those who want fewer leave is shared
// by the others, the remainder goes to the first by name.
func fair(limit int, nodes []Node, name string) int {
	left := make(map[string]int, len(nodes)) // wishes not yet met
	for _, o := range nodes {
		left[o.Name] = o.Wanted
	}
	got := 0
	for limit > 0 && len(left) > 0 {
		each := max(1, limit/len(left))
		for _, o := range nodes {
			wish, ok := left[o.Name]
			if !ok || limit == 0 {
				continue
			}
			give := min(each, wish, limit)
			limit -= give
			if o.Name == name {
				got += give
			}
			if left[o.Name] -= give; left[o.Name] == 0 {
				delete(left, o.Name)
			}
		}
	}
	return got
}

// share claims or gives back slots: a slot is given back only when fewer agents
// work than slots are held. It returns how many agents may go on or start.
func (n *Member) share(ctx context.Context, tx pgx.Tx, limit, want, working int, now, until int64) (int, error) {
	name := n.store.config.Node
	rows, err := tx.Query(ctx, ownSlots, name, now)
	if err != nil {
		return 0, err
	}
	own, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		return 0, err
	}
	valid, _ := slices.BinarySearch(own, limit+1) // slots beyond a limit that fell last as long as their agents
	beyond := own[valid:]
	valid = min(valid, max(want, working))
	own = append(own[:valid:valid], beyond[:min(len(beyond), max(0, working-valid))]...)
	var q pgx.Batch
	q.Queue(freeSlots, name, own)
	q.Queue(renewSlots, name, own, until)
	q.Queue(dropSlots, limit, now)
	q.Queue(makeSlots, limit)
	claimed := 0
	if more := want - valid; more > 0 {
		q.Queue(claimSlots, name, limit, now, more, until).Exec(func(tag pgconn.CommandTag) error {
			claimed = int(tag.RowsAffected())
			return nil
		})
	}
	if err := tx.SendBatch(ctx, &q).Close(); err != nil {
		return 0, err
	}
	return min(valid+claimed, want), nil
}

func living(ctx context.Context, tx pgx.Tx, now int64) ([]Node, error) {
	rows, err := tx.Query(ctx, liveNodes, now)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(r pgx.CollectableRow) (o Node, err error) {
		var since, until int64
		var agents []byte
		if err := r.Scan(&o.Name, &since, &until, &o.Address, &o.Wanted, &agents); err != nil {
			return o, err
		}
		o.Since, o.Until = timeOf(since), timeOf(until)
		if err := json.Unmarshal(agents, &o.Agents); err != nil {
			return o, fmt.Errorf("agents of %s: %w: %w", o.Name, errInput, err)
		}
		return o, nil
	})
}

// leave takes the node out of the registry.
func (n *Member) leave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	n.mu.Lock()
	n.slots, n.until = 0, time.Time{}
	n.mu.Unlock()
	var q pgx.Batch
	q.Queue("update slots set node = '', until = 0 where node = $1", n.store.config.Node)
	q.Queue("delete from nodes where name = $1 and instance = $2", n.store.config.Node, n.m.Instance)
	if err := n.store.pool.SendBatch(ctx, &q).Close(); err != nil {
		n.m.Log.Warn("registry: leave", "err", err) // the entry ends by itself
	}
	return nil
}
