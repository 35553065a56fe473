// Package cluster declares what the processes that share a store agree on: who
// lives, how many agents may work, what operators ordered, a budget of requests,
// the slots of addresses, and settings. cluster/single implements it for a process
// alone, cluster/postgres for many processes on one database; cluster/clustertest
// is the suite that both pass.
package cluster

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"time"

	"github.com/freshet/freshet/store"
)

// Unlimited is the number of agents where nothing limits it.
const Unlimited = math.MaxInt32

// ErrNodeName is the error of a process whose name another living process has.
var ErrNodeName = errors.New("another living process has the same node name")

// Cluster is the whole contract. All methods may be called from any goroutine, and all
// but Join's membership without being a member.
type Cluster interface {
	Limits

	// Name returns the name of this process among the others.
	Name() string
	// IsShared reports whether other processes may work on the same store.
	IsShared() bool

	// Join registers this process; the error is ErrNodeName if another living process
	// has its name. Member.Run keeps it registered. A process joins once.
	Join(ctx context.Context, m Membership) (Member, error)
	// Registry returns the living members and what holds for all of them.
	Registry(ctx context.Context) (*Registry, error)

	// SetAgentLimit limits the agents of all members together. It holds at a member
	// of this process when it returns, and everywhere after one heartbeat.
	SetAgentLimit(ctx context.Context, limit int) error
	// Pause lets all members start no new work, or resumes it. Members hear of it with
	// their next heartbeat.
	Pause(ctx context.Context, paused bool) error
	// Stop ends all processes that have joined by now; immediately gives up pages
	// under way.
	Stop(ctx context.Context, immediately bool) error

	// UpdateSetting replaces a setting of the store by what change makes of it in one
	// step: no concurrent update is lost. An empty value is none, and deletes the
	// setting. change may be called again, with what the setting is then. If it fails,
	// nothing changes.
	UpdateSetting(ctx context.Context, name string, change func(old []byte) ([]byte, error)) error
}

// Limits bound the requests of all processes together.
type Limits interface {
	// Spend takes time of a budget and returns from when on that time is the caller's.
	// A budget of r requests a second holds if each request costs 1/r. Time that
	// nobody took is gone.
	Spend(ctx context.Context, budget string, cost time.Duration) (from time.Time, err error)
	AddressLimit
}

// AddressLimit bounds how many hosts of one server all processes ask at once: a server
// with a thousand names is one machine.
type AddressLimit interface {
	// EnterAddresses takes a slot of each address, or none: then release is nil and
	// blocked the index of one that has none free. The slots are taken until release is
	// called and the rest given for each has passed, or else for ttl.
	EnterAddresses(ctx context.Context, slots []AddressSlot, ttl time.Duration) (release func(ctx context.Context, rests []time.Duration), blocked int, err error)
}

// AddressSlot is one of Max slots of an address.
type AddressSlot struct {
	Address string
	Max     int
}

// Membership describes a process that joins.
type Membership struct {
	// TTL is the time without a heartbeat after which the process counts as dead and
	// its agents as others'. Default store.DefaultLease.
	TTL time.Duration
	// WantedAgents returns how many agents the process runs by its own configuration.
	// nil is Unlimited.
	WantedAgents func() int
	// Agents, if not nil, returns the agents at work.
	Agents func() []Agent
	// Address, if not nil, returns the URL of the console, "" without one.
	Address func() string
	// OnOrders, if not nil, is called after Join when there are other orders than
	// Member.Orders returned then. stop reports whether they end this process.
	OnOrders func(o Orders, stop bool)
	// OnHeartbeat, if not nil, is called by Run after every heartbeat: other processes
	// may have changed what is shared. A process alone has no heartbeats.
	OnHeartbeat func(context.Context)
	Log         *slog.Logger
}

// Member is this process in the registry.
type Member interface {
	// Run stays in the registry until ctx ends, then leaves it. The error is
	// ErrNodeName when another process has taken the name over.
	Run(ctx context.Context) error
	// AllowedAgents returns how many agents this process may run now: its share of the
	// limit, or what it wants without one. It is 0 once the process has been out of
	// reach of the others for so long that its share may be theirs. A process alone may
	// run the whole limit, whatever it wanted.
	AllowedAgents() int
	// AgentLimit returns the limit of all members together, or Unlimited.
	AgentLimit() int
	// Others returns the other living members as of the last heartbeat.
	Others() []Node
	// Orders returns the orders as of the last heartbeat.
	Orders() Orders
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

// Node is a member as others see it.
type Node struct {
	Name         string
	Since        time.Time
	Until        time.Time // when it counts as dead without a further heartbeat
	Address      string
	WantedAgents int
	Agents       []Agent
}

// Orders are what operators told all members.
type Orders struct {
	Paused bool `json:"paused,omitempty"`
	// Stop ends every process that joined before; Immediately gives up its pages under
	// way.
	Stop        time.Time `json:"stop,omitzero"`
	Immediately bool      `json:"now,omitempty"`
}

// Registry is what is known of all members together.
type Registry struct {
	Nodes      []Node // living, by name
	AgentLimit int    // Unlimited without one
	Orders     Orders
}

// WithDefaults returns m with defaults in place of what is not set.
func (m Membership) WithDefaults() Membership {
	if m.TTL <= 0 {
		m.TTL = store.DefaultLease
	}
	if m.WantedAgents == nil {
		m.WantedAgents = func() int { return Unlimited }
	}
	if m.Agents == nil {
		m.Agents = func() []Agent { return nil }
	}
	if m.Address == nil {
		m.Address = func() string { return "" }
	}
	if m.OnOrders == nil {
		m.OnOrders = func(Orders, bool) {}
	}
	if m.OnHeartbeat == nil {
		m.OnHeartbeat = func(context.Context) {}
	}
	if m.Log == nil {
		m.Log = slog.New(slog.DiscardHandler)
	}
	return m
}
