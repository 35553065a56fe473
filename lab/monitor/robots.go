package monitor

import (
	"fmt"

	"github.com/freshet/freshet/lab/field"
)

// robots are the plain and the modified robot: each has a contiguous share of
// the resources and goes through it in order, for ever. The plain one fetches
// every resource; the modified one asks first and fetches what is stale.
type robots struct {
	ask    bool
	part   float64 // of a page's bytes that a download takes
	shares []share
}

// share is what one robot goes through.
type share struct {
	first, next, end uint32
	visits           int64 // that have ended
}

// What robots have under way.
const (
	asked  = Own + iota // the answer to a probe is there
	paused              // a share with nothing but errors was waited out
)

// pause is how long a robot waits that went through its whole share without
// anything taking time: it must not spin at one moment for ever. Only shares
// of a few resources ever come to it.
const pause = 1

func readRobots(ask bool) func([]string) (func(field.Field) (Strategy, error), error) {
	return func(args []string) (func(field.Field) (Strategy, error), error) {
		if len(args) != 1 {
			return nil, fmt.Errorf("it has one argument")
		}
		return sendRobots(args[0], ask, 1)
	}
}

// sendRobots makes so many robots with equal shares.
func sendRobots(number string, ask bool, part float64) (func(field.Field) (Strategy, error), error) {
	k, err := parseRobotCount(number)
	if err != nil {
		return nil, err
	}
	return func(f field.Field) (Strategy, error) {
		n := f.Pages()
		if k > n {
			return nil, fmt.Errorf("%d robots for %d pages", k, n)
		}
		r := &robots{ask: ask, part: part, shares: make([]share, k)}
		for i := range r.shares {
			first, end := uint32(i*n/k), uint32((i+1)*n/k)
			r.shares[i] = share{first: first, next: first, end: end}
		}
		return r, nil
	}, nil
}

// Start sends out every robot.
func (r *robots) Start(s *Sim) {
	for i := range r.shares {
		r.beginVisit(s, uint32(i))
	}
}

// Done goes on with the robot whose probe or download has ended.
func (r *robots) Done(s *Sim, e Event) {
	switch e.What {
	case asked:
		if s.Stale(e.Page) && s.DownloadPart(e.Agent, e.Page, r.part) {
			return
		}
		r.shares[e.Agent].visits++
	case download:
		r.shares[e.Agent].visits++
	}
	r.beginVisit(s, e.Agent)
}

// runUnchanged deals with what ends before a time. Nearly all events of robots that ask
// are answers that nothing changed, each followed by the next question.
func (r *robots) runUnchanged(s *Sim, until float64) {
	for t := s.queue.firstTime(); t < until; t = s.queue.firstTime() {
		s.now = t
		s.events++
		if e := s.queue.topEvent(); e.What == asked && !s.unknown.containsPage(e.Page) {
			sh := &r.shares[e.Agent]
			sh.visits++
			s.meter.probes++
			s.queue.rescheduleTop(t+s.drawn.Uniform(ProbeTime), sh.nextSharePage())
			continue
		}
		e := s.queue.popEvent()
		if e.What == download {
			s.completeDownload(&e)
		}
		r.Done(s, e)
	}
}

// nextSharePage returns the next page of the share.
func (sh *share) nextSharePage() uint32 {
	p := sh.next
	if sh.next++; sh.next == sh.end {
		sh.next = sh.first
	}
	return p
}

// beginVisit begins the next visit of a robot that takes time.
func (r *robots) beginVisit(s *Sim, agent uint32) {
	sh := &r.shares[agent]
	for range sh.end - sh.first {
		p := sh.nextSharePage()
		if r.ask {
			s.Probe(asked, agent, p)
			return
		}
		if s.DownloadPart(agent, p, r.part) {
			return
		}
		sh.visits++
	}
	s.After(pause, paused, agent, sh.next)
}

// Cycles returns how often each robot has gone through its share.
func (r *robots) Cycles() []float64 {
	out := make([]float64, len(r.shares))
	for i, sh := range r.shares {
		out[i] = float64(sh.visits) / float64(sh.end-sh.first)
	}
	return out
}
