// Package progress shows how far a long piece of work is, on one line of a
// terminal that is rewritten in place, or as an occasional plain line when the
// output is a file. It tells the time left when the total is known.
package progress

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// Line is a progress line. The zero value prints nothing, so that --quiet is
// a Line that nobody opened. Its methods may be called from any goroutine.
type Line struct {
	mu       sync.Mutex
	w        io.Writer
	terminal bool
	start    time.Time
	last     time.Time
	width    int
}

// New returns a line that writes to w: in place when w is a terminal, else a
// new line at most every ten seconds. A nil w makes a silent line.
func New(w io.Writer) *Line {
	l := &Line{w: w, start: time.Now()}
	if f, ok := w.(*os.File); ok {
		if st, err := f.Stat(); err == nil && st.Mode()&os.ModeCharDevice != 0 {
			l.terminal = true
		}
	}
	return l
}

// Update shows text; done of total tells the share and the time left (total 0:
// unknown). Calls between two refreshes (0.2 s on a terminal, 10 s elsewhere)
// cost a lock and a clock reading.
func (l *Line) Update(done, total int64, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.w == nil {
		return
	}
	every := 10 * time.Second
	if l.terminal {
		every = 200 * time.Millisecond
	}
	now := time.Now()
	if l.last.IsZero() {
		l.last = l.start
	}
	if now.Sub(l.last) < every {
		return
	}
	l.last = now
	l.printLine(Format(done, total, now.Sub(l.start)) + text)
}

// Done ends the line with a last text; it does nothing on a silent line.
func (l *Line) Done(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.w == nil {
		return
	}
	l.printLine(text)
	if l.terminal {
		fmt.Fprintln(l.w)
	}
	l.w = nil
}

func (l *Line) printLine(s string) {
	if !l.terminal {
		fmt.Fprintln(l.w, s)
		return
	}
	n := len([]rune(s))
	fmt.Fprint(l.w, "\r", s, strings.Repeat(" ", max(0, l.width-n)))
	l.width = n
}

// Format returns "12% 0:34 left  " for work that is done of total after
// elapsed, or the elapsed time alone when the total is unknown.
func Format(done, total int64, elapsed time.Duration) string {
	if total <= 0 || done <= 0 {
		return Clock(elapsed) + "  "
	}
	left := time.Duration(float64(elapsed) * float64(max(0, total-done)) / float64(done))
	return fmt.Sprintf("%3d%% %s left  ", min(100, done*100/total), Clock(left))
}

// Clock prints a duration as m:ss or h:mm:ss.
func Clock(d time.Duration) string {
	s := int64(d.Round(time.Second) / time.Second)
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}
