// Package emulate closes the loop between the simulator and the live robot: it
// serves a field as a web on loopback, in accelerated time, lets the robot
// watch it in one of the simulator's ways, measures what the robot knew from the
// log of what it was told, and compares with the simulator on the same field.
// Under a policy with a budget of requests it is the whole robot, which decides
// by itself what to visit; in the ways of the dissertation, which leave it no
// choice, it is its HTTP client.
//
// For that client answers take the times of the model: a handler in front of the server holds
// each one back until the moment at which the model's download would end. A
// moment is counted from the one before, not from the request, so that the time
// that real requests cost is taken up by the waiting and cycles have the length
// that they have in the model, as long as the machine keeps up; Result.Late
// reports whether it did.
package emulate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/lab/field"
	"github.com/freshet/freshet/lab/monitor"
	"github.com/freshet/freshet/lab/testweb"
	"github.com/freshet/freshet/lab/testweb/truth"
	"github.com/freshet/freshet/weburl"
)

// Variants are the ways of watching that can be emulated.
const Variants = "plain:K, conditional:K, sensor, plan:POLICY:R/s"

// Config says what is emulated.
type Config struct {
	Field   field.Field
	Variant string
	Unit    time.Duration // of the clock that a unit of the model takes
	Warmup  float64       // units that means, delays and ages leave out

	Seed        uint64 // with Number and Replication: names the durations
	Number      int
	Replication int

	Log      monitor.Log                     // is told of what the robot did, when all is over; nil: nobody
	Truth    string                          // file for the truth log; "": none is kept
	Progress func(done, total time.Duration) // called now and then, unless nil
}

// Result is what the robot did, in the simulator's measures, and what the
// simulator says.
type Result struct {
	*monitor.Result

	Variant    string          `json:"variant"`
	Simulated  *monitor.Result `json:"simulated"`  // where less than the budget was used: for what was
	Difference float64         `json:"difference"` // of the mean freshness, emulated less simulated, points

	Answers int     `json:"answers"` // that the robot got by HTTP
	Failed  int     `json:"failed"`  // its requests without answer
	Visits  int     `json:"visits"`  // of the field's visitors, where they matter
	Used    float64 `json:"used"`    // share of the requests of the budget that the robot made, where there is one
	Late    float64 `json:"late"`    // mean delay of answers behind the model's time, units
	LateMax float64 `json:"late_max"`

	VisitsLate float64 `json:"visits_late"` // mean delay of visits, units
}

// agent is the robot's name in the truth log.
const agent = "Freshet-Emulation"

// run is an emulation under way.
type run struct {
	Config
	kind       string // of variant
	robots     int
	*scheduled // of a policy, else nil
	server     *testweb.Server
	pace       *pace
	urls       []weburl.URL
	clients    []*fetch.Client // of each robot
	tags       []tag           // what the robot knows of each page

	mu     sync.Mutex
	failed int

	visits     int
	visitsLate float64
}

// tag is what an answer said of its version.
type tag struct{ etag, modified string }

// Run emulates one variant on one field and simulates it.
func Run(ctx context.Context, c Config) (*Result, error) {
	r := &run{Config: c}
	if err := r.parseVariant(); err != nil {
		return nil, err
	}
	variant, err := monitor.Parse(c.Variant)
	if err != nil {
		return nil, err
	}
	sim := monitor.Config{Field: c.Field, Variant: variant, Warmup: c.Warmup, Seed: c.Seed, Number: c.Number, Replication: c.Replication}
	res := &Result{Variant: c.Variant}
	if res.Simulated, err = monitor.Run(ctx, sim); err != nil { // also finds bad numbers before the long part
		return nil, err
	}
	fetches, err := r.emulateField(ctx)
	if err != nil {
		return nil, fmt.Errorf("emulate %s: %w", c.Variant, err)
	}
	if r.scheduled != nil {
		if err := r.noteBudgetUsed(ctx, sim, res, len(fetches)); err != nil {
			return nil, err
		}
	}
	sim.Variant, sim.Log = monitor.Replay(r.robots, fetches), c.Log
	if res.Result, err = monitor.Run(ctx, sim); err != nil {
		return nil, fmt.Errorf("emulate %s: measure: %w", c.Variant, err)
	}
	res.Difference = res.FreshnessMean - res.Simulated.FreshnessMean
	res.Answers, res.Failed, res.Visits = len(fetches), r.failed, r.visits
	res.VisitsLate = r.visitsLate
	res.Late, res.LateMax = r.pace.latenessSummary()
	return res, nil
}

// parseVariant reads the variant.
func (r *run) parseVariant() error {
	name, arg, _ := strings.Cut(r.Variant, ":")
	k, err := strconv.Atoi(arg)
	switch {
	case (name == "plain" || name == "conditional") && err == nil && k >= 1 && k <= r.Field.Pages():
		r.kind, r.robots = name, k
	case r.Variant == "sensor":
		r.kind = name
	case name == "plan":
		if r.scheduled, r.kind = readScheduled(arg), name; r.scheduled != nil {
			break
		}
		fallthrough
	default:
		return fmt.Errorf("%w: variant %q on %d pages cannot be emulated; %s can", monitor.ErrInput, r.Variant, r.Field.Pages(), Variants)
	}
	if r.Unit <= 0 {
		return fmt.Errorf("%w: a unit takes %v of the clock", monitor.ErrInput, r.Unit)
	}
	if whole := r.Field.Horizon() * r.Unit.Seconds(); whole > math.MaxInt32 {
		return fmt.Errorf("%w: %g units of %v take %g s", monitor.ErrInput, r.Field.Horizon(), r.Unit, whole)
	}
	return nil
}

// lone is a web without links: the robot knows all addresses, as in the model.
type lone uint64

func (l lone) Nodes() uint64                            { return uint64(l) }
func (lone) Successors(_ uint64, buf []uint64) []uint64 { return buf }

// emulateField serves and watches, and returns what the log says of the robot.
func (r *run) emulateField(ctx context.Context) (_ []monitor.Fetch, err error) {
	index, err := field.NewIndex(r.Field)
	if err != nil {
		return nil, err
	}
	file, err := r.openLog()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.closeLog(file)) }()
	n := uint64(r.Field.Pages())
	scale := field.Unit / r.Unit.Seconds()
	log, err := truth.NewLog(file, truth.Head{Pages: n, Hosts: 1, Sites: 1, TimeScale: scale})
	if err != nil {
		return nil, err
	}
	r.pace = newPace(r, index)
	layout, wrap := testweb.Even{Pages: n, Sites: 1}, r.pace.paceHandler
	if r.scheduled != nil {
		layout, wrap = r.scheduled.layOutField(r.Field.Pages())
	}
	r.server, err = testweb.New(testweb.Config{
		Graph: lone(layout.Pages), Layout: layout, Sentences: 8, History: index, Sizes: true, TimeScale: scale, Truth: log, Wrap: wrap,
	})
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	start, err := r.watchField(ctx)
	if err = errors.Join(err, r.server.Close(), log.Close()); err != nil {
		return nil, err
	}
	return r.readTruthLog(file, start)
}

// watchField lets the robot know the field as it is at the start, begins time, and
// lets the robot watch to the horizon.
func (r *run) watchField(ctx context.Context) (start time.Time, err error) {
	r.server.Begin(time.Now().Add(24 * time.Hour)) // the world stands still until all is ready
	r.urls, r.tags = make([]weburl.URL, r.Field.Pages()), make([]tag, r.Field.Pages())
	for p := range r.urls {
		if r.urls[p], err = weburl.Parse(r.server.URL(uint64(p))); err != nil {
			return start, err
		}
	}
	watch, end, err := r.prepareRobot(ctx)
	if err != nil {
		return start, err
	}
	defer func() { err = errors.Join(err, end()) }()
	start = time.Now()
	r.pace.beginTime(start)
	r.server.Begin(start)
	whole := time.Duration(r.Field.Horizon() * float64(r.Unit))
	timed, cancel := context.WithDeadline(ctx, start.Add(whole))
	defer cancel()
	var report sync.WaitGroup
	report.Go(func() { r.reportTicks(timed, start, whole) })
	err = watch(timed)
	cancel()
	report.Wait()
	return start, errors.Join(err, ctx.Err())
}

// prepareRobot lets the robot know the field as it is at the start, and returns what
// it does from then on and what ends it.
func (r *run) prepareRobot(ctx context.Context) (watch func(context.Context) error, end func() error, err error) {
	if r.scheduled != nil {
		return r.scheduled.startRobot(ctx, r)
	}
	for range max(1, r.robots) {
		c, err := fetch.New(fetch.Config{
			UserAgent: agent, Timeout: 30*time.Second + 100*r.Unit, MaxBody: math.MaxUint32, Dial: r.server.DialContext,
		})
		if err != nil {
			return nil, nil, errors.Join(err, r.closeClients())
		}
		r.clients = append(r.clients, c)
	}
	if r.kind != "sensor" {
		if err := r.primePages(ctx); err != nil {
			return nil, nil, errors.Join(err, r.closeClients())
		}
		return r.cycleShares, r.closeClients, nil
	}
	s, err := r.newSensor()
	if err != nil {
		return nil, nil, errors.Join(err, r.closeClients())
	}
	end = func() error { s.closeFront(); return r.closeClients() }
	if err := s.primeSensor(ctx); err != nil {
		return nil, nil, errors.Join(err, end())
	}
	return s.playVisitors, end, nil
}

// closeClients closes the clients.
func (r *run) closeClients() error {
	for _, c := range r.clients {
		c.Close()
	}
	return nil
}

// reportTicks reports progress until ctx ends.
func (r *run) reportTicks(ctx context.Context, start time.Time, whole time.Duration) {
	tick := time.NewTicker(time.Second / 4)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if r.Progress != nil {
				r.Progress(time.Since(start), whole)
			}
		}
	}
}

func (r *run) openLog() (*os.File, error) {
	if r.Truth == "" {
		return os.CreateTemp("", "freshet-emulate-*.jsonl")
	}
	return os.Create(r.Truth)
}

func (r *run) closeLog(f *os.File) error {
	err := f.Close()
	if r.Truth == "" {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}
