package study

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/freshet/freshet/lab/report"
)

// Page lays the studies of models out.
func Page(studies []*Study) *report.Page {
	p := &report.Page{
		Title: "How many robots should be active",
		Intro: "Robots bring pages in batches, one indexer works them off, waiting pages go stale. A policy says by the number of pages present which mode holds: in mode r, r robots are active. Costs are those of the models; profit is the part of the cost of the best fixed mode that control saves.",
	}
	for _, s := range studies {
		p.Sections = append(p.Sections, s.studySections()...)
	}
	return p
}

func (s *Study) studySections() []report.Section {
	title := func(t string) string { return s.Name + ": " + t }
	out := []report.Section{
		{Title: title("the optimum"), Text: s.optimumSummary(), Tables: []report.Table{s.modesTable(), s.fixedModesTable(), s.subsetsTable()}, Figures: []report.Figure{s.queueLengthFigure()}},
		{Title: title("two modes and a threshold"), Text: "Below and at the threshold the higher mode, above it the lower one; -1 is the lower mode always.", Tables: []report.Table{s.pairTable()}, Figures: s.pairFigures()},
		{Title: title("capacity"), Tables: []report.Table{pointTable("capacity", s.Capacity)}, Figures: pointFigures("Capacity", "capacity N", false, s.Capacity)},
	}
	for _, e := range s.Effects {
		out = append(out, report.Section{Title: title(strings.ToLower(e.Name)), Text: e.Note, Tables: []report.Table{pointTable(e.X, e.Points)}, Figures: pointFigures(e.Name, e.X, e.Log, e.Points)})
	}
	if len(s.Bounds) > 0 {
		out = append(out, s.boundSection(title("bounds in place of costs")))
	}
	if len(s.Checks) > 0 {
		out = append(out, report.Section{Title: title("solver and simulation"), Text: "Intervals of 95 % over ten replications.", Tables: s.checkTables()})
	}
	return out
}

func (s *Study) optimumSummary() string {
	b := s.Best.Best
	var lines []string
	mean, scv := s.Model.ServiceMoments()
	lines = append(lines, fmt.Sprintf("Capacity %d, %d modes. Service: mean %.4g, SCV %.4g.", s.Model.N, s.Model.R, mean, scv))
	if mean, scv := s.Model.StaleMoments(); math.IsInf(mean, 1) {
		lines = append(lines, "Some or all pages never go stale.")
	} else {
		lines = append(lines, fmt.Sprintf("Staleness: mean %.4g, SCV %.4g.", mean, scv))
	}
	lines = append(lines, fmt.Sprintf("Best thresholds %v: cost %.6g (%s, error %.1g; %s, %d policies).", b.Thresholds, b.Cost, b.Measures.Method, b.Measures.Error, s.Best.Search, s.Best.Sets))
	u := s.Best.Unrestricted
	lines = append(lines, fmt.Sprintf("The best policy with any mode at any level (search: %s) costs %.6g: thresholds are %s dearer.", u.Search, u.Cost, formatPercent(u.Gap)))
	if s.Aware != nil {
		lines = append(lines, fmt.Sprintf("The best one that sees the phases costs %.6g: thresholds are %s dearer.", s.Aware.Cost, formatPercent(*s.Gap)))
	}
	if n := s.Naive; n != nil {
		lines = append(lines, fmt.Sprintf("If service is taken for exponential, the thresholds come out as %v, which are %s dearer.", n.Thresholds, formatPercent(n.Loss)))
	}
	return strings.Join(lines, "\n")
}

func formatPercent(v float64) string { return fmt.Sprintf("%.3g %%", 100*v) }
func formatFigure(v float64) string  { return fmt.Sprintf("%.5g", v) }

func (s *Study) modesTable() report.Table {
	t := report.Table{Title: "Pages offered a time, were the mode held for ever", Header: []string{"mode", "pages a time", "times mean service"}}
	mean, _ := s.Model.ServiceMoments()
	for r, v := range s.Model.ArrivalRates() {
		t.Rows = append(t.Rows, []string{fmt.Sprint(r + 1), formatFigure(v), formatFigure(v * mean)})
	}
	return t
}

func (s *Study) fixedModesTable() report.Table {
	t := report.Table{Title: "Without control", Header: []string{"mode", "cost", "dearer than the best thresholds by"}}
	for _, f := range s.Best.Fixed {
		t.Rows = append(t.Rows, []string{fmt.Sprint(f.Mode), formatFigure(f.Cost), formatPercent(f.Cost/s.Best.Best.Cost - 1)})
	}
	return t
}

func (s *Study) subsetsTable() report.Table {
	t := report.Table{Title: "With some of the modes", Header: []string{"modes", "thresholds", "cost", "dearer than all modes by"}}
	for _, b := range s.Best.ByModes {
		if len(b.Modes) > 1 {
			t.Rows = append(t.Rows, []string{fmt.Sprint(b.Modes), fmt.Sprint(b.Thresholds), formatFigure(b.Cost), formatPercent(b.Cost/s.Best.Best.Cost - 1)})
		}
	}
	return t
}

func (s *Study) queueLengthFigure() report.Figure {
	f := report.Figure{Title: "Number of pages", X: report.Axis{Label: "pages present"}, Y: report.Axis{Label: "probability"}}
	far := 0 // beyond it no law has more than a thousandth
	for _, law := range s.Laws {
		sum := 0.0
		for i, p := range law {
			if sum < .999 {
				far = max(far, i)
			}
			sum += p
		}
	}
	for _, name := range sortedLawNames(s.Laws) {
		x := make([]float64, far+1)
		for i := range x {
			x[i] = float64(i)
		}
		f.Series = append(f.Series, report.Series{Name: name, X: x, Y: s.Laws[name][:far+1]})
	}
	return f
}

func sortedLawNames(m map[string][]float64) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func (s *Study) pairTable() report.Table {
	t := report.Table{Title: "Best threshold of each pair", Header: []string{"modes", "threshold", "cost", "profit over the better one alone"}}
	for _, p := range s.Pairs {
		t.Rows = append(t.Rows, []string{fmt.Sprintf("%d and %d", p.Low, p.High), fmt.Sprint(p.Threshold), formatFigure(p.Cost), formatPercent(p.Profit)})
	}
	return t
}

func (s *Study) pairFigures() []report.Figure {
	all := report.Figure{Title: "Cost against threshold", Caption: "each pair of modes", X: report.Axis{Label: "threshold"}, Y: report.Axis{Label: "cost"}}
	near := report.Figure{Title: "Cost against threshold, near the best", X: all.X, Y: all.Y}
	far := 0
	for _, p := range s.Pairs {
		far = max(far, 2*p.Threshold+6)
	}
	for _, p := range s.Pairs {
		x := make([]float64, len(p.Costs))
		for i := range x {
			x[i] = float64(i - 1)
		}
		name := fmt.Sprintf("modes %d and %d", p.Low, p.High)
		all.Series = append(all.Series, report.Series{Name: name, X: x, Y: p.Costs})
		n := min(len(x), far)
		near.Series = append(near.Series, report.Series{Name: name, X: x[:n], Y: p.Costs[:n]})
	}
	switch {
	case len(s.Pairs) == 0:
		return nil
	case far >= s.Model.N:
		return []report.Figure{all}
	}
	return []report.Figure{all, near}
}

func pointTable(x string, points []Point) report.Table {
	t := report.Table{Header: []string{x, "thresholds", "cost", "profit of control", "method", "error"}}
	for _, p := range points {
		t.Rows = append(t.Rows, []string{formatFigure(p.X), fmt.Sprint(p.Thresholds), formatFigure(p.Cost), formatPercent(p.Profit), p.Method, fmt.Sprintf("%.1g", p.Error)})
	}
	return t
}

func pointFigures(title, x string, log bool, points []Point) []report.Figure {
	if len(points) == 0 {
		return nil
	}
	axis := report.Axis{Label: x, Log: log}
	var xs, cost, gain []float64
	thresholds := make([]report.Series, len(points[0].Thresholds))
	for _, p := range points {
		xs, cost, gain = append(xs, p.X), append(cost, p.Cost), append(gain, 100*p.Profit)
		for k := range thresholds {
			thresholds[k].Name = fmt.Sprintf("j_%d", k+1)
			thresholds[k].X = append(thresholds[k].X, p.X)
			thresholds[k].Y = append(thresholds[k].Y, float64(p.Thresholds[k]))
		}
	}
	out := []report.Figure{
		{Title: title + ": profit of control", X: axis, Y: report.Axis{Label: "profit, %"}, Series: []report.Series{{X: xs, Y: gain}}},
		{Title: title + ": cost of the best thresholds", X: axis, Y: report.Axis{Label: "cost"}, Series: []report.Series{{X: xs, Y: cost}}},
	}
	if len(thresholds) > 0 {
		out = append(out, report.Figure{Title: title + ": best thresholds", X: axis, Y: report.Axis{Label: "pages"}, Series: thresholds})
	}
	return out
}

func (s *Study) boundSection(title string) report.Section {
	t := report.Table{Title: "Starvation bounded", Header: []string{"p_starvation at most", "reached", "thresholds", "cost", "multiplier", "lower bound of the cost"}}
	var x, y []float64
	for _, b := range s.Bounds {
		m := b.Best.Measures
		t.Rows = append(t.Rows, []string{formatFigure(b.Bounds[0].AtMost), formatFigure(m.Starvation), fmt.Sprint(b.Best.Thresholds), formatFigure(b.Best.Cost), formatFigure(b.Multipliers[0]), formatFigure(b.LowerBound)})
		x, y = append(x, b.Bounds[0].AtMost), append(y, b.Best.Cost)
	}
	return report.Section{
		Title: title, Text: "The multiplier is what a unit of starvation would have to cost besides for the bound to be kept by itself.", Tables: []report.Table{t},
		Figures: []report.Figure{{Title: "Price of less starvation", X: report.Axis{Label: "bound on starvation"}, Y: report.Axis{Label: "cost"}, Series: []report.Series{{X: x, Y: y}}}},
	}
}

func (s *Study) checkTables() []report.Table {
	var out []report.Table
	for _, c := range s.Checks {
		t := report.Table{Title: c.Name, Header: []string{"measure", "solved", "simulated", "±"}}
		r, v, h := c.Solved, c.Simulated.Result, c.Simulated.HalfWidth
		for _, l := range []struct {
			name    string
			a, b, c float64
		}{
			{"arrival rate", r.ArrivalRate, v.ArrivalRate, h.ArrivalRate},
			{"lost", r.Loss, v.Loss, h.Loss},
			{"stale", r.Obsolete, v.Obsolete, h.Obsolete},
			{"served", r.Success, v.Success, h.Success},
			{"starvation", r.Starvation, v.Starvation, h.Starvation},
			{"mean sojourn of served pages", r.SojournServed, v.SojournServed, h.SojournServed},
			{"mean sojourn of stale pages", r.SojournObsolete, v.SojournObsolete, h.SojournObsolete},
			{"mean robots", r.MeanRobots, v.MeanRobots, h.MeanRobots},
			{"cost", r.Cost, v.Cost, h.Cost},
		} {
			t.Rows = append(t.Rows, []string{l.name, formatFigure(l.a), formatFigure(l.b), fmt.Sprintf("%.2g", l.c)})
		}
		out = append(out, t)
	}
	return out
}
