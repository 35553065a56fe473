package sweep

import (
	"fmt"
	"math"
	"slices"

	"github.com/freshet/freshet/lab/report"
)

// surfaceSections are maps of freshness and of volume over two factors, one a variant,
// each number the mean over everything else; all maps of a section have the same
// colours.
func (r *Report) surfaceSections() []report.Section {
	responses := []struct {
		title, text, name, format string
		unit                      float64
		log                       bool
	}{
		{"Surfaces of freshness", "Mean freshness in percent", "freshness_mean", "%.2f", 1, false},
		{"Surfaces of volume", "Volume in GB, colours by its logarithm,", "bytes", "%.3g", 1e9, true},
	}
	var out []report.Section
	for _, what := range responses {
		for _, pair := range r.pairsOfFactors() {
			sec := report.Section{
				Title: fmt.Sprintf("%s: %s and %s", what.title, pair[0], pair[1]),
				Text:  fmt.Sprintf("%s over %s (down) and %s (across): means over all runs of the variant with these values. Yellow is much.", what.text, pair[0], pair[1]),
			}
			maps := make([]*report.Map, len(r.plan.Variants))
			low, high := math.Inf(1), math.Inf(-1)
			for i, v := range r.plan.Variants {
				maps[i] = r.surfaceMap(v, pair, what.name, what.unit)
				maps[i].Log, maps[i].Format = what.log, what.format
				for _, row := range maps[i].Values {
					for _, x := range row {
						if !math.IsNaN(x) && (x > 0 || !what.log) {
							low, high = min(low, x), max(high, x)
						}
					}
				}
			}
			for i, m := range maps {
				m.Low, m.High = low, high
				if svg, err := m.SVG(); err == nil && len(m.X) > 1 && len(m.Y) > 1 {
					sec.Figures = append(sec.Figures, report.Figure{Title: r.plan.Variants[i], Drawing: svg, Small: true})
				}
			}
			if len(sec.Figures) > 0 {
				out = append(out, sec)
			}
		}
	}
	return out
}

// pairsOfFactors returns the factors of the surfaces, down and across: changes
// with each of the others that vary; if changes do not, the first two that do.
func (r *Report) pairsOfFactors() [][2]string {
	varies := func(f string) bool {
		return slices.ContainsFunc(r.rows, func(w row) bool { return factorValue(&w, f) != factorValue(&r.rows[0], f) })
	}
	var others []string
	for _, f := range []string{"pages", "requests", "time"} {
		if varies(f) {
			others = append(others, f)
		}
	}
	switch {
	case varies("changes"):
		var out [][2]string
		for _, f := range others {
			out = append(out, [2]string{"changes", f})
		}
		return out
	case len(others) > 1:
		return [][2]string{{others[0], others[1]}}
	}
	return nil
}

// surfaceMap returns the means of a response of a variant over two factors.
func (r *Report) surfaceMap(variant string, pair [2]string, name string, unit float64) *report.Map {
	type at struct{ down, across float64 }
	sum, n := map[at]float64{}, map[at]float64{}
	var down, over []float64
	for i := range r.rows {
		w := &r.rows[i]
		if w.Variant != variant {
			continue
		}
		k := at{factorValue(w, pair[0]), factorValue(w, pair[1])}
		if n[k]++; n[k] == 1 {
			down, over = append(down, k.down), append(over, k.across)
		}
		sum[k] += responseValue(w, name) / unit
	}
	m := &report.Map{Down: pair[0], Across: pair[1]}
	levels := func(vs []float64) ([]float64, []string) {
		slices.Sort(vs)
		vs = slices.Compact(vs)
		var names []string
		for _, v := range vs {
			names = append(names, formatPlain(v))
		}
		return vs, names
	}
	down, m.Y = levels(down)
	over, m.X = levels(over)
	for _, d := range down {
		line := make([]float64, len(over))
		for i, x := range over {
			k := at{d, x}
			line[i] = sum[k] / n[k] // NaN where there is none
		}
		m.Values = append(m.Values, line)
	}
	return m
}
