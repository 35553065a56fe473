package emulate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/freshet/freshet/lab/field"
	"github.com/freshet/freshet/lab/monitor"
	"github.com/freshet/freshet/lab/testweb/truth"
)

func mustField(t *testing.T, s field.Spec) field.Field {
	t.Helper()
	f, err := field.New(s)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// The live robot, on a served field in accelerated time, is as fresh as the
// simulator says, within two points. With one robot the times of its visits are
// the simulator's, one by one; with more they change places. A machine that is too busy to keep the
// model's time gets more of it.
func TestEmulationAgreesWithSimulation(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		variant string
		unit    time.Duration
		field   field.Spec
	}{
		{"plain:1", time.Millisecond, field.Spec{PageCount: 50, Length: 3000, Changed: 4, Seed: 1}},
		{"conditional:1", 2 * time.Millisecond, field.Spec{PageCount: 50, Length: 1500, Changed: 3, Seed: 2}},
		{"sensor", time.Millisecond, field.Spec{PageCount: 60, Length: 3000, Changed: 5, Requested: 20, Seed: 3}},
	} {
		t.Run(tt.variant, func(t *testing.T) {
			t.Parallel()
			f := mustField(t, tt.field)
			for unit := tt.unit; ; unit *= 3 {
				r, err := Run(t.Context(), Config{Field: f, Variant: tt.variant, Unit: unit, Seed: 1})
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("unit %v: emulated %.2f %%, simulated %.2f %%; late %.2f units, at most %.1f", unit, r.FreshnessMean, r.Simulated.FreshnessMean, r.Late, r.LateMax)
				if r.Real != r.Detected+r.Overwritten+int64(r.StaleEnd) || r.Real != r.Simulated.Real || r.Failed > 0 {
					t.Errorf("not conserved: %+v", r.Result)
				}
				if far := apart(r); far == "" {
					return
				} else if r.Late <= .5 || unit >= 27*tt.unit {
					t.Fatalf("%s\nemulated %+v\nsimulated %+v", far, r.Result, r.Simulated)
				}
			}
		})
	}
}

// apart says in what the emulation differs from the simulation, "" if in nothing.
func apart(r *Result) string {
	if math.Abs(r.Difference) > 2 {
		return fmt.Sprintf("freshness: %.2f points apart", r.Difference)
	}
	for what, x := range map[string][2]int64{
		"downloads": {r.Downloads, r.Simulated.Downloads}, "probes": {r.Probes, r.Simulated.Probes}, "bytes": {r.Bytes, r.Simulated.Bytes},
	} {
		if got, want := float64(x[0]), float64(x[1]); math.Abs(got-want) > .15*want+5 {
			return fmt.Sprintf("%s: %g, simulated %g", what, got, want)
		}
	}
	return ""
}

// The truth log that is kept tells of the robot, and agrees with the field.
func TestTruthLog(t *testing.T) {
	t.Parallel()
	f := mustField(t, field.Spec{PageCount: 10, Length: 300, Changed: 2, Seed: 5})
	x, err := field.NewIndex(f)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "truth.jsonl")
	c := Config{Field: f, Variant: "plain:1", Unit: time.Millisecond, Truth: name}
	if _, err := Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	log, err := truth.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for {
		rec, err := log.Read()
		if err != nil {
			break
		}
		n++
		if rec.Version > x.At(uint64(rec.Page), 1e9).Number || rec.Status == 200 && rec.Version > 0 && rec.Changed.IsZero() {
			t.Errorf("%+v", rec)
		}
	}
	if n < 15 {
		t.Errorf("%d records", n)
	}
}

func TestBadConfigurations(t *testing.T) {
	t.Parallel()
	f := mustField(t, field.Spec{PageCount: 3, Length: 300, Changed: 2})
	for _, c := range []Config{
		{Field: f, Variant: "plain:4", Unit: time.Millisecond},
		{Field: f, Variant: "plain", Unit: time.Millisecond},
		{Field: f, Variant: "deliver", Unit: time.Millisecond},
		{Field: f, Variant: "plain:1"},
		{Field: f, Variant: "plain:1", Unit: time.Hour * 1e5},
		{Field: f, Variant: "plain:1", Unit: time.Millisecond, Warmup: 400},
	} {
		if _, err := Run(t.Context(), c); !errors.Is(err, monitor.ErrInput) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := Run(ctx, Config{Field: f, Variant: "plain:1", Unit: time.Second}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("interrupted: %v", err)
	}
	if _, err := Run(t.Context(), Config{Field: f, Variant: "plain:1", Unit: time.Millisecond, Truth: t.TempDir() + "/a/b"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
}
