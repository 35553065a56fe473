package robots

import (
	"strings"
	"time"

	"github.com/freshet/freshet/internal/webdate"
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

// Hidden reports whether the page asks not to be shown at a time.
func (d *Directives) Hidden(now time.Time) bool {
	return d.NoIndex || !d.Until.IsZero() && now.After(d.Until)
}

// Add reads a list of directives ("noindex, nofollow") into d: the strictest
// of all that a page says holds. White space separates them as commas do.
func (d *Directives) Add(content string) { d.addList(content, "", false) }

// Header reads one X-Robots-Tag value. What stands behind the name of a robot is
// for it alone, up to the next name.
func (d *Directives) Header(value, token string) { d.addList(value, token, true) }

func (d *Directives) addList(list, token string, named bool) {
	mine := true
	for {
		list = strings.TrimLeft(list, separators)
		if list == "" {
			return
		}
		end := strings.IndexAny(list, separators+":")
		if end < 0 {
			end = len(list)
		}
		word := strings.ToLower(list[:end])
		list = list[end:]
		if after := strings.TrimLeft(list, " \t"); strings.HasPrefix(after, ":") {
			after = after[1:]
			switch {
			case word == "unavailable_after":
				list = d.readDate(after, mine)
				continue
			case strings.HasPrefix(word, "max-"):
				list = strings.TrimLeft(after, " \t")
				list = strings.TrimLeft(list, "-0123456789abcdefghijklmnopqrstuvwxyz")
				continue
			case named:
				mine = word == "*" || strings.EqualFold(word, token)
			}
			list = after
			continue
		}
		if mine {
			d.setDirective(word)
		}
	}
}

const separators = ", \t\r\n;"

func (d *Directives) setDirective(word string) {
	switch word {
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

// readDate reads a date, in which commas may be, from the begin of s, and returns
// what follows it: the longest piece that is one counts.
func (d *Directives) readDate(s string, mine bool) (rest string) {
	const longest = 64
	for end := min(len(s), longest); end > 0; end = strings.LastIndexByte(s[:end], ',') {
		if t := webdate.Parse(strings.TrimSpace(s[:end])); !t.IsZero() {
			if mine && (d.Until.IsZero() || t.Before(d.Until)) {
				d.Until = t
			}
			return s[end:]
		}
	}
	_, rest, _ = strings.Cut(s, ",")
	return rest
}
