package visithours

import (
	"strings"
	"testing"
	"time"
)

// When a visit may be made next, also over midnight, the end of the week, and the change
// to summer time.
func TestNextOpen(t *testing.T) {
	t.Parallel()
	const layout = "2006-01-02 15:04"
	for _, tt := range []struct{ hours, at, want string }{
		{"", "2026-11-23 12:00", "2026-11-23 12:00"},
		{"mon-fri 20:00-06:00", "2026-11-23 12:00", "2026-11-23 20:00"}, // a Monday
		{"mon-fri 20:00-06:00", "2026-11-23 20:00", "2026-11-23 20:00"},
		{"mon-fri 20:00-06:00", "2026-11-24 05:59", "2026-11-24 05:59"}, // the night from Monday
		{"mon-fri 20:00-06:00", "2026-11-24 06:00", "2026-11-24 20:00"},
		{"mon-fri 20:00-06:00", "2026-11-23 03:00", "2026-11-23 20:00"}, // the night from Sunday
		{"mon-fri 20:00-06:00", "2026-11-28 05:00", "2026-11-28 05:00"}, // the night from Friday
		{"mon-fri 20:00-06:00", "2026-11-28 07:00", "2026-11-30 20:00"},
		{"sat, sun", "2026-11-25 08:00", "2026-11-28 00:00"},
		{"sat, sun", "2026-11-29 23:59", "2026-11-29 23:59"},
		{"fri-mon 10:00-24:00", "2026-11-24 08:00", "2026-11-27 10:00"},
		{"mon 08:00-09:00", "2026-11-23 09:00", "2026-11-30 08:00"},
		{"8:00-9:00, 12:00-13:00", "2026-11-23 10:00", "2026-11-23 12:00"},
		{"02:00-04:00", "2026-03-29 00:00", "2026-03-29 03:00"}, // there is no 02:00 to 03:00 in this night
	} {
		h, err := Parse(tt.hours, "Europe/Berlin")
		if err != nil {
			t.Fatal(err)
		}
		at, err := time.ParseInLocation(layout, tt.at, h.zone)
		if err != nil {
			t.Fatal(err)
		}
		if got := h.NextOpen(at).In(h.zone).Format(layout); got != tt.want {
			t.Errorf("%q at %s: open %s, want %s", tt.hours, tt.at, got, tt.want)
		}
	}
}

// What cannot be read says why, with the nearest name.
func TestParseErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ hours, zone, want string }{
		{"mno 8:00-9:00", "", `did you mean "mon"`},
		{"mon 8-9", "", "no time such as"},
		{"mon 25:00-26:00", "", "no time such as"},
		{"mon 8:00", "", "no span of time"},
		{"8:00-8:00", "", "no span of time"},
		{"mon 8:00-9:00 sharp", "", "is written as"},
		{"8:00-9:00 mon", "", "is written as"},
		{"mon,,tue", "", "is written as"},
		{"mon", "Europe/Nowhere", "no time zone"},
	} {
		if _, err := Parse(tt.hours, tt.zone); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q in %q: error %v, want one with %q", tt.hours, tt.zone, err, tt.want)
		}
	}
}
