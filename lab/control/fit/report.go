package fit

import (
	"fmt"
	"math"
	"strings"

	"github.com/freshet/freshet/lab/report"
)

// curvePoints is how many points of a distribution function are drawn.
const curvePoints = 400

// Report shows the fit of a service law next to the sample.
func (v *Service) Report(s *Sample, unit string) *report.Page {
	laws := make([]*PH, len(v.Tried))
	names := make([]string, len(v.Tried))
	table := report.Table{Title: "Laws tried", Header: []string{"law", "order", "mean", "m2", "m3", "SCV", "CDF off", "BIC"}}
	table.Rows = append(table.Rows, append([]string{"log", ""}, formatNumbers(s.Moments[0], s.Moments[1], s.Moments[2], s.SCV())...))
	for i := range v.Tried {
		c := &v.Tried[i]
		laws[i], names[i] = &c.PH, c.Family
		method := c.Law.Method
		if c.Chosen {
			names[i] += " *"
			method += " (taken)"
		}
		g := c.Goodness
		row := append([]string{method, fmt.Sprint(c.Order())}, formatNumbers(g.Moments[0].Fit, g.Moments[1].Fit, g.Moments[2].Fit, g.SCV.Fit, g.KS.Distance, g.Score.BIC)...)
		table.Rows = append(table.Rows, row)
	}
	return &report.Page{
		Title: "Service: log and fit", Intro: strings.Join(v.Words, "\n"),
		Sections: []report.Section{
			{Title: "Figures", Tables: []report.Table{table, s.quantileTable(laws, names)}},
			{Title: "Curves", Figures: s.distributionFigures(laws, names, unit)},
		},
	}
}

// Report shows the fit of arrivals next to the log, with the other candidates.
func (f *ArrivalFit) Report() (*report.Page, error) {
	var laws []*PH
	var names []string
	table := report.Table{Title: "Processes tried", Header: []string{"process", "order", "SCV", "lag 1", "lags off", "CDF off", "BIC"}}
	first := math.NaN()
	if len(f.Goodness.Lags) > 0 {
		first = f.Goodness.Lags[0].Sample
	}
	table.Rows = append(table.Rows, append([]string{"log", ""}, formatNumbers(f.Sample.SCV(), first)...))
	const longest = 50
	lags, _ := f.Gaps.Lags(longest)
	var curves []report.Series
	for _, c := range f.Tried {
		p, err := c.Process.Marginal()
		if err != nil {
			return nil, err
		}
		name, method := c.Family, c.Method
		if c.Chosen {
			name, method = name+" *", method+" (taken)"
		}
		laws, names = append(laws, p), append(names, name)
		g := c.Goodness
		first := math.NaN()
		if len(g.Lags) > 0 {
			first = g.Lags[0].Fit
		}
		table.Rows = append(table.Rows, append([]string{method, fmt.Sprint(c.Process.Order())}, formatNumbers(g.SCV.Fit, first, c.LagError, g.KS.Distance, g.Score.BIC)...))
		own, err := c.Process.Lags(len(lags))
		if err != nil {
			return nil, err
		}
		curves = append(curves, report.Series{Name: name, X: countingNumbers(len(own)), Y: own})
	}
	curves = append(curves, report.Series{Name: "log", X: countingNumbers(len(lags)), Y: lags, Style: report.Points})
	figures := f.Sample.distributionFigures(laws, names, "time between batches")
	if len(lags) > 0 {
		figures = append(figures, report.Figure{
			Title: "Correlations", Caption: "of the times between batches with those before",
			X: report.Axis{Label: "lag"}, Y: report.Axis{Label: "correlation"}, Series: curves,
		})
	}
	if len(f.Batches) > 1 {
		figures = append(figures, f.batchFigure())
	}
	return &report.Page{
		Title: "Arrivals: log and fit", Intro: strings.Join(f.Words, "\n"),
		Sections: []report.Section{
			{Title: "Figures", Tables: []report.Table{table, f.lagTable(), f.Sample.quantileTable(laws, names)}},
			{Title: "Curves", Figures: figures},
		},
	}, nil
}

// lagTable compares the correlations of the process with the log's.
func (f *ArrivalFit) lagTable() report.Table {
	t := report.Table{Title: "Correlations of the process taken", Header: []string{"lag", "log", "process"}}
	for k, p := range f.Goodness.Lags {
		t.Rows = append(t.Rows, append([]string{fmt.Sprint(k + 1)}, formatNumbers(p.Sample, p.Fit)...))
	}
	return t
}

// batchFigure draws the shares of batch sizes.
func (f *ArrivalFit) batchFigure() report.Figure {
	var log, fit []float64
	for _, p := range f.Batches {
		log, fit = append(log, p.Sample), append(fit, p.Fit)
	}
	x := countingNumbers(len(log))
	return report.Figure{
		Title: "Batch sizes", Caption: "bars are the log, marks the process",
		X: report.Axis{Label: "arrivals in a batch"}, Y: report.Axis{Label: "share"},
		Series: []report.Series{{Name: "log", X: x, Y: log, Style: report.Bars}, {Name: "process", X: x, Y: fit, Style: report.Points}},
	}
}

// distributionFigures draws distribution functions: plain, and the tail on logarithmic axes.
func (s *Sample) distributionFigures(laws []*PH, names []string, unit string) []report.Figure {
	n := len(s.Sorted)
	var x, below []float64
	for k := range curvePoints {
		i := k * (n - 1) / (curvePoints - 1)
		if len(x) > 0 && s.Sorted[i] == x[len(x)-1] {
			below[len(x)-1] = float64(i+1) / float64(n)
			continue
		}
		x = append(x, s.Sorted[i])
		below = append(below, float64(i+1)/float64(n))
	}
	// Ranks leave the tail thin: the points of its curve are equal steps of ln x.
	var tx, tail []float64
	low, high := math.Log(s.Sorted[0]), math.Log(s.Sorted[n-1])
	i := 0
	for k := range curvePoints {
		v := math.Exp(low + (high-low)*float64(k)/(curvePoints-1))
		for i < n && s.Sorted[i] <= v {
			i++
		}
		tx, tail = append(tx, v), append(tail, 1-float64(i)/float64(n))
	}
	var cdf, ccdf []report.Series
	for k, p := range laws {
		z := p.Survival(tx)
		y := make([]float64, len(z))
		for j, beyond := range z {
			y[j] = 1 - beyond
			if beyond < .1/float64(n) {
				z[j] = math.NaN() // far below what the log can show
			}
		}
		cdf = append(cdf, report.Series{Name: names[k], X: tx, Y: y})
		ccdf = append(ccdf, report.Series{Name: names[k], X: tx, Y: z})
	}
	// The log comes last and as marks, so that no curve hides it.
	cdf = append(cdf, logMarks(x, below))
	ccdf = append(ccdf, logMarks(tx, tail))
	return []report.Figure{
		{Title: "Distribution function", Caption: "share of the log and of each law at most x", X: report.Axis{Label: unit, Log: true}, Y: report.Axis{Label: "share"}, Series: cdf},
		{Title: "Tail", Caption: "share beyond x, both axes logarithmic", X: report.Axis{Label: unit, Log: true}, Y: report.Axis{Label: "share beyond", Log: true}, Series: ccdf},
	}
}

// logMarks is the log's curve as every eighth of its points.
func logMarks(x, y []float64) report.Series {
	const every = 8
	s := report.Series{Name: "log", Style: report.Points}
	for i := range x {
		if len(x) <= curvePoints/every || i%every == 0 || i == len(x)-1 {
			s.X, s.Y = append(s.X, x[i]), append(s.Y, y[i])
		}
	}
	return s
}

// quantileTable tells what share each law has below quantiles of the log.
func (s *Sample) quantileTable(laws []*PH, names []string) report.Table {
	t := report.Table{Title: "Share below quantiles of the log (* taken)", Header: append([]string{"quantile", "value"}, names...)}
	qs := []float64{.01, .1, .25, .5, .75, .9, .99, .999}
	var x []float64
	for _, q := range qs {
		x = append(x, s.Quantile(q))
	}
	cells := make([][]float64, len(laws))
	for k, p := range laws {
		cells[k] = p.Survival(x)
	}
	for i, q := range qs {
		row := []string{fmt.Sprint(q), fmt.Sprintf("%.5g", x[i])}
		for k := range laws {
			row = append(row, fmt.Sprintf("%.4f", 1-cells[k][i]))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// countingNumbers returns 1..n.
func countingNumbers(n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = float64(i + 1)
	}
	return x
}

func formatNumbers(v ...float64) []string {
	out := make([]string, len(v))
	for i, x := range v {
		if math.Abs(x) < 1e-12 {
			x = 0
		}
		if !math.IsNaN(x) {
			out[i] = fmt.Sprintf("%.5g", x)
		}
	}
	return out
}
