package sensor

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
)

// Log follows the access log of a web server whose lines carry the ETag or
// Last-Modified of each answer, and tells of pages whose validators are not
// what they were. It follows the file by name through rotation and remembers
// where it was, so that a restart loses no line.
type Log struct {
	Path   string
	Sensor *Sensor
	State  string        // file that keeps the position; "" keeps none
	Poll   time.Duration // how often the file is looked at; 0 is a quarter of a second
	Log    *slog.Logger

	lines, odd int64
}

// Line is what a line of an access log says.
type Line struct {
	Method       string
	URI          string // path and query
	Status       int
	ETag         string
	LastModified string
}

// ErrLine is the error of a line that is of no known form.
var ErrLine = errors.New("the line is of no known form")

// ParseLine reads one line. Known are JSON objects with the fields method, uri,
// status, etag, last_modified (nginx with escape=json, Apache), Caddy's own, and
// the combined format with the ETag and Last-Modified behind it in quotes:
//
//	... "GET /a HTTP/1.1" 200 512 "-" "agent" "\"abc\"" "Sat, 21 Nov 2026 07:00:00 GMT"
func ParseLine(b []byte) (Line, error) {
	text := strings.TrimSpace(string(b))
	if strings.HasPrefix(text, "{") {
		return parseJSON([]byte(text))
	}
	return parseCombined(text)
}

// jsonLine has the fields of both JSON forms.
type jsonLine struct {
	Method       string          `json:"method"`
	URI          string          `json:"uri"`
	Status       json.RawMessage `json:"status"` // a number, or one in quotes
	ETag         string          `json:"etag"`
	LastModified string          `json:"last_modified"`

	Request struct {
		Method string `json:"method"`
		URI    string `json:"uri"`
	} `json:"request"`
	Headers map[string][]string `json:"resp_headers"`
}

func parseJSON(b []byte) (Line, error) {
	var j jsonLine
	if err := json.Unmarshal(b, &j); err != nil {
		return Line{}, fmt.Errorf("%w: %w", ErrLine, err)
	}
	l := Line{Method: j.Method, URI: j.URI, ETag: dashAsEmpty(j.ETag), LastModified: dashAsEmpty(j.LastModified)}
	if l.URI == "" {
		l.Method, l.URI = j.Request.Method, j.Request.URI
		h := http.Header(j.Headers)
		l.ETag, l.LastModified = h.Get("Etag"), h.Get("Last-Modified")
	}
	var err error
	if l.Status, err = strconv.Atoi(strings.Trim(string(j.Status), `"`)); err != nil || !strings.HasPrefix(l.URI, "/") {
		return Line{}, ErrLine
	}
	return l, nil
}

func parseCombined(text string) (Line, error) {
	var quoted []string
	status := ""
	for {
		i := strings.IndexByte(text, '"')
		if i < 0 {
			break
		}
		if len(quoted) == 1 { // between the request and the next quote: status and bytes
			if f := strings.Fields(text[:i]); len(f) > 0 {
				status = f[0]
			}
		}
		s, rest, ok := unquoteLogField(text[i+1:])
		if !ok {
			return Line{}, ErrLine
		}
		quoted, text = append(quoted, s), rest
	}
	if len(quoted) < 5 {
		return Line{}, fmt.Errorf("%w: no ETag and Last-Modified behind the user agent", ErrLine)
	}
	request := strings.Fields(quoted[0])
	code, err := strconv.Atoi(status)
	if err != nil || len(request) < 2 || !strings.HasPrefix(request[1], "/") {
		return Line{}, ErrLine
	}
	return Line{Method: request[0], URI: request[1], Status: code, ETag: dashAsEmpty(quoted[3]), LastModified: dashAsEmpty(quoted[4])}, nil
}

// unquoteLogField reads up to the closing quote; quotes inside are written \" or \x22.
func unquoteLogField(s string) (value, rest string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return b.String(), s[i+1:], true
		case s[i] == '\\' && i+1 < len(s) && (s[i+1] == '"' || s[i+1] == '\\'):
			i++
			b.WriteByte(s[i])
		case strings.HasPrefix(s[i:], `\x22`):
			i += 3
			b.WriteByte('"')
		default:
			b.WriteByte(s[i])
		}
	}
	return "", "", false
}

// dashAsEmpty is how logs write nothing.
func dashAsEmpty(s string) string {
	if s == "-" {
		return ""
	}
	return s
}

// Look takes a line of a log as the sensor takes an answer. A 304 tells of the
// page as a 200 does.
func (s *Sensor) Look(l Line) {
	if l.Method != http.MethodGet {
		return
	}
	switch l.Status {
	case http.StatusOK, http.StatusNotModified:
		if l.ETag == "" && l.LastModified == "" {
			return // says nothing of the page
		}
		// Weak and strong forms, and the suffixes that servers give to compressed
		// bodies, are the same page.
		tag := strings.TrimSuffix(strings.Trim(strings.TrimPrefix(l.ETag, "W/"), `"`), "-gzip")
		s.noteServed(l.URI, "", l.ETag, xxhash.Sum64String(tag+"\x00"+l.LastModified), 0, 0)
	case http.StatusNotFound, http.StatusGone:
		s.noteFailed(l.URI, http.StatusNotFound, "deleted")
	}
}

// position is where the reading of a file stands.
type position struct {
	Offset int64  `json:"offset"`
	Head   int    `json:"head"` // so many of the file's first bytes ...
	Sum    uint64 `json:"sum"`  // ... have this digest, by which a new file is told
}

const headBytes = 256

// Run follows the log until ctx ends. A file that does not exist yet is waited
// for; without a remembered position it begins at the end.
func (l *Log) Run(ctx context.Context) error {
	if l.Log == nil {
		l.Log = slog.New(slog.DiscardHandler)
	}
	poll := l.Poll
	if poll <= 0 {
		poll = time.Second / 4
	}
	at, known := l.loadPosition()
	var f *os.File
	var r *bufio.Reader
	defer func() {
		if f != nil {
			_ = f.Close()
		}
	}()
	for {
		if f == nil {
			var err error
			if f, at, err = l.openAt(at, known); err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("follow %s: %w", l.Path, err)
			}
			known = true
			if f != nil {
				r = bufio.NewReaderSize(f, 64<<10)
			}
		}
		if f != nil {
			n, err := l.readLines(r)
			at.Offset += n
			if err != nil {
				return fmt.Errorf("follow %s: %w", l.Path, err)
			}
			if err := l.savePosition(f, &at); err != nil {
				l.Log.Warn("position not kept", "err", err)
			}
			if l.isReplaced(f, at.Offset) { // rotated or cut: what is new begins at its start
				_ = f.Close()
				f, at = nil, position{}
				continue
			}
			r.Reset(io.NewSectionReader(f, at.Offset, 1<<62)) // a line half written is read again whole
		}
		t := time.NewTimer(poll)
		select {
		case <-ctx.Done():
			t.Stop()
			return nil
		case <-t.C:
		}
	}
}

// openAt opens the file at a position: the remembered one if it is the same file,
// the end if none is known, else the start.
func (l *Log) openAt(at position, known bool) (*os.File, position, error) {
	f, err := os.Open(l.Path)
	if err != nil {
		return nil, at, err
	}
	info, err := f.Stat()
	if err == nil && !known {
		at = position{Offset: info.Size()}
	} else if err == nil && (info.Size() < at.Offset || at.Head > 0 && digestHead(f, at.Head) != at.Sum) {
		at = position{}
	}
	if err == nil {
		_, err = f.Seek(at.Offset, io.SeekStart)
	}
	if err != nil {
		return nil, at, errors.Join(err, f.Close())
	}
	return f, at, nil
}

// digestHead digests the first n bytes of a file.
func digestHead(f *os.File, n int) uint64 {
	b := make([]byte, n)
	n, _ = f.ReadAt(b, 0) // a shorter file has another digest
	return xxhash.Sum64(b[:n])
}

// readLines takes the whole lines that are there and returns their bytes.
func (l *Log) readLines(r *bufio.Reader) (n int64, err error) {
	for {
		line, err := r.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF):
			return n, nil
		case errors.Is(err, bufio.ErrBufferFull): // no line is that long: passed over
			n += int64(len(line))
			continue
		case err != nil:
			return n, err
		}
		n += int64(len(line))
		l.lines++
		parsed, err := ParseLine(line)
		if err != nil {
			if l.odd++; l.odd == 1 {
				l.Log.Warn("line not understood; more are not told of", "err", err, "line", strings.TrimSpace(string(line[:min(len(line), 200)])))
			}
			continue
		}
		l.Sensor.Look(parsed)
	}
}

// isReplaced reports whether the name now stands for another file, or the file was
// cut short.
func (l *Log) isReplaced(f *os.File, at int64) bool {
	now, err := os.Stat(l.Path)
	if err != nil {
		return false // between two steps of a rotation
	}
	ours, err := f.Stat()
	return err == nil && (!os.SameFile(now, ours) || ours.Size() < at)
}

func (l *Log) loadPosition() (at position, known bool) {
	if l.State == "" {
		return at, false
	}
	b, err := os.ReadFile(l.State)
	if err != nil || json.Unmarshal(b, &at) != nil || at.Offset < 0 || at.Head < 0 || at.Head > headBytes {
		return position{}, false
	}
	return at, true
}

// savePosition remembers the position, once it has moved.
func (l *Log) savePosition(f *os.File, at *position) error {
	if l.State == "" {
		return nil
	}
	if at.Head < headBytes {
		at.Head = int(min(headBytes, at.Offset))
		at.Sum = digestHead(f, at.Head)
	}
	b, err := json.Marshal(at)
	if err != nil {
		return err
	}
	if old, err := os.ReadFile(l.State); err == nil && string(old) == string(b) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(l.State), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(l.State+".new", b, 0o600); err != nil {
		return err
	}
	return os.Rename(l.State+".new", l.State)
}
