package stats

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/freshet/freshet/lab/report"
	"github.com/freshet/freshet/lab/webgraph/powerlaw"
)

// WriteReport writes the analysis as one HTML page with plots. name tells the
// reader which graph it is; profile may be nil.
func (a *Analysis) WriteReport(w io.Writer, name string, profile *Profile) error {
	p := report.Page{
		Title: "The web graph " + name,
		Intro: fmt.Sprintf("%s pages, %s links, %.4g links a page; seed %d. Figures with +- are estimates from samples, with 95 %% intervals where they stand beside clustering and standard errors elsewhere; the others are exact.", formatThousands(a.Nodes), formatThousands(a.Links), a.MeanOut, a.Seed),
	}
	p.Sections = append(p.Sections, a.profileComparison(profile), a.degreeSection())
	for _, s := range []*report.Section{a.componentSection(), a.rankSection(), a.distanceSection(), a.denseSection(), a.hostSection()} {
		if s != nil {
			p.Sections = append(p.Sections, *s)
		}
	}
	p.Sections = append(p.Sections, a.workSection())
	return p.Write(w)
}

func formatFloat4(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

func formatOptional(v *float64) string {
	if v == nil {
		return "-"
	}
	return formatFloat4(*v)
}

// formatThousands prints a number with commas between the thousands.
func formatThousands(v int64) string {
	s := strconv.FormatInt(v, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// space is one at which no line breaks.
const space = "\u00a0"

// formatWithError prints a value with its error, unless that is 0.
func formatWithError(v, err float64) string {
	if err == 0 {
		return formatFloat4(v)
	}
	return formatFloat4(v) + space + "+-" + space + strconv.FormatFloat(err, 'g', 2, 64)
}

func (a *Analysis) profileComparison(p *Profile) report.Section {
	s := report.Section{Title: "Beside real webs"}
	if p == nil || len(a.Compare) == 0 {
		s.Text = "No profile of real webs was given."
		return s
	}
	s.Text = "Profile: " + p.Name + ", after " + p.Source + ". Real crawls differ from each other as well: a figure outside its range is a reason to look, not an error."
	t := report.Table{Header: []string{"figure", "here", "known", "range", ""}}
	var others []string
	for _, c := range a.Compare {
		word := "within"
		switch {
		case c.Value == nil:
			word = "not known here"
		case !c.Within:
			word = "outside"
		}
		t.Rows = append(t.Rows, []string{c.Figure, formatOptional(c.Value), formatFloat4(c.Known), strings.Join([]string{formatFloat4(c.Low), "to", formatFloat4(c.High)}, space), strings.ReplaceAll(word, " ", space)})
		if c.Source != "" {
			others = append(others, c.Figure+": "+c.Source)
		}
	}
	if len(others) > 0 {
		s.Text += "\nOther sources: " + strings.Join(others, "; ") + "."
	}
	s.Tables = append(s.Tables, t)
	return s
}

func (a *Analysis) degreeSection() report.Section {
	s := report.Section{
		Title: "Degrees",
		Text: fmt.Sprintf("%s pages (%.3g %%) are linked by none, %s (%.3g %%) link to none; %s links lead from a page to itself. The greatest in-degree is %s, the greatest out-degree %s. Of the links, %.3g %% are answered by one the other way%s.",
			formatThousands(a.NoIn), 100*quotientShare(a.NoIn, a.Nodes), formatThousands(a.NoOut), 100*quotientShare(a.NoOut, a.Nodes), formatThousands(a.Loops), formatThousands(a.MaxIn), formatThousands(a.MaxOut), 100*a.Reciprocity, a.intraText()),
	}
	if a.InLaw != nil || a.OutLaw != nil {
		t := report.Table{Title: "Power laws by discrete maximum likelihood", Header: lawHeader}
		t.Rows = append(t.Rows, a.InLaw.lawRow("in-degree"), a.OutLaw.lawRow("out-degree"))
		s.Tables = append(s.Tables, t)
	}
	if a.degrees != nil {
		s.Figures = append(s.Figures, lawFigure("In-degrees", "links to the page", a.degrees.In, a.InLaw)...)
		s.Figures = append(s.Figures, lawFigure("Out-degrees", "links of the page", a.degrees.Out, a.OutLaw)...)
	}
	return s
}

func (a *Analysis) intraText() string {
	if a.IntraHost == nil {
		return "; hosts are not known"
	}
	return fmt.Sprintf("; %.3g %% stay inside their host", 100**a.IntraHost)
}

var lawHeader = []string{"", "exponent", "shift", "from", "values", "KS distance", "bootstrap p", "against a lognormal", "Vuong"}

// lawRow prints a law; nil as dashes.
func (l *LawFigures) lawRow(name string) []string {
	name = strings.ReplaceAll(name, "-", "\u2011") // a hyphen at which no line breaks
	if l == nil {
		return []string{name, "-", "-", "-", "-", "-", "-", "-", "-"}
	}
	p := "not tested"
	if l.P != nil {
		p = fmt.Sprintf("%.3g"+space+"(%d)", *l.P, l.Replications)
	}
	return []string{
		name, formatWithError(l.Exponent, l.StdErr), formatFloat4(l.Shift), formatThousands(l.Xmin), formatThousands(l.Tail), formatFloat4(l.Distance), p, formatFloat4(l.Lognormal.Ratio), formatFloat4(l.Lognormal.Vuong),
	}
}

// Verdict says in words what bootstrap and likelihood ratio mean together.
func (l *LawFigures) Verdict() string {
	var v string
	switch {
	case l.P == nil:
		v = "goodness not tested"
	case *l.P >= .1:
		v = "power law plausible"
	default:
		v = "not exactly a power law"
	}
	switch {
	case l.Lognormal.P >= .1:
		v += "; lognormal as good"
	case l.Lognormal.Ratio > 0:
		v += "; better than lognormal"
	default:
		v += "; lognormal better"
	}
	return v
}

// lawFigure plots P(X >= x), with the law from xmin on.
func lawFigure(title, label string, h *powerlaw.Histogram, l *LawFigures) []report.Figure {
	if h.Total() == 0 {
		return nil
	}
	f := report.Figure{Title: title, X: report.Axis{Label: label, Log: true}, Y: report.Axis{Label: "share with as many or more", Log: true}}
	var seen report.Series
	seen.Name, seen.Style = "observed", report.Points
	left, last := h.Total(), 0.
	for v, c := range h.All() {
		if x := float64(v); last == 0 || x >= last*1.03 || c == left {
			seen.X, seen.Y = append(seen.X, x), append(seen.Y, quotientShare(left, h.Total()))
			last = x
		}
		left -= c
	}
	f.Series = append(f.Series, seen)
	if l == nil {
		f.Caption = "Complementary cumulative distribution."
		return []report.Figure{f}
	}
	line := report.Series{Name: l.lawFormula()}
	for x := float64(l.Xmin); x <= float64(h.Max()); x = math.Ceil(x * 1.1) {
		line.X = append(line.X, x)
		line.Y = append(line.Y, l.law.CCDF(int64(x))*quotientShare(l.Tail, h.Total()))
	}
	f.Series = append(f.Series, line)
	f.Caption = fmt.Sprintf("Complementary cumulative distribution with the law fitted from %d on: %s.", l.Xmin, l.Verdict())
	if l.Pure != nil {
		f.Caption += fmt.Sprintf(" The pure power that fits best has exponent %s from %d on.", formatWithError(l.Pure.Exponent, l.Pure.StdErr), l.Pure.Xmin)
	}
	return []report.Figure{f}
}

// lawFormula names the law as a power of x.
func (l *LawFigures) lawFormula() string {
	if l.Shift == 0 {
		return fmt.Sprintf("x^-%.3g", l.Exponent)
	}
	return fmt.Sprintf("(x%+.2g)^-%.3g", l.Shift, l.Exponent)
}

func (a *Analysis) componentSection() *report.Section {
	if a.BowTie == nil {
		return nil
	}
	s := &report.Section{
		Title: "Components",
		Text: fmt.Sprintf("%s strong components; the largest holds %.4g %% of the pages. %s weak components; the largest holds %.4g %%.",
			formatThousands(*a.Strong), 100**a.LargestSCC, formatThousands(*a.Weak), 100**a.LargestWCC),
	}
	s.Figures = append(s.Figures, report.Figure{Title: "Bow-tie", Drawing: a.BowTie.drawBowTie(), Caption: "Pages by their place around the largest strong component: areas are proportional to shares."})
	if len(a.sccSizes) > 1 {
		f := report.Figure{
			Title: "Strong components", Caption: "How many there are of each size.",
			X: report.Axis{Label: "pages", Log: true}, Y: report.Axis{Label: "components", Log: true},
		}
		pts := report.Series{Style: report.Points}
		for i, size := range a.sccSizes {
			pts.X, pts.Y = append(pts.X, float64(size)), append(pts.Y, float64(a.sccCounts[i]))
		}
		f.Series = append(f.Series, pts)
		s.Figures = append(s.Figures, f)
	}
	return s
}

func (a *Analysis) rankSection() *report.Section {
	r := a.PageRank
	if r == nil {
		return nil
	}
	s := &report.Section{
		Title: "PageRank",
		Text: fmt.Sprintf("Damping %g; %d rounds; the sum of changes in the last was %.2g, so the sum of the errors of all ranks is at most %.2g. The highest hundredth of the pages holds %.3g %% of all rank.",
			r.Damping, r.Rounds, r.Residual, r.Bound, 100*r.TopShare),
	}
	if r.Tau != nil {
		s.Text += fmt.Sprintf(" Kendall's tau-b with the in-degree is %.3f (%d pages).", *r.Tau, r.TauPages)
	}
	t := report.Table{Title: "Highest ranks", Header: []string{"page", "rank", "times the mean", "in-degree"}}
	for _, p := range r.Top {
		t.Rows = append(t.Rows, []string{formatThousands(int64(p.Page)), formatFloat4(p.Rank), formatFloat4(p.Rank * float64(a.Nodes)), formatThousands(p.Links)})
	}
	s.Tables = append(s.Tables, t)
	f := report.Figure{
		Title: "Distribution of PageRank", Caption: "Complementary cumulative distribution.",
		X: report.Axis{Label: "rank, in units of the mean", Log: true}, Y: report.Axis{Label: "share with as much or more", Log: true},
	}
	pts := report.Series{Style: report.Points}
	left := a.Nodes
	for i, c := range r.counts {
		if c > 0 {
			pts.X = append(pts.X, math.Pow(10, lowest+float64(i)/perDecade))
			pts.Y = append(pts.Y, quotientShare(left, a.Nodes))
		}
		left -= c
	}
	if len(pts.X) > 0 {
		f.Series = append(f.Series, pts)
		s.Figures = append(s.Figures, f)
	}
	return s
}

func (a *Analysis) distanceSection() *report.Section {
	d := a.Distances
	if d == nil {
		return nil
	}
	how := "by search from every page"
	if !d.Exact {
		how = fmt.Sprintf("by HyperBall, %d runs with %d registers a page; +- are standard errors from the spread of the runs", d.Runs, 1<<d.Log2Registers)
	}
	s := &report.Section{Title: "Distances", Text: fmt.Sprintf("Along the direction of links, %s. %s of the ordered pairs of pages are joined; their mean distance is %s, and 90 %% of them are within %s links. The farthest pair found is %d links apart. The mean of 1/distance over all pairs is %s.",
		how, formatWithError(d.Reachable, d.ReachableError), formatWithError(d.Mean, d.MeanError), formatWithError(d.Effective, d.EffectiveError), d.Longest, formatWithError(d.Efficiency, d.EfficiencyError))}
	if d.CutOff {
		s.Text += " The search was ended by its bound on rounds: all these figures are too small."
	}
	if len(d.Pairs) < 2 {
		return s
	}
	all := d.Pairs[len(d.Pairs)-1] - d.Pairs[0]
	bars := report.Series{Style: report.Bars}
	for t := 1; t < len(d.Pairs) && t <= 200; t++ {
		bars.X, bars.Y = append(bars.X, float64(t)), append(bars.Y, (d.Pairs[t]-d.Pairs[t-1])/all)
	}
	s.Figures = append(s.Figures, report.Figure{
		Title: "Distances", Caption: "Share of the joined pairs at each distance.", Series: []report.Series{bars},
		X: report.Axis{Label: "links"}, Y: report.Axis{Label: "share of pairs"},
	})
	return s
}

func (a *Analysis) denseSection() *report.Section {
	if a.Closed == nil && a.Core == nil && a.Trawled == nil {
		return nil
	}
	s := &report.Section{Title: "Clustering and cores"}
	var text []string
	if c := a.Closed; c != nil {
		how := fmt.Sprintf("exact: %d triangles", c.Triangles)
		if !c.Exact {
			how = fmt.Sprintf("from %d pairs of neighbours each, 95 %% intervals", c.Wedges)
		}
		text = append(text, fmt.Sprintf("Clustering, directions left out of account: mean over pages %s, over all pairs of neighbours %s (%s).", formatWithError(c.Local, c.LocalError), formatWithError(c.Transitivity, c.TransitivityError), how))
	}
	if a.Core != nil {
		text = append(text, fmt.Sprintf("The innermost core holds %d pages with at least %d neighbours inside it each.", a.Core.Pages, a.Core.Max))
	}
	if t := a.Trawled; t != nil {
		line := fmt.Sprintf("Trawling found %d bipartite cores of at least %d fans that all link to at least %d centres, with %d fans in them; the largest has %d fans and %d centres.", t.Count, t.Fans, t.Centres, t.Covered, len(t.Largest.Fans), len(t.Largest.Centres))
		if t.Unsettled > 0 {
			line += fmt.Sprintf(" For %d pages the search was given up.", t.Unsettled)
		}
		text = append(text, line)
	}
	s.Text = strings.Join(text, "\n")
	if len(a.coreCounts) > 1 {
		line := report.Series{Style: report.Steps}
		left := a.Nodes
		for k, c := range a.coreCounts {
			line.X, line.Y = append(line.X, float64(k)), append(line.Y, quotientShare(left, a.Nodes))
			left -= c
		}
		s.Figures = append(s.Figures, report.Figure{
			Title: "k-cores", Caption: "Share of the pages that are in the k-core.", Series: []report.Series{line},
			X: report.Axis{Label: "k"}, Y: report.Axis{Label: "share of pages", Log: true},
		})
	}
	return s
}

func (a *Analysis) hostSection() *report.Section {
	h := a.Hosts
	if h == nil {
		return nil
	}
	s := &report.Section{Title: "Hosts", Text: fmt.Sprintf("%d hosts with %.4g pages in the mean and %d at most; %d have one page. %d hosts are linked by no other, %d link to no other; %d pairs of hosts are linked. The mean over hosts of the share of links inside is %.3g.",
		h.Hosts, h.Mean, h.Greatest, h.Single, h.NoIn, h.NoOut, h.Links, h.Internal)}
	if a.HostLaw != nil {
		s.Tables = append(s.Tables, report.Table{Header: lawHeader, Rows: [][]string{a.HostLaw.lawRow("pages of a host")}})
	}
	s.Figures = lawFigure("Sizes of hosts", "pages of the host", h.Pages, a.HostLaw)
	return s
}

func (a *Analysis) workSection() report.Section {
	s := report.Section{Title: "Work"}
	t := report.Table{Header: []string{"step", "seconds"}}
	for _, name := range append([]string{"degrees"}, stepNames...) {
		if sec, ok := a.Seconds[name]; ok {
			t.Rows = append(t.Rows, []string{name, formatFloat4(sec)})
		}
	}
	s.Tables = append(s.Tables, t)
	if len(a.Skipped) > 0 {
		s.Text = "Skipped: " + strings.Join(a.Skipped, ", ") + "."
	}
	return s
}
