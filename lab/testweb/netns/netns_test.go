package netns

import (
	"errors"
	"os"
	"path/filepath"
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
	for _, err := range []error{explainNamespaceError(t.TempDir(), "make", unix.EPERM), explainDenied("mount", unix.EPERM)} {
		if !errors.Is(err, unix.EPERM) {
			t.Errorf("%v hides its cause", err)
		}
		for _, way := range []string{"--proxy", "--dns", "--answer"} {
			if !strings.Contains(err.Error(), way) {
				t.Errorf("%v does not name %s", err, way)
			}
		}
	}
	if err := explainDenied("mount", unix.ENOENT); strings.Contains(err.Error(), "--proxy") {
		t.Errorf("%v is not for want of a right", err)
	}
}

// The setting that restricts, of those that systems have, is named with what
// lifts it; the others are not.
func TestErrorNamesTheSetting(t *testing.T) {
	t.Parallel()
	for _, restricting := range settings {
		dir := t.TempDir()
		for _, s := range settings {
			value := map[string]string{"0": "1", "1": "0"}[s.value]
			if s == restricting {
				value = s.value
			}
			name := filepath.Join(dir, s.file)
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte(value+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		text := explainNamespaceError(dir, "make", unix.EPERM).Error()
		for _, s := range settings {
			if named := strings.Contains(text, s.advice); named != (s == restricting) {
				t.Errorf("%s restricts, %s is named: %v: %s", restricting.file, s.file, named, text)
			}
		}
	}
}
