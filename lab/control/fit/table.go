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
	MaxRows   = 5_000_000 // rows, unless told otherwise
	mostInRow = 1_000_000 // arrivals that one row may stand for
	maxEntry  = 4 << 20   // bytes of one row: an open quote must not take all memory
)

// Table is one column of a log.
type Table struct {
	Column string    // the name it was found by
	Values []float64 // seconds for times, which may be given as dates
	Lines  []int     // of each value
	Counts []int     // of each value the arrivals its row stands for; nil: one each
	Empty  int       // rows without a value
	Head   []string  // all columns of the first row
}

// Epochs makes a table of epochs that come from elsewhere than a file; errors
// call the first of them line 1.
func Epochs(at []float64) *Table {
	t := &Table{Column: "time", Values: at, Head: []string{"time"}, Lines: make([]int, len(at))}
	for i := range t.Lines {
		t.Lines[i] = i + 1
	}
	return t
}

// Columns says what is read of a log.
type Columns struct {
	Value []string // names of the column; the first that the header has is taken
	Count string   // optional column: how many arrivals a row stands for
	Most  int      // rows; more are an error; 0 is MaxRows
}

// ReadTable reads a column of a CSV file with a header row or of JSON lines
// (one object a line, told by the first character {). Numbers must be finite;
// times of RFC 3339 become seconds since 1970; rows whose field is empty or
// missing are counted and left out. Errors name the line.
func ReadTable(in io.Reader, c Columns) (*Table, error) {
	if c.Most == 0 {
		c.Most = MaxRows
	}
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
			return readObjects(r, c)
		}
		if b[0] != ' ' && b[0] != '\t' && b[0] != '\r' && b[0] != '\n' {
			return readCSV(r, c)
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

func readCSV(in io.Reader, c Columns) (*Table, error) {
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
	column, count := -1, slices.Index(t.Head, c.Count)
	for _, n := range c.Value {
		if column = slices.Index(t.Head, n); column >= 0 {
			t.Column = n
			break
		}
	}
	if column < 0 {
		return nil, noColumn(1, t.Head, c.Value)
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
		batch := ""
		if count >= 0 {
			batch = row[count]
		}
		if err := t.addTableRow(line, row[column], batch, c); err != nil {
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
		if i == 20 {
			shown = append(shown, "...")
			break
		}
		shown = append(shown, clipQuoted(h))
	}
	return fmt.Errorf("line %d: no column %s; there are %q", line, strings.Join(names, " or "), strings.Join(shown, ","))
}

// readObjects reads JSON lines. The first object decides on the column.
func readObjects(in io.Reader, c Columns) (*Table, error) {
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
			for _, n := range c.Value {
				if _, ok := row[n]; ok {
					t.Column = n
					break
				}
			}
			if t.Column == "" {
				return nil, noColumn(line, t.Head, c.Value)
			}
		}
		field, err := jsonAsCSV(row[t.Column])
		if err != nil {
			return nil, fmt.Errorf("line %d: %s: %w", line, t.Column, err)
		}
		batch, err := jsonAsCSV(row[c.Count])
		if err != nil {
			return nil, fmt.Errorf("line %d: %s: %w", line, c.Count, err)
		}
		if err := t.addTableRow(line, field, batch, c); err != nil {
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

// jsonAsCSV is a JSON value as CSV would have it.
func jsonAsCSV(raw json.RawMessage) (string, error) {
	text := strings.TrimSpace(string(raw))
	if text == "null" {
		return "", nil
	}
	if strings.HasPrefix(text, `"`) {
		err := json.Unmarshal(raw, &text)
		return text, err
	}
	return text, nil
}

// addTableRow takes the value of one row, and its count if the log has counts.
func (t *Table) addTableRow(line int, field, batch string, c Columns) error {
	field, batch = strings.TrimSpace(field), strings.TrimSpace(batch)
	if field == "" {
		t.Empty++
		return nil
	}
	v, err := strconv.ParseFloat(field, 64)
	if err != nil {
		at, notDate := time.Parse(time.RFC3339, field)
		if notDate != nil {
			return fmt.Errorf("line %d: %s: %q is neither a number nor a time of RFC 3339", line, t.Column, clipQuoted(field))
		}
		v = float64(at.Unix()) + float64(at.Nanosecond())/1e9
	}
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return fmt.Errorf("line %d: %s: %g is no finite number", line, t.Column, v)
	}
	if len(t.Values) == c.Most {
		return fmt.Errorf("line %d: more than %d rows; cut the log or raise the limit of rows", line, c.Most)
	}
	if batch != "" || t.Counts != nil {
		n := 1
		if batch != "" {
			if n, err = strconv.Atoi(batch); err != nil || n < 1 || n > mostInRow {
				return fmt.Errorf("line %d: %s: %q is no whole number from 1 to %d", line, c.Count, clipQuoted(batch), mostInRow)
			}
		}
		for len(t.Counts) < len(t.Values) {
			t.Counts = append(t.Counts, 1)
		}
		t.Counts = append(t.Counts, n)
	}
	t.Values, t.Lines = append(t.Values, v), append(t.Lines, line)
	return nil
}

// clipQuoted shortens what is quoted in an error.
func clipQuoted(s string) string {
	if len(s) > 40 {
		return s[:40] + "..."
	}
	return s
}
