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
	"github.com/freshet/freshet/internal/command"
)

// indexCmd works on the text index of a data directory.
type indexCmd struct {
	Check   indexCheckCmd   `cmd:"" help:"Read the whole text index and compare all checksums."`
	Stats   indexStatsCmd   `cmd:"" help:"Describe the segments of the text index."`
	Rebuild indexRebuildCmd `cmd:"" help:"Build the text index again from the store and the archive."`
}

// Help says on which index the commands work.
func (indexCmd) Help() string {
	return "These commands work on the data directory while no server runs on it. The text index is derived from the store and the archive; a damaged one is built again by the next start, too."
}

// indexReport is what the commands print.
type indexReport struct {
	Documents uint64               `json:"documents"`
	Bytes     uint64               `json:"bytes"`
	Seconds   float64              `json:"seconds"`
	Segments  []engine.SegmentInfo `json:"segments,omitempty"`
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

// report describes an index.
func report(ctx context.Context, e *engine.Engine, began time.Time) (*indexReport, error) {
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
		r, err := report(ctx, e, began)
		if err != nil {
			return err
		}
		if r.Segments = nil; g.JSON {
			return g.PrintJSON(r)
		}
		fmt.Fprintf(g.Stdout, "The index is whole: %d documents, %.1f MB, checked in %.1f s.\n", r.Documents, float64(r.Bytes)/1e6, r.Seconds)
		return nil
	})
}

type indexStatsCmd struct{}

// Run describes the index.
func (indexStatsCmd) Run(ctx context.Context, g *command.Globals) error {
	began := time.Now()
	return withIndex(g, func(e *engine.Engine) error {
		r, err := report(ctx, e, began)
		if err != nil {
			return err
		}
		if g.JSON {
			return g.PrintJSON(r)
		}
		fmt.Fprintf(g.Stdout, "%d documents, %.1f MB\n", r.Documents, float64(r.Bytes)/1e6)
		for _, s := range r.Segments {
			fmt.Fprintf(g.Stdout, "%s  %9d documents  %7d deleted  %9d terms  %8.1f MB\n", s.File, s.Documents, s.Deleted, s.Terms, float64(s.Bytes)/1e6)
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
	r := indexReport{Documents: s.Documents, Bytes: s.DiskBytes, Seconds: time.Since(began).Seconds()}
	if g.JSON {
		return g.PrintJSON(r)
	}
	fmt.Fprintf(g.Stdout, "The index was built: %d documents, %.1f MB, in %.1f s.\n", r.Documents, float64(r.Bytes)/1e6, r.Seconds)
	return nil
}
