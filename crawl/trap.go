package crawl

import (
	"strings"
	"time"

	"github.com/freshet/freshet/weburl"
)

// Traps are the bounds by which endless spaces of URLs are recognised. The
// zero value has defaults.
type Traps struct {
	Segments int   // in a path; default 24
	Repeats  int   // of one segment, or of a sequence of segments; default 3
	Params   int   // in a query; default 16
	Years    int   // dates further ahead than this are a calendar; default 2
	HostMax  int64 // pages of one host; default 5 million
	Shape    int   // URLs of a host that differ in numbers only; default 100,000
	Dated    int   // ... that end in a year and a month; default 600
	Deep     int   // URLs of a host below eight folders, more on one with 8 times as many ordinary pages; default 300
}

// An archive has a page for every month and pages in it, an endless calendar has
// months only, and each is found on the one before. So a host gets more dated URLs
// than twenty years of months, more than a few that are many links from a start, and
// more deep folders than a few, only if it has as many ordinary pages, of deep
// folders twice as many.
const (
	datedFree   = 240
	chainedFree = 24
	deepFree    = 24
	chainDepth  = 12 // links from a start
)

func (t Traps) withDefaults() Traps {
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&t.Segments, 24)
	def(&t.Repeats, 3)
	def(&t.Params, 16)
	def(&t.Years, 2)
	def(&t.Shape, 100_000)
	def(&t.Dated, 600)
	def(&t.Deep, 300)
	if t.HostMax <= 0 {
		t.HostMax = 5_000_000
	}
	return t
}

// Check returns "" for an ordinary URL, else the kind of trap it looks like.
// host and pages are of the host on which it was found.
func (t Traps) Check(u weburl.URL, host string, pages int64) string {
	if u.Host() == host && pages >= t.HostMax {
		return "host budget"
	}
	path := u.Path()
	segments := strings.Count(path, "/")
	if segments > t.Segments {
		return "deep path"
	}
	if segments > 2*t.Repeats-2 && t.repeats(path) {
		return "path loop"
	}
	if q := u.Query(); q != "" && strings.Count(q, "&") >= t.Params {
		return "many parameters"
	}
	if calendar(u.Target(), t.Years) {
		return "calendar"
	}
	return ""
}

// repeats reports whether a sequence of one to three segments stands Repeats
// times or more in a row, or one segment more than twice that anywhere.
func (t Traps) repeats(path string) bool {
	segs := strings.Split(strings.Trim(path, "/"), "/")
	for n := 1; n <= 3; n++ {
		run := 1
		for i := n; i+n <= len(segs); i += n {
			same := true
			for k := range n {
				same = same && segs[i+k] == segs[i+k-n]
			}
			if !same {
				run = 1
				continue
			}
			if run++; run >= t.Repeats {
				return true
			}
		}
	}
	count := map[string]int{}
	for _, s := range segs {
		if count[s]++; count[s] > 2*t.Repeats {
			return true
		}
	}
	return false
}

// calendar reports whether a target has a date (2031-05, 2031/05, month=...
// year=2031) more than so many years from now.
func calendar(target string, years int) bool {
	for i := 0; i+4 <= len(target); i++ {
		if target[i] != '2' || (i > 0 && digit(target[i-1])) || !digit(target[i+1]) || !digit(target[i+2]) || !digit(target[i+3]) || (i+4 < len(target) && digit(target[i+4])) {
			continue
		}
		year := int(target[i]-'0')*1000 + int(target[i+1]-'0')*100 + int(target[i+2]-'0')*10 + int(target[i+3]-'0')
		if year <= 2025 || year <= time.Now().Year()+years { // the clock is asked for few
			continue
		}
		rest := target[i+4:]
		if len(rest) >= 3 && (rest[0] == '-' || rest[0] == '/' || rest[0] == '.') && digit(rest[1]) && (rest[1] <= '1') {
			return true
		}
		if i >= 5 && strings.EqualFold(target[i-5:i], "year=") {
			return true
		}
	}
	return false
}

func digit(c byte) bool { return c >= '0' && c <= '9' }
