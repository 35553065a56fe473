// Package truth is the log of what a test web was asked and what it knew: a
// JSON object a line, one for each request, after one that describes the web.
//
// The log alone is enough to judge a robot. Each answer that showed a page
// carries the page's number, its version and the moment at which the shown
// version ends, so the freshness of the robot's copy at any time follows
// without replaying the history of changes.
package truth

import (
	"strconv"
	"time"
	"unicode/utf8"
)

// Kind says what stood behind an answer.
type Kind string

// The kinds of answers.
const (
	Page      Kind = "page"      // a page of the graph
	Robots    Kind = "robots"    // robots.txt
	Sitemap   Kind = "sitemap"   // a sitemap
	Redirect  Kind = "redirect"  // 3xx
	Trap      Kind = "trap"      // a page of an endless space: calendar, depth, session
	Forbidden Kind = "forbidden" // a page that robots.txt disallows
	Soft404   Kind = "soft404"   // 200 that says the page does not exist
	Missing   Kind = "missing"   // 404 and 410
	Failure   Kind = "failure"   // 5xx, 429, resets: the web's fault, not the robot's
	Other     Kind = "other"     // portal pages and the like
	Web       Kind = "web"       // the description of the web, not a request
)

// Visitor is the user agent of the web's own visitors: no part of the robot that
// is judged.
const Visitor = "Freshet-Visitor"

// NoPage is the page number of an answer that showed no page of the graph.
const NoPage = -1

// Record is a line of the log. The first nine fields stand in every line.
type Record struct {
	Time        time.Time `json:"time"` // when the request had been read
	Host        string    `json:"host"`
	Path        string    `json:"path"` // with the query
	Method      string    `json:"method"`
	Status      int       `json:"status"` // 0 if the connection was broken before an answer
	Bytes       int64     `json:"bytes"`  // of the body as sent, compressed or not
	Agent       string    `json:"agent"`
	Page        int64     `json:"page"` // NoPage if none
	Conditional bool      `json:"conditional"`

	Kind     Kind    `json:"kind"`
	Duration float64 `json:"duration,omitempty"` // seconds from Time to the last byte
	Scheme   string  `json:"scheme,omitempty"`   // "https", or empty for http
	Local    string  `json:"local,omitempty"`    // the address the robot connected to, where that tells something

	// Of an answer that showed a page, or said that it had not changed:
	Version    uint64    `json:"version,omitempty"`     // number of changes before Time
	Changed    time.Time `json:"changed,omitzero"`      // when the shown version began
	FreshUntil time.Time `json:"fresh_until,omitzero"`  // when it ends
	CopyOf     int64     `json:"copy_of,omitempty"`     // 1 + the page whose text this one repeats
	Similarity float64   `json:"similarity,omitempty"`  // share of sentences in common with it
	Behaviour  string    `json:"behaviour,omitempty"`   // the behaviours that had a hand in it
	Disallowed bool      `json:"disallowed,omitempty"`  // robots.txt forbids it
	CrawlDelay float64   `json:"crawl_delay,omitempty"` // seconds that the host's robots.txt asks for
}

// Append appends the record as a line of JSON, the same that encoding/json would
// write, without allocating.
func (r *Record) Append(b []byte) []byte {
	b = append(b, `{"time":"`...)
	b = r.Time.AppendFormat(b, time.RFC3339Nano)
	b = appendJSONString(append(b, `","host":`...), r.Host)
	b = appendJSONString(append(b, `,"path":`...), r.Path)
	b = appendJSONString(append(b, `,"method":`...), r.Method)
	b = strconv.AppendInt(append(b, `,"status":`...), int64(r.Status), 10)
	b = strconv.AppendInt(append(b, `,"bytes":`...), r.Bytes, 10)
	b = appendJSONString(append(b, `,"agent":`...), r.Agent)
	b = strconv.AppendInt(append(b, `,"page":`...), r.Page, 10)
	b = strconv.AppendBool(append(b, `,"conditional":`...), r.Conditional)
	b = appendJSONString(append(b, `,"kind":`...), string(r.Kind))
	if r.Duration != 0 {
		b = strconv.AppendFloat(append(b, `,"duration":`...), r.Duration, 'f', 6, 64)
	}
	if r.Scheme != "" {
		b = appendJSONString(append(b, `,"scheme":`...), r.Scheme)
	}
	if r.Local != "" {
		b = appendJSONString(append(b, `,"local":`...), r.Local)
	}
	if r.Version != 0 {
		b = strconv.AppendUint(append(b, `,"version":`...), r.Version, 10)
	}
	b = appendTime(b, `,"changed":"`, r.Changed)
	b = appendTime(b, `,"fresh_until":"`, r.FreshUntil)
	if r.CopyOf != 0 {
		b = strconv.AppendInt(append(b, `,"copy_of":`...), r.CopyOf, 10)
		b = strconv.AppendFloat(append(b, `,"similarity":`...), r.Similarity, 'g', 6, 64)
	}
	if r.Behaviour != "" {
		b = appendJSONString(append(b, `,"behaviour":`...), r.Behaviour)
	}
	if r.Disallowed {
		b = append(b, `,"disallowed":true`...)
	}
	if r.CrawlDelay != 0 {
		b = strconv.AppendFloat(append(b, `,"crawl_delay":`...), r.CrawlDelay, 'g', 6, 64)
	}
	return append(b, "}\n"...)
}

func appendTime(b []byte, key string, t time.Time) []byte {
	if t.IsZero() {
		return b
	}
	return append(t.AppendFormat(append(b, key...), time.RFC3339Nano), '"')
}

const hexDigits = "0123456789abcdef"

// appendJSONString appends s as a JSON string; bytes that are not UTF-8 become
// U+FFFD, as encoding/json has it.
func appendJSONString(b []byte, s string) []byte {
	b = append(b, '"')
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			b = utf8.AppendRune(b, r)
			i += n
			continue
		}
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ' || c == 0x7f:
			b = append(b, `\u00`...)
			b = append(b, hexDigits[c>>4], hexDigits[c&15])
		default:
			b = append(b, c)
		}
		i++
	}
	return append(b, '"')
}
