package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/freshet/freshet/app"
	"github.com/freshet/freshet/config"
	"github.com/freshet/freshet/index/engine"
	"github.com/freshet/freshet/index/feed"
	"github.com/freshet/freshet/index/files"
	"github.com/freshet/freshet/internal/command"
)

// indexCmd works on the text index of a data directory.
type indexCmd struct {
	Check   indexCheckCmd   `cmd:"" help:"Read the text index and the index of files and compare all checksums."`
	Stats   indexStatsCmd   `cmd:"" help:"Describe the segments of the text index and of the index of files."`
	Rebuild indexRebuildCmd `cmd:"" help:"Build both indexes again from the stores and the archive."`
}

// Help says on which index the commands work.
func (indexCmd) Help() string {
	return "These commands work on the data directory while no server runs on it. The text index is derived from the store and the archive, the index of files of shares from the store of shares; a damaged one is built again by the next start, too."
}

// indexReport is what the commands print.
type indexReport struct {
	Documents uint64               `json:"documents"`
	Bytes     uint64               `json:"bytes"`
	Seconds   float64              `json:"seconds"`
	Segments  []engine.SegmentInfo `json:"segments,omitempty"`
	Names     *namesReport         `json:"names,omitempty"` // nil without shares
}

// namesReport describes the index of files of shares.
type namesReport struct {
	Files    int64               `json:"files"`
	Bytes    int64               `json:"bytes"`
	Segments []files.SegmentInfo `json:"segments,omitempty"`
}

// withNames calls f with the opened index of files, if the data directory has one, and
// describes it.
func withNames(g *command.Globals, f func(*files.Index) error) (_ *namesReport, err error) {
	dir, err := g.DataDir()
	if err != nil || !app.HasNames(dir) {
		return nil, err
	}
	x, err := app.OpenNames(dir, g.Logger())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	if err := f(x); err != nil {
		return nil, err
	}
	s, err := x.Stats()
	return &namesReport{s.Files, s.Bytes, s.Segments}, err
}

// withIndex calls f with the opened index of the data directory.
func withIndex(g *command.Globals, f func(*engine.Engine) error) (err error) {
	dir, err := g.DataDir()
	if err != nil {
		return err
	}
	cfg, err := defaultConfig()
	if err != nil {
		return err
	}
	e, err := app.OpenIndex(dir, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	own, ok := e.(*engine.Engine)
	if !ok {
		return fmt.Errorf("index of %s: it has no files", dir)
	}
	return f(own)
}

// describeIndex describes an index.
func describeIndex(ctx context.Context, e *engine.Engine, began time.Time) (*indexReport, error) {
	s, err := e.Stats(ctx)
	if err != nil {
		return nil, err
	}
	segments, err := e.Segments(ctx)
	return &indexReport{Documents: s.Documents, Bytes: s.DiskBytes, Seconds: time.Since(began).Seconds(), Segments: segments}, err
}

type indexCheckCmd struct{}

// Run checks the index.
func (indexCheckCmd) Run(ctx context.Context, g *command.Globals) error {
	began := time.Now()
	return withIndex(g, func(e *engine.Engine) error {
		if err := e.Verify(ctx); err != nil {
			return fmt.Errorf("%w: freshet index rebuild makes it anew", err)
		}
		r, err := describeIndex(ctx, e, began)
		if err != nil {
			return err
		}
		r.Names, err = withNames(g, func(x *files.Index) error {
			if err := x.Verify(ctx); err != nil {
				return fmt.Errorf("%w: freshet index rebuild makes it anew", err)
			}
			return nil
		})
		if err != nil {
			return err
		}
		if r.Names != nil {
			r.Names.Segments = nil
		}
		r.Segments, r.Seconds = nil, time.Since(began).Seconds()
		if g.JSON {
			return g.PrintJSON(r)
		}
		fmt.Fprintf(g.Stdout, "The index is whole: %d documents, %.1f MB, checked in %.1f s.\n", r.Documents, float64(r.Bytes)/1e6, r.Seconds)
		if r.Names != nil {
			fmt.Fprintf(g.Stdout, "The index of files is whole: %d files, %.1f MB.\n", r.Names.Files, float64(r.Names.Bytes)/1e6)
		}
		return nil
	})
}

type indexStatsCmd struct{}

// Run describes the index.
func (indexStatsCmd) Run(ctx context.Context, g *command.Globals) error {
	began := time.Now()
	return withIndex(g, func(e *engine.Engine) error {
		r, err := describeIndex(ctx, e, began)
		if err != nil {
			return err
		}
		if r.Names, err = withNames(g, func(*files.Index) error { return nil }); err != nil {
			return err
		}
		if g.JSON {
			return g.PrintJSON(r)
		}
		fmt.Fprintf(g.Stdout, "%d documents, %.1f MB\n", r.Documents, float64(r.Bytes)/1e6)
		for _, s := range r.Segments {
			fmt.Fprintf(g.Stdout, "%s  %9d documents  %7d deleted  %9d terms  %8.1f MB\n", s.File, s.Documents, s.Deleted, s.Terms, float64(s.Bytes)/1e6)
		}
		if r.Names == nil {
			return nil
		}
		fmt.Fprintf(g.Stdout, "%d files of shares, %.1f MB\n", r.Names.Files, float64(r.Names.Bytes)/1e6)
		for _, s := range r.Names.Segments {
			fmt.Fprintf(g.Stdout, "%s  %9d files      %7d deleted  %9d terms  %8.1f MB\n", s.File, s.Files, s.Deleted, s.Terms, float64(s.Bytes)/1e6)
		}
		return nil
	})
}

type indexRebuildCmd struct {
	Config string `help:"Configuration file, for the folder of the archive." type:"path" placeholder:"FILE"`
}

// Run builds the index again.
func (c *indexRebuildCmd) Run(ctx context.Context, g *command.Globals) (err error) {
	keepFilesPrivate()
	began := time.Now()
	dir, err := g.DataDir()
	if err != nil {
		return err
	}
	cfg, err := config.Load(c.Config, os.Environ(), nil)
	if err != nil {
		return err
	}
	if cfg.Database != "" {
		return command.Usagef("index rebuild: the index of %s is in the database, not in %s", "a shared store", dir)
	}
	if err := app.ResetIndex(dir); err != nil {
		return err
	}
	parts, err := app.OpenParts(ctx, dir, cfg, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, parts.Close()) }()
	indexer, err := feed.New(ctx, feed.Config{Store: parts.Store, Read: parts.Body, Flush: parts.Archive.Flush, Engine: parts.Engine, Log: g.Logger(), Space: parts.Space.Check})
	if err != nil {
		return err
	}
	if err := indexer.Finish(ctx); err != nil {
		return err
	}
	s, err := parts.Engine.Stats(ctx)
	if err != nil {
		return err
	}
	r := indexReport{Documents: s.Documents, Bytes: s.DiskBytes}
	if r.Names, err = rebuildNames(ctx, g, dir); err != nil {
		return err
	}
	r.Seconds = time.Since(began).Seconds()
	if g.JSON {
		return g.PrintJSON(r)
	}
	fmt.Fprintf(g.Stdout, "The index was built: %d documents, %.1f MB, in %.1f s.\n", r.Documents, float64(r.Bytes)/1e6, r.Seconds)
	if r.Names != nil {
		fmt.Fprintf(g.Stdout, "The index of files was built: %d files, %.1f MB.\n", r.Names.Files, float64(r.Names.Bytes)/1e6)
	}
	return nil
}

// rebuildNames builds the index of files of shares again; nil where there are none.
func rebuildNames(ctx context.Context, g *command.Globals, dir string) (_ *namesReport, err error) {
	if app.HasNames(dir) {
		if err := app.ResetNames(dir); err != nil {
			return nil, err
		}
	}
	shares, err := app.OpenShares(ctx, dir, false, g.Logger())
	if err != nil || shares == nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, shares.Close()) }()
	s, err := shares.Index.Stats()
	return &namesReport{Files: s.Files, Bytes: s.Bytes}, err
}
