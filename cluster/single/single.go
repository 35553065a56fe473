// Package single is the cluster of a process that works alone on its store.
package single

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/freshet/freshet/cluster"
)

// Settings keeps the settings of the store; an empty value is none.
type Settings interface {
	Get(ctx context.Context, name string) ([]byte, error)
	Put(ctx context.Context, name string, value []byte) error
}

// Cluster implements cluster.Cluster for one process. Limits and orders last as long as
// the process. It is safe for concurrent use.
type Cluster struct {
	name     string
	settings Settings
	updating sync.Mutex // held while a setting is replaced

	mu        sync.Mutex
	member    *member
	limit     int // of agents, cluster.Unlimited without one
	orders    cluster.Orders
	budgets   map[string]time.Time      // until when their time is taken
	addresses map[string][]*addressSlot // slots that are taken
	forgetAt  int                       // number of addresses at which some are forgotten
}

// addressSlot is a slot of an address that is taken.
type addressSlot struct{ until time.Time }

var _ cluster.Cluster = (*Cluster)(nil)

// New returns the cluster of a process. settings may be nil if no setting is updated.
func New(name string, settings Settings) *Cluster {
	return &Cluster{name: name, settings: settings, limit: cluster.Unlimited, budgets: map[string]time.Time{}, addresses: map[string][]*addressSlot{}, forgetAt: minForgetAt}
}

// Name implements cluster.Cluster.
func (c *Cluster) Name() string { return c.name }

// IsShared implements cluster.Cluster.
func (c *Cluster) IsShared() bool { return false }

// member is the process in its own registry.
type member struct {
	*Cluster
	membership cluster.Membership
	joined     time.Time
}

// Join implements cluster.Cluster.
func (c *Cluster) Join(_ context.Context, m cluster.Membership) (cluster.Member, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.member != nil {
		return nil, fmt.Errorf("registry: %q: %w", c.name, cluster.ErrNodeName)
	}
	c.member = &member{Cluster: c, membership: m.WithDefaults(), joined: time.Now()}
	return c.member, nil
}

// Run implements cluster.Member.
func (m *member) Run(ctx context.Context) error {
	<-ctx.Done()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.Cluster.member = nil
	return nil
}

// AllowedAgents implements cluster.Member.
func (m *member) AllowedAgents() int {
	if limit := m.AgentLimit(); limit != cluster.Unlimited {
		return limit
	}
	return m.membership.WantedAgents()
}

// AgentLimit implements cluster.Member.
func (m *member) AgentLimit() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.limit
}

// Others implements cluster.Member.
func (m *member) Others() []cluster.Node { return nil }

// Orders implements cluster.Member.
func (m *member) Orders() cluster.Orders {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.orders
}

// Registry implements cluster.Cluster.
func (c *Cluster) Registry(context.Context) (*cluster.Registry, error) {
	c.mu.Lock()
	r := &cluster.Registry{AgentLimit: c.limit, Orders: c.orders}
	m := c.member
	c.mu.Unlock()
	if m != nil {
		o := &m.membership
		r.Nodes = []cluster.Node{{
			Name: c.name, Since: m.joined, Until: time.Now().Add(o.TTL), Address: o.Address(), WantedAgents: o.WantedAgents(), Agents: o.Agents(),
		}}
	}
	return r, nil
}

// SetAgentLimit implements cluster.Cluster.
func (c *Cluster) SetAgentLimit(_ context.Context, limit int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limit = max(0, limit)
	return nil
}

// Pause implements cluster.Cluster.
func (c *Cluster) Pause(_ context.Context, paused bool) error {
	c.order(func(o *cluster.Orders) { o.Paused = paused })
	return nil
}

// Stop implements cluster.Cluster.
func (c *Cluster) Stop(_ context.Context, immediately bool) error {
	c.order(func(o *cluster.Orders) { o.Stop, o.Immediately = time.Now(), immediately })
	return nil
}

// order changes the orders and tells the member.
func (c *Cluster) order(change func(*cluster.Orders)) {
	c.mu.Lock()
	change(&c.orders)
	o, m := c.orders, c.member
	c.mu.Unlock()
	if m != nil {
		m.membership.OnOrders(o, o.Stop.After(m.joined))
	}
}

// UpdateSetting implements cluster.Cluster.
func (c *Cluster) UpdateSetting(ctx context.Context, name string, change func([]byte) ([]byte, error)) error {
	c.updating.Lock()
	defer c.updating.Unlock()
	old, err := c.settings.Get(ctx, name)
	if err != nil {
		return err
	}
	value, err := change(old)
	if err != nil {
		return fmt.Errorf("setting %s: %w", name, err)
	}
	return c.settings.Put(ctx, name, value)
}

// Spend implements cluster.Limits.
func (c *Cluster) Spend(_ context.Context, budget string, cost time.Duration) (from time.Time, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	from = time.Now()
	if taken := c.budgets[budget]; taken.After(from) {
		from = taken
	}
	c.budgets[budget] = from.Add(cost)
	return from, nil
}

// EnterAddresses implements cluster.Limits.
func (c *Cluster) EnterAddresses(_ context.Context, slots []cluster.AddressSlot, ttl time.Duration) (release func(context.Context, []time.Duration), blocked int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	for i, s := range slots {
		if c.takenSlots(s.Address, now) >= s.Max {
			return nil, i, nil
		}
	}
	taken := make([]*addressSlot, len(slots))
	for i, s := range slots {
		taken[i] = &addressSlot{now.Add(ttl)}
		c.addresses[s.Address] = append(c.addresses[s.Address], taken[i])
	}
	return func(_ context.Context, rests []time.Duration) {
		c.mu.Lock()
		defer c.mu.Unlock()
		now := time.Now()
		for i, s := range taken {
			if s.until.After(now) { // else it may be another's
				s.until = now.Add(rests[i])
			}
			c.takenSlots(slots[i].Address, now)
		}
		c.forgetAddresses(now)
	}, 0, nil
}

// takenSlots returns how many slots of an address are taken, and forgets the others. The
// caller holds mu.
func (c *Cluster) takenSlots(address string, now time.Time) int {
	taken := slices.DeleteFunc(c.addresses[address], func(s *addressSlot) bool { return !s.until.After(now) })
	if len(taken) == 0 {
		delete(c.addresses, address)
	} else {
		c.addresses[address] = taken
	}
	return len(taken)
}

// forgetAddresses forgets addresses whose slots have all come free, now and then. The
// caller holds mu.
func (c *Cluster) forgetAddresses(now time.Time) {
	if len(c.addresses) < c.forgetAt {
		return
	}
	for address := range c.addresses {
		c.takenSlots(address, now)
	}
	c.forgetAt = max(minForgetAt, 2*len(c.addresses))
}

// minForgetAt is how many addresses are kept before those without taken slots are looked
// for.
const minForgetAt = 1000
