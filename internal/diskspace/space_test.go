package diskspace

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

func TestGuard(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := New(dir, 1).Check(); err != nil {
		t.Errorf("one byte is not free: %v", err)
	}
	g := New(dir, 1<<62)
	if err := g.Check(); !errors.Is(err, ErrFull) || !strings.Contains(err.Error(), "MB are free") {
		t.Errorf("four exabytes are free: %v", err)
	}
	if first, again := g.Check(), g.Check(); first != again {
		t.Error("asked twice within a second")
	}
	if err := New(filepath.Join(dir, "none"), 1).Check(); err == nil || errors.Is(err, ErrFull) {
		t.Errorf("a folder that is not there: %v", err)
	}
}
