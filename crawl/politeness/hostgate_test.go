package politeness

import (
	"fmt"
	"testing"
	"time"
)

// Gates of hosts that nobody needs are dropped, those that an auxiliary request went
// through when their hosts have rested for long.
func TestHostGatesAreDropped(t *testing.T) {
	t.Parallel()
	var h hostGates
	now := time.Now()
	for i := range 3 * minGates {
		host := fmt.Sprint(i)
		g := h.acquire(host)
		g.auxiliary = i%2 == 0
		g.rest(now.Add(-2 * gateKept))
		h.release(host, g)
	}
	if n := len(h.gates); n > minGates {
		t.Errorf("%d gates are kept, want at most %d", n, minGates)
	}
	g := h.acquire("rests")
	g.auxiliary = true
	g.rest(now.Add(time.Hour))
	h.release("rests", g)
	h.sweep(now)
	if again := h.acquire("rests"); again != g {
		t.Error("the gate of a host that rests was dropped")
	}
}
