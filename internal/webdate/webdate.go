// Package webdate reads the dates that web pages, feeds, sitemaps and headers
// have: those of RFC 3339, the W3C's profile of ISO 8601, RFC 822 and its
// successors, and what is written in their place.
package webdate

import (
	"strings"
	"time"
)

// Parse reads a date; the result is zero if s is none.
func Parse(s string) time.Time {
	if i := strings.LastIndexByte(s, ' '); i >= 0 {
		if offset := zones[s[i+1:]]; offset != "" { // which the time package reads, but takes for UTC
			s = s[:i+1] + offset
		}
	}
	for _, layout := range layouts {
		if t, err := time.Parse(layout, s); err == nil {
			return t
		}
	}
	return time.Time{}
}

var layouts = []string{
	time.RFC3339Nano, "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05Z0700", "2006-01-02T15:04Z0700", "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02", "2006-01", "2006",
	"2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05 Z07:00", "2006-01-02 15:04:05 -0700", "2006-01-02 15:04:05 MST", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006/01/02", "20060102",
	"Mon, 2 Jan 2006 15:04:05 MST", "Mon, 2 Jan 2006 15:04:05 -0700", "Mon, 2 Jan 2006 15:04 MST", "Mon, 2 Jan 2006 15:04 -0700", "Mon, 2 Jan 06 15:04:05 MST", "Mon, 2 Jan 06 15:04:05 -0700",
	"2 Jan 2006 15:04:05 MST", "2 Jan 2006 15:04:05 -0700", "2 Jan 06 15:04:05 MST", "2 Jan 06 15:04:05 -0700", "Mon, 2 January 2006 15:04:05 -0700", "Mon, 2 January 2006 15:04:05 MST", "Mon, 2 Jan 2006", "2 Jan 2006", time.RFC850, "Monday, 02-Jan-06 15:04:05 -0700", "02-Jan-2006 15:04:05 MST", "02-Jan-2006 15:04:05 -0700", "02-Jan-2006", time.ANSIC,
}

// zones are those of RFC 822.
var zones = map[string]string{"EST": "-0500", "EDT": "-0400", "CST": "-0600", "CDT": "-0500", "MST": "-0700", "MDT": "-0600", "PST": "-0800", "PDT": "-0700", "UT": "+0000", "Z": "+0000"}
