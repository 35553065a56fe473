package ratelimit

import (
	"fmt"
	"net/netip"
	"testing"
)

// The memory of a limiter is bounded, and a client that keeps asking stays
// limited however many others come by.
func TestLimiterForgetsTheOldest(t *testing.T) {
	t.Parallel()
	l := New(1e-9, 3, 100)
	for range 3 {
		if !l.Allow("busy") {
			t.Fatal("the burst was refused")
		}
	}
	for i := range 5000 {
		l.Allow(fmt.Sprint("other", i))
		if l.Allow("busy") {
			t.Fatalf("after %d other clients the busy one has a fresh burst", i)
		}
	}
	if l.Len() != 100 {
		t.Errorf("remembers %d clients, want 100", l.Len())
	}
	if !l.Allow("other0") {
		t.Error("a client that was forgotten is refused")
	}
	if l.AllowN("big", 4) {
		t.Error("more than the burst was allowed")
	}
	var none *Limiter
	if New(0, 1, 1) != none || !none.Allow("x") || none.Len() != 0 {
		t.Error("no limit limits")
	}
}

func TestClientKey(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"192.0.2.7":            "192.0.2.7",
		"::ffff:192.0.2.7":     "192.0.2.7",
		"2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64",
		"2001:db8:1:2:ffff::":  "2001:db8:1:2::/64",
		"2001:db8:1:3::1":      "2001:db8:1:3::/64",
		"fe80::1%eth0":         "fe80::/64",
	} {
		if got := ClientKey(netip.MustParseAddr(address)); got != want {
			t.Errorf("ClientKey(%s) = %s, want %s", address, got, want)
		}
	}
}
