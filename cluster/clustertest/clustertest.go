// Package clustertest is the suite that every implementation of cluster.Cluster
// passes.
package clustertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/freshet/freshet/cluster"
)

// Implementation is what is tested.
type Implementation struct {
	// MaxNodes is how many processes a cluster may have.
	MaxNodes int
	// New makes a cluster without members. open returns it as a process with a name
	// sees it, each time another process.
	New func(t *testing.T) (open func(t *testing.T, name string) cluster.Cluster)
}

// Run runs the suite.
func Run(t *testing.T, i Implementation) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, *rig){
		"membership": testMembership, "names": testNames, "agent limit": testAgentLimit,
		"orders": testOrders, "orders at once": testOrdersAtOnce,
		"budget": testBudget, "addresses": testAddresses, "times of addresses": testAddressTimes, "several addresses": testSeveralAddresses,
		"settings": testSettings, "deleted settings": testDeletedSettings,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, &rig{Implementation: i, open: i.New(t)})
		})
	}
}

// patience is how long what members agree on may take: much longer than a heartbeat.
const patience = 2 * time.Minute

// rig is a cluster under test.
type rig struct {
	Implementation
	open func(t *testing.T, name string) cluster.Cluster
}

// processes opens up to n processes.
func (r *rig) processes(t *testing.T, n int) (all []cluster.Cluster) {
	t.Helper()
	for i := range min(n, r.MaxNodes) {
		all = append(all, r.open(t, fmt.Sprintf("node%d", i)))
	}
	return all
}

// join lets a process join and run until the test or the returned function ends it.
func join(t *testing.T, c cluster.Cluster, m cluster.Membership) (cluster.Member, func()) {
	t.Helper()
	if m.TTL == 0 {
		m.TTL = time.Second
	}
	member, err := c.Join(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := member.Run(ctx); err != nil {
			t.Errorf("Run of %s: %v, want nil", c.Name(), err)
		}
	}()
	leave := func() { cancel(); <-ended }
	t.Cleanup(leave)
	return member, leave
}

// eventually waits until check reports no difference.
func eventually(t *testing.T, what string, check func() (difference string)) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		difference := check()
		if difference == "" {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: %s", what, difference)
		}
	}
}

// The registry shows each member from its Join until it leaves.
func testMembership(t *testing.T, r *rig) {
	ctx := t.Context()
	all := r.processes(t, 3)
	began := time.Now()
	var members []cluster.Member
	var leave []func()
	for i, c := range all {
		if c.IsShared() != (r.MaxNodes > 1) {
			t.Errorf("IsShared() = %v, want %v", c.IsShared(), r.MaxNodes > 1)
		}
		m, end := join(t, c, cluster.Membership{
			WantedAgents: func() int { return 4 + i }, Address: func() string { return "http://" + c.Name() },
			Agents: func() []cluster.Agent { return []cluster.Agent{{Name: "agent", Zone: c.Name(), Queue: i}} },
		})
		members, leave = append(members, m), append(leave, end)
	}
	registry, err := all[0].Registry(ctx)
	if err != nil || len(registry.Nodes) != len(all) || registry.AgentLimit != cluster.Unlimited || registry.Orders != (cluster.Orders{}) {
		t.Fatalf("registry %+v, %v, want %d nodes without limit and orders", registry, err, len(all))
	}
	for i := range registry.Nodes {
		o, name := &registry.Nodes[i], all[i].Name()
		if o.Name != name || o.WantedAgents != 4+i || o.Address != "http://"+name || len(o.Agents) != 1 || o.Agents[0].Zone != name || o.Agents[0].Queue != i {
			t.Errorf("node %d is %+v, want what %s joined with", i, o, name)
		}
		if o.Since.Before(began.Add(-time.Millisecond)) || !o.Until.After(time.Now()) {
			t.Errorf("%s is alive from %v until %v, want from %v until later than now", name, o.Since, o.Until, began)
		}
	}
	for i, m := range members {
		eventually(t, "others of "+all[i].Name(), func() string {
			if n := len(m.Others()); n != len(all)-1 {
				return fmt.Sprintf("%d, want %d", n, len(all)-1)
			}
			return ""
		})
	}
	for _, end := range leave {
		end()
	}
	if registry, err = all[0].Registry(ctx); err != nil || len(registry.Nodes) != 0 {
		t.Errorf("%+v, %v after all have left, want no nodes", registry, err)
	}
}

// Two living processes cannot have one name.
func testNames(t *testing.T, r *rig) {
	join(t, r.open(t, "same"), cluster.Membership{TTL: time.Minute})
	if _, err := r.open(t, "same").Join(t.Context(), cluster.Membership{}); !errors.Is(err, cluster.ErrNodeName) {
		t.Errorf("a second process of the same name joined: %v, want ErrNodeName", err)
	}
}

// Members together never run more agents than the limit, and as many as it and their
// wishes allow.
func testAgentLimit(t *testing.T, r *rig) {
	all := r.processes(t, 3)
	wanted := []int{20, 2, 20}
	var members []cluster.Member
	for i, c := range all {
		m, _ := join(t, c, cluster.Membership{WantedAgents: func() int { return wanted[i] }})
		if got := m.AllowedAgents(); got != wanted[i] || m.AgentLimit() != cluster.Unlimited {
			t.Errorf("%s may run %d of %d agents without a limit, want %d of %d", c.Name(), got, m.AgentLimit(), wanted[i], cluster.Unlimited)
		}
		members = append(members, m)
	}
	for _, limit := range []int{10, 3, 0, 7} {
		if err := all[0].SetAgentLimit(t.Context(), limit); err != nil {
			t.Fatal(err)
		}
		if got := members[0].AllowedAgents(); got > limit || members[0].AgentLimit() != limit {
			t.Errorf("%d agents allowed of %d at once after the limit was set to %d", got, members[0].AgentLimit(), limit)
		}
		eventually(t, fmt.Sprintf("limit %d", limit), func() string {
			sum := 0
			var each []int
			for _, m := range members {
				each = append(each, m.AllowedAgents())
				sum += each[len(each)-1]
			}
			if sum == limit {
				return ""
			}
			return fmt.Sprintf("%v agents allowed, want %d in all", each, limit)
		})
		if registry, err := all[len(all)-1].Registry(t.Context()); err != nil || registry.AgentLimit != limit {
			t.Errorf("registry %+v, %v, want the limit %d", registry, err, limit)
		}
	}
}

// told are the orders that a member was told last.
type told struct {
	mu     sync.Mutex
	orders cluster.Orders
	stop   bool
}

func (l *told) set(o cluster.Orders, stop bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.orders, l.stop = o, stop
}

func (l *told) want(paused, stop bool) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.orders.Paused == paused && l.stop == stop && l.orders.Immediately == stop {
		return ""
	}
	return fmt.Sprintf("told %+v, stop %v; want paused %v, stop at once %v", l.orders, l.stop, paused, stop)
}

// Orders reach all members, also who joins later; a stop ends only who had joined.
func testOrders(t *testing.T, r *rig) {
	ctx := t.Context()
	all := r.processes(t, 3)
	early := all[:max(1, len(all)-1)]
	last := make([]told, len(all))
	var members []cluster.Member
	for i, c := range early {
		m, _ := join(t, c, cluster.Membership{OnOrders: last[i].set})
		members = append(members, m)
	}
	everybody := func(what string, paused, stop bool) {
		t.Helper()
		for i := range members {
			eventually(t, what+" at "+all[i].Name(), func() string { return last[i].want(paused, stop) })
			if o := members[i].Orders(); o.Paused != paused {
				t.Errorf("%s: %s knows %+v, want paused %v", what, all[i].Name(), o, paused)
			}
		}
	}
	operator := all[len(all)-1]
	if err := operator.Pause(ctx, true); err != nil {
		t.Fatal(err)
	}
	everybody("paused", true, false)
	if registry, err := operator.Registry(ctx); err != nil || !registry.Orders.Paused {
		t.Errorf("registry %+v, %v, want it paused", registry, err)
	}
	if err := operator.Pause(ctx, false); err != nil {
		t.Fatal(err)
	}
	everybody("resumed", false, false)
	if err := operator.Pause(ctx, true); err != nil {
		t.Fatal(err)
	}
	everybody("paused again", true, false)
	if err := operator.Stop(ctx, true); err != nil {
		t.Fatal(err)
	}
	everybody("stopped", true, true)
	if len(early) == len(all) {
		return
	}
	late := len(all) - 1
	m, _ := join(t, all[late], cluster.Membership{OnOrders: last[late].set})
	if o := m.Orders(); !o.Paused {
		t.Errorf("who joins while all are paused knows %+v", o)
	}
	if err := operator.Pause(ctx, false); err != nil {
		t.Fatal(err)
	}
	eventually(t, "resumed at who joined after the stop", func() string {
		if o := m.Orders(); o.Paused {
			return fmt.Sprintf("knows %+v", o)
		}
		return ""
	})
	if last[late].mu.Lock(); last[late].stop {
		t.Error("a stop ended a process that joined later")
	}
	last[late].mu.Unlock()
}

// Of orders given at once none is lost.
func testOrdersAtOnce(t *testing.T, r *rig) {
	ctx := t.Context()
	all := r.processes(t, 2)
	a, b := all[0], all[len(all)-1]
	for n := range 20 {
		paused := n%2 == 0
		began := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := a.Pause(ctx, paused); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			if err := b.Stop(ctx, false); err != nil {
				t.Error(err)
			}
		})
		wg.Wait()
		if registry, err := a.Registry(ctx); err != nil || registry.Orders.Paused != paused || registry.Orders.Stop.Before(began) {
			t.Fatalf("round %d: %+v, %v; want paused %v, stopped after %v", n, registry, err, paused, began)
		}
	}
}
