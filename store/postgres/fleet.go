package postgres

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// Orders are what all nodes of a database are told to do. They are read with
// every sign of life.
type Orders struct {
	Paused bool `json:"paused,omitempty"`
	// Stop ends every node that joined before; Now without its pages under way.
	Stop time.Time `json:"stop,omitzero"`
	Now  bool      `json:"now,omitempty"`
}

// ordersKey is the setting that holds them.
const ordersKey = "orders"

// Orders returns what nodes are told.
func (s *Store) Orders(ctx context.Context) (o Orders, err error) {
	b, err := s.Get(ctx, ordersKey)
	if err != nil {
		return o, err
	}
	return readOrders(b)
}

func readOrders(b []byte) (o Orders, err error) {
	if len(b) == 0 {
		return o, nil
	}
	if err := json.Unmarshal(b, &o); err != nil {
		return o, fmt.Errorf("setting %s: %w: %w", ordersKey, errInput, err)
	}
	return o, nil
}

// Pause lets all nodes start no new work, or go on, from their next sign of life.
func (s *Store) Pause(ctx context.Context, paused bool) error {
	return s.order(ctx, func(o *Orders) { o.Paused = paused })
}

// Stop ends all nodes that have joined by now.
func (s *Store) Stop(ctx context.Context, now bool) error {
	return s.order(ctx, func(o *Orders) { o.Stop, o.Now = time.Now(), now })
}

// order changes what nodes are told, so that of two orders given at once none is
// lost.
func (s *Store) order(ctx context.Context, change func(*Orders)) error {
	return s.Change(ctx, ordersKey, func(b []byte) ([]byte, error) {
		o, err := readOrders(b)
		if err != nil {
			return nil, err
		}
		change(&o)
		return json.Marshal(o)
	})
}

// Registry lists the living nodes and the limit of agents, Unlimited without one.
func (s *Store) Registry(ctx context.Context) (nodes []Node, limit int, err error) {
	err = s.tx(ctx, func(tx pgx.Tx) error {
		nodes, err = living(ctx, tx, time.Now().UnixMilli())
		return err
	})
	if err != nil {
		return nil, 0, fmt.Errorf("registry: %w", err)
	}
	b, err := s.Get(ctx, limitKey)
	if err != nil {
		return nil, 0, err
	}
	limit, err = readLimit(b)
	return nodes, limit, err
}

// The clock is the database's: nodes need not agree on the time.
const spend = `
insert into budgets (name, next) values ($1, (extract(epoch from now()) * 1000000)::bigint + $2)
on conflict (name) do update set next = greatest(budgets.next, (extract(epoch from now()) * 1000000)::bigint) + $2
returning next - $2 - (extract(epoch from now()) * 1000000)::bigint`

// Spend takes so much of the time of a budget that all nodes share and returns
// from when on it is the caller's: a budget of r requests a second is kept by
// those who spend 1/r for each.
func (s *Store) Spend(ctx context.Context, budget string, cost time.Duration) (from time.Time, err error) {
	err = s.retry(ctx, func() error {
		var wait int64
		asked := time.Now()
		err := s.pool.QueryRow(ctx, spend, budget, cost.Microseconds()).Scan(&wait)
		from = asked.Add(time.Duration(wait) * time.Microsecond)
		return err
	})
	if err != nil {
		return from, fmt.Errorf("store: budget: %w", err)
	}
	return from, nil
}

// A place that another takes at the same moment is not had, though there may be
// a further one: the caller comes again.
const (
	enterAddress = `
insert into places (address, n, node, until)
select $1, t.n, $2, $3 from generate_series(1, $5::integer) as t (n)
where not exists (select 1 from places p where p.address = $1 and p.n = t.n and p.until >= $4) order by t.n limit 1
on conflict (address, n) do update set node = excluded.node, until = excluded.until where places.until < $4
returning n`
	leaveAddresses = `
delete from places where (address, n) in (select p.address, p.n from places p join unnest($1::text[], $2::integer[]) as t (address, n)
	on p.address = t.address and p.n = t.n where p.node = $3)`
)

// Place is the right to ask the servers at an address, one of few.
type Place struct {
	address string
	n       int
}

// Enter takes one of most places at an address until it is left, or ttl has
// passed; ok is false when there is none.
func (s *Store) Enter(ctx context.Context, address string, most int, ttl time.Duration) (p Place, ok bool, err error) {
	err = s.retry(ctx, func() error {
		now := time.Now()
		p = Place{address: address}
		err := s.pool.QueryRow(ctx, enterAddress, address, s.config.Node, now.Add(ttl).UnixMilli(), now.UnixMilli(), most).Scan(&p.n)
		if ok = err == nil; errors.Is(err, pgx.ErrNoRows) {
			err = nil
		}
		return err
	})
	if err != nil {
		return p, false, fmt.Errorf("store: place at %s: %w", address, err)
	}
	return p, ok, nil
}

// Leave gives a place back. What fails ends by itself.
func (s *Store) Leave(ctx context.Context, p Place) error {
	if err := s.leaving.do(ctx, p, false); err != nil {
		return fmt.Errorf("store: place at %s: %w", p.address, err)
	}
	return nil
}

func (s *Store) leaveAll(ctx context.Context, all []Place) error {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b Place) int { return cmp.Or(cmp.Compare(a.address, b.address), cmp.Compare(a.n, b.n)) })
	return s.retry(ctx, func() error {
		_, err := s.pool.Exec(ctx, leaveAddresses, column(all, func(p *Place) string { return p.address }), column(all, func(p *Place) int32 { return int32(p.n) }), s.config.Node)
		return err
	})
}
