package sweep

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/freshet/freshet/lab/monitor"
	"github.com/freshet/freshet/lab/report"
)

// reportPage lays out report.html.
func (r *Report) reportPage() *report.Page {
	p := &report.Page{Title: "Ways of watching: " + r.plan.Name, Intro: r.introText()}
	if r.plan.Name == "" {
		p.Title = "Ways of watching"
	}
	p.Sections = append(p.Sections, r.standingsSection(), r.tradeoffSection(), r.effectsSection())
	p.Sections = append(p.Sections, r.surfaceSections()...)
	if s := r.seriesSection(); len(s.Figures) > 0 {
		p.Sections = append(p.Sections, s)
	}
	p.Sections = append(p.Sections, r.placesSection())
	if len(r.paired) > 0 {
		p.Sections = append(p.Sections, r.pairsSection())
	}
	p.Sections = append(p.Sections, r.correlationsSection())
	return p
}

func (r *Report) introText() string {
	var events int64
	for i := range r.rows {
		events += r.rows[i].Events
	}
	s := fmt.Sprintf("Fields %d, variants %d, replications %d; seed %d, warm-up %g units. %d runs with %d events in all.", len(r.plan.Fields()), len(r.plan.Variants), r.plan.Replications, r.plan.Seed, r.plan.Warmup, r.Read, events)
	if r.Missing > 0 {
		s += fmt.Sprintf("\n%d of %d runs are missing: this report is of the others.", r.Missing, r.Runs)
	}
	switch {
	case r.plan.Warmup > 0:
		s += fmt.Sprintf("\nSteady state: means, delays and ages leave out the first %g units, in which the index is fresher than later, because all of it is known at the start. Volumes and counts are of the whole run.", r.plan.Warmup)
	default:
		s += "\nTerminating experiment without warm-up: the index is known to be right at the start, and means are from there on."
	}
	return s + "\nFreshness F: share of resources whose latest real change is known, in percent, averaged over time. Volume V: bytes downloaded. All variants of a field see the same histories. A unit is 100 ms."
}

func (r *Report) standingsSection() report.Section {
	t := report.Table{Header: []string{"variant", "mean freshness, %", "mean volume, GB", "not dominated in", "freshest in", "least volume in", "tied in", "fields"}}
	for _, s := range r.Variants {
		t.Rows = append(t.Rows, []string{s.Variant, fmt.Sprintf("%.3f", s.Freshness), fmt.Sprintf("%.3f", s.Bytes/1e9), fmt.Sprint(s.Front), fmt.Sprint(s.Freshest), fmt.Sprint(s.Lightest), fmt.Sprint(s.Ties), fmt.Sprint(s.Fields)})
	}
	return report.Section{Title: "Over all fields", Text: "A variant is dominated in a field if another one is fresher for no more volume, or as fresh for less.", Tables: []report.Table{t}}
}

// tradeoffSection draws every field's variants as points, the volume relative to the
// baseline's, and the fronts of the example fields.
func (r *Report) tradeoffSection() report.Section {
	base := map[int]float64{}
	for _, p := range r.ranking {
		if p.Variant == r.plan.Baseline {
			base[p.Field] = p.Bytes
		}
	}
	all := report.Figure{Title: "Freshness against volume, all fields", Caption: "each mark is a field; the volume is relative to that of " + r.plan.Baseline + " there", X: report.Axis{Label: "volume / volume of " + r.plan.Baseline, Log: true}, Y: report.Axis{Label: "mean freshness, %"}}
	for _, v := range r.plan.Variants {
		s := report.Series{Name: v, Style: report.Points}
		for _, p := range r.ranking {
			if p.Variant == v && base[p.Field] > 0 {
				s.X, s.Y = append(s.X, p.Bytes/base[p.Field]), append(s.Y, p.Freshness)
			}
		}
		all.Series = append(all.Series, s)
	}
	sec := report.Section{Title: "Freshness against volume", Text: "Up and to the left is better. A grey line joins the variants that nothing dominates: what stands below and to the right of one of them is worse in both. Vertical bars are 95 % intervals of the mean over replications."}
	sec.Figures = appendDrawable(sec.Figures, all)
	for _, e := range r.examples {
		sec.Figures = appendDrawable(sec.Figures, r.frontFigure(e.factors))
	}
	return sec
}

// frontFigure draws one field.
func (r *Report) frontFigure(f Factors) report.Figure {
	fig := report.Figure{Title: "Field " + describeFactors(f), X: report.Axis{Label: "volume, GB", Log: true}, Y: report.Axis{Label: "mean freshness, %"}}
	line := report.Series{Style: report.Lines, Faint: true}
	var best []place
	for _, p := range r.ranking {
		if p.Field != f.Field {
			continue
		}
		s := report.Series{Name: p.Variant, X: []float64{p.Bytes / 1e9}, Y: []float64{p.Freshness}, Style: report.Points}
		if p.FreshnessHalf != nil {
			s.Low, s.High = []float64{p.Freshness - *p.FreshnessHalf}, []float64{p.Freshness + *p.FreshnessHalf}
		}
		fig.Series = append(fig.Series, s)
		if p.Front == 1 {
			best = append(best, p)
		}
	}
	slices.SortFunc(best, func(a, b place) int { return int(math.Copysign(1, a.Bytes-b.Bytes)) })
	for _, p := range best {
		line.X, line.Y = append(line.X, p.Bytes/1e9), append(line.Y, p.Freshness)
	}
	fig.Series = slices.Insert(fig.Series, 0, line)
	return fig
}

func describeFactors(f Factors) string {
	s := fmt.Sprintf("%d: %d pages, %s units, %g changes, %g requests", f.Field, f.Pages, formatPlain(f.Time), f.Changes, f.Requests)
	if f.File != "" {
		return s + ", " + f.File
	}
	for _, l := range []struct{ name, text, usual string }{{"changes", f.ChangeLaw, "exponential"}, {"change rates", f.ChangeSpread, "none"}, {"requests", f.RequestLaw, "exponential"}, {"request rates", f.RequestSpread, "none"}} {
		if l.text != l.usual {
			s += ", " + l.name + " " + l.text
		}
	}
	return s
}

// formatPlain writes a number without an exponent.
func formatPlain(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// appendDrawable adds a figure that has a point.
func appendDrawable(to []report.Figure, f report.Figure) []report.Figure {
	if _, err := f.SVG(); err != nil {
		return to
	}
	return append(to, f)
}

// effectsSection draws the mean of a response over all runs with a level of a factor.
func (r *Report) effectsSection() report.Section {
	sec := report.Section{Title: "Effects of factors", Text: "Each point is the mean over all runs of the variant with that value of the factor. Changes and requests are those of a resource within the time of the run."}
	for _, f := range factorNames {
		for _, what := range []struct{ name, label string }{{"freshness_mean", "mean freshness, %"}, {"bytes", "volume, bytes"}} {
			fig := report.Figure{Title: what.label + " by " + f, X: report.Axis{Label: f, Log: f == "changes" || f == "requests"}, Y: report.Axis{Label: what.label, Log: what.name == "bytes"}}
			levels := 0
			for _, v := range r.plan.Variants {
				x, y := r.levelMeans(v, f, what.name)
				levels = max(levels, len(x))
				fig.Series = append(fig.Series, report.Series{Name: v, X: x, Y: y})
			}
			if levels > 1 {
				sec.Figures = appendDrawable(sec.Figures, fig)
			}
		}
	}
	if len(sec.Figures) == 0 {
		sec.Text = "No factor varies in this plan."
	}
	return sec
}

// levelMeans returns the values of a factor and the mean response at each.
func (r *Report) levelMeans(variant, f, name string) (x, y []float64) {
	sum, n := map[float64]float64{}, map[float64]float64{}
	for i := range r.rows {
		if w := &r.rows[i]; w.Variant == variant {
			sum[factorValue(w, f)] += responseValue(w, name)
			n[factorValue(w, f)]++
		}
	}
	for v := range sum {
		x = append(x, v)
	}
	slices.Sort(x)
	for _, v := range x {
		y = append(y, sum[v]/n[v])
	}
	return x, y
}

// maxPoints bounds a curve of a figure.
const maxPoints = 400

// seriesSection draws freshness and volume over time of the example fields.
func (r *Report) seriesSection() report.Section {
	sec := report.Section{Title: "Over time"}
	for _, e := range r.examples {
		fresh := report.Figure{Title: "Freshness, field " + describeFactors(e.factors), X: report.Axis{Label: "time, units"}, Y: report.Axis{Label: "freshness, %"}}
		volume := report.Figure{Title: "Volume, field " + describeFactors(e.factors), X: report.Axis{Label: "time, units"}, Y: report.Axis{Label: "volume, GB"}}
		n := float64(e.factors.Pages)
		for _, m := range e.runs {
			f, v := report.Series{Name: m.variant}, report.Series{Name: m.variant}
			step := 1 + len(m.series.Stale)/maxPoints
			for i := 0; i < len(m.series.Stale); i += step {
				f.X, f.Y = append(f.X, float64(i)*monitor.SampleEvery), append(f.Y, 100*(1-float64(m.series.Stale[i])/n))
			}
			step = 1 + len(m.series.Volume)/maxPoints
			for i := 0; i < len(m.series.Volume); i += step {
				v.X, v.Y = append(v.X, float64(i)*monitor.VolumeEvery), append(v.Y, float64(m.series.Volume[i])/1e9)
			}
			fresh.Series, volume.Series = append(fresh.Series, f), append(volume.Series, v)
		}
		sec.Figures = appendDrawable(appendDrawable(sec.Figures, fresh), volume)
	}
	return sec
}

// maxLines bounds tables of the page; the CSV files hold all.
const maxLines = 600

func (r *Report) placesSection() report.Section {
	t := report.Table{Header: []string{"field", "variant", "freshness, %", "volume, GB", "front", "dominated by", "tied with"}}
	for _, p := range r.ranking[:min(len(r.ranking), maxLines)] {
		t.Rows = append(t.Rows, []string{fmt.Sprint(p.Field), p.Variant, formatInterval(p.Freshness, p.FreshnessHalf, 1), formatInterval(p.Bytes, p.BytesHalf, 1e9), fmt.Sprint(p.Front), p.DominatedBy, p.Ties})
	}
	sec := report.Section{Title: "Ranking by field", Text: "Front 1 is what nothing dominates, front 2 what only front 1 dominates, and so on. " + r.howTied(), Tables: []report.Table{t}}
	if len(r.ranking) > maxLines {
		sec.Text += fmt.Sprintf(" The first %d of %d lines; ranking.csv has all.", maxLines, len(r.ranking))
	}
	return sec
}

// howTied says what a tie and what ± is.
func (r *Report) howTied() string {
	if r.plan.Replications < 2 {
		return "Tied are those that are equal in both. One replication has no intervals: replications in the plan give them."
	}
	return fmt.Sprintf("± is half of the 95 %% interval of the mean of %d replications (Student's t). Tied are those whose paired differences, replication by replication on the same histories, have intervals that hold 0 for freshness and for volume: chance alone could have made them.", r.plan.Replications)
}

func formatInterval(mean float64, half *float64, unit float64) string {
	if half == nil {
		return fmt.Sprintf("%.3f", mean/unit)
	}
	return fmt.Sprintf("%.3f ± %.3f", mean/unit, *half/unit)
}

func (r *Report) pairsSection() report.Section {
	t := report.Table{Header: []string{"field", "variant", "freshness difference, %", "volume difference, GB", "verdict"}}
	for _, p := range r.paired[:min(len(r.paired), maxLines)] {
		t.Rows = append(t.Rows, []string{fmt.Sprint(p.Field), p.Variant, formatInterval(p.Freshness, &p.FreshnessHalf, 1), formatInterval(p.Bytes, &p.BytesHalf, 1e9), p.Verdict})
	}
	return report.Section{Title: "Against " + r.plan.Baseline, Text: "Differences to the baseline, replication by replication on the same histories, so that what the histories have in common falls out: mean and 95 % interval (Student's t of the differences). An interval that holds 0 is no difference that could be told from chance. Each line is a test of its own: of a hundred lines without a difference some five show one.", Tables: []report.Table{t}}
}

func (r *Report) correlationsSection() report.Section {
	t := report.Table{Header: []string{"variant", "factor", "response", "linear r", "p", "rank r", "p", "significant"}}
	number := func(v *float64) string {
		if v == nil {
			return ""
		}
		return fmt.Sprintf("%.3g", *v)
	}
	for _, c := range r.links[:min(len(r.links), maxLines)] {
		if c.Pearson == nil {
			continue
		}
		t.Rows = append(t.Rows, []string{c.Variant, c.Factor, c.Response, number(c.Pearson), number(c.PearsonP), number(c.Spearman), number(c.SpearmanP), strings.ReplaceAll(c.Significant, "+", ", ")})
	}
	return report.Section{Title: "Correlations", Text: "How a response goes with a factor over all runs: Pearson's coefficient (linear r) and Spearman's (of ranks: any rising or falling course), from -1 to 1. p is the probability of one at least as far from 0 if they had nothing to do with each other (t test, every run counted as one of its own). Of so many lines some are small by chance: significant are those that stay below 5 % after Holm's correction for all lines, linear or by rank.", Tables: []report.Table{t}}
}
