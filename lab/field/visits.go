package field

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
)

// visit is a line of `freshet export changes`.
type visit struct {
	URL     string    `json:"url" parquet:"url"`
	Time    time.Time `json:"time" parquet:"time"`
	Changed bool      `json:"changed" parquet:"changed"`
	Status  int       `json:"status" parquet:"status"`
	Bytes   int64     `json:"bytes" parquet:"bytes"`
}

// visitColumns are what is needed of it.
var visitColumns = []string{"url", "time", "changed", "status", "bytes"}

func (v *visit) addTo(to *Sightings) error {
	if v.URL == "" || v.Time.IsZero() {
		return fmt.Errorf("%w: an entry without url or time", ErrInput)
	}
	s := Sighting{Name: v.URL, Time: v.Time, Status: v.Status, Size: -1, Changed: &v.Changed}
	if v.Status == 200 {
		s.Size = max(0, v.Bytes)
	}
	return to.Add(s)
}

// ReadVisits adds the JSON lines of `freshet export changes` to the sightings.
// The error names the line.
func ReadVisits(r io.Reader, to *Sightings) error {
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, 64<<10), maxLine)
	for n := 1; sc.Scan(); n++ {
		if len(strings.TrimSpace(sc.Text())) == 0 {
			continue
		}
		var v visit
		err := json.Unmarshal(sc.Bytes(), &v)
		if err == nil {
			err = v.addTo(to)
		}
		if err != nil {
			return fmt.Errorf("%w: line %d: %w", ErrInput, n, err)
		}
	}
	if err := sc.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrInput, err)
	}
	return nil
}

// ReadVisitsCSV adds the CSV form of the same.
func ReadVisitsCSV(r io.Reader, to *Sightings) error {
	c := csv.NewReader(r)
	c.ReuseRecord = true
	head, err := c.Read()
	if err != nil {
		return fmt.Errorf("%w: line 1: %w", ErrInput, err)
	}
	at := map[string]int{}
	for i, name := range head {
		at[name] = i
	}
	for _, need := range visitColumns {
		if _, ok := at[need]; !ok {
			return fmt.Errorf("%w: line 1: no column %q", ErrInput, need)
		}
	}
	for {
		row, err := c.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrInput, err)
		}
		v := visit{URL: row[at["url"]]}
		var errs [4]error
		v.Time, errs[0] = time.Parse(time.RFC3339Nano, row[at["time"]])
		v.Changed, errs[1] = strconv.ParseBool(row[at["changed"]])
		v.Status, errs[2] = strconv.Atoi(row[at["status"]])
		v.Bytes, errs[3] = strconv.ParseInt(row[at["bytes"]], 10, 64)
		if err := errors.Join(errs[:]...); err != nil {
			n, _ := c.FieldPos(0)
			return fmt.Errorf("%w: line %d: %w", ErrInput, n, err)
		}
		if err := v.addTo(to); err != nil {
			n, _ := c.FieldPos(0)
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
}

// ReadVisitsParquet adds the Parquet form. The error names the row, from 1.
func ReadVisitsParquet(r io.ReaderAt, size int64, to *Sightings) (err error) {
	defer func() { // the reader panics on some damaged files
		if v := recover(); v != nil {
			err = fmt.Errorf("%w: not a whole Parquet file: %v", ErrInput, v)
		}
	}()
	f, err := parquet.OpenFile(r, size)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInput, err)
	}
	for _, c := range visitColumns {
		if _, ok := f.Schema().Lookup(c); !ok {
			return fmt.Errorf("%w: no column %q", ErrInput, c)
		}
	}
	pr := parquet.NewGenericReader[visit](f)
	defer func() { err = errors.Join(err, pr.Close()) }()
	buf := make([]visit, 1024)
	for row := 1; ; {
		n, err := pr.Read(buf)
		for i := range buf[:n] {
			if err := buf[i].addTo(to); err != nil {
				return fmt.Errorf("row %d: %w", row, err)
			}
			row++
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: row %d: %w", ErrInput, row, err)
		}
	}
}
