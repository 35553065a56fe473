package crawl

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/robots"
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
	rules  *robots.File
	scheme string // of rules
	mirror string // host whose copy this one is
	// noRules says that robots.txt cannot be had: nothing may be fetched for now.
	noRules bool
	ask     time.Time // when robots.txt is asked for again
	batch   store.Batch
	taken   time.Time       // when pages were taken last
	last    time.Time       // of the last commit
	answer  *fetch.Response // room for the next one
	plain   building        // of pages that are not rendered
	keys    []weburl.Key    // of the links in the batch
	told    pending         // signals before the visit under way
	known   []bool          // room: which links of a page are known

	built   chan *building // pages that come back from the browser
	away    int            // pages that are there
	gathers []weburl.Key   // found without a browser since the last commit
}

// work visits pages until the host has none that are due, its time is up, or
// the agent must end; then commits and releases.
func (a *agent) work(ctx context.Context) (err error) {
	a.host, a.last = a.lease.Host, time.Now()
	a.robot.heard(&a.host)
	a.mirror = a.robot.waste.copyOf(a.host.Name)
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
	away := func(context.Context) {}
	defer func() {
		a.homecoming(ctx)
		stop()
		if lost := context.Cause(ctx); err != nil && errors.Is(lost, store.ErrLease) {
			err = lost // what was under way failed by that
		}
		a.robot.leave(a.id) // what remains is writing: the next agent need not wait for it
		away(quiet)
		if ferr := a.end(quiet); err == nil {
			err = ferr
		}
	}()
	leave, err := a.enter(ctx, slice)
	if err != nil {
		return err
	}
	if leave == nil {
		a.host.Next = time.Now().Add(time.Second)
		return nil
	}
	away = leave
	for ctx.Err() == nil && time.Now().Before(deadline) {
		a.taken = time.Now()
		pages, err := a.robot.config.Store.Take(ctx, a.lease, a.appetite(), a.taken)
		if err != nil {
			return fmt.Errorf("take pages of %s: %w", a.host.Name, err)
		}
		if len(pages) == 0 {
			if a.away == 0 && len(a.batch.Visits) == 0 {
				return nil
			}
			a.homecoming(ctx) // they may have links on this host
		}
		for i := range pages {
			if i > 0 && !time.Now().Before(deadline) {
				return nil
			}
			if more, err := a.turn(ctx, &pages[i], len(pages)-i); err != nil || !more {
				return err
			}
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
	if a.host.Delay > patience {
		return takeFew
	}
	return takePages
}

// address returns the public IP address of the host, or "".
func (a *agent) address(ctx context.Context) string {
	name := weburl.Hostname(a.host.Name)
	if !PublicName(name) {
		return ""
	}
	return a.robot.config.Fetch.Address(ctx, name)
}

// turn visits one page when its time has come; more is false when the agent
// should let go of the host.
func (a *agent) turn(ctx context.Context, p *store.Page, queue int) (more bool, err error) {
	r := a.robot
	if ctx.Err() != nil || !r.note(a.id, queue, a.host.Delay) {
		return false, nil
	}
	u, err := weburl.Parse(p.URL)
	if err != nil {
		a.exclude(p, "malformed")
		return true, nil
	}
	yes, keep := r.takenBack(u)
	if r.config.Sources != nil && (yes || p.State == store.Queued && r.InScope(u, p.Depth) != "") {
		if err := r.newSources(ctx, a.taken); err != nil {
			return false, err
		}
		yes, keep = r.takenBack(u)
	}
	if yes {
		a.takeBack(p, keep)
		return true, nil
	}
	if !a.rested(ctx) {
		return false, nil
	}
	if p.State == store.Queued {
		if trap := r.waste.shape(u, p.Depth, &r.config.Traps); trap != "" {
			r.stats.trap(trap, p.URL)
			a.exclude(p, trap)
			return true, nil
		}
	}
	if a.mirror != "" {
		a.exclude(p, "mirror of "+a.mirror)
		return true, nil
	}
	if ready, err := a.robotsFor(ctx, u); err != nil || !ready {
		return false, err
	}
	if a.noRules {
		a.withoutRobots(p)
		return true, nil
	}
	if !a.rules.Allowed(u.Target()) {
		a.blockedByRobots(p)
		return true, nil
	}
	if !a.rested(ctx) { // robots.txt was a request
		return false, nil
	}
	if r.waste.suspected(a.host.Name) {
		a.probe(ctx, u, time.Now())
		if !a.rested(ctx) {
			return false, nil
		}
	}
	if !r.reserve() {
		return false, nil
	}
	if !r.budget.wait(ctx) {
		r.unreserve()
		return false, nil
	}
	a.visit(ctx, p, u)
	a.comeback(ctx)
	if time.Until(a.host.Next) > patience { // the end of the work commits
		return false, nil
	}
	if a.ripe() {
		return true, a.commit(context.WithoutCancel(ctx))
	}
	return true, nil
}

// ripe reports whether it is time to commit; where others do, sooner.
func (a *agent) ripe() bool {
	n, since := len(a.batch.Visits), time.Since(a.last)
	if n >= commitPages || since > commitTime {
		return true
	}
	return a.robot.gather.inviting.Load() && (n >= commitPages/4 || since > commitTime/4)
}

// rested waits for the host's time if that comes in a moment; it reports false
// if the agent should let go of the host instead.
func (a *agent) rested(ctx context.Context) bool {
	wait := time.Until(a.host.Next)
	return wait <= 0 || wait <= patience && pause(ctx, wait)
}

// pause sleeps; it reports false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
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
	if err := a.hasten(ctx, a.batch.Visits, false); err != nil {
		return err
	}
	added, err := write(ctx, a.lease, &a.batch)
	if err == nil {
		err = a.hasten(ctx, a.batch.Visits, true)
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
	a.robot.gains.committed(a.gathers)
	a.gathers = a.gathers[:0]
	a.last = time.Now()
	return nil
}

// exclude takes a page out of the queue for good.
func (a *agent) exclude(p *store.Page, why string) {
	kind, _, _ := strings.Cut(why, " of ")
	a.robot.stats.skip(kind, p.URL)
	in := p.Held()
	p.State, p.Error, p.Slot, p.Digest = store.Excluded, why, store.Slot{}, [16]byte{}
	a.count(in, p)
	a.batch.Visits = append(a.batch.Visits, store.Visit{Page: *p, Changed: in})
}

// blockedByRobots notes the refusal and asks again in a day.
func (a *agent) blockedByRobots(p *store.Page) {
	a.robot.stats.skip("robots.txt", p.URL)
	in := p.Held()
	p.State, p.Error, p.Slot, p.Digest = store.Blocked, "robots.txt", store.Slot{Due: time.Now().Add(robotsAge)}, [16]byte{}
	a.count(in, p)
	a.batch.Visits = append(a.batch.Visits, store.Visit{Page: *p, Changed: in})
}

// noRobots is the error of pages that wait for a robots.txt.
const noRobots = "robots.txt cannot be had"

// WaitsForRobots reports whether a page waits until its robots.txt can be had.
func WaitsForRobots(p *store.Page) bool { return p.Error == noRobots }

// withoutRobots puts a page off until robots.txt is asked for again. What is
// known of it stays.
func (a *agent) withoutRobots(p *store.Page) {
	a.robot.stats.skip("robots.txt not to be had", p.URL)
	if p.State == store.Queued {
		p.State = store.Failed
	}
	p.Error = noRobots
	p.Failures++
	p.Slot = store.Slot{Due: a.ask}
	if more := p.Failures - maxRetries; more > 0 {
		p.Slot.Due = a.ask.Add(min(robotsRetry<<min(more, 7), robotsAge))
	}
	a.batch.Visits = append(a.batch.Visits, store.Visit{Page: *p})
}
