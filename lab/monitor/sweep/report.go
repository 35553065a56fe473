package sweep

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/freshet/freshet/lab/monitor"
)

// Report is what a directory of results says.
type Report struct {
	Runs    int `json:"runs"` // of the plan
	Read    int `json:"read"`
	Missing int `json:"missing"`

	Variants []Standing `json:"variants"`

	plan     *Plan
	rows     []row
	ranking  []place
	paired   []paired
	links    []correlation
	examples []example
}

// Standing is how a variant does over all fields.
type Standing struct {
	Variant   string  `json:"variant"`
	Fields    int     `json:"fields"`
	Freshness float64 `json:"freshness_mean"` // percent
	Bytes     float64 `json:"bytes"`
	Front     int     `json:"front"`    // fields in which nothing dominates it
	Freshest  int     `json:"freshest"` // fields in which nothing is fresher
	Lightest  int     `json:"lightest"` // fields in which nothing downloads less
	Ties      int     `json:"ties"`     // fields in which it is tied with another
}

// example is a field whose series are drawn: replication 0.
type example struct {
	factors Factors
	runs    []monitorRun
}

type monitorRun struct {
	variant string
	series  monitor.Series
	warmup  float64
}

// maxExamples bounds the fields with figures of their own.
const maxExamples = 6

// Read reads all results of a sweep. Missing ones are counted; if any are
// damaged, the error names them all.
func Read(ctx context.Context, dir string) (*Report, error) {
	p, err := Open(dir)
	if err != nil {
		return nil, err
	}
	jobs := p.Jobs()
	r := &Report{plan: p, Runs: len(jobs)}
	draw := exampleFields(p.Fields())
	var damaged []error
	for _, j := range jobs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		run, err := loadResult(dir, j)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			r.Missing++
			continue
		case errors.Is(err, ErrDamaged):
			damaged = append(damaged, err)
			continue
		case err != nil:
			return nil, err
		}
		r.Read++
		r.rows = append(r.rows, rowOfRun(run))
		if draw[j.Factors.Field] && j.Replication == 0 {
			r.addExample(run)
		}
	}
	if len(damaged) > 0 {
		return nil, fmt.Errorf("%w: %w\nrun the sweep again: it makes them anew", ErrInput, errors.Join(damaged...))
	}
	if r.Read == 0 {
		return nil, fmt.Errorf("%w: %s holds no result yet", ErrInput, dir)
	}
	r.evaluateRows()
	return r, nil
}

// exampleFields chooses fields evenly.
func exampleFields(fields []Factors) map[int]bool {
	out := map[int]bool{}
	n := min(len(fields), maxExamples)
	for i := range n {
		k := 0
		if n > 1 {
			k = i * (len(fields) - 1) / (n - 1)
		}
		out[fields[k].Field] = true
	}
	return out
}

func (r *Report) addExample(run *Run) {
	if n := len(r.examples); n == 0 || r.examples[n-1].factors != run.Factors {
		r.examples = append(r.examples, example{factors: run.Factors})
	}
	e := &r.examples[len(r.examples)-1]
	e.runs = append(e.runs, monitorRun{run.Variant, run.Series, r.plan.Warmup})
}

// evaluateRows ranks, compares and correlates.
func (r *Report) evaluateRows() {
	byField := map[int][]row{}
	for _, w := range r.rows {
		byField[w.Field] = append(byField[w.Field], w)
	}
	stand := map[string]*Standing{}
	for _, f := range r.plan.Fields() {
		ws := groupByVariant(r.plan.Variants, byField[f.Field])
		ps := rankVariants(f.Field, ws)
		r.ranking = append(r.ranking, ps...)
		r.paired = append(r.paired, compareToBaseline(f.Field, r.plan.Baseline, ws)...)
		for i := range ps {
			p := &ps[i]
			s := stand[p.Variant]
			if s == nil {
				s = &Standing{Variant: p.Variant}
				stand[p.Variant] = s
			}
			s.addPlace(p)
		}
	}
	for _, v := range r.plan.Variants {
		if s := stand[v]; s != nil {
			s.Freshness /= float64(s.Fields)
			s.Bytes /= float64(s.Fields)
			r.Variants = append(r.Variants, *s)
		}
	}
	r.links = correlationTable(r.plan.Variants, r.rows)
}

func (s *Standing) addPlace(p *place) {
	s.Fields++
	s.Freshness += p.Freshness
	s.Bytes += p.Bytes
	s.Front += boolToInt(p.Front == 1)
	s.Freshest += boolToInt(p.FreshnessRank == 1)
	s.Lightest += boolToInt(p.VolumeRank == 1)
	s.Ties += boolToInt(p.Ties != "")
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// HTML returns the page that Write writes: one document that needs nothing else.
func (r *Report) HTML() ([]byte, error) {
	var page bytes.Buffer
	err := r.reportPage().Write(&page)
	return page.Bytes(), err
}

// Write writes runs.csv, runs.parquet, ranking.csv, correlation.csv, report.html
// and, where there are replications, paired.csv into dir.
func (r *Report) Write(dir string) error {
	files := []struct {
		name string
		make func() ([]byte, error)
	}{
		{"runs.csv", func() ([]byte, error) { return csvOf(r.rows) }},
		{"runs.parquet", func() ([]byte, error) { return parquetOf(r.rows) }},
		{"ranking.csv", func() ([]byte, error) { return csvOf(r.ranking) }},
		{"correlation.csv", func() ([]byte, error) { return csvOf(r.links) }},
		{"report.html", r.HTML},
	}
	for _, f := range files {
		text, err := f.make()
		if err == nil {
			err = writeFile(filepath.Join(dir, f.name), text)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	if len(r.paired) == 0 {
		return nil
	}
	text, err := csvOf(r.paired)
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, "paired.csv"), text)
}
