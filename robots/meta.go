package robots

import (
	"strings"
	"time"
)

// Directives are what a page says about itself to robots, in a meta element or
// an X-Robots-Tag header. The zero value permits everything.
type Directives struct {
	NoIndex   bool
	NoFollow  bool
	NoArchive bool
	// Until is the time after which the page should not be shown, from
	// unavailable_after; zero is none.
	Until time.Time
}

// Add reads a list of directives ("noindex, nofollow") into d: the strictest
// of all that a page says holds.
func (d *Directives) Add(content string) {
	for content != "" {
		var part string
		lower := strings.ToLower(strings.TrimSpace(content))
		if strings.HasPrefix(lower, "unavailable_after:") { // a date may hold a comma
			_, date, _ := strings.Cut(content, ":")
			d.until(strings.TrimSpace(date))
			return
		}
		part, content, _ = strings.Cut(content, ",")
		switch strings.ToLower(strings.TrimSpace(part)) {
		case "noindex":
			d.NoIndex = true
		case "nofollow":
			d.NoFollow = true
		case "none":
			d.NoIndex, d.NoFollow = true, true
		case "noarchive", "nocache":
			d.NoArchive = true
		}
	}
}

// Header reads one X-Robots-Tag value, which may begin with the token of the
// robot that it is for.
func (d *Directives) Header(value, token string) {
	if name, rest, ok := strings.Cut(value, ":"); ok {
		name = strings.TrimSpace(name)
		if !strings.ContainsAny(name, ", ") && !strings.EqualFold(name, "unavailable_after") && !strings.HasPrefix(strings.ToLower(name), "max-") {
			if !strings.EqualFold(name, token) && name != "*" {
				return
			}
			value = rest
		}
	}
	d.Add(value)
}

func (d *Directives) until(date string) {
	for _, layout := range []string{time.RFC1123, time.RFC1123Z, time.RFC850, time.RFC3339, "2006-01-02", "02-Jan-2006 15:04:05 MST", "2 Jan 2006 15:04:05 MST"} {
		if t, err := time.Parse(layout, date); err == nil {
			d.Until = t
			return
		}
	}
}
