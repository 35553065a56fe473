// Package postgres is the cluster of the processes on one PostgreSQL database. Its
// tables (nodes, slots, places, budgets) and settings belong to the schema of
// store/postgres.
//
// There is no coordinator. Membership, agents and address slots are rows that a
// process leases: those of a dead process come free by themselves.
package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/freshet/freshet/cluster"
	store "github.com/freshet/freshet/store/postgres"
)

// Config are the options of a cluster. The zero value serves who does not join.
type Config struct {
	// Run tells this process from another that was given the same name.
	Run string
	// PreviousRuns are earlier processes of the same data directory, whose name this one
	// takes over though it may seem alive. If one of them lives, its next heartbeat
	// fails with cluster.ErrNodeName.
	PreviousRuns []string
	// Patience is for how long an operation is tried again while the server cannot be
	// reached. Default 2 minutes.
	Patience time.Duration
}

// Cluster implements cluster.Cluster on the database of a store.
type Cluster struct {
	store  *store.Store
	pool   *pgxpool.Pool
	config Config
	member atomic.Pointer[member] // nil until it has joined
}

var _ cluster.Cluster = (*Cluster)(nil)

// Settings that hold for all processes.
const (
	agentLimitSetting = "agents-limit"
	ordersSetting     = "orders"
)

// New returns the cluster of the processes on a store's database.
func New(s *store.Store, c Config) *Cluster {
	if c.Patience <= 0 {
		c.Patience = 2 * time.Minute
	}
	return &Cluster{store: s, pool: s.Pool(), config: c}
}

// Name implements cluster.Cluster.
func (c *Cluster) Name() string { return c.store.Node() }

// IsShared implements cluster.Cluster.
func (c *Cluster) IsShared() bool { return true }

// retry runs f until it succeeds, fails for good, or patience ends.
func (c *Cluster) retry(ctx context.Context, f func() error) error {
	return store.Retry(ctx, c.config.Patience, f)
}

// transact runs f in a transaction, again while that may help.
func (c *Cluster) transact(ctx context.Context, f func(pgx.Tx) error) error {
	return c.retry(ctx, func() error { return pgx.BeginFunc(ctx, c.pool, f) })
}

// Registry implements cluster.Cluster.
func (c *Cluster) Registry(ctx context.Context) (r *cluster.Registry, err error) {
	r = &cluster.Registry{}
	if r.AgentLimit, r.Orders, err = c.readSharedSettings(ctx); err == nil {
		err = c.retry(ctx, func() (err error) {
			r.Nodes, err = readLivingNodes(ctx, c.pool, time.Now().UnixMilli())
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("registry: %w", err)
	}
	return r, nil
}

// SetAgentLimit implements cluster.Cluster.
func (c *Cluster) SetAgentLimit(ctx context.Context, limit int) error {
	limit = max(0, limit)
	if err := c.store.Put(ctx, agentLimitSetting, []byte(strconv.Itoa(limit))); err != nil {
		return err
	}
	if m := c.member.Load(); m != nil {
		m.lower(limit)
		return m.heartbeat(ctx) // its share of the limit is claimed before others join
	}
	return nil
}

// Pause implements cluster.Cluster.
func (c *Cluster) Pause(ctx context.Context, paused bool) error {
	return c.order(ctx, func(o *cluster.Orders) { o.Paused = paused })
}

// Stop implements cluster.Cluster.
func (c *Cluster) Stop(ctx context.Context, immediately bool) error {
	return c.order(ctx, func(o *cluster.Orders) { o.Stop, o.Immediately = time.Now(), immediately })
}

// order changes the orders; no concurrent order is lost.
func (c *Cluster) order(ctx context.Context, change func(*cluster.Orders)) error {
	return c.UpdateSetting(ctx, ordersSetting, func(b []byte) ([]byte, error) {
		o, err := parseOrders(b)
		if err != nil {
			return nil, err
		}
		change(&o)
		return json.Marshal(o)
	})
}

// readSharedSettings reads what holds for all processes.
func (c *Cluster) readSharedSettings(ctx context.Context) (limit int, o cluster.Orders, err error) {
	settings := map[string][]byte{}
	err = c.retry(ctx, func() error {
		rows, err := c.pool.Query(ctx, "select name, value from settings where name = any($1)", []string{agentLimitSetting, ordersSetting})
		if err != nil {
			return err
		}
		var name string
		var value []byte
		_, err = pgx.ForEachRow(rows, []any{&name, &value}, func() error {
			settings[name], value = value, nil
			return nil
		})
		return err
	})
	if err != nil {
		return 0, o, err
	}
	if o, err = parseOrders(settings[ordersSetting]); err != nil {
		return 0, o, err
	}
	limit, err = parseAgentLimit(settings[agentLimitSetting])
	return limit, o, err
}

func parseOrders(b []byte) (o cluster.Orders, err error) {
	if len(b) == 0 {
		return o, nil
	}
	if err := json.Unmarshal(b, &o); err != nil {
		return o, fmt.Errorf("setting %s: %w", ordersSetting, err)
	}
	return o, nil
}

func parseAgentLimit(b []byte) (int, error) {
	if len(b) == 0 {
		return cluster.Unlimited, nil
	}
	limit, err := strconv.Atoi(string(b))
	if err != nil || limit < 0 {
		return 0, fmt.Errorf("setting %s: %q is no number of agents", agentLimitSetting, b)
	}
	return limit, nil
}

// UpdateSetting implements cluster.Cluster.
func (c *Cluster) UpdateSetting(ctx context.Context, name string, change func(old []byte) ([]byte, error)) error {
	for {
		err := c.transact(ctx, func(tx pgx.Tx) error { return updateSetting(ctx, tx, name, change) })
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, errDeleted):
			return fmt.Errorf("update setting %s: %w", name, err)
		}
	}
}

// errDeleted is the error of an update whose setting another one deleted meanwhile.
var errDeleted = errors.New("the setting was deleted")

func updateSetting(ctx context.Context, tx pgx.Tx, name string, change func(old []byte) ([]byte, error)) error {
	if _, err := tx.Exec(ctx, "insert into settings (name, value) values ($1, $2) on conflict (name) do nothing", name, []byte{}); err != nil {
		return err
	}
	var value []byte
	err := tx.QueryRow(ctx, "select value from settings where name = $1 for update", name).Scan(&value)
	if errors.Is(err, pgx.ErrNoRows) {
		return errDeleted
	}
	if err != nil {
		return err
	}
	if value, err = change(value); err != nil {
		return err
	}
	if len(value) == 0 {
		_, err = tx.Exec(ctx, "delete from settings where name = $1", name)
	} else {
		_, err = tx.Exec(ctx, "update settings set value = $2 where name = $1", name, value)
	}
	return err
}
