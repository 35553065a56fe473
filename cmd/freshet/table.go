package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
)

// table writes rows of one kind. T is a struct of strings, numbers, booleans
// and times whose json tags name the columns.
type table[T any] interface {
	writeRow(row *T) error
	// closeTable ends the table; it does not close what it is written to.
	closeTable() error
}

// newTable returns a writer of jsonl, csv or parquet.
func newTable[T any](format string, w io.Writer) table[T] {
	switch format {
	case "csv":
		return &csvTable[T]{w: csv.NewWriter(w)}
	case "parquet":
		return &parquetTable[T]{w: parquet.NewGenericWriter[T](w, parquet.Compression(&parquet.Zstd))}
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return jsonTable[T]{enc}
}

type jsonTable[T any] struct{ enc *json.Encoder }

func (t jsonTable[T]) writeRow(row *T) error { return t.enc.Encode(row) }
func (t jsonTable[T]) closeTable() error     { return nil }

type csvTable[T any] struct {
	w      *csv.Writer
	fields []string
}

// writeHeader writes the names of the columns once.
func (t *csvTable[T]) writeHeader() error {
	if t.fields != nil {
		return nil
	}
	kind := reflect.TypeFor[T]()
	names := make([]string, kind.NumField())
	for i := range names {
		names[i], _, _ = strings.Cut(kind.Field(i).Tag.Get("json"), ",")
	}
	t.fields = make([]string, len(names))
	return t.w.Write(names)
}

func (t *csvTable[T]) writeRow(row *T) error {
	if err := t.writeHeader(); err != nil {
		return err
	}
	v := reflect.ValueOf(row).Elem()
	for i := range t.fields {
		t.fields[i] = printCell(v.Field(i))
	}
	return t.w.Write(t.fields)
}

func (t *csvTable[T]) closeTable() error {
	if err := t.writeHeader(); err != nil {
		return err
	}
	t.w.Flush()
	return t.w.Error()
}

// printCell prints one value; a time that is not known is empty.
func printCell(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case string:
		return cellText(x)
	case time.Time:
		if x.IsZero() {
			return ""
		}
		return x.Format(time.RFC3339Nano)
	case float64:
		return strconv.FormatFloat(x, 'f', -1, 64)
	default:
		return fmt.Sprint(x)
	}
}

// cellText returns a text as a cell of CSV. Spreadsheets take what begins with one
// of these signs for a formula, and run it; an apostrophe in front makes it text.
func cellText(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r\n", rune(s[0])) {
		s = "'" + s
	}
	return s
}

// rowGroup is how many rows parquet keeps in memory before it writes them.
const rowGroup = 50_000

type parquetTable[T any] struct {
	w *parquet.GenericWriter[T]
	n int
}

func (t *parquetTable[T]) writeRow(row *T) error {
	if _, err := t.w.Write([]T{*row}); err != nil {
		return err
	}
	if t.n++; t.n%rowGroup == 0 {
		return t.w.Flush()
	}
	return nil
}

func (t *parquetTable[T]) closeTable() error { return t.w.Close() }
