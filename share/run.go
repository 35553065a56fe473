package share

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/freshet/freshet/share/part"
	"github.com/freshet/freshet/weburl"
)

// Run scans what is worth a visit until ctx ends, with as many workers as
// SetRobots says. It returns nil when ctx ends, or the first error that is not
// a host's: of the store or the sink.
func (r *Robot) Run(outer context.Context) error {
	ctx, cancel := context.WithCancelCause(outer)
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() {
		r.mu.Lock() // so that nobody is between looking and waiting
		defer r.mu.Unlock()
		r.changed.Broadcast()
	})()
	var wg sync.WaitGroup
	wg.Go(func() { r.housekeep(ctx, cancel) })
	r.mu.Lock()
	for ctx.Err() == nil {
		for ; r.workers < r.want; r.workers++ {
			wg.Go(func() { r.runWorker(ctx, cancel) })
		}
		r.changed.Wait()
	}
	r.mu.Unlock()
	wg.Wait()
	err := context.Cause(ctx)
	if outer.Err() != nil && errors.Is(err, context.Cause(outer)) {
		err = nil
	}
	for _, h := range r.allHosts() {
		r.closeSession(h)
		_, serr := r.saveHost(context.WithoutCancel(ctx), h)
		err = errors.Join(err, serr)
	}
	return err
}

func (r *Robot) allHosts() []*host {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]*host, 0, len(r.hosts))
	for _, h := range r.hosts {
		out = append(out, h)
	}
	return out
}

// runWorker is one worker: it takes the part most worth a visit on a machine that
// nobody reads, and scans it.
func (r *Robot) runWorker(ctx context.Context, cancel context.CancelCauseFunc) {
	for {
		h, p := r.claimPart(ctx)
		if h == nil {
			return
		}
		_, _, err := r.scanPart(ctx, h, p)
		if err == nil || errors.Is(err, errHost) {
			if r.cfg.Now().Sub(h.saved) > saveEvery || err != nil {
				_, err = r.saveHost(ctx, h)
				h.saved = r.cfg.Now()
			} else {
				err = nil
			}
		}
		r.mu.Lock()
		delete(r.busy, h.machine)
		r.working--
		r.changed.Broadcast()
		r.mu.Unlock()
		if err != nil && ctx.Err() == nil {
			cancel(err)
		}
	}
}

// saveEvery is how long visits without a change may stay unsaved: a crash loses
// no file, only the memory of some visits.
const saveEvery = 30 * time.Second

// claimPart waits for a part to scan and claims its machine. It returns nil when the
// worker is to end.
func (r *Robot) claimPart(ctx context.Context) (*host, part.Part) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		if ctx.Err() != nil || r.workers > r.want {
			r.workers--
			return nil, part.Part{}
		}
		if h, p := r.pickPart(toUnixSeconds(r.cfg.Now())); h != nil {
			r.busy[h.machine] = true
			r.working++
			return h, p
		}
		r.changed.Wait()
	}
}

// pickPart returns the part with the greatest value among the hosts that may be asked.
func (r *Robot) pickPart(now int64) (best *host, bestPart part.Part) {
	most := -1.0
	least := int64(r.cfg.MinInterval / time.Second)
	for _, h := range r.hosts {
		if h.next > now || r.busy[h.machine] {
			continue
		}
		if len(h.parts) == 0 {
			return h, part.Part{} // never scanned
		}
		if h.offline > 0 { // one part shows whether it is back
			return h, part.Part{}
		}
		for p, i := range h.parts {
			if !i.item.force && now-i.item.lastVisit() < least {
				continue
			}
			if v := i.item.visitValue(r.cfg.Policy, now); v > most {
				best, bestPart, most = h, p, v
			}
		}
	}
	return best, bestPart
}

// housekeep wakes waiting workers, closes idle sessions, probes address ranges
// again and forgets hosts that are gone for long.
func (r *Robot) housekeep(ctx context.Context, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		r.mu.Lock()
		now := r.cfg.Now()
		var idle, old []*host
		for _, h := range r.hosts {
			if r.busy[h.machine] {
				continue
			}
			if h.session != nil && now.Sub(h.used) > r.cfg.Idle {
				r.busy[h.machine] = true
				idle = append(idle, h)
			} else if h.offline > 0 && now.Sub(time.Unix(h.offline, 0)) > r.cfg.ForgetAfter && (!h.configured || len(h.parts) > 0) {
				r.busy[h.machine] = true
				old = append(old, h)
			}
		}
		var ranges []addressRange
		if now.Sub(r.probed) > r.cfg.ProbeEvery {
			ranges, r.probed = append(ranges, r.ranges...), now
		}
		r.mu.Unlock()
		for _, h := range idle {
			r.closeSession(h)
			r.releaseMachine(h)
		}
		for _, h := range old {
			if err := r.forgetHost(ctx, h); err != nil && ctx.Err() == nil {
				cancel(err)
			}
			r.releaseMachine(h)
		}
		for _, a := range ranges {
			if _, err := r.AddSourceWith(ctx, a.spec, a.options); err != nil {
				r.cfg.Log.Warn("probe address range", "source", weburl.Redact(a.spec), "error", err)
			}
		}
		r.changed.Broadcast()
	}
}

func (r *Robot) releaseMachine(h *host) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.busy, h.machine)
}

// forgetHost drops the files of a host that did not answer for too long, and the host
// itself unless a source names it: that one is asked on.
func (r *Robot) forgetHost(ctx context.Context, h *host) error {
	r.closeSession(h)
	if err := r.store.DropHost(ctx, h.name); err != nil {
		return err
	}
	r.mu.Lock()
	if h.configured {
		h.table, h.parts, h.denied = part.Table{}, map[part.Part]*partInfo{}, map[string]int64{}
		h.root, h.doubt, h.dirty = "", 0, true
	} else {
		delete(r.hosts, h.name)
	}
	r.mu.Unlock()
	r.cfg.Log.Info("share host forgotten", "host", h.name, "source", h.configured)
	if err := r.sink.Drop(ctx, h.name); err != nil || !h.configured {
		return err
	}
	r.sink.Online(h.name, false)
	_, err := r.saveHost(ctx, h)
	return err
}
