package field

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// Line is a row of a field file, CSV or Parquet: first a row "page" for each
// resource in order of number, then "change" and "request" in order of time,
// and at last "end", whose time is the horizon. A file without it was cut off.
type Line struct {
	Time  float64 `parquet:"time"`
	Event string  `parquet:"event,dict"`
	Page  int64   `parquet:"page"`
	Kind  int64   `parquet:"kind"` // of a change, 1 to 6
	Size  int64   `parquet:"size"` // of a page or change, bytes
	Name  string  `parquet:"name"` // of a page
}

// columns of the CSV form, in order.
var columns = []string{"time", "event", "page", "kind", "size", "name"}

// addLine puts a row into a history.
func (h *History) addLine(l *Line) error {
	if h.horizon > 0 {
		return fmt.Errorf("%w: a row after the end", ErrInput)
	}
	if l.Page < 0 || l.Page > MaxPages || l.Size < 0 || l.Kind < 0 || l.Kind > int64(kinds) {
		return fmt.Errorf("%w: page %d, kind %d, size %d", ErrInput, l.Page, l.Kind, l.Size)
	}
	switch l.Event {
	case "page":
		if l.Page != int64(h.Pages()) {
			return fmt.Errorf("%w: page %d where page %d is next", ErrInput, l.Page, h.Pages())
		}
		return h.AddPage(l.Name, clipSize(l.Size))
	case "change":
		return h.AddChange(l.Time, uint32(l.Page), Kind(l.Kind), clipSize(l.Size))
	case "request":
		return h.AddRequest(l.Time, uint32(l.Page))
	case "end":
		return h.End(l.Time)
	}
	return fmt.Errorf("%w: no event %q; there are page, change, request, end", ErrInput, l.Event)
}

// errCut says that the last row is missing.
var errCut = fmt.Errorf("%w: the row \"end\" is missing: the file was cut off", ErrInput)

// ReadCSV reads a field file. The error names the line.
func ReadCSV(r io.Reader) (*History, error) {
	c := csv.NewReader(r)
	c.ReuseRecord = true
	head, err := c.Read()
	if err != nil || strings.Join(head, ",") != strings.Join(columns, ",") {
		return nil, fmt.Errorf("%w: line 1: the header is not %s", ErrInput, strings.Join(columns, ","))
	}
	h := &History{}
	for {
		row, err := c.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInput, err)
		}
		l, err := parseLine(row)
		if err == nil {
			err = h.addLine(l)
		}
		if err != nil {
			n, _ := c.FieldPos(0)
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	if h.horizon == 0 {
		return nil, errCut
	}
	return h, nil
}

func parseLine(row []string) (*Line, error) {
	l := &Line{Event: row[1], Name: row[5]}
	var err error
	if l.Time, err = strconv.ParseFloat(row[0], 64); err != nil {
		return nil, fmt.Errorf("%w: time %q is no number", ErrInput, row[0])
	}
	for i, to := range []*int64{&l.Page, &l.Kind, &l.Size} {
		if s := row[2+i]; s != "" {
			if *to, err = strconv.ParseInt(s, 10, 64); err != nil {
				return nil, fmt.Errorf("%w: %s %q is no number", ErrInput, columns[2+i], s)
			}
		}
	}
	return l, nil
}

// ReadParquet reads a field file. The error names the row, from 1.
func ReadParquet(r io.ReaderAt, size int64) (h *History, err error) {
	defer func() { // the reader panics on some damaged files
		if v := recover(); v != nil {
			h, err = nil, fmt.Errorf("%w: not a whole Parquet file: %v", ErrInput, v)
		}
	}()
	f, err := parquet.OpenFile(r, size)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInput, err)
	}
	for _, c := range columns {
		if _, ok := f.Schema().Lookup(c); !ok {
			return nil, fmt.Errorf("%w: no column %q; a field file has %s", ErrInput, c, strings.Join(columns, ", "))
		}
	}
	pr := parquet.NewGenericReader[Line](f)
	h = &History{}
	buf := make([]Line, 4096)
	for row := 1; ; {
		n, err := pr.Read(buf)
		for i := range buf[:n] {
			if err := h.addLine(&buf[i]); err != nil {
				return nil, errors.Join(fmt.Errorf("row %d: %w", row, err), pr.Close())
			}
			row++
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%w: row %d: %w", ErrInput, row, err), pr.Close())
		}
	}
	if err := pr.Close(); err != nil {
		return nil, err
	}
	if h.horizon == 0 {
		return nil, errCut
	}
	return h, nil
}

// named is a field whose resources have names.
type named interface{ Name(page uint32) string }

// forEachLine calls to for every row of a field's file.
func forEachLine(f Field, to func(*Line) error) error {
	names, _ := f.(named)
	for i, size := range f.Sizes() {
		l := Line{Event: "page", Page: int64(i), Size: int64(size)}
		if names != nil {
			l.Name = names.Name(uint32(i))
		}
		if err := to(&l); err != nil {
			return err
		}
	}
	changes, requests := f.Changes(), f.Requests()
	cs, qs := make([]Change, 1024), make([]Request, 1024)
	c, q := cs[:changes.Read(cs)], qs[:requests.Read(qs)]
	for len(c) > 0 || len(q) > 0 {
		l := Line{Event: "change"}
		if len(q) == 0 || (len(c) > 0 && c[0].Time <= q[0].Time) {
			l.Time, l.Page, l.Kind, l.Size = c[0].Time, int64(c[0].Page), int64(c[0].Kind), int64(c[0].Size)
			if c = c[1:]; len(c) == 0 {
				c = cs[:changes.Read(cs)]
			}
		} else {
			l = Line{Event: "request", Time: q[0].Time, Page: int64(q[0].Page)}
			if q = q[1:]; len(q) == 0 {
				q = qs[:requests.Read(qs)]
			}
		}
		if err := to(&l); err != nil {
			return err
		}
	}
	return to(&Line{Event: "end", Time: f.Horizon()})
}

// WriteCSV writes a field file.
func WriteCSV(w io.Writer, f Field) error {
	buf := bufio.NewWriterSize(w, 256<<10)
	c := csv.NewWriter(buf)
	_ = c.Write(columns) // errors stay in c
	row := make([]string, len(columns))
	err := forEachLine(f, func(l *Line) error {
		row[0], row[1], row[5] = formatParameter(l.Time), l.Event, l.Name
		for i, v := range []int64{l.Page, l.Kind, l.Size} {
			row[2+i] = strconv.FormatInt(v, 10)
		}
		return c.Write(row)
	})
	c.Flush()
	return errors.Join(err, c.Error(), buf.Flush())
}

// WriteParquet writes a field file.
func WriteParquet(w io.Writer, f Field) error {
	pw := parquet.NewGenericWriter[Line](w, parquet.Compression(&parquet.Zstd), parquet.MaxRowsPerRowGroup(1<<20))
	buf := make([]Line, 0, 4096)
	err := forEachLine(f, func(l *Line) error {
		if buf = append(buf, *l); len(buf) < cap(buf) {
			return nil
		}
		_, err := pw.Write(buf)
		buf = buf[:0]
		return err
	})
	if err == nil {
		_, err = pw.Write(buf)
	}
	return errors.Join(err, pw.Close())
}

// ReadFile reads a field file, Parquet or CSV by its ending. The error names it.
func ReadFile(name string) (*History, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // read only
	var h *History
	if filepath.Ext(name) == ".parquet" {
		st, err2 := f.Stat()
		if err2 != nil {
			return nil, err2
		}
		h, err = ReadParquet(f, st.Size())
	} else {
		h, err = ReadCSV(bufio.NewReaderSize(f, 256<<10))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return h, nil
}
