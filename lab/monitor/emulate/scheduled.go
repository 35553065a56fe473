package emulate

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/freshet/freshet/lab/bench/fresh"
	"github.com/freshet/freshet/lab/field"
	"github.com/freshet/freshet/lab/monitor"
	"github.com/freshet/freshet/lab/testweb"
	"github.com/freshet/freshet/weburl"
)

// scheduled is the emulation of plan:POLICY:R/s: not only the robot's HTTP
// client but all of it (planner, schedule, politeness, store, index), which
// decides by itself what to visit next for a budget of R requests a second of
// the model. As in the model it knows the change rates.
type scheduled struct {
	policy string
	budget float64 // requests a second of the model

	server *testweb.Server
	mu     sync.Mutex
	got    map[uint64]bool // pages that the robot has got
	all    chan struct{}   // closed when it has all of them
	pages  int
}

// readScheduled reads POLICY:R/s, which the simulator's parser has found right;
// nil for another budget.
func readScheduled(args string) *scheduled {
	policy, budget, _ := strings.Cut(args, ":")
	budget, isRate := strings.CutSuffix(strings.TrimSuffix(budget, ":ask"), "/s")
	v, err := strconv.ParseFloat(budget, 64)
	if !isRate || err != nil {
		return nil
	}
	return &scheduled{policy: policy, budget: v, got: map[uint64]bool{}, all: make(chan struct{})}
}

// mostHosts is how many hosts the field is served from: the robot works them
// side by side, one page of a host at a time, and rests after each as politeness
// has it: five times the time of the answer.
const mostHosts = 64

// layOutField lays the field out on hosts of one size, where pages beyond the field
// are never asked for, and returns what notes which pages the robot has got.
func (s *scheduled) layOutField(pages int) (testweb.Even, func(http.Handler) http.Handler) {
	s.pages = pages
	each := (uint64(pages) + mostHosts - 1) / mostHosts
	n := (uint64(pages) + each - 1) / each
	return testweb.Even{Pages: n * each, Sites: n}, s.trackFetched
}

func (s *scheduled) trackFetched(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		req.Header.Del("Accept-Encoding") // bodies are as long as the model's
		next.ServeHTTP(w, req)
		if page, ok := s.server.Page(strings.Split(req.Host, ":")[0], req.URL.Path); ok {
			s.noteFetched(page)
		}
	})
}

func (s *scheduled) noteFetched(page uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.got == nil {
		return
	}
	if s.got[page] = true; len(s.got) == s.pages {
		s.got = nil
		close(s.all)
	}
}

// enough is the share of the budget from which on it counts as used.
const enough = .98

// noteBudgetUsed notes how much of the budget the robot used. Where the machine was too
// slow for all of it, the simulator is given as many requests as were made, so
// that decisions are compared and not machines.
func (r *run) noteBudgetUsed(ctx context.Context, c monitor.Config, res *Result, requests int) (err error) {
	seconds := r.Field.Horizon() * field.Unit
	if res.Used = float64(requests) / (r.budget * seconds); res.Used >= enough || requests == 0 {
		return nil
	}
	if c.Variant, err = monitor.Parse(fmt.Sprintf("plan:%s:%g/s", r.policy, float64(requests)/seconds)); err != nil {
		return err
	}
	res.Simulated, err = monitor.Run(ctx, c)
	return err
}

// startRobot starts the robot and waits until it has every page as it is at the
// start: time has not begun, so pages that it visits again meanwhile are the
// same. Then it watches by itself.
func (s *scheduled) startRobot(ctx context.Context, r *run) (watch func(context.Context) error, end func() error, err error) {
	s.server = r.server
	dir, err := os.MkdirTemp("", "freshet-emulate-")
	if err != nil {
		return nil, nil, err
	}
	robot, err := fresh.StartRobot(ctx, s.robotConfig(r, dir))
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	end = func() error { return errors.Join(robot.Stop(), os.RemoveAll(dir)) }
	ended := errors.New("the robot ended")
	select {
	case <-s.all:
		return func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				return nil
			case <-robot.Ended():
				return ended
			}
		}, end, nil
	case <-robot.Ended():
		err = ended
	case <-ctx.Done():
		err = ctx.Err()
	}
	return nil, nil, fmt.Errorf("before the start: %w", errors.Join(err, end()))
}

// robotConfig describes the robot to the field as it is served: rates and budget are
// of the clock.
func (s *scheduled) robotConfig(r *run, dir string) fresh.RobotConfig {
	rates := make(map[string]float64, len(r.urls))
	for p, d := range r.Field.Rates() {
		rates[r.urls[p].String()] = d / r.Unit.Seconds()
	}
	c := fresh.RobotConfig{
		Dir: dir, Policy: s.policy, Budget: s.budget * field.Unit / r.Unit.Seconds(), Agents: mostHosts, Delay: time.Nanosecond,
		Seeds: r.urls, Dial: r.server.DialContext,
		Rates: func(u weburl.URL) (float64, bool) { d, ok := rates[u.String()]; return d, ok },
	}
	for h := range r.server.Hosts() {
		first, _ := r.server.Span(h)
		c.Sources = append(c.Sources, r.server.URL(first))
	}
	return c
}
