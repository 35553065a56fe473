package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/freshet/freshet/internal/command"
	"github.com/freshet/freshet/internal/usage"

	bench "github.com/freshet/freshet/lab/bench/crawl"
	"github.com/freshet/freshet/lab/jsweb"
	"github.com/freshet/freshet/render"
)

// benchAgentsCmd repeats the experiment of a thesis on crawling with browsers
// for the pages that need one.
type benchAgentsCmd struct {
	Rows    []string      `help:"Fetch+render agents of each row." default:"1+1,2+1,4+2,8+4,16+8,32+16"`
	Sites   int           `help:"Hosts of the web." default:"100"`
	Pages   int           `help:"Pages of a host." default:"60"`
	Share   float64       `name:"js" help:"Share of hosts whose pages scripts build." default:"0.2"`
	Latency time.Duration `help:"Before each answer." default:"200ms"`
	Time    time.Duration `help:"Length of a row." default:"20s"`

	Judge int `help:"Hosts of the web on which the decision is judged, with 25 pages each and no latency; 0 leaves it out." default:"30"`
	Tabs  int `help:"Tabs for the speed of rendering; 0 leaves it out." default:"4"`

	CPU      float64 `name:"price-cpu" help:"Price of a CPU hour." default:"0.03"`
	Memory   float64 `name:"price-memory" help:"Price of a GB of memory for an hour." default:"0.004"`
	Traffic  float64 `name:"price-traffic" help:"Price of a GB received." default:"0"`
	Chromium string  `help:"Path of Chromium (default: the installed one)." env:"FRESHET_CHROMIUM"`
}

// Help says what is compared.
func (benchAgentsCmd) Help() string {
	return "Three experiments on labelled synthetic sites, served by the same process. Rows: a crawl for a fixed time by so many agents. Judge: crawls of a whole web without a browser, choosing what to render, choosing for links only, and rendering all, each against the truth. Speed: the same pages by the pool of tabs and by a loop that opens one tab a page."
}

// agentsReport is what all that found.
type agentsReport struct {
	Rows   []agentsLine       `json:"rows"`
	Judged []judgedLine       `json:"judged,omitempty"`
	Speed  []*bench.Rendering `json:"rendering,omitempty"`
}

type agentsLine struct {
	*bench.AgentsRow
	Million float64 `json:"cost_per_million_pages"`
}

// judgedLine is one way to decide.
type judgedLine struct {
	Mode    string  `json:"mode"`
	URLs    int64   `json:"urls_found"`
	Seconds float64 `json:"seconds"`
	Million float64 `json:"cost_per_million_pages"`
	bench.Decision
	// OfAll is the share of what rendering everything finds beyond no rendering.
	OfAll float64 `json:"recall_of_render_all"`
}

// Run measures.
func (c *benchAgentsCmd) Run(ctx context.Context, g *command.Globals) error {
	rows, err := parseRows(c.Rows)
	if err != nil {
		return err
	}
	if c.Share < 0 || c.Share > 1 || c.Sites < 1 || c.Pages < 1 || c.Judge < 0 || c.Tabs < 0 {
		return command.Usagef("bench agents: --js is 0 to 1, --sites and --pages at least 1, --judge and --tabs not negative")
	}
	if _, err := render.Find(c.Chromium); err != nil {
		return fmt.Errorf("bench agents: %w", err)
	}
	say := func(format string, args ...any) {
		if !g.Quiet {
			fmt.Fprintf(g.Stderr, format+"\n", args...)
		}
	}
	var rep agentsReport
	for _, r := range rows {
		say("%d+%d agents for %v ...", r.Fetch, r.Render, c.Time)
		web, err := jsweb.New(c.Sites, c.Pages, jsweb.Mix(c.Share))
		if err != nil {
			return err
		}
		web.Latency = c.Latency
		r.Web, r.Time, r.Chromium, r.Log = web, c.Time, c.Chromium, g.Logger()
		row, err := r.Run(ctx)
		if err != nil {
			return fmt.Errorf("bench agents: %d+%d: %w", r.Fetch, r.Render, err)
		}
		rep.Rows = append(rep.Rows, agentsLine{row, c.usagePrices().PerMillion(row.Usage())})
	}
	if rep.Judged, err = c.judgeCrawls(ctx, g, say); err != nil {
		return fmt.Errorf("bench agents: judge: %w", err)
	}
	if rep.Speed, err = c.measureRendering(ctx, say); err != nil {
		return fmt.Errorf("bench agents: speed of rendering: %w", err)
	}
	if g.JSON {
		return g.PrintJSON(rep)
	}
	return rep.printAgents(g.Stdout)
}

func (c *benchAgentsCmd) usagePrices() usage.Prices {
	return usage.Prices{CPU: c.CPU, Memory: c.Memory, Traffic: c.Traffic}
}

// parseRows reads "4+2".
func parseRows(list []string) ([]*bench.Agents, error) {
	var out []*bench.Agents
	for _, s := range list {
		f, r, ok := strings.Cut(s, "+")
		fetch, err1 := strconv.Atoi(strings.TrimSpace(f))
		tabs, err2 := strconv.Atoi(strings.TrimSpace(r))
		if !ok || err1 != nil || err2 != nil || fetch < 1 || tabs < 0 {
			return nil, command.Usagef("--rows %q: want fetch+render agents such as 4+2", s)
		}
		out = append(out, &bench.Agents{Fetch: fetch, Render: tabs})
	}
	return out, nil
}

// judgeCrawls crawls one web in four ways.
func (c *benchAgentsCmd) judgeCrawls(ctx context.Context, g *command.Globals, say func(string, ...any)) ([]judgedLine, error) {
	if c.Judge == 0 {
		return nil, nil
	}
	var out []judgedLine
	var none, all map[string]bool
	var found []map[string]bool
	for _, m := range []struct {
		name string
		a    bench.Agents
	}{
		{"off", bench.Agents{Fetch: 8}},
		{"auto", bench.Agents{Fetch: 8, Render: 4}},
		{"auto, links only", bench.Agents{Fetch: 8, Render: 4, LinksOnly: true}},
		{"all", bench.Agents{Fetch: 8, Render: 4, All: true}},
	} {
		say("judge: %s ...", m.name)
		var kinds []string
		for _, k := range jsweb.Kinds {
			kinds = append(kinds, k.Name)
		}
		web, err := jsweb.New(c.Judge, 25, kinds)
		if err != nil {
			return nil, err
		}
		a := m.a
		a.Web, a.Chromium, a.Log = web, c.Chromium, g.Logger()
		row, err := a.Run(ctx)
		if err != nil {
			return nil, err
		}
		d := bench.Judge(row, web.Truth(), a.LinksOnly)
		out = append(out, judgedLine{Mode: m.name, URLs: row.Found, Seconds: row.Seconds, Million: c.usagePrices().PerMillion(row.Usage()), Decision: d})
		found = append(found, row.Pages)
		switch m.name {
		case "off":
			none = row.Pages
		case "all":
			all = row.Pages
		}
	}
	for i := range out {
		gain, got := 0, 0
		for u := range all {
			if _, plain := none[u]; plain {
				continue
			}
			gain++
			if _, ok := found[i][u]; ok {
				got++
			}
		}
		if gain > 0 {
			out[i].OfAll = float64(got) / float64(gain)
		}
	}
	return out, nil
}

// measureRendering renders pages of the kinds that need it, by pool and naive loop in turn.
func (c *benchAgentsCmd) measureRendering(ctx context.Context, say func(string, ...any)) ([]*bench.Rendering, error) {
	if c.Tabs == 0 {
		return nil, nil
	}
	web, err := jsweb.New(5, 12, []string{"react", "vue", "plain", "svelte", "angular"})
	if err != nil {
		return nil, err
	}
	var pages []string
	for u := range web.Truth().Needed {
		pages = append(pages, u)
	}
	var out []*bench.Rendering
	for _, tabs := range []int{1, c.Tabs} {
		say("speed of rendering: %d pages, %d tabs ...", len(pages), tabs)
		for _, run := range []func(context.Context, *jsweb.Web, []string, int, string) (*bench.Rendering, error){bench.RenderPool, bench.RenderNaive} {
			r, err := run(ctx, web, pages, tabs, c.Chromium)
			if err != nil {
				return nil, err
			}
			out = append(out, r)
		}
	}
	return out, nil
}

func (r *agentsReport) printAgents(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "agents\tURLs visited\tper s\tURLs found\thosts\trendered\t%\tonly by rendering\t%\tscripts\texamined\tCPU s\tcost/million\t")
	for _, l := range r.Rows {
		fmt.Fprintf(t, "%d+%d\t%d\t%.2f\t%d\t%d\t%d\t%.1f\t%d\t%.1f\t%d\t%d\t%.1f\t%.2f\t\n", l.Fetch, l.Render, l.Visited, l.PerSecond, l.Found, l.Hosts,
			l.Rendered, 100*l.RenderedShare, l.Only, 100*l.OnlyShare, l.Scripts, l.Examined, l.CPU, l.Million)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if len(r.Judged) > 0 {
		fmt.Fprintln(t, "\nmode\tURLs found\trecall of URLs\tof render all\trenders\toracle\tx oracle\tprecision\trecall of pages\tseconds\tcost/million\t")
		for _, l := range r.Judged {
			fmt.Fprintf(t, "%s\t%d\t%.3f\t%.3f\t%d\t%d\t%.2f\t%.3f\t%.3f\t%.1f\t%.2f\t\n", l.Mode, l.URLs, l.Decision.URLs, l.OfAll, l.Renders, l.Oracle, l.Ratio, l.Precision, l.Recall, l.Seconds, l.Million)
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	if len(r.Speed) > 0 {
		fmt.Fprintln(t, "\nrendering\ttabs\tpages\tseconds\tpages/s\tbrowser CPU ms/page\tlinks\t")
		for _, l := range r.Speed {
			fmt.Fprintf(t, "%s\t%d\t%d\t%.1f\t%.1f\t%.0f\t%d\t\n", l.Name, l.Tabs, l.Pages, l.Seconds, l.PerSecond, l.CPU, l.Links)
		}
	}
	return t.Flush()
}
