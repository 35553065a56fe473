package postgres

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"
)

// Two nodes that spend from one budget are together as fast as it allows.
func TestSpend(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	address := cluster.Database(t)
	nodes := []*Store{open(t, address, Config{Node: "a"}), open(t, address, Config{Node: "b"})}
	const each, cost = 25, 20 * time.Millisecond
	var mu sync.Mutex
	var wg sync.WaitGroup
	var starts, answers []time.Time
	begin := time.Now()
	for _, s := range nodes {
		for range 4 {
			wg.Go(func() {
				for range each {
					asked := time.Now()
					from, err := s.Spend(ctx, "test", cost)
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					starts, answers = append(starts, from), append(answers, from.Add(time.Since(asked)))
					mu.Unlock()
				}
			})
		}
	}
	wg.Wait()
	// A time is counted from the question; the one that the database meant comes
	// later by no more than the answer took.
	first, last := slices.MinFunc(starts, time.Time.Compare), slices.MaxFunc(answers, time.Time.Compare)
	want := time.Duration(len(starts)-1) * cost
	if got := last.Sub(first); got < want || first.Before(begin) {
		t.Errorf("%d times of %v begin within %v, want %v at least; the first %v after the start", len(starts), cost, got, want, first.Sub(begin))
	}
	// Time that nobody took is gone.
	asked := time.Now()
	from, err := nodes[0].Spend(ctx, "idle", 0)
	if err != nil || from.Before(asked) {
		t.Errorf("an idle budget begins %v before it is asked, %v", asked.Sub(from), err)
	}
}

// An address has so many places for all nodes, whoever waits gets one, and those of a
// dead node come free.
func TestPlaces(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	address := cluster.Database(t)
	nodes := []*Store{open(t, address, Config{Node: "a", Gather: time.Millisecond}), open(t, address, Config{Node: "b", Gather: time.Millisecond})}
	const most = 3
	var mu sync.Mutex
	var wg sync.WaitGroup
	busy, peak := 0, 0
	for n := range 12 {
		s := nodes[n%2]
		wg.Go(func() {
			for had := 0; had < 5; {
				p, ok, err := s.Enter(ctx, "192.0.2.1", most, time.Minute)
				if err != nil {
					t.Error(err)
					return
				}
				if !ok { // all taken
					time.Sleep(time.Millisecond)
					continue
				}
				had++
				mu.Lock()
				busy++
				peak = max(peak, busy)
				mu.Unlock()
				time.Sleep(time.Millisecond)
				mu.Lock()
				busy--
				mu.Unlock()
				if err := s.Leave(ctx, p); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if peak > most {
		t.Errorf("%d places were held at once, at most %d are there", peak, most)
	}
	for n := range most + 1 {
		if _, ok, err := nodes[n%2].Enter(ctx, "192.0.2.2", most, time.Hour); ok != (n < most) || err != nil {
			t.Errorf("place %d: %v, %v", n, ok, err)
		}
	}
	if _, ok, err := nodes[1].Enter(ctx, "192.0.2.3", most, time.Minute); !ok || err != nil {
		t.Errorf("another address: %v, %v", ok, err)
	}
	const life = 50 * time.Millisecond
	taken := time.Now()
	if _, ok, err := nodes[0].Enter(ctx, "192.0.2.4", 1, life); !ok || err != nil {
		t.Errorf("the first place: %v, %v", ok, err)
	}
	for end := taken.Add(2 * time.Minute); ; time.Sleep(time.Millisecond) {
		_, ok, err := nodes[1].Enter(ctx, "192.0.2.4", 1, time.Minute)
		if held := time.Since(taken); err != nil || ok && held < life || !ok && time.Now().After(end) {
			t.Errorf("the place of a dead node after %v: %v, %v", held, ok, err)
		}
		if ok || err != nil || time.Now().After(end) {
			break
		}
	}
}

// Orders reach all nodes; who joins after a stop goes on.
func TestOrders(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	address := cluster.Database(t)
	type told struct {
		Orders
		stop bool
	}
	join := func(name string) (*Member, func() told) {
		var mu sync.Mutex
		var last told
		s := open(t, address, Config{Node: name})
		m, err := s.Join(ctx, Membership{Instance: name, TTL: time.Minute, Ordered: func(o Orders, stop bool) {
			mu.Lock()
			defer mu.Unlock()
			last = told{o, stop}
		}})
		if err != nil {
			t.Fatal(err)
		}
		return m, func() told {
			if err := m.beat(ctx); err != nil {
				t.Fatal(err)
			}
			mu.Lock()
			defer mu.Unlock()
			return last
		}
	}
	a, atA := join("a")
	_, atB := join("b")
	operator := open(t, address, Config{Node: "operator"})
	if err := operator.Pause(ctx, true); err != nil {
		t.Fatal(err)
	}
	if x, y := atA(), atB(); !x.Paused || !y.Paused || x.stop || y.stop {
		t.Errorf("paused: %+v, %+v", x, y)
	}
	if nodes, limit, err := operator.Registry(ctx); len(nodes) != 2 || limit != Unlimited || err != nil {
		t.Errorf("registry: %+v, %d, %v", nodes, limit, err)
	}
	if err := a.store.Pause(ctx, false); err != nil {
		t.Fatal(err)
	}
	if x, y := atA(), atB(); x.Paused || y.Paused {
		t.Errorf("resumed: %+v, %+v", x, y)
	}
	if err := operator.Stop(ctx, true); err != nil {
		t.Fatal(err)
	}
	_, atC := join("c")
	if x, y, z := atA(), atB(), atC(); !x.stop || !x.Now || !y.stop || z.stop {
		t.Errorf("stopped: %+v, %+v; joined later: %+v", x, y, z)
	}
}

// Of orders given at once none is lost.
func TestOrdersAtOnce(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	address := cluster.Database(t)
	a, b := open(t, address, Config{Node: "a"}), open(t, address, Config{Node: "b"})
	for n := range 20 {
		paused := n%2 == 0
		begin := time.Now()
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
		if o, err := a.Orders(ctx); err != nil || o.Paused != paused || o.Stop.Before(begin) {
			t.Fatalf("round %d: %+v, %v; want paused %v, stopped after %v", n, o, err, paused, begin)
		}
	}
}
