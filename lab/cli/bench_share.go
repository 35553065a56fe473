package cli

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/freshet/freshet/internal/command"
	"github.com/freshet/freshet/internal/usage"

	"github.com/freshet/freshet/share"
	"github.com/freshet/freshet/share/part"
	"github.com/freshet/freshet/share/source"
	"github.com/freshet/freshet/share/state"
)

// benchShareCmd measures the share robot and the search of files.
type benchShareCmd struct {
	Rescan benchRescanCmd `cmd:"" help:"An unchanged tree: first scan, plain walk, rescan, rclone lsf -R, over the same protocol."`
	Stale  benchStaleCmd  `cmd:"" help:"How long changes stay unseen under each policy, with equal budgets."`
	Search benchSearchCmd `cmd:"" help:"Names in the index: size, memory, times of queries, beside plocate."`
	Tree   benchTreeCmd   `cmd:"" help:"Make a tree of small files to measure with."`
}

type benchRescanCmd struct {
	Sources []string `arg:"" name:"source" help:"Share to scan, such as smb://127.0.0.1:4450/share."`
	Memory  int64    `help:"Bytes of a part's list of files." default:"10485760"`
	Rclone  bool     `help:"Run rclone as well, where it is installed." default:"true" negatable:""`

	stderr func(format string, args ...any)
}

type rescanRow struct {
	Source      string  `json:"source"`
	What        string  `json:"what"`
	Files       int64   `json:"files"`
	Listings    int64   `json:"listings"`
	StoreReads  int64   `json:"store_reads"`
	StoreWrites int64   `json:"store_writes"`
	Seconds     float64 `json:"seconds"`
	CPU         float64 `json:"cpu_seconds"`
	Peak        float64 `json:"peak_mb"`
}

// Run measures each source in one run.
func (c *benchRescanCmd) Run(ctx context.Context, g *command.Globals) error {
	c.stderr = func(format string, args ...any) { fmt.Fprintf(g.Stderr, format, args...) }
	dir, err := os.MkdirTemp("", "freshet-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var rows []rescanRow
	for i, s := range c.Sources {
		r, err := c.measureRescans(ctx, filepath.Join(dir, fmt.Sprint(i)), s)
		if err != nil {
			return err
		}
		rows = append(rows, r...)
	}
	if g.JSON {
		return g.PrintJSON(map[string]any{"runs": rows})
	}
	w := tabwriter.NewWriter(g.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "source\twhat\tfiles\tlistings\tstore reads\twrites\tseconds\tCPU s\tpeak MB\t")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%.2f\t%.2f\t%.0f\t\n", r.Source, r.What, r.Files, r.Listings, r.StoreReads, r.StoreWrites, r.Seconds, r.CPU, r.Peak)
	}
	return w.Flush()
}

func (c *benchRescanCmd) measureRescans(ctx context.Context, dir, spec string) ([]rescanRow, error) {
	store, err := state.Open(dir, state.Config{})
	if err != nil {
		return nil, err
	}
	defer store.Close()
	robot, err := share.New(ctx, store, nil, share.Config{Bound: part.Bound{Bytes: c.Memory}})
	if err != nil {
		return nil, err
	}
	names, err := robot.AddSource(ctx, spec)
	if err != nil {
		return nil, command.UsageError{Err: err}
	}
	u, err := url.Parse(names[0])
	if err != nil {
		return nil, err
	}
	var rows []rescanRow
	timed := func(what string, f func(r *rescanRow) error) error {
		r := rescanRow{Source: u.Scheme, What: what}
		begin, used := time.Now(), usage.CPUSeconds()
		if err := f(&r); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		r.Seconds, r.CPU, r.Peak = time.Since(begin).Seconds(), usage.CPUSeconds()-used, usage.PeakMemory()
		rows = append(rows, r)
		return nil
	}
	sweep := func(r *rescanRow) error {
		n, err := robot.Sweep(ctx, names)
		r.Listings, r.StoreReads, r.StoreWrites = n.Listings, n.StoreReads, n.StoreWrites
		for _, h := range robot.Status().Hosts {
			r.Files += h.Files
		}
		if len(n.Errors) > 0 {
			err = fmt.Errorf("errors %v", n.Errors)
		}
		return err
	}
	walk := func(r *rescanRow) error { return plainWalk(ctx, u, r) }
	steps := []struct {
		name string
		f    func(*rescanRow) error
	}{{"first scan", sweep}, {"plain walk", walk}, {"rescan", sweep}}
	for _, s := range steps {
		if err := timed(s.name, s.f); err != nil {
			return nil, err
		}
	}
	if remote := rcloneRemote(u); c.Rclone && remote != "" {
		if err := timed("rclone lsf -R", func(r *rescanRow) error { return measureRclone(ctx, remote, r) }); err != nil {
			c.stderr("bench share rescan: no row of rclone: %v\n", err)
		}
	}
	return rows, nil
}

// plainWalk lists every folder over one connection, which is what a robot without
// parts does at least, and keeps nothing.
func plainWalk(ctx context.Context, u *url.URL, r *rescanRow) error {
	src, err := source.Dial(ctx, u, source.Options{})
	if err != nil {
		return err
	}
	defer src.Close()
	todo := []string{""}
	for len(todo) > 0 {
		path := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		list, err := src.List(ctx, path)
		if err != nil {
			return err
		}
		r.Listings++
		for _, e := range list {
			if e.Dir {
				todo = append(todo, part.JoinPath(path, e.Name))
			} else {
				r.Files++
			}
		}
	}
	return nil
}

// obscured is the word "guest" in rclone's disguise of passwords, which it wants
// even of anonymous users.
const obscured = "ZqYWiYa4BhHhIAHZx6_H1S8rAYf-"

// rcloneRemote returns u as rclone writes remotes without a configuration.
func rcloneRemote(u *url.URL) string {
	port := u.Port()
	switch u.Scheme {
	case "file":
		return u.Path
	case "smb":
		return ":smb,host=" + u.Hostname() + ",port=" + port + ",user=Guest:" + strings.TrimPrefix(u.Path, "/")
	case "ftp":
		return ":ftp,host=" + u.Hostname() + ",port=" + port + ",user=anonymous,pass=" + obscured + ":" + strings.TrimPrefix(u.Path, "/")
	case "webdav":
		return ":webdav,url='http://" + u.Host + u.Path + "':"
	}
	return ""
}

// measureRclone lists recursively with sizes and times, as a rescan needs them, with one
// checker: as many connections as the others have.
func measureRclone(ctx context.Context, remote string, r *rescanRow) error {
	bin, err := exec.LookPath("rclone")
	if err != nil {
		return nil //nolint:nilerr // not installed: no row
	}
	c := exec.CommandContext(ctx, bin, "lsf", "-R", "--files-only", "--format", "pst", "--checkers", "1", "--config", os.DevNull, remote)
	var out countLines
	var errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		return fmt.Errorf("%w: %s", err, errs.String())
	}
	r.Files = int64(out)
	return nil
}

type countLines int64

func (n *countLines) Write(p []byte) (int, error) {
	*n += countLines(bytes.Count(p, []byte("\n")))
	return len(p), nil
}

type benchTreeCmd struct {
	Dir    string `arg:"" help:"New folder." type:"path"`
	Files  int    `help:"Files." default:"200000"`
	Folder int    `help:"Files of a folder." default:"10"`
}

// Run makes empty files in folders of folders.
func (c *benchTreeCmd) Run(ctx context.Context) error {
	for i := 0; i < c.Files; i++ {
		d := i / max(1, c.Folder)
		dir := filepath.Join(c.Dir, fmt.Sprintf("set %03d", d/1000), fmt.Sprintf("album %03d", d%1000))
		if i%max(1, c.Folder) == 0 {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
		}
		f, err := os.Create(filepath.Join(dir, syntheticName(uint64(i))))
		if err != nil {
			return err
		}
		f.Close()
	}
	return nil
}
