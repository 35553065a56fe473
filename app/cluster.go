package app

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/freshet/freshet/cluster"
	"github.com/freshet/freshet/config"
	"github.com/freshet/freshet/console"
	"github.com/freshet/freshet/crawl"
	"github.com/freshet/freshet/index"
	"github.com/freshet/freshet/store"
)

// join makes the node a member of its cluster. onHeartbeat is that of the membership.
func (n *Node) join(ctx context.Context, c *config.Config, onHeartbeat func(context.Context)) (err error) {
	n.member, err = n.parts.Cluster.Join(ctx, cluster.Membership{
		TTL: c.Lease, WantedAgents: func() int { return c.Crawl.Agents }, OnOrders: n.obey, OnHeartbeat: onHeartbeat, Log: n.log,
		Agents: func() []cluster.Agent {
			if r := n.ready.Load(); r != nil {
				return r.Status().Agents
			}
			return nil
		},
		Address: func() string {
			if a := n.address.Load(); a != nil {
				return *a
			}
			return ""
		},
	})
	return err
}

// obey does what all nodes are told.
func (n *Node) obey(o cluster.Orders, stop bool) {
	switch {
	case stop:
		n.log.Info("all nodes are told to end", "now", o.Immediately)
		n.endRun(!o.Immediately)
	case o.Paused:
		n.robot.Pause()
	default:
		n.robot.Resume()
	}
}

// agentLimit returns how many agents may live: the node's share of the cluster's limit,
// or fewer by the throttle. The robot calls it with its lock held: it asks nobody.
func (n *Node) agentLimit() int { return min(n.member.AllowedAgents(), n.throttleLimit()) }

// limitRobot lets a robot keep its budget and the slots of addresses with the other
// processes of the cluster.
func limitRobot(rc *crawl.Config, l cluster.Limits) {
	rc.AddressLimit = l
	rc.Spend = func(ctx context.Context, cost time.Duration) (time.Time, error) { return l.Spend(ctx, "crawl", cost) }
}

// followInterval is how often a node takes over changes of dead nodes and clicks of
// living ones.
const followInterval = time.Minute

// followOtherNodes takes over what other nodes have changed. Only the member's goroutine
// calls it.
func (n *Node) followOtherNodes(ctx context.Context) {
	if err := n.readSources(ctx); err != nil && ctx.Err() == nil {
		n.log.Warn("sources of other nodes", "err", err)
	}
	if now := time.Now(); now.Sub(n.followed) > followInterval {
		n.followed = now
		if err := n.parts.adoptChanges(ctx); err != nil && ctx.Err() == nil {
			n.log.Warn("changes of dead nodes", "err", err)
		}
		if err := n.clicks.Load(ctx, n.parts.Store, now); err != nil && ctx.Err() == nil {
			n.log.Warn("clicks of other nodes", "err", err)
		}
	}
}

// addOtherNodes adds the other nodes and their agents to a status.
func (n *Node) addOtherNodes(s *console.Status) {
	limit := n.member.AgentLimit()
	s.Agents.FetchLimit = n.config.Crawl.Agents
	if n.parts.Cluster.IsShared() {
		for i := range s.Work {
			s.Work[i].Name = n.parts.Cluster.Name() + "/" + s.Work[i].Name
		}
	}
	addNodes(s, n.member.Others(), limit)
}

// addNodes adds nodes, their agents and how many agents they want to a status; limit is
// that of all nodes.
func addNodes(s *console.Status, nodes []cluster.Node, limit int) {
	for _, o := range nodes {
		s.Nodes = append(s.Nodes, console.NodeStatus{Name: o.Name, Address: o.Address, Since: o.Since, Agents: len(o.Agents)})
		s.Agents.Fetch += len(o.Agents)
		s.Agents.FetchLimit += o.WantedAgents
		for _, a := range o.Agents {
			a.Name = o.Name + "/" + a.Name
			s.Work = append(s.Work, a)
		}
	}
	if limit != cluster.Unlimited {
		s.Agents.FetchLimit = limit
	}
	slices.SortFunc(s.Work, func(a, b cluster.Agent) int { return cmp.Compare(a.Zone, b.Zone) })
}

// ClusterStatus returns the status of all nodes of a cluster, from its store and index.
// It lacks what each node counts for itself, such as errors and freshness.
func ClusterStatus(ctx context.Context, s store.Store, c cluster.Cluster, ix index.Engine) (*console.Status, error) {
	st, err := s.Stats(ctx)
	if err != nil {
		return nil, err
	}
	r, err := c.Registry(ctx)
	if err != nil {
		return nil, err
	}
	is, err := ix.Stats(ctx)
	if err != nil {
		return nil, err
	}
	out := &console.Status{
		State: "running", Now: time.Now(), Pages: st.States[store.OK], URLs: st.URLs, Queue: st.New, Hosts: st.Hosts, HostsWaiting: max(0, st.Due-int64(st.Leases)),
		Indexed: int64(is.Documents), Work: []cluster.Agent{}, Sources: []console.Source{},
	}
	switch {
	case r.Orders.Paused:
		out.State = "paused"
	case len(r.Nodes) == 0:
		out.State = "no node is alive"
	}
	out.Started = out.Now
	for _, o := range r.Nodes {
		if o.Since.Before(out.Started) {
			out.Started = o.Since
		}
	}
	addNodes(out, r.Nodes, r.AgentLimit)
	return out, nil
}
