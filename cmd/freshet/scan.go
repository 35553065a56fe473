package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/freshet/freshet/app"
	"github.com/freshet/freshet/config"
	"github.com/freshet/freshet/internal/command"
	"github.com/freshet/freshet/internal/progress"
	"github.com/freshet/freshet/share"
	"github.com/freshet/freshet/share/media"
	"github.com/freshet/freshet/share/part"
	"github.com/freshet/freshet/share/source"
	"github.com/freshet/freshet/share/state"
)

// scanCmd scans shares once.
type scanCmd struct {
	Sources       []string      `arg:"" name:"source" help:"smb://, ftp://, ftpes:// (with TLS), sftp://, webdav(s)://, http(s):// or file:// address of a host, a list of hosts (a,b,c) or an address range (10.0.0.0/24)."`
	Robots        int           `help:"Hosts read at once." default:"10"`
	MaxPartTime   time.Duration `help:"Listing time that a part is cut to." default:"90s"`
	MaxPartMemory int64         `help:"Bytes of its list of files that a part is cut to." default:"10485760"`
	Media         bool          `help:"Read tags of media files and the text of documents." default:"true" negatable:""`
	Knowledge     string        `help:"CSV or JSON file of what is known of titles: genre, actors, rating." type:"existingfile" placeholder:"FILE"`
	Timeout       time.Duration `help:"Longest wait for one answer of a host." default:"20s"`
}

// scanSummary is what a scan prints.
type scanSummary struct {
	Hosts        int              `json:"hosts"`
	Files        int64            `json:"files"`
	Folders      int64            `json:"folders"`
	Media        int64            `json:"media"`
	Parts        int              `json:"parts"`
	PartsChanged int64            `json:"parts_changed"`
	Listings     int64            `json:"listings"`
	TagReads     int64            `json:"tag_reads"`
	TagBytes     int64            `json:"tag_bytes"`
	StoreReads   int64            `json:"store_reads"`
	StoreWrites  int64            `json:"store_writes"`
	Added        int64            `json:"added"`
	Changed      int64            `json:"changed"`
	Removed      int64            `json:"removed"`
	Errors       map[string]int64 `json:"errors"`
	Seconds      float64          `json:"seconds"`
}

// Run scans every part of the sources' hosts once.
func (c *scanCmd) Run(ctx context.Context, g *command.Globals) error {
	keepFilesPrivate()
	if c.Robots < 1 || c.MaxPartTime <= 0 || c.MaxPartMemory < 1 {
		return command.Usagef("scan: --robots, --max-part-time and --max-part-memory must be positive")
	}
	start := time.Now()
	var knowledge *media.Knowledge
	if c.Knowledge != "" {
		var err error
		if knowledge, err = media.LoadKnowledge(c.Knowledge); err != nil {
			return command.UsageError{Err: err}
		}
	}
	store, err := openShares(g)
	if err != nil {
		return err
	}
	defer store.Close()
	dir, err := g.DataDir()
	if err != nil {
		return err
	}
	pdf := app.NewPDF(config.Default(), dir)
	defer pdf.Close()
	robot, err := share.New(ctx, store, nil, share.Config{
		PDF:     pdf,
		TempDir: dir,
		Robots:  c.Robots, Bound: part.Bound{Time: c.MaxPartTime, Bytes: c.MaxPartMemory}, Media: c.Media, Knowledge: knowledge,
		Source: source.Options{Timeout: c.Timeout},
	})
	if err != nil {
		return err
	}
	var names []string
	for _, s := range c.Sources {
		n, err := robot.AddSource(ctx, s)
		if err != nil {
			return command.UsageError{Err: err}
		}
		names = append(names, n...)
	}
	stop := scanProgress(ctx, g, robot)
	counts, err := robot.Sweep(ctx, names)
	stop()
	if err != nil {
		return err
	}
	absent(g.Stderr, robot.Status(), names)
	sum := summarize(robot.Status(), names, counts)
	sum.Seconds = time.Since(start).Seconds()
	if g.JSON {
		return g.PrintJSON(sum)
	}
	return sum.print(g)
}

// absent names the sources that could not be read, and why.
func absent(w io.Writer, st share.Status, names []string) {
	say := map[source.Class]string{
		source.Offline: "nobody is there, or the name does not resolve", source.Refused: "the host is there, the service is not", source.Timeout: "no answer in time (--timeout)",
		source.Denied: "not allowed: give user and password in the address", source.Protocol: "what answers there speaks another protocol",
		source.Gone: "no such share or folder",
	}
	for _, h := range st.Hosts {
		if why := say[source.Class(h.Error)]; slices.Contains(names, h.Name) && why != "" {
			fmt.Fprintf(w, "freshet: %s: %s: %s; what is known of it stays\n", h.Name, h.Error, why)
			if h.Reason != "" {
				fmt.Fprintf(w, "  %s\n", h.Reason)
			}
		}
	}
}

// openShares opens the store of shares in the data directory.
func openShares(g *command.Globals) (*state.Store, error) {
	dir, err := g.DataDir()
	if err != nil {
		return nil, err
	}
	dir = filepath.Join(dir, "shares")
	if err := app.MakeDataDir(filepath.Dir(dir)); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	return state.Open(dir, state.Config{})
}

// scanProgress shows how far the robot is until the returned function is called.
func scanProgress(ctx context.Context, g *command.Globals, r *share.Robot) func() {
	if g.Quiet {
		return func() {}
	}
	line := progress.New(g.Stderr)
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				n := r.Status().Counts
				line.Update(0, 0, fmt.Sprintf("%d parts, %d folders, %d new, %d changed, %d removed", n.Scans, n.Listings, n.Added, n.Changed, n.Removed))
			}
		}
	}()
	return func() {
		cancel()
		<-done
		line.Done("")
	}
}

func summarize(st share.Status, names []string, c share.Counts) scanSummary {
	s := scanSummary{
		PartsChanged: c.PartChanges, Listings: c.Listings, TagReads: c.TagReads, TagBytes: c.Bytes, StoreReads: c.StoreReads, StoreWrites: c.StoreWrites,
		Added: c.Added, Changed: c.Changed, Removed: c.Removed, Errors: c.Errors,
	}
	if s.Errors == nil {
		s.Errors = map[string]int64{}
	}
	asked := map[string]bool{}
	for _, n := range names {
		asked[n] = true
	}
	for _, h := range st.Hosts {
		if asked[h.Name] {
			s.Hosts++
			s.Parts += h.Parts
			s.Files += h.Files
			s.Folders += h.Folder
			s.Media += h.Media
		}
	}
	return s
}

func (s scanSummary) print(g *command.Globals) error {
	_, err := fmt.Fprintf(g.Stdout, "%d hosts, %d files (%d with tags or text) in %d folders, %d parts of which %d changed\n%d listings, %d files read, %d store reads, %d store writes\n%d added, %d changed, %d removed in %.1f s\n",
		s.Hosts, s.Files, s.Media, s.Folders, s.Parts, s.PartsChanged, s.Listings, s.TagReads, s.StoreReads, s.StoreWrites, s.Added, s.Changed, s.Removed, s.Seconds)
	for class, n := range s.Errors {
		fmt.Fprintf(g.Stdout, "errors %s: %d\n", class, n)
	}
	return err
}
