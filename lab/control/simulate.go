package control

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"

	"golang.org/x/sync/errgroup"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/freshet/freshet/internal/dueheap"
	"github.com/freshet/freshet/internal/rng"
)

// Simulation says how long to simulate. Each replication starts empty, runs
// without being counted, and then for Time or until Pages were offered.
type Simulation struct {
	Seed         uint64
	Replications int     // at least 2
	Time         float64 // of each replication; one of Time and Pages
	Pages        int
	WarmUp       float64 // part of Time or Pages that is run before, 0.1 if negative
}

// Simulated holds the means over the replications and the half widths of their
// confidence intervals of 95 %.
type Simulated struct {
	Result
	HalfWidth    HalfWidth `json:"half_width"`
	Replications int       `json:"replications"`
	Time         float64   `json:"time"`  // simulated in all, warming up left out
	Pages        int       `json:"pages"` // offered in all, likewise
	Seed         uint64    `json:"seed"`
}

// HalfWidth has the half widths of the measures.
type HalfWidth struct {
	QueueLength     []float64 `json:"queue_length"`
	ArrivalRate     float64   `json:"arrival_rate"`
	Loss            float64   `json:"p_loss"`
	Obsolete        float64   `json:"p_obsolete"`
	Success         float64   `json:"p_success"`
	Starvation      float64   `json:"p_starvation"`
	Sojourn         float64   `json:"mean_sojourn"`
	SojournServed   float64   `json:"mean_sojourn_served"`
	SojournObsolete float64   `json:"mean_sojourn_obsolete"`
	MeanRobots      float64   `json:"mean_robots"`
	Cost            float64   `json:"cost"`
}

// Simulate runs replications of the model event by event: every page draws its
// time to staleness when it comes and its service time when it is begun. Nothing
// is shared with the solver but the matrices of the arrivals.
func (m *Model) Simulate(ctx context.Context, policy []int, c Simulation) (*Simulated, error) {
	if err := m.checkPolicy(policy); err != nil {
		return nil, err
	}
	switch {
	case c.Replications < 2:
		return nil, fmt.Errorf("replications: %d; an interval needs 2 at least", c.Replications)
	case (c.Time > 0) == (c.Pages > 0) || c.Time < 0 || c.Pages < 0 || math.IsInf(c.Time, 0) || math.IsNaN(c.Time):
		return nil, errors.New("give a positive time or a positive number of pages")
	case c.WarmUp < 0:
		c.WarmUp = .1
	}
	if r := policy[0] - 1; m.isSilent(r) {
		return m.emptySimulated(r, c), nil
	}
	table := m.phaseTransitions()
	runs := make([]*run, c.Replications)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range runs {
		g.Go(func() error {
			runs[i] = newSimulationRun(m, policy, table, rng.New(c.Seed, "control", "simulate", i))
			return runs[i].runReplication(ctx, c)
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return m.summarizeRuns(runs, c)
}

// emptySimulated returns the measures of a policy under which the system empties
// and stays empty: nothing is left to chance in its long run.
func (m *Model) emptySimulated(r int, c Simulation) *Simulated {
	out := &Simulated{Result: m.emptyResult(r), Replications: c.Replications, Seed: c.Seed}
	out.Method = "simulation"
	out.HalfWidth.QueueLength = make([]float64, m.N+1)
	return out
}

// minHalfWidth is the least half width of an interval, as a part of the mean: a
// measure that is the same in all replications is known to rounding only.
const minHalfWidth = 1e-12

// change is one way out of a phase of arrival: a batch of k pages or none.
type change struct {
	upTo float64 // sum of rates up to and with this one
	k    int
	to   int
}

// phaseTransitions returns the ways out of each phase in each mode.
func (m *Model) phaseTransitions() [][][]change {
	out := make([][][]change, m.R)
	for r := range out {
		out[r] = make([][]change, m.W)
		for a := range m.W {
			sum := 0.0
			for k, d := range m.d[r] {
				for b, v := range d.row(a) {
					if v > 0 && (k > 0 || b != a) {
						sum += v
						out[r][a] = append(out[r][a], change{sum, k, b})
					}
				}
			}
		}
	}
	return out
}

// What happens.
type kind uint8

const (
	arrivalMoves kind = iota
	serviceEnds
	goesStale
)

// happening is an event to come.
type happening struct {
	at   float64
	what kind
	id   uint64 // of the page that goes stale, or the version of the arrival process; below 2^62
}

// heapEntry is the happening in a heap.
func (h happening) heapEntry() dueheap.Entry {
	return dueheap.Entry{At: h.at, ID: uint32(h.id), Mark: uint32(h.what)<<30 | uint32(h.id>>32)}
}

// happeningOf is the way back.
func happeningOf(e dueheap.Entry) happening {
	return happening{e.At, kind(e.Mark >> 30), uint64(e.Mark&(1<<30-1))<<32 | uint64(e.ID)}
}

// waitingPage is one in the buffer.
type waitingPage struct {
	id      uint64
	arrived float64
}

// run is one replication.
type run struct {
	m      *Model
	policy []int
	table  [][][]change
	r      *rand.Rand

	now      float64
	phase    int
	version  uint64 // of the next move of arrivals: a switch of modes makes it void
	queue    []waitingPage
	busy     bool
	arrived  float64 // of the page in service
	pages    uint64  // ever accepted
	calendar dueheap.Heap
	counts   counts
}

// counts are what is counted after warming up.
type counts struct {
	time                         []float64 // by pages present
	robots                       float64
	offered, lost, stale, served int
	servedTime, staleTime        float64
}

func newSimulationRun(m *Model, policy []int, table [][][]change, r *rand.Rand) *run {
	s := &run{m: m, policy: policy, table: table, r: r}
	s.counts.time = make([]float64, m.N+1)
	s.scheduleArrivals()
	return s
}

func (s *run) presentPages() int {
	if !s.busy {
		return 0
	}
	return 1 + len(s.queue)
}

// scheduleEvent enters an event, and throws out those made void when they are many.
func (s *run) scheduleEvent(h happening) {
	s.calendar.Push(h.heapEntry())
	if len(s.calendar) < 4*s.m.N+64 {
		return
	}
	live := s.calendar[:0]
	for _, e := range s.calendar {
		if !s.isVoidEvent(happeningOf(e)) {
			live = append(live, e)
		}
	}
	s.calendar = live
	live.Order()
}

// isVoidEvent reports whether what was to happen cannot any more: a switch of modes came
// before it, or the page is in service or gone.
func (s *run) isVoidEvent(h happening) bool {
	return h.what == arrivalMoves && h.id != s.version || h.what == goesStale && s.findWaitingPage(h.id) < 0
}

// scheduleArrivals draws the next move of the arrival process again, which a
// switch of modes calls for and an exponential time allows.
func (s *run) scheduleArrivals() {
	s.version++
	ways := s.table[s.policy[s.presentPages()]-1][s.phase]
	if len(ways) == 0 {
		return
	}
	s.scheduleEvent(happening{s.now + s.r.ExpFloat64()/ways[len(ways)-1].upTo, arrivalMoves, s.version})
}

// drawPhaseTime returns a phase-type time, +Inf if it never ends.
func (s *run) drawPhaseTime(alpha, t, out mat) float64 {
	u := s.r.Float64()
	p := 0
	for ; p < alpha.c-1 && u >= alpha.a[p]; p++ {
		u -= alpha.a[p]
	}
	sum := 0.0
	for {
		total := -t.at(p, p)
		if !(total > 0) {
			return math.Inf(1)
		}
		sum += s.r.ExpFloat64() / total
		u := s.r.Float64() * total
		next := -1
		for q, v := range t.row(p) {
			if q == p || v == 0 {
				continue
			}
			if u < v {
				next = q
				break
			}
			u -= v
		}
		if next < 0 {
			return sum
		}
		p = next
	}
}

const errStuck = InputError("nothing will ever happen again: no mode leads out of the phase of arrival")

// advanceClock lets time go by.
func (s *run) advanceClock(to float64) {
	n := s.presentPages()
	s.counts.time[n] += to - s.now
	s.counts.robots += float64(s.policy[n]) * (to - s.now)
	s.now = to
}

// stepUntil lets the next event happen, or time go by until the limit if that comes
// before.
func (s *run) stepUntil(limit float64) error {
	for len(s.calendar) > 0 && s.isVoidEvent(happeningOf(s.calendar[0])) {
		s.calendar.Pop()
	}
	switch {
	case len(s.calendar) == 0:
		return errStuck
	case s.calendar[0].At > limit:
		s.advanceClock(limit)
		return nil
	}
	h := happeningOf(s.calendar.Pop())
	s.advanceClock(h.at)
	before := s.policy[s.presentPages()]
	switch h.what {
	case arrivalMoves:
		s.advanceArrivals(before)
		s.scheduleArrivals()
		return nil
	case serviceEnds:
		s.counts.served++
		s.counts.servedTime += s.now - s.arrived
		s.busy = false
		s.beginService()
	case goesStale:
		place := s.findWaitingPage(h.id)
		s.counts.stale++
		s.counts.staleTime += s.now - s.queue[place].arrived
		s.queue = append(s.queue[:place], s.queue[place+1:]...)
	}
	if s.policy[s.presentPages()] != before {
		s.scheduleArrivals()
	}
	return nil
}

// findWaitingPage returns the place of a waiting page, whose numbers rise, or -1.
func (s *run) findWaitingPage(id uint64) int {
	low, high := 0, len(s.queue)
	for low < high {
		if mid := (low + high) / 2; s.queue[mid].id < id {
			low = mid + 1
		} else {
			high = mid
		}
	}
	if low < len(s.queue) && s.queue[low].id == id {
		return low
	}
	return -1
}

// advanceArrivals moves the arrival process of a mode.
func (s *run) advanceArrivals(mode int) {
	ways := s.table[mode-1][s.phase]
	u := s.r.Float64() * ways[len(ways)-1].upTo
	w := ways[len(ways)-1]
	for _, c := range ways {
		if u < c.upTo {
			w = c
			break
		}
	}
	s.phase = w.to
	s.counts.offered += w.k
	for range w.k {
		if s.presentPages() == s.m.N {
			s.counts.lost++
			continue
		}
		s.pages++
		s.queue = append(s.queue, waitingPage{s.pages, s.now})
		if !s.busy {
			s.beginService()
			continue
		}
		if at := s.now + s.drawPhaseTime(s.m.gamma, s.m.g, s.m.g0); !math.IsInf(at, 1) {
			s.scheduleEvent(happening{at, goesStale, s.pages})
		}
	}
}

// beginService takes the head of the queue, if there is one.
func (s *run) beginService() {
	if len(s.queue) == 0 {
		return
	}
	s.busy, s.arrived = true, s.queue[0].arrived
	s.queue = append(s.queue[:0], s.queue[1:]...)
	s.scheduleEvent(happening{at: s.now + s.drawPhaseTime(s.m.beta, s.m.s, s.m.s0), what: serviceEnds})
}

// runReplication runs one replication.
func (s *run) runReplication(ctx context.Context, c Simulation) error {
	until := func(time float64, pages int) error {
		for n := 0; ; n++ {
			if s.now >= time || c.Pages > 0 && s.counts.offered >= pages {
				return nil
			}
			if n&0xfff == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			if err := s.stepUntil(time); err != nil {
				return err
			}
		}
	}
	warm, end := c.Time*c.WarmUp, c.Time*(1+c.WarmUp)
	if c.Pages > 0 {
		warm, end = math.Inf(1), math.Inf(1)
	}
	if err := until(warm, int(float64(c.Pages)*c.WarmUp)); err != nil {
		return err
	}
	s.counts = counts{time: make([]float64, s.m.N+1)}
	return until(end, c.Pages)
}

// replicationMeasures returns the measures of one replication.
func (n *counts) replicationMeasures(m *Model) (Result, float64) {
	var r Result
	total := 0.0
	for _, t := range n.time {
		total += t
	}
	r.QueueLength = make([]float64, len(n.time))
	for i, t := range n.time {
		r.QueueLength[i] = t / total
		r.Sojourn += float64(i) * t
	}
	offered := float64(n.offered)
	r.ArrivalRate, r.Loss, r.Obsolete, r.Success = offered/total, float64(n.lost)/offered, float64(n.stale)/offered, float64(n.served)/offered
	r.Starvation, r.MeanRobots = r.QueueLength[0], n.robots/total
	r.Sojourn = (n.servedTime + n.staleTime) / offered
	r.SojournServed = n.servedTime / float64(n.served)
	if n.stale > 0 {
		r.SojournObsolete = n.staleTime / float64(n.stale)
	}
	r.Cost = m.Cost.costOfResult(r)
	return r, total
}

// summarizeRuns takes means and intervals by Student's law over the replications.
func (m *Model) summarizeRuns(runs []*run, c Simulation) (*Simulated, error) {
	out := &Simulated{Replications: len(runs), Seed: c.Seed}
	var all []Result
	for i, s := range runs {
		if s.counts.offered == 0 || s.counts.served == 0 {
			return nil, InputError(fmt.Sprintf("replication %d: %d pages offered, %d served: simulate longer (a longer time or more pages)", i+1, s.counts.offered, s.counts.served))
		}
		r, t := s.counts.replicationMeasures(m)
		out.Time += t
		out.Pages += s.counts.offered
		all = append(all, r)
	}
	quantile := distuv.StudentsT{Sigma: 1, Nu: float64(len(all) - 1)}.Quantile(.975)
	interval := func(of func(Result) float64) (mean, half float64) {
		for _, r := range all {
			mean += of(r) / float64(len(all))
		}
		for _, r := range all {
			half += (of(r) - mean) * (of(r) - mean)
		}
		return mean, max(minHalfWidth*math.Abs(mean), quantile*math.Sqrt(half/float64(len(all)-1)/float64(len(all))))
	}
	r, h := &out.Result, &out.HalfWidth
	for i := range m.N + 1 {
		mean, half := interval(func(r Result) float64 { return r.QueueLength[i] })
		r.QueueLength, h.QueueLength = append(r.QueueLength, mean), append(h.QueueLength, half)
	}
	for _, v := range []struct {
		of         func(Result) float64
		mean, half *float64
		relative   bool
	}{
		{func(r Result) float64 { return r.ArrivalRate }, &r.ArrivalRate, &h.ArrivalRate, true},
		{func(r Result) float64 { return r.Loss }, &r.Loss, &h.Loss, false},
		{func(r Result) float64 { return r.Obsolete }, &r.Obsolete, &h.Obsolete, false},
		{func(r Result) float64 { return r.Success }, &r.Success, &h.Success, false},
		{func(r Result) float64 { return r.Starvation }, &r.Starvation, &h.Starvation, false},
		{func(r Result) float64 { return r.Sojourn }, &r.Sojourn, &h.Sojourn, true},
		{func(r Result) float64 { return r.SojournServed }, &r.SojournServed, &h.SojournServed, true},
		{func(r Result) float64 { return r.SojournObsolete }, &r.SojournObsolete, &h.SojournObsolete, true},
		{func(r Result) float64 { return r.MeanRobots }, &r.MeanRobots, &h.MeanRobots, true},
		{func(r Result) float64 { return r.Cost }, &r.Cost, &h.Cost, true},
	} {
		*v.mean, *v.half = interval(v.of)
		e := *v.half
		if v.relative && *v.mean != 0 {
			e /= math.Abs(*v.mean)
		}
		r.Error = max(r.Error, e)
	}
	r.Method, r.States = "simulation", m.States()
	return out, nil
}
