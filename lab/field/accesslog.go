package field

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// Entry is a line of an access log in Common or Combined Log Format:
//
//	host ident user [10/Oct/2000:13:55:36 -0700] "GET /path HTTP/1.0" 200 2326 "referrer" "agent"
type Entry struct {
	Host, User string
	Time       time.Time
	Method     string
	Target     string // path with query; empty: the request line was no request
	Status     int
	Bytes      int64 // of the body; -1: not told ("-")
	Referrer   string
	Agent      string // empty in Common Log Format
}

// ErrLine is in errors of ParseEntry: what of a line is not as it should be.
var ErrLine = errors.New("not Common or Combined Log Format")

// ParseEntry reads a line. Quoted parts may hold \" and \\ and \x.. as Apache
// and nginx write them; they are kept as they are but for \" and \\. More fields
// after the agent are passed over.
func ParseEntry(line string) (Entry, error) {
	var e Entry
	l := cursor{rest: strings.TrimRight(line, "\r\n")}
	var request, size string
	var status string
	steps := []struct {
		what string
		read func() bool
	}{
		{"host", func() bool { return l.readWord(&e.Host) }},
		{"identity", func() bool { return l.readWord(nil) }},
		{"user", func() bool { return l.readUserName(&e.User) }},
		{"time in brackets", func() bool { return l.readLogTime(&e.Time) }},
		{"request in quotes", func() bool { return l.readQuoted(&request) }},
		{"status", func() bool { return l.readWord(&status) }},
		{"number of bytes", func() bool { return l.readWord(&size) }},
	}
	for _, s := range steps {
		if !s.read() {
			return Entry{}, fmt.Errorf("%w: no %s at %q", ErrLine, s.what, shortenQuoted(l.rest))
		}
	}
	n, err := strconv.Atoi(status)
	if err != nil || n < 0 || n > 999 {
		return Entry{}, fmt.Errorf("%w: status %q", ErrLine, shortenQuoted(status))
	}
	e.Status, e.Bytes = n, -1
	if size != "-" {
		if e.Bytes, err = strconv.ParseInt(size, 10, 64); err != nil || e.Bytes < 0 {
			return Entry{}, fmt.Errorf("%w: number of bytes %q", ErrLine, shortenQuoted(size))
		}
	}
	if l.rest != "" && (!l.readQuoted(&e.Referrer) || !l.readQuoted(&e.Agent)) {
		return Entry{}, fmt.Errorf("%w: no referrer and agent in quotes at %q", ErrLine, shortenQuoted(l.rest))
	}
	e.Method, e.Target = splitRequest(request)
	return e, nil
}

// splitRequest takes "GET /path HTTP/1.1" apart; what is no request (bytes of
// TLS, an empty line) has no target.
func splitRequest(s string) (method, target string) {
	method, rest, ok := strings.Cut(s, " ")
	if !ok || method == "" {
		return "", ""
	}
	for _, c := range []byte(method) {
		if c < 'A' || c > 'Z' {
			return "", ""
		}
	}
	target = rest
	if i := strings.LastIndex(rest, " HTTP/"); i >= 0 {
		target = rest[:i]
	}
	return method, target
}

func shortenQuoted(s string) string {
	if len(s) > 40 {
		return s[:40] + "..."
	}
	return s
}

// cursor walks through a line; fields are separated by single spaces.
type cursor struct{ rest string }

// skipSpace passes over the space before the next field; the end will do too.
func (l *cursor) skipSpace() bool {
	if l.rest == "" {
		return true
	}
	if l.rest[0] != ' ' {
		return false
	}
	l.rest = l.rest[1:]
	return true
}

func (l *cursor) readWord(to *string) bool {
	i := strings.IndexByte(l.rest, ' ')
	if i < 0 {
		i = len(l.rest)
	}
	if i == 0 {
		return false
	}
	if to != nil {
		*to = l.rest[:i]
	}
	l.rest = l.rest[i:]
	return l.skipSpace()
}

// readUserName reads a user, whose name may hold spaces: up to the bracket.
func (l *cursor) readUserName(to *string) bool {
	i := strings.Index(l.rest, " [")
	if i <= 0 {
		return false
	}
	*to, l.rest = l.rest[:i], l.rest[i+1:]
	return true
}

func (l *cursor) readLogTime(to *time.Time) bool {
	i := strings.IndexByte(l.rest, ']')
	if i < 1 || l.rest[0] != '[' {
		return false
	}
	t, err := time.Parse("02/Jan/2006:15:04:05 -0700", l.rest[1:i])
	if err != nil {
		return false
	}
	*to, l.rest = t, l.rest[i+1:]
	return l.skipSpace()
}

// readQuoted reads a string in quotes.
func (l *cursor) readQuoted(to *string) bool {
	if l.rest == "" || l.rest[0] != '"' {
		return false
	}
	for i := 1; i < len(l.rest); i++ {
		switch l.rest[i] {
		case '\\':
			i++
		case '"':
			s := l.rest[1:i]
			if strings.IndexByte(s, '\\') >= 0 {
				s = strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(s)
			}
			*to, l.rest = s, l.rest[i+1:]
			return l.skipSpace()
		}
	}
	return false
}

// maxLine bounds a line of a log.
const maxLine = 1 << 20

// LogOptions say how logs are read.
type LogOptions struct {
	Name    string   // of the log, for errors
	Lenient bool     // pass over lines that are none of a log, counting them
	Robots  []string // agents that contain one of these are no visitors, but what they saw counts
}

// ReadLog adds the lines of a log to the sightings: GET and HEAD requests of
// paths. It returns how many lines were read, and how many passed over because
// they are none (0 unless lenient). An error names the line.
func ReadLog(r io.Reader, to *Sightings, o LogOptions) (lines, bad int, err error) {
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, 64<<10), maxLine)
	for sc.Scan() {
		lines++
		if len(strings.TrimSpace(sc.Text())) == 0 {
			continue
		}
		e, err := ParseEntry(sc.Text())
		if err != nil {
			if o.Lenient {
				bad++
				continue
			}
			return lines, bad, fmt.Errorf("%w: %s:%d: %w", ErrInput, o.Name, lines, err)
		}
		if e.Target == "" || (e.Method != "GET" && e.Method != "HEAD") {
			to.Skipped++
			continue
		}
		if err := to.Add(e.toSighting(o.Robots)); err != nil {
			return lines, bad, fmt.Errorf("%s:%d: %w", o.Name, lines, err)
		}
	}
	if err := sc.Err(); err != nil {
		return lines, bad, fmt.Errorf("%w: %s:%d: %w", ErrInput, o.Name, lines+1, err)
	}
	return lines, bad, nil
}

// toSighting says what an entry shows. Only a whole body of a 200 tells a size.
func (e *Entry) toSighting(robots []string) Sighting {
	s := Sighting{Name: e.Target, Time: e.Time, Status: e.Status, Size: -1, Visitor: true}
	if e.Status == 200 && e.Method == "GET" {
		s.Size = max(0, e.Bytes)
	}
	for _, r := range robots {
		if strings.Contains(strings.ToLower(e.Agent), strings.ToLower(r)) {
			s.Visitor = false
		}
	}
	return s
}
