package crawl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/freshet/freshet/crawl/politeness"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// How much an agent does between commits, and how long it keeps a host while
// others wait.
const (
	takePages   = 64
	takeFew     = 4
	commitPages = 64
	commitTime  = 250 * time.Millisecond
	hostSlice   = 20 * time.Second
)

// agent owns one host.
type agent struct {
	robot *Robot
	id    int
	lease *store.Lease

	host       store.Host
	access     *politeness.Host // to host
	limits     HostLimits       // of host
	requests   pageRequests
	soft404    soft404Probe
	parameters hostParameters
	links      linkQueue
	batch      visitBatch

	mirror string       // host whose copy this one is
	taken  time.Time    // when pages were taken last
	plain  pendingVisit // of pages that are not rendered
}

// newAgent returns the agent of a host.
func (r *Robot) newAgent(id int, lease *store.Lease) *agent {
	a := &agent{robot: r, id: id, lease: lease, host: lease.Host, limits: r.sources.limitsOf(lease.Host.Name)}
	a.access = r.requests.Own(&a.host)
	a.requests = pageRequests{robot: r, host: &a.host, access: a.access, prior: a.prior, maxBody: a.limits.Body}
	a.soft404 = soft404Probe{detector: &r.traps, host: &a.host, access: a.access}
	a.batch = visitBatch{robot: r, lease: lease, host: &a.host, access: a.access, prior: a.prior}
	a.links = linkQueue{robot: r, host: &a.host, parameters: &a.parameters, batch: &a.batch}
	a.parameters = hostParameters{robot: r, host: &a.host, requeue: func(u weburl.URL, depth int, due time.Time) {
		a.links.add(&store.Page{URL: u.Origin() + "/"}, u, depth, due)
	}}
	return a
}

// work visits pages until the host has none that are due, its time is up, or
// the agent must end; then commits and releases.
func (a *agent) work(ctx context.Context) (err error) {
	started := time.Now()
	a.start(started)
	slice := hostSlice
	if o, ok := a.robot.config.Ordering.(Slicer); ok {
		slice = o.Slice()
	}
	deadline := started.Add(slice)
	// What was fetched is committed even when ctx has ended.
	quiet := context.WithoutCancel(ctx)
	ctx, stop := a.robot.holdLease(ctx, *a.lease)
	var putOff time.Duration
	defer func() {
		stop()
		if lost := context.Cause(ctx); err != nil && errors.Is(lost, store.ErrLease) {
			err = lost // what was under way failed by that
		}
		a.robot.beginWriting(a.id) // what remains is writing: the next agent need not wait for it
		a.access.ReleaseSlots(quiet)
		ferr := a.finishWork(quiet, putOff)
		a.access.Close()
		if err == nil {
			err = ferr
		}
	}()
	if a.robot.onlyRenders() && !a.robot.renders.hasResults(a.host.Name) { // nothing is fetched any more: other hosts first
		a.host.Next = later(a.host.Next, started.Add(time.Second))
		return nil
	}
	// The slots last longer than the agent works: by a page that takes its time.
	if putOff, err = a.access.AcquireSlots(ctx, slice+a.robot.config.Lease+5*time.Minute); err != nil || putOff > 0 {
		return err
	}
	for ctx.Err() == nil && time.Now().Before(deadline) {
		if len(a.batch.Visits) > 0 && a.robot.renders.hasResults(a.host.Name) {
			return nil // they are taken under another lease, since the pages were out under this one
		}
		a.taken = time.Now()
		pages, err := a.robot.config.Store.Take(ctx, a.lease, a.takeCount(), a.taken)
		if err != nil {
			return fmt.Errorf("take pages of %s: %w", a.host.Name, err)
		}
		if len(pages) == 0 && len(a.batch.Visits) == 0 {
			return nil
		}
		pages = a.applyRenders(ctx, pages)
		if more, err := a.visitPages(ctx, pages, deadline); err != nil || !more {
			return err
		}
		// What was found may be on this host, and better than what waits.
		if _, plain := a.robot.config.Ordering.(BreadthFirst); plain && len(pages) > 0 || len(a.batch.Visits)+len(a.batch.Found) == 0 {
			continue
		}
		if err := a.batch.commit(quiet); err != nil {
			return err
		}
	}
	return nil
}

// start takes over what is known of the host, and lets it rest if a request may have been sent
// to it that its record does not know of.
func (a *agent) start(now time.Time) {
	a.batch.committed = now
	a.robot.knowSignals(&a.host)
	a.parameters.load(now)
	if !a.robot.sources.standingOf(&a.host).IsSource { // it may have become one since
		a.mirror = a.robot.traps.CopyOf(a.host.Name, now)
	}
	if a.host.Delay <= 0 {
		return
	}
	// The process before this one may have died after a request that it had not committed: the
	// host rests as after a request at our start.
	a.host.Next = later(a.host.Next, a.robot.started.Add(a.host.Delay))
	if a.lease.Orphan { // an agent of another process died here, perhaps just after a request
		a.host.Next = later(a.host.Next, now.Add(a.host.Delay))
	}
}

// takeCount is how many pages to take: few of a host that rests for so long after
// each that the agent goes, since the others would be read for nothing.
func (a *agent) takeCount() int {
	if a.host.Delay > politeness.Patience {
		return takeFew
	}
	return takePages
}

// finishWork gives the host back, for a while if it was put off before it was asked.
func (a *agent) finishWork(ctx context.Context, putOff time.Duration) error {
	if putOff <= 0 {
		return a.batch.end(ctx)
	}
	a.host.Next = time.Now().Add(putOff)
	if s, ok := a.robot.config.Store.(store.Postponer); ok {
		return s.Postpone(ctx, a.lease, a.host.Next)
	}
	return a.batch.end(ctx)
}
