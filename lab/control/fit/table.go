package fit

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Limits of what is read of a log.
const (
	MaxRows  = 5_000_000 // rows, unless told otherwise
	maxEntry = 4 << 20   // bytes of one row: an open quote must not take all memory
)

// Table is one column of a log.
type Table struct {
	Column string    // the name it was found by
	Values []float64 // seconds for times, which may be given as dates
	Lines  []int     // of each value
	Empty  int       // rows without a value
	Head   []string  // all columns of the first row
}

// ReadTable reads one column of a CSV file with a header row or of JSON lines
// (one object a line, told by the first character {): the first of the given
// names that the header has. At most most rows are read, more are an error. Numbers must be
// finite; times of RFC 3339 become seconds since 1970; rows whose field is
// empty or missing are counted and left out. Errors name the line.
func ReadTable(in io.Reader, most int, names ...string) (*Table, error) {
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		b, err := r.Peek(1)
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil, errors.New("line 1: the log is empty")
			}
			return nil, err
		}
		if b[0] == '{' {
			return readObjects(r, most, names)
		}
		if b[0] != ' ' && b[0] != '\t' && b[0] != '\r' && b[0] != '\n' {
			return readCSV(r, most, names)
		}
		// Blank lines before the header would shift the lines of errors.
		if b[0] == '\n' {
			return nil, errors.New("line 1: empty; the header is missing")
		}
		_, _ = r.Discard(1)
	}
}

// entryLimit fails when a reader takes too much for one row.
type entryLimit struct {
	in         io.Reader
	read, most int64
}

var errLong = fmt.Errorf("more than %d bytes in one row; is a quote left open?", maxEntry)

func (l *entryLimit) Read(p []byte) (int, error) {
	if l.read > l.most {
		return 0, errLong
	}
	n, err := l.in.Read(p)
	l.read += int64(n)
	return n, err
}

func readCSV(in io.Reader, most int, names []string) (*Table, error) {
	limit := &entryLimit{in: in, most: maxEntry}
	r := csv.NewReader(limit)
	r.TrimLeadingSpace, r.ReuseRecord, r.Comment = true, true, '#'
	head, err := r.Read()
	if err != nil {
		return nil, csvError(r, err)
	}
	t := &Table{Head: slices.Clone(head)}
	for i, h := range t.Head {
		t.Head[i] = strings.ToLower(strings.TrimSpace(strings.TrimPrefix(h, "\uFEFF")))
	}
	column := -1
	for _, n := range names {
		if column = slices.Index(t.Head, n); column >= 0 {
			t.Column = n
			break
		}
	}
	if column < 0 {
		return nil, noColumn(1, t.Head, names)
	}
	for {
		row, err := r.Read()
		limit.most = r.InputOffset() + maxEntry
		if errors.Is(err, io.EOF) {
			return t, nil
		}
		if err != nil {
			return nil, csvError(r, err)
		}
		line, _ := r.FieldPos(0)
		if err := t.add(line, row[column], most); err != nil {
			return nil, err
		}
	}
}

// csvError puts the line first.
func csvError(r *csv.Reader, err error) error {
	var parse *csv.ParseError
	switch {
	case errors.As(err, &parse) && errors.Is(err, csv.ErrFieldCount):
		return fmt.Errorf("line %d: another number of fields than the header has", parse.Line)
	case errors.As(err, &parse):
		return fmt.Errorf("line %d: column %d: %w", parse.Line, parse.Column, parse.Err)
	case errors.Is(err, io.EOF):
		return errors.New("line 1: the header is missing")
	case errors.Is(err, errLong):
		return fmt.Errorf("after %d bytes: %w", r.InputOffset(), err)
	}
	return err
}

func noColumn(line int, head, names []string) error {
	var shown []string
	for i, h := range head {
		if len(h) > 40 {
			h = h[:40] + "..."
		}
		if i == 20 {
			shown = append(shown, "...")
			break
		}
		shown = append(shown, h)
	}
	return fmt.Errorf("line %d: no column %s; there are %q", line, strings.Join(names, " or "), strings.Join(shown, ","))
}

// readObjects reads JSON lines. The first object decides on the column.
func readObjects(in io.Reader, most int, names []string) (*Table, error) {
	s := bufio.NewScanner(in)
	s.Buffer(make([]byte, 64<<10), maxEntry)
	t := &Table{}
	line := 0
	for s.Scan() {
		line++
		b := s.Bytes()
		if len(strings.TrimSpace(string(b))) == 0 {
			continue
		}
		var row map[string]json.RawMessage
		if err := json.Unmarshal(b, &row); err != nil {
			return nil, fmt.Errorf("line %d: no JSON object: %w", line, err)
		}
		if t.Head == nil {
			for k := range row {
				t.Head = append(t.Head, k)
			}
			slices.Sort(t.Head)
			for _, n := range names {
				if _, ok := row[n]; ok {
					t.Column = n
					break
				}
			}
			if t.Column == "" {
				return nil, noColumn(line, t.Head, names)
			}
		}
		field := strings.TrimSpace(string(row[t.Column]))
		if field == "null" {
			field = ""
		}
		if strings.HasPrefix(field, `"`) {
			var text string
			if err := json.Unmarshal(row[t.Column], &text); err != nil {
				return nil, fmt.Errorf("line %d: %s: %w", line, t.Column, err)
			}
			field = text
		}
		if err := t.add(line, field, most); err != nil {
			return nil, err
		}
	}
	if err := s.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			err = errLong
		}
		return nil, fmt.Errorf("line %d: %w", line+1, err)
	}
	return t, nil
}

// add takes the value of one row.
func (t *Table) add(line int, field string, most int) error {
	field = strings.TrimSpace(field)
	if field == "" {
		t.Empty++
		return nil
	}
	v, err := strconv.ParseFloat(field, 64)
	if err != nil {
		at, notDate := time.Parse(time.RFC3339, field)
		if notDate != nil {
			if len(field) > 40 {
				field = field[:40] + "..."
			}
			return fmt.Errorf("line %d: %s: %q is neither a number nor a time of RFC 3339", line, t.Column, field)
		}
		v = float64(at.Unix()) + float64(at.Nanosecond())/1e9
	}
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return fmt.Errorf("line %d: %s: %g is no finite number", line, t.Column, v)
	}
	if len(t.Values) == most {
		return fmt.Errorf("line %d: more than %d rows; cut the log or raise the limit of rows", line, most)
	}
	t.Values, t.Lines = append(t.Values, v), append(t.Lines, line)
	return nil
}
