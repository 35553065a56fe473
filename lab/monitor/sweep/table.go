package sweep

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// row is a line of runs.csv and runs.parquet: one run.
type row struct {
	Field         int     `col:"field" parquet:"field"`
	Pages         int     `col:"pages" parquet:"pages"`
	Time          float64 `col:"time" parquet:"time"`
	Changes       float64 `col:"changes" parquet:"changes"`
	Requests      float64 `col:"requests" parquet:"requests"`
	Variant       string  `col:"variant" parquet:"variant,dict"`
	Replication   int     `col:"replication" parquet:"replication"`
	FreshnessEnd  float64 `col:"freshness_end" parquet:"freshness_end"`
	FreshnessMean float64 `col:"freshness_mean" parquet:"freshness_mean"`
	StaleEnd      int     `col:"stale_end" parquet:"stale_end"`
	Bytes         int64   `col:"bytes" parquet:"bytes"`
	Cycles        string  `col:"cycles" parquet:"cycles"` // of each robot, with spaces between
	DelayMin      float64 `col:"delay_min" parquet:"delay_min"`
	DelayMean     float64 `col:"delay_mean" parquet:"delay_mean"`
	DelayMax      float64 `col:"delay_max" parquet:"delay_max"`
	MaxInProgress int     `col:"max_in_progress" parquet:"max_in_progress"`
	Events        int64   `col:"events" parquet:"events"`
	Seconds       float64 `col:"seconds" parquet:"seconds"`
	DelayP50      float64 `col:"delay_p50" parquet:"delay_p50"`
	DelayP90      float64 `col:"delay_p90" parquet:"delay_p90"`
	DelayP99      float64 `col:"delay_p99" parquet:"delay_p99"`
	AgeMean       float64 `col:"age_mean" parquet:"age_mean"`
	InProgress    int     `col:"in_progress" parquet:"in_progress"`
	Downloads     int64   `col:"downloads" parquet:"downloads"`
	Probes        int64   `col:"probes" parquet:"probes"`
	Dropped       int64   `col:"dropped" parquet:"dropped"`
	Real          int64   `col:"real_changes" parquet:"real_changes"`
	Detected      int64   `col:"detected" parquet:"detected"`
	Overwritten   int64   `col:"overwritten" parquet:"overwritten"`
	ChangeLaw     string  `col:"change_law" parquet:"change_law,dict"`
	ChangeSpread  string  `col:"change_spread" parquet:"change_spread,dict"`
	RequestLaw    string  `col:"request_law" parquet:"request_law,dict"`
	RequestSpread string  `col:"request_spread" parquet:"request_spread,dict"`
	File          string  `col:"file" parquet:"file,dict"`
}

func rowOfRun(r *Run) row {
	cycles := make([]string, len(r.Cycles))
	for i, v := range r.Cycles {
		cycles[i] = strconv.FormatFloat(v, 'f', 4, 64)
	}
	d := r.Delay
	return row{
		r.Field, r.Pages, r.Time, r.Factors.Changes, r.Factors.Requests, r.Variant, r.Replication,
		r.FreshnessEnd, r.FreshnessMean, r.StaleEnd, r.Bytes, strings.Join(cycles, " "), d.Min, d.Mean, d.Max, r.MaxInProgress, r.Events, r.Seconds,
		d.P50, d.P90, d.P99, r.AgeMean, r.InProgress, r.Downloads, r.Probes, r.Dropped, r.Real, r.Detected, r.Overwritten,
		r.ChangeLaw, r.ChangeSpread, r.RequestLaw, r.RequestSpread, r.File,
	}
}

// csvOf writes structs whose col tags name the columns.
func csvOf[T any](rows []T) ([]byte, error) {
	var buf bytes.Buffer
	w := csv.NewWriter(&buf)
	kind := reflect.TypeFor[T]()
	line := make([]string, kind.NumField())
	for i := range line {
		line[i] = kind.Field(i).Tag.Get("col")
	}
	_ = w.Write(line) // errors stay in w
	for k := range rows {
		v := reflect.ValueOf(&rows[k]).Elem()
		for i := range line {
			line[i] = formatCell(v.Field(i))
		}
		_ = w.Write(line)
	}
	w.Flush()
	return buf.Bytes(), w.Error()
}

// formatCell prints a value; nil is empty.
func formatCell(v reflect.Value) string {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return ""
		}
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.Float64:
		return strconv.FormatFloat(v.Float(), 'g', 12, 64)
	case reflect.String:
		return v.String()
	default:
		return fmt.Sprint(v.Interface())
	}
}

func parquetOf[T any](rows []T) ([]byte, error) {
	var buf bytes.Buffer
	w := parquet.NewGenericWriter[T](&buf, parquet.Compression(&parquet.Zstd))
	if _, err := w.Write(rows); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}
