package app

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/freshet/freshet/console"
	"github.com/freshet/freshet/index"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/store/postgres"
)

// Fleet tells from a database how the nodes on it do together. What each counts
// for itself, such as errors and freshness, is not in it.
func Fleet(ctx context.Context, s *postgres.Store, ix index.Engine) (*console.Status, error) {
	st, err := s.Stats(ctx)
	if err != nil {
		return nil, err
	}
	nodes, limit, err := s.Registry(ctx)
	if err != nil {
		return nil, err
	}
	orders, err := s.Orders(ctx)
	if err != nil {
		return nil, err
	}
	is, err := ix.Stats(ctx)
	if err != nil {
		return nil, err
	}
	out := &console.Status{
		State: "running", Now: time.Now(), Pages: st.States[store.OK], URLs: st.URLs, Queue: st.New, Hosts: st.Hosts, HostsWaiting: max(0, st.Due-int64(st.Leases)),
		Indexed: int64(is.Documents), Work: []console.Agent{}, Sources: []console.Source{},
	}
	switch {
	case orders.Paused:
		out.State = "paused"
	case len(nodes) == 0:
		out.State = "no node is alive"
	}
	wanted := 0
	for _, n := range nodes {
		if out.Started.IsZero() || n.Since.Before(out.Started) {
			out.Started = n.Since
		}
		wanted += n.Wanted
		out.Nodes = append(out.Nodes, console.NodeStatus{Name: n.Name, Address: n.Address, Since: n.Since, Agents: len(n.Agents)})
		out.Agents.Fetch += len(n.Agents)
		for _, a := range n.Agents {
			out.Work = append(out.Work, console.Agent{Name: n.Name + "/" + a.Name, Zone: a.Zone, Since: a.Since, Last: a.Last, Queue: a.Queue, Delay: a.Delay})
		}
	}
	if out.Started.IsZero() {
		out.Started = out.Now
	}
	out.Agents.FetchLimit = wanted
	if limit != postgres.Unlimited {
		out.Agents.FetchLimit = limit
	}
	slices.SortFunc(out.Work, func(a, b console.Agent) int { return cmp.Compare(a.Zone, b.Zone) })
	return out, nil
}
