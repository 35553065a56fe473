package fetch

import (
	"bytes"
	"net/http"
	"net/textproto"
	"strings"
)

// ordinary is the header of an answer as nearly all servers send it: HTTP/1.1, a
// body of a length that is said, one line for each field, nothing that changes how
// the body is sent or the connection used. It is read in half the time that
// net/http takes, which reads all others. What is taken here is a part of what
// net/http takes, with the same outcome.
type ordinary struct {
	size   int // of the header in bytes
	status int
	length int64
	header http.Header
	values []string // those of header
}

const protocol = "HTTP/1.1"

// readOrdinary reads the header at the beginning of b. It reports false for one
// that is not whole or not ordinary. header, which is empty, and values are used
// if there is room in them.
func readOrdinary(b []byte, header http.Header, values []string) (o ordinary, ok bool) {
	o.header, o.values = header, values[:0]
	end := bytes.Index(b, []byte("\r\n\r\n"))
	if end < 0 {
		return o, false
	}
	text := string(b[:end+2]) // names and values are parts of it
	o.size, o.length = end+4, -1
	line, text, _ := strings.Cut(text, "\r\n")
	if o.status, ok = readStatus(line); !ok {
		return o, false
	}
	n := strings.Count(text, "\n")
	if o.header == nil {
		o.header = make(http.Header, n)
	}
	if cap(o.values) < n {
		o.values = make([]string, 0, n)
	}
	for len(text) > 0 {
		line, text, _ = strings.Cut(text, "\r\n")
		name, value, found := strings.Cut(line, ":")
		if !found || !all(name, &nameBytes) || name == "" || !all(value, &valueBytes) {
			return o, false
		}
		name, value = textproto.CanonicalMIMEHeaderKey(name), strings.Trim(value, " \t")
		if !o.takes(name, value) {
			return o, false
		}
		if before := o.header[name]; before != nil {
			o.header[name] = append(before, value)
			continue
		}
		i := len(o.values)
		o.values = append(o.values, value)
		o.header[name] = o.values[i : i+1 : i+1]
	}
	return o, o.length >= 0
}

// readStatus reads the first line.
func readStatus(line string) (status int, ok bool) {
	const at = len(protocol) + 1
	if len(line) < at+3 || line[:at] != protocol+" " || len(line) > at+3 && line[at+3] != ' ' || !all(line, &valueBytes) {
		return 0, false
	}
	for _, c := range []byte(line[at : at+3]) {
		if c < '0' || c > '9' {
			return 0, false
		}
		status = 10*status + int(c-'0')
	}
	return status, status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}

// takes reports whether a field leaves the answer ordinary.
func (o *ordinary) takes(name, value string) bool {
	switch name {
	case "Content-Length":
		if o.length >= 0 || value == "" || len(value) > 15 {
			return false
		}
		o.length = 0
		for _, c := range []byte(value) {
			if c < '0' || c > '9' {
				return false
			}
			o.length = 10*o.length + int64(c-'0')
		}
	case "Connection":
		return value == "keep-alive"
	case "Transfer-Encoding", "Trailer", "Pragma", "Upgrade":
		return false
	}
	return true
}

// all reports whether a text has bytes of a set only.
func all(text string, set *[256]bool) bool {
	for i := range len(text) {
		if !set[text[i]] {
			return false
		}
	}
	return true
}

// nameBytes may stand in the name of a field (RFC 9110, token), valueBytes in a
// value: no controls.
var nameBytes, valueBytes = func() (name, value [256]bool) {
	for c := range 256 {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9'
		name[c] = letter || c < 0x80 && c > ' ' && strings.IndexByte("!#$%&'*+-.^_`|~", byte(c)) >= 0
		value[c] = c == '\t' || c >= ' ' && c != 0x7f
	}
	return name, value
}()
