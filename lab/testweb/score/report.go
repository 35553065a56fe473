package score

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/freshet/freshet/lab/report"
)

// Named is a card with the name under which it stands in a report.
type Named struct {
	Name string
	*Card
}

// Report writes cards side by side as one HTML page with plots.
func Report(w io.Writer, cards []Named) error {
	table := report.Table{Title: "Score cards", Header: []string{""}}
	for _, c := range cards {
		table.Header = append(table.Header, c.Name)
	}
	for _, row := range rows {
		cells := []string{row.name}
		for _, c := range cards {
			cells = append(cells, row.cell(c.Card))
		}
		table.Rows = append(table.Rows, cells)
	}
	over := report.Axis{Label: "seconds since the first request"}
	share := report.Axis{Label: "share of the pages that exist"}
	found := report.Figure{Title: "Pages found", X: over, Y: share}
	fresh := report.Figure{Title: "Pages held in their current version", X: over, Y: share}
	order := report.Figure{
		Title: "PageRank gathered", X: report.Axis{Label: "share of the pages that exist, in the order of first visits"},
		Y: report.Axis{Label: "share of the PageRank"}, Caption: "A curve that ends flat is a robot that found no more.",
	}
	for _, c := range cards {
		found.Series = append(found.Series, overTime(c, c.Found))
		fresh.Series = append(fresh.Series, overTime(c, c.Freshness))
		if s := gatheredSeries(c); len(s.X) > 0 {
			order.Series = append(order.Series, s)
		}
	}
	page := report.Page{
		Title: "Robots in the test web",
		Intro: "Made from truth logs alone. Robots are comparable where the web, its seed and its behaviours are the same.",
		Sections: []report.Section{
			{Title: "Cards", Tables: []report.Table{table}},
			{Title: "Over time", Figures: []report.Figure{found, fresh}},
		},
	}
	if len(order.Series) > 0 {
		page.Sections = append(page.Sections, report.Section{Title: "Order", Figures: []report.Figure{order}})
	}
	return page.Write(w)
}

func overTime(c Named, y []float64) report.Series {
	s := report.Series{Name: c.Name, Y: y, Style: report.Lines}
	for i := range y {
		s.X = append(s.X, c.Seconds*float64(i)/freshnessSteps)
	}
	return s
}

func gatheredSeries(c Named) report.Series {
	s := report.Series{Name: c.Name, Style: report.Lines}
	for _, m := range marks {
		if y, ok := c.PageRankAt[strconv.FormatFloat(m, 'g', -1, 64)]; ok {
			s.X, s.Y = append(s.X, m), append(s.Y, y)
		}
	}
	return s
}

// rows are the lines of the printed card and of the report's table.
var rows = []struct {
	name string
	cell func(*Card) string
}{
	{"robot", func(c *Card) string { return strings.Join(slices.Sorted(maps.Keys(c.Agents)), ", ") }},
	{"requests", func(c *Card) string { return fmt.Sprintf("%d in %.1f s, %d bytes", c.Requests, c.Seconds, c.Bytes) }},
	{"pages", func(c *Card) string { return fmt.Sprintf("%d of %d on %d hosts", c.Pages, c.Exist, c.Hosts) }},
	{"coverage", func(c *Card) string { return fmt.Sprintf("%.1f %%", 100*c.Coverage) }},
	{"  of reachable", func(c *Card) string {
		if c.Reachable == 0 {
			return "not known"
		}
		return fmt.Sprintf("%.1f %% of %d from %d seeds", 100*c.CoverageReachable, c.Reachable, c.Seeds)
	}},
	{"  obtainable", func(c *Card) string {
		if c.Obtainable == 0 {
			return "not known"
		}
		return fmt.Sprintf("%d by the rules", c.Obtainable)
	}},
	{"duplicates", func(c *Card) string { return fmt.Sprintf("%d, near copies %d", c.Duplicates, c.NearCopies) }},
	{"traps", func(c *Card) string {
		return fmt.Sprintf("%d pages, soft 404 %d, dead links %d", c.TrapPages, c.Soft404, c.DeadLinks)
	}},
	{"overlaps", func(c *Card) string { return strconv.Itoa(c.Overlaps) }},
	{"intervals", func(c *Card) string {
		if c.MinInterval < 0 {
			return "no host was asked twice"
		}
		return fmt.Sprintf("least %.3f s, median %.3f s", c.MinInterval, c.MedianInterval)
	}},
	{"robots.txt", func(c *Card) string {
		return fmt.Sprintf("%d violations, %d hosts unread, %d delays not kept", c.RobotsViolations, c.RobotsUnread, c.DelayViolations)
	}},
	{"revisits", func(c *Card) string { return fmt.Sprintf("%d, of them %d answered 304", c.Revisits, c.NotModified) }},
	{"wasted bytes", func(c *Card) string {
		return fmt.Sprintf("%d (%.1f %%)", c.WastedBytes, 100*float64(c.WastedBytes)/float64(max(c.Bytes, 1)))
	}},
	{"  by reason", func(c *Card) string {
		var parts []string
		for _, why := range slices.Sorted(maps.Keys(c.Wasted)) {
			parts = append(parts, fmt.Sprintf("%s %d", why, c.Wasted[why]))
		}
		return strings.Join(parts, ", ")
	}},
	{"freshness", func(c *Card) string {
		return fmt.Sprintf("mean %.3f, at the end %.3f", c.FreshnessMean, c.FreshnessEnd)
	}},
	{"PageRank", func(c *Card) string {
		var parts []string
		for _, m := range marks {
			key := strconv.FormatFloat(m, 'g', -1, 64)
			if v, ok := c.PageRankAt[key]; ok {
				parts = append(parts, fmt.Sprintf("%.3f at %s", v, key))
			}
		}
		return strings.Join(parts, ", ")
	}},
	{"Kendall's tau", func(c *Card) string {
		if c.KendallTau == nil {
			return "not known"
		}
		return fmt.Sprintf("%.3f", *c.KendallTau)
	}},
}

// Print writes a card as text.
func (c *Card) Print(w io.Writer) error {
	for _, row := range rows {
		if _, err := fmt.Fprintf(w, "%-16s %s\n", row.name, row.cell(c)); err != nil {
			return err
		}
	}
	if c.Cut {
		_, err := fmt.Fprintln(w, "the log ends within a line, as after a crash; the line was left out")
		return err
	}
	return nil
}
