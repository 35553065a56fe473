package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/freshet/freshet/app"
	"github.com/freshet/freshet/cluster"
	clusterpg "github.com/freshet/freshet/cluster/postgres"
	"github.com/freshet/freshet/console"
	"github.com/freshet/freshet/index"
	pgindex "github.com/freshet/freshet/index/postgres"
	"github.com/freshet/freshet/internal/command"
	"github.com/freshet/freshet/store/postgres"
)

// nodesRemote is how a command reaches a running serve, or, with a database, all nodes
// on it.
type nodesRemote struct {
	command.Remote
	Database string `help:"postgres://... that nodes share: asks or tells all of them, through it." placeholder:"URL" env:"FRESHET_DATABASE"`
}

// usesDatabase reports whether the database is meant: the address of a node goes
// before it.
func (f *nodesRemote) usesDatabase() bool { return f.Database != "" && f.Address == "" }

// withStore opens the database for the time of a call.
func (f *nodesRemote) withStore(ctx context.Context, call func(*postgres.Store) error) (err error) {
	s, err := postgres.Open(ctx, f.Database, postgres.Config{Connections: 2, Known: 1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return call(s)
}

// withCluster opens the cluster of the nodes on the database for the time of a call.
func (f *nodesRemote) withCluster(ctx context.Context, call func(cluster.Cluster) error) error {
	return f.withStore(ctx, func(s *postgres.Store) error { return call(clusterpg.New(s, clusterpg.Config{})) })
}

// withTextIndex opens the text index of the database.
func (f *nodesRemote) withTextIndex(ctx context.Context, call func(index.Engine) error) (err error) {
	cfg, err := defaultConfig()
	if err != nil {
		return err
	}
	e, err := pgindex.Open(ctx, f.Database, pgindex.Config{Languages: cfg.Index.Languages})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	return call(e)
}

// databaseStatus asks the database.
func (f *nodesRemote) databaseStatus(ctx context.Context) (out *console.Status, err error) {
	err = f.withStore(ctx, func(s *postgres.Store) error {
		return f.withTextIndex(ctx, func(e index.Engine) error {
			out, err = app.ClusterStatus(ctx, s, clusterpg.New(s, clusterpg.Config{}), e)
			return err
		})
	})
	return out, err
}

// databaseAgents asks the database who works.
func (f *nodesRemote) databaseAgents(ctx context.Context) (*agentsAnswer, error) {
	s, err := f.databaseStatus(ctx)
	if err != nil {
		return nil, err
	}
	return &agentsAnswer{Agents: s.Agents, Work: s.Work}, nil
}

// printFleet prints how the nodes on a database do.
func printFleet(w io.Writer, s *console.Status) {
	fmt.Fprintf(w, "%s, %d nodes\n", s.State, len(s.Nodes))
	fmt.Fprintf(w, "pages      %d of %d URLs on %d hosts, %d never visited\n", s.Pages, s.URLs, s.Hosts, s.Queue)
	fmt.Fprintf(w, "fetching   %d of %d agents, %d hosts waiting\n", s.Agents.Fetch, s.Agents.FetchLimit, s.HostsWaiting)
	fmt.Fprintf(w, "index      %d documents\n", s.Indexed)
	for _, n := range s.Nodes {
		fmt.Fprintf(w, "node       %s: %d agents, since %s\n", n.Name, n.Agents, n.Since.Format("2006-01-02 15:04:05"))
	}
}
