package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// The clock is the database's: nodes need not agree on the time.
const spendBudget = `
insert into budgets (name, next) values ($1, (extract(epoch from now()) * 1000000)::bigint + $2)
on conflict (name) do update set next = greatest(budgets.next, (extract(epoch from now()) * 1000000)::bigint) + $2
returning next - $2 - (extract(epoch from now()) * 1000000)::bigint`

// Spend implements cluster.Limits.
func (c *Cluster) Spend(ctx context.Context, budget string, cost time.Duration) (from time.Time, err error) {
	err = c.retry(ctx, func() error {
		var wait int64
		asked := time.Now()
		err := c.pool.QueryRow(ctx, spendBudget, budget, cost.Microseconds()).Scan(&wait)
		from = asked.Add(time.Duration(wait) * time.Microsecond)
		return err
	})
	if err != nil {
		return from, fmt.Errorf("budget %s: %w", budget, err)
	}
	return from, nil
}

// A slot that another process takes at the same moment is not had, though there may be
// a further one: the caller comes again.
const enterAddress = `
insert into places (address, n, node, until)
select $1, t.n, $2, $3 from generate_series(1, $5::integer) as t (n)
where not exists (select 1 from places p where p.address = $1 and p.n = t.n and p.until >= $4) order by t.n limit 1
on conflict (address, n) do update set node = excluded.node, until = excluded.until where places.until < $4
returning n`

// EnterAddress implements cluster.Limits.
func (c *Cluster) EnterAddress(ctx context.Context, address string, slotLimit int, ttl time.Duration) (release func(context.Context), err error) {
	var slot int
	var until int64
	err = c.retry(ctx, func() error {
		now := time.Now()
		until = now.Add(ttl).UnixMilli()
		return c.pool.QueryRow(ctx, enterAddress, address, c.Name(), until, now.UnixMilli(), slotLimit).Scan(&slot)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("slot of address %s: %w", address, err)
	}
	return func(ctx context.Context) { // best effort: the slot ends by itself
		_ = c.retry(ctx, func() error {
			_, err := c.pool.Exec(ctx, "delete from places where address = $1 and n = $2 and node = $3 and until = $4", address, slot, c.Name(), until)
			return err
		})
	}, nil
}
