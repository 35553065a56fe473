package emulate

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/freshet/freshet/lab/field"
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
// simulator says.
func TestEmulationAgreesWithSimulation(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		variant string
		unit    time.Duration
		field   field.Spec
	}{
		{"plain:6", time.Millisecond, field.Spec{PageCount: 150, Length: 4000, Changed: 8, Seed: 1}},
		{"conditional:2", 2 * time.Millisecond, field.Spec{PageCount: 100, Length: 2000, Changed: 4, Seed: 2}},
		{"sensor", time.Millisecond, field.Spec{PageCount: 40, Length: 4000, Changed: 8, Requested: 40, Seed: 3}},
	} {
		t.Run(tt.variant, func(t *testing.T) {
			t.Parallel()
			r, err := Run(context.Background(), Config{Field: mustField(t, tt.field), Variant: tt.variant, Unit: tt.unit, Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s: emulated %.2f %%, simulated %.2f %%; late %.2f units, at most %.1f", tt.variant, r.FreshnessMean, r.Simulated.FreshnessMean, r.Late, r.LateMax)
			t.Logf("downloads %d %d probes %d %d bytes %d %d detected %d %d delay %.1f %.1f cycles %v %v", r.Downloads, r.Simulated.Downloads, r.Probes, r.Simulated.Probes, r.Bytes, r.Simulated.Bytes, r.Detected, r.Simulated.Detected, r.Delay.Mean, r.Simulated.Delay.Mean, r.Cycles, r.Simulated.Cycles)
			if math.Abs(r.Difference) > 2 {
				t.Errorf("difference %.2f points", r.Difference)
			}
		})
	}
}
