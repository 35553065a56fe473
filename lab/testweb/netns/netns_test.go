package netns

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// The message is what `ip route add local default dev lo` sends (strace), in the
// byte order of the machine: length, type, attributes.
func TestRouteMessage(t *testing.T) {
	t.Parallel()
	b := routeMessage(unix.AF_INET, 1)
	if len(b) != 36 {
		t.Fatalf("%d bytes, want 16 of header, 12 of rtmsg, 8 of one attribute", len(b))
	}
	if b[16] != unix.AF_INET || b[17] != 0 || b[20] != unix.RT_TABLE_LOCAL || b[22] != unix.RT_SCOPE_HOST || b[23] != unix.RTN_LOCAL {
		t.Errorf("rtmsg % x", b[16:28])
	}
}

// Whatever forbids namespaces, the error names the ways that remain.
func TestErrorNamesTheWaysThatRemain(t *testing.T) {
	t.Parallel()
	err := explain(unix.EPERM)
	if !errors.Is(err, unix.EPERM) {
		t.Errorf("%v hides its cause", err)
	}
	for _, way := range []string{"--proxy", "--dns", "--answer"} {
		if !strings.Contains(err.Error(), way) {
			t.Errorf("%v does not name %s", err, way)
		}
	}
}
