package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// A lease is the host's row: token, end and node. While it lasts, ready is its
// end, so that one index finds both hosts whose time has come and those whose
// agent has died.
const (
	// claimHosts goes by the database's clock: a node whose own is ahead gets no host
	// before its time. A time that is further off than clocks may be apart is meant.
	claimHosts = `
with database as (
	select (extract(epoch from now()) * 1000)::bigint as now
), at as (
	select case when abs(database.now - $1) <= $5 then database.now else $1 end as now from database
), free as (
	select host, leased > 0 as orphan from hosts where ready <= (select now from at) order by ready, turn limit $4 for update skip locked
)
update hosts h set token = h.token + 1, leased = (select now from at) + $2, ready = (select now from at) + $2, node = $3, batch = 0, added = 0
from free where h.host = free.host
returning h.host, h.name, h.record, h.token, free.orphan`
	// firstNew and firstDue are what agents will take first of hosts just claimed.
	firstNew = `
select p.host, p.url, p.state, p.depth, p.ord, p.due, p.address, p.origin, p.record, p.refetch, p.asked, p.version from unnest($1::bigint[]) as t (host)
cross join lateral (select * from pages where pages.host = t.host and pages.ord > 0 order by pages.ord limit $2) p`
	firstDue = `
select p.host, p.url, p.state, p.depth, p.ord, p.due, p.address, p.origin, p.record, p.refetch, p.asked, p.version from unnest($1::bigint[]) as t (host)
cross join lateral (select * from pages where pages.host = t.host and pages.due > 0 and pages.due <= $3 order by pages.due limit $2) p`
)

// readAhead is how many pages of each kind are read with a claim: an agent whose
// host rests after each page takes few.
const readAhead = 6

// ready are pages read with the claim of their host.
type ready struct {
	fresh, due []store.Page
	asked      map[weburl.Key]int64
	now        int64
}

// upTo returns the first n of each kind, if that many or all there are were read
// and none is out; the claim was a moment ago.
func (r *ready) upTo(n int, now time.Time, out int) (fresh, due []store.Page, ok bool) {
	if r == nil || out > 0 || now.UnixMilli()-r.now > aheadMost.Milliseconds() || r.now > now.UnixMilli() {
		return nil, nil, false
	}
	if len(r.fresh) == readAhead && n > readAhead || len(r.due) == readAhead && n > readAhead {
		return nil, nil, false
	}
	return r.fresh[:min(n, len(r.fresh))], r.due[:min(n, len(r.due))], true
}

// aheadMost is how old a claim made ahead may be when it is given out.
const aheadMost = 500 * time.Millisecond

// oldestAhead is the same for short leases.
func oldestAhead(ttl time.Duration) time.Duration { return min(aheadMost, ttl/8) }

// ahead holds hosts that were claimed with another, for the next who asks. As
// many are claimed as were asked for within the time of gathering: none, where
// agents stay on their hosts.
type ahead struct {
	mu     sync.Mutex
	leases []*store.Lease
	at     time.Time // of their claim
	expire *time.Timer
	work   sync.WaitGroup // who give back
	closed bool
	asked  [8]time.Time // the last times that a host was asked for
	next   int
}

// claimBatchSize notes that a host is asked for and tells how many to claim.
func (a *ahead) claimBatchSize(gather time.Duration) int {
	now := time.Now()
	oldest := a.asked[a.next]
	a.asked[a.next], a.next = now, (a.next+1)%len(a.asked)
	if gather <= 0 || oldest.IsZero() {
		return 1
	}
	each := max(now.Sub(oldest)/time.Duration(len(a.asked)), time.Millisecond)
	return int(min(max(gather/each, 1), 32))
}

// stopAhead drops what is held; Close gives back all leases.
func (a *ahead) stopAhead() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed, a.leases = true, nil
	if a.expire != nil {
		a.expire.Stop()
	}
}

// Claim implements store.Store.
func (s *Store) Claim(ctx context.Context, node string, now time.Time, ttl time.Duration) (*store.Lease, time.Time, error) {
	if node == "" {
		node = s.config.Node
	}
	if s.isClockSetBack(now) {
		if err := s.repairSkew(ctx, now); err != nil {
			return nil, time.Time{}, fmt.Errorf("store: claim: %w", err)
		}
	}
	a, want := &s.ahead, 1
	if s.config.Gather > 0 {
		a.mu.Lock()
		defer a.mu.Unlock() // who waits here finds what this one claims
		want = a.claimBatchSize(s.config.Gather)
		if len(a.leases) > 0 && time.Since(a.at) < oldestAhead(ttl) {
			l := a.leases[0]
			a.leases = a.leases[1:]
			return l, time.Time{}, nil
		}
	}
	var leases []*store.Lease
	var next time.Time
	err := s.retryStore(ctx, func() (err error) {
		next = time.Time{}
		if leases, err = s.claimHosts(ctx, node, now, ttl, want); err == nil && len(leases) == 0 {
			next, err = s.nextReady(ctx, now)
		}
		return err
	})
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("store: claim: %w", err)
	}
	if len(leases) == 0 {
		return nil, next, nil
	}
	if len(leases) > 1 {
		s.keepLeases(leases[1:], oldestAhead(ttl))
	}
	return leases[0], time.Time{}, nil
}

// keepLeases holds leases for the next who ask, and gives them back when nobody does.
// The caller holds ahead.mu.
func (s *Store) keepLeases(leases []*store.Lease, most time.Duration) {
	a := &s.ahead
	if a.closed {
		return
	}
	if old := a.leases; len(old) > 0 { // too old
		a.work.Go(func() { s.releaseUnheld(old) })
	}
	a.leases, a.at = leases, time.Now()
	if a.expire != nil {
		a.expire.Stop()
	}
	a.expire = time.AfterFunc(most, func() { s.releaseUnused(leases) })
}

// releaseUnused releases those of leases that nobody has asked for.
func (s *Store) releaseUnused(leases []*store.Lease) {
	a := &s.ahead
	a.mu.Lock()
	if a.closed || len(a.leases) == 0 || a.leases[len(a.leases)-1] != leases[len(leases)-1] {
		a.mu.Unlock()
		return
	}
	left := a.leases
	a.leases = nil
	a.work.Go(func() { s.releaseUnheld(left) })
	a.mu.Unlock()
}

// releaseUnheld gives leases back that no agent had. What fails ends by itself.
func (s *Store) releaseUnheld(leases []*store.Lease) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	all := make([]held, len(leases))
	for i, l := range leases {
		all[i] = held{hostKey(l.Host.Name), l.Token}
	}
	_ = s.releaseLeases(ctx, all)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range all {
		delete(s.held, h)
	}
}

// claimHosts leases up to n hosts and reads the first pages of each.
func (s *Store) claimHosts(ctx context.Context, node string, now time.Time, ttl time.Duration, n int) ([]*store.Lease, error) {
	until := now.Add(ttl)
	rows, err := s.pool.Query(ctx, claimHosts, now.UnixMilli()+s.offset.Load(), ttl.Milliseconds(), node, n, maxSkew.Milliseconds())
	if err != nil {
		return nil, err
	}
	var hosts []int64
	leases, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (*store.Lease, error) {
		var host, token int64
		var record []byte
		l := &store.Lease{Node: node, Until: until}
		var name string
		if err := r.Scan(&host, &name, &record, &token, &l.Orphan); err != nil {
			return nil, err
		}
		if record != nil {
			if err := json.Unmarshal(record, &l.Host); err != nil {
				return nil, fmt.Errorf("host %s: %w: %w", name, errInput, err)
			}
		}
		l.Host.AddReason()
		l.Host.Name, l.Token = name, uint64(token)
		if l.Host.Next.After(now.Add(store.LongestRest)) {
			l.Host.Next = now // its row says that it has rested
		}
		hosts = append(hosts, host)
		return l, nil
	})
	if err != nil || len(leases) == 0 {
		return nil, err
	}
	var first map[int64]*ready
	if s.config.Gather > 0 {
		if first, err = s.readFirstPages(ctx, hosts, now); err != nil {
			first = nil // the leases are ours all the same: agents ask again
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, l := range leases {
		w := &work{taken: map[weburl.Key]place{}, ready: first[hosts[i]]}
		if w.ready != nil {
			l.New = int64(len(w.ready.fresh))
		}
		s.held[held{hosts[i], l.Token}] = w
	}
	return leases, nil
}

// readFirstPages reads the first pages of hosts just claimed.
func (s *Store) readFirstPages(ctx context.Context, hosts []int64, now time.Time) (map[int64]*ready, error) {
	out := map[int64]*ready{}
	for _, h := range hosts {
		out[h] = &ready{now: now.UnixMilli(), asked: map[weburl.Key]int64{}}
	}
	var b pgx.Batch
	b.Queue(firstNew, hosts, readAhead)
	b.Queue(firstDue, hosts, readAhead, now.UnixMilli())
	res := s.pool.SendBatch(ctx, &b)
	var errs error
	for _, list := range []func(*ready) *[]store.Page{func(r *ready) *[]store.Page { return &r.fresh }, func(r *ready) *[]store.Page { return &r.due }} {
		rows, err := res.Query()
		var in row
		if err == nil {
			_, err = pgx.ForEachRow(rows, in.scanFields(), func() error {
				p, err := in.pageOfRow()
				if err != nil {
					return err
				}
				in.record = nil
				out[in.host].asked[p.Key] = in.asked
				l := list(out[in.host])
				*l = append(*l, p)
				return nil
			})
		}
		errs = errors.Join(errs, err)
	}
	return out, errors.Join(errs, res.Close())
}
