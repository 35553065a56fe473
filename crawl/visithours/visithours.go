// Package visithours reads the times of the week at which a robot may visit a host, such
// as "mon-fri 20:00-06:00, sat, sun".
package visithours

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/freshet/freshet/internal/spell"
)

// Hours are weekly windows of time. The zero value is always open.
type Hours struct {
	windows []window
	zone    *time.Location
}

// window is a span of time that begins on some days of the week.
type window struct {
	days     [7]bool // by time.Weekday
	from, to int     // minutes after midnight; to <= from ends on the next day
}

var dayNames = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// Parse reads windows separated by commas: days (mon-fri, sat), times (20:00-06:00) or
// both. zone is a name of the time zone database; "" is the zone of the machine. An empty
// text is always open.
func Parse(text, zone string) (*Hours, error) {
	h := &Hours{zone: time.Local}
	if zone != "" {
		var err error
		if h.zone, err = time.LoadLocation(zone); err != nil {
			return nil, fmt.Errorf("time_zone: %q is no time zone such as Europe/Vilnius", zone)
		}
	}
	if strings.TrimSpace(text) == "" {
		return h, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		w, err := parseWindow(strings.Fields(strings.ToLower(part)))
		if err != nil {
			return nil, fmt.Errorf("hours: %q: %w", strings.TrimSpace(part), err)
		}
		h.windows = append(h.windows, w)
	}
	return h, nil
}

func parseWindow(words []string) (w window, err error) {
	if len(words) == 0 || len(words) > 2 {
		return w, fmt.Errorf("a window is written as mon-fri 20:00-06:00")
	}
	w = window{days: [7]bool{true, true, true, true, true, true, true}, to: minutesOfDay}
	if !strings.Contains(words[0], ":") {
		if err := w.parseDays(words[0]); err != nil {
			return w, err
		}
		words = words[1:]
	}
	switch len(words) {
	case 0:
		return w, nil
	case 2:
		return w, fmt.Errorf("a window is written as mon-fri 20:00-06:00")
	}
	from, to, ok := strings.Cut(words[0], "-")
	if !ok {
		return w, fmt.Errorf("%q is no span of time such as 20:00-06:00", words[0])
	}
	if w.from, err = parseClock(from); err != nil {
		return w, err
	}
	if w.to, err = parseClock(to); err != nil {
		return w, err
	}
	if w.from == w.to || w.from == minutesOfDay {
		return w, fmt.Errorf("%q is no span of time such as 20:00-06:00", words[0])
	}
	return w, nil
}

const minutesOfDay = 24 * 60

// parseDays reads a day or a span of days, which may go over the end of the week.
func (w *window) parseDays(text string) error {
	first, last, isSpan := strings.Cut(text, "-")
	if !isSpan {
		last = first
	}
	from, err := parseDay(first)
	if err != nil {
		return err
	}
	to, err := parseDay(last)
	if err != nil {
		return err
	}
	w.days = [7]bool{}
	for d := from; ; d = (d + 1) % 7 {
		w.days[d] = true
		if d == to {
			return nil
		}
	}
}

func parseDay(name string) (int, error) {
	for i, d := range dayNames {
		if name == d {
			return i, nil
		}
	}
	return 0, fmt.Errorf("%q is no day%s", name, spell.Suggest(name, dayNames))
}

// parseClock reads hours and minutes, up to 24:00.
func parseClock(text string) (minutes int, err error) {
	hour, minute, ok := strings.Cut(text, ":")
	h, herr := strconv.Atoi(hour)
	m, merr := strconv.Atoi(minute)
	if !ok || herr != nil || merr != nil || h < 0 || m < 0 || m > 59 || h*60+m > minutesOfDay {
		return 0, fmt.Errorf("%q is no time such as 20:00", text)
	}
	return h*60 + m, nil
}

// NextOpen returns the first time not before t at which the robot may visit.
func (h *Hours) NextOpen(t time.Time) time.Time {
	if h == nil || len(h.windows) == 0 {
		return t
	}
	local := t.In(h.zone)
	var next time.Time
	for day := -1; day <= 7; day++ { // a window of yesterday may go over midnight
		for _, w := range h.windows {
			from, to, ok := w.on(local, day)
			switch {
			case !ok || !t.Before(to):
			case !from.After(t):
				return t
			case next.IsZero() || from.Before(next):
				next = from
			}
		}
	}
	return next
}

// on returns the window that begins some days after the day of t. ok is false if none
// does.
func (w *window) on(t time.Time, days int) (from, to time.Time, ok bool) {
	y, m, d := t.Date()
	at := func(day, minutes int) time.Time {
		return time.Date(y, m, day, minutes/60, minutes%60, 0, 0, t.Location())
	}
	from = at(d+days, w.from)
	if w.to <= w.from {
		to = at(d+days+1, w.to)
	} else {
		to = at(d+days, w.to)
	}
	return from, to, w.days[time.Date(y, m, d+days, 12, 0, 0, 0, t.Location()).Weekday()]
}
