package truth

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxLine bounds a line of the log; a longer one is damage, not data.
const maxLine = 1 << 20

// Reader reads a log.
type Reader struct {
	Head Head // of a log without a description: the zero Head

	r     *bufio.Reader
	line  int
	first *Record // a log may begin with a request
	cut   bool
}

// NewReader reads the description of the web. A log without one, written by
// another program in the same format, is read as well.
func NewReader(r io.Reader) (*Reader, error) {
	t := &Reader{r: bufio.NewReaderSize(r, maxLine)}
	line, err := t.nextLine()
	if errors.Is(err, io.EOF) {
		return t, nil
	}
	if err != nil {
		return nil, err
	}
	h := Head{Record: Record{Page: NoPage}}
	if err := json.Unmarshal(line, &h); err != nil {
		return nil, t.damagedLine(err)
	}
	if h.Kind == Web {
		t.Head = h
		return t, nil
	}
	rec := h.Record
	if err := rec.completeRecord(line); err != nil {
		return nil, t.damagedLine(err)
	}
	t.first = &rec
	return t, nil
}

// Read returns the next record, io.EOF at the end. A last line without its end
// is what a crash leaves: it is left out, and Cut tells.
func (t *Reader) Read() (Record, error) {
	if t.first != nil {
		r := *t.first
		t.first = nil
		return r, nil
	}
	line, err := t.nextLine()
	if err != nil {
		return Record{}, err
	}
	r := Record{Page: NoPage}
	if err := json.Unmarshal(line, &r); err != nil {
		return Record{}, t.damagedLine(err)
	}
	if err := r.completeRecord(line); err != nil {
		return Record{}, t.damagedLine(err)
	}
	return r, nil
}

// Cut reports whether the log ended within a line.
func (t *Reader) Cut() bool { return t.cut }

// nextLine returns the next line that is not blank.
func (t *Reader) nextLine() ([]byte, error) {
	for {
		line, err := t.r.ReadSlice('\n')
		t.line++
		switch {
		case err == nil:
			if line = bytes.TrimSpace(line); len(line) > 0 {
				return line, nil
			}
		case errors.Is(err, bufio.ErrBufferFull):
			return nil, t.damagedLine(fmt.Errorf("longer than %d bytes", maxLine))
		case errors.Is(err, io.EOF):
			// Only a whole object may stand without the end of its line.
			if line = bytes.TrimSpace(line); len(line) > 0 && json.Valid(line) {
				return line, nil
			}
			t.cut = len(line) > 0
			return nil, io.EOF
		default:
			return nil, fmt.Errorf("truth log, line %d: %w", t.line, err)
		}
	}
}

func (t *Reader) damagedLine(err error) error {
	return fmt.Errorf("truth log, line %d: %w (delete the line, or the log from there on)", t.line, err)
}

// completeRecord checks what a record cannot do without, and fills in the kind of
// records that other programs wrote without it.
func (r *Record) completeRecord(line []byte) error {
	if r.Time.IsZero() || r.Host == "" {
		return fmt.Errorf("no time or no host in %.60q", line)
	}
	if r.Page < 0 {
		r.Page = NoPage
	}
	if r.Kind == "" {
		r.Kind = r.guessKind()
	}
	return nil
}

func (r *Record) guessKind() Kind {
	switch {
	case r.Path == "/robots.txt":
		return Robots
	case r.Status == 404 || r.Status == 410:
		return Missing
	case r.Status >= 300 && r.Status < 400 && r.Status != 304:
		return Redirect
	case r.Status >= 400 || r.Status == 0:
		return Failure
	case r.Page != NoPage:
		return Page
	}
	return Other
}
