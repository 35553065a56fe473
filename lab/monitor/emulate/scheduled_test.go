package emulate

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/freshet/freshet/internal/rng"
	"github.com/freshet/freshet/lab/field"
	"github.com/freshet/freshet/lab/monitor"
)

// poisson is a field of given change rates, one of many that could have been:
// what a robot does that knows the rates hangs on none of them.
type poisson struct {
	*field.History
	rates []float64 // a unit
}

// Rates are the true ones.
func (p poisson) Rates() []float64 { return p.rates }

func newPoisson(t *testing.T, rates []float64, horizon float64, number int) poisson {
	t.Helper()
	h := &field.History{}
	type event struct {
		at   float64
		page uint32
	}
	var events []event
	for p, d := range rates {
		if err := h.AddPage("", 3000); err != nil {
			t.Fatal(err)
		}
		r := rng.New(7, "poisson", number, p)
		for at := r.ExpFloat64() / d; at < horizon; at += r.ExpFloat64() / d {
			events = append(events, event{at, uint32(p)})
		}
	}
	slices.SortFunc(events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	for i, e := range events {
		if err := h.AddChange(e.at, e.page, field.Grown, 3000+uint32(i)%100); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.End(horizon); err != nil {
		t.Fatal(err)
	}
	return poisson{h, rates}
}

// The whole robot (planner, schedule, store, index) on a served field decides
// as the simulator does: its visits keep a field as fresh, within two points. A
// run of some seconds meets few changes, so the visits that the robot made are
// weighed on many fields that it could have met, and the simulator's are, too.
func TestScheduledRobotAgreesWithSimulation(t *testing.T) {
	t.Parallel()
	const (
		pages   = 100
		horizon = 1800. // units
		warmup  = horizon / 4
		fields  = 60
	)
	rates := make([]float64, pages)
	for i := range rates { // over two decades about a change in a turn of all pages
		rates[i] = math.Pow(100, (float64(i)+.5)/pages) / 10 / (pages * 10)
	}
	for _, policy := range []string{"sweep", "greedy"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			// A machine that is too busy to keep the model's time gets more of it. The
			// robot never asks more than it may.
			for unit := 5 * time.Millisecond; ; unit *= 2 {
				live, simulated, made := bySchedule(t, "plan:"+policy+":%g/s", unit, horizon, warmup, fields, rates)
				t.Logf("unit %v: live %.2f %%, simulated %.2f %%; %.0f %% of the budget used", unit, live, simulated, 100*made)
				if made > 1.05 {
					t.Fatalf("%.0f %% of the budget used", 100*made)
				}
				if math.Abs(live-simulated) <= 2 && made >= .3 {
					return
				}
				if unit >= 40*time.Millisecond {
					t.Fatalf("live %.2f %%, simulated %.2f %%; %.0f %% of the budget used", live, simulated, 100*made)
				}
			}
		})
	}
}

// bySchedule lets the robot watch one field and returns how fresh its visits and
// those of the simulator, as many, keep fields like it, and what part of the
// budget it used.
func bySchedule(t *testing.T, variant string, unit time.Duration, horizon, warmup float64, fields int, rates []float64) (live, simulated, made float64) {
	t.Helper()
	r := &run{Config: Config{Field: newPoisson(t, rates, horizon, 0), Variant: fmt.Sprintf(variant, 1.), Unit: unit, Warmup: warmup}}
	if err := r.parseVariant(); err != nil {
		t.Fatal(err)
	}
	visits, err := r.emulateField(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range visits { // what they would find in other fields
		visits[i].Got, visits[i].Asked = true, false
	}
	made = float64(len(visits)) / (horizon * field.Unit)
	same, err := monitor.Parse(fmt.Sprintf(variant, min(1, max(made, .01))))
	if err != nil {
		t.Fatal(err)
	}
	for i := range fields {
		f := newPoisson(t, rates, horizon, i)
		for v, to := range map[*monitor.Variant]*float64{new(monitor.Replay(0, visits)): &live, &same: &simulated} {
			res, err := monitor.Run(t.Context(), monitor.Config{Field: f, Variant: *v, Warmup: warmup, Replication: i})
			if err != nil {
				t.Fatal(err)
			}
			*to += res.FreshnessMean / float64(fields)
		}
	}
	return live, simulated, made
}

// Budgets that are no requests a second, and policies that do not exist, are
// refused before anything is served.
func TestScheduledBadInput(t *testing.T) {
	t.Parallel()
	f := mustField(t, field.Spec{PageCount: 3, Length: 300, Changed: 2})
	for _, v := range []string{"plan:uniform:3", "plan:uniform:30kB/s", "plan:uniform:0/s", "plan:uniform", "plan:nothing:1/s", "learn:uniform:1/s"} {
		if _, err := Run(t.Context(), Config{Field: f, Variant: v, Unit: time.Millisecond}); !errors.Is(err, monitor.ErrInput) {
			t.Errorf("%s: %v", v, err)
		}
	}
}
