package crawl

import (
	"context"
	"testing"
	"time"
)

func TestAddresses(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	var a addresses
	var leave []func(context.Context)
	for i := range 5 {
		l, err := a.Enter(ctx, "192.0.2.1", 3, time.Minute)
		if (l != nil) != (i < 3) || err != nil {
			t.Errorf("place %d: %v, %v", i, l != nil, err)
		}
		leave = append(leave, l)
	}
	leave[0](ctx)
	if l, _ := a.Enter(ctx, "192.0.2.1", 3, time.Minute); l == nil {
		t.Error("a place that is free is refused")
	} else {
		l(ctx)
	}
	if l, _ := a.Enter(ctx, "192.0.2.2", 3, time.Minute); l == nil {
		t.Error("a place at another address is refused")
	}
	leave[1](ctx)
	leave[2](ctx)
	if len(a.busy) != 1 {
		t.Errorf("addresses left over: %v", a.busy)
	}
}
