package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/freshet/freshet/internal/command"

	bench "github.com/freshet/freshet/lab/bench/crawl"
)

// benchNodesCmd measures how the pages a second grow with agents and processes
// that share a database.
type benchNodesCmd struct {
	Database string        `help:"A PostgreSQL server on which databases may be made: each row gets an empty one, which is dropped afterwards." placeholder:"postgres://..." required:"" env:"FRESHET_BENCH_DATABASE"`
	Rows     []string      `help:"Processes x agents of each row." default:"1x1,1x2,1x4,1x8,1x16,1x32,2x16,3x11,2x32,3x32"`
	Latency  time.Duration `help:"Median time before each answer." default:"200ms"`
	Pages    int           `help:"Pages of a host." default:"4"`
	Sites    int           `help:"Hosts of the web; 0 is 12 an agent." default:"0"`
	Index    bool          `help:"Index the pages, too."`
}

// Help says what is measured.
func (benchNodesCmd) Help() string {
	return "Each row crawls a whole web, served by this process, with so many processes of so many agents on an empty database. A host rests five response times after each request, so that an agent works another host after each page: the dearest case for the database. Beside the rate stand the CPU time of a page (robots, database, web) and how busy the machine was: where that is near 100 %, the rate is the machine's limit."
}

// Run measures.
func (c *benchNodesCmd) Run(ctx context.Context, g *command.Globals) error {
	var rows []*bench.NodesRow
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if c.Pages < 1 || c.Sites < 0 || c.Latency < 0 {
		return command.Usagef("bench nodes: --pages is at least 1, --sites and --latency not negative")
	}
	var runs []*bench.Nodes
	for _, s := range c.Rows {
		n, a, _ := strings.Cut(s, "x")
		nodes, err1 := strconv.Atoi(strings.TrimSpace(n))
		agents, err2 := strconv.Atoi(strings.TrimSpace(a))
		if err1 != nil || err2 != nil || nodes < 1 || agents < 1 {
			return command.Usagef("--rows %q: want processes x agents such as 3x32", s)
		}
		runs = append(runs, &bench.Nodes{Nodes: nodes, Agents: agents, Latency: c.Latency, Sites: c.Sites, Pages: c.Pages, Database: c.Database, Program: self, Index: c.Index})
	}
	for _, r := range runs {
		if !g.Quiet {
			fmt.Fprintf(g.Stderr, "%d x %d ...\n", r.Nodes, r.Agents)
		}
		row, err := r.Run(ctx)
		if err != nil {
			return fmt.Errorf("bench nodes: %d x %d: %w", r.Nodes, r.Agents, err)
		}
		rows = append(rows, row)
	}
	if g.JSON {
		return g.PrintJSON(map[string]any{"latency_seconds": c.Latency.Seconds(), "index": c.Index, "rows": rows})
	}
	return c.printNodes(g.Stdout, rows)
}

func (c *benchNodesCmd) printNodes(w io.Writer, rows []*bench.NodesRow) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "nodes x agents\trequests/s\tx first\tat once\tCPU busy %\tms CPU a page: robots\tdatabase\tweb\tcommits a page\tlog bytes a page\tpages\tagain\toverlaps\t")
	for _, r := range rows {
		fmt.Fprintf(t, "%d x %d\t%.1f\t%.1f\t%.1f\t%.0f\t%.2f\t%.2f\t%.2f\t%.2f\t%.0f\t%d\t%d\t%d\t\n", r.Nodes, r.Agents, r.PerSecond, r.PerSecond/rows[0].PerSecond,
			r.AtOnce, 100*r.Busy, r.Robots, r.Server, r.Web, r.Commits, r.Log, r.Pages, r.Again, r.Overlaps)
	}
	return t.Flush()
}
