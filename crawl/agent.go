package crawl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/freshet/freshet/crawl/politeness"
	"github.com/freshet/freshet/fetch"
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

	host   store.Host
	access *politeness.Host // to host
	mirror string           // host whose copy this one is
	void   []string         // query parameters that change nothing on the host
	batch  store.Batch
	taken  time.Time       // when pages were taken last
	last   time.Time       // of the last commit
	answer *fetch.Response // its memory is used for the next one
	plain  pendingVisit    // of pages that are not rendered
	keys   []weburl.Key    // of the links in the batch
	known  []bool          // room: which links of a page are known

	toRender    []*renderPage // pages of the batch that are to go to the browser
	rendersDone []*renderPage // ... that are back from it
	gathers     []weburl.Key  // found without a browser since the last commit
}

// newAgent returns the agent of a host.
func (r *Robot) newAgent(id int, lease *store.Lease) *agent {
	a := &agent{robot: r, id: id, lease: lease, host: lease.Host}
	a.access = r.requests.Own(&a.host)
	return a
}

// work visits pages until the host has none that are due, its time is up, or
// the agent must end; then commits and releases.
func (a *agent) work(ctx context.Context) (err error) {
	a.last = time.Now()
	a.robot.knowSignals(&a.host)
	a.knowVoidParameters(a.last)
	if !a.robot.sources.standingOf(&a.host).IsSource { // it may have become one since
		a.mirror = a.robot.traps.CopyOf(a.host.Name, a.last)
	}
	// The process before this one may have died after a request that it had not
	// committed: the host rests as after a request at our start.
	if rest := a.robot.started.Add(a.host.Delay); a.host.Delay > 0 && a.host.Next.Before(rest) {
		a.host.Next = rest
	}
	// An agent of another process died here: what it fetched last nobody knows.
	if rest := a.last.Add(a.host.Delay); a.host.Delay > 0 && a.lease.Orphan && a.host.Next.Before(rest) {
		a.host.Next = rest
	}
	slice := hostSlice
	if o, ok := a.robot.config.Ordering.(Slicer); ok {
		slice = o.Slice()
	}
	deadline := a.last.Add(slice)
	// What was fetched is committed even when ctx has ended.
	quiet := context.WithoutCancel(ctx)
	ctx, stop := a.hold(ctx)
	var putOff time.Duration
	defer func() {
		stop()
		if lost := context.Cause(ctx); err != nil && errors.Is(lost, store.ErrLease) {
			err = lost // what was under way failed by that
		}
		a.robot.leave(a.id) // what remains is writing: the next agent need not wait for it
		a.access.ReleaseSlots(quiet)
		ferr := a.finishWork(quiet, putOff)
		a.access.Close()
		if err == nil {
			err = ferr
		}
	}()
	if a.robot.onlyRenders() && !a.robot.renders.hasResults(a.host.Name) { // nothing is fetched any more: other hosts first
		a.host.Next = later(a.host.Next, a.last.Add(time.Second))
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
		pages, err := a.robot.config.Store.Take(ctx, a.lease, a.appetite(), a.taken)
		if err != nil {
			return fmt.Errorf("take pages of %s: %w", a.host.Name, err)
		}
		if len(pages) == 0 {
			if len(a.batch.Visits) == 0 {
				return nil
			}
		}
		pages = a.applyRenders(ctx, pages)
		if more, err := a.visitPages(ctx, pages, deadline); err != nil || !more {
			return err
		}
		// What was found may be on this host, and better than what waits.
		if _, plain := a.robot.config.Ordering.(BreadthFirst); plain && len(pages) > 0 || len(a.batch.Visits)+len(a.batch.Found) == 0 {
			continue
		}
		if err := a.commit(quiet); err != nil {
			return err
		}
	}
	return nil
}

// appetite is how many pages to take: few of a host that rests for so long after
// each that the agent goes, since the others would be read for nothing.
func (a *agent) appetite() int {
	if a.host.Delay > politeness.Patience {
		return takeFew
	}
	return takePages
}

// finishWork gives the host back, for a while if it was put off before it was asked.
func (a *agent) finishWork(ctx context.Context, putOff time.Duration) error {
	if putOff <= 0 {
		return a.end(ctx)
	}
	a.host.Next = time.Now().Add(putOff)
	if s, ok := a.robot.config.Store.(store.Postponer); ok {
		return s.Postpone(ctx, a.lease, a.host.Next)
	}
	return a.end(ctx)
}

// admit prepares the visit of one page when the time of its host has come. visit is
// nil if the page is not to be fetched; more is false when the agent should let go of
// the host.
func (a *agent) admit(ctx context.Context, p *store.Page, queue int) (visit *pageVisit, more bool, err error) {
	r := a.robot
	if ctx.Err() != nil || !r.note(a.id, queue, a.host.Delay) {
		return nil, false, nil
	}
	u, err := weburl.Parse(p.URL)
	if err != nil || u.Key() != p.Key {
		a.decline(p, r.rules.Exclude(p, store.ReasonMalformedURL, "malformed URL", time.Now()))
		return nil, true, nil
	}
	yes, keep := r.sources.isRemoved(u)
	if r.config.Sources != nil && (yes || p.State == store.Queued && r.InScope(u, p.Depth) != "") {
		if err := r.sources.refresh(ctx, a.taken); err != nil {
			return nil, false, err
		}
		yes, keep = r.sources.isRemoved(u)
	}
	if yes {
		a.decline(p, r.rules.SourceRemoved(p, keep, time.Now()))
		return nil, true, nil
	}
	a.access.Private = r.sources.permitsPage(u)
	if !a.access.WaitForSlot(ctx) {
		return nil, false, nil
	}
	if p.State == store.Queued {
		if kind := r.traps.CountShape(u, p.Depth, &r.config.Traps); kind != "" {
			r.stats.trap(kind, p.URL)
			a.decline(p, r.rules.Exclude(p, store.Reason(kind), string(kind), time.Now()))
			return nil, true, nil
		}
	}
	if a.mirror != "" {
		a.decline(p, r.rules.SetAside(p, store.ReasonMirror, "mirror of "+a.mirror, time.Now()))
		return nil, true, nil
	}
	if a.isVoidVariant(p, u) {
		return nil, true, nil
	}
	if !a.loadRules(ctx, u) {
		return nil, false, nil
	}
	if unavailable, askedAgain := a.access.RulesUnavailable(); unavailable {
		a.decline(p, r.rules.RobotsUnavailable(p, askedAgain, time.Now()))
		return nil, true, nil
	}
	if !a.access.Allows(u) {
		a.decline(p, r.rules.RobotsForbid(p, time.Now()))
		return nil, true, nil
	}
	if !a.access.WaitForSlot(ctx) { // robots.txt was a request
		return nil, false, nil
	}
	if r.traps.IsSoft404Suspect(a.host.Name) {
		a.probeNotFound(ctx, u, time.Now())
		if !a.access.WaitForSlot(ctx) {
			return nil, false, nil
		}
	}
	if r.restForQuota(&a.host, time.Now()) {
		return nil, false, nil
	}
	if !r.reserve() {
		return nil, false, nil
	}
	if !r.budget.Wait(ctx) {
		r.unreserve()
		return nil, false, nil
	}
	return &pageVisit{page: p, url: u, private: a.access.Private}, true, nil
}

// ripe reports whether it is time to commit; where others do, sooner.
func (a *agent) ripe() bool {
	n, since := len(a.batch.Visits), time.Since(a.last)
	if n >= commitPages || since > commitTime {
		return true
	}
	return a.robot.gather.inviting.Load() && (n >= commitPages/4 || since > commitTime/4)
}

// loadRules makes the robots.txt of the URL's origin that in use, and queues the sitemaps
// that it names. It reports false if the host must rest first.
func (a *agent) loadRules(ctx context.Context, u weburl.URL) (ready bool) {
	ready, sitemaps := a.access.LoadRules(ctx, u)
	for _, to := range sitemaps {
		a.found(&store.Page{URL: u.Origin() + "/robots.txt"}, to, 0, time.Time{})
	}
	return ready
}

// syncBodies makes the bodies that were archived durable.
func (r *Robot) syncBodies() error {
	if r.config.Archive == nil {
		return nil
	}
	return r.config.Archive.Sync()
}

// working is how many agents might commit now.
func (r *Robot) working() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.live) + r.writing
}

// commit makes bodies, then records, durable.
func (a *agent) commit(ctx context.Context) error { return a.write(ctx, a.robot.config.Store.Commit) }

// end is commit, and gives the host back.
func (a *agent) end(ctx context.Context) error {
	if f, ok := a.robot.config.Store.(store.Finisher); ok {
		return a.write(ctx, f.Finish)
	}
	err := a.commit(ctx)
	if rerr := a.robot.config.Store.Release(ctx, a.lease); err == nil {
		err = rerr
	}
	return err
}

func (a *agent) write(ctx context.Context, write func(context.Context, *store.Lease, *store.Batch) (int, error)) error {
	if len(a.batch.Visits) > 0 {
		if err := a.robot.gather.join(a.robot.working(), a.robot.syncBodies); err != nil {
			return err
		}
	}
	a.batch.Host = a.host
	if o, ok := a.robot.config.Ordering.(Spreader); ok { // by what is known now, after all pages of the batch
		for i := range a.batch.Found {
			a.batch.Found[i].Order = o.Order(&a.batch.Found[i])
		}
	}
	if err := a.rescheduleSignalled(ctx, a.batch.Visits, false); err != nil {
		return err
	}
	if err := a.robot.renders.persist(ctx, a.toRender); err != nil {
		return err
	}
	added, err := write(ctx, a.lease, &a.batch)
	for err != nil && a.leaveOut(err) {
		added, err = write(ctx, a.lease, &a.batch)
	}
	if err == nil {
		err = a.rescheduleSignalled(ctx, a.batch.Visits, true)
	}
	if err != nil {
		return err
	}
	a.robot.stats.found(added)
	if added > 0 {
		a.robot.Wake()
	}
	clear(a.batch.Visits)
	clear(a.batch.Found)
	a.keys = a.keys[:0]
	a.batch = store.Batch{Visits: a.batch.Visits[:0], Found: a.batch.Found[:0]}
	if err := a.robot.renders.finish(ctx, a.rendersDone); err != nil {
		return err
	}
	stale, err := a.robot.renders.push(ctx, a.toRender, a.host.Delay)
	if err != nil {
		return err
	}
	for _, v := range stale {
		a.robot.discardRender(v)
	}
	a.toRender, a.rendersDone = nil, nil
	a.robot.gains.committed(a.gathers)
	a.gathers = a.gathers[:0]
	a.last = time.Now()
	return nil
}
