package crawl

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/freshet/freshet/cluster"
	"github.com/freshet/freshet/crawl/politeness"
	"github.com/freshet/freshet/crawl/trap"
	"github.com/freshet/freshet/crawl/visit"
	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/store"
)

// counters are what the robot counts. Rare things are under the mutex.
type counters struct {
	answers   atomic.Int64
	pages     atomic.Int64 // 2xx
	unchanged atomic.Int64
	rendered  atomic.Int64
	bytes     atomic.Int64
	added     atomic.Int64

	mu      sync.Mutex
	started time.Time
	errors  map[string]*Failure
	skipped map[store.Reason]int64
	traps   map[trap.Kind]*Trap
	ticks   [rateSeconds]int64 // answers by second, a ring
	tick    int64              // second of the newest entry
}

// rateSeconds is the time over which the rate of pages is taken.
const rateSeconds = 60

// Trap is a kind of waste kept away, with the last example.
type Trap struct {
	Kind    trap.Kind
	Count   int64
	Example string
}

// Failure is a kind of requests that failed, with the last of them.
type Failure struct {
	Kind    string // of fetch.Kind, status-5xx, status-429, status-503 or render
	Count   int64
	Example string // its URL
	Message string // why it failed
	At      time.Time
}

// maxMessage is how much is kept of why a request failed.
const maxMessage = 200

// Status is a picture of the robot.
type Status struct {
	State     string // running, paused, draining
	Started   time.Time
	Agents    []cluster.Agent
	Answers   int64 // requests answered
	Pages     int64 // of them with content
	Unchanged int64
	Rendered  int64
	Gained    int64        // URLs that only rendering found
	Waiting   int64        // pages that wait for a browser
	Waits     []RenderWait // the hosts with the most of them
	Added     int64        // URLs found new
	Bytes     int64
	Rate      float64 // pages a second over the last minute
	Errors    map[string]int64
	Skipped   map[store.Reason]int64 // URLs and pages left out
	Failures  []Failure              // those of Errors
	Traps     []Trap
}

// SkippedTexts returns Skipped by the texts of its reasons.
func (s *Status) SkippedTexts() map[string]int64 {
	out := make(map[string]int64, len(s.Skipped))
	for r, n := range s.Skipped {
		out[r.Text()] += n
	}
	return out
}

// Status returns how things stand.
func (r *Robot) Status() Status {
	r.mu.Lock()
	s := Status{State: "running", Started: r.started}
	switch {
	case r.drain:
		s.State = "draining"
	case r.paused:
		s.State = "paused"
	}
	for _, a := range r.live {
		s.Agents = append(s.Agents, *a)
	}
	r.mu.Unlock()
	c := &r.stats
	s.Answers, s.Pages, s.Unchanged, s.Rendered, s.Added, s.Bytes = c.answers.Load(), c.pages.Load(), c.unchanged.Load(), c.rendered.Load(), c.added.Load(), c.bytes.Load()
	s.Gained, s.Waiting = r.gains.count(), r.renders.length()
	s.Waits = r.renderWaits()
	c.mu.Lock()
	defer c.mu.Unlock()
	s.Errors, s.Skipped = map[string]int64{}, map[store.Reason]int64{}
	for k, f := range c.errors {
		s.Errors[k] = f.Count
		s.Failures = append(s.Failures, *f)
	}
	for k, v := range c.skipped {
		s.Skipped[k] = v
	}
	for _, t := range c.traps {
		s.Traps = append(s.Traps, *t)
	}
	s.Rate = c.rate(time.Now())
	return s
}

// shownWaits is how many hosts whose pages wait for the browser are named.
const shownWaits = 20

func (r *Robot) renderWaits() []RenderWait {
	if r.config.Render == nil {
		return nil
	}
	why := ""
	if err := r.config.Render.Ready(); err != nil {
		why = err.Error()
	}
	return r.renders.waits(why, shownWaits)
}

func (c *counters) begin(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.started, c.errors, c.skipped, c.traps = t, map[string]*Failure{}, map[store.Reason]int64{}, map[trap.Kind]*Trap{}
}

func (c *counters) answer(res *fetch.Response, now time.Time) {
	c.answers.Add(1)
	c.bytes.Add(res.Wire)
	if res.Status >= 200 && res.Status < 300 || res.Status == 304 {
		c.pages.Add(1)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advance(now.Unix())
	c.ticks[c.tick%rateSeconds]++
}

// advance clears the seconds that passed since the last entry.
func (c *counters) advance(now int64) {
	if now-c.tick >= rateSeconds {
		clear(c.ticks[:])
		c.tick = now
	}
	for c.tick < now {
		c.tick++
		c.ticks[c.tick%rateSeconds] = 0
	}
}

// rate is answers a second over the last minute, or since the start.
func (c *counters) rate(now time.Time) float64 {
	c.advance(now.Unix())
	var n int64
	for _, t := range c.ticks {
		n += t
	}
	span := min(now.Sub(c.started).Seconds(), rateSeconds)
	if span < .1 {
		return 0
	}
	return float64(n) / span
}

func (c *counters) found(n int) { c.added.Add(int64(n)) }

func (c *counters) fail(kind, example, message string) {
	c.count(func() {
		f := c.errors[kind]
		if f == nil {
			f = &Failure{Kind: kind}
			c.errors[kind] = f
		}
		f.Count++
		f.Example, f.Message, f.At = example, strings.ToValidUTF8(message[:min(len(message), maxMessage)], ""), time.Now()
	})
}

func (c *counters) skip(why store.Reason) { c.count(func() { c.skipped[why]++ }) }

func (c *counters) trap(kind trap.Kind, example string) {
	c.count(func() {
		t := c.traps[kind]
		if t == nil {
			t = &Trap{Kind: kind}
			c.traps[kind] = t
		}
		t.Count++
		t.Example = example
	})
}

func (c *counters) count(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.errors == nil {
		c.errors, c.skipped, c.traps = map[string]*Failure{}, map[store.Reason]int64{}, map[trap.Kind]*Trap{}
	}
	f()
}

// outcome counts what became of a visit.
func (c *counters) outcome(o *visit.Outcome) {
	for _, f := range o.Failures {
		c.fail(f.Kind, o.Page.URL, f.Message)
	}
	for _, kind := range o.Traps {
		c.trap(kind, o.Page.URL)
	}
	if o.Skipped != "" {
		c.skip(o.Skipped)
	}
	if o.Unchanged {
		c.unchanged.Add(1)
	}
}

// unanswered counts a request without an answer.
func (c *counters) unanswered(address string, err error) {
	kind, cause := politeness.KindOf(err)
	c.fail(string(kind), address, cause.Error())
	if t := trap.OfError(kind); t != "" {
		c.trap(t, address)
	}
}
