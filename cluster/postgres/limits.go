package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/freshet/freshet/cluster"
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
// a further one: the caller comes again. Addresses without a free slot come back with
// the number -1.
const enterAddresses = `
with wanted as (select address, slots from unnest($1::text[], $2::integer[]) as t (address, slots)),
busy as (select w.address from wanted w where (select count(*) from places p where p.address = w.address and p.n <= w.slots and p.until >= $5) >= w.slots),
taken as (
	insert into places (address, n, node, until)
	select w.address, f.n, $3, $4 from wanted w cross join lateral (
		select t.n from generate_series(1, w.slots) as t (n)
		where not exists (select 1 from places p where p.address = w.address and p.n = t.n and p.until >= $5) order by t.n limit 1) f
	where not exists (select 1 from busy) order by w.address
	on conflict (address, n) do update set node = excluded.node, until = excluded.until where places.until < $5
	returning address, n)
select address, n from taken union all select address, -1 from busy`

// The slots of nodes that have died, and of servers that have rested, are anybody's
// before they are deleted.
const (
	releaseAddresses = `
update places p set until = t.until from unnest($1::text[], $2::integer[], $3::bigint[]) as t (address, n, until)
where p.address = t.address and p.n = t.n and p.node = $4 and p.until = $5`
	deleteFreePlaces = "delete from places where until < $1"
	keptFreePlaces   = time.Minute
)

// EnterAddresses implements cluster.Limits.
func (c *Cluster) EnterAddresses(ctx context.Context, slots []cluster.AddressSlot, ttl time.Duration) (release func(context.Context, []time.Duration), blocked int, err error) {
	if len(slots) == 0 {
		return func(context.Context, []time.Duration) {}, 0, nil
	}
	e := entry{cluster: c, addresses: make([]string, len(slots)), numbers: make([]int32, len(slots))}
	limits := make([]int32, len(slots))
	for i, s := range slots {
		e.addresses[i], limits[i] = s.Address, int32(s.Max)
	}
	err = c.retry(ctx, func() error {
		clear(e.numbers)
		now := time.Now()
		e.until = now.Add(ttl).UnixMilli()
		rows, err := c.pool.Query(ctx, enterAddresses, e.addresses, limits, c.Name(), e.until, now.UnixMilli())
		if err != nil {
			return err
		}
		var address string
		var n int32
		_, err = pgx.ForEachRow(rows, []any{&address, &n}, func() error {
			e.numbers[slices.Index(e.addresses, address)] = n
			return nil
		})
		return err
	})
	if err != nil {
		return nil, 0, fmt.Errorf("slots of addresses: %w", err)
	}
	if blocked = slices.Index(e.numbers, -1); blocked >= 0 {
		return nil, blocked, nil
	}
	if blocked = slices.Index(e.numbers, 0); blocked >= 0 { // another process was faster
		if slices.ContainsFunc(e.numbers, func(n int32) bool { return n > 0 }) {
			e.release(context.WithoutCancel(ctx), make([]time.Duration, len(slots)))
		}
		return nil, blocked, nil
	}
	return e.release, 0, nil
}

// entry are slots of addresses that were taken together.
type entry struct {
	cluster   *Cluster
	addresses []string
	numbers   []int32 // 0 is not taken, -1 has none free
	until     int64
}

// release gives the slots back when their rests have passed. If that fails they come
// free by themselves.
func (e *entry) release(ctx context.Context, rests []time.Duration) {
	c := e.cluster
	_ = c.retry(ctx, func() error {
		untils := make([]int64, len(rests))
		for i, rest := range rests {
			untils[i] = time.Now().Add(rest).UnixMilli() - 1 // until is the last moment
		}
		_, err := c.pool.Exec(ctx, releaseAddresses, e.addresses, e.numbers, untils, c.Name(), e.until)
		return err
	})
}
