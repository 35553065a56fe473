package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/freshet/freshet/app"
	"github.com/freshet/freshet/config"
	"github.com/freshet/freshet/internal/command"
	"github.com/freshet/freshet/internal/progress"
	"github.com/freshet/freshet/share"
	"github.com/freshet/freshet/share/source"
)

// scanCmd scans shares once.
type scanCmd struct {
	Sources []string `arg:"" optional:"" name:"source" help:"smb://, ftp://, ftpes:// (with TLS), sftp://, webdav(s)://, http(s):// or file:// address of a host, a list of hosts (a,b,c) or an address range (10.0.0.0/24)."`

	Config string   `help:"Configuration file, as of serve: its shares are scanned once with its settings. Flags override it, and addresses given here replace its sources." placeholder:"FILE.yaml" env:"FRESHET_CONFIG"`
	Set    []string `help:"Override a key of the configuration: --set share.max_part_time=30s (repeatable)." placeholder:"KEY=VALUE" sep:"none"`

	Robots        *int           `help:"Hosts read at once (default ${robots})." placeholder:"N"`
	MaxPartTime   *time.Duration `help:"Listing time that a part is cut to (default ${part_time})." placeholder:"D"`
	MaxPartMemory string         `help:"Size of its list of files that a part is cut to (default ${part_memory})." placeholder:"SIZE"`
	Media         *bool          `help:"Read tags of media files and the text of documents (default)." negatable:""`
	Knowledge     string         `help:"CSV or JSON file of what is known of titles: genre, actors, rating." type:"existingfile" placeholder:"FILE"`
	Timeout       *time.Duration `help:"Longest wait for one answer of a host (default ${share_timeout})." placeholder:"D"`
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

// loadScanConfig reads the configuration and overrides it by the flags.
func (c *scanCmd) loadScanConfig() (*config.Config, error) {
	cfg, err := config.Load(c.Config, os.Environ(), c.Set)
	if err != nil {
		return nil, command.UsageError{Err: err}
	}
	cfg.Sources = slices.DeleteFunc(cfg.Sources, func(s config.Source) bool { return !s.Share() || len(c.Sources) > 0 })
	if len(c.Sources)+len(cfg.Sources) == 0 {
		return nil, command.Usagef("scan: no share to scan: give an address, or --config FILE with a share among its sources")
	}
	k := &cfg.Share
	setIfGiven(&k.Robots, c.Robots)
	setIfGiven(&k.PartTime, c.MaxPartTime)
	setIfGiven(&k.Media, c.Media)
	setIfGiven(&k.Timeout, c.Timeout)
	setIfNotEmpty(&k.Knowledge, c.Knowledge)
	if c.MaxPartMemory != "" {
		if k.PartMemory, err = config.ParseBytes(c.MaxPartMemory); err != nil {
			return nil, command.Usagef("--max-part-memory: %w", err)
		}
	}
	if k.Robots < 1 {
		return nil, command.Usagef("--robots %d: at least one is needed", k.Robots)
	}
	if err := cfg.Check(); err != nil {
		return nil, command.UsageError{Err: err}
	}
	return cfg, nil
}

var errScanStopped = errors.New("scan: stopped; the parts that were read to their end are kept, scan again for the rest")

// Run scans every part of the sources' hosts once.
func (c *scanCmd) Run(ctx context.Context, g *command.Globals) error {
	keepFilesPrivate()
	cfg, err := c.loadScanConfig()
	if err != nil {
		return err
	}
	dir := cfg.Data
	if dir == "" || g.Data != "" {
		if dir, err = g.DataDir(); err != nil {
			return err
		}
	}
	node, err := app.Open(cfg, app.Options{Dir: dir, Log: g.Logger()})
	if err != nil {
		return command.UsageError{Err: err}
	}
	o := app.ScanOptions{Sources: c.Sources}
	line := progress.New(nil)
	if !g.Quiet {
		line = progress.New(g.Stderr)
		o.Progress = func(n share.Counts) {
			line.Update(0, 0, fmt.Sprintf("%d parts, %d folders, %d new, %d changed, %d removed", n.Scans, n.Listings, n.Added, n.Changed, n.Removed))
		}
	}
	report, err := node.Scan(ctx, o)
	line.Done("")
	if ctx.Err() != nil {
		return errScanStopped
	}
	var bad app.SourceError
	if errors.As(err, &bad) {
		return command.UsageError{Err: err}
	}
	if err != nil {
		return err
	}
	printUnreadable(g.Stderr, report.Robot, report.Hosts)
	sum := summarizeScan(report.Robot, report.Hosts, report.Counts)
	sum.Seconds = report.Elapsed.Seconds()
	if g.JSON {
		return g.PrintJSON(sum)
	}
	return sum.printScan(g)
}

// printUnreadable names the sources that could not be read, and why.
func printUnreadable(w io.Writer, st share.Status, names []string) {
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

func summarizeScan(st share.Status, names []string, c share.Counts) scanSummary {
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

func (s scanSummary) printScan(g *command.Globals) error {
	_, err := fmt.Fprintf(g.Stdout, "%d hosts, %d files (%d with tags or text) in %d folders, %d parts of which %d changed\n%d listings, %d files read, %d store reads, %d store writes\n%d added, %d changed, %d removed in %.1f s\n",
		s.Hosts, s.Files, s.Media, s.Folders, s.Parts, s.PartsChanged, s.Listings, s.TagReads, s.StoreReads, s.StoreWrites, s.Added, s.Changed, s.Removed, s.Seconds)
	for class, n := range s.Errors {
		fmt.Fprintf(g.Stdout, "errors %s: %d\n", class, n)
	}
	return err
}
