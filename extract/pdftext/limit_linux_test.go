package pdftext

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A document is charged for the CPU time that it takes, not for what others take of an
// overloaded machine, until it is clear that it never ends.
func TestTimed(t *testing.T) {
	t.Parallel()
	const limit = 20 * time.Second
	tests := []struct {
		name string
		wait time.Duration // by the clock, without CPU time
		want error
	}{
		{"short", time.Second, nil},
		{"long", 5 * limit, nil},
		{"stalled", (stalledAfter + 3) * limit, errStalled},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				_ = runTimed(limit, cancel, func() error { time.Sleep(tt.wait); return nil })
				if got := context.Cause(ctx); !errors.Is(got, tt.want) {
					t.Errorf("cause %v, want %v", got, tt.want)
				}
			})
		})
	}
	t.Run("work", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancelCause(t.Context())
		_ = runTimed(time.Millisecond, cancel, func() error {
			for ctx.Err() == nil { // works until it is ended
			}
			return nil
		})
		if got := context.Cause(ctx); !errors.Is(got, errTime) {
			t.Errorf("cause %v, want %v", got, errTime)
		}
	})
}

// Another limit makes another fingerprint.
func TestFingerprint(t *testing.T) {
	t.Parallel()
	p, q := NewPool(Config{}), NewPool(Config{})
	if p.Fingerprint() != q.Fingerprint() {
		t.Error("two fingerprints of the same limits")
	}
	for _, c := range []Config{{Time: time.Minute}, {Memory: 512 << 20}} {
		if NewPool(c).Fingerprint() == p.Fingerprint() {
			t.Errorf("limits %+v have the fingerprint of the defaults", c)
		}
	}
	var none *Pool
	if none.Fingerprint() == p.Fingerprint() {
		t.Error("no reader has the fingerprint of one")
	}
}
