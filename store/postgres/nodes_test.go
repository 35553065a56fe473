package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"
)

// member is a node that always runs as many agents as it may.
type member struct {
	*Member
	working atomic.Int64
	wanted  atomic.Int64
	cancel  context.CancelFunc
	ended   chan struct{}
}

func joined(t *testing.T, address, name string, wanted int, life time.Duration) *member {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	m := &member{cancel: cancel, ended: make(chan struct{})}
	m.wanted.Store(int64(wanted))
	s := open(t, address, Config{Node: name, Connections: 2})
	var err error
	m.Member, err = s.Join(ctx, Membership{
		Instance: name, TTL: life,
		Agents: func() []Agent { return make([]Agent, m.working.Load()) },
		Wanted: func() int { return int(m.wanted.Load()) },
		Beat:   func(context.Context) { m.working.Store(int64(min(m.Allowed(), int(m.wanted.Load())))) },
	})
	if err != nil {
		t.Fatal(err)
	}
	go func() { defer close(m.ended); _ = m.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-m.ended })
	return m
}

// wait waits until the nodes have settled on the wanted numbers of agents.
func settle(t *testing.T, what string, members []*member, want ...int) {
	t.Helper()
	var got []int
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(25 * time.Millisecond) {
		got = got[:0]
		same := true
		for i, m := range members {
			got = append(got, m.Allowed())
			same = same && got[i] == want[i]
		}
		if same {
			return
		}
	}
	t.Fatalf("%s: %v agents, want %v", what, got, want)
}

// The limit is shared by the living nodes, never exceeded, and follows joins,
// deaths, wishes and orders.
func TestSlots(t *testing.T) {
	t.Parallel()
	const life = 2 * time.Second
	address := cluster.Database(t)
	a := joined(t, address, "a", 20, life)
	settle(t, "no limit", []*member{a}, Unlimited)
	if err := a.SetLimit(context.Background(), 10); err != nil {
		t.Fatal(err)
	}
	settle(t, "alone", []*member{a}, 10)
	over := make(chan string, 1)
	watch, stop := context.WithCancel(context.Background())
	defer stop()
	b, c := joined(t, address, "b", 2, life), joined(t, address, "c", 20, life)
	all := []*member{a, b, c}
	go func() { // from now on the limit is 10 or falling: never more than 10 allowed
		allowed := func() (now [3]int) {
			for i, m := range all {
				now[i] = min(m.Allowed(), 1000)
			}
			return now
		}
		for watch.Err() == nil {
			// Numbers read one after the other stand for one moment only if they are
			// the same when read once more: slots may move in between.
			now := allowed()
			if sum := now[0] + now[1] + now[2]; sum > 10 && allowed() == now {
				select {
				case over <- fmt.Sprintf("%v agents allowed", now):
				default:
				}
			}
			time.Sleep(time.Millisecond)
		}
	}()
	settle(t, "three", all, 4, 2, 4)
	b.wanted.Store(20)
	settle(t, "another wish", all, 4, 3, 3)
	if err := c.SetLimit(context.Background(), 3); err != nil {
		t.Fatal(err)
	}
	settle(t, "fewer", all, 1, 1, 1)
	if err := c.SetLimit(context.Background(), 8); err != nil {
		t.Fatal(err)
	}
	settle(t, "more", all, 3, 3, 2)
	c.store.pool.Close() // cut off: its slots run out, then they are others'
	settle(t, "one cut off", all, 4, 4, 0)
	if n := len(a.Others()); n != 1 {
		t.Errorf("%d other nodes, want 1", n)
	}
	select {
	case what := <-over:
		t.Error("limit 10:", what)
	default:
	}
}

// Two living processes cannot have one name, but a process may come again.
func TestNames(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	address := cluster.Database(t)
	join := func(instance string) error {
		_, err := open(t, address, Config{Node: "same", Connections: 2}).Join(ctx, Membership{Instance: instance, TTL: time.Minute})
		return err
	}
	if err := join("1"); err != nil {
		t.Fatal(err)
	}
	if err := join("1"); err != nil {
		t.Error("the same again:", err)
	}
	if err := join("2"); !errors.Is(err, ErrName) {
		t.Error("another:", err)
	}
}

// Shares add up to the limit or to all wishes, and nobody gets more than it
// wished.
func TestFair(t *testing.T) {
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
		{7, []int{0, Unlimited}, []int{0, 7}},
	} {
		var nodes []Node
		for i, w := range tt.wishes {
			nodes = append(nodes, Node{Name: fmt.Sprint(i), Wanted: w})
		}
		for i, want := range tt.want {
			if got := fair(tt.limit, nodes, nodes[i].Name); got != want {
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
	address := cluster.Database(t)
	join := func(instance string, before ...string) (*Member, error) {
		return open(t, address, Config{Node: "n"}).Join(ctx, Membership{Instance: instance, Before: before, TTL: time.Hour})
	}
	first, err := join("run2", "run1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := join("copy", "run1"); !errors.Is(err, ErrName) {
		t.Errorf("a copy made before the start joined: %v, want ErrName", err)
	}
	if err := first.beat(ctx); err != nil {
		t.Errorf("the first process: %v", err)
	}
	second, err := join("run3", "run1", "run2")
	if err != nil {
		t.Fatalf("the successor: %v", err)
	}
	if err := first.beat(ctx); !errors.Is(err, ErrName) {
		t.Errorf("the first, if it lives still: %v, want ErrName", err)
	}
	if err := second.beat(ctx); err != nil {
		t.Errorf("the successor's next sign of life: %v", err)
	}
}
