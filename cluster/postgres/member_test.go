package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/freshet/freshet/cluster"
)

// worker is a node that always runs as many agents as it may.
type worker struct {
	cluster.Member
	cluster *Cluster
	working atomic.Int64
	wanted  atomic.Int64
}

func startWorker(t *testing.T, address, name string, wanted int, ttl time.Duration) *worker {
	t.Helper()
	w := &worker{cluster: open(t, address, name, Config{Run: name})}
	w.wanted.Store(int64(wanted))
	ctx, cancel := context.WithCancel(context.Background())
	var err error
	w.Member, err = w.cluster.Join(ctx, cluster.Membership{
		TTL:          ttl,
		Agents:       func() []cluster.Agent { return make([]cluster.Agent, w.working.Load()) },
		WantedAgents: func() int { return int(w.wanted.Load()) },
		OnHeartbeat:  func(context.Context) { w.working.Store(int64(min(w.AllowedAgents(), int(w.wanted.Load())))) },
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = w.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	return w
}

// settle waits until the workers have settled on the wanted numbers of agents.
func settle(t *testing.T, what string, workers []*worker, want ...int) {
	t.Helper()
	var got []int
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(25 * time.Millisecond) {
		got = got[:0]
		same := true
		for i, w := range workers {
			got = append(got, w.AllowedAgents())
			same = same && got[i] == want[i]
		}
		if same {
			return
		}
	}
	t.Fatalf("%s: %v agents, want %v", what, got, want)
}

// watchLimit reports when more agents are allowed than the limit, until the test ends.
func watchLimit(t *testing.T, workers []*worker, limit int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	t.Cleanup(func() { cancel(); <-ended })
	allowed := func() (now [3]int) {
		for i, w := range workers {
			now[i] = w.AllowedAgents()
		}
		return now
	}
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			// Numbers read one after the other stand for one moment only if they are
			// the same when read once more: slots may move in between.
			now := allowed()
			if sum := now[0] + now[1] + now[2]; sum > limit && allowed() == now {
				t.Errorf("%v agents allowed, want %d in all", now, limit)
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
}

// The limit is shared by the living nodes, never exceeded, and follows joins,
// deaths, wishes and orders.
func TestAgentShares(t *testing.T) {
	t.Parallel()
	const ttl = 2 * time.Second
	address := server.Database(t)
	setLimit := func(w *worker, limit int) {
		t.Helper()
		if err := w.cluster.SetAgentLimit(context.Background(), limit); err != nil {
			t.Fatal(err)
		}
	}
	a := startWorker(t, address, "a", 20, ttl)
	settle(t, "no limit", []*worker{a}, 20)
	setLimit(a, 10)
	settle(t, "alone", []*worker{a}, 10)
	b, c := startWorker(t, address, "b", 2, ttl), startWorker(t, address, "c", 20, ttl)
	all := []*worker{a, b, c}
	watchLimit(t, all, 10) // from now on the limit is 10 or falls
	settle(t, "three", all, 4, 2, 4)
	b.wanted.Store(20)
	settle(t, "another wish", all, 4, 3, 3)
	setLimit(c, 3)
	settle(t, "fewer", all, 1, 1, 1)
	setLimit(c, 8)
	settle(t, "more", all, 3, 3, 2)
	c.cluster.pool.Close() // cut off: its slots run out, then they are others'
	settle(t, "one cut off", all, 4, 4, 0)
	if n := len(a.Others()); n != 1 {
		t.Errorf("%d other nodes, want 1", n)
	}
}

// Shares add up to the limit or to all wishes, and nobody gets more than it wished.
func TestFairShare(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		limit  int
		wishes []int
		want   []int
	}{
		{10, []int{20, 20, 20}, []int{4, 3, 3}},
		{10, []int{20, 2, 20}, []int{4, 2, 4}},
		{2, []int{9, 9, 9}, []int{1, 1, 0}},
		{100, []int{5, 6}, []int{5, 6}},
		{0, []int{5}, []int{0}},
		{7, []int{0, cluster.Unlimited}, []int{0, 7}},
	} {
		var nodes []cluster.Node
		for i, w := range tt.wishes {
			nodes = append(nodes, cluster.Node{Name: fmt.Sprint(i), WantedAgents: w})
		}
		for i, want := range tt.want {
			if got := fairShare(tt.limit, nodes, nodes[i].Name); got != want {
				t.Errorf("limit %d, wishes %v: node %d gets %d, want %d", tt.limit, tt.wishes, i, got, want)
			}
		}
	}
}

// A process that starts again takes the place of its predecessor at once; of two that
// work in copies of one data directory one is refused or ends.
func TestCopiesOfOneNode(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	address := server.Database(t)
	join := func(run string, previous ...string) (*member, error) {
		c := open(t, address, "n", Config{Run: run, PreviousRuns: previous})
		_, err := c.Join(ctx, cluster.Membership{TTL: time.Hour})
		return c.member.Load(), err
	}
	first, err := join("run2", "run1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := join("copy", "run1"); !errors.Is(err, cluster.ErrNodeName) {
		t.Errorf("a copy made before the start joined: %v, want ErrNodeName", err)
	}
	if err := first.heartbeat(ctx); err != nil {
		t.Errorf("the first process: %v, want no error", err)
	}
	second, err := join("run3", "run1", "run2")
	if err != nil {
		t.Fatalf("the successor: %v, want no error", err)
	}
	if err := first.heartbeat(ctx); !errors.Is(err, cluster.ErrNodeName) {
		t.Errorf("the first, if it lives still: %v, want ErrNodeName", err)
	}
	if err := second.heartbeat(ctx); err != nil {
		t.Errorf("the successor's next heartbeat: %v, want no error", err)
	}
}
