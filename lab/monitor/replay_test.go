package monitor

import (
	"context"
	"math"
	"testing"

	"github.com/freshet/freshet/lab/field"
)

// Three resources, of which one changes at 10 and 50, one fails at 20; what a
// robot did is measured as by hand.
func TestReplay(t *testing.T) {
	t.Parallel()
	h := &field.History{}
	for range 3 {
		must(t, h.AddPage("", 100))
	}
	must(t, h.AddChange(10, 0, field.Grown, 200))
	must(t, h.AddChange(20, 1, field.Missing, 100))
	must(t, h.AddChange(50, 0, field.Shrunk, 150))
	must(t, h.End(100))
	run := func(robots int, f ...Fetch) *Result {
		t.Helper()
		r, err := Run(context.Background(), Config{Field: h, Variant: Replay(robots, f)})
		must(t, err)
		return r
	}
	r := run(
		3,
		Fetch{Begin: 0, Known: 5, End: 6, Page: 0, Asked: true},                            // not changed
		Fetch{Begin: 15, Known: 30, End: 35, Page: 0, Bytes: 200, Asked: true, Got: true},  // stale from 10 to 30
		Fetch{Begin: 40, Known: 60, End: 62, Page: 1, Agent: 1, Asked: true, Gone: true},   // from 20 to 60
		Fetch{Begin: 70, Known: 71, End: 72, Page: 1, Agent: 1, Asked: true, Gone: true},   // the same error
		Fetch{Begin: 80, Known: 99, End: 120, Page: 0, Bytes: 150, Asked: true, Got: true}, // from 50 to 99; under way at the end
		Fetch{Begin: 20, Known: 25, End: 26, Page: 2, Agent: 2, Bytes: 100, Got: true},     // nothing new
	)
	stale := 20. + 40 + 49
	if want := 100 * (1 - stale/300); math.Abs(r.FreshnessMean-want) > 1e-9 || r.StaleEnd != 0 || r.Detected != 3 || r.Real != 3 {
		t.Errorf("freshness %.4f, want %.4f; %+v", r.FreshnessMean, want, r)
	}
	if r.Bytes != 300 || r.Downloads != 4 || r.Probes != 5 || r.InProgress != 1 || r.Delay.Count != 2 || r.Delay.Min != 25 || r.Delay.Max != 42 {
		t.Errorf("%+v", r)
	}
	if len(r.Cycles) != 3 || r.Cycles[0] != 2 || r.Cycles[1] != 2 || r.Cycles[2] != 1 {
		t.Errorf("cycles %v", r.Cycles)
	}
	if r := run(0); r.StaleEnd != 2 || r.Overwritten != 1 || len(r.Cycles) != 0 {
		t.Errorf("nobody watches: %+v", r)
	}
	for _, bad := range []Fetch{{Page: 3}, {Begin: 2, Known: 1, End: 3}, {Begin: 1, Known: 2, End: 1}, {Begin: math.NaN()}} {
		if _, err := Run(context.Background(), Config{Field: h, Variant: Replay(0, []Fetch{bad})}); err == nil {
			t.Errorf("%+v: no error", bad)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
