package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/freshet/freshet/cluster"
	store "github.com/freshet/freshet/store/postgres"
)

// member is this process in the registry. It holds as many agent slots as its share of
// the limit among the living nodes. A slot is a lease: there are never more agents than
// slots without anybody counting them, and those of a dead node come free by themselves.
type member struct {
	cluster    *Cluster
	membership cluster.Membership
	joined     time.Time

	beating   sync.Mutex     // held for a heartbeat; before mu
	delivered cluster.Orders // that OnOrders knows
	succeeded bool           // there was a heartbeat

	mu         sync.Mutex
	agents     int       // allowed
	agentLimit int       // of all nodes, cluster.Unlimited without one
	until      time.Time // agents are ours until then
	others     []cluster.Node
	orders     cluster.Orders
}

// Join implements cluster.Cluster.
func (c *Cluster) Join(ctx context.Context, m cluster.Membership) (cluster.Member, error) {
	n := &member{cluster: c, membership: m.WithDefaults(), joined: time.Now()}
	if err := n.heartbeat(ctx); err != nil {
		return nil, fmt.Errorf("registry: %w", err)
	}
	n.delivered = n.orders
	n.delivered.Stop = time.Time{} // one that came since joined is delivered by Run
	c.member.Store(n)
	return n, nil
}

// Run implements cluster.Member.
func (m *member) Run(ctx context.Context) error {
	t := time.NewTicker(m.membership.TTL / 5)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			m.leave(context.WithoutCancel(ctx))
			return nil
		case <-t.C:
		}
		try, cancel := context.WithTimeout(ctx, m.membership.TTL)
		err := m.heartbeat(try)
		cancel()
		switch {
		case ctx.Err() != nil:
		case errors.Is(err, cluster.ErrNodeName):
			return err
		case err != nil: // the agent slots are gone when their time is up
			m.membership.Log.Warn("registry", "err", err)
		default:
			m.deliverOrders()
			m.membership.OnHeartbeat(ctx)
		}
	}
}

// AllowedAgents implements cluster.Member.
func (m *member) AllowedAgents() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !time.Now().Before(m.until) {
		return 0
	}
	return m.agents
}

// AgentLimit implements cluster.Member.
func (m *member) AgentLimit() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.agentLimit
}

// Others implements cluster.Member.
func (m *member) Others() []cluster.Node {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.others
}

// Orders implements cluster.Member.
func (m *member) Orders() cluster.Orders {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.orders
}

// lower lets a limit hold at once if it is lower than what is allowed.
func (m *member) lower(limit int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.agentLimit, m.agents = limit, min(m.agents, limit)
}

// deliverOrders calls OnOrders with orders that it does not know. Only Run calls it.
func (m *member) deliverOrders() {
	o := m.Orders()
	if o.Paused == m.delivered.Paused && o.Stop.Equal(m.delivered.Stop) {
		return
	}
	m.delivered = o
	m.membership.OnOrders(o, o.Stop.After(m.joined))
}

const putNode = `
insert into nodes (name, instance, since, until, address, wanted, working, agents) values ($1, $2, $3, $4, $5, $6, $7, $8)
on conflict (name) do update set instance = excluded.instance, until = excluded.until, address = excluded.address, wanted = excluded.wanted,
	working = excluded.working, agents = excluded.agents where nodes.instance = excluded.instance or nodes.instance = any($9) or nodes.until < $3`

// heartbeat writes that the process lives and brings its agent slots to its share.
func (m *member) heartbeat(ctx context.Context) error {
	m.beating.Lock()
	defer m.beating.Unlock()
	c, ttl := m.cluster, m.membership.TTL
	began := time.Now()
	now, until := began.UnixMilli(), began.Add(ttl)
	limit, orders, err := c.readSharedSettings(ctx)
	if err != nil {
		return err
	}
	if err := c.store.CheckClock(ctx); errors.Is(err, store.ErrClock) {
		m.membership.Log.Warn("registry", "err", err)
	} else if err != nil {
		return err
	}
	working, wanted := m.membership.Agents(), m.membership.WantedAgents()
	lines, err := json.Marshal(working)
	if err != nil {
		return err
	}
	name := c.Name()
	var nodes []cluster.Node
	allowed := wanted
	err = c.transact(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, putNode, name, c.config.Run, now, until.UnixMilli(), m.membership.Address(), wanted, len(working), lines, m.replaces())
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return fmt.Errorf("%s: %w: give this one another (node in the configuration)", name, cluster.ErrNodeName)
		}
		if _, err := tx.Exec(ctx, deleteFreePlaces, began.Add(-keptFreePlaces).UnixMilli()); err != nil {
			return err
		}
		if nodes, err = readLivingNodes(ctx, tx, now); err != nil || limit == cluster.Unlimited {
			return err
		}
		share := agentShare{node: name, limit: limit, want: min(wanted, fairShare(limit, nodes, name)), working: len(working), now: now, until: until.UnixMilli()}
		allowed, err = share.claim(ctx, tx)
		return err
	})
	if err != nil {
		return err
	}
	m.succeeded = true
	m.mu.Lock()
	defer m.mu.Unlock()
	m.agents, m.agentLimit, m.orders, m.until = allowed, limit, orders, until.Add(-ttl/5)
	m.others = m.others[:0:0]
	for _, o := range nodes {
		if o.Name != name {
			m.others = append(m.others, o)
		}
	}
	return nil
}

// replaces returns the runs whose place in the registry this process takes: none after
// its first heartbeat. The caller holds beating.
func (m *member) replaces() []string {
	if m.succeeded || m.cluster.config.PreviousRuns == nil {
		return []string{}
	}
	return m.cluster.config.PreviousRuns
}

// querier is a connection or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// readLivingNodes reads the nodes that live at a time in milliseconds.
func readLivingNodes(ctx context.Context, q querier, now int64) ([]cluster.Node, error) {
	rows, err := q.Query(ctx, "select name, since, until, address, wanted, agents from nodes where until >= $1 order by name", now)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(r pgx.CollectableRow) (o cluster.Node, err error) {
		var since, until int64
		var agents []byte
		if err := r.Scan(&o.Name, &since, &until, &o.Address, &o.WantedAgents, &agents); err != nil {
			return o, err
		}
		o.Since, o.Until = time.UnixMilli(since), time.UnixMilli(until)
		if err := json.Unmarshal(agents, &o.Agents); err != nil {
			return o, fmt.Errorf("agents of %s: %w", o.Name, err)
		}
		return o, nil
	})
}

// leave takes the node out of the registry. If that fails its entry ends by itself.
func (m *member) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	m.mu.Lock()
	m.agents, m.until = 0, time.Time{}
	m.mu.Unlock()
	c := m.cluster
	var q pgx.Batch
	q.Queue("update slots set node = '', until = 0 where node = $1", c.Name())
	q.Queue("delete from nodes where name = $1 and instance = $2", c.Name(), c.config.Run)
	if err := c.pool.SendBatch(ctx, &q).Close(); err != nil {
		m.membership.Log.Warn("registry: leave", "err", err)
	}
}
