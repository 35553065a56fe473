package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/crypto/bcrypt"

	"github.com/freshet/freshet/app"
	"github.com/freshet/freshet/config"
	"github.com/freshet/freshet/internal/command"
	"github.com/freshet/freshet/lab/cli"
)

type serveCmd struct {
	Config   string   `help:"Configuration file (freshet config print shows every key)." placeholder:"FILE.yaml" env:"FRESHET_CONFIG"`
	Set      []string `help:"Override a key of the configuration: --set crawl.agents=8 (repeatable)." placeholder:"KEY=VALUE" sep:"none"`
	Listen   string   `help:"Address of the console." placeholder:"ADDR"`
	Database string   `help:"postgres://... shared with other processes." placeholder:"URL"`

	AllowPrivate bool `help:"All sources may be at loopback and private addresses, as with allow_private in each."`
	Demo         bool `help:"Serve a small synthetic web on loopback and keep it fresh."`
}

// Run serves until interrupted.
func (c *serveCmd) Run(ctx context.Context, g *command.Globals) (err error) {
	keepFilesPrivate()
	cfg, err := c.loadServeConfig()
	if err != nil {
		return err
	}
	if err := config.CheckMode(c.Config, cfg); err != nil {
		fmt.Fprintln(g.Stderr, "freshet: warning:", err)
	}
	dir := cfg.Data
	if dir == "" {
		if dir, err = g.DataDir(); err != nil {
			return err
		}
	}
	o := app.Options{Dir: dir, Log: g.Logger(), AllowPrivate: c.AllowPrivate}
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
		o.Lab = cli.SweepDirectories(cfg.Lab.Sweeps)
	}
	n, err := app.Open(cfg, o)
	if err != nil {
		return command.UsageError{Err: err}
	}
	return n.Serve(ctx, func(string) {
		if g.Quiet {
			return
		}
		fmt.Fprintf(g.Stdout, "freshet serves %s/ (status: %s/status), data in %s\n", n.URL(), n.URL(), dir)
		if c.Demo || command.IsTerminal(g.Stdout) { // a log that others read later should hold no valid link
			fmt.Fprintf(g.Stdout, "operator: %s (valid once; freshet open prints another)\n", n.LoginLink())
		}
	})
}

func (c *serveCmd) loadServeConfig() (*config.Config, error) {
	sets := c.Set
	if c.Listen != "" {
		sets = append(sets, "console.listen="+c.Listen)
	}
	if c.Database != "" {
		sets = append(sets, "database="+c.Database)
	}
	cfg, err := config.Load(c.Config, os.Environ(), sets)
	if err != nil {
		return nil, command.UsageError{Err: err}
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
func (c *configPrintCmd) Run(g *command.Globals) error {
	cfg, err := config.Load(c.File, os.Environ(), c.Set)
	if err != nil {
		return command.UsageError{Err: err}
	}
	return cfg.Print(g.Stdout)
}

type configCheckCmd struct {
	File string `arg:"" help:"Configuration file."`
}

// Run checks the file.
func (c *configCheckCmd) Run(g *command.Globals) error {
	if _, err := config.Load(c.File, nil, nil); err != nil {
		return command.UsageError{Err: err}
	}
	_, err := fmt.Fprintln(g.Stdout, c.File, "is good")
	return err
}

type configHashCmd struct{}

// Run hashes the password.
func (configHashCmd) Run(g *command.Globals) error {
	var password string
	if _, err := fmt.Fscanln(g.Stdin, &password); err != nil || strings.TrimSpace(password) == "" {
		return command.Usagef("config hash: give the password on standard input")
	}
	h, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.DefaultCost)
	if err != nil {
		return command.Usagef("config hash: %w", err)
	}
	_, err = fmt.Fprintln(g.Stdout, string(h))
	return err
}
