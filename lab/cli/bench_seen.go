package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/freshet/freshet/internal/command"

	"github.com/freshet/freshet/internal/progress"
	bench "github.com/freshet/freshet/lab/bench/crawl"
	"github.com/freshet/freshet/store/local"
)

type benchSeenCmd struct {
	URLs      int    `name:"urls" help:"URLs to add." default:"1000000"`
	HostPages int    `help:"URLs of a host." default:"10000"`
	Asked     int    `help:"Known URLs to ask for at each step, of the hosts at work and of any." default:"100000"`
	Table     int    `help:"URLs that the table in memory holds (0: the store's default)."`
	Filter    int    `help:"Bytes of the filters beside it (0: the store's default)."`
	Hosts     int    `help:"Hosts that are kept in memory (0: the store's default)."`
	Dir       string `help:"Folder for the store; it is deleted at the end. 10^8 URLs take some 10 GB." placeholder:"DIR" type:"path"`
}

// Run fills the store of one machine with URLs, asks for known ones of the hosts
// at work and of any, opens the store again and asks for all. A line tells what
// the step up to its URLs cost; looks are questions to the disk for each URL.
func (c *benchSeenCmd) Run(ctx context.Context, g *command.Globals) error {
	if c.URLs < 1 || c.HostPages < 1 || c.Asked < 1 || c.Table < 0 || c.Filter < 0 || c.Hosts < 0 {
		return command.Usagef("bench seen: --urls, --host-pages and --asked are at least 1, --table, --filter and --hosts not negative")
	}
	work, err := os.MkdirTemp(c.Dir, "freshet-seen-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	b := bench.Seen{
		URLs: c.URLs, HostPages: c.HostPages, Asked: c.Asked, Dir: filepath.Join(work, "store"),
		Config: local.Config{Known: c.Table, Filter: c.Filter, Hosts: c.Hosts},
	}
	if !g.Quiet {
		l := progress.New(g.Stderr)
		defer l.Done("")
		b.Progress = func(done int) { l.Update(int64(done), int64(c.URLs), "URLs") }
	}
	var rows []bench.SeenRow
	if !g.JSON {
		fmt.Fprintln(g.Stdout, "      URLs        s  CPU us     new/s  known/s     any/s  looks: new  known     any  wrong  MB own  peak  tables  disk B")
	}
	again, err := b.Run(ctx, func(r bench.SeenRow) error {
		rows = append(rows, r)
		if g.JSON {
			return nil
		}
		_, err := fmt.Fprintf(g.Stdout, "%10d %8.1f %7.2f %9.0f %8.0f %9.0f %11.4f %6.4f %7.4f %6d %7d %5d %7d %7.1f\n", r.URLs, r.Seconds, r.CPU, r.Rate, r.Near, r.Far,
			r.LooksNew, r.LooksNear, r.LooksFar, r.FalseKnown+r.FalseNew, r.Resident>>20, r.Peak>>20, r.Front>>20, r.Disk)
		return err
	})
	if err != nil {
		return fmt.Errorf("bench seen: %w", err)
	}
	if g.JSON {
		err = g.PrintJSON(map[string]any{"rows": rows, "reopen": again})
	} else {
		_, err = fmt.Fprintf(g.Stdout, "opened again in %.1f s (%.1f s of CPU, %d MB); all %d asked for again, %.0f/s, %d wrong\n",
			again.Seconds, again.CPU, again.Resident>>20, again.Checked, again.Rate, again.FalseNew)
	}
	wrong := again.FalseNew
	for _, r := range rows {
		wrong += r.FalseKnown + r.FalseNew
	}
	if err == nil && wrong > 0 {
		err = fmt.Errorf("bench seen: %d wrong answers", wrong)
	}
	return err
}
