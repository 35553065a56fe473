// Package trap recognises what a web robot would waste its time on: endless spaces of URLs,
// hosts that are copies of others, answers that hide a missing page, hostile answers.
package trap

import (
	"strings"
	"time"

	"github.com/freshet/freshet/weburl"
)

// Limits are the bounds by which endless spaces of URLs are recognised. WithDefaults
// replaces zeros.
type Limits struct {
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

// A list of many pages is a chain, too, if each links the next only, but leads to
// other pages. A chain of more than longChain pages of one shape, that many links
// from a start, goes on only as long as the host has had as many other pages.
const (
	longChain      = 1000
	longChainDepth = 500 // links from a start
)

// WithDefaults returns the limits with defaults for those that are not set.
func (l Limits) WithDefaults() Limits {
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&l.Segments, 24)
	def(&l.Repeats, 3)
	def(&l.Params, 16)
	def(&l.Years, 2)
	def(&l.Shape, 100_000)
	def(&l.Dated, 600)
	def(&l.Deep, 300)
	if l.HostMax <= 0 {
		l.HostMax = 5_000_000
	}
	return l
}

// Kind names a kind of trap. Kinds are stored as the reason of pages and counted on the
// status page.
type Kind string

// Kinds of traps.
const (
	HostBudget        Kind = "host budget"
	DeepPath          Kind = "deep path"
	PathLoop          Kind = "path loop"
	ManyParameters    Kind = "many parameters"
	Calendar          Kind = "calendar"
	OneShape          Kind = "one shape"
	DeepFolders       Kind = "deep folders"
	Mirror            Kind = "mirror host"
	NearDuplicate     Kind = "near-duplicate host"
	SoftNotFound      Kind = "soft 404"
	Session           Kind = "session number"
	Tracking          Kind = "tracking parameter"
	RedirectLoop      Kind = "redirect loop"
	RedirectChain     Kind = "redirect chain"
	DecompressionBomb Kind = "decompression bomb"
	SlowDrip          Kind = "slow drip"
	Silence           Kind = "silence"
	HeaderFlood       Kind = "header flood"
	FalseEncoding     Kind = "false encoding"
	PrivateAddress    Kind = "private address"
	Untrusted         Kind = "untrusted certificate"
	EndlessBody       Kind = "endless body"
	LinkFlood         Kind = "link flood"
	BadCharset        Kind = "bad charset"
	WrongContentType  Kind = "wrong content type"
	DeepNesting       Kind = "deep nesting"
	NestedSitemaps    Kind = "nested sitemaps"
)

// Check returns "" for an ordinary URL, else the kind of trap it looks like.
// host and pages are of the host on which it was found.
func (l Limits) Check(u weburl.URL, host string, pages int64) Kind {
	if u.Host() == host && pages >= l.HostMax {
		return HostBudget
	}
	path := u.Path()
	segments := strings.Count(path, "/")
	if segments > l.Segments {
		return DeepPath
	}
	if segments > 2*l.Repeats-2 && l.repeatsSegments(path) {
		return PathLoop
	}
	if q := u.Query(); q != "" && strings.Count(q, "&") >= l.Params {
		return ManyParameters
	}
	if isFutureDate(u.Target(), l.Years) {
		return Calendar
	}
	return ""
}

// repeatsSegments reports whether a sequence of one to three segments stands Repeats
// times or more in a row, or one segment more than twice that anywhere.
func (l Limits) repeatsSegments(path string) bool {
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
			if run++; run >= l.Repeats {
				return true
			}
		}
	}
	count := map[string]int{}
	for _, s := range segs {
		if count[s]++; count[s] > 2*l.Repeats {
			return true
		}
	}
	return false
}

// isFutureDate reports whether a target has a date (2031-05, 2031/05, month=...
// year=2031) more than years years from now.
func isFutureDate(target string, years int) bool {
	for i := 0; i+4 <= len(target); i++ {
		if target[i] != '2' || (i > 0 && isDigit(target[i-1])) || !isDigit(target[i+1]) || !isDigit(target[i+2]) || !isDigit(target[i+3]) || (i+4 < len(target) && isDigit(target[i+4])) {
			continue
		}
		year := int(target[i]-'0')*1000 + int(target[i+1]-'0')*100 + int(target[i+2]-'0')*10 + int(target[i+3]-'0')
		if year <= 2025 || year <= time.Now().Year()+years { // the clock is asked for few
			continue
		}
		rest := target[i+4:]
		if len(rest) >= 3 && (rest[0] == '-' || rest[0] == '/' || rest[0] == '.') && isDigit(rest[1]) && (rest[1] <= '1') {
			return true
		}
		if i >= 5 && strings.EqualFold(target[i-5:i], "year=") {
			return true
		}
	}
	return false
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
