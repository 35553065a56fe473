package politeness

import (
	"context"
	"testing"
	"time"
)

func TestLocalSlots(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	var a localSlots
	var release []func(context.Context)
	for i := range 5 {
		l, err := a.Acquire(ctx, "192.0.2.1", 3, time.Minute)
		if (l != nil) != (i < 3) || err != nil {
			t.Errorf("slot %d: %v, %v", i, l != nil, err)
		}
		release = append(release, l)
	}
	release[0](ctx)
	if l, _ := a.Acquire(ctx, "192.0.2.1", 3, time.Minute); l == nil {
		t.Error("a slot that is free is refused")
	} else {
		l(ctx)
	}
	if l, _ := a.Acquire(ctx, "192.0.2.2", 3, time.Minute); l == nil {
		t.Error("a slot at another address is refused")
	}
	release[1](ctx)
	release[2](ctx)
	if len(a.taken) != 1 {
		t.Errorf("addresses left over: %v", a.taken)
	}
}
