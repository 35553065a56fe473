// Package monitor simulates ways of watching a field of resources: which of
// them keeps an index fresh for the least traffic?
//
// A simulation is one loop over three sorted sources of events: the field's
// changes, its visitors' requests, and a small heap of what the strategy has
// under way. No process, goroutine or closure stands for a robot: a strategy is
// called when something that it began has ended, and begins the next thing.
// Means over time are exact integrals, not samples. The model (sizes, times of
// downloads, kinds of changes, robots and the sensor) is that of a dissertation
// of 2005; strategies of ours and the policies of package revisit run in it
// beside its own.
//
// A run is reproducible bit for bit: its only randomness is the field's streams
// and one stream for durations, all named by (seed, field, replication).
package monitor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/freshet/freshet/internal/rng"
	"github.com/freshet/freshet/lab/field"
)

// lineTime is the least time of a download over a line, a millisecond.
const lineTime = .01

// Sampling of series, in units.
const (
	SampleEvery = 5_000  // stale resources
	VolumeEvery = 10_000 // bytes
)

// ErrInput is in every error about plans, variants and results that make no sense.
var ErrInput = errors.New("monitor")

// Config says what is simulated.
type Config struct {
	Field   field.Field
	Variant Variant
	Warmup  float64 // units from the start that means, delays and ages leave out

	Seed        uint64 // with Number and Replication: the name of the durations' stream
	Number      int
	Replication int

	Log Log // if not nil, receives every event that changes what is known
}

// Log receives single events. It is slow: for looking closely at small fields.
type Log interface {
	Changed(t float64, c field.Change)
	Learned(t float64, page uint32, since float64)
	Fetched(t float64, page, agent uint32, bytes int64)
}

// Strategy decides what is fetched when. Start is called once, Done whenever
// something that it began with Sim.Download or Sim.After has ended.
type Strategy interface {
	Start(s *Sim)
	Done(s *Sim, e Event)
}

// requested is a strategy that is notified of the requests of visitors to stale
// pages: those whose answer differs from what a sensor in the server knew.
type requested interface{ Requested(s *Sim, page uint32) }

// changed is a strategy that the site notifies of real changes.
type changed interface{ Changed(s *Sim, page uint32) }

// cycler is a strategy that goes through its pages in cycles.
type cycler interface{ Cycles() []float64 }

// lined is a strategy whose downloads share a line of so many bytes a second
// instead of taking the model's times; 0 is none.
type lined interface{ Line() float64 }

// waster is a strategy that loses some of its notices.
type waster interface{ Dropped() int64 }

const (
	known   = -1 // of a page whose latest real change is known: since when it is stale
	nothing = -2 // the since of a download that makes nothing known
)

// Sim is a simulation under way. Strategies use its methods.
type Sim struct {
	now     float64
	horizon float64
	queue   queue
	sizes   []uint32
	kinds   []field.Kind
	unknown set       // stale pages; small enough for the nearest cache
	since   []float64 // of stale pages: when the first change came that is not known
	drawn   Durations
	rate    float64 // bytes a unit of a line; 0: downloads take uniform times
	news    bool    // the download that ended last brought a change
	field   field.Field
	log     Log

	strategy Strategy
	meter    meter
	mark     float64 // when the meter wants to look next
	events   int64
}

// Now returns the time.
func (s *Sim) Now() float64 { return s.now }

// Pages returns the number of resources.
func (s *Sim) Pages() int { return len(s.sizes) }

// Stale reports whether the latest real change of a page is unknown. A robot
// knows this only by asking: see After for the time that it takes.
func (s *Sim) Stale(p uint32) bool { return s.unknown.containsPage(p) }

// Unit returns a random number in [0, 1).
func (s *Sim) Unit() float64 { return rng.Unit(s.drawn.rand.Uint64()) }

// After makes Done be called d units from now, with what the strategy says.
func (s *Sim) After(d float64, what What, agent, page uint32) {
	s.queue.pushEvent(Event{Time: s.now + d, What: what, Agent: agent, Page: page})
}

// Probe makes Done be called when the page's server has answered whether it
// changed, or when a sensor's alert of it has arrived.
func (s *Sim) Probe(what What, agent, page uint32) {
	s.meter.probes++
	s.After(s.drawn.Uniform(ProbeTime), what, agent, page)
}

// News reports whether the download by Download that ended last brought a change.
func (s *Sim) News() bool { return s.news }

// Spend counts bytes other than downloads: lists, digests.
func (s *Sim) Spend(bytes int64) { s.meter.bytes += bytes }

// Download begins to fetch a page and reports whether that takes time: Done is
// called at its end. A page in error takes none and no bytes; it is dealt with
// at once. The page becomes known at the end, also by a change that came
// meanwhile.
func (s *Sim) Download(agent, p uint32) bool { return s.DownloadPart(agent, p, 1) }

// DownloadPart is Download of a difference to what is known, of which so large a
// part of the page's bytes is sent.
func (s *Sim) DownloadPart(agent, p uint32, part float64) bool {
	if s.kinds[p].Gone() {
		s.events++
		s.meter.downloads++
		s.learnPage(p)
		return false
	}
	s.startDownload(Event{Agent: agent, Page: p, Since: known}, part)
	return true
}

// DownloadKnown is Download by a strategy that knows the page from the start of
// the download: a change that comes meanwhile is unknown.
func (s *Sim) DownloadKnown(agent, p uint32) bool { return s.DownloadKnownPart(agent, p, 1) }

// DownloadKnownPart is DownloadKnown of a part of the bytes.
func (s *Sim) DownloadKnownPart(agent, p uint32, part float64) bool {
	since := s.clearStale(p)
	if since == known {
		since = nothing
	}
	if s.kinds[p].Gone() {
		s.events++
		s.meter.downloads++
		s.recordDetection(p, since)
		return false
	}
	s.startDownload(Event{Agent: agent, Page: p, Since: since}, part)
	return true
}

// Brought is a download that has ended already: the answer to a request whose
// time the strategy waited for brought the page.
func (s *Sim) Brought(agent, p uint32) {
	if s.kinds[p].Gone() {
		s.meter.downloads++
		s.learnPage(p)
		return
	}
	s.meter.beginDownload()
	s.completeDownload(&Event{Page: p, Agent: agent, Size: s.sizes[p], Since: known})
}

// startDownload puts a download under way.
func (s *Sim) startDownload(e Event, part float64) {
	e.What, e.Size = download, s.sizes[e.Page]
	if part != 1 {
		e.Size = uint32(math.Ceil(part * float64(e.Size)))
	}
	d := 0.
	if s.rate > 0 {
		d = max(lineTime, float64(e.Size)/s.rate)
	} else {
		d = s.drawn.Uniform(DownloadTime)
	}
	e.Time = s.now + d
	s.meter.beginDownload()
	s.queue.pushEvent(e)
}

// completeDownload counts a download that has ended.
func (s *Sim) completeDownload(e *Event) {
	s.meter.endDownload(int64(e.Size))
	if s.log != nil {
		s.log.Fetched(s.now, e.Page, e.Agent, int64(e.Size))
	}
	if e.Since != known {
		s.recordDetection(e.Page, e.Since)
		return
	}
	s.learnPage(e.Page)
}

// learnPage makes a page known.
func (s *Sim) learnPage(p uint32) {
	since := s.clearStale(p)
	s.news = since != known
	s.recordDetection(p, since)
}

// clearStale takes a page out of the stale ones and returns since when it was.
func (s *Sim) clearStale(p uint32) float64 {
	if !s.unknown.containsPage(p) {
		return known
	}
	since := s.since[p]
	s.meter.countFreshened(since, s.now)
	s.unknown.removePage(p)
	return since
}

// recordDetection records that a change of old became known now.
func (s *Sim) recordDetection(p uint32, since float64) {
	if since < 0 {
		return
	}
	s.meter.recordDelay(s.now, s.now-since)
	if s.log != nil {
		s.log.Learned(s.now, p, since)
	}
}

// applyChange applies an event of the field. Pages come at random, so what is kept
// of them is written without being read: a write does not wait for memory.
func (s *Sim) applyChange(c *field.Change) {
	s.events++
	s.sizes[c.Page], s.kinds[c.Page] = c.Size, c.Kind
	if s.log != nil {
		s.log.Changed(s.now, *c)
	}
	if !c.Real {
		return
	}
	s.meter.real++
	if s.unknown.containsPage(c.Page) {
		s.meter.overwritten++
		return
	}
	s.since[c.Page] = s.now
	s.unknown.insertPage(c.Page)
	s.meter.stale++
}

// Run simulates one variant on one field. The error is the context's, or says
// why the variant does not fit the field.
func Run(ctx context.Context, c Config) (*Result, error) {
	began := time.Now()
	s, err := newSim(c)
	if err != nil {
		return nil, err
	}
	if err := s.runToHorizon(ctx); err != nil {
		return nil, err
	}
	res := s.simulationResult()
	res.Seconds = time.Since(began).Seconds()
	return res, nil
}

func newSim(c Config) (*Sim, error) {
	if !(c.Warmup >= 0) || c.Warmup >= c.Field.Horizon() {
		return nil, fmt.Errorf("%w: warm-up %g is not within the time %g", ErrInput, c.Warmup, c.Field.Horizon())
	}
	strategy, err := c.Variant.makeStrategy(c.Field)
	if err != nil {
		return nil, fmt.Errorf("%w: variant %s: %w", ErrInput, c.Variant, err)
	}
	n := c.Field.Pages()
	s := &Sim{
		horizon: c.Field.Horizon(), sizes: slices.Clone(c.Field.Sizes()), kinds: slices.Repeat([]field.Kind{field.Same}, n), since: make([]float64, n), unknown: newSet(n),
		drawn: NewDurations(c.Seed, c.Number, c.Replication), field: c.Field, log: c.Log, strategy: strategy,
	}
	if l, ok := strategy.(lined); ok {
		s.rate = l.Line() * field.Unit
	}
	s.meter.startMeter(n, s.horizon, c.Warmup)
	s.mark = s.meter.next
	return s, nil
}

// batch is how many events of a history are read at a time.
const batch = 256

// runToHorizon runs to the horizon. At equal times a change comes before a request, both
// before what the strategy has under way, and of that what was begun first; what
// falls on the horizon does not happen.
func (s *Sim) runToHorizon(ctx context.Context) error {
	ch := newTape(ctx, s.field.Changes().Read, field.Change{Time: math.Inf(1)})
	rq := &tape[field.Request]{rest: []field.Request{{Time: math.Inf(1)}}}
	visited, sees := s.strategy.(requested)
	if sees {
		rq = newTape(ctx, s.field.Requests().Read, rq.rest[0])
	}
	told, tells := s.strategy.(changed)
	alone, goes := s.strategy.(*robots) // most runs of most plans: no call through the interface
	s.strategy.Start(s)
	tq := s.queue.firstTime()
	for {
		tr, c := rq.rest[0].Time, &ch.rest[0]
		if c.Time <= tr && c.Time <= tq {
			if c.Time >= s.mark && !s.sampleBefore(ctx, c.Time) {
				return ctx.Err()
			}
			s.now = c.Time
			s.applyChange(c)
			if tells && c.Real {
				told.Changed(s, c.Page)
				tq = s.queue.firstTime()
			}
			if ch.rest = ch.rest[1:]; len(ch.rest) == 0 {
				ch.refillTape()
			}
			continue
		}
		if tr <= tq {
			if tr >= s.mark && !s.sampleBefore(ctx, tr) {
				return ctx.Err()
			}
			s.now = tr
			s.events++
			if p := rq.rest[0].Page; s.unknown.containsPage(p) {
				visited.Requested(s, p)
				tq = s.queue.firstTime()
			}
			if rq.rest = rq.rest[1:]; len(rq.rest) == 0 {
				rq.refillTape()
			}
			continue
		}
		if tq >= s.mark && !s.sampleBefore(ctx, tq) {
			return ctx.Err()
		}
		if goes {
			alone.runUnchanged(s, min(c.Time, tr, s.mark))
			tq = s.queue.firstTime()
			continue
		}
		s.now = tq
		s.events++
		e := s.queue.popEvent()
		if e.What == download {
			s.completeDownload(&e)
		}
		s.strategy.Done(s, e)
		tq = s.queue.firstTime()
	}
}

// sampleBefore lets the meter look before an event and reports whether that still happens.
func (s *Sim) sampleBefore(ctx context.Context, t float64) bool {
	if !(t < s.horizon) {
		s.endIntegrals()
		return false
	}
	s.mark = s.meter.takeSamples(t)
	return ctx.Err() == nil
}

// tape reads a history batch by batch. It ends with its context too.
type tape[E any] struct {
	ctx  context.Context //nolint:containedctx // a tape lives within loop
	rest []E             // what was read and not taken; never empty
	end  E
	read func([]E) int
	buf  []E
}

func newTape[E any](ctx context.Context, read func([]E) int, end E) *tape[E] {
	t := &tape[E]{ctx: ctx, end: end, read: read, buf: make([]E, batch)}
	t.refillTape()
	return t
}

func (t *tape[E]) refillTape() {
	n := 0
	if t.ctx.Err() == nil {
		n = t.read(t.buf)
	}
	if n == 0 {
		t.buf[0], n = t.end, 1
	}
	t.rest = t.buf[:n]
}

// endIntegrals ends the integrals of the meter at the horizon, of what is stale then.
func (s *Sim) endIntegrals() {
	s.now = s.horizon
	for i, word := range s.unknown {
		for ; word != 0; word &= word - 1 {
			s.meter.addStaleSpan(s.since[i*64+bits.TrailingZeros64(word)], s.horizon)
		}
	}
	s.meter.takeLastSamples(s.horizon)
}
