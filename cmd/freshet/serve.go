package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"golang.org/x/crypto/bcrypt"

	"github.com/freshet/freshet/config"
	"github.com/freshet/freshet/node"
)

// logger writes structured logs to standard error; --quiet leaves errors.
func (g *globals) logger() *slog.Logger {
	level := slog.LevelWarn
	if g.Verbose {
		level = slog.LevelInfo
	}
	if g.Quiet {
		level = slog.LevelError
	}
	return slog.New(slog.NewTextHandler(g.stderr, &slog.HandlerOptions{Level: level}))
}

type serveCmd struct {
	Config   string   `help:"Configuration file (freshet config print shows every key)." placeholder:"FILE.yaml" env:"FRESHET_CONFIG"`
	Set      []string `help:"Override a key of the configuration: --set crawl.agents=8 (repeatable)." placeholder:"KEY=VALUE" sep:"none"`
	Listen   string   `help:"Address of the console." placeholder:"ADDR"`
	Database string   `help:"postgres://... shared with other processes." placeholder:"URL"`

	AllowPrivate bool `help:"The robot may contact loopback and private addresses."`
	Demo         bool `help:"Serve a small synthetic web on loopback and keep it fresh."`
}

// Run serves until interrupted.
func (c *serveCmd) Run(ctx context.Context, g *globals) (err error) {
	cfg, err := c.load()
	if err != nil {
		return err
	}
	dir := cfg.Data
	if dir == "" {
		if dir, err = g.dataDir(); err != nil {
			return err
		}
	}
	o := node.Options{Version: version, Dir: dir, Log: g.logger(), AllowPrivate: c.AllowPrivate}
	if c.Demo {
		stop, err := startDemo(cfg, &o)
		if err != nil {
			return fmt.Errorf("demo web: %w", err)
		}
		defer stop()
	}
	ordering, end, err := openOrdering(ctx, cfg.Crawl.Ordering, o.Log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	o.Ordering = ordering
	if len(cfg.Lab.Sweeps) > 0 {
		o.Lab = sweepsOf(cfg.Lab.Sweeps)
	}
	n, err := node.New(ctx, cfg, o)
	if err != nil {
		return err
	}
	return n.Run(ctx, func(address string) {
		if !g.Quiet {
			fmt.Fprintf(g.stdout, "freshet serves http://%s/ (status: http://%s/status), data in %s\n", address, address, dir)
		}
	})
}

func (c *serveCmd) load() (*config.Config, error) {
	sets := c.Set
	if c.Listen != "" {
		sets = append(sets, "console.listen="+c.Listen)
	}
	if c.Database != "" {
		sets = append(sets, "database="+c.Database)
	}
	cfg, err := config.Load(c.Config, os.Environ(), sets)
	if err != nil {
		return nil, usageError{err}
	}
	return cfg, nil
}

type configCmd struct {
	Print configPrintCmd `cmd:"" help:"Print the configuration with every key, its meaning and value."`
	Check configCheckCmd `cmd:"" help:"Check a configuration file."`
	Hash  configHashCmd  `cmd:"" help:"Make the hash of an operator's password, read from standard input."`
}

type configPrintCmd struct {
	File string   `arg:"" optional:"" help:"Configuration file; none prints the defaults."`
	Set  []string `help:"Override a key." placeholder:"KEY=VALUE" sep:"none"`
}

// Run prints the configuration.
func (c *configPrintCmd) Run(g *globals) error {
	cfg, err := config.Load(c.File, os.Environ(), c.Set)
	if err != nil {
		return usageError{err}
	}
	return cfg.Print(g.stdout)
}

type configCheckCmd struct {
	File string `arg:"" help:"Configuration file."`
}

// Run checks the file.
func (c *configCheckCmd) Run(g *globals) error {
	if _, err := config.Load(c.File, nil, nil); err != nil {
		return usageError{err}
	}
	_, err := fmt.Fprintln(g.stdout, c.File, "is good")
	return err
}

type configHashCmd struct{}

// Run hashes the password.
func (configHashCmd) Run(g *globals) error {
	var password string
	if _, err := fmt.Fscanln(g.stdin, &password); err != nil || strings.TrimSpace(password) == "" {
		return usagef("config hash: give the password on standard input")
	}
	h, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.DefaultCost)
	if err != nil {
		return usagef("config hash: %w", err)
	}
	_, err = fmt.Fprintln(g.stdout, string(h))
	return err
}
