package progress

import (
	"bytes"
	"testing"
	"time"
)

func TestFormat(t *testing.T) {
	t.Parallel()
	tests := []struct {
		done, total int64
		elapsed     time.Duration
		want        string
	}{
		{0, 0, 5 * time.Second, "0:05  "},
		{25, 100, 10 * time.Second, " 25% 0:30 left  "},
		{100, 100, time.Minute, "100% 0:00 left  "},
		{200, 100, time.Minute, "100% 0:00 left  "},
		{1, 7201, time.Second, "  0% 2:00:00 left  "},
	}
	for _, tt := range tests {
		if got := Format(tt.done, tt.total, tt.elapsed); got != tt.want {
			t.Errorf("Format(%d, %d, %v) = %q, want %q", tt.done, tt.total, tt.elapsed, got, tt.want)
		}
	}
}

func TestLineOnAFile(t *testing.T) {
	t.Parallel()
	var buf bytes.Buffer
	l := New(&buf)
	for i := range int64(1000) { // far faster than the refresh: nothing is printed
		l.Update(i, 1000, "pages")
	}
	l.Done("done")
	l.Done("twice")
	if got := buf.String(); got != "done\n" {
		t.Errorf("printed %q", got)
	}
	var silent Line
	silent.Update(1, 2, "nothing")
	silent.Done("nothing")
}
