package coverage

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/freshet/freshet/lab/report"
	"github.com/freshet/freshet/lab/strategy/run"
)

// Run is the result of one strategy.
type Run struct {
	Name   string `json:"name"`
	Script string `json:"script"`
	run.Result
	WallSeconds float64 `json:"wall_seconds"`
	*Summary
	Points []Point `json:"-"`
}

// Comparison is the result of several strategies.
type Comparison struct {
	Web   WebInfo  `json:"web"`
	Cost  Cost     `json:"cost"`
	Runs  []Run    `json:"strategies"`
	Files []string `json:"files"`
}

// WebInfo tells the size of the web.
type WebInfo struct {
	Dir   string `json:"dir"`
	Nodes int    `json:"nodes"`
	Links int64  `json:"links"`
	Sites int    `json:"sites"`
}

// Cost tells the model of time.
type Cost struct {
	Latency     float64 `json:"latency"`
	Bandwidth   float64 `json:"bandwidth"`
	Delay       float64 `json:"delay"`
	Connections int     `json:"connections"`
}

// Write puts curves.csv, summary.csv and report.html into dir.
func (c *Comparison) Write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, f := range []struct {
		name  string
		write func(io.Writer) error
	}{{"curves.csv", c.writeCurves}, {"summary.csv", c.writeSummary}, {"report.html", c.writeHTML}} {
		path := filepath.Join(dir, f.name)
		out, err := os.Create(path)
		if err != nil {
			return err
		}
		if err := errors.Join(f.write(out), out.Close()); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		c.Files = append(c.Files, path)
	}
	return nil
}

func formatFloat8(v float64) string { return strconv.FormatFloat(v, 'g', 8, 64) }

// writeCurves writes a line a point.
func (c *Comparison) writeCurves(w io.Writer) error {
	out := csv.NewWriter(w)
	_ = out.Write([]string{"strategy", "pages", "pages_share", "seconds", "pagerank", "inlinks", "sites", "sites_complete"})
	for _, r := range c.Runs {
		for _, p := range r.Points {
			_ = out.Write([]string{
				r.Name, strconv.FormatInt(p.Pages, 10), formatFloat8(float64(p.Pages) / float64(c.Web.Nodes)), formatFloat8(p.Seconds),
				formatFloat8(p.PageRank), formatFloat8(p.InLinks), formatFloat8(p.Sites), formatFloat8(p.Complete),
			})
		}
	}
	out.Flush()
	return out.Error()
}

// summaryTable returns the summary: a row a strategy.
func (c *Comparison) summaryTable(format func(float64) string) report.Table {
	t := report.Table{Header: []string{"strategy", "pages", "seconds", "area", "tau"}}
	for _, s := range Shares() {
		t.Header = append(t.Header, "pagerank_at_"+Label(s))
	}
	for _, s := range Shares() {
		t.Header = append(t.Header, "seconds_at_"+Label(s))
	}
	for _, s := range Shares() {
		t.Header = append(t.Header, "subgraph_tau_"+Label(s))
	}
	for _, r := range c.Runs {
		row := []string{r.Name, strconv.FormatInt(r.Distinct, 10), format(r.Seconds), format(r.Area), ""}
		if r.Tau != nil {
			row[4] = format(*r.Tau)
		}
		for _, m := range []map[string]float64{r.PageRankAt, r.SecondsAt, r.SubgraphTau} {
			for _, s := range Shares() {
				cell := ""
				if v, ok := m[Label(s)]; ok {
					cell = format(v)
				}
				row = append(row, cell)
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func (c *Comparison) writeSummary(w io.Writer) error {
	t := c.summaryTable(formatFloat8)
	out := csv.NewWriter(w)
	_ = out.Write(t.Header)
	_ = out.WriteAll(t.Rows) // flushes
	return out.Error()
}

// writeHTML writes the report.
func (c *Comparison) writeHTML(w io.Writer) error {
	figure := func(title, caption, x, y string, at func(Point) (float64, float64), log bool) report.Figure {
		f := report.Figure{Title: title, Caption: caption, X: report.Axis{Label: x, Log: log}, Y: report.Axis{Label: y}}
		for _, r := range c.Runs {
			s := report.Series{Name: r.Name}
			for _, p := range r.Points {
				a, b := at(p)
				s.X, s.Y = append(s.X, a), append(s.Y, b)
			}
			f.Series = append(f.Series, s)
		}
		return f
	}
	share := func(p Point) float64 { return float64(p.Pages) / float64(c.Web.Nodes) }
	byPages := []report.Figure{
		figure("PageRank", "share of the PageRank of the whole web", "share of the pages", "share of PageRank", func(p Point) (float64, float64) { return share(p), p.PageRank }, false),
		figure("In-links", "share of all links that lead to fetched pages", "share of the pages", "share of links", func(p Point) (float64, float64) { return share(p), p.InLinks }, false),
		figure("Sites", "share of the sites (servers) with at least one page", "share of the pages", "share of sites", func(p Point) (float64, float64) { return share(p), p.Sites }, false),
		figure("Complete sites", "share of the sites with all their pages", "share of the pages", "share of sites", func(p Point) (float64, float64) { return share(p), p.Complete }, false),
	}
	bySeconds := []report.Figure{
		figure("PageRank in time", "", "simulated seconds", "share of PageRank", func(p Point) (float64, float64) { return p.Seconds, p.PageRank }, true),
		figure("Pages in time", "", "simulated seconds", "share of the pages", func(p Point) (float64, float64) { return p.Seconds, share(p) }, true),
		figure("In-links in time", "", "simulated seconds", "share of links", func(p Point) (float64, float64) { return p.Seconds, p.InLinks }, true),
		figure("Sites in time", "", "simulated seconds", "share of sites", func(p Point) (float64, float64) { return p.Seconds, p.Sites }, true),
	}
	trust := report.Figure{
		Title: "Trust in ranks", Caption: "Kendall's tau between PageRank of the fetched part and of the whole web, over the fetched pages",
		X: report.Axis{Label: "share of the pages", Log: true}, Y: report.Axis{Label: "tau"},
	}
	hasComplete := false
	for _, r := range c.Runs {
		s := report.Series{Name: r.Name}
		for _, sh := range Shares() {
			if v, ok := r.SubgraphTau[Label(sh)]; ok {
				s.X, s.Y, hasComplete = append(s.X, sh), append(s.Y, v), true
			}
		}
		if len(s.X) > 0 {
			trust.Series = append(trust.Series, s)
		}
	}
	page := report.Page{
		Title: "Download strategies compared",
		Intro: fmt.Sprintf("A web of %d pages, %d links and %d sites. Time: %g s a fetch, %g bytes a second a connection, %g s between two fetches from a server, %d connections.",
			c.Web.Nodes, c.Web.Links, c.Web.Sites, c.Cost.Latency, c.Cost.Bandwidth, c.Cost.Delay, c.Cost.Connections),
		Sections: []report.Section{
			{Title: "By pages", Figures: byPages},
			{Title: "By seconds", Text: "The logarithmic axis leaves out the first point.", Figures: bySeconds},
		},
	}
	if hasComplete {
		page.Sections = append(page.Sections, report.Section{Title: "Trust in ranks", Figures: []report.Figure{trust}})
	}
	t := c.summaryTable(func(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) })
	page.Sections = append(page.Sections, report.Section{
		Title: "Summary", Text: "area: mean share of PageRank over all pages (1/2 knows nothing); tau: Kendall's between the order and PageRank; pagerank_at_x: share of PageRank with a share x of the pages; seconds_at_x: when a share x of PageRank was had; subgraph_tau_x: trust in ranks with a share x of the pages.",
		Tables: []report.Table{t},
	})
	return page.Write(w)
}
