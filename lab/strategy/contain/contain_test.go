package contain

import (
	"cmp"
	"errors"
	"math"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// small returns an environment whose buffers are tiny, so that everything spills.
func small(t testing.TB) *Env {
	e := NewEnv(t.TempDir(), 0, 0)
	e.blockBytes, e.sortedKept = 32, 16
	return e
}

// empty checks that containers that were freed left neither files nor counts.
func empty(t testing.TB, e *Env) {
	files, err := os.ReadDir(e.Dir)
	if err != nil || len(files) > 0 {
		t.Errorf("%d files left, err %v", len(files), err)
	}
	if e.memory != 0 || e.disk != 0 {
		t.Errorf("%d bytes of memory, %d of disk counted at the end", e.memory, e.disk)
	}
}

// sequence is what the model tests need of a container.
type sequence interface {
	Sequence
	Free() error
}

// Whatever is pushed and popped, a container does what a slice does.
func TestQueueAndStackAreWhatSlicesAre(t *testing.T) {
	t.Parallel()
	type maker struct {
		name string
		make func(*Env) sequence
		lifo bool
		each func(sequence, func(int64) error) error
	}
	for _, m := range []maker{
		{"queue of nodes", func(e *Env) sequence { return NewQueue[uint32](e) }, false, func(s sequence, f func(int64) error) error { return s.(*Queue[uint32]).Each(f) }},
		{"queue of words", func(e *Env) sequence { return NewQueue[uint64](e) }, false, func(s sequence, f func(int64) error) error { return s.(*Queue[uint64]).Each(f) }},
		{"stack of nodes", func(e *Env) sequence { return NewStack[uint32](e) }, true, func(s sequence, f func(int64) error) error { return s.(*Stack[uint32]).Each(f) }},
		{"stack of words", func(e *Env) sequence { return NewStack[uint64](e) }, true, func(s sequence, f func(int64) error) error { return s.(*Stack[uint64]).Each(f) }},
	} {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			env := small(t)
			rapid.Check(t, func(r *rapid.T) {
				s := m.make(env)
				var model []int64
				next := int64(0)
				for _, burst := range rapid.SliceOfN(rapid.IntRange(-60, 60), 1, 12).Draw(r, "bursts") {
					for ; burst > 0; burst-- {
						must(r, s.Push(next))
						model = append(model, next)
						next++
					}
					for ; burst < 0 && len(model) > 0; burst++ {
						at := 0
						if m.lifo {
							at = len(model) - 1
						}
						top, err := s.Top()
						must(r, err)
						got, err := s.Pop()
						must(r, err)
						if got != model[at] || top != got {
							r.Fatalf("popped %d, top %d, want %d", got, top, model[at])
						}
						model = slices.Delete(model, at, at+1)
					}
					if s.Len() != len(model) {
						r.Fatalf("%d elements, want %d", s.Len(), len(model))
					}
				}
				var all []int64
				must(r, m.each(s, func(v int64) error { all = append(all, v); return nil }))
				if !slices.Equal(all, model) {
					r.Fatalf("holds %v, want %v", all, model)
				}
				must(r, s.Free())
			})
			empty(t, env)
		})
	}
}

func must(t interface{ Fatal(...any) }, err error) {
	if err != nil {
		t.Fatal(err)
	}
}

// The greatest comes first, those of one key in the order of their pushes, with
// everything spilled and runs merged.
func TestSortedIsAStableSort(t *testing.T) {
	t.Parallel()
	type kv struct{ key, val int64 }
	env := small(t)
	rapid.Check(t, func(r *rapid.T) {
		s := NewSorted(env)
		var model []kv
		keys := rapid.Int64Range(-20, 20)
		n := int64(0)
		for _, burst := range rapid.SliceOfN(rapid.IntRange(-100, 150), 1, 5).Draw(r, "bursts") {
			for ; burst > 0; burst-- {
				e := kv{keys.Draw(r, "key"), n}
				must(r, s.PushKey(IntKey(e.key), e.val))
				model = append(model, e)
				n++
			}
			slices.SortStableFunc(model, func(a, b kv) int { return cmp.Compare(b.key, a.key) })
			c := NewSorted(env)
			must(r, c.CopyFrom(s))
			for i := 0; i < -burst && i < len(model); i++ {
				for _, q := range []*Sorted{s, c} {
					top, _ := q.Top()
					got, err := q.Pop()
					must(r, err)
					if got != model[i].val || top != got {
						r.Fatalf("popped %d, top %d, want %v", got, top, model[i])
					}
				}
			}
			model = model[min(len(model), max(0, -burst)):]
			if s.Len() != len(model) || c.Len() != len(model) {
				r.Fatalf("%d elements, a copy %d, want %d", s.Len(), c.Len(), len(model))
			}
			must(r, c.Free())
		}
		must(r, s.Free())
	})
	empty(t, env)
}

func TestRunsAreMerged(t *testing.T) {
	t.Parallel()
	env := small(t)
	s := NewSorted(env)
	n := 16 * maxRuns * 3
	for i := range n {
		must(t, s.PushKey(IntKey(int64(i*7919%n)), int64(i*7919%n)))
	}
	if len(s.runs) > maxRuns {
		t.Errorf("%d runs", len(s.runs))
	}
	for want := int64(n - 1); want >= 0; want-- {
		if got, err := s.Pop(); err != nil || got != want {
			t.Fatalf("popped %d, want %d: %v", got, want, err)
		}
	}
	must(t, s.Free())
	empty(t, env)
}

func TestKeysAreInTheOrderOfTheirNumbers(t *testing.T) {
	t.Parallel()
	reals := []float64{math.Inf(-1), -1e300, -2, -1e-300, 0, 1e-300, 1, 2, 1e300, math.Inf(1)}
	for i := 1; i < len(reals); i++ {
		if RealKey(reals[i-1]) >= RealKey(reals[i]) {
			t.Errorf("%g is not below %g", reals[i-1], reals[i])
		}
	}
	if RealKey(math.Copysign(0, -1)) != RealKey(0) || RealKey(math.NaN()) >= RealKey(math.Inf(-1)) {
		t.Error("-0 is not 0, or NaN is not below everything")
	}
	for i, v := range []int64{math.MinInt64, -1, 0, 1, math.MaxInt64} {
		if i > 0 && IntKey(v-1) >= IntKey(v) {
			t.Errorf("%d is not below %d", v-1, v)
		}
	}
}

// An aoq does what a list of lists does: numbers, order, the longest queue.
func TestByServerIsAListOfLists(t *testing.T) {
	t.Parallel()
	const servers = 7
	env := small(t)
	rapid.Check(t, func(r *rapid.T) {
		server := func(n uint32) int { return int(n) % servers }
		a, err := NewByServer(env, servers, server)
		must(r, err)
		var model []modelQueue
		next := int64(0)
		drop := func(i int) {
			last := len(model) - 1
			model[i] = model[last]
			model = model[:last]
		}
		asks := rapid.Bool().Draw(r, "asks for the largest")
		for range rapid.IntRange(1, 12).Draw(r, "turns") {
			switch what := rapid.IntRange(0, 3).Draw(r, "what"); {
			case what < 2:
				for range rapid.IntRange(1, 80).Draw(r, "pushes") {
					v := next
					if what == 1 {
						v = v / servers * servers // one server's queue becomes long
					}
					must(r, a.Push(v))
					i := slices.IndexFunc(model, func(q modelQueue) bool { return q.server == server(uint32(v)) })
					if i < 0 {
						i = len(model)
						model = append(model, modelQueue{server: server(uint32(v))})
					}
					model[i].nodes = append(model[i].nodes, v)
					next++
				}
			case len(model) > 0 && what == 2:
				for range rapid.IntRange(1, 80).Draw(r, "pops") {
					if len(model) == 0 {
						break
					}
					i := rapid.IntRange(0, len(model)-1).Draw(r, "i")
					want := model[i].nodes[0]
					if top, got := a.TopOf(i), a.PopOf(i); got != want || top != got {
						r.Fatalf("popped %d, top %d of queue %d, want %d", got, top, i, want)
					}
					if model[i].nodes = model[i].nodes[1:]; len(model[i].nodes) == 0 {
						drop(i)
					}
				}
			case len(model) > 0:
				i := rapid.IntRange(0, len(model)-1).Draw(r, "i")
				a.Drop(i)
				drop(i)
			}
			checkByServer(r, a, model, asks)
		}
		must(r, a.Free())
	})
	empty(t, env)
}

// modelQueue is the model of one queue of a ByServer.
type modelQueue struct {
	server int
	nodes  []int64
}

// checkByServer compares a with its model; asksLargest says whether Largest is asked.
func checkByServer(r *rapid.T, a *ByServer, model []modelQueue, asksLargest bool) {
	total := 0
	for i, q := range model {
		total += len(q.nodes)
		var got []int64
		must(r, a.EachOf(i, func(v int64) error { got = append(got, v); return nil }))
		if a.Server(i) != q.server || a.Find(int64(q.server)) != i || !slices.Equal(got, q.nodes) {
			r.Fatalf("queue %d of server %d: got %v, want %v", i, a.Server(i), got, q)
		}
	}
	if a.Len() != len(model) || a.Total() != total {
		r.Fatalf("got %d queues of %d nodes, want %d of %d", a.Len(), a.Total(), len(model), total)
	}
	if !asksLargest || len(model) == 0 {
		return
	}
	want := slices.MinFunc(model, func(p, q modelQueue) int {
		return cmp.Or(cmp.Compare(len(q.nodes), len(p.nodes)), cmp.Compare(p.server, q.server))
	})
	if got := a.Largest(); a.Server(got) != want.server {
		r.Fatalf("server of the largest queue: got %d, want %d", a.Server(got), want.server)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	env := small(t)
	env.MaxMemory = 1000
	push := func(s interface{ Push(int64) error }, n int) (err error) {
		for i := range n {
			if err = s.Push(int64(i)); err != nil {
				return err
			}
		}
		return nil
	}
	if err := push(NewQueue[uint32](env), 100_000); err != nil {
		t.Errorf("a spilling queue: %v", err)
	}
	env.MaxDisk = env.disk + 5000
	if err := push(NewStack[uint64](env), 100_000); !errors.Is(err, ErrLimit) {
		t.Errorf("no room on disk: %v", err)
	}
	env.MaxMemory = 1
	if err := push(NewQueue[uint32](env), 1); !errors.Is(err, ErrLimit) {
		t.Errorf("no memory: %v", err)
	}
}
