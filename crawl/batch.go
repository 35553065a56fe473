package crawl

import (
	"context"
	"time"

	"github.com/freshet/freshet/crawl/politeness"
	"github.com/freshet/freshet/crawl/visit"
	"github.com/freshet/freshet/freshness"
	"github.com/freshet/freshet/freshness/change"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// visitBatch collects what an agent learned of its host until it is committed.
type visitBatch struct {
	store.Batch
	robot  *Robot
	lease  *store.Lease
	host   *store.Host
	access *politeness.Host
	prior  func(*store.Page) change.Prior

	committed time.Time    // the last time
	keys      []weburl.Key // of the links in the batch

	toRender    []*renderPage // pages of the batch that are to go to the browser
	rendersDone []*renderPage // pages that are back from it
	plainLinks  []weburl.Key  // found without a browser since the last commit
}

// add adds a page to the batch. before is the record that the visit found.
func (b *visitBatch) add(before *store.Page, out *visit.Outcome, keys []weburl.Key, arrived time.Time, took time.Duration) {
	v := out.Visit(before, arrived, took)
	if out.Changed {
		v.Links = keys
	}
	b.countPage(before.Held(), out.Page.Held())
	b.Visits = append(b.Visits, v)
}

// countPage keeps the number of the host's pages.
func (b *visitBatch) countPage(heldBefore, held bool) {
	switch {
	case held && !heldBefore:
		b.host.Pages++
	case heldBefore && !held && b.host.Pages > 0:
		b.host.Pages--
	}
}

// isDue reports whether it is time to commit; where others do, sooner.
func (b *visitBatch) isDue() bool {
	n, since := len(b.Visits), time.Since(b.committed)
	if n >= commitPages || since > commitTime {
		return true
	}
	return b.robot.commits.joinable.Load() && (n >= commitPages/4 || since > commitTime/4)
}

// commit makes bodies, then records, durable.
func (b *visitBatch) commit(ctx context.Context) error {
	return b.writeWith(ctx, b.robot.config.Store.Commit)
}

// end is commit, and gives the host back.
func (b *visitBatch) end(ctx context.Context) error {
	if f, ok := b.robot.config.Store.(store.Finisher); ok {
		return b.writeWith(ctx, f.Finish)
	}
	err := b.commit(ctx)
	if rerr := b.robot.config.Store.Release(ctx, b.lease); err == nil {
		err = rerr
	}
	return err
}

// writeWith makes the bodies of the batch durable and writes the batch. What the store refuses
// is left out.
func (b *visitBatch) writeWith(ctx context.Context, write func(context.Context, *store.Lease, *store.Batch) (int, error)) error {
	if len(b.Visits) > 0 {
		if err := b.robot.commits.join(b.robot.working(), b.robot.syncBodies); err != nil {
			return err
		}
	}
	b.Host = *b.host
	b.orderFound()
	if err := b.rescheduleSignalled(ctx, b.Visits, false); err != nil {
		return err
	}
	if err := b.robot.renders.persist(ctx, b.toRender); err != nil {
		return err
	}
	added, err := write(ctx, b.lease, &b.Batch)
	for err != nil && b.leaveOut(err) {
		added, err = write(ctx, b.lease, &b.Batch)
	}
	if err == nil {
		err = b.rescheduleSignalled(ctx, b.Visits, true)
	}
	if err != nil {
		return err
	}
	return b.written(ctx, added)
}

// orderFound orders found URLs by what is known now, after all pages of the batch.
func (b *visitBatch) orderFound() {
	o, ok := b.robot.config.Ordering.(Spreader)
	if !ok {
		return
	}
	for i := range b.Found {
		b.Found[i].Order = o.Order(&b.Found[i])
	}
}

// written empties the batch, and gives its pages to the browser. added is how many of the
// found URLs were new.
func (b *visitBatch) written(ctx context.Context, added int) error {
	b.robot.stats.found(added)
	if added > 0 {
		b.robot.Wake()
	}
	clear(b.Visits)
	clear(b.Found)
	b.keys = b.keys[:0]
	b.Batch = store.Batch{Visits: b.Visits[:0], Found: b.Found[:0]}
	if err := b.robot.renders.finish(ctx, b.rendersDone); err != nil {
		return err
	}
	stale, err := b.robot.renders.push(ctx, b.toRender, b.host.Delay)
	if err != nil {
		return err
	}
	for _, v := range stale {
		b.robot.discardRender(v)
	}
	b.toRender, b.rendersDone = nil, nil
	b.robot.gains.committed(b.plainLinks)
	b.plainLinks = b.plainLinks[:0]
	b.committed = time.Now()
	return nil
}

// rescheduleSignalled has pages of the batch visited again whose signals came after they were
// asked for: before the commit in their records, after it in the queue, for
// signals that came meanwhile.
func (b *visitBatch) rescheduleSignalled(ctx context.Context, visits []store.Visit, committed bool) error {
	r := b.robot
	if !r.signals.HasPending() {
		return nil
	}
	var found []store.Found
	for i := range visits {
		v := &visits[i]
		u, err := weburl.Parse(v.Page.URL)
		if err != nil {
			continue
		}
		w, ok := r.signals.Pending(v.Page.Key)
		if !ok || v.Page.State != store.OK || !w.At.After(v.Arrived.Add(-v.Took)) {
			continue
		}
		belief := freshness.EvidenceOf(b.host.Trust, w).Belief(v.Page.History.Belief(b.prior(&v.Page)), w.At.Sub(v.Page.History.Last).Seconds())
		due := r.config.Plan.Signalled(&freshness.Signalled{Page: &v.Page, URL: u, Belief: belief, Evidence: w.Evidence, Total: w.Evidence, Signals: freshness.SignalQuality(b.host.Trust)})
		due = r.notBefore(w.Source, due, v.Arrived)
		switch {
		case due.IsZero() || !due.Before(v.Page.Slot.Due):
		case committed:
			found = append(found, store.Found{URL: u, Due: due})
		default:
			v.Page.Slot.Due = due
		}
	}
	if len(found) == 0 {
		return nil
	}
	_, err := r.config.Store.Add(ctx, found)
	return err
}
